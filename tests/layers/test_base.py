"""Layers as such: building, calling, describing, printing; recurrent states; containers.

(What holds for each class is in test_classes.)
"""
import copy
import pickle

import pytest
from support import DEVICE

import tensorgrad as tg
from tensorgrad import layers as L
from tensorgrad import nn

ones = tg.ones


class Scale(L.Layer):
    """A layer of a program's own, that makes its parameter when it is built."""

    def __init__(self, start, name="scale"):
        super().__init__()
        self.start, self.title = start, name

    def _build(self, input_shape):
        self.factor = nn.Parameter(tg.full((input_shape[-1],), float(self.start)))

    def forward(self, x):
        return x * self.factor


class Weighted(L.Layer):
    def _build(self, input_shape):
        self.shapes = input_shape
        self.mix = nn.Linear(sum(shape[-1] for shape in input_shape), 2)

    def forward(self, a, b, scale=1.0):
        return self.mix(tg.cat([a, b], -1)) * scale


# ── building ──────────────────────────────────────────────────────────────────────────────────
def test_parameters_are_made_at_the_first_call():
    layer = L.Linear(20)
    assert not layer.is_built and layer.input_shape is None and layer.native_module() is None
    assert layer(tg.zeros(16, 10)).shape == (16, 20)
    assert layer.is_built and layer.input_shape == (16, 10) and layer.weight.shape == (20, 10)
    assert (isinstance(layer.native_module(), nn.Linear) and type(layer.native_module()) is nn.Linear
            and isinstance(layer, nn.Linear))


def test_the_native_module_is_the_layer_in_its_plain_class():
    layer = L.Sequential(L.Linear(3), L.ReLU(), nn.Tanh(), L.PReLU()).build((None, 2))
    plain = layer.native_module()
    assert [type(m) for m in plain] == [nn.Linear, type(None), nn.Tanh, nn.PReLU]
    plain[0].weight.data.fill_(1.0)
    assert plain[0].weight is layer[0].weight and layer[0].weight.sum() == 6
    plain[0].eval()
    assert not layer[0].training


def test_later_inputs_have_the_same_sizes_but_for_the_batch():
    layer = L.Linear(4)
    layer(ones(2, 3))
    assert layer(ones(5, 3)).shape == (5, 4)
    assert layer(ones(0, 3)).shape == (0, 4)
    with pytest.raises(RuntimeError, match=r"\(2, 3\).*\(2, 7\)"):
        layer(ones(2, 7))
    with pytest.raises(RuntimeError, match=r"\(2, 3\).*\(2, 3, 3\)"):
        layer.build((2, 3, 3))
    assert layer.build((9, 3)) is layer and layer.input_shape == (2, 3)


def test_sizes_that_are_unknown_when_it_is_built_may_change():
    layer = L.Conv1d(4, 3).build((None, 2, None))
    assert layer(ones(1, 2, 5)).shape == (1, 4, 3) and layer(ones(3, 2, 9)).shape == (3, 4, 7)
    with pytest.raises(RuntimeError):
        layer(ones(1, 3, 5))
    attention = L.MultiheadAttention(2)
    x = tg.randn(3, 5, 8)
    assert (tg.equal(attention(x)[0], attention(x, x, x)[0]) and attention.get_output_shape((None, 5, 8))
            == ((None, 5, 8), (None, 5, 5)))
    assert attention.get_output_shape([(None, 5, 8), (None, 7, 8)]) == ((None, 5, 8), (None, 5, 7))
    attention = L.MultiheadAttention(2, batch_first=False)
    attention(ones(5, 3, 8))
    assert attention(ones(5, 4, 8))[0].shape == (5, 4, 8)


@pytest.mark.parametrize("shape", [(-1, 2), (2, 0), "ab", 3, (2, 1.5), (), [(2, -3)], {}, None, (True, 2)])
def test_shapes_are_sizes_or_none(shape):
    layer = L.Linear(4)
    for ask in (layer.build, layer.get_output_shape):
        with pytest.raises(AssertionError, match="invalid shape"):
            ask(shape)
    assert not layer.is_built


