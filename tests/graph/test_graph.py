"""The recorded program, graph/: nodes and what is done to them, beside torch.fx where that is installed."""
import copy
import gc
import operator
import pickle
import random
import weakref
from collections import OrderedDict, namedtuple

import pytest

import tensorgrad as tg
from tensorgrad.graph import Graph, Node, immutable_dict, immutable_list, map_arg

try:
    import torch
    from torch import fx
except ImportError:
    torch = fx = None

needs_torch = pytest.mark.skipif(torch is None, reason="PyTorch is not installed")
Pair = namedtuple("Pair", "a b")


OPS = "placeholder", "get_attr", "call_function", "call_method", "call_module", "output"


class Engine:
    """An engine, ours or PyTorch's: its graph, its functions, its modules."""

    def __init__(self, graph, package):
        self.Graph, self.package, self.nn, self.F = graph, package, package.nn, package.nn.functional


def engines():
    return [Engine(Graph, tg), Engine(fx.Graph, torch)]


def small(Graph=Graph):
    """x, y → x + y, relu, and both in an output."""
    g = Graph()
    x, y = g.placeholder("x"), g.placeholder("y", default_value=None)
    a = g.call_function(operator.add, (x, y))
    b = g.call_method("relu", (a,), {"k": [a, {"deep": slice(x, None)}]})
    return g, x, y, a, b, g.output((b, {"a": a}))


def outcome(function):
    """Return the result of a call as text, or its error."""
    try:
        return repr(function())
    except Exception as error:
        return type(error).__name__, str(error).replace("tensorgrad", "torch")


def users(graph):
    return [(node.name, list(map(str, node.users)), list(map(str, node.all_input_nodes))) for node in graph.nodes]


# ── texts and names ───────────────────────────────────────────────────────────────────────────────────────────────────


WANTED = ["x", "x", "x_1", "x_1", "x_5", "x_5", "x", "self.weight", "0", "if", "True", "torch", "int", "x y", "Ünïcode",
          "", "_", "__", "-", "a-b", "a.b", "Linear", "MyThing", "camelCase", "x_01", "self", "np", "device", "inf",
          "nan", "NoneType", "List", "tensor", "__x__", "abs", "x_2_3", "x_2_3", "pytree", "fx_pytree", ".a", "a.", "X",
          "HTTPServer", "cudaX", "*args", "**kw", "aB_1", "éA", "x\ny", "_1", "__1", "1_1", "x_", "x__1", "ǅx"]


@needs_torch
@pytest.mark.parametrize("seed", range(6))
def test_names(seed):
    wanted = WANTED * 2
    if seed:
        random.Random(seed).shuffle(wanted)
    ours, theirs = Graph(), fx.Graph()
    for k, name in enumerate(wanted):
        given = {"name": name} if k % 3 == 2 else {}
        assert (ours.create_node("call_method", name, **given).name
                == theirs.create_node("call_method", name, **given).name), name


@needs_torch
def test_text():
    texts = []
    for engine in engines():
        package, g = engine.package, engine.Graph()
        x = g.placeholder("x", package.Tensor)
        y = g.placeholder("y", int, 3)
        w = g.get_attr("sub.0.weight", engine.nn.Linear)
        for function in (package.relu, engine.F.relu, package.cat, operator.getitem, len, print, getattr,
                         package.Tensor.relu, package.add, operator.iadd):
            g.call_function(function, (x, [y, (w,)], {"k": x}), {"dim": 1, "s": slice(x, None, 2)}, type_expr=list[int])
        g.call_method("__add__", (x, ..., "text", 1.5, package.float32, package.Size([1, 2]), range(3), float("inf"),
                                  {1, 2}, (), [], {}))
        g.call_module("features.0.Conv", (Pair(x, 1), OrderedDict(x=x)), type_expr="quoted")
        g.call_function(package.cat, ([x, y],), name="Own Name")
        g.output(x, package.Tensor)
        result = [""]
        texts.append((str(g), [n.format_node(None, result) for n in g.nodes], result, users(g)))
    assert texts[0] == texts[1]


def test_text_of_functions():
    g = Graph()

    class Doubling:
        def __call__(self, x):
            return x + x
    twice = g.call_function(Doubling(), (1,))
    assert twice.name == "doubling"
    assert (twice.format_node() == f"%doubling : [num_users=0] = call_function[target={__name__}.Doubling](args = "
                                   f"(1,), kwargs = {{}})")
    assert (g.call_function(lambda: None).format_node() == f"%_lambda_ : [num_users=0] = "
                                                           f"call_function[target={__name__}.<lambda>](args = (), "
                                                           f"kwargs = {{}})")
    assert g.call_function(dict.get).format_node().startswith("%get : [num_users=0] = "
                                                              "call_function[target=builtins.dict.get]")


