"""Layers as plain data: the content of specs, the layers made from them, and SpecError for everything else."""
import copy
import json
import random
import sys

import pytest

import tensorgrad as tg
from tensorgrad import layers as L
from tensorgrad import nn
from tensorgrad.layers import SpecError

from_spec = L.Layer.from_spec


class Branch(L.Layer):
    """A layer of a program's own, whose arguments are layers and other things."""

    made = 0

    def __init__(self, layers, scale=1.0, options=None):
        super().__init__()
        type(self).made += 1
        self.branches, self.scale, self.options = nn.ModuleList(layers), scale, options

    def forward(self, x):
        return sum(branch(x) for branch in self.branches) * self.scale


class Faulty(L.Layer):
    def __init__(self, how):
        raise {"key": KeyError("no"), "own": type("Odd", (Exception,), {})("odd")}[how]


# ── what a spec looks like ────────────────────────────────────────────────────────────────────
def test_specs():
    assert (L.Sequential(L.Linear(3, bias=False)).to_spec()
            == {"type": "Sequential", "layers": [{"type": "Linear", None: [3], "bias": False}]})
    assert L.TimeDistributed(L.Dense(3), nn.ReLU()).to_spec() == {
        "type": "TimeDistributed", "layers": [{"type": "Linear", None: [3]}, {"type": "nn.ReLU"}]}
    assert L.ReLU().to_spec() == {"type": "ReLU"}
    assert (L.Conv2d(8, (3, 5), dtype=tg.float64).to_spec()
            == {"type": "Conv2d", None: [8, (3, 5)], "dtype": {"dtype": "float64"}})
    assert (L.Slice((..., slice(None, 2))).to_spec() == {"type": "Slice",
                                                         None: [({"ellipsis": True}, {"slice": [None, 2, None]})]})


def test_a_spec_shares_nothing_with_the_layer():
    layer = L.View([2, 3])
    layer.to_spec()[None][0].append(4)
    assert layer.to_spec()[None] == [[2, 3]]


@pytest.mark.parametrize("spec, text", [
    ({"type": "Linear", None: 20}, "Linear(20)"),
    ({"type": "LINEAR", None: [20], "bias": False}, "Linear(20, bias=False)"), ({"type": "dense", "null": 20},
"Linear(20)"),
    ({"type": "conv2d", None: (8, 3), "stride": 2}, "Conv2d(8, 3, stride=2)"),
    ({"type": "Linear", "out_features": 20}, "Linear(out_features=20)"),
    ({"type": "sequential", "layers": [{"type": "ReLU"}]}, "Sequential[\n  ReLU()\n]"),
    ({"type": "Sequential", "layer_list": [{"type": "ReLU"}]},
"Sequential[\n  ReLU()\n]"),
    ({"type": "Sequential", None: [{"type": "ReLU"}]}, "Sequential[\n  ReLU()\n]"),
    ({"type": "Sequential", "null": {"type": "ReLU"}},
"Sequential[\n  ReLU()\n]"),
    ({"type": "TimeDistributed", None: [[{"type": "nn.ReLU", "inplace": True}]]},
     "TimeDistributed[\n  ReLU(inplace=True)\n]"),
    ({"type": "Slice", None: {"slice": [0, 2, None]}}, "Slice(slice(0, 2, None))"),
    ({"type": "MLP", "hiddens": [3], "out": 2, "activation": {"type": "Tanh"}},
     "MLP[\n  Linear(3, bias=True)\n  Tanh()\n  Linear(2, bias=True)\n]")])
def test_what_specs_make(spec, text):
    kept = copy.deepcopy(spec)
    assert repr(from_spec(spec)) == text and spec == kept


def test_a_network_round_trips():
    conv = {"type": "Sequential", "layers": [
        {"type": "Conv2d", None: [10, 5], "stride": 2, "padding": [1, 2]}, {"type": "relu"},
        {"type": "MaxPool2d", None: 2}, {"type": "flatten"},
        {"type": "Dense", None: 7}]}
    video = {"type": "sequential", "layers": [
        {"type": "TimeDistributed", "layers": [conv]},
        {"type": "LSTM", None: 6, "return_state": True, "bidirectional": True}, {"type": "GetRNNState",
"mode": "h"}]}
    model = from_spec(video)
    assert (model.get_output_shape((None, 4, 3, 20, 20)) == (None, 2, 6)
            and model(tg.randn(2, 4, 3, 20, 20)).shape == (2, 2, 6))
    assert from_spec(model.to_spec()).to_spec() == model.to_spec()
    assert L.from_json(L.to_json(model, indent=2)).to_spec() == model.to_spec()


