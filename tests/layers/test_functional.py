"""Placeholders, networks that are functions of them, and their descriptions."""
import copy
import json
import pickle
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from steady import steady

import tensorgrad as tg
from tensorgrad import layers as L
from tensorgrad import nn
from tensorgrad.layers.structures import StructureMismatch
from tensorgrad.symbolic import CustomInput, Input, SymbolicModel, picture, useful_layers

torch = tg


def P(*shape, dtype=None):
    return L.Placeholder(shape, dtype)


def diamond():
    """Two branches over a picture that meet again, and a head: ten parameters."""
    x = P(8, 3, 32, 32)
    a, b = L.Conv2d(6, 3)(x), L.Conv2d(6, 3)(x)
    both = L.MaxPool2d(2)(L.ReLU()(a + b))
    y = L.Flatten()(L.Conv2d(4, 3)(both))
    return L.Functional(x, L.Linear(5)(L.Linear(10)(y)))


# ── placeholders ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_placeholder_has_a_shape_with_the_batch():
    x = P(8, 3, 32, 32)
    assert (repr(x) == "P(8, 3, 32, 32)" and x.shape == (8, 3, 32, 32) and x.inbound_layer is None
            and x.dtype == tg.float32)
    y = P(None, 3)
    assert (repr(y) == "P(None, 3)" and y.shape == (None, 3) and repr(L.Placeholder([4])) == "P(4)"
            and P(2, dtype=tg.int64).dtype == tg.int64)


@pytest.mark.parametrize("shape", [(), (0, 3), (-1,), (2.0,), (True,), "ab", 3, None])
def test_shapes_that_are_none(shape):
    with pytest.raises(AssertionError, match="shape of a Placeholder"):
        L.Placeholder(shape)


def test_results_know_the_layer_and_which_of_its_calls_they_come_from():
    layer, x = L.Linear(4), P(2, 3)
    first, second = layer(x), layer(x)
    assert (isinstance(first, L.Placeholder) and first.inbound_layer is layer
            and (first.node_index, second.node_index) == (0, 1))
    other = layer(P(5, 3))
    assert other.node_index == 2 and x.node_index is None and (x + x).node_index == 0 and x.tensor is None


def test_flattening_keeps_the_batch():
    """X32, X33: a bare `flatten()` is that of layers.Flatten, with the batch known and unknown."""
    for batch in 8, None:
        x = P(batch, 10, 2, 2)
        flat = x.flatten()
        assert isinstance(flat, L.Placeholder) and flat.shape == (batch, 40) and x.flatten(2).shape == (batch, 10, 4)
        assert x.flatten(start_dim=1, end_dim=2).shape == (batch, 20, 2) and P(batch, 10).flatten().shape == (batch, 10)
        net = L.Functional(x, L.Linear(3)(flat))
        value = torch.randn(5, 10, 2, 2)
        assert torch.equal(net(value), net._execution_order_layers[0](value.flatten(1)))
        assert L.from_json(L.to_json(net))(value).shape == (5, 3)
    assert P(2, 3, 4).flatten(0).shape == (24,) and P(None, 3)[:, :2].shape == (None, 2)
    with pytest.raises(IndexError, match="Dimension out of range"):
        P(8).flatten()


@pytest.mark.parametrize("function", [
    lambda x, y: x + y[2:, 2:] - x * y[:-2, :-2], lambda x, y: x + 1, lambda x, y: 2 * x, lambda x, y: -x,
    lambda x, y: x ** 2, lambda x, y: 1 / (x + 2),
    lambda x, y: x @ y[:4], lambda x, y: x / 2 - 1.5, lambda x, y: x.view(2, 2, 4), lambda x, y: y.flatten(0),
    lambda x, y: y.unsqueeze(1).flatten(start_dim=1),
    lambda x, y: x[..., None] * y[0, :4], lambda x, y: abs(x) % 2, lambda x, y: (x > y[2:, 2:]).float(),
    lambda x, y: torch.cat([x, y[:, :4]]),
    lambda x, y: nn.functional.softmax(x, dim=1), lambda x, y: x.mean(dim=0).std(), lambda x, y: y.max(dim=1).values])
