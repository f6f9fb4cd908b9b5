"""The layers of `nn`: one table of cases, compared with PyTorch where it is installed, and checked by themselves."""

import numpy as np
import pytest

import tensorgrad as tg

try:
    import torch
except ImportError:
    torch = None

oracle = pytest.mark.skipif(torch is None, reason="PyTorch is not installed")
pytestmark = [pytest.mark.filterwarnings(f"ignore:{text}") for text in (
    "enable_nested_tensor", "LSTM with projections", "dropout option adds", "Implicit dimension", "`NLLLoss2d`",
    "The PyTorch API of nested tensors", "Using padding='same'", "reduction. 'mean' divides",
    "size_average and reduce", "keyword argument `m", "input's size at dim")]


# ── inputs: arrays, the same for both libraries ───────────────────────────────────────────────
def stream(*key):
    return np.random.default_rng([7, *key])


def floats(*shape, low=-2.0, high=2.0):
    return stream(*shape).uniform(low, high, shape).astype(np.float32)


def unit(*shape):
    return floats(*shape, low=0.05, high=0.95)


def ints(high, *shape):
    return np.asarray(stream(high, *shape).integers(0, high, shape))


def signs(*shape):
    return np.where(floats(*shape) > 0, 1, -1).astype(np.float32)


def fixed(array):
    """An input that asks for no gradient."""
    array.flags.writeable = False
    return array


def logs(*shape):
    return np.log(unit(*shape) / unit(*shape).sum(-1, keepdims=True))


def distinct(*shape):
    """No two elements alike, so that a maximum is in one place."""
    return stream(*shape).permutation(int(np.prod(shape))).reshape(shape).astype(np.float32) / 7


def padded(*lengths):
    """A mask that hides what comes after each length."""
    return np.arange(max(lengths)) >= np.array(lengths)[:, None]


def future(n):
    return np.triu(np.ones((n, n), bool), 1)


def given(lib, value):
    """A case's value in one library: arrays become tensors, functions are called with the library."""
    if isinstance(value, np.ndarray):
        return lib.tensor(value)
    if isinstance(value, dict):
        return {name: given(lib, v) for name, v in value.items()}
    if type(value) is tuple and any(isinstance(v, np.ndarray) for v in value):
        return tuple(given(lib, v) for v in value)
    return value(lib) if callable(value) else value


# ── the table: a module, its constructor's arguments, its inputs (a shape stands for floats) ──
def drawn(x):
    return [floats(*v) if type(v) is tuple and all(type(n) is int for n in v) else v for v in x]


def case(name, *args, x, noisy=False, rough=False, **kwargs):
    """`noisy`: draws random numbers while training; `rough`: has no gradient that central differences could check."""
    return pytest.param(name, args, kwargs, drawn(x), {"noisy": noisy, "rough": rough}, id=name)


def encoder_layer(**options):
    return lambda lib: lib.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, **options)


def decoder_layer(lib):
    return lib.nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0)


SEQUENCE, IMAGE, VOLUME = (2, 4, 7), (2, 4, 6, 5), (2, 4, 4, 5, 6)
SIZES = {1: SEQUENCE, 2: IMAGE, 3: VOLUME}
PAIR = [(5, 4), floats(4, 5).T.copy()]
TRIPLE = [(5, 4), floats(4, 5).T.copy(), floats(5, 4, low=0, high=1)]
STEPS = (5, 3, 4)  # length, batch, features
WORDS = ints(10, 3, 4)
UPON = {"weight": floats(4, low=0.5, high=1.5)}