def test_layers_and_all_kinds_of_data_as_arguments():
    options = {"pair": (1, 2.5), "list": [True, None, "x"],
               "deep": {"a": {"b": (slice(1, 2), ..., tg.float16, tg.device("cpu"))}}, "inf": float("inf"),
               "odd": {1: "one", (2, 3): [4], "type": "no layer"}, "tag": {"tuple": [1]}, "dict": {"dict": []},
               "empty": {}}
    layer = Branch([L.Linear(3), nn.Linear(4, 3)], scale=2, options=options)
    for twin in (from_spec(layer.to_spec()), L.from_json(L.to_json(layer))):
        assert twin.options == options and type(twin.options["pair"]) is tuple and twin.scale == 2
        assert ([type(b) for b in twin.branches] == [L.Linear, nn.Linear]
                and twin.get_output_shape((None, 4)) == (None, 3))
        assert twin.to_spec() == layer.to_spec()


def test_numbers_of_numpy_are_numbers():
    import numpy as np
    assert json.loads(json.dumps(L.Dropout(np.float64(0.5)).to_spec())) == {"type": "Dropout", "null": [0.5]}


# ── plain modules ─────────────────────────────────────────────────────────────────────────────
PLAIN = [
    nn.ReLU(), nn.ReLU(inplace=True), nn.Linear(3, 4), nn.Linear(3, 4, bias=False), nn.Linear(3, 4, dtype=tg.float64),
    nn.Conv2d(4, 8,
(3, 2), padding="same", groups=2),
    nn.ConvTranspose1d(4, 8, 3, 2, output_padding=1, bias=False), nn.BatchNorm2d(3, affine=False),
    nn.BatchNorm1d(3, momentum=None),
    nn.LayerNorm((3, 4), bias=False),
    nn.GroupNorm(2, 4), nn.Dropout(0.3), nn.LSTM(3, 4, 2, bidirectional=True, proj_size=2),
    nn.RNN(3, 4, nonlinearity="relu", bias=False),
    nn.GRU(3, 4, batch_first=True),
    nn.GRUCell(3, 4), nn.Embedding(5, 3, padding_idx=0), nn.EmbeddingBag(5, 3, mode="max"),
    nn.MultiheadAttention(8, 2, kdim=4, bias=False), nn.MultiheadAttention(8, 2, add_bias_kv=True),
    nn.MaxPool2d(3, 2, ceil_mode=True), nn.AdaptiveAvgPool2d((None, 2)),
    nn.Upsample(scale_factor=2.0, mode="bilinear"),
    nn.ZeroPad2d((1, 2, 3, 4)), nn.Softmax(dim=-1), nn.PReLU(3), nn.Flatten(0, 1), nn.Unflatten(1, (2, 3)),
    nn.Hardtanh(-2, 2), nn.Threshold(0.1, 2),
    nn.Identity(),
    nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU())), nn.LazyLinear(3, bias=False), nn.Bilinear(2, 3, 4),
    nn.RMSNorm(3), nn.MSELoss(reduction="sum"), nn.InstanceNorm1d(3, affine=True), nn.CosineSimilarity(dim=0),
    nn.Fold((4, 5), 2),
]


@pytest.mark.parametrize("module", PLAIN, ids=repr)
def test_plain_modules_of_nn(module):
    before = tg.get_rng_state()
    spec = L.Sequential(module).to_spec()
    assert tg.equal(tg.get_rng_state(), before)
    assert type(from_spec(json.loads(json.dumps(spec)))[0]) is type(module)
    (twin,) = L.from_json(L.to_json(L.Sequential(module)))
    assert (type(twin) is type(module) and repr(twin) == repr(module) and list(twin.state_dict())
            == list(module.state_dict()))
    assert [p.dtype for p in twin.parameters()] == [p.dtype for p in module.parameters()]
    assert L.from_json(L.to_json(L.Sequential(module))).to_spec() == spec