def test_operators_methods_and_functions(function):
    tensors = tg.rand(4, 4), tg.rand(6, 6)
    x, y = P(4, 4), P(6, 6)
    z = function(x, y)
    expected = function(*tensors)
    assert isinstance(z, L.Placeholder) and z.shape == expected.shape
    assert tg.equal(L.Functional([x, y], z)(*tensors), expected)


def test_unknown_sizes_stay_unknown():
    x = P(None, 3)
    assert [repr(y) for y in (x[:, :2], L.Linear(7)(x), L.View(-1, 3, 1)(x), x.view(None, 1, 3))] == \
        ["P(None, 2)", "P(None, 7)", "P(None, 3, 1)", "P(None, 1, 3)"]
    video = P(None, None, 3, 8, 8)
    assert L.TimeDistributed(L.Conv2d(4, 3), L.Flatten())(video).shape == (None, None, 144)


def test_layers_learn_no_sizes_that_are_unknown():
    lstm = L.LSTM(6, return_sequences=True)
    net = L.Functional(x := P(None, None, 8), lstm(x))
    for batch, time in (2, 5), (3, 1):
        assert net(tg.rand(batch, time, 8)).shape == (batch, time, 6)
    with pytest.raises(RuntimeError, match="cannot take"):
        net(tg.rand(2, 5, 7))


def test_layers_with_several_results_give_several_placeholders():
    output, h, c = L.LSTM(6, return_state=True)(P(3, 5, 8))
    assert [repr(x) for x in (output, h, c)] == ["P(3, 6)", "P(3, 1, 6)", "P(3, 1, 6)"]
    state = L.GetRNNState()(L.LSTM(6, return_state=True)(P(3, 5, 8)))
    assert repr(state) == "P(3, 1, 12)"


# ── networks ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_parameters_are_there_before_any_call():
    net = diamond()
    assert len(list(net.parameters())) == 10 and not any(nn.parameter.is_lazy(p) for p in net.parameters())
    assert net.input_shape == (8, 3, 32, 32) and net.is_built
    assert net(tg.rand(3, 3, 32, 32)).shape == (3, 5)


def test_a_layer_whose_first_use_lies_outside_is_registered_once():
    shared, x, y = L.Linear(3), P(2, 3), P(2, 3)
    shared(x)
    net = L.Functional(y, shared(y))
    assert len(list(net.parameters())) == 2 and net.inputs is y


def test_two_inputs_and_single_nodes():
    """Every pair of outputs of a chain of layers, from every input in it."""
    nodes = [P(2, 4)]
    for size in 3, 4, 3, 5:
        nodes.append(L.Linear(size)(nodes[-1]))
    values = {nodes[0]: tg.rand(2, 4)}
    for before, after in zip(nodes, nodes[1:], strict=False):
        values[after] = after.inbound_layer(values[before])
    for start, first in enumerate(nodes):
        for last in nodes[start:]:
            assert tg.equal(L.Functional(first, last)(values[first]), values[last])
        for last in nodes[:start]:
            with pytest.raises(AssertionError, match="foreign"):
                L.Functional(first, last)


def test_shared_layers_in_every_combination_of_outputs():
    shared, x, y = L.Linear(3), P(2, 3), P(2, 3)
    outs = [shared(x), shared(y), shared(shared(x)), shared(x) + shared(y), shared(x) * 2, x - y]
    a, b = tg.rand(2, 3), tg.rand(2, 3)
    real = [shared(a), shared(b), shared(shared(a)), shared(a) + shared(b), shared(a) * 2, a - b]
    for i, p in enumerate(outs):
        for j, q in enumerate(outs):
            found = L.Functional([x, y], [p, q])(a, b)
            assert type(found) is list and tg.equal(found[0], real[i]) and tg.equal(found[1], real[j])
    assert sum(p.numel() for p in L.Functional([x, y], outs).parameters()) == 12