ELEMENTWISE = [
    case("Threshold", 0.1, 20, x=[(3, 4)]), case("Threshold", 0.1, 20.0, True, x=[(3, 4)], rough=True),
    case("ReLU", x=[(3, 4)]), case("RReLU", 0.1, 0.3, x=[(3, 4)], noisy=True), case("ReLU6", x=[(3, 4)]),
    case("Hardtanh", x=[(3, 4)]), case("Hardtanh", -0.5, 2, x=[(3, 4)]), case("Hardtanh", min_value=-3, x=[(3, 4)]),
    case("Sigmoid", x=[(3, 4)]), case("Hardsigmoid", x=[(3, 4)]), case("Tanh", x=[(3, 4)]), case("SiLU", x=[(3, 4)]),
    case("Mish", x=[(3, 4)]), case("Hardswish", x=[(3, 4)]), case("ELU", 2.0, x=[(3, 4)]), case("CELU", x=[(3, 4)]),
    case("SELU", x=[(3, 4)]), case("GLU", x=[(3, 4)]), case("GLU", 0, x=[(4, 3)]), case("GELU", x=[(3, 4)]),
    case("GELU", approximate="tanh", x=[(3, 4)]), case("Hardshrink", x=[(3, 4)]), case("LeakyReLU", 0.2, x=[(3, 4)]),
    case("LogSigmoid", x=[(3, 4)]), case("Softplus", 2, 1.5, x=[(3, 4)]), case("Softshrink", 0.7, x=[(3, 4)]),
    case("PReLU", x=[(3, 4)]), case("PReLU", 4, 0.1, x=[(3, 4, 2)]), case("Softsign", x=[(3, 4)]),
    case("Tanhshrink", x=[(3, 4)]), case("Softmin", 1, x=[(3, 4)]), case("Softmax", dim=0, x=[(3, 4)]),
    case("LogSoftmax", dim=-1, x=[(3, 4)]), case("LogSoftmax", x=[(3, 4)]), case("Softmax2d", x=[IMAGE]),
    case("Softmax2d", x=[(3, 4, 2)]), case("Identity", 3, unused=True, x=[(3, 4)]),
]
SHAPES = [
    case("Flatten", x=[(2, 3, 4)]), case("Flatten", 0, 1, x=[(2, 3, 4)]), case("Unflatten", 1, (2, -1), x=[(3, 4)]),
    case("Fold", (4, 5), 2, x=[(1, 12, 12)]), case("Fold", (4, 4), (2, 2), padding=1, stride=2, x=[(8, 9)]),
    case("Unfold", 2, x=[(1, 3, 4, 5)]), case("Unfold", (2, 3), 2, 1, 2, x=[(2, 2, 6, 7)]),
    case("PixelShuffle", 2, x=[(2, 8, 3, 3)]), case("PixelUnshuffle", 2, x=[(2, 2, 4, 6)]),
    case("ChannelShuffle", 2, x=[(1, 4, 2, 2)]), case("Upsample", scale_factor=2, x=[(1, 2, 3, 3)]),
    case("Upsample", 7, mode="linear", x=[(1, 2, 3)]), case("Upsample", (5, 4), None, "bicubic", x=[(1, 2, 4, 4)]),
    case("Upsample", scale_factor=(2, 1.5), mode="bilinear", align_corners=True, x=[(1, 2, 4, 4)]),
    case("UpsamplingNearest2d", (4, 6), x=[(1, 2, 3, 3)]),
    case("UpsamplingBilinear2d", scale_factor=2, x=[(1, 2, 3, 3)]),
]
PADDINGS = [
    case(f"{kind}Pad{n}d", 2, *((3.5,) if kind == "Constant" else ()), x=[SIZES[n]])
    for n in SIZES for kind in ("Circular", "Constant", "Reflection", "Replication", "Zero")
] + [case("ReflectionPad2d", (1, 2, 0, 1), x=[(3, 4, 5)]), case("ConstantPad1d", (0, 3), -1, x=[(4, 5)])]
CONVOLUTIONS = [
    case(f"{lazy}Conv{up}{n}d", *(() if lazy else (4,)), 6, 3, x=[SIZES[n]], **options)
    for n in SIZES for lazy in ("", "Lazy") for up in ("", "Transpose")
    for options in ({}, {"stride": 2, "padding": 1, "groups": 2, "bias": False})
] + [
    case("Conv1d", 4, 2, 4, padding="same", x=[SEQUENCE]), case("Conv2d", 4, 2, (3, 2), padding="valid", x=[IMAGE]),
    case("Conv2d", 4, 2, (4, 3), padding="same", dilation=(1, 2), x=[IMAGE]), case("Conv2d", 4, 2, 3, x=[(4, 6, 5)]),
    case("Conv1d", 4, 2, 4, padding="same", padding_mode="reflect", x=[SEQUENCE]),
    case("Conv2d", 4, 2, 3, padding=(2, 1), padding_mode="circular", x=[IMAGE]),
    case("Conv2d", 4, 4, 3, padding="valid", padding_mode="reflect", groups=4, x=[IMAGE]),
    case("Conv3d", 4, 2, 3, 2, (1, 2, 1), padding_mode="replicate", x=[VOLUME]),
    case("ConvTranspose1d", 4, 2, 3, 3, 1, 1, dilation=2, x=[SEQUENCE, None]),
    case("ConvTranspose2d", 4, 2, 3, stride=2, x=[IMAGE, [14, 11]]),
    case("ConvTranspose2d", 4, 2, 3, stride=(2, 3), x=[(4, 6, 5), [2, 13, 17]]),
]
POOLINGS = [case(f"MaxPool{n}d", 3, 2, 1, x=[distinct(*SIZES[n])]) for n in SIZES] + [
    case("MaxPool2d", (2, 3), return_indices=True, x=[distinct(*IMAGE)]),
    case("MaxPool1d", 2, dilation=2, ceil_mode=True, x=[distinct(4, 8)]),
    case("MaxUnpool1d", 2, x=[(1, 2, 3), np.array([[[0, 3, 4], [1, 2, 5]]])]),
    case("MaxUnpool2d", (2, 2), x=[(1, 1, 2, 2), np.array([[[[0, 2], [9, 15]]]]), [4, 4]]),
    case("MaxUnpool3d", 2, 2, 0, x=[(1, 1, 1, 1, 2), np.array([[[[[0, 7]]]]])]),
    *(case(f"AvgPool{n}d", 3, 2, 1, count_include_pad=False, x=[SIZES[n]]) for n in SIZES),
    case("AvgPool2d", (2, 3), divisor_override=4, x=[IMAGE]), case("AvgPool1d", 2, ceil_mode=True, x=[SEQUENCE]),
    *(case(f"LPPool{n}d", 2, 3, 2, x=[SIZES[n]]) for n in SIZES),
    *(case(f"AdaptiveAvgPool{n}d", 3, x=[SIZES[n]]) for n in SIZES),
    *(case(f"AdaptiveMaxPool{n}d", 3, x=[distinct(*SIZES[n])]) for n in SIZES),
    case("AdaptiveAvgPool2d", (None, 2), x=[IMAGE]), case("AdaptiveMaxPool2d", 2, True, x=[distinct(*IMAGE)]),
    case("FractionalMaxPool2d", 2, (3, 2), _random_samples=unit(2, 4, 2), x=[distinct(*IMAGE)]),
    case("FractionalMaxPool2d", 2, output_ratio=0.5, return_indices=True, _random_samples=unit(2, 4, 2),
         x=[distinct(*IMAGE)]),
    case("FractionalMaxPool3d", 2, 2, _random_samples=unit(2, 4, 3), x=[distinct(*VOLUME)]),
]
NORMS = [case(f"{lazy}{kind}Norm{n}d", *(() if lazy else (4,)), x=[SIZES[n]], **options)
         for n in SIZES for lazy in ("", "Lazy") for kind in ("Batch", "Instance")
         for options in ({}, {"affine": True, "track_running_stats": True, "momentum": 0.3, "bias": False})] + [
    case("BatchNorm1d", 4, momentum=None, x=[(5, 4)]), case("BatchNorm2d", 4, affine=False, x=[IMAGE]),
    case("BatchNorm2d", 4, 0.1, track_running_stats=False, x=[IMAGE]), case("SyncBatchNorm", 4, x=[IMAGE]),
    case("InstanceNorm1d", 4, x=[(4, 7)]), case("InstanceNorm2d", 9, x=[IMAGE]), case("LayerNorm", 5, x=[IMAGE]),
    case("LayerNorm", (6, 5), 0.1, bias=False, x=[IMAGE]), case("LayerNorm", [5], elementwise_affine=False, x=[IMAGE]),
    case("GroupNorm", 2, 4, x=[IMAGE]), case("GroupNorm", 1, 4, affine=False, x=[(3, 4)]),
    case("GroupNorm", 4, 4, 0.1, bias=False, x=[IMAGE]), case("RMSNorm", 5, x=[IMAGE]),
    case("RMSNorm", (6, 5), eps=0.1, elementwise_affine=False, x=[IMAGE]), case("LocalResponseNorm", 3, x=[IMAGE]),
    case("LocalResponseNorm", 2, 0.1, 0.5, 2.0, x=[SEQUENCE]), case("CrossMapLRN2d", 3, 0.5, x=[IMAGE], rough=True),
    case("CrossMapLRN2d", 4, x=[(1, 7, 2, 2)], rough=True),
]
DROPOUTS = [case(name, p, x=[shape], noisy=True) for p in (0.0, 0.4, 1.0) for name, shape in {
    "Dropout": (3, 4), "Dropout1d": SEQUENCE, "Dropout2d": IMAGE, "Dropout3d": VOLUME, "AlphaDropout": (3, 4),
    "FeatureAlphaDropout": SEQUENCE}.items()]
