"""make_fx and torch.export: programs lowered to ops of the table, as modules."""
import io
import pickle

import pytest

import tensorgrad as tg
import tensorgrad.fx.experimental.symbolic_shapes
from tensorgrad.export import Dim, ExportedProgram, dims, export
from tensorgrad.fx.experimental.proxy_tensor import make_fx
from tensorgrad.graph import ReadsValues


def program(x, more):
    y = more["a"].clone()
    y[0] = x.sum(0)
    return tg.softmax(x, -1).to(tg.float64) + more["b"], y.split(1), x[:, 1:].mean()


def equal(a, b):
    if isinstance(a, tg.Tensor):
        return tg.equal(a, b)
    return type(a) is type(b) and len(a) == len(b) and all(map(equal, a, b))


ARGS = tg.arange(6.).reshape(2, 3), {"a": tg.ones(2, 3), "b": 2}


def test_make_fx():
    traced = make_fx(program)(*ARGS)
    other = tg.arange(6.).reshape(2, 3).flip(0), {"a": tg.zeros(2, 3), "b": 2}
    for module in (traced, pickle.loads(pickle.dumps(traced))):
        assert equal(module(*other), program(*other))
    assert {node.target.__module__.partition(".")[2] for node in traced.graph.nodes
            if node.op == "call_function" and node.name.rstrip("_1") != "getitem"} <= {"fx.table", "_ops.aten"}
    assert traced.graph.find_nodes(op="placeholder")[0].name == "x_1"
    with pytest.raises(AssertionError, match="tracing_mode must be"):
        make_fx(program, tracing_mode="unreal")
    with pytest.raises(ReadsValues):
        make_fx(lambda x: x if x.sum() > 0 else -x, tracing_mode="fake")(tg.ones(2))
    assert make_fx(lambda x: x if x.sum() > 0 else -x)(tg.ones(2))(tg.tensor([-5., 1.])).tolist() == [-5, 1]


def test_gradients_of_traced_functions():
    x = tg.tensor([1., 2.], requires_grad=True)
    make_fx(lambda x: x ** 3)(x)(x).backward(tg.tensor([1., -1.]))
    assert x.grad.tolist() == [3., -12.]


@pytest.mark.parametrize("mode", ["real", "fake"])
def test_traced_gradients(mode):
    """Autograd inside of a traced function: first and second gradients, `.grad`; captured tensors have none."""
    def slopes(x, w):
        y = (tg.sin(x @ w) * x.sum()).sum()
        first = tg.autograd.grad(y, (x, w), create_graph=True)
        second = tg.autograd.grad((first[0] * first[0]).sum(), w)[0]
        (x * w[0]).sum().backward()
        return (*first, second, x.grad)

    def given(*values):
        return tg.tensor(values, requires_grad=True), tg.tensor([[1., 2.], [0.5, -1.]], requires_grad=True)
    traced, args = make_fx(slopes, tracing_mode=mode)(*given(0.5, 2.)), given(-1., 3.)
    for one, other in zip(traced(*args), slopes(*given(-1., 3.)), strict=True):
        assert tg.allclose(one, other, atol=1e-6)
    assert make_fx(lambda x: tg.ones(2) + tg.full((2,), 3.) + tg.rand(2) + x)(args[0]).code.count("dtype") == 0
    with pytest.raises(RuntimeError, match="a gradient for a tensor that is no argument"):
        make_fx(lambda x: tg.autograd.grad((x * args[1]).sum(), args[1]))(args[0])