def test_table(capsys):
    small()[0].print_tabular()
    assert capsys.readouterr().out == """\
opcode         name    target                   args                   kwargs
-------------  ------  -----------------------  ---------------------  --------------------------------------------
placeholder    x       x                        ()                     {}
placeholder    y       y                        (None,)                {}
call_function  add     <built-in function add>  (x, y)                 {}
call_method    relu    relu                     (add,)                 {'k': [add, {'deep': slice(x, None, None)}]}
output         output  output                   ((relu, {'a': add}),)  {}
"""


# ── edits ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def edit(draw, engine):
    """A random program of edits; all that it sees, as text."""
    g, other = engine.Graph(), engine.Graph()
    stranger = other.placeholder("stranger")
    nodes, seen = [g.placeholder("x"), g.placeholder("y")], []
    functions = [operator.add, operator.mul, engine.package.relu, engine.package.cat, engine.package.rand,
                 operator.setitem, print]

    def pick():
        return draw.choice([node for node in nodes if not node._erased])

    def argument(depth=0):
        kind = draw.randrange(9 if depth < 2 else 6)
        if kind < 4:
            return pick()
        if kind < 6:
            return draw.choice([1, None, "s", 2.5])
        parts = [argument(depth + 1) for _ in range(draw.randrange(3))]
        return {6: tuple(parts), 7: parts, 8: {str(k): part for k, part in enumerate(parts)}}[kind]

    def added():
        args, kwargs = (tuple(argument() for _ in range(draw.randrange(3))),
                        {"k": argument()} if draw.random() < .3 else {})
        kind = draw.randrange(5)
        node = (g.call_function(draw.choice(functions), args, kwargs) if kind < 2
                else g.call_method(draw.choice(["f", "add_"]), args, kwargs) if kind < 3
                else g.get_attr("w") if kind < 4 else g.output(args))
        nodes.append(node)
        return node

    def added_before():
        with g.inserting_before(pick()):
            return added(), added()

    def added_after():
        with g.inserting_after(pick()):
            return added(), added()

    def moved_on():
        draw.choice([g.inserting_before, g.inserting_after])(draw.choice([None, pick()]))

    def replaced_some():
        keep = draw.random() < .5
        return pick().replace_all_uses_with(pick(), lambda user: len(user.name) % 2 == keep)

    def copied():
        g.lint()                        # fx copies neither what is out of order nor what comes after an output
        assert not [node for node in g.nodes if node.op == "output" and node.next.op in OPS]
        return copy.deepcopy(g)

    moves = [added, added, added, added_before, added_after, moved_on, replaced_some,
             lambda: g.erase_node(pick()), lambda: g.erase_node(pick()), lambda: g.erase_node(stranger),
             lambda: pick().prepend(pick()),
             lambda: pick().append(pick()), lambda: pick().append(stranger), lambda: g.inserting_before(stranger),
             lambda: pick().replace_all_uses_with(pick()), lambda: pick().replace_input_with(pick(), pick()),
             lambda: pick().update_arg(draw.randrange(3), argument()),
             lambda: pick().insert_arg(draw.randrange(4), argument()),
             lambda: pick().update_kwarg("k", argument()), lambda: setattr(pick(), "args", (argument(), argument())),
             lambda: setattr(pick(), "kwargs", {"a": argument()}),
             lambda: pick()._rename(draw.choice(["x", "new", "add"])),
             lambda: g.lint(), lambda: g.eliminate_dead_code(), lambda: [n.is_impure() for n in g.nodes],
             lambda: pick() < pick(),
             lambda: g.node_copy(pick()), lambda: copied().graph_copy(g, {}, draw.random() < .5),
             lambda: [g.find_nodes(op=op) for op in ("placeholder", "call_method", "output", "call_function")],
             lambda: g.find_nodes(op="call_function", target=draw.choice(functions)),
             lambda: [n for n in reversed(g.nodes)],
             lambda: (pick().next, pick().prev), lambda: g.output_node(), lambda: users(copied())]
    for _ in range(40):
        move = draw.choice(moves)
        seen.append(outcome(move))
        seen.append((str(g), users(g), len(g.nodes)))
    return seen


@needs_torch
@pytest.mark.filterwarnings("ignore:erase_node:UserWarning")
@pytest.mark.parametrize("seed", range(60))
def test_programs_of_edits(seed):
    ours, theirs = (edit(random.Random(seed), engine) for engine in engines())
    for k, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        assert one == other, k