LINEARS = [
    case("Linear", 4, 3, x=[(2, 5, 4)]), case("Linear", 4, 3, False, x=[(4,)]), case("LazyLinear", 3, x=[(2, 4)]),
    case("LazyLinear", 3, False, x=[(4,)]), case("Bilinear", 4, 3, 2, x=[(5, 4), (5, 3)]),
    case("Bilinear", 2, 3, 2, bias=False, x=[(2, 5, 2), (2, 5, 3)]), case("Embedding", 10, 3, x=[WORDS]),
    case("Embedding", 10, 3, padding_idx=-2, scale_grad_by_freq=True, x=[WORDS], rough=True),
    case("Embedding", 10, 3, 0, x=[WORDS], rough=True),
    case("Embedding", 10, 3, max_norm=1.0, norm_type=1, x=[WORDS], rough=True), case("EmbeddingBag", 10, 3, x=[WORDS]),
    case("EmbeddingBag", 10, 3, mode="max", x=[WORDS]),
    case("EmbeddingBag", 10, 3, mode="sum", padding_idx=2, x=[WORDS, None, unit(3, 4)]),
    case("EmbeddingBag", 10, 3, None, 2.0, True, include_last_offset=True, rough=True,
         x=[WORDS[0], np.array([0, 3, 4])]),
    case("EmbeddingBag", 10, 3, 1.0, x=[WORDS], rough=True),
]
RECURRENT = [
    case(kind, 4, 6, x=[STEPS], **options) for kind in ("RNN", "LSTM", "GRU")
    for options in ({}, {"num_layers": 2, "bidirectional": True}, {"batch_first": True, "bias": False})
] + [
    case("RNN", 4, 6, 1, "relu", x=[(5, 4), (1, 6)]), case("GRU", 4, 6, x=[STEPS, (1, 3, 6)]),
    case("LSTM", 4, 6, x=[STEPS, (floats(1, 3, 6), unit(1, 3, 6))]), case("LSTM", 4, 6, proj_size=2, x=[STEPS]),
    case("LSTM", 4, 6, 2, bidirectional=True, proj_size=3, batch_first=True, x=[(5, 4)]),
    case("GRU", 4, 6, 2, dropout=0.5, x=[STEPS], noisy=True), case("RNNCell", 4, 6, x=[(3, 4)]),
    case("RNNCell", 4, 6, False, "relu", x=[(4,), (6,)]), case("LSTMCell", 4, 6, x=[(3, 4)]),
    case("LSTMCell", 4, 6, x=[(4,), (floats(6), unit(6))]), case("GRUCell", 4, 6, x=[(3, 4), (3, 6)]),
    case("GRUCell", 4, 6, bias=False, x=[(4,)]),
]
ATTENTION = [
    case("MultiheadAttention", 8, 2, x=[(5, 3, 8)] * 3), case("MultiheadAttention", 8, 2, bias=False, x=[(5, 8)] * 3),
    case("MultiheadAttention", 8, 4, add_bias_kv=True, add_zero_attn=True, x=[(5, 3, 8), (6, 3, 8), unit(6, 3, 8)]),
    case("MultiheadAttention", 8, 2, kdim=4, vdim=6, batch_first=True, x=[(3, 5, 8), (3, 7, 4), (3, 7, 6)]),
    case("MultiheadAttention", 8, 2, batch_first=True,
         x=[(3, 5, 8), (3, 5, 8), unit(3, 5, 8), {"key_padding_mask": padded(5, 3, 4), "average_attn_weights": False}]),
    case("MultiheadAttention", 8, 2,
         x=[(5, 3, 8)] * 3 + [{"attn_mask": future(5), "need_weights": False, "is_causal": True}]),
    case("MultiheadAttention", 8, 2, dropout=0.5, x=[(5, 3, 8)] * 3, noisy=True),
    case("TransformerEncoderLayer", 8, 2, 16, 0.0, x=[(5, 3, 8)]),
    case("TransformerEncoderLayer", 8, 2, 16, 0.0, "gelu", norm_first=True, batch_first=True,
         x=[(3, 5, 8), future(5), padded(5, 3, 4)]),
    case("TransformerEncoderLayer", 8, 2, 16, 0.0, lambda lib: lib.nn.Tanh(), bias=False, x=[(5, 8)]),
    case("TransformerEncoderLayer", 8, 2, 16, x=[(5, 3, 8)], noisy=True),
    case("TransformerDecoderLayer", 8, 2, 16, 0.0, x=[(5, 3, 8), (6, 3, 8), future(5)]),
    case("TransformerDecoderLayer", 8, 2, 16, 0.0, norm_first=True, batch_first=True, x=[(3, 5, 8), (3, 6, 8)]),
    case("TransformerEncoder", encoder_layer(), 2, x=[(5, 3, 8), future(5)]),
    case("TransformerEncoder", encoder_layer(batch_first=True), 2, lambda lib: lib.nn.LayerNorm(8),
         x=[(3, 5, 8), None, padded(5, 3, 4)]),
    case("TransformerDecoder", decoder_layer, 2, x=[(5, 3, 8), (6, 3, 8), future(5)]),
    case("Transformer", 8, 2, 1, 1, 16, 0.0, x=[(5, 3, 8), (6, 3, 8)]),
    case("Transformer", 8, 2, 1, 2, 16, 0.0, batch_first=True, norm_first=True, bias=False, x=[(3, 5, 8), (3, 4, 8)]),
    case("AdaptiveLogSoftmaxWithLoss", 16, 20, [5, 10], 2.0, x=[(4, 16), np.array([0, 6, 12, 19])]),
    case("AdaptiveLogSoftmaxWithLoss", 16, 20, (15,), head_bias=True, x=[(16,), np.array(17)]),
]
DISTANCES = [
    case("PairwiseDistance", x=PAIR), case("PairwiseDistance", 1.0, 0.1, True, x=PAIR),
    case("CosineSimilarity", x=PAIR), case("CosineSimilarity", dim=0, eps=0.1, x=PAIR),
]
REDUCED = {
    "L1Loss": PAIR, "MSELoss": PAIR, "SmoothL1Loss": PAIR, "HuberLoss": PAIR, "PoissonNLLLoss": PAIR,
    "SoftMarginLoss": [(5, 4), fixed(signs(5, 4))], "HingeEmbeddingLoss": [(5, 4), signs(5, 4)],
    "CrossEntropyLoss": [(5, 4), ints(4, 5)], "NLLLoss": [logs(5, 4), ints(4, 5)],
    "BCELoss": [unit(5, 4), unit(4, 5).T.copy()], "BCEWithLogitsLoss": [(5, 4), unit(5, 4)],
    "KLDivLoss": [logs(5, 4), unit(5, 4)], "GaussianNLLLoss": [(5, 4), unit(5, 4), unit(4, 5).T.copy()],
    "MultiMarginLoss": [(5, 4), ints(4, 5)], "MultiLabelSoftMarginLoss": [(5, 4), unit(5, 4)],
    "MultiLabelMarginLoss": [(2, 4), np.array([[3, 0, -1, 1], [1, -1, 2, 0]])],
    "CosineEmbeddingLoss": [*PAIR, signs(5)], "MarginRankingLoss": [(5,), unit(5), signs(5)],
    "TripletMarginLoss": TRIPLE, "TripletMarginWithDistanceLoss": TRIPLE,
    "CTCLoss": [logs(6, 2, 4), np.array([[1, 2, 2], [3, 1, 0]]), np.array([6, 5]), np.array([3, 2])],
}
LOSSES = [case(name, reduction=how, x=x, rough=name == "CTCLoss") for name, x in REDUCED.items()
          for how in ("mean", "sum", "none")] + [
    case("CrossEntropyLoss", floats(4, low=0.5, high=1), ignore_index=1, label_smoothing=0.2, x=[(5, 4), ints(4, 5)]),
    case("CrossEntropyLoss", x=[(5, 4, 3), unit(5, 4, 3)]), case("CrossEntropyLoss", x=[(4,), np.array(2)]),
    case("NLLLoss", unit(4), None, 1, x=[(5, 4), ints(4, 5)]), case("NLLLoss2d", x=[IMAGE, ints(4, 2, 6, 5)]),
    case("BCELoss", unit(4), x=REDUCED["BCELoss"]), case("MSELoss", False, x=PAIR),
    case("L1Loss", reduce=False, x=PAIR),
    case("BCEWithLogitsLoss", unit(4), pos_weight=unit(4) + 1, x=REDUCED["BCEWithLogitsLoss"]),
    case("PoissonNLLLoss", False, True, eps=0.1, x=[unit(5, 4) + 1, unit(4, 5).T * 9]),
    case("GaussianNLLLoss", full=True, eps=0.01, x=REDUCED["GaussianNLLLoss"]),
    case("KLDivLoss", reduction="batchmean", log_target=True, x=[logs(5, 4), logs(4, 5).T.copy()]),
    case("SmoothL1Loss", beta=0.3, x=PAIR), case("HuberLoss", delta=0.3, x=PAIR),
    case("HingeEmbeddingLoss", 0.5, x=REDUCED["HingeEmbeddingLoss"]),
    case("MarginRankingLoss", 0.5, x=REDUCED["MarginRankingLoss"]),
    case("MultiMarginLoss", 2, 0.5, unit(4), x=REDUCED["MultiMarginLoss"]),
    case("CosineEmbeddingLoss", 0.3, x=[*PAIR, signs(5)]),
    case("TripletMarginLoss", 2.0, 1, swap=True, x=TRIPLE),
    case("TripletMarginWithDistanceLoss", distance_function=lambda lib: lib.nn.PairwiseDistance(1.0), swap=True,
         x=TRIPLE),
    case("CTCLoss", 3, zero_infinity=True, rough=True,
         x=[logs(6, 4), np.array([1, 2]), np.array(6), np.array(2)]),
    case("LinearCrossEntropyLoss", 4, 3, x=[(5, 4), ints(3, 5)]),
    case("LinearCrossEntropyLoss", 4, 3, out_features=(2,), bias=True, weight=unit(3), ignore_index=1,
         x=[(5, 4), ints(3, 5, 2)]),
]
CASES = [*ELEMENTWISE, *SHAPES, *PADDINGS, *CONVOLUTIONS, *POOLINGS, *NORMS, *DROPOUTS, *LINEARS, *RECURRENT,
         *ATTENTION, *DISTANCES, *LOSSES]