def test_plain_modules_that_do_not_tell_their_arguments():
    class Mine(nn.Linear):
        pass

    pruned = nn.Linear(3, 4)
    pruned.weight = nn.Parameter(tg.ones(4, 2))
    for module in (Mine(2, 3), pruned, nn.TransformerEncoderLayer(8, 2), nn.ModuleList([nn.ReLU()]), nn.Module()):
        with pytest.raises(SpecError, match=r"layers\[1\].*nn\.|nn\."):
            L.Sequential(L.ReLU(), module).to_spec()


@pytest.mark.parametrize("argument", [tg.ones(2), lambda x: x, object(), {1, 2}, b"bytes", 1j, sys])
def test_arguments_that_are_not_data(argument):
    with pytest.raises(SpecError, match="plain data"):
        Branch([], options={"a": [argument]}).to_spec()


def test_what_is_too_deep_for_a_spec():
    ring = []
    ring.append(ring)
    with pytest.raises(SpecError, match="nested too deeply"):
        Branch([], options=ring).to_spec()


# ── what is refused ───────────────────────────────────────────────────────────────────────────
DEEP = {"type": "ReLU"}
for _ in range(5000):
    DEEP = {"type": "Sequential", "layers": [DEEP]}
NESTED = []
for _ in range(5000):
    NESTED = [NESTED]
WIDE = []
for _ in range(30):
    WIDE = [WIDE, WIDE]                             # a thousand million values, in thirty lists
RING = {"type": "Sequential"}
RING["layers"] = [RING]


@pytest.mark.parametrize("spec, message", [
    ({}, "type: missing"), ({"layers": []}, "type: missing"), (None, "spec: a layer is a dictionary"),
    ([], "spec: a layer is a dictionary"), ("Linear",
"a layer is a dictionary"),
    ({"type": "Foo"}, "type: unknown layer 'Foo'"),
    ({"type": "Liner", None: 3}, "unknown layer 'Liner'; nearest: Linear"), ({"type": None},
"type: the name of a class"),
    ({"type": ["Linear"]}, "type: the name of a class"), ({"type": "nn.Foo"}, "unknown layer 'nn.Foo'"),
    ({"type": "nn.relu6", None: []}, "nearest: nn.ReLU6"), ({"type": "nn.Module"}, "unknown layer"),
    ({"type": "nn.ModuleList"}, "unknown layer"),
    ({"type": "nn.functional"}, "unknown layer"),
    ({"type": "os.system", None: "ls"}, "unknown"),
    ({"type": "nn.init"}, "unknown layer"), ({"type": "nn.Sequential.__init__"}, "unknown layer"),
    ({"type": "Layer"}, "unknown layer"), ({"type": "Native"},
"unknown layer"),
    ({"type": "Linear"}, "cannot make Linear: TypeError"),
    ({"type": "Linear", None: 3, "out_features": 3}, "multiple values"), ({"type": "Linear",
None: [1, 2, 3, 4, 5]}, "too many"),
    ({"type": "Linear", None: "3"}, "cannot make Linear"), ({"type": "Linear", None: -3}, "cannot make Linear"),
    ({"type": "Linear", None: 3,
"in_features": 2}, "cannot make Linear"),
    ({"type": "Linear", None: [3], "null": [3]}, "null: positional arguments are given both"),
    ({"type": "Linear", 3: 4}, "keys are names"), ({"type": "Linear",
None: 10**30}, "too large"),
    ({"type": "Embedding", None: [10**8, 10**8]}, "cannot make Embedding"),
    ({"type": "nn.Linear", None: [10**8, 10**8]}, "cannot make nn.Linear"),
    ({"type": "Embedding", None: [10**5, 2 * 10**4]}, "it has 2000000000 parameters"),
    ({"type": "LSTM", None: 3, "num_layers": 10**7},
"num_layers=10000000 is more than"),
    ({"type": "nn.GRU", None: [3, 4], "num_layers": 10**7}, "num_layers=10000000 is more than"),
    ({"type": "LayerNorm", None: 10**8},
"num_normalize_dim=100000000 is more than"),
    ({"type": "Dropout", None: 1.5}, "cannot make Dropout"), ({"type": "Sequential"}, "layers: one list"),
    ({"type": "Sequential", "layers": []},
"at least one layer"),
    ({"type": "Sequential", "layers": {"type": "ReLU"}}, "layers: one list"),
    ({"type": "Sequential", "layers": [3]}, "takes layers and modules"),
    ({"type": "Sequential", "layers": [{"type": "ReLU"}], "more": 1}, "layers: one list"),
    ({"type": "Lambda", None: "print"}, "function must be callable"),
    ({"type": "Sequential", "layers": [{"type": "ReLU"}, {"type": "ReLU"}, {"type": "Foo"}]},
     r"layers\[2\]\.type: unknown layer 'Foo'"),
    ({"type": "Sequential", "layers": [{"type": "ReLU"}, {"type": "Sequential", None: [{"type": "Linear"}]}]},
     r"layers\[1\]\.null\[0\]: cannot make Linear"),
    ({"type": "Slice", None: {"slice": [0, 1]}}, r"null\.slice: expected a list of 3"),
    ({"type": "Slice", None: {"slice": ["a", 1, 2]}}, "ends of a slice"),
    ({"type": "Linear", None: 3, "dtype": {"dtype": "load"}}, r"dtype\.dtype: 'load' is not the name of a dtype"),
    ({"type": "Linear", None: 3,
"dtype": {"dtype": 3}}, "not the name"),
    ({"type": "Linear", None: 3, "device": {"device": "moon"}}, "not the name of a device"),
    ({"type": "Linear", None: 3, "device": {"device": 3}},
"not the name of a device"),
    ({"type": "Slice", None: {"ellipsis": 1}}, "ellipsis: true"),
    ({"type": "Branch", None: {"dict": 3}}, "expected a list of keys"), ({"type": "Branch",
None: {"dict": [[[], 1]]}}, "keys"),
    ({"type": "Branch", None: {"dict": [[1]]}}, "a list of 2"), ({"type": "Branch", None: {1: 2}}, "is not a text"),
    ({"type": "Branch", "options": {2, 3}},
"no argument that a spec can hold"),
    ({"type": "Branch", "options": print}, "no argument that a spec can hold"),
    ({"type": "Faulty", "how": "key"}, "cannot make Faulty: KeyError"),
    ({"type": "Faulty", "how": "own"}, "cannot make Faulty: Odd: odd"), ({"type": "Linear" * 10000}, "unknown layer"),
    ({"type": "\x00\ud800"},
"unknown layer"),
    (DEEP, "nested more than 64 deep"), ({"type": "Branch", None: [NESTED]}, "nested more than 64 deep"),
    ({"type": "Branch", "options": WIDE},
"more than 100000 values"),
    (RING, "nested more than 64 deep")], ids=lambda value: value if isinstance(value, str) else "")
