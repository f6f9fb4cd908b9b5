"""Graphs that run: node by node, and as generated source; and the graphs that models keep."""
import copy
import operator
import pickle
import random
import threading
import weakref
from collections import OrderedDict

import pytest

import tensorgrad as tg
from tensorgrad import nn
from tensorgrad.graph import Graph
from tensorgrad.graph.running import Runner, last_uses, run
from tensorgrad.graph.source import Writer, compiled
from tensorgrad.graph.targets import Unpack
from tensorgrad.symbolic import Input, SymbolicModel, add_to_graph
from tensorgrad.symbolic.calls import Attribute, Call, Method
from tensorgrad.symbolic.old_pickles import Held, Ref, Step
from tensorgrad.symbolic.program import Program

try:
    import torch
except ImportError:
    torch = None


class Value:
    """A number that remembers nothing but can be watched."""

    def __init__(self, number):
        self.number = number

    def __add__(self, other):
        return Value(self.number + getattr(other, "number", other))

    def plus(self, *others, by=0):
        return Value(self.number + sum(other.number for other in others) + by)


def total(parts, scale=1):
    """The sum of a nest."""
    return Value(scale * sum(part.number for part in parts["list"]) + parts["pair"][0].number)


def program(draw, new):
    """A random graph of these calls, with two inputs."""
    g = new()
    nodes = [g.placeholder("a"), g.placeholder("b")]
    for _ in range(draw.randrange(1, 20)):
        some = [draw.choice(nodes) for _ in range(3)]
        nodes.append(draw.choice([
            lambda: g.call_function(operator.add, (some[0], some[1])),                                      # noqa: B023
            lambda: g.call_method("plus", tuple(some), {"by": 2}),                                          # noqa: B023
            lambda: g.call_function(total, ({"list": [*some], "pair": (some[1], 7)},), {"scale": 3}),       # noqa: B023
        ])())
    g.output([nodes[-1], {"k": (draw.choice(nodes), 5)}])
    return g


@pytest.mark.parametrize("seed", range(20))
def test_programs_run(seed):
    g = program(random.Random(seed), Graph)
    [first, more] = run(g, Value(2), Value(3))
    if torch is not None:
        [expected, others] = torch.fx.Interpreter(torch.nn.Module(),
                                                  graph=program(random.Random(seed), torch.fx.Graph)).run(Value(2),
                                                                                                          Value(3))
        assert first.number == expected.number and more["k"][0].number == others["k"][0].number
    assert more["k"][1] == 5 and type(more) is dict


class Written(Writer):
    """Source that takes what is foreign from its namespace."""

    def foreign(self, thing):
        self.namespace = {**getattr(self, "namespace", {}), thing.__name__: thing}
        return thing.__name__


@pytest.mark.parametrize("seed", range(20))
def test_programs_as_source(seed):
    g = program(random.Random(seed), Graph)
    writer = Written(g)
    source = "def forward(self, a, b):\n" + "".join(f"    {line}\n" for line in writer.body())
    [first, more] = compiled(source, getattr(writer, "namespace", {}))(None, Value(2), Value(3))
    [expected, others] = run(g, Value(2), Value(3))
    assert (first.number, more["k"][0].number) == (expected.number, others["k"][0].number)


def test_values_are_let_go():
    g = Graph()
    node = g.placeholder("x")
    seen, alive = [], []

    def watched(value):
        alive.append(sum(one() is not None for one in seen))
        new = value + 1
        seen.append(weakref.ref(new))
        return new
    for _ in range(30):
        node = g.call_function(watched, (node,))
    g.output(node)
    assert run(g, Value(0)).number == 30 and max(alive) == 1
    assert last_uses(g)[node] == [node.all_input_nodes[0]] and last_uses(g)[g.output_node()] == []


def test_a_value_that_nobody_uses():
    g = Graph()
    x = g.placeholder("x")
    unused = g.call_method("plus", (x,))
    g.output(x)
    assert last_uses(g)[unused] == [unused] and run(g, Value(5)).number == 5