cases = pytest.mark.parametrize("name, args, kwargs, x, flags", CASES)


# ── tools ─────────────────────────────────────────────────────────────────────────────────────
def build(lib, name, args, kwargs):
    lib.manual_seed(0)
    return getattr(lib.nn, name)(*(given(lib, a) for a in args), **given(lib, kwargs))


def tensors(lib, tree):
    """All tensors in nested tuples, in order."""
    if isinstance(tree, lib.Tensor):
        return [tree]
    return [t for part in tree for t in tensors(lib, part)] if isinstance(tree, (tuple, list)) else []


def call(lib, module, x):
    """The module's output, and its floating point inputs, which are asked for their gradients."""
    inputs = [given(lib, v) for v in x]
    options = inputs.pop() if isinstance(inputs[-1], dict) else {}
    leaves = [t for v, value in zip(x, inputs) if getattr(getattr(v, "flags", None), "writeable", True)
              for t in tensors(lib, value) if t.is_floating_point()]
    for leaf in leaves:
        leaf.requires_grad_()
    if getattr(module, "inplace", False):
        inputs[0] = inputs[0].clone()
    lib.manual_seed(1)
    return module(*inputs, **options), leaves


def pull(lib, output):
    """Backpropagate unequal numbers; an output without a history is left alone."""
    outputs = [t for t in tensors(lib, output) if t.requires_grad]
    if outputs:
        weights = [lib.tensor(unit(*t.shape), dtype=t.dtype) for t in outputs]
        sum((t * w).sum() for t, w in zip(outputs, weights)).backward()