@pytest.mark.parametrize("layer, shape", [(L.Linear(3), (2, None)), (L.Conv2d(3, 3), (2, None, 8, 8)),
                                          (L.Conv2d(3, 3), (2, 8)), (L.Conv1d(3, 3), (2, 3, 8, 8)),
                                          (L.BatchNorm1d(), (3,)), (L.LayerNorm(2), (3, 4)),
                                          (L.LayerNorm(1), (3, None)), (L.LSTM(3), (2, 3)),
                                          (L.TimeDistributed(L.ReLU()), (2, 3)), (L.Bilinear(3), [(2, 3), (2, None)])])
def test_the_sizes_that_a_layer_learns_must_be_known(layer, shape):
    with pytest.raises(AssertionError, match="shape"):
        layer.build(shape)
    assert not layer.is_built


def test_groups_divide_the_channels():
    with pytest.raises(AssertionError, match="6.*4"):
        L.GroupNorm(4)(ones(2, 6))
    with pytest.raises(ValueError, match="in_channels must be divisible by groups"):
        L.Conv2d(4, 3, groups=2)(ones(2, 3, 8, 8))


@pytest.mark.parametrize("make, error", [
    (lambda: L.Linear(), TypeError), (lambda: L.Linear(3, in_features=2), TypeError),
    (lambda: L.Conv2d(4, 3, padding="some"), ValueError),
    (lambda: L.Conv2d(4, 3, stride=2, padding="same"), ValueError),
    (lambda: L.LSTM(3, batch_first=True), AssertionError),
    (lambda: L.LSTM(3, sideways=1), TypeError),
    (lambda: L.LSTM(0), ValueError), (lambda: L.LayerNorm(0), ValueError), (lambda: L.LayerNorm((3, 4)), ValueError),
    (lambda: L.GRU(3, proj_size=2), ValueError),
    (lambda: L.MultiheadAttention(0), ValueError), (lambda: L.Dropout(2), ValueError),
    (lambda: L.GroupNorm(0), ZeroDivisionError),
    (lambda: L.Slice("a"), TypeError), (lambda: L.Slice((True,)), TypeError), (lambda: L.Sequential(), AssertionError),
    (lambda: L.Sequential([]), AssertionError),
    (lambda: L.Sequential(3), TypeError), (lambda: L.Lambda(3), TypeError),
    (lambda: L.MLP([3], 2, activation="Nothing"), ValueError)])
def test_arguments_are_checked_when_the_layer_is_made(make, error):
    with pytest.raises(error):
        make()


def test_device_and_dtype():
    layer = L.Linear(3, dtype=tg.float64, device="meta")
    assert layer.weight.dtype == tg.float64 and layer.weight.device.type == "meta"
    assert layer.get_output_shape((2, 5)) == (2, 3)
    layer.build((2, 5))
    assert layer.weight.dtype == tg.float64 and layer.bias.is_meta
    later = L.BatchNorm1d().double()
    assert later(ones(2, 3, dtype=tg.float64)).dtype == tg.float64 and later.running_mean.dtype == tg.float64
    assert later.num_batches_tracked == 1
    assert pickle.loads(pickle.dumps(L.Linear(3).double())).build((2, 5)).weight.dtype == tg.float64


def test_on_the_device_under_test():
    layer = L.Sequential(L.Linear(3), L.BatchNorm1d()).to(DEVICE)
    assert layer.get_output_shape((None, 5)) == (None, 3)
    assert layer(ones(2, 5, device=DEVICE)).device.type == tg.device(DEVICE).type


def test_a_warning_about_arguments_comes_once():
    with pytest.warns(UserWarning, match="dropout option adds"):
        layer = L.LSTM(3, dropout=0.5)
    layer(ones(2, 4, 5))