def test_shared_layers_take_their_shape_from_each_call():
    layer = L.Linear(4)
    assert [layer(P(n, 3)).shape for n in (2, 5)] == [(2, 4), (5, 4)]


def test_structures_of_results_are_those_of_the_outputs():
    x, y = P(2, 3), P(2, 4)
    a, b = tg.rand(2, 3), tg.rand(2, 4)
    net = L.Functional({"left": x, "right": [y]}, {"sum": (x.sum(1), y.sum(1)), "again": [y, y, {"x": x}]})
    for result in net({"left": a, "right": [b]}), net(left=a, right=[b]):
        assert list(result) == ["sum", "again"] and type(result["sum"]) is tuple and type(result["again"]) is list
        assert tg.equal(result["sum"][1], b.sum(1)) and tg.equal(result["again"][2]["x"], a)


def test_all_forms_of_a_call():
    x, y = P(2, 3), P(2, 3)
    a, b = tg.rand(2, 3), tg.rand(2, 3)
    several, named, one = L.Functional([x, y], x - y), L.Functional({"a": x, "b": y}, x - y), L.Functional(x, x + 1)
    for found in several(a, b), several([a, b]), several((a, b)), named(a=a, b=b), named({"b": b, "a": a}):
        assert tg.equal(found, a - b)
    assert tg.equal(L.Functional((x, y), x - y)(a, b), a - b)
    nested = L.Functional([[x, y]], x - y)
    assert tg.equal(nested([a, b]), a - b) and tg.equal(one(a), a + 1) and tg.equal(several(a[:1], b[:1]), (a - b)[:1])
    for call, said in ((lambda: several(a), r"list does not match Tensor|lengths 2 and 1"),
                       (lambda: several([a, b, a]), "lengths 2 and 3"),
                       (lambda: named(a=a, c=b), "'b'"), (lambda: named({"a": a}), "'b'"),
                       (lambda: one([a, b]), "does not match"),
                       (lambda: nested([a]), "lengths 2 and 1")):
        with pytest.raises(StructureMismatch, match=said):
            call()
    with pytest.raises(AssertionError, match="not some of each"):
        named(a, b=b)


@pytest.mark.parametrize("inputs, outputs", [([], P(2)), (1, P(2)), (P(2), None), ([P(2), 3], P(2)), ({}, {})])
def test_a_network_needs_placeholders(inputs, outputs):
    with pytest.raises(AssertionError, match="placeholders"):
        L.Functional(inputs, outputs)


def test_a_thousand_doublings():
    x = y = P(2, 3)
    for _ in range(1000):
        y = y + y
    net = L.Functional(x, y * 0.0)
    assert net(tg.zeros(2, 3)).tolist() == [[0.0] * 3] * 2 and len(net.nodes) == 1002


def test_layers_of_several_arguments():
    class Mix(L.Layer):
        def _build(self, input_shape):
            self.weight = nn.Parameter(tg.full((input_shape[0][-1],), 3.0))

        def forward(self, a, b, scale=1.0):
            return a * self.weight + b * scale

    x, y = P(None, 3), P(None, 3)
    mix, a, b = Mix(), tg.rand(2, 3), tg.rand(2, 3)
    for z in mix(x, y), mix(a=x, b=y):
        assert tg.equal(L.Functional([x, y], z)(a, b), mix(a, b))
    assert mix.input_shape == [(None, 3), (None, 3)]


def test_calls_leave_no_tensor_behind_and_go_side_by_side():
    net = diamond().eval()
    inputs = [tg.rand(2, 3, 32, 32) for _ in range(8)]
    expected, found = [net(x) for x in inputs], [None] * 8

    def work(k):
        for _ in range(3):
            found[k] = net(inputs[k])
    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(map(tg.equal, found, expected))