def arrays(tensors):
    return [None if t is None else t.detach().numpy() for t in tensors]


def assert_same(ours, theirs, rtol=1e-4, atol=2e-5):
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs):
        assert (a is None) == (b is None)
        if a is not None:
            assert a.shape == b.shape and a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


def state(module):
    return {name: t.detach().numpy().copy() for name, t in module.state_dict().items()}


# ── with PyTorch ──────────────────────────────────────────────────────────────────────────────
@oracle
@cases
def test_constructs_as_pytorch(name, args, kwargs, x, flags):
    """Print-out, modes, names, shapes and order of the state; initial values, and what is left of the random stream."""
    made, streams = [], []
    for lib in (tg, torch):
        module = build(lib, name, args, kwargs)
        if name.startswith("Lazy"):
            assert "Lazy" in repr(module)
            call(lib, module, x)
            module.reset_parameters()
        made.append(module)
        streams.append(lib.rand(3).numpy())
    ours, theirs = made
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    assert [p.requires_grad for p in ours.parameters()] == [p.requires_grad for p in theirs.parameters()]
    assert_same(list(state(ours).values()), list(state(theirs).values()), rtol=1e-6, atol=1e-7)
    assert_same(*([values] for values in streams))
    constants = getattr(theirs, "__constants__", [])
    assert all(_plain(getattr(ours, c)) == _plain(getattr(theirs, c)) for c in constants)


