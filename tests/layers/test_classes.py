"""Every class of `layers`, in one table: beside the module of `nn` that it is, its shapes, its description, its
copies.
"""
import copy
import json
import pickle

import numpy as np
import pytest

import tensorgrad as tg
from tensorgrad import layers as L
from tensorgrad import nn


def floats(*shape):
    return tg.tensor(np.random.default_rng([3, *shape]).normal(size=shape).astype(np.float32))


def ints(high, *shape):
    return tg.tensor(np.random.default_rng([high, *shape]).integers(0, high, shape))


# ── the table: a class, its arguments, its inputs, and the plain module that it must be the same as ──────────────────
def row(name, *args, x, plain=None, module=None, function=None, then=None, **kwargs):
    """`plain`: the arguments of the module of `nn`, the layer's own unless told otherwise.

    Or `module` makes that, or there is only a `function`.

    `then`: what is still done with the module's output.
    """
    inputs = [floats(*v) if type(v) is tuple and type(v[0]) is int else v for v in (x if isinstance(x, list) else [x])]
    if module is None and function is None:
        def module(): return getattr(nn, name)(*(args if plain is None else plain), **kwargs)
    return pytest.param(name, args, kwargs, inputs, module, function, then, id=f"{name}{args or ''}{kwargs or ''}")


SEQUENCE, IMAGE, VOLUME = (2, 4, 7), (2, 4, 6, 5), (2, 4, 5, 5, 6)
SIZES = {1: SEQUENCE, 2: IMAGE, 3: VOLUME}
STEPS = (3, 5, 4)                                   # batch, time, features
TOKENS = ints(10, 3, 4)


def per_dimension(kind, *args, plain=None, **kwargs):
    return [row(f"{kind}{n}d", *args, x=SIZES[n], plain=plain, **kwargs) for n in SIZES]


def turned(result):
    """A recurrent module's result with the batch first in the states as well."""
    output, state = result
    return output, *[s.transpose(0, 1) for s in (state if isinstance(state, tuple) else [state])]


def last(result):
    return result[0][:, -1]


DENSE = [
    row("Identity", x=(2, 3)), row("Linear", 20, x=(16, 10), plain=(10, 20)),
    row("Linear", 3, x=(2, 5, 3), plain=(3, 3)), row("Linear", 3, bias=False, x=(2, 5), plain=(5, 3)),
    row("Linear", out_features=3, x=(2, 5), plain=(5,)),
    row("Bilinear", 3, x=[(2, 4), (2, 5)], plain=(4, 5, 3)),
]
CONVOLUTIONS = [
    *per_dimension("Conv", 8, 3, plain=(4, 8, 3)), *per_dimension("ConvTranspose", 8, 3, plain=(4, 8, 3)),
    *per_dimension("Conv", 8, 3, plain=(4, 8, 3), padding="same", padding_mode="circular", groups=2, bias=False,
                   dilation=2),
    *per_dimension("ConvTranspose", 6, 3, plain=(4, 6, 3), stride=3, padding=1, output_padding=1, dilation=2, groups=2,
                   bias=False),
    row("Conv2d", 8, (3, 2), (2, 1), (1, 0), x=IMAGE, plain=(4, 8, (3, 2), (2, 1), (1, 0))),
    row("Fold", (4, 5), 2, x=(1, 12, 12)),
    row("Unfold", (2, 3), padding=1, x=IMAGE),
]
POOLINGS = [
    *per_dimension("MaxPool", 3, stride=2, padding=1, ceil_mode=True),
    *per_dimension("MaxPool", 2, return_indices=True),
    *per_dimension("AvgPool", 3, stride=2, padding=1, ceil_mode=True, count_include_pad=False),
    *per_dimension("LPPool", 2, 3),
    *per_dimension("AdaptiveAvgPool", 2), *per_dimension("AdaptiveMaxPool", 2),
    row("AdaptiveMaxPool2d", (None, 2), return_indices=True, x=IMAGE),
    row("MaxPool2d", 13, stride=(1, 3), dilation=2, padding=(5, 6), x=(2, 3, 30, 33)),
    row("FractionalMaxPool2d", 2, (3, 2), x=IMAGE), row("FractionalMaxPool3d", 2, output_ratio=0.5, x=VOLUME),
    row("MaxUnpool1d", 2, x=[(1, 2, 3), tg.tensor([[[0, 3, 4], [1, 2, 5]]])]),
    row("MaxUnpool2d", 2, x=[(1, 1, 1, 2), tg.tensor([[[[0, 3]]]])]),
    row("MaxUnpool3d", 2, x=[(1, 1, 1, 1, 1), tg.tensor([[[[[7]]]]])]),
]
PADDINGS = ([r for kind in ("Circular", "Reflection", "Replication", "Zero") for r in per_dimension(f"{kind}Pad", 2)]
            + per_dimension("ConstantPad", 2, 3.5))