# ── parameters before the first call ──────────────────────────────────────────────────────────
@pytest.mark.parametrize("optimizer", [tg.optim.SGD, tg.optim.Adam])
def test_an_optimizer_made_first_trains_them(optimizer):
    model = L.Sequential(L.Linear(3), L.Tanh(), L.BatchNorm1d(), L.MultiheadAttention(1),
                         L.Lambda(lambda pair: pair[0]))
    optimizer = optimizer(model.parameters(), lr=0.1)
    first = model(tg.randn(4, 5))
    before = [p.detach().clone() for p in model.parameters()]
    (first * tg.randn(4, 3)).sum().backward()
    optimizer.step()
    changed = {name for (name, p), old in zip(model.named_parameters(), before) if not tg.equal(p, old)}
    assert {"0.weight", "0.bias", "2.weight", "2.bias", "3.in_proj_weight", "3.out_proj.weight"} <= changed


@pytest.mark.parametrize("optimizer", [tg.optim.SGD, tg.optim.Adam])
def test_lazy_modules_of_nn_are_trained_too_and_learn_their_sizes_from_nodes(optimizer):
    model = nn.Sequential(nn.LazyConv1d(3, 2), nn.ReLU(), nn.Flatten(), nn.LazyLinear(2))
    optimizer = optimizer(model.parameters(), lr=0.1)
    optimizer.step()                                # nothing is there to be trained
    graph = model(L.Placeholder((None, 4, 5)))
    assert repr(graph) == "P(None, 2)" and type(model[0]) is nn.Conv1d and model[3].in_features == 12
    before = model[3].bias.detach().clone()
    model(tg.randn(6, 4, 5)).sum().backward()
    optimizer.step()
    assert not tg.equal(model[3].bias, before) and optimizer.param_groups[0]["params"][0] is model[0].weight


def test_a_state_can_be_loaded_first():
    trained = L.Sequential(L.Linear(3), L.BatchNorm1d(), L.MultiheadAttention(1))
    trained(tg.randn(4, 5))
    fresh = L.Sequential(L.Linear(3), L.BatchNorm1d(), L.MultiheadAttention(1))
    weight = fresh[0].weight
    assert fresh.load_state_dict(trained.state_dict()) == ([], [])
    assert fresh[0].weight is weight and tg.equal(weight, trained[0].weight)
    x = tg.randn(4, 5)
    assert tg.equal(fresh.eval()(x)[0], trained.eval()(x)[0])
    plain = nn.Sequential(nn.Linear(5, 3), nn.BatchNorm1d(3), nn.MultiheadAttention(3, 1))
    assert list(plain.state_dict()) == list(fresh.state_dict())


def test_a_loaded_state_must_fit():
    layer = L.Linear(3)
    layer.load_state_dict(nn.Linear(5, 3).state_dict())
    with pytest.raises(RuntimeError, match=r"weight was loaded with shape \(3, 5\); this input asks for \(3, 4\)"):
        layer(ones(2, 4))
    assert not layer.is_built and layer(ones(2, 5)).shape == (2, 3)
    with pytest.raises(RuntimeError, match="Missing key.*bias"):
        L.Linear(3).load_state_dict({"weight": ones(3, 5)})
    with pytest.raises(RuntimeError, match="Unexpected key.*more"):
        L.Linear(3).load_state_dict({"weight": ones(3, 5), "bias": ones(3), "more": ones(1)})


def test_a_state_without_shapes_is_a_state():
    layer = L.Linear(3)
    state = layer.state_dict()
    assert list(state) == ["weight", "bias"] and L.Linear(3).load_state_dict(state) == ([], [])
    layer.requires_grad_(False)
    assert not any(p.requires_grad for p in copy.deepcopy(layer).build((2, 5)).parameters())


# ── calling ───────────────────────────────────────────────────────────────────────────────────
def test_inputs_come_by_position_or_by_name():
    layer, x = L.Linear(3), ones(2, 5)
    assert tg.equal(layer(x), layer(input=x))
    for call in (lambda: layer(x, x=x), lambda: layer(x, input=x), lambda: layer(), lambda: layer(x, x),
                 lambda: layer(y=x)):
        with pytest.raises(AssertionError, match="Linear"):
            call()