def _plain(value):
    return value if isinstance(value, (bool, int, float, str, tuple, list, type(None))) else type(value).__name__


@oracle
@cases
@pytest.mark.parametrize("training", [True, False])
def test_computes_as_pytorch(name, args, kwargs, x, flags, training):
    """Output, buffers, and all gradients, from the same state."""
    results = []
    ours, theirs = (build(lib, name, args, kwargs) for lib in (tg, torch))
    for lib, module in ((tg, ours), (torch, theirs)):
        if name.startswith("Lazy"):
            call(lib, module, x)
    ours.load_state_dict({n: tg.tensor(t) for n, t in state(theirs).items()})
    for lib, module in ((tg, ours), (torch, theirs)):
        output, leaves = call(lib, module.train(training), x)
        pull(lib, output)
        results.append([arrays(tensors(lib, output)), arrays(module.buffers()), arrays(t.grad for t in leaves),
                        arrays(p.grad for p in module.parameters())])
    for a, b in zip(*results):
        if flags["noisy"] and training:
            assert [v is None or v.shape for v in a] == [v is None or v.shape for v in b]
        else:
            assert_same(a, b)


@oracle
@cases
def test_exchanges_state_with_pytorch(name, args, kwargs, x, flags):
    """A state that one library has trained can be loaded by the other, and gives the same results."""
    for one, other in ((tg, torch), (torch, tg)):
        giver, taker = build(one, name, args, kwargs), build(other, name, args, kwargs)
        if name.startswith("Lazy"):
            call(one, giver, x)
            call(other, taker, x)
        for parameter in giver.parameters():
            parameter.data.mul_(1.5)
        taker.load_state_dict({n: other.tensor(t) for n, t in state(giver).items()})
        given_out, taken_out = call(one, giver.eval(), x)[0], call(other, taker.eval(), x)[0]
        assert_same(arrays(tensors(one, given_out)), arrays(tensors(other, taken_out)))


# ── without it ────────────────────────────────────────────────────────────────────────────────
@cases
def test_gradient_along_a_direction(name, args, kwargs, x, flags):
    """Along a random direction in inputs and parameters, the output changes as the gradients predict."""
    module = build(tg, name, args, kwargs)
    if name.startswith("Lazy"):
        call(tg, module, x)
    x = [_in_double(v) for v in x]
    module = module.double().eval()
    output, leaves = call(tg, module, x)
    assert all(np.isfinite(a).all() for a in arrays(tensors(tg, output)))
    pull(tg, output)
    places = [t for t in (*leaves, *module.parameters()) if t.grad is not None]
    assert all(t.grad.shape == t.shape for t in places)
    if flags["rough"] or not places:
        return
    steps = [tg.tensor(stream(i, *t.shape).uniform(-1, 1, t.shape)) for i, t in enumerate(places)]
    predicted = sum(float((t.grad * s).sum()) for t, s in zip(places, steps))
    assert predicted == pytest.approx(_slope(module, x, leaves, places, steps), rel=1e-4, abs=1e-5)


def _in_double(v):
    if isinstance(v, tuple):
        return tuple(map(_in_double, v))
    if not isinstance(v, np.ndarray) or v.dtype != np.float32:
        return v
    return v.astype(np.float64) if v.flags.writeable else fixed(v.astype(np.float64))