def test_what_is_wrong_is_said_and_where(spec, message):
    made = Branch.made
    with pytest.raises(SpecError, match=message) as caught:
        from_spec(spec)
    assert (isinstance(caught.value, ValueError) and isinstance(caught.value, AssertionError)
            and len(str(caught.value)) < 2000)
    assert Branch.made == made


def test_a_class_asks_for_its_own():
    assert isinstance(L.Linear.from_spec({"type": "Linear", None: 3}), L.Linear)
    with pytest.raises(SpecError, match="'ReLU' is not a Linear"):
        L.Linear.from_spec({"type": "ReLU"})


def test_names_that_differ_in_case_only():
    class relu(L.Layer):
        pass
    try:
        assert type(from_spec({"type": "ReLU"})) is L.ReLU and type(from_spec({"type": "relu"})) is relu
        with pytest.raises(SpecError, match="may be any of ReLU, relu"):
            from_spec({"type": "RELU"})
    finally:
        from tensorgrad.layers.spec import REGISTRY
        del REGISTRY["relu"]


@pytest.mark.parametrize("text", ["", "{", "[" * 100000, "nul", '{"type": 1' + "0" * 5000 + "}", b"\xff\xfe\x00", None,
                                  3, '"Linear"', "[]", "NaN"])
def test_texts_that_are_no_specs(text):
    with pytest.raises(SpecError, match="spec:"):
        L.from_json(text)


def test_making_a_layer_from_a_spec_draws_nothing_for_it():
    before = tg.get_rng_state()
    from_spec({"type": "Sequential", "layers": [{"type": "Conv2d", None: [4, 3]}, {"type": "MLP", None: [[3], 2]},
                                                {"type": "LSTM", None: 3}]})
    assert tg.equal(tg.get_rng_state(), before)


