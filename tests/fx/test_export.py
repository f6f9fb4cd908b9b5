"""make_fx and torch.export: programs lowered to ops of the table, as modules."""
import pickle

import pytest

import tensorgrad as tg
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
        return x * x.shape[0]


class Writing(tg.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", tg.zeros(1))

    def forward(self, x):
        self.count += 1
        return x + self.count


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
    (lambda: export(Writing(), (tg.ones(3),)), RuntimeError, r"the module writes to its buffers \['count'\]"),
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