NORMS = [
    *per_dimension("BatchNorm", plain=(4,)), *per_dimension("BatchNorm", 0.1, affine=False, plain=(4, 0.1)),
    *per_dimension("BatchNorm", bias=False, momentum=None, plain=(4,)), *per_dimension("InstanceNorm", plain=(4,)),
    *per_dimension("InstanceNorm", affine=True, track_running_stats=True, plain=(4,)),
    row("BatchNorm1d", x=(5, 4), plain=(4,)),
    row("SyncBatchNorm", x=IMAGE, plain=(4,)), row("LayerNorm", 2, x=(4, 3, 5, 6), plain=((5, 6),)),
    row("LayerNorm", 1, eps=0.1, bias=False, x=IMAGE, plain=((5,),)),
    row("LayerNorm", 1, elementwise_affine=False, x=IMAGE, plain=((5,),)),
    row("RMSNorm", 2, x=IMAGE, plain=((6, 5),)), row("GroupNorm", 2, x=IMAGE, plain=(2, 4)),
    row("GroupNorm", 4, affine=False, x=IMAGE, plain=(4, 4)), row("LocalResponseNorm", 2, x=IMAGE),
    row("CrossMapLRN2d", 3, x=IMAGE),
]
ACTIVATIONS = [row(name, x=(2, 6)) for name in (
    "CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid",
    "Mish", "RReLU", "ReLU", "ReLU6", "SELU",
    "SiLU",
    "Sigmoid", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink")] + [
    row("ELU", 0.5, inplace=True, x=(2, 3)), row("LogSoftmax", dim=0, x=(2, 3)), row("Softmax", 1, x=(2, 3)),
    row("Softmin", 1, x=(2, 3)),
    row("Softmax2d", x=IMAGE),
    row("Threshold", 0.1, 20.0, x=(2, 3)), row("PReLU", x=(2, 7, 3), plain=()),
    row("PReLU", shared=False, init=0.5, x=(2, 7, 3),
module=lambda: nn.PReLU(7, 0.5)),
]
DROPOUTS = [row("Dropout", 0.4, x=(5, 6)), row("AlphaDropout", 0.4, x=(5, 6)),
            row("FeatureAlphaDropout", 0.4, x=SEQUENCE), *per_dimension("Dropout", 0.4)]
SHAPES = [
    row("Flatten", x=(2, 3, 4)), row("Flatten", 2, x=IMAGE), row("Unflatten", 1, (2, -1), x=(3, 4)),
    row("Upsample", scale_factor=2, x=IMAGE),
    row("Upsample", (9, 4), mode="bilinear", align_corners=True, x=IMAGE),
    row("UpsamplingNearest2d", scale_factor=2, x=IMAGE),
    row("UpsamplingBilinear2d", (4, 6), x=IMAGE), row("PixelShuffle", 2, x=IMAGE),
    row("PixelUnshuffle", 2, x=(2, 2, 4, 6)), row("ChannelShuffle", 2, x=IMAGE),
    row("View", 37, 8, -1, x=(111, 4, 8), function=lambda x: x.view(37, 8, -1)),
    row("View", [6, 4], x=(2, 3, 4), function=lambda x: x.view(6, 4)),
    row("Slice", (slice(None), slice(0, 3, 2)), x=IMAGE, function=lambda x: x[:, 0:3:2]),
    row("Slice", (..., 1), x=IMAGE, function=lambda x: x[..., 1]),
    row("Slice", (slice(None), None, 1), x=IMAGE, function=lambda x: x[:, None, 1]),
    row("Slice", slice(0, 1), x=IMAGE, function=lambda x: x[:1]),
]
TABLES = [
    row("Embedding", 10, 3, x=[TOKENS]), row("Embedding", 10, 3, padding_idx=2, dtype=tg.float64, x=[TOKENS]),
    row("EmbeddingBag", 10, 3, mode="sum", x=[TOKENS]),
    row("EmbeddingBag", 10, 3, x=[TOKENS[0], tg.tensor([0, 3])]),
]
RECURRENT = [
    *(row(name, 6, x=STEPS, module=lambda kind=kind: kind(4, 6, batch_first=True), then=last)
      for name, kind in (("SimpleRNN", nn.RNN), ("GRU", nn.GRU), ("LSTM", nn.LSTM))),
    *(row(name, 6, num_layers=2, bidirectional=True, return_sequences=True, return_state=True, x=STEPS, then=turned,
          module=lambda kind=kind: kind(4, 6, 2, bidirectional=True, batch_first=True))
      for name, kind in (("SimpleRNN", nn.RNN), ("GRU", nn.GRU), ("LSTM", nn.LSTM))),
    row("SimpleRNN", 6, nonlinearity="relu", bias=False, x=STEPS,
        module=lambda: nn.RNN(4, 6, nonlinearity="relu", bias=False, batch_first=True), then=last),
    row("LSTM", 6, proj_size=2, x=STEPS, module=lambda: nn.LSTM(4, 6, proj_size=2, batch_first=True), then=last),
    row("GRU", 6, time_major=True, return_sequences=True, x=STEPS, module=lambda: nn.GRU(4, 6),
        then=lambda result: result[0]),
    row("RNNCell", 6, nonlinearity="relu", x=(3, 4), plain=(4, 6)), row("GRUCell", 6, x=[(3, 4), (3, 6)], plain=(4, 6)),
    row("LSTMCell", 6, False, x=(3, 4), plain=(4, 6, False)),
    row("GetRNNOutput", x=[(floats(2, 3), floats(2, 1, 3))], function=lambda result: result[0]),
    row("GetRNNState", x=[(floats(2, 3), floats(2, 1, 3), floats(2, 1, 4))],
        function=lambda result: tg.cat(result[1:], -1)),
]
ATTENTION = [
    row("MultiheadAttention", 2, x=[(3, 5, 8)] * 3, module=lambda: nn.MultiheadAttention(8, 2, batch_first=True)),
    row("MultiheadAttention", 2, x=(3, 5, 8), module=lambda: SelfAttention(8, 2, batch_first=True)),
    row("MultiheadAttention", 4, kdim=4, vdim=6, add_bias_kv=True, batch_first=False,
        x=[(5, 3, 8), (7, 3, 4), (7, 3, 6)],
        module=lambda: nn.MultiheadAttention(8, 4, kdim=4, vdim=6, add_bias_kv=True)),
    row("TransformerEncoderLayer", 2, 16, dropout=0.0, x=(3, 5, 8),
        module=lambda: nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)),
    row("TransformerDecoderLayer", 2, 16, dropout=0.0, x=[(3, 5, 8), (3, 6, 8)],
        module=lambda: nn.TransformerDecoderLayer(8, 2, 16, 0.0, batch_first=True)),
]
MERGES = [
    row(name, x=[(2, 3), floats(2, 3) + 4], function=function) for name, function in {
        "Add": tg.add, "Subtract": tg.sub, "Multiply": tg.mul, "Divide": tg.div, "Maximum": tg.maximum,
        "Minimum": tg.minimum,
        "Average": lambda a, b: (a + b) / 2,
    }.items()] + [row("Concat", 1, x=[(2, 3), (2, 5)], function=lambda *x: tg.cat(x, 1))]