def test_what_the_owner_has():
    owner = nn.Sequential(OrderedDict(inner=nn.Sequential(nn.Linear(2, 2))))
    g = Graph(owner)
    x = g.placeholder("x")
    g.output(g.call_function(operator.sub, (g.call_module("inner.0", (x,)), g.get_attr("inner.0.bias"))))
    x = tg.rand(3, 2)
    assert (tg.allclose(run(g, x), x @ owner.inner[0].weight.T)
            and tg.equal(Runner(g)(copy.deepcopy(owner), [x]), run(g, x)))


def test_an_error_says_where():
    g = Graph()
    g.output(g.call_function(operator.add, (g.placeholder("x"), "text")))
    with pytest.raises(TypeError) as caught:
        run(g, 1)
    assert caught.value.__notes__ == ["While executing %add : [num_users=1] = call_function[target=operator.add](args "
                                      "= (%x, text), kwargs = {})"]
    with pytest.raises(RuntimeError, match="Expected positional argument for parameter x, but one was not passed in!"):
        run(g)
    with pytest.raises(TypeError, match="the graph has 1 inputs, and was called with 2 values"):
        run(g, 1, 2)


def test_defaults():
    g = Graph()
    g.output((g.placeholder("x"), g.placeholder("y", default_value=7)))
    assert run(g, 1) == (1, 7) and run(g, 1, 2) == (1, 2)


def test_threads_share_a_runner():
    runner, results = Runner(program(random.Random(3), Graph)), {}

    def work(number):
        results[number] = [runner(None, [Value(number), Value(1)])[0].number for _ in range(50)]
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(set(results[number]) == {runner(None, [Value(number), Value(1)])[0].number} for number in range(4))


def test_long_programs():
    g = Graph()
    node = g.placeholder("x")
    for _ in range(5000):
        node = g.call_function(operator.add, (node, 1))
    g.output(node)
    assert run(g, 0) == run(copy.deepcopy(g), 0) == run(pickle.loads(pickle.dumps(g)), 0) == 5000
    lines = Writer(g).body()
    assert len(lines) == 5000 and lines[0] == "x0000 = x + 1" and lines[-1] == "return x0000 + 1"


def test_a_change_changes_what_runs():
    g = Graph()
    x = g.placeholder("x")
    y = g.call_function(operator.add, (x, 1))
    out = g.output(y)
    with g.inserting_after(y):
        z = g.call_function(operator.mul, (y, 10))
    out.replace_input_with(y, z)
    assert run(g, 2) == 30 and Writer(g).body() == ["x0 = x + 1", "return x0 * 10"]


def test_source():
    g = Graph()
    x = g.placeholder("x")
    shape = g.call_function(getattr, (x, "shape"))
    parts = g.call_function(Unpack(3), (g.call_method("split", (x,), {"not a name": [x, ...]}),))
    first, last = (g.call_function(operator.getitem, (parts, k)) for k in (0, 2))
    g.call_function(operator.neg, (last,))
    g.output({"a": g.call_function(tg.nn.functional.relu, (first, float("inf"))), "w": g.get_attr("w"),
              "d": (shape, tg.float32)})
    assert Writer(g).body() == [
        "x0 = x.shape", "x1 = x.split(**{'not a name': [x, ...]})", "x1, _, x2 = x1", "x2 = -x2",
        'x1 = F.relu(x1, float("inf"))',
        "return {'a': x1, 'w': self.w, 'd': (x0, torch.float32)}"]


# ── the graphs of models ──────────────────────────────────────────────────────────────────────────────────────────────


class Scale:
    """A function with a state."""

    def __init__(self, by):
        self.by = by

    def __call__(self, x):
        return x * self.by


def scaled():
    x = Input((3,), custom_name="x")
    h = add_to_graph(Scale(2), nn.Linear(3, 3)(x)[:, :2])
    return SymbolicModel(x, (h.relu(), (h + tg.ones(2)).T))