@needs_torch
def test_misuse():
    def seen(engine):
        g, x, y, a, b, out = small(engine.Graph)
        Own = type(x)
        calls = [lambda: g.create_node("foo", "x"), lambda: g.create_node("call_function", "x"),
                 lambda: g.create_node("call_method", engine.nn.Linear),
                 lambda: g.create_node("call_method", 3), lambda: g.create_node("output", 3, name="u"),
                 lambda: g.create_node("call_method", "f", [x]),
                 lambda: g.create_node("call_method", "f", (x,), [1]), lambda: g.find_nodes(op="call_function"),
                 lambda: x.append("y"),
                 lambda: b.kwargs["k"].append(1), lambda: b.kwargs.update(a=1), lambda: b.kwargs["k"][1].pop("deep"),
                 lambda: b.kwargs["k"].sort(),
                 lambda: b.update_arg(7, 1), lambda: x.replace_all_uses_with(3), lambda: g.call_module("m").is_impure(),
                 lambda: setattr(x, "next", y),
                 lambda: engine.Graph().output_node(), lambda: Own(g, "n", "foo", "x", (), {}),
                 lambda: setattr(x, "op", "foo") or g.lint()]
        return [outcome(call) for call in calls]
    ours, theirs = map(seen, engines())
    for k, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        assert one == other, k


def owned(engine):
    """A model with things to name."""
    class Model(engine.nn.Module):
        def __init__(self):
            super().__init__()
            self.lin, self.sub, self.value = (engine.nn.Linear(2, 2),
                                              engine.nn.Sequential(engine.nn.ReLU(), engine.nn.Linear(2, 2)), 3)
            self.p = engine.nn.Parameter(engine.package.ones(2))
            self.register_buffer("b", engine.package.ones(2))
    return Model()


NAMED = ["lin", "sub.1", "sub.2", "sub.1.weight", "p", "b", "value", "nope", "nope.x", "value.x", "lin.nope",
         "lin.weight"]


@needs_torch
@pytest.mark.filterwarnings("ignore:Attempted to insert:UserWarning")
@pytest.mark.parametrize("op", ["get_attr", "call_module"])
@pytest.mark.parametrize("name", NAMED)
def test_what_is_named_is_there(op, name):
    def seen(engine):
        model = owned(engine)
        g = engine.Graph(model)
        g.output(g.create_node(op, name))
        return outcome(g.lint), outcome(lambda: getattr(engine.Graph(model), op)(name)), outcome(g.eliminate_dead_code)
    ours, theirs = map(seen, engines())
    assert ours == theirs


def test_a_missing_attribute_is_warned_of():
    model = owned(Engine(Graph, tg))
    with pytest.warns(UserWarning, match="Attempted to insert a get_attr Node with no underlying reference"):
        Graph(model).get_attr("value")
    assert Graph(model).get_attr("sub.1.weight").target == "sub.1.weight"


def test_owner_is_kept_but_not_copied():
    g = Graph(model := owned(Engine(Graph, tg)))
    assert g.owning_module is model
    model.lin._is_impure = True
    assert g.call_module("lin").is_impure() and not g.call_module("sub").is_impure()
    here = weakref.ref(model)
    del model
    gc.collect()
    assert here() is g.owning_module is not None
    assert copy.deepcopy(g).owning_module is None is pickle.loads(pickle.dumps(g)).owning_module


# ── what the list of nodes is ─────────────────────────────────────────────────────────────────────────────────────────


def test_changes_on_the_way_through():
    g, x, y, a, b, out = small()
    seen = []
    for node in g.nodes:
        seen.append(node.name)
        if node is a:
            with g.inserting_after(a):
                g.call_method("after")
            with g.inserting_before(a):
                g.call_method("before")
        if node is b:
            out.replace_input_with(b, a)
            g.erase_node(b)
    assert (seen == ["x", "y", "add", "after", "relu", "output"] and list(map(str, g.nodes))
            == ["x", "y", "before", "add", "after", "output"])
    assert (list(map(str, reversed(g.nodes))) == ["output", "after", "add", "before", "y", "x"]
            and len(g) == len(g.nodes) == 6)


def test_where_an_erased_node_was():
    g, x, y, a, b, out = small()
    out.args = (a,)
    g.erase_node(b)
    b.prepend(g.call_method("first"))
    b.append(g.call_method("second"))
    x.append(b)                     # it stays erased
    with g.inserting_before(b):
        g.call_method("third")
    assert list(map(str, g.nodes)) == ["x", "y", "add", "first", "second", "third", "output"]
    assert b.all_input_nodes == [] and b.args == (None,) and b not in a.users
    with pytest.warns(UserWarning, match=r"erase_node\(relu\) on an already erased node"):
        g.erase_node(b)