CONTAINERS = [
    row("Sequential", L.Linear(3), nn.ReLU(), L.Linear(2), x=(4, 5),
        module=lambda: nn.Sequential(nn.Linear(5, 3), nn.ReLU(), nn.Linear(3, 2))),
    row("MLP", [3], 2, x=(4, 5), module=lambda: nn.Sequential(nn.Linear(5, 3), nn.ReLU(), nn.Linear(3, 2))),
    row("TimeDistributed", L.Linear(3), L.Tanh(), x=(4, 5, 2),
        module=lambda: nn.Sequential(nn.Linear(2, 3), nn.Tanh())),
]
TABLE = [*DENSE, *CONVOLUTIONS, *POOLINGS, *PADDINGS, *NORMS, *ACTIVATIONS, *DROPOUTS, *SHAPES, *TABLES, *RECURRENT,
         *ATTENTION, *MERGES, *CONTAINERS]
table = pytest.mark.parametrize("name, args, kwargs, x, module, function, then", TABLE)


class SelfAttention(nn.MultiheadAttention):
    def forward(self, x):
        return super().forward(x, x, x)


# ── tools ─────────────────────────────────────────────────────────────────────────────────────
def make(name, args, kwargs):
    return getattr(L, name)(*copy.deepcopy(args), **copy.deepcopy(kwargs))