def test_layers_of_several_inputs():
    layer = Weighted()
    a, b = ones(2, 3), ones(2, 4)
    result = layer(a, b)
    assert layer.shapes == layer.input_shape == [(2, 3), (2, 4)]
    assert tg.equal(layer(b=b, a=a), result) and tg.equal(layer(a=a, b=b, scale=2.0), result * 2)
    assert layer.get_output_shape([(None, 3), (None, 4)]) == (None, 2)
    assert Weighted().get_output_shape([(None, 3), (None, 4)]) == (None, 2)
    with pytest.raises(RuntimeError, match="was built for input of shape"):
        layer(b, a)


def test_hooks_see_the_call():
    layer, seen = L.Linear(3), []
    layer.register_forward_hook(lambda module, args, result: seen.append((module, args[0].shape, result.shape)))
    layer(ones(2, 5))
    assert seen == [(layer, (2, 5), (2, 3))]


def test_layers_stand_in_plain_modules():
    model = nn.Sequential(L.Linear(3), nn.ReLU(), L.Linear(2))
    assert model(ones(4, 5)).shape == (4, 2) and len(list(model.parameters())) == 4
    assert tg.func.functional_call(model, dict(model.named_parameters()), (ones(4, 5),)).shape == (4, 2)


# ── layers of a program's own ─────────────────────────────────────────────────────────────────
def test_a_layer_of_ones_own():
    layer = Scale(2, name="x")
    assert layer.init_args_dict == {None: [2], "name": "x"}
    assert layer.get_output_shape((None, 3)) == (None, 3) and not hasattr(layer, "factor")
    assert layer(ones(1, 3)).tolist() == [[2.0, 2.0, 2.0]]
    assert layer.to_spec() == {"type": "Scale", None: [2], "name": "x"}
    assert L.Layer.get_registry()["Scale"] is Scale
    twin = L.Layer.from_spec({"type": "scale", None: 3})
    assert isinstance(twin, Scale) and twin.start == 3 and repr(twin) == "Scale(3)"
    assert pickle.loads(pickle.dumps(layer)).factor.tolist() == [2.0] * 3


def test_build_is_final():
    with pytest.raises(TypeError, match="must not override build"):
        class Other(L.Layer):
            def build(self, input_shape):
                return self
    assert "Other" not in L.Layer.get_registry()


def test_arguments_are_captured_as_they_were_given():
    assert L.Conv2d(10, 20, bias=False).init_args_dict == {None: [10, 20], "bias": False}
    assert copy.deepcopy(L.Linear(3, bias=False)).init_args_dict == {None: [3], "bias": False}


def test_a_class_of_modules_as_a_class_of_layers():
    Gate = L.Lambda.wrap_same_shape_class(nn.Hardswish, cls_name="Gate")
    layer = Gate()
    assert isinstance(layer, L.Layer) and repr(layer) == "Gate()" and layer.get_output_shape((None, 2)) == (None, 2)
    assert tg.equal(layer(ones(2)), nn.Hardswish()(ones(2)))
    assert type(L.Layer.from_spec(layer.to_spec())) is Gate
    assert L.Lambda.wrap_same_shape_class(nn.TripletMarginLoss).__name__ == "TripletMarginLoss"


def test_lambda():
    double = L.Lambda(lambda x: tg.cat([x, x], -1))
    assert double.get_output_shape((None, 3)) == (None, 6) and double(ones(2, 3)).shape == (2, 6)
    told = L.Lambda(lambda x: x, get_output_shape=lambda shape: (*shape, 7))
    assert told.get_output_shape([2, 3]) == (2, 3, 7)
    with pytest.raises(L.SpecError, match=r"Lambda\[0\]: a function is not plain data"):
        double.to_spec()


class Declared(L.Layer):
    """A layer of a program's own whose parameter is there from the start."""

    def __init__(self):
        super().__init__()
        self.weight = nn.UninitializedParameter()

    def _build(self, input_shape):
        if nn.parameter.is_lazy(self.weight):
            self.weight.materialize(input_shape[-1:])
            nn.init.ones_(self.weight)

    def forward(self, x):
        return x * self.weight


