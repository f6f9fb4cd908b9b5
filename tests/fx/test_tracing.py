"""torch.fx: traced programs, their graphs and their code, beside PyTorch's."""
import copy
import subprocess
import sys

import fx_wrapping
import pytest
from fx_programs import asserting, modules

import tensorgrad as tg
from tensorgrad.fx import PH, Graph, GraphModule, Proxy, ProxyableClassMeta, Tracer, symbolic_trace, wrap
from tensorgrad.fx.proxy import TraceError

NAMES = "layers operators functions values root sequential function annotated".split()


def outcome(function):
    """Return the result of a call as text, or its error."""
    try:
        return str(function())
    except Exception as error:
        return type(error).__name__, str(error).replace("tensorgrad", "torch")


@pytest.mark.parametrize("name", NAMES)
def test_code_is_pytorchs(both, name):
    ours, theirs = (engine.fx.symbolic_trace(modules(engine)[name]) for engine in both)
    assert ours.code == theirs.code
    assert str(ours.graph) == str(theirs.graph)
    assert ours.print_readable(False) == theirs.print_readable(False)
    assert [(node.op, node.name, node.type is None, len(node.users)) for node in ours.graph.nodes] \
        == [(node.op, node.name, node.type is None, len(node.users)) for node in theirs.graph.nodes]


@pytest.mark.parametrize("name", ["layers", "root", "sequential"])
def test_code_without_leaves_is_pytorchs(both, name):
    """Layers are traced, too: their functions are recorded with the arguments that PyTorch hands on."""
    codes = []
    for engine in both:
        class Through(engine.fx.Tracer):
            def is_leaf_module(self, m, module_qualified_name):
                return type(m).__name__ == "BatchNorm1d"
        codes.append(engine.fx.GraphModule(module := modules(engine)[name], Through().trace(module)).code)
    assert codes[0] == codes[1]


def test_traced_modules_compute_what_the_module_does():
    tg.manual_seed(0)
    module = modules(tg)["layers"].eval()
    traced = symbolic_trace(module)
    x = tg.randn(2, 4, requires_grad=True)
    assert tg.equal(traced(x), module(x)) and tg.equal(traced(x, scale=3.), module(x, 3.))
    assert list(traced.state_dict()) == list(module.state_dict()) and traced.linear is module.linear
    traced(x).backward(upstream := tg.arange(6.).reshape(2, 3))
    expected, = tg.autograd.grad(module(x), x, upstream)
    assert tg.equal(x.grad, expected)


ERRORS = [
    lambda x: 1 if x > 0 else 2, lambda x: [i for i in x], lambda x: len(x), lambda x: list(range(x)), lambda x: x(1),
    lambda x: dict(**x), lambda x: {x: 1}, lambda x: x.foo.bar(1).baz, lambda x: bool(x), lambda x: x in [1, 2],
    lambda x: max(x, 1), lambda *args: args[0], lambda **kwargs: kwargs["a"], lambda x: object(), lambda x: {1, 2},
    lambda x: not x, lambda x: (lambda *args: args)(*x), lambda x: x.y + [1, slice(x, None)][0], lambda x: f"{x}",
]


@pytest.mark.parametrize("program", ERRORS)
def test_errors_are_pytorchs(both, program):
    ours, theirs = (outcome(lambda: engine.fx.symbolic_trace(program).graph) for engine in both)  # noqa: B023
    assert ours == theirs


def test_operators_on_both_sides(both):
    def program(engine):
        def run(x):
            one = engine.tensor(1.)
            return one + x, x + one, one @ x, engine.add(1, x), engine.nn.functional.tanh(x), one.add(x), one[x]
        return engine.fx.symbolic_trace(run)
    ours, theirs = map(program, both)
    assert ours.code == theirs.code


def test_operators_by_name(tmp_path):
    """`torch.ops` is PyTorch's where this package is torch: operators are steps there, and their names are code."""
    program = tmp_path / "program.py"
    program.write_text("import pickle, torch\n"
                       "def f(x):\n    return torch.ops.aten.sigmoid(x) + torch.ops.aten.add.Tensor(x, x) + "
                       "torch.ops.aten.cat.default([x, x]).sum()\n"
                       "traced = torch.fx.symbolic_trace(f)\n"
                       "print(traced.code, pickle.loads(pickle.dumps(traced))(torch.zeros(2)).tolist())\n")
    run = subprocess.run([sys.executable, "-m", "tensorgrad", program], capture_output=True, text=True, check=False)
    assert "add_tensor = torch.ops.aten.add.Tensor(x, x)\n" in run.stdout, run.stderr
    assert "cat_default = torch.ops.aten.cat.default([x, x]);  x = None" in run.stdout
    assert run.stdout.endswith("[0.5, 0.5]\n")


def test_unpacking_and_asserts():
    class Asserting(Tracer):
        trace_asserts = True

    graph = Asserting().trace(asserting)
    assert [node.name for node in graph.nodes] == ["x", "getitem", "getitem_1", "getitem_2", "getitem_3", "gt",
                                                   "assert_fn", "add", "output"]
    with pytest.raises(TraceError, match="cannot be used as inputs to control flow"):
        symbolic_trace(asserting)


# ── what tracers decide ───────────────────────────────────────────────────────────────────────────────────────────────