def given(x):
    """Inputs that may be written into."""
    return [tuple(t.clone() for t in v) if isinstance(v, tuple) else v.clone() for v in x]


def called(module, x, seed=1):
    tg.manual_seed(seed)
    return module(*given(x))


def parts(result):
    return [t for part in result for t in parts(part)] if isinstance(result, (tuple, list)) else [result]


def same(one, other):
    one, other = parts(one), parts(other)
    return len(one) == len(other) and all(a.dtype == b.dtype and tg.equal(a, b) for a, b in zip(one, other))


def shapes(x):
    """Return the argument for `get_output_shape`."""
    each = [[tuple(t.shape) for t in v] if isinstance(v, tuple) else tuple(v.shape) for v in x]
    return each[0] if len(each) == 1 else each


def without_batch(shape):
    """Return the shape with an unknown batch."""
    return (None, *shape[1:]) if isinstance(shape, tuple) else [without_batch(part) for part in shape]


# ── tests ─────────────────────────────────────────────────────────────────────────────────────
@table
def test_is_the_module_of_nn(name, args, kwargs, x, module, function, then):
    """A layer draws the parameters of its module of nn, computes its results, and gets its gradients."""
    layer = make(name, args, kwargs)
    if function:
        assert same(called(layer, x), function(*given(x)))
        assert layer.native_module() is None
        return
    tg.manual_seed(0)
    module = module()
    tg.manual_seed(0)
    layer = make(name, args, kwargs).build(shapes(x))
    assert list(layer.state_dict()) == list(module.state_dict())
    assert same(list(layer.state_dict().values()), list(module.state_dict().values()))
    if name == "TimeDistributed":
        expected = called(module, [x[0].flatten(0, 1)]).unflatten(0, x[0].shape[:2])
    else:
        expected = called(module, x)
    result, expected = called(layer, x), then(expected) if then else expected
    assert same(result, expected)
    assert same(list(layer.buffers()), list(module.buffers()))
    if list(module.parameters()):
        for output in (result, expected):
            sum((t * floats(*t.shape).to(t.dtype)).sum() for t in parts(output) if t.requires_grad).backward()
        assert same([p.grad for p in layer.parameters()], [p.grad for p in module.parameters()])


@table
def test_knows_its_output_shape(name, args, kwargs, x, module, function, then):
    """Before it is built, after it is built, with a batch of unknown size; and asking leaves no trace."""
    layer, shape = make(name, args, kwargs), shapes(x)
    before = tg.get_rng_state()
    predicted = layer.get_output_shape(shape)
    assert not layer.is_built and tg.equal(tg.get_rng_state(), before)
    result = called(layer, x)
    actual = tuple(result.shape) if isinstance(result, tg.Tensor) else tuple(tuple(t.shape) for t in result)
    assert predicted == actual and layer.is_built
    before, state = tg.get_rng_state(), [t.clone() for t in layer.state_dict().values()]
    assert layer.get_output_shape(shape) == actual
    assert tg.equal(tg.get_rng_state(), before) and same(list(layer.state_dict().values()), state)