def test_parameters_of_ones_own_that_wait_for_their_shapes():
    layer = Declared()
    optimizer = tg.optim.SGD(layer.parameters(), lr=1.0)
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        twin.load_state_dict({"weight": tg.full((3,), 2.0)})
        assert twin(ones(1, 3)).tolist() == [[2.0, 2.0, 2.0]]
    assert list(layer.state_dict()) == ["weight"] and layer.get_output_shape((None, 3)) == (None, 3)
    layer(ones(1, 3)).sum().backward()
    optimizer.step()
    assert layer.weight.tolist() == [0.0, 0.0, 0.0]


class Wide(L.Linear):
    def __init__(self, factor, name=None):
        super().__init__(10 * factor, bias=False)

    def forward(self, input):
        return super().forward(input) + 1


class Net(L.Sequential):
    def __init__(self, width):
        super().__init__(L.Linear(width), L.ReLU())


def test_layers_are_made_out_of_layers_by_subclassing():
    for layer, shape in ((Wide(2, name="x"), (2, 20)), (Net(5), (2, 5))):
        assert layer.get_output_shape((2, 3)) == shape == layer(ones(2, 3)).shape
        twin = L.Layer.from_spec(layer.to_spec())
        assert type(twin) is type(layer) and twin.init_args_dict == layer.init_args_dict
        assert pickle.loads(pickle.dumps(layer)).input_shape == (2, 3)
    assert repr(Wide(2, name="x")) == "Wide(2, name='x')" and Net(5).to_spec() == {"type": "Net", None: [5]}


# ── printing ──────────────────────────────────────────────────────────────────────────────────
def test_print_modes():
    model = L.Sequential(L.Linear(20, bias=False), L.TimeDistributed(nn.ReLU()))
    assert repr(L.Linear(20)) == "Linear(20)" and repr(L.Concat()) == "Concat()"
    assert repr(model) == "Sequential[\n  Linear(20, bias=False)\n  TimeDistributed[\n    ReLU()\n  ]\n]"
    try:
        L.Layer.set_print_mode("native")
        assert (repr(L.Linear(20)) == "Linear(20)" and repr(L.Linear(20).build((2, 3)))
                == "Linear(in_features=3, out_features=20, bias=True)")
    finally:
        L.Layer.set_print_mode("torchx")
    for mode in ("keras", None):
        with pytest.raises(AssertionError, match="native"):
            L.Layer.set_print_mode(mode)


# ── containers ────────────────────────────────────────────────────────────────────────────────
def cnn():
    return L.Sequential(L.Conv2d(16, 5), L.MaxPool2d(2), L.ReLU(), L.BatchNorm2d(), L.Conv2d(40, 3, padding="same"),
                        L.MaxPool2d(2), L.Flatten())


def test_shapes_go_through_a_network():
    model = cnn()
    assert model.get_output_shape((8, 3, 32, 32)) == (8, 1960) and not model.is_built
    model.add([L.Dense(30), L.ReLU()]).add(L.Linear(10))
    assert model.get_output_shape((None, 3, 32, 32)) == (None, 10)
    assert model(tg.randn(8, 3, 32, 32)).shape == (8, 10) and model.input_shape == (8, 3, 32, 32)
    model.add(L.Linear(5), nn.Linear(5, 4))
    assert model[-2].input_shape == (8, 10) and model.get_output_shape((2, 3, 32, 32)) == (2, 4)
    with pytest.raises(RuntimeError, match="was built for"):
        model(tg.randn(8, 3, 28, 28))


def test_a_failed_first_call_leaves_a_container_open():
    model = L.Sequential(L.Flatten(), nn.Linear(4, 2))
    with pytest.raises(RuntimeError):
        model(ones(2, 3))
    assert not model.is_built


def test_adding_what_does_not_fit_adds_nothing():
    model = L.Sequential(L.Linear(3)).build((None, 2))
    with pytest.raises(AssertionError):
        model.add(L.ReLU(), L.Conv2d(3, 3))
    with pytest.raises(TypeError):
        model.add(L.ReLU(), 3)
    assert len(model) == 1