def test_a_network_is_a_layer():
    inner = L.Functional(x := P(2, 3), L.Linear(2)(x))
    outer = L.Functional(y := P(None, 3), L.ReLU()(inner(y)))
    assert (repr(inner(y)) == "P(None, 2)" and len(list(outer.parameters())) == 2
            and inner.native_module()[0].out_features == 2)
    assert L.Sequential(inner, L.Linear(4))(tg.rand(5, 3)).shape == (5, 4)
    assert inner.get_output_shape((None, 3)) == (None, 2)
    with pytest.raises(RuntimeError, match="cannot take"):
        inner(tg.rand(2, 4))


def test_copies_and_pickles_have_the_weights_and_no_graph():
    net, x = diamond(), tg.rand(2, 3, 32, 32)
    for twin in copy.deepcopy(net), pickle.loads(pickle.dumps(net)):
        assert type(twin) is L.Functional and tg.equal(twin(x), net(x)) and twin.input_shape == net.input_shape
        with pytest.raises(RuntimeError, match="copy"):
            twin.inputs    # noqa: B018
        with tg.no_grad():
            next(twin.parameters()).add_(1)
        assert not tg.equal(twin(x), net(x))


def test_training():
    tg.manual_seed(0)
    x = P(None, 2)
    net = L.Functional(x, L.Linear(1)(L.Tanh()(L.Linear(8)(x))))
    optimizer = tg.optim.Adam(net.parameters(), lr=0.05)
    inputs, wanted = tg.tensor([[0.0, 0], [0, 1], [1, 0], [1, 1]]), tg.tensor([[0.0], [1], [1], [0]])
    for _ in range(200):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(inputs), wanted)
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.01


# ── beside symbolic models and plain modules ──────────────────────────────────────────────────────────────────────────


def test_placeholders_and_symbols_go_together():
    p, s, layer, plain = P(None, 3), Input((3,)), L.Linear(4), nn.Linear(3, 4)
    x = tg.rand(2, 3)
    assert isinstance(plain(p), L.Placeholder) and not isinstance(layer(s), L.Placeholder)
    assert tg.equal(SymbolicModel(p, plain(p))(x), plain(x)) and tg.equal(L.Functional(s, layer(s))(x), layer(x))
    both = SymbolicModel([p, s], layer(p) + plain(s))
    assert tg.equal(both(x, x), layer(x) + plain(x))


def test_models_of_one_kind_become_those_of_the_other():
    p, x = P(None, 3), tg.rand(2, 3)
    net = L.Functional(p, L.Linear(4)(p))
    model = SymbolicModel(net.inputs, net.outputs)
    again = L.Functional(model.inputs[0], model.outputs[0])
    assert (tg.equal(model(x), net(x)) and tg.equal(again(x), net(x))
            and list(model.parameters())[0] is list(net.parameters())[0])
    inner = SymbolicModel(s := Input((4,)), s.relu())
    assert repr(inner(L.Linear(4)(p))) == "P(None, 4)"


def test_networks_of_layers_can_be_written_as_files():
    x = P(None, 1, 8, 8)
    body = L.Sequential(L.Conv2d(4, 3, bias=False), L.BatchNorm2d(), L.ReLU(), L.Flatten(), L.LayerNorm(1))(x)
    net = L.Functional(x, L.Linear(5)(body) * 2).eval()
    text = net.source("Net")
    scope = {}
    exec(text.replace("from torch", "from tensorgrad"), scope)
    twin = scope["Net"]().eval()
    twin.load_state_dict(net.state_dict())
    assert (tg.equal(twin(v := tg.rand(3, 1, 8, 8)), net(v)) and "nn.Sequential(nn.Conv2d(1, 4, (3, 3), bias=False), "
                                                                 "nn.BatchNorm2d(4), nn.ReLU()" in text)
    given = L.Functional(x, L.GRU(3)(x.flatten(2))).source()
    assert "def __init__(self, GRU_1):" in given


# ── descriptions ──────────────────────────────────────────────────────────────────────────────────────────────────────