@table
def test_knows_its_output_shape_for_any_batch(name, args, kwargs, x, module, function, then):
    if (name == "View" or name == "EmbeddingBag" and len(x) > 1 or kwargs.get("time_major") or name == "Slice"
            and isinstance(args[0], slice)):
        return                                      # the first axis is another
    layer, shape = make(name, args, kwargs), shapes(x)
    exact, loose = layer.get_output_shape(shape), layer.get_output_shape(without_batch(shape))

    def compare(exact, loose):
        if isinstance(exact, tuple) and exact and isinstance(exact[0], tuple):
            assert len(exact) == len(loose)
            for a, b in zip(exact, loose):
                compare(a, b)
        else:
            assert loose[1:] == exact[1:] or name == "MultiheadAttention" and not kwargs.get("batch_first", True)
            assert None in loose
    compare(exact, loose)


@table
def test_describes_itself(name, args, kwargs, x, module, function, then):
    """Out of its spec, by way of JSON, comes an equal layer."""
    layer = make(name, args, kwargs)
    spec = layer.to_spec()
    kept = copy.deepcopy(spec)
    for twin in (L.Layer.from_spec(spec), L.from_json(L.to_json(layer)),
                 L.Layer.from_spec(json.loads(json.dumps(spec)))):
        assert type(twin) is type(layer) and spec == kept
        called(layer, x), called(twin, x)
        assert twin.load_state_dict(layer.state_dict()) == ([], [])
        twin.train(layer.training)
        assert same(called(layer, x), called(twin, x))
    assert L.from_json(L.to_json(layer)).to_spec() == spec and repr(L.Layer.from_spec(spec)) == repr(layer)


@table
def test_is_copied_and_pickled(name, args, kwargs, x, module, function, then):
    """Before it is built, and after."""
    layer = make(name, args, kwargs)
    early = [copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))]
    expected = called(layer, x)
    state = copy.deepcopy(layer.state_dict())
    late = [copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))]
    after = called(layer, x)
    for twin in early:
        assert not twin.is_built and repr(twin) == repr(layer)
        twin.load_state_dict(state)                 # shapes come with the state
        called(twin, x)
        twin.load_state_dict(state)
        assert same(called(twin, x), after)
    for twin in late:
        assert twin.input_shape == layer.input_shape and same(called(twin, x), after)
    assert len(parts(expected)) == len(parts(after))


@table
def test_optimizers_get_parameters_that_come_later(name, args, kwargs, x, module, function, then):
    layer = make(name, args, kwargs)
    early = list(layer.parameters())
    called(layer, x)
    assert [id(p) for p in early] == [id(p) for p in layer.parameters()]
    assert not any(nn.parameter.is_lazy(t) for t in (*layer.parameters(), *layer.buffers()))


@table
def test_prints_as_its_constructor(name, args, kwargs, x, module, function, then):
    layer = make(name, args, kwargs)
    assert repr(layer).startswith(name + ("[" if isinstance(layer, L.Sequential) else "("))
    called(layer, x)
    L.Layer.set_print_mode("native")
    try:
        assert repr(layer).startswith(name) and "UninitializedParameter" not in repr(layer)
    finally:
        L.Layer.set_print_mode("torchx")


@table
def test_refuses_other_sizes(name, args, kwargs, x, module, function, then):
    layer = make(name, args, kwargs)
    called(layer, x)
    wrong = [tuple(t.unsqueeze(0) for t in v) if isinstance(v, tuple) else v.unsqueeze(0) for v in x]
    with pytest.raises(RuntimeError, match="was built for input of shape"):
        layer(*wrong)


def test_the_table_has_every_class():
    ours = {name for name, cls in L.Layer.get_registry().items() if getattr(L, name, None) is cls}
    assert ours - {r.values[0] for r in TABLE} == {"Dense", "Functional", "Lambda"}
    assert L.Dense is L.Linear


def test_examples_are_shown_for_every_class():
    for name, cls in L.Layer.get_registry().items():
        if getattr(L, name, None) is cls:
            assert ">>> " in cls.__doc__, name