def test_containers_are_lists():
    model = L.Sequential([L.Linear(3), L.ReLU(), nn.Tanh()])
    assert len(model) == 3 and isinstance(model[2], nn.Tanh) and type(model[:2]) is L.Sequential and len(model[:2]) == 2
    assert isinstance(model, nn.Sequential) and [type(m).__name__ for m in model] == ["Linear", "ReLU", "Tanh"]


def test_lazy_modules_of_nn_in_a_container():
    model = L.Sequential(nn.LazyLinear(3), L.Linear(2))
    before = tg.get_rng_state()
    assert model.get_output_shape((None, 5)) == (None, 2) and nn.parameter.is_lazy(model[0].weight)
    assert tg.equal(tg.get_rng_state(), before)
    assert model(ones(4, 5)).shape == (4, 2)


def test_what_functions_and_tables_take_in_a_container():
    """A result of several parts is one argument; indices come before a table."""
    model = L.Sequential(L.GRU(3, return_state=True), L.Lambda(lambda parts: parts[1]))
    assert model.get_output_shape((None, 5, 2)) == (None, 1, 3)
    assert (L.Lambda(lambda a, b: a @ b).get_output_shape([(2, 3), (3, 4)]) == (2, 4)
            == L.Lambda(lambda *x: x[0] @ x[1]).get_output_shape([(2, 3), (3, 4)]))
    for table in (nn.Embedding(10, 3), L.Embedding(10, 3), L.Sequential(nn.Embedding(10, 3)),
                  nn.Sequential(L.Embedding(10, 3))):
        assert L.Sequential(table, L.LSTM(4)).get_output_shape((None, 7)) == (None, 4)


def test_video():
    """Batch, time, channels, height, width; a convolution for each frame, and a recurrent layer over all."""
    model = L.Sequential(L.TimeDistributed(L.Conv2d(4, 3), L.ReLU(), L.Flatten(), L.Dense(6)),
                         L.LSTM(5, bidirectional=True))
    assert model.get_output_shape((None, 7, 3, 8, 8)) == (None, 10)
    assert model(tg.randn(2, 7, 3, 8, 8)).shape == (2, 10)
    model[0].add(L.Linear(3))
    assert model[0][-1].input_shape == (14, 6)
    with pytest.raises(AssertionError, match="three axes"):
        L.TimeDistributed(L.Linear(3))(ones(2, 3))


def test_time_distributed_over_several_outputs():
    layer = L.TimeDistributed(L.GRU(5, return_state=True))
    assert [t.shape for t in layer(ones(2, 3, 4, 6))] == [(2, 3, 5), (2, 3, 1, 5)]
    assert (L.TimeDistributed(L.GRU(5, return_state=True)).get_output_shape((None, 3, 4, 6))
            == ((None, 3, 5), (None, 3, 1, 5)))


def test_multi_layer_perceptrons():
    model = L.MLP([64, 32], 10, activation=L.LeakyReLU(0.2), dropout=0.5)
    assert [type(m).__name__ for m in model] == ["Linear", "LeakyReLU", "Dropout"] * 2 + ["Linear"]
    assert model[1] is not model[4] and model.get_output_shape((None, 7)) == (None, 10)
    assert model.to_spec()["type"] == "MLP" and model.add(L.ReLU()).to_spec()["type"] == "Sequential"


# ── recurrent layers ──────────────────────────────────────────────────────────────────────────
def test_recurrent_shapes():
    layer, x = L.LSTM(90, bidirectional=True, num_layers=3, return_state=True), tg.randn(10, 17, 20)
    expected = ((10, 180), (10, 6, 90), (10, 6, 90))
    assert layer.get_output_shape((10, 17, 20)) == expected == tuple(tuple(t.shape) for t in layer(x))