def test_order_of_nodes():
    g = Graph()
    last = g.placeholder("last")
    with g.inserting_before(last):
        # the room between two nodes runs out, again and again
        nodes = [g.placeholder("x") for _ in range(200)]
    assert sorted([last, *nodes[::-1]]) == list(g.nodes) == [*nodes, last]
    assert nodes[3] < nodes[4] <= nodes[4] and nodes[5] >= nodes[5] > nodes[4]
    assert graph_is_whole(g)


def graph_is_whole(g):
    """Users and inputs agree, and both ways through the list."""
    nodes = list(g.nodes)
    return nodes == list(reversed(g.nodes))[::-1] and len(nodes) == len(g.nodes) and all(
        node.graph is g for node in nodes) and \
        all((node in other.all_input_nodes) == (other in node.users) for node in nodes for other in nodes)


@pytest.mark.parametrize("seed", range(10))
def test_a_graph_stays_whole(seed):
    draw, g = random.Random(seed), Graph()
    nodes = [g.placeholder("x")]
    for _ in range(80):
        node = draw.choice(nodes)
        move = draw.randrange(5)
        if move < 2:
            nodes.append(g.call_method("f", (node, [draw.choice(nodes)])))
        elif move == 2:
            node.append(draw.choice(nodes))
        elif move == 3:
            node.replace_all_uses_with(draw.choice(nodes))
        elif not node.users and len(nodes) > 1:
            g.erase_node(node)
            nodes.remove(node)
    assert graph_is_whole(g) and sorted(g.nodes) == list(g.nodes)
    for copied in copy.deepcopy(g), pickle.loads(pickle.dumps(g)):
        assert str(copied) == str(g) and graph_is_whole(copied)


# ── copies ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Constant:
    """Something that an argument may be."""


def test_copies():
    g, x, y, a, b, out = small()
    thing = Constant()
    a.meta["note"] = [1]
    a.args = (x, thing)
    new = copy.deepcopy(g)
    assert str(new) == str(g) and new.find_nodes(op="placeholder")[0] is not x
    twin = new.find_nodes(op="call_function", target=operator.add)[0]
    assert twin.args[1] is thing and twin.meta is not a.meta and twin.meta["note"] is a.meta["note"]
    assert new.placeholder("x").name == "x_1" and new.output_node
    nodes, held = copy.deepcopy([x, g]), copy.deepcopy({"g": g, "a": a})
    assert nodes[0] in set(nodes[1].nodes) and held["a"].graph is held["g"]


def test_pickles():
    g, x, y, a, b, out = small()
    a.meta["from"] = b                          # a note that leads to another node
    a.own = "attribute"
    b.update_kwarg("gone", None)
    erased = g.call_method("f")
    g.erase_node(erased)
    a.meta["erased"] = erased
    first, new, node = pickle.loads(pickle.dumps((x, g, a)))
    assert str(new) == str(g) and graph_is_whole(new)
    assert (first is next(iter(new.nodes)) and node.meta["from"] is new.find_nodes(op="call_method")[0]
            and node.own == "attribute")
    assert node.meta["erased"]._erased and pickle.loads(pickle.dumps(b)).graph.output_node().name == "output"
    assert type(pickle.loads(pickle.dumps(b.kwargs["k"]))) is immutable_list and type(node.kwargs) is immutable_dict
    assert copy.copy(x) is x


def test_long_graphs():
    g = Graph()
    node = g.placeholder("x")
    for _ in range(5000):
        node = g.call_function(operator.neg, (node,))
    g.output(node)
    g.lint()
    for new in copy.deepcopy(g), pickle.loads(pickle.dumps(g)):
        assert str(new) == str(g) and len(new) == 5002
    new.output_node().args = (None,)
    new.eliminate_dead_code()
    assert len(new) == 2


def test_arguments_keep_their_classes():
    g = Graph()
    x = g.placeholder("x")
    node = g.call_method("f", (Pair(x, [1]), OrderedDict(a=x), {"b": (x,)}))
    assert ([type(part) for part in node.args] == [Pair, OrderedDict, immutable_dict]
            and type(node.args[0].b) is immutable_list)
    assert map_arg(node.args, lambda n: n.name) == (Pair("x", [1]), {"a": "x"}, {"b": ("x",)})
    assert node.all_input_nodes == [x] and isinstance(node, Node)
    with pytest.raises(AssertionError, match="fn must be a callable"):
        map_arg(node.args, 3)