class Model(tg.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = tg.nn.Linear(2, 3)
        self.register_buffer("scale", tg.tensor([1., 2., 3.]))
        self.register_buffer("shift", tg.ones(3), persistent=False)

    def forward(self, x, pair, *, key=None):
        y = self.linear(x) * self.scale + self.shift + tg.tensor([1., 0., -1.])
        return {"y": y, "pair": (pair[0] + 1, None)}


def model():
    tg.manual_seed(0)
    return Model()


EXAMPLE = tg.arange(8.).reshape(4, 2), [tg.ones(3), 7]


def test_signature():
    """The names and kinds are those that PyTorch 2.13 has for this module."""
    class Plain(Model):
        def forward(self, x, y):
            return self.linear(x) * self.scale + self.shift, y + 1
    exported = export(Plain(), (tg.ones(4, 2), tg.ones(3)))
    signature = exported.graph_signature
    assert list(map(str, signature.input_specs)) == [
        "p_linear_weight: PARAMETER target='linear.weight'", "p_linear_bias: PARAMETER target='linear.bias'",
        "b_scale: BUFFER target='scale' persistent=True", "b_shift: BUFFER target='shift' persistent=False",
        "x: USER_INPUT", "y: USER_INPUT"]
    assert signature.parameters == ("linear.weight", "linear.bias") and signature.buffers == ("scale", "shift")
    assert signature.non_persistent_buffers == ("shift",) and signature.user_inputs == ("x", "y")
    assert signature.inputs_to_buffers == {"b_scale": "scale", "b_shift": "shift"}
    assert signature.user_outputs == ("add", "add_1") and not signature.lifted_tensor_constants
    assert list(exported.state_dict) == ["linear.weight", "linear.bias", "scale"]
    assert list(exported.constants) == ["shift"]
    assert [node.name for node in exported.graph.find_nodes(op="placeholder")] == [
        "p_linear_weight", "p_linear_bias", "b_scale", "b_shift", "x", "y"]
    assert list(exported.module().state_dict()) == ["scale", "linear.weight", "linear.bias"]
    constant, = export(model(), EXAMPLE).graph_signature.inputs_to_lifted_tensor_constants.values()
    assert constant == "lifted_tensor_0"


def test_exported_modules():
    original = model()
    exported = export(original, EXAMPLE)
    module = exported.module()
    x = tg.arange(8.).reshape(4, 2) - 3
    found, expected = module(x, [tg.zeros(3), 7]), original(x, [tg.zeros(3), 7])
    assert tg.equal(found["y"], expected["y"]) and tg.equal(found["pair"][0], expected["pair"][0])
    found["y"].backward(tg.arange(12.).reshape(4, 3))
    assert original.linear.weight.grad is not None                  # the parameters are the module's own
    assert tg.equal(pickle.loads(pickle.dumps(module))(x, [tg.zeros(3), 7])["y"], expected["y"])
    with pytest.raises(RuntimeError, match="Unable to call ExportedProgram directly"):
        exported(x)
    with pytest.raises(AssertionError, match=r"Guard failed: x.size\(\)\[0\] == 4"):
        module(tg.ones(5, 2), [tg.zeros(3), 7])
    with pytest.raises(ValueError, match="Trying to flatten user inputs with exported input tree spec"):
        module(x, [tg.zeros(3)])
    text = str(exported)
    assert text.startswith("ExportedProgram:\n    class GraphModule(torch.nn.Module):\n") and '"f32[4, 3]"' in text
    assert [name for name, _ in exported.named_parameters()] == ["linear.weight", "linear.bias"]
    assert [name for name, _ in exported.named_buffers()] == ["scale", "shift"]
    assert isinstance(exported, ExportedProgram)


def test_sizes_that_vary():
    batch = Dim("batch", min=2, max=16)
    exported = export(model(), EXAMPLE, dynamic_shapes={"x": {0: batch}, "pair": None})
    assert exported.range_constraints == {"batch": type(next(iter(exported.range_constraints.values())))(2, 16)}
    module = exported.module()
    assert module(tg.ones(7, 2), [tg.zeros(3), 7])["y"].shape == (7, 3)
    for size in (1, 17):
        with pytest.raises(AssertionError, match="Guard failed"):
            module(tg.ones(size, 2), [tg.zeros(3), 7])

    class Flat(tg.nn.Module):
        def forward(self, x, y):
            return x.flatten(1), y
    n = Dim("n")
    module = export(Flat(), (tg.ones(2, 3, 4), tg.ones(5)), dynamic_shapes=({0: n}, {0: 2 * n + 1})).module()
    assert module(tg.ones(4, 3, 4), tg.ones(9))[0].shape == (4, 12)
    with pytest.raises(AssertionError, match=r"Guard failed: y.size\(\)\[0\] == x.size\(\)\[0\]"):
        module(tg.ones(4, 3, 4), tg.ones(8))


class Sized(tg.nn.Module):
    def forward(self, x):
        return x * x.shape[0] ** 0.5


class Writing(tg.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", tg.zeros(1))

    def forward(self, x):
        self.count += 1
        return x + self.count


class Branching(tg.nn.Module):
    def forward(self, x):
        return x.sin() if x.shape[0] > 3 else x.reshape(2)


class Shapes(tg.nn.Module):
    """Sizes in all places: a mask, a slice, products, floors, a mean, a result."""

    def __init__(self):
        super().__init__()
        self.place = tg.nn.Parameter(tg.randn(1, 40, 6))
        self.norm = tg.nn.BatchNorm1d(6)

    def forward(self, x, more):
        batch, length, _ = x.shape
        y = x + self.place[:, :length] + more["y"].sum() / more["y"].shape[0]
        y = self.norm(y.reshape(batch * length, 6)).view(batch, length, 6)
        weights = (y @ y.mT + tg.triu(tg.full((length, length), -tg.inf), 1)).softmax(-1)
        pooled = tg.nn.functional.max_pool1d((weights @ y).mT, 2)
        return {"pooled": pooled.flatten(1), "size": length * 2, "new": tg.zeros(batch + 1, 2) + tg.arange(2)}


def test_formulas_of_sizes():
    """Dynamic sizes appear in all arguments; buffers are written to as by the module; files keep both."""
    original, eager = Shapes(), Shapes()
    begun = {name: value.clone() for name, value in original.state_dict().items()}
    batch, length = Dim("batch", min=2, max=50), Dim("length", max=39)
    program = export(original, (tg.randn(3, 7, 6), {"y": tg.ones(4)}),
                     dynamic_shapes={"x": {0: batch, 1: length}, "more": {"y": {0: Dim.AUTO}}})
    assert {name: str(bounds) for name, bounds in program.range_constraints.items()} == {
        "batch": "VR[2, 50]", "length": "VR[0, 39]", "s2": "VR[2, int_oo]"}
    assert [node.name for node in program.graph.find_nodes(op="placeholder")][-2:] == ["x", "more_y"]
    file = io.BytesIO()
    tg.export.save(program, file)
    functional = program.run_decompositions()
    assert functional.graph_signature.buffers_to_mutate == {
        f"detach_default{end}": f"norm.{name}" for end, name in [("", "num_batches_tracked"), ("_1", "running_mean"),
                                                                 ("_2", "running_var")]}
    modules = [each.module() for each in (program, functional, tg.export.load(file))]
    for module in modules:
        eager.load_state_dict(begun)
        module.load_state_dict(begun)
        for sizes in ((4, 9, 5), (2, 2, 3), (11, 30, 2)):
            x, more = tg.randn(*sizes[:2], 6), {"y": tg.arange(float(sizes[2]))}
            found, expected = module(x, more), eager(x, more)
            assert tg.allclose(found["pooled"], expected["pooled"], atol=1e-5) and found["size"] == 2 * sizes[1]
            assert tg.equal(found["new"], expected["new"])
            assert tg.allclose(module.norm.running_var, eager.norm.running_var)
        assert module.norm.num_batches_tracked == 3
    found["pooled"].sum().backward()
    assert module.place.grad is not None


def test_shapes_of_variadic_arguments():
    class Total(tg.nn.Module):
        def forward(self, *parts, **more):
            return sum(part.sum() for part in parts) * more["scale"]
    n = {0: Dim.DYNAMIC}
    module = export(Total(), (tg.ones(3), tg.ones(4)), {"scale": tg.tensor(2.)},
                    dynamic_shapes={"parts": (n, n), "scale": None}).module()
    assert module(tg.ones(5), tg.ones(7), scale=tg.tensor(3.)) == 36


def test_ranges_of_hints():
    """AUTO axes are narrowed, tied to each other, or static, as the program needs."""
    class Hints(tg.nn.Module):
        def forward(self, x, y, z):
            return (x.sin() if x.shape[0] > 3 else x) + y, z.reshape(2, -1)
    auto = {0: Dim.AUTO}
    program = export(Hints(), (tg.ones(5), tg.ones(5), tg.ones(7, 2)), dynamic_shapes=(auto, auto, {0: Dim.AUTO,
                                                                                                   1: Dim.AUTO}))
    assert list(map(str, program.range_constraints.values())) == ["VR[4, int_oo]", "VR[2, int_oo]"]
    assert program.module()(tg.zeros(9), tg.ones(9), tg.ones(6, 2))[1].shape == (2, 6)
    assert program.module()(tg.zeros(9), tg.ones(9), tg.ones(7, 2))[0].tolist() == [1.] * 9
    with pytest.raises(AssertionError, match=r"Guard failed: y.size\(\)\[0\] == x.size\(\)\[0\]"):
        program.module()(tg.zeros(9), tg.ones(8), tg.ones(7, 2))


def test_writes():
    """Buffers and inputs are written to."""
    module = export(Writing(), (tg.ones(3),)).module()
    assert [module(tg.ones(3))[0].item() for _ in range(2)] == [2., 3.] and module.count.item() == 2

    def program(x, y):
        x.mul_(2)
        return x + y, tg.rand(2)
    traced = make_fx(program)(tg.ones(2), tg.ones(2))
    assert [str(node.target) for node in traced.graph.find_nodes(op="call_function", target=tg.ops.aten.copy_.default)]
    x = tg.ones(2)
    assert traced(x, tg.ones(2))[0].tolist() == [3., 3.] and x.tolist() == [2., 2.]
    traced.graph.eliminate_dead_code()
    traced.recompile()
    assert "copy_" in traced.code and "aten.rand" in traced.code


class Block(tg.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.spare = tg.nn.Linear(4, 4), tg.nn.Linear(2, 2)
        self.register_buffer("shift", tg.ones(4))

    def forward(self, x):
        return self.linear(x).relu() + self.shift


class Net(tg.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks, self.norm = tg.nn.ModuleList([Block(), Block()]), tg.nn.BatchNorm1d(4)

    def forward(self, x, *, scale):
        for block in self.blocks:
            x = block(x)
        x = self.blocks[0](self.norm(x)) * scale
        return {"x": x, "flat": self.blocks[1].linear(x).view(x.shape[0] * 2, 2)}


@pytest.mark.filterwarnings("ignore::FutureWarning")          # PyTorch's own
def test_models_without_values(torch):
    """Models on the meta device are exported; an unflattened one has its modules in the program's order."""
    for package in (torch, tg):
        class Net(package.nn.Module):
            def __init__(self, nn=package.nn):
                super().__init__()
                self.last, self.act, self.first = nn.Linear(4, 2), nn.ReLU(), nn.Linear(3, 4)

            def forward(self, x):
                return self.last(self.act(self.first(x)))
        with package.device("meta"):
            net, x = Net(), package.ones(5, 3)
        exported = package.export.export(net, (x,))
        flat = package.export.unflatten(exported)
        found = (tuple(exported.module()(x).shape), [name for name, _ in flat.named_modules() if name != "act"],
                 str(flat.first.weight.device), [n.name for n in exported.graph.nodes])
        if package is torch:
            expected = found
    assert found == expected


def test_random_numbers_of_traced_functions():
    """Graphs draw the numbers that the function draws."""
    def draw(x):
        return (tg.randint(2, 9, (3,)), tg.bernoulli(x), x.clone().log_normal_(), x.clone().uniform_(1, 2),
                tg.randint_like(x, 5), x.clone().geometric_(0.5))
    x, found = tg.tensor([0.5, 0.25, 0.75]), []
    traced = make_fx(draw)(x)
    for function in (draw, traced):
        tg.manual_seed(5)
        found.append([(out.dtype, out.tolist()) for out in function(x)])
    assert found[0] == found[1]


def test_constants_of_exported_programs(torch):
    for package in (torch, tg):
        class Net(package.nn.Module):
            def forward(self, x, k, on=True, *, n=None, s="a"):
                return x * k if on else x
        x = package.ones(2)
        run, found = package.export.export(Net(), (x, 3), {"n": None, "s": "b"}).module(), []
        for args, named in (((x, 3), {}), ((x, 4), {"s": "b"}), ((x, 3), {"s": "c"}), ((x, 3.0), {"s": "b"}),
                            ((x, 3), {"s": "b", "q": 1})):
            try:
                found.append(run(*args, n=None, **named).tolist())
            except Exception as error:
                found.append((type(error).__name__, str(error).split("\n")[0]))
        if package is torch:
            expected = found
    assert found == expected


def test_unflatten():
    """Modules have their names again; one that runs other steps in a later call is another."""
    net, scale = Net(), tg.tensor(2.)
    shapes = tg.export.ShapesCollection()
    shapes[x := tg.randn(3, 4)] = {0: Dim("n", max=30)}
    program = export(net, (x,), {"scale": scale}, dynamic_shapes=shapes)
    module = tg.export.unflatten(program)
    assert [name for name, _ in module.named_modules()] == [
        "", "blocks", "blocks.0", "blocks.0.linear", "blocks.0.spare", "blocks.1", "blocks.1.linear", "blocks.1.spare",
        "norm"]
    assert set(module.state_dict()) == set(net.state_dict())
    x = tg.randn(5, 4)
    found, expected = module(x, scale=scale), net(x, scale=scale)
    assert all(tg.allclose(found[key], expected[key], atol=1e-6) for key in expected)
    assert tg.equal(module.norm.running_mean, net.norm.running_mean) and module.norm.num_batches_tracked == 1
    found["x"].sum().backward()
    assert module.get_submodule("blocks.0").linear.weight.grad is not None and net.blocks[0].linear.weight.grad is None
    with pytest.raises(TypeError, match="There is no flat args adapter"):
        module(x, tg.ones(1))
    with pytest.raises(ValueError, match="Ran into a kwarg keyword mismatch"):
        program.example_inputs = (x,), {}


def test_numbers_of_the_inputs():
    """Whole numbers that the program reads are symbols, within the range that it checks."""
    class Head(tg.nn.Module):
        def forward(self, x, n):
            if tg.compiler.is_exporting():
                x = x.clone()
            count = n.max().item()
            tg._check(0 <= count <= x.shape[0])
            return x[:count], tg.zeros(count * 2) + (n + count).sum(), x
    x = tg.arange(5.)
    module = export(Head(), (x, tg.tensor([1, 3]))).module()
    for n in (0, 2, 5):
        first, sums, same = module(x, tg.tensor([0, n]))
        assert first.tolist() == x[:n].tolist() and sums.tolist() == [3 * n] * 2 * n and same is not x
    for n in (-1, 6):
        with pytest.raises(RuntimeError, match="Runtime assertion failed for expression u0"):
            module(x, tg.tensor([-9, n]))

    class Choice(tg.nn.Module):
        def forward(self, x, n):
            return x + 1 if n.item() > 3 else x - 1
    with pytest.raises(tg.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode, match="a condition on a number"):
        export(Choice(), (x, tg.tensor(5)))
    with pytest.raises(NotImplementedError, match="torch.export.save"):
        tg.export.save(export(Head(), (x, tg.tensor([1, 3]))), io.BytesIO())


def test_constants_of_sizes():
    """Constants that depend on sizes are formulas if they are numbers, and else refused."""
    class Resized(tg.nn.Module):
        def forward(self, x):
            return tg.nn.functional.interpolate(x, scale_factor=2)
    axes = ({2: Dim("h", max=40), 3: Dim("w", max=40)},)
    x = tg.arange(35.).reshape(1, 1, 5, 7)
    assert tg.equal(export(Resized(), (tg.ones(1, 1, 4, 6),), dynamic_shapes=axes).module()(x), Resized()(x))

    class Counted(tg.nn.Module):
        def forward(self, x):
            return x + tg.tensor(list(range(x.shape[0])))
    with pytest.raises(RuntimeError, match="a constant of the program depends on a size"):
        export(Counted(), (tg.ones(3),), dynamic_shapes=({0: Dim("n")},))


def test_decompositions():
    program = export(tg.nn.Linear(3, 2), (tg.ones(4, 3),), dynamic_shapes=({0: Dim("n")},))
    other = program.run_decompositions({tg.ops.aten.linear: lambda x, w, b: x @ w.t() + b})
    assert [str(node.target) for node in other.graph.find_nodes(op="call_function", target=tg.ops.aten.linear.default)
            ] == []
    x = tg.randn(5, 3)
    assert tg.allclose(other.module()(x), program.module()(x))


def test_control_flow():
    class Flow(tg.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = tg.nn.Parameter(tg.tensor([2., 3.]))

        def forward(self, x):
            y = x * 2
            found = tg.cond(x.sum() > 0, lambda x: {"a": tg.cond(x[0] > 2, lambda x: x + y, lambda x: x - y, (x,))},
                            lambda x: {"a": x * self.weight}, (x,))
            return found["a"], tg._higher_order_ops.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * 2 + x),
                                                               (tg.tensor(0), x))
    module = Flow()
    for program in (export(module, (tg.ones(2),)).module(), make_fx(module.forward, tracing_mode="fake")(tg.ones(2))):
        for x in ([5., 1.], [1., 1.], [-1., -2.]):
            (a, (i, v)), (b, (j, w)) = program(tg.tensor(x)), module(tg.tensor(x))
            assert tg.equal(a, b) and i == j == 3 and tg.equal(v, w)
    a.backward(tg.tensor([1., 2.]))
    assert "torch.ops.higher_order.cond(" in program.code
    with pytest.raises(RuntimeError, match="Unmatched output spec from torch.cond branches"):
        make_fx(lambda x: tg.cond(x.sum() > 0, lambda x: x, lambda x: (x, x), (x,)))(tg.ones(2))


ERRORS = [
    (lambda: export(model(), EXAMPLE[0]), RuntimeError, "Expecting `args` to be a tuple of example positional inputs"),
    (lambda: export(lambda x: x, (tg.ones(1),)), ValueError, "Expected `mod` to be an instance of `torch.nn.Module`"),
    (lambda: export(model(), EXAMPLE, dynamic_shapes={"x": None}), RuntimeError, "its top-level keys must be the arg"),
    (lambda: export(model(), EXAMPLE, dynamic_shapes=({5: Dim("n")}, None)), RuntimeError, "Expected dynamic shape"),
    (lambda: export(model(), EXAMPLE, dynamic_shapes=(3, None)), RuntimeError, "Unexpected input tensor shape 3"),
    (lambda: export(model(), EXAMPLE, dynamic_shapes=({0: Dim("n", min=6)}, None)), RuntimeError, r"4 not in range"),
    (lambda: export(model(), EXAMPLE, dynamic_shapes=({0: 3}, None)), RuntimeError, "Static shape constraint of 3"),
    (lambda: export(model(), EXAMPLE, dynamic_shapes=({0: Dim("n"), 1: Dim("n")}, None)), RuntimeError, "Dim n differ"),
    (lambda: export(Sized(), (tg.ones(3),), dynamic_shapes=({0: Dim("n")},)), RuntimeError, "size that dynamic_shapes"),
    (lambda: export(Branching(), (tg.ones(5),), dynamic_shapes=({0: Dim("n", min=2, max=9)},)), RuntimeError,
     r"(?s)Constraints violated \(n\)! .* guard 4 <= n.* n = Dim\('n', min=4, max=9\)"),
    (lambda: export(Branching(), (tg.ones(1, 2),), dynamic_shapes=({1: Dim.DYNAMIC},)), RuntimeError, "a constant"),
    (lambda: Dim("1a"), AssertionError, "Dim name must be a valid identifier, got 1a"),
    (lambda: Dim("n", min=5, max=3), AssertionError, "Cannot create Dim with inconsistent min=5, max=3"),
    (lambda: Dim("n") * -1, NotImplementedError, "Attempted to multiply -1 with n, where a positive"),
]


@pytest.mark.parametrize("call, kind, text", ERRORS)
def test_errors(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def test_dims(torch):
    for package in (tg, torch):
        a, b = package.export.dims("a", "b", min=3)
        assert (str(a), a.min, str(2 * a + 1), str(b - 1), str(a * 3)) == ("Dim('a', min=3)", 3, "2*a + 1", "b - 1",
                                                                           "3*a")
        assert str(package.export.dims("a", "b", min=2, max=9)) == "(Dim('a', max=9), Dim('b', max=9))"
    assert repr(Dim.AUTO) == "DimHint(AUTO)" and dims("x")[0].max is None