@pytest.mark.parametrize("name", ["SimpleRNN", "GRU", "LSTM"])
def test_states_lead_from_one_part_of_a_sequence_to_the_next(name):
    x = tg.randn(3, 8, 4)
    layer = getattr(L, name)(5, num_layers=2, return_sequences=True, return_state=True)
    whole, *end = layer.build((None, None, 4))(x)
    first, *state = layer(x[:, :3])
    second, *last = layer(x[:, 3:], tuple(state) if name == "LSTM" else state[0])
    assert (tg.allclose(tg.cat([first, second], 1), whole, atol=1e-6)
            and all(tg.allclose(a, b, atol=1e-6) for a, b in zip(end, last)))
    kept = getattr(L, name)(5, num_layers=2, return_sequences=True, stateful=True).build((None, None, 4))
    kept.load_state_dict(layer.state_dict())
    assert tg.allclose(tg.cat([kept(x[:, :3]), kept(x[:, 3:])], 1), whole, atol=1e-6)
    assert kept.get_output_shape((None, 2, 4)) == (None, 2, 5)
    kept.reset_state()
    assert tg.allclose(kept(x), whole, atol=1e-6)
    kept(x).sum().backward()                        # the state is no way back into the last call
    kept(x).sum().backward()


def test_outputs_and_states_are_picked():
    x, get = tg.randn(2, 4, 3), L.GetRNNState
    lstm, gru = L.LSTM(5, return_state=True)(x), L.GRU(5, return_state=True)(x)
    assert tg.equal(L.GetRNNOutput()(lstm), lstm[0]) and tg.equal(L.GetRNNOutput()(lstm[0]), lstm[0])
    assert (tg.equal(get("h")(lstm), lstm[1]) and tg.equal(get("c")(lstm), lstm[2])
            and tg.equal(get()(lstm), tg.cat(lstm[1:], -1)))
    assert tg.equal(get()(gru), gru[1]) and tg.equal(get("h")(gru), gru[1])
    assert get().get_output_shape([(2, 5), (2, 1, 5), (2, 1, 5)]) == (2, 1, 10)
    with pytest.raises(AssertionError, match="no c"):
        get("c")(gru)
    with pytest.raises(ValueError, match="no states"):
        get()(gru[0])
    with pytest.raises(AssertionError, match="choose one of"):
        get("d")


# ── rearranging ───────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("sizes", [(37, 8, -1), (-1, 111), (111, 40, 5, 2, 5), ([111, -1],)])
def test_views(sizes):
    x = tg.arange(111 * 40 * 50).view(111, 40, 50)
    layer = L.View(*sizes)
    expected = x.view(*(sizes[0] if isinstance(sizes[0], list) else sizes))
    assert (tg.equal(layer(x), expected) and tg.equal(L.view(x, *sizes), expected)
            and L.View(*sizes).get_output_shape((111, 40, 50)) == tuple(expected.shape))


@pytest.mark.parametrize("sizes", [(-1, -1), (7, -1), (3, 4), (0, -1), (-2, 3), ("a",), (), (None, 2)])
def test_views_that_are_refused(sizes):
    with pytest.raises(AssertionError, match="view"):
        L.view(ones(111, 4), *sizes)


@pytest.mark.parametrize("index", [0, -1, slice(None, 0), slice(1, None, 2), (slice(None, 0), ...), (..., 1),
                                   (slice(None), slice(-3, -1)), (1, 2, 3),
    None, ...])
def test_slices(index):
    x = tg.arange(4 * 5 * 6).view(4, 5, 6)
    assert tg.equal(L.Slice(index)(x), x[index]) and tg.equal(L.slice(x, index), x[index])
    if 0 not in x[index].shape:
        assert L.Slice(index).get_output_shape((4, 5, 6)) == tuple(x[index].shape)


def test_slices_of_unknown_sizes():
    assert L.Slice((slice(None), slice(None, 2))).get_output_shape((None, 3)) == (None, 2)
    assert L.View(-1, 6).get_output_shape((None, 3)) == (None, 6)


def test_flattening():
    x = tg.randn(2, 3, 4)
    assert tg.equal(L.flatten(x, 2), x) and L.flatten(x).shape == (2, 12) and L.flatten(x, start_dim=0).shape == (24,)
    for layer in (L.Flatten(3), L.Flatten(start_dim=5)):
        with pytest.raises(AssertionError, match="start_dim"):
            layer(x)