def networks():
    x, y = P(None, 4), P(None, 3)
    shared = L.Linear(4)
    h = shared(x)
    yield L.Functional({"x": x, "y": [y]}, {"h": (h, shared(h)), "s": [torch.cat([h, y], dim=1), h.view(None, 1, 4)]})
    yield diamond()
    t = P(2, 5, 8)
    out, h, c = L.LSTM(6, return_sequences=True, return_state=True)(t)
    yield L.Functional(t, [out[:, -1, ..., ::2], h.transpose(0, 1), nn.functional.gelu(c, approximate="tanh"),
                           -out.mT.mean() ** 2, abs(h) // 2])
    n = P(None, 6, dtype=tg.int64)
    yield L.Functional(n, L.Sequential(L.Embedding(10, 4), L.TimeDistributed(L.Linear(3), nn.ReLU()))(n))
    inner = L.Functional(x, nn.Sequential(nn.Linear(4, 2), nn.Tanh())(x))
    yield L.Functional(x, inner(x).to(tg.float64).unbind(1)[0])


def tried(net, inputs):
    flat = []
    L.structures.recursive_map(net(inputs) if not isinstance(inputs, dict) else net(inputs), flat.append)
    return flat


def of_shape(net):
    dtypes = iter(net._input_dtypes)
    return L.structures.recursive_map(
        net.input_shape, lambda shape: (tg.rand([2 if n is None else n for n in shape]) * 9).to(next(dtypes)),
        is_base=L._nesting.is_simple)


@pytest.mark.parametrize("net", list(networks()))
@pytest.mark.parametrize("way", ["dict", "json", "yaml"])
def test_networks_come_back_from_their_descriptions(net, way):
    if way == "yaml":
        pytest.importorskip("yaml")
    made = {"dict": lambda: L.Layer.from_spec(net.to_spec()), "json": lambda: L.from_json(L.to_json(net)),
            "yaml": lambda: L.from_yaml(L.to_yaml(net))}[way]()
    assert (type(made) is L.Functional and [*made.state_dict()] == [*net.state_dict()]
            and made.to_spec() == net.to_spec())
    made.load_state_dict(net.state_dict())
    inputs = of_shape(net)
    assert all(map(tg.equal, tried(made, inputs), tried(net, inputs)))


def test_what_no_description_can_hold():
    x = P(2, 3)
    for y, said in (L.Lambda(lambda v: v * 2)(x), "function"), (x * tg.rand(3),
                                                                "constant_1"), (useful_layers.AddOpLayer()(x, x),
                                                                                "AddOpLayer"):
        with pytest.raises(L.SpecError, match=said):
            L.Functional(x, y).to_spec()


@pytest.mark.parametrize("change, said", [
    (lambda s: s.pop("steps"), "expected placeholders"), (lambda s: s["steps"].insert(0, 7), r"steps\[0\].*dictionary"),
    (lambda s: s["steps"][0].update(args=[{"node": "no"}]), r"steps\[0\].*'no'"),
    (lambda s: s["steps"][1].update(name=s["steps"][0]["name"]), r"steps\[1\]"),
    (lambda s: s["steps"].append({"name": "bad", "function": "torch.save", "args": [{"node": "Input_1"}, "x.pt"]}),
     "unknown: 'torch.save'"),
    (lambda s: s["steps"].append({"name": "bad", "function": "os.system", "args": ["true"]}), "unknown: 'os.system'"),
    (lambda s: s["steps"].append({"name": "bad", "method": "__class__", "args": [{"node": "Input_1"}]}),
     "unknown: '__class__'"),
    (lambda s: s["steps"].append({"name": "bad", "method": "tofile", "args": [{"node": "Input_1"}, "x"]}),
     "unknown: 'tofile'"),
    (lambda s: s["steps"].append({"name": "bad", "attribute": "__dict__", "args": [{"node": "Input_1"}]}),
     "unknown: '__dict__'"),
    (lambda s: s["steps"].append({"name": "bad", "operator": "add", "function": "torch.add", "args": []}),
     "one of layer"),
    (lambda s: s["steps"].append({"name": "bad", "operator": "add", "args": [1, 2]}), "No Symbolic Data"),
    (lambda s: s["steps"][0].update(layer=5), "a layer"), (lambda s: s.update(outputs={"node": "nowhere"}), "nowhere"),
    (lambda s: s["placeholders"].update(Input_1=[[0], None]), "Input_1"),
    (lambda s: s["steps"].append({"name": "u", "unpack": 10**9, "args": []}), "unpack|large")])
def test_what_is_wrong_is_said_and_where(change, said):
    spec = json.loads(L.to_json(diamond()))
    change(spec)
    before = json.dumps(spec)
    with pytest.raises(L.SpecError, match=said):
        L.Layer.from_spec(spec)
    assert json.dumps(spec) == before


def places(tree, path=()):
    yield path
    for key, part in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        yield from places(part, (*path, key))


SPEC = json.loads(L.to_json(next(networks())))


@steady(max_examples=150)
@given(st.sampled_from(list(places(SPEC))[1:]),
       st.sampled_from([None, 0, -1, 3.5, "x", "", [], {}, [1], {"node": "Linear_1"}, {"type": "Linear", "null": [2]},
                         True, 10**30, {"slice": [1, 2, 3]},
                        {"dtype": "int64"}, {"tuple": []}]))
def test_any_change_gives_a_network_or_a_spec_error(place, value):
    spec = copy.deepcopy(SPEC)
    *path, last = place
    parent = spec
    for key in path:
        parent = parent[key]
    parent[last] = value
    try:
        assert isinstance(L.Layer.from_spec(spec), nn.Module)
    except L.SpecError as error:
        assert str(error)


# ── traversal ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_layers_in_postorder():
    """X37: each layer comes after all that it depends on; a layer that is called again has another index."""
    x, y, shared, join = P(2, 3), P(2, 3), L.Linear(3), L.Add()
    first, second = shared(x), shared(y)
    out = L.Linear(1)(join(second, first))
    net = L.Functional([x, y], [out, first])
    order = net.postorder_traverse()
    assert order == [(shared, 1), (shared, 0), (join, 0), (out.inbound_layer, 0)]
    inner = L.Functional(first, L.ReLU()(first) * 2).postorder_traverse()
    assert [type(layer).__name__ for layer, _ in inner] == ["ReLU", "builtin_function_or_method"] and inner[0][1] == 0
    with pytest.raises(RuntimeError, match="is a copy, which has no graph"):
        copy.deepcopy(net).postorder_traverse()


def test_a_thousand_doublings_are_traversed():
    """X37: no path is walked twice, and no depth of the graph is one of calls."""
    x = z = P(1, 1)
    for _ in range(1000):
        z = z + z
    assert len(L.Functional(x, z).postorder_traverse()) == 1000


# ── what both kinds of model can do ───────────────────────────────────────────────────────────────────────────────────


def both():
    """(A model, a node within it, an input), of each kind."""
    for make, kind in (lambda: Input((3,)), SymbolicModel), (lambda: P(None, 3), L.Functional):
        x = make()
        h = nn.Linear(3, 4)(x)
        yield kind(x, nn.Linear(4, 2)(h.relu())), h, x


def test_an_output_more():
    """S28: `add_output` is a method of both kinds of model."""
    data = torch.randn(5, 3)
    for net, h, x in both():
        before = net(data)
        net.add_output(h)
        found = net(data)
        assert (type(found) is tuple and torch.equal(found[0], before) and torch.equal(found[1], net.Linear_1(data))
                and len(net.outputs) == 2)
        assert net.output_shape == ((None, 2), (None, 4)) and len(copy.deepcopy(net)(data)) == 2
        for wrong, message in (x, "Node is an input"), (P(2, 3) * 2, "out of reach"), (3, "Only SymbolicData"):
            with pytest.raises(AssertionError, match=message):
                net.add_output(wrong)
        assert len(net(data)) == 2
    with pytest.raises(RuntimeError, match="is a copy, which has no graph"):
        copy.deepcopy(net).add_output(h)


def test_an_output_more_in_a_structure():
    """A list of outputs stays a list, and a dictionary has the new one under a name."""
    x, data = P(None, 3), torch.randn(5, 3)
    h = L.Linear(4)(x)
    net = L.Functional([x], [h.relu()])
    net.add_output(h)
    assert type(net([data])) is list and torch.equal(net([data])[1].relu(), net([data])[0])
    net = L.Functional({"x": x}, {"y": h.relu()})
    net.add_output(h, name="h")
    with pytest.raises(AssertionError, match="what the output is called"):
        net.add_output(h * 2)
    assert list(net(x=data)) == ["y", "h"] and torch.equal(net(x=data)["h"].relu(), net(x=data)["y"])
    with pytest.raises(AssertionError, match="an output 'h' already"):
        net.add_output(h, name="h")


def test_models_without_their_graph():
    """S30: `detach_from_graph` is a method of both kinds of model, and of copies."""
    data = torch.randn(5, 3)
    for net, _, _ in both():
        twin = net.detach_from_graph()
        assert torch.equal(twin(data), net(data)) and not {*map(id, twin.parameters())} & {*map(id, net.parameters())}
        with pytest.raises(RuntimeError, match="is a copy, which has no graph"):
            twin.nodes
        assert torch.equal(twin.detach_from_graph()(data), net(data)) and type(twin.detach_from_graph()) is type(twin)


def test_models_as_data():
    """X41: both kinds of models, and their copies, convert to data and back to equal models with separate weights."""
    data = torch.randn(5, 3)
    for net, _, _ in both():
        for of in net, net.detach_from_graph():
            spec = of.to_spec()
            assert spec["type"] == type(net).__name__ and json.loads(of.to_json()) == json.loads(L.to_json(net))
            for made in type(net).from_spec(spec), type(net).from_spec(json.loads(of.to_json(indent=2))), L.from_json(
                of.to_json()):
                assert type(made) is type(net) and made.nodes.keys() == net.nodes.keys() and made.to_spec() == spec
                made.load_state_dict(net.state_dict())
                assert torch.equal(made(data), net(data)) and made.output_shape == net.output_shape
    a, b = Input((3,)), Input(batch_shape=(2, 3), dtype=torch.float64)
    net = SymbolicModel((a, b), (a.sum(1), nn.Linear(3, 2, dtype=torch.float64)(b) * 2, a))
    made = SymbolicModel.from_spec(net.to_spec())
    assert ([node.dtype for node in made.inputs] == [torch.float32, torch.float64]
            and made.input_shape == net.input_shape == ((None, 3), (2, 3)))
    inner = L.Functional([x := P(None, 3), y := P(2, 3, dtype=torch.float64)], net(x, y)[0])
    assert L.from_json(inner.to_json()).to_spec() == inner.to_spec()
    with pytest.raises(L.SpecError, match="is not a Functional"):
        L.Functional.from_spec(net.to_spec())
    with pytest.raises(L.SpecError, match="Input_1: a list is no tensor"):
        SymbolicModel(n := CustomInput([1, 2]), n + [3]).to_spec()


def test_pictures_of_both_kinds():
    """S45: `viz.graph` and `picture` draw a Functional as they draw a SymbolicModel."""
    for net, _, _ in both():
        for drawn in tg.viz.graph(net), picture(net):
            assert (repr(drawn).startswith(f"<{type(net).__name__} of 3 steps, 2 leaves and outputs")
                    and "Linear" in drawn.dot() and "(None, 2)" in drawn.svg())
    x, y = P(8, 3), P(8, 4)
    inner = L.Functional([x, y], {"sum": L.Linear(4)(x) + y})
    net = L.Functional({"a": x, "b": [y]}, [inner([x, y])["sum"], x * 2])
    assert ("Linear" in picture(net).dot() and picture(net).dot().count("output") >= 2
            and "Linear" in picture(net.outputs[0]).dot())
    with pytest.raises(RuntimeError, match="is a copy, which has no graph"):
        picture(copy.deepcopy(net))