# ── YAML ──────────────────────────────────────────────────────────────────────────────────────
def test_yaml():
    pytest.importorskip("yaml")
    layer = L.Sequential(L.Conv2d(8, (3, 5), bias=False), nn.ReLU(), L.Slice((..., slice(0, 2))))
    assert L.from_yaml(L.to_yaml(layer)).to_spec() == layer.to_spec()
    assert repr(L.from_yaml("type: linear\nnull: 20\nbias: no")) == "Linear(20, bias=False)"
    bomb = ("a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
            + "type: Branch\n")
    for text in ("type: !!python/object/apply:os.system [ls]", "type: [", "- 1", bomb,
                 "&a {type: Sequential, layers: [*a]}", "[" * 100000,
        "type: Linear\nnull: 2020-01-01"):
        with pytest.raises(SpecError):
            L.from_yaml(text)


def test_yaml_needs_a_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    for call in (lambda: L.to_yaml(L.ReLU()), lambda: L.from_yaml("type: ReLU")):
        with pytest.raises(ImportError, match=r"\[yaml\]"):
            call()


# ── fuzz ──────────────────────────────────────────────────────────────────────────────────────
SEEDS = [
    L.Sequential(L.Conv2d(4, (3, 5), padding="same"), nn.ReLU(), L.MaxPool2d(2),
                 L.TimeDistributed(L.Linear(3, bias=False)),
    L.LSTM(5, return_state=True, num_layers=2)),
    L.Sequential(L.Slice((..., slice(0, 2))), L.View(2, -1), L.MLP([3, 4], 5, activation=L.Tanh()),
                 nn.Conv1d(2, 3, 1, dtype=tg.float64)),
    L.Sequential(L.Embedding(10, 3, device=tg.device("cpu")), L.MultiheadAttention(2), L.GetRNNOutput(),
                 L.Concat(axis=1), L.LayerNorm(1), nn.Embedding(5, 2)),
]
JUNK = [None, True, 0, -1, 3, 2.5, float("nan"), float("inf"), 10**18, -(2**70), "", "relu", "nn.Linear", "same", [],
        [1], (2, 3), {}, {"type": "ReLU"},
    {"type": "Linear", None: 2},
        {"tuple": 3}, {"slice": [None, 0, "x"]}, {"dtype": "int64"}, {"device": "meta"}, {"dict": [[1, 2]]}, b"x",
        object(), len, {3}, "type",
        "nn.LSTM", [[[[]]]]]


def places(tree, found):
    """Every (holder, key) in a nest."""
    for key in list(tree) if isinstance(tree, dict) else range(len(tree)):
        found.append((tree, key))
        if isinstance(tree[key], (dict, list)):
            places(tree[key], found)
    return found


def mutate(rng, spec):
    holder, key = rng.choice(places(spec, []))
    others = rng.choice(places(spec, []))
    match rng.randrange(5):
        case 0:
            holder[key] = copy.deepcopy(rng.choice(JUNK))
        case 1:
            del holder[key]
        case 2 if isinstance(holder, dict):
            holder[rng.choice([None, "null", "type", "layers", "bias", "padding", "x", 3, "dtype",
                               "num_layers"])] = copy.deepcopy(rng.choice(JUNK))
        case 3:
            holder[key] = copy.deepcopy(others[0][others[1]])
        case _:
            holder[key] = [holder[key]]


@pytest.mark.parametrize("layer", SEEDS, ids=["images", "shapes", "words"])
@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors", "ignore:dropout option adds")
def test_any_mutation_gives_a_layer_or_a_spec_error(layer, tmp_path):
    rng, outcomes = random.Random(5), {True: 0, False: 0}
    start = json.loads(L.to_json(layer))
    for _ in range(400):
        spec = copy.deepcopy(start)
        for _ in range(rng.randrange(1, 4)):
            if places(spec, []):
                mutate(rng, spec)
        shown = repr(spec)
        try:
            made = from_spec(spec)
        except SpecError as error:
            assert len(str(error)) < 2000
            outcomes[False] += 1
        else:
            assert isinstance(made, (L.Layer, nn.Module)) and isinstance(repr(made), str)
            outcomes[True] += 1
        assert repr(spec) == shown
    assert min(outcomes.values()) > 20, outcomes