def _slope(module, x, leaves, places, steps, eps=1e-6):
    """(f(+eps) - f(-eps)) / 2 eps, where f weighs the outputs as `pull` does."""
    start = [t.detach().clone() for t in places]

    def value(sign):
        with tg.no_grad():
            for t, at, step in zip(places, start, steps):
                t.copy_(at + sign * eps * step)
        moved = iter(leaves)
        inputs = [_replaced(v, moved) for v in x]
        outputs = tensors(tg, call(tg, module, inputs)[0])
        return sum(float((t.detach() * tg.tensor(unit(*t.shape), dtype=t.dtype)).sum())
                   for t in outputs if t.is_floating_point())

    return (value(1) - value(-1)) / (2 * eps)


def _replaced(v, moved):
    """An input of a case with the moved values in the place of its floats."""
    if isinstance(v, tuple):
        return tuple(_replaced(a, moved) for a in v)
    takes_part = isinstance(v, np.ndarray) and v.dtype.kind == "f" and v.flags.writeable
    return next(moved).detach().numpy().copy() if takes_part else v


# ── errors ────────────────────────────────────────────────────────────────────────────────────
def wrong(error, name, *args, x=None, **kwargs):
    return pytest.param(error, name, args, kwargs, x and drawn(x), id=name)


ERRORS = [
    wrong(TypeError, "Linear", 3), wrong(TypeError, "ELU", beta=2), wrong(TypeError, "Softmax", 1, 2),
    wrong(ValueError, "Bilinear", 0, 2, 3), wrong(AssertionError, "Hardtanh", 2, 1),
    wrong(ValueError, "Softmax2d", x=[(2, 3)]), wrong(TypeError, "Unflatten", 1, 2),
    wrong(TypeError, "Unflatten", 1, (2, "a")),
    wrong(ValueError, "Dropout", 1.5), wrong(ValueError, "AlphaDropout", -0.1), wrong(ValueError, "GroupNorm", 3, 4),
    wrong(ValueError, "Conv2d", 3, 4, 3, groups=2), wrong(ValueError, "Conv2d", 4, 3, 3, groups=2),
    wrong(ValueError, "Conv2d", 4, 4, 3, groups=0), wrong(ValueError, "Conv2d", 4, 4, 3, 2, "same"),
    wrong(ValueError, "ConvTranspose2d", 4, 4, 3, padding_mode="reflect"),
    wrong(ValueError, "ConvTranspose2d", 4, 2, 3, stride=2, x=[IMAGE, [14, 20]]),
    wrong(ValueError, "ConvTranspose2d", 4, 2, 3, stride=2, x=[IMAGE, [14, 20, 2]]),
    wrong(RuntimeError, "LazyConv2d", 4, 3, x=[(2, 3)]), wrong(ValueError, "LazyConv2d", 4, 3, groups=2, x=[(3, 8, 8)]),
    wrong(ValueError, "CircularPad2d", 1, x=[(2, 3)]), wrong(ValueError, "FractionalMaxPool2d", 2),
    wrong(ValueError, "FractionalMaxPool3d", 2, 2, 0.5), wrong(ValueError, "FractionalMaxPool2d", 2, output_ratio=1.5),
    wrong(ValueError, "FractionalMaxPool3d", 0, 2), wrong(ValueError, "BatchNorm1d", 4, x=[IMAGE]),
    wrong(ValueError, "BatchNorm2d", 4, x=[SEQUENCE]), wrong(ValueError, "BatchNorm3d", 4, x=[SEQUENCE]),
    wrong(ValueError, "InstanceNorm2d", 4, x=[(2, 3)]), wrong(ValueError, "InstanceNorm1d", 4, affine=True, x=[(3, 7)]),
    wrong(ValueError, "SyncBatchNorm", 4, x=[(4,)]), wrong(ValueError, "SyncBatchNorm", 0, x=[(2, 0, 3)]),
    wrong(ValueError, "CrossMapLRN2d", 3, x=[SEQUENCE]), wrong(AssertionError, "Embedding", 4, 3, 4),
    wrong(AssertionError, "Embedding", 4, 3, _weight=floats(3, 4)),
    wrong(AssertionError, "EmbeddingBag", 4, 3, padding_idx=-5),
    wrong(ValueError, "RNN", 3, 4, nonlinearity="sin"), wrong(ValueError, "GRU", 3, 4, proj_size=2),
    wrong(ValueError, "LSTM", 3, 4, proj_size=4), wrong(ValueError, "LSTM", 3, 4, proj_size=-1),
    wrong(ValueError, "LSTM", 3, 4, dropout=2), wrong(ValueError, "LSTM", 3, 4, dropout=True),
    wrong(TypeError, "GRU", 3.0, 4), wrong(TypeError, "GRU", 3, 4.0), wrong(ValueError, "GRU", 0, 4),
    wrong(ValueError, "GRU", 3, 0), wrong(ValueError, "GRU", 3, 4, 0), wrong(TypeError, "GRU", 3, 4, 1, 1),
    wrong(TypeError, "GRU", 3, 4, batch_first=1), wrong(ValueError, "RNNBase", "CTRNN", 3, 4),
    wrong(ValueError, "RNN", 4, 6, x=[(4,)]), wrong(ValueError, "GRU", 4, 6, x=[(4,)]),
    wrong(RuntimeError, "RNN", 4, 6, x=[(5, 3)]), wrong(RuntimeError, "RNN", 4, 6, x=[(5, 4), (1, 1, 6)]),
    wrong(RuntimeError, "GRU", 4, 6, x=[STEPS, (1, 6)]), wrong(RuntimeError, "GRU", 4, 6, x=[STEPS, (1, 2, 6)]),
    wrong(ValueError, "GRU", 4, 6, x=[floats(*STEPS).astype(np.float64)]),
    wrong(RuntimeError, "LSTM", 4, 6, x=[STEPS, (floats(1, 6), floats(1, 6))]),
    wrong(RuntimeError, "LSTM", 4, 6, x=[(5, 4), (floats(1, 1, 6), floats(1, 6))]),
    wrong(RuntimeError, "LSTM", 4, 6, x=[STEPS, (floats(1, 3, 6), floats(1, 3, 5))]),
    wrong(ValueError, "RNNCell", 4, 6, x=[STEPS]), wrong(ValueError, "GRUCell", 4, 6, x=[(3, 4), STEPS]),
    wrong(ValueError, "LSTMCell", 4, 6, x=[(3, 4), (floats(3, 6), floats(1, 3, 6))]),
    wrong(RuntimeError, "RNNCell", 4, 6, nonlinearity="sin", x=[(3, 4)]),
    wrong(ValueError, "MultiheadAttention", 0, 2), wrong(AssertionError, "MultiheadAttention", 5, 2),
    wrong(AssertionError, "MultiheadAttention", 8, 2, x=[(5, 3, 8)] * 3 + [ints(2, 3, 5)]),
    wrong(RuntimeError, "TransformerEncoderLayer", 8, 2, activation="sin"),
    wrong(RuntimeError, "Transformer", 8, 2, 1, 1, 4, x=[(5, 3, 8), (5, 2, 8)]),
    wrong(RuntimeError, "Transformer", 8, 2, 1, 1, 4, x=[(5, 3, 8), (5, 3, 6)]),
    wrong(ValueError, "AdaptiveLogSoftmaxWithLoss", 8, 10, []),
    wrong(ValueError, "AdaptiveLogSoftmaxWithLoss", 8, 10, [5, 5]),
    wrong(ValueError, "AdaptiveLogSoftmaxWithLoss", 8, 10, [10]),
    wrong(ValueError, "AdaptiveLogSoftmaxWithLoss", 8, 10, [0.5]),
    wrong(RuntimeError, "AdaptiveLogSoftmaxWithLoss", 8, 10, [5], x=[(2, 8), np.array([1, 10])]),
    wrong(RuntimeError, "AdaptiveLogSoftmaxWithLoss", 8, 10, [5], x=[(2, 8), np.array([1])]),
    wrong(RuntimeError, "AdaptiveLogSoftmaxWithLoss", 8, 10, [5], x=[(2, 8), np.array(1)]),
    wrong(RuntimeError, "AdaptiveLogSoftmaxWithLoss", 8, 10, [5], x=[(2, 8), np.array([[1]])]),
    wrong(TypeError, "HuberLoss", delta="a"), wrong(ValueError, "MultiMarginLoss", 3),
    wrong(ValueError, "MultiMarginLoss", weight=unit(2, 2)), wrong(ValueError, "TripletMarginLoss", 0),
    wrong(ValueError, "TripletMarginWithDistanceLoss", margin=-1), wrong(TypeError, "GaussianNLLLoss", True),
    wrong(RuntimeError, "LinearCrossEntropyLoss", 4, 3, weight=unit(2)),
    wrong(RuntimeError, "LinearCrossEntropyLoss", 4, 3, label_smoothing=2),
    wrong(ValueError, "LinearCrossEntropyOptions", acc_policy="best"),
    wrong(ValueError, "LinearCrossEntropyOptions", chunking_method="aspect_ratio:0"),
    wrong(ValueError, "LinearCrossEntropyOptions", batch_chunk_size=0),
    wrong(ValueError, "LinearCrossEntropyOptions", acc_dtype=lambda lib: lib.int64),
]


@pytest.mark.parametrize("error, name, args, kwargs, x", ERRORS)
def test_refuses(error, name, args, kwargs, x):
    """Wrong arguments and inputs raise PyTorch's exception, with the first line of its message."""
    messages = []
    for lib in filter(None, (tg, torch)):
        with pytest.raises(error) as caught:
            module = build(lib, name, args, kwargs)
            if x is not None:
                call(lib, module, x)
        assert type(caught.value) is error
        messages.append(str(caught.value).splitlines()[0])
    if error is not TypeError or "argument" not in messages[-1]:  # how Python says it, is Python's affair
        assert len(set(messages)) == 1