def test_wrapped_functions_are_steps():
    traced = symbolic_trace(fx_wrapping.uses_wrapped)
    assert [node.name for node in traced.graph.nodes] == ["x", "y", "doubled", "add", "len_1", "add_1", "sqrt", "add_2",
                                                          "output"]
    assert traced.code.startswith('\ntorch.fx._symbolic_trace.wrap("fx_wrapping_doubled")\n'
                                  'torch.fx._symbolic_trace.wrap("len")\n')
    assert fx_wrapping.doubled(1) == 2 and "len" not in vars(fx_wrapping)     # the module has its functions back
    with pytest.raises(RuntimeError, match="Unsupported type for global function"):
        wrap(3)
    with pytest.raises(NotImplementedError, match="wrap must be called at the top level of a module"):
        wrap("doubled")


def test_autowrapped_functions():
    tracer = Tracer(autowrap_functions=(modules,))
    assert "target=fx_programs.modules" in str(tracer.trace(lambda x: modules(x)))


def test_calls_of_modules_go_through_the_tracer():
    calls = []

    class Watching(Tracer):
        def call_module(self, m, forward, args, kwargs):
            calls.append((self.path_of_module(m), type(m).__name__))
            return super().call_module(m, forward, args, kwargs)
    module = modules(tg)["layers"]
    graph = Watching().trace(module)
    assert calls == [("linear", "Linear"), ("inner", "Inner"), ("inner", "Inner"), ("rest", "Sequential"),
                     ("rest.0", "ReLU"), ("rest.1", "Linear"), ("rest.2", "Dropout")]
    stack = graph.find_nodes(op="call_module", target="rest.1")[0].meta["nn_module_stack"]
    assert list(stack) == ["rest", "rest.1"] and stack["rest.1"] == ("rest.1", tg.nn.Linear)
    assert module.linear(tg.ones(1, 4)).shape == (1, 3) and type(module.inner.scale) is tg.nn.Parameter
    with pytest.raises(NameError, match="module is not installed as a submodule"):
        symbolic_trace(lambda x: tg.nn.ReLU()(x))


def test_shapes_of_parameters():
    class Branches(tg.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = tg.nn.Parameter(tg.ones(3, 2))

        def forward(self, x):
            return x if self.weight.shape[0] == 3 and self.weight.numel() == 6 and self.weight.dim() == 2 else -x
    assert [node.op for node in Tracer(param_shapes_constant=True).trace(Branches()).nodes] \
        == ["placeholder", "get_attr", "output"]
    with pytest.raises(TraceError):
        symbolic_trace(Branches())


def test_buffers_as_proxies():
    class Buffers(Tracer):
        proxy_buffer_attributes = True
    inner = modules(tg)["layers"].inner
    assert [node.name for node in Buffers().trace(inner).nodes] == ["x", "scale", "mul", "shift", "add", "output"]


def test_stack_traces():
    class Recording(Tracer):
        record_stack_traces = True
    node = Recording().trace(modules(tg)["layers"]).find_nodes(op="call_module", target="linear")[0]
    assert "in forward" in node.stack_trace and "self.linear(x)" in node.stack_trace


@pytest.mark.parametrize("given", [{"b": False}, {"b": 3}, {"b": None}, {"a": {"x": PH, "y": [PH, PH]}}, {"a": PH},
                                   (PH, True)])
def test_concrete_arguments(both, given):
    def program(a, b):
        c = sum(a["y"]) + a["x"] if isinstance(a, dict) else a
        return {"out": c if b is None or b is False else c * b}

    def mapped(engine):
        def value(part):
            if part is PH:
                return engine.fx.PH
            kind = type(part)
            return kind(map(value, part)) if kind in (list, tuple) else (
                {key: value(each) for key, each in part.items()} if kind is dict else part)
        return value(given)
    ours, theirs = (engine.fx.symbolic_trace(program, concrete_args=mapped(engine)) for engine in both)
    assert ours.code == theirs.code
    if "a" in given and given["a"] is not PH:
        assert ours({"x": 1, "y": [2, 3]}, 1) == theirs({"x": 1, "y": [2, 3]}, 1)


def test_specialized_programs_check_their_arguments():
    traced = symbolic_trace(lambda a, b: a if b else -a, concrete_args={"b": True})
    assert traced(tg.tensor(1), True).item() == 1
    with pytest.raises(AssertionError, match="b has been specialized to have value True but got another value"):
        traced(tg.tensor(1), False)


class Held(metaclass=ProxyableClassMeta):
    def __init__(self, left, right):
        self.left, self.right = left, right

    def added(self):
        return self.left + self.right


def test_classes_whose_construction_is_recorded():
    traced = symbolic_trace(lambda x: Held(x, x).added())
    assert [(node.op, node.name) for node in traced.graph.nodes] == [
        ("placeholder", "x"), ("call_function", "held"), ("call_method", "added"), ("output", "output")]
    assert traced(3) == 6 and Held(1, 2).added() == 3


# ── proxies ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_proxies_of_a_graph():
    graph = Graph()
    x = Proxy(graph.placeholder("x"))
    y = tg.relu(x) @ x.T + 1
    graph.output(y.node)
    assert GraphModule({}, graph)(tg.ones(2, 2)).tolist() == [[3, 3], [3, 3]]
    assert repr(x) == "Proxy(x)" and copy.deepcopy(x).node.name == "x"
    with pytest.raises(RuntimeError, match="Found multiple different tracers"):
        tg.add(x, Proxy(Graph().placeholder("y")))


def test_functions_are_as_fast_after_a_trace():
    from tensorgrad._tensor import torch_function
    before = set(torch_function.CONTAINERS)
    symbolic_trace(modules(tg)["layers"])
    assert torch_function.CONTAINERS == before