def test_the_graph_of_a_model():
    assert str(scaled()._program) == """graph():
    %x : [num_users=1] = placeholder[target=x]
    %linear_1 : [num_users=1] = call_module[target=Linear_1](args = (%x,), kwargs = {})
    %getitem : [num_users=1] = call_function[target=operator.getitem](args = (%linear_1, (slice(None, None, None), slice(None, 2, None))), kwargs = {})
    %scale : [num_users=2] = call_function[target=tests.graph.test_running.Scale](args = (%getitem,), kwargs = {})
    %relu : [num_users=1] = call_method[target=relu](args = (%scale,), kwargs = {})
    %constant_1 : [num_users=1] = get_attr[target=constant_1]
    %add : [num_users=1] = call_function[target=operator.add](args = (%scale, %constant_1), kwargs = {})
    %getattr_1 : [num_users=1] = call_function[target=builtins.getattr](args = (%add, T), kwargs = {})
    return (relu, getattr_1)"""  # noqa: E501


def test_a_model_owns_its_graph():
    model = scaled()
    model._program.lint()
    labels = [node.meta["label"] for node in model._program.values]
    assert labels == ["x", "Linear_1", "SliceLayer_1", "wrap(Scale)_1", "relu_1", "AddOpLayer_1", "GetAttr(T)_1"]
    for new in copy.deepcopy(model), pickle.loads(pickle.dumps(model)):
        assert str(new._program) == str(model._program) and new.summary(True) == model.summary(True)
        old, own = (next(node.target for node in m._program.nodes if type(node.target) is Scale) for m in (model, new))
        assert own.by == 2 and own is not old


def test_an_output_more():
    x = Input((3,))
    h = nn.Linear(3, 3)(x)
    y = h.relu()
    model = SymbolicModel(x, y)
    model.add_output(h + 1)
    assert ([node.op for node in model._program.nodes] == ["placeholder", "call_module", "call_method", "call_function",
                                                           "output"])
    model._program.lint()
    assert [out.shape for out in model(tg.ones(2, 3))] == [(2, 3), (2, 3)]


def test_programs_that_were_pickled_before_there_were_graphs():
    steps = [Step("Linear_1", Call(Held("Linear_1"), (Ref(0),)), 2), Step("relu_1", Call(Method("relu"), (Ref(2),)), 3),
             Step("cat_1", Call(tg.cat, ([Ref(3), Ref(1), Held("constant_1")],), {"dim": 1}), 4),
             Step("GetAttr(T)_1", Call(Attribute("T"), (Ref(4),)), 5)]
    new = Program.__new__(Program)
    new.__setstate__({"inputs": ["Input_1", "image"], "steps": steps, "outputs": {"y": [Ref(5), 3]},
                      "ends": [[0], [2], [1, 3], [4]],
                      "shapes": [(None, 3), (None, 2), (None, 3)]})
    assert str(new) == """graph():
    %i0 : [num_users=1] = placeholder[target=i0]
    %image : [num_users=1] = placeholder[target=image]
    %linear_1 : [num_users=1] = call_module[target=Linear_1](args = (%i0,), kwargs = {})
    %relu : [num_users=1] = call_method[target=relu](args = (%linear_1,), kwargs = {})
    %constant_1 : [num_users=1] = get_attr[target=constant_1]
    %cat : [num_users=1] = call_function[target=torch.cat](args = ([%relu, %image, %constant_1],), kwargs = {dim: 1})
    %getattr_1 : [num_users=1] = call_function[target=builtins.getattr](args = (%cat, T), kwargs = {})
    return {'y': [getattr_1, 3]}"""
    new.lint()
    assert (new.values[2].meta == {"label": "Linear_1", "shape": (None, 3)}
            and new.values[5].meta == {"label": "GetAttr(T)_1"})
    assert all(pickle.loads(b"ctensorgrad.symbolic.program\n%s\n." % kind.__name__.encode()) is kind
               for kind in (Ref, Held, Step, Program))
