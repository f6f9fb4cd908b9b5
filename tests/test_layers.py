"""The layers of `nn`: one table of cases, compared with PyTorch where it is installed, and checked by themselves."""
import copy
import pickle
import warnings

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


# ── single layers ─────────────────────────────────────────────────────────────────────────────
def test_documented():
    """Each layer documents its input, output and weights, with an example."""
    blocks = ("Parameters:", "Input:", "Output:", "Weights:", ">>> import tensorgrad as torch", "torch.nn.")
    families = [getattr(tg.nn.modules, name) for name in FAMILIES]
    names = [name for family in families for name in family.__all__]
    assert len(names) > 150
    lacking = {name: block for name in names for block in blocks if block not in (getattr(tg.nn, name).__doc__ or "")}
    assert not lacking


FAMILIES = """activation adaptive batchnorm channelshuffle conv distance dropout flatten fold instancenorm
linear linear_cross_entropy_options loss normalization padding pixelshuffle pooling rnn sparse transformer
upsampling""".split()


@oracle
def test_nothing_is_missing():
    assert set(torch.nn.modules.__all__) <= set(tg.nn.modules.__all__)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))], ids=["deepcopy", "pickle"])
@pytest.mark.parametrize("name, args, shape", [
    ("Conv2d", (4, 2, 3), IMAGE), ("BatchNorm2d", (4,), IMAGE), ("LSTM", (4, 6, 2), STEPS), ("MaxPool2d", (2,), IMAGE),
    ("TransformerEncoderLayer", (4, 2, 8), STEPS), ("Embedding", (9, 3), None), ("ELU", (0.5,), IMAGE)])
def test_copies(copied, name, args, shape):
    module = build(tg, name, args, {}).eval()
    x = tg.tensor(floats(*shape) if shape else ints(9, 4))
    assert repr(copied(module)) == repr(module)
    assert_same(arrays(tensors(tg, copied(module)(x))), arrays(tensors(tg, module(x))))


def test_settings_can_be_named_or_counted():
    class Wide(tg.nn.MaxPool2d):
        def __init__(self):
            super().__init__(5, padding=2)

    assert (Wide().kernel_size, Wide().stride, Wide().padding) == (5, 5, 2)
    assert repr(tg.nn.ReLU(inplace=True)) == repr(tg.nn.ReLU(True)) == "ReLU(inplace=True)"
    assert tg.nn.ELU.__constants__ == ["alpha", "inplace"]
    assert tg.nn.L1Loss(None, None, "sum").reduction == "sum"


def test_inplace_writes_into_the_input():
    x = tg.tensor([-1.0, 2.0])
    assert tg.nn.ReLU(inplace=True)(x) is x
    assert x.tolist() == [0.0, 2.0]


@pytest.mark.parametrize("flags, reduction", [
    ((None, None), "mean"), ((True, None), "mean"), ((False, None), "sum"), ((None, False), "none"),
    ((False, False), "none"), ((False, True), "sum")])
def test_old_flags_of_losses(flags, reduction):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert tg.nn.MSELoss(*flags).reduction == reduction
    assert len(caught) == (flags != (None, None))


def test_deprecated_names_warn():
    with pytest.warns(FutureWarning, match="`min_value` is deprecated and renamed to `min_val`"):
        assert tg.nn.Hardtanh(min_value=-3).min_val == -3
    with pytest.warns(FutureWarning, match="`NLLLoss2d` has been deprecated"):
        tg.nn.NLLLoss2d()


def test_batch_norm_follows_its_batches():
    norm, x = tg.nn.BatchNorm1d(3, momentum=None), tg.tensor(floats(8, 3))
    norm(x[:4])
    norm(x[4:])
    halves = floats(8, 3).reshape(2, 4, 3)
    np.testing.assert_allclose(norm.running_mean.numpy(), halves.mean(1).mean(0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(norm.running_var.numpy(), halves.var(1, ddof=1).mean(0), rtol=1e-5)
    assert norm.num_batches_tracked.item() == 2
    norm.reset_running_stats()
    assert norm.running_var.tolist() == [1, 1, 1] and norm.num_batches_tracked.item() == 0


def test_batch_norm_loads_a_state_without_the_count():
    norm = tg.nn.BatchNorm1d(3)
    norm.num_batches_tracked.fill_(7)
    norm.load_state_dict({n: t for n, t in norm.state_dict().items() if n != "num_batches_tracked"})
    assert norm.num_batches_tracked.item() == 7


def test_instance_norm_refuses_running_statistics_that_it_does_not_track():
    state = {"running_mean": tg.zeros(3), "running_var": tg.ones(3)}
    with pytest.raises(RuntimeError, match="Unexpected running stats buffer"):
        tg.nn.InstanceNorm1d(3).load_state_dict(state)


def test_convert_sync_batchnorm():
    model = tg.nn.Sequential(tg.nn.Linear(3, 4), tg.nn.Sequential(tg.nn.BatchNorm1d(4, momentum=0.3))).eval()
    norm = model[1][0]
    converted = tg.nn.SyncBatchNorm.convert_sync_batchnorm(model)
    assert converted is model and type(model[1][0]) is tg.nn.SyncBatchNorm
    assert model[1][0].weight is norm.weight and model[1][0].momentum == 0.3 and not model[1][0].training


def test_lazy_modules_take_their_shapes_from_a_state():
    full, lazy = tg.nn.Linear(3, 2), tg.nn.LazyLinear(2)
    assert lazy.has_uninitialized_params()
    lazy.load_state_dict(full.state_dict())
    assert_same(arrays([lazy(tg.ones(4, 3))]), arrays([full(tg.ones(4, 3))]))
    assert type(lazy) is tg.nn.Linear and lazy.in_features == 3


def test_lazy_modules_in_a_model():
    tg.manual_seed(0)
    model = tg.nn.Sequential(tg.nn.LazyConv2d(4, 3), tg.nn.LazyBatchNorm2d(), tg.nn.Flatten(), tg.nn.LazyLinear(2))
    assert model(tg.tensor(floats(2, 3, 5, 5))).shape == (2, 2)
    assert [type(m).__name__ for m in model] == ["Conv2d", "BatchNorm2d", "Flatten", "Linear"]
    assert model[0].weight.shape == (4, 3, 3, 3) and model[1].num_features == 4 and model[3].in_features == 36


def test_dropout_keeps_what_a_mask_keeps():
    dropout, x = tg.nn.Dropout(0.2), tg.tensor(floats(3, 4), requires_grad=True)
    mask = tg.tensor(signs(3, 4) > 0)
    dropout._generate_mask = lambda input: mask
    out = dropout(x)
    out.sum().backward()
    assert_same(arrays([out, x.grad]), [np.where(mask.numpy(), floats(3, 4) / 0.8, 0).astype(np.float32),
                                        (mask.numpy() / 0.8).astype(np.float32)])
    assert (dropout.eval()(x) == x).all()


def test_embeddings_from_pretrained():
    table = tg.tensor(floats(5, 3))
    layer = tg.nn.Embedding.from_pretrained(table, padding_idx=1)
    assert not layer.weight.requires_grad and (layer(tg.tensor([1, 4])) == table[[1, 4]]).all()
    assert tg.nn.Embedding.from_pretrained(table, freeze=False).weight.requires_grad
    bags = tg.nn.EmbeddingBag.from_pretrained(table, mode="sum")
    assert_same(arrays([bags(tg.tensor([[0, 2]]))]), arrays([(table[0] + table[2]).unsqueeze(0)]))
    with pytest.raises(AssertionError, match="expected to be 2-dimensional"):
        tg.nn.Embedding.from_pretrained(tg.zeros(3))


def test_padding_index_gets_no_gradient():
    layer = tg.nn.Embedding(5, 3, padding_idx=-4)
    assert layer.padding_idx == 1 and (layer.weight[1] == 0).all()
    layer(tg.tensor([1, 2, 2])).sum().backward()
    assert layer.weight.grad.sum(1).tolist() == [0, 0, 6, 0, 0]


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_packed_sequences_stop_at_their_ends(kind):
    """Each sequence of a packed batch has the result that it has alone, in any order of lengths."""
    tg.manual_seed(0)
    rnn, x, lengths = getattr(tg.nn, kind)(4, 6, 2, bidirectional=True), tg.tensor(floats(5, 3, 4)), [2, 5, 3]
    packed = tg.nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
    output, hidden = rnn(packed)
    output, _ = tg.nn.utils.rnn.pad_packed_sequence(output)
    for i, n in enumerate(lengths):
        alone, last = rnn(x[:n, i])
        assert_same(arrays([output[:n, i]]), arrays([alone]))
        assert_same(arrays(h[:, i] for h in tensors(tg, hidden)), arrays(tensors(tg, last)))
    again, _ = rnn(packed, _like(hidden))
    assert again.data.shape == (10, 12)


def _like(hidden):
    return tuple(map(tg.zeros_like, hidden)) if isinstance(hidden, tuple) else tg.zeros_like(hidden)


def test_recurrent_weights_are_found_where_they_are():
    rnn = tg.nn.LSTM(4, 6, 2, bidirectional=True, proj_size=3)
    names = [n for n, _ in rnn.named_parameters()]
    assert names[:5] == ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0", "weight_hr_l0"]
    assert names[5:7] == ["weight_ih_l0_reverse", "weight_hh_l0_reverse"] and len(names) == 20
    assert [len(weights) for weights in rnn.all_weights] == [5] * 4
    rnn.weight_ih_l0 = tg.nn.Parameter(tg.zeros_like(rnn.weight_ih_l0))
    assert rnn.all_weights[0][0] is rnn.weight_ih_l0 and rnn._flat_weights[0] is rnn.weight_ih_l0
    assert rnn.flatten_parameters() is None


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_cells_are_steps_of_layers(kind):
    tg.manual_seed(0)
    layer, cell, x = getattr(tg.nn, kind)(4, 6), getattr(tg.nn, kind + "Cell")(4, 6), tg.tensor(floats(5, 3, 4))
    cell.load_state_dict({n.removesuffix("_l0"): t for n, t in layer.state_dict().items()})
    hidden, outputs = None, []
    for step in x:
        hidden = cell(step, hidden)
        outputs.append(hidden[0] if kind == "LSTM" else hidden)
    assert_same(arrays([tg.stack(outputs)]), arrays([layer(x)[0]]))


def test_attention_does_not_look_where_a_mask_hides():
    tg.manual_seed(0)
    attention, x = tg.nn.MultiheadAttention(8, 2, batch_first=True), tg.tensor(floats(3, 5, 8))
    _, weights = attention(x, x, x, key_padding_mask=tg.tensor(padded(5, 3, 4)))
    assert (weights[1, :, 3:] == 0).all() and tg.allclose(weights.sum(-1), tg.ones(3, 5))
    _, weights = attention(x, x, x, attn_mask=tg.tensor(future(5)), average_attn_weights=False)
    assert weights.shape == (3, 2, 5, 5) and (weights.triu(1) == 0).all()
    assert attention(x, x, x, need_weights=False)[1] is None


@oracle
def test_masks_merge_as_in_pytorch():
    for attn, padding in ((None, None), (future(5), None), (None, padded(5, 3, 4)), (future(5), padded(5, 3, 4))):
        merged = []
        for lib in (tg, torch):
            masks = [None if m is None else lib.tensor(m.astype(np.float32)) for m in (attn, padding)]
            merged.append(lib.nn.MultiheadAttention(8, 2).merge_masks(*masks, lib.zeros(3, 5, 8)))
        assert merged[0][1] == merged[1][1]
        assert_same(arrays([merged[0][0]]), arrays([merged[1][0]]))


def test_transformer_masks():
    mask = tg.nn.Transformer.generate_square_subsequent_mask(3)
    assert mask.tolist() == [[0, -np.inf, -np.inf], [0, 0, -np.inf], [0, 0, 0]]
    assert tg.nn.Transformer.generate_square_subsequent_mask(2, dtype=tg.float64).dtype == tg.float64


@oracle
@pytest.mark.parametrize("hidden, mask_check", [
    (padded(5, 3, 4), True), (padded(5, 3, 4), False), (padded(5, 3, 4)[:, ::-1].copy(), True)])
def test_encoder_without_gradients_sets_padding_to_zero(hidden, mask_check):
    """As PyTorch's nested tensors do, where they take part."""
    outputs = []
    for lib in (tg, torch):
        lib.manual_seed(0)
        layer = lib.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        encoder = lib.nn.TransformerEncoder(layer, 2, mask_check=mask_check).eval()
        with lib.no_grad():
            outputs.append(encoder(lib.tensor(floats(3, 5, 8)), src_key_padding_mask=lib.tensor(hidden)))
    assert_same(arrays(outputs[:1]), arrays(outputs[1:]))


@oracle
@pytest.mark.parametrize("options, more", [
    ({}, {}), ({"batch_first": True}, {}), ({"batch_first": True, "norm_first": True}, {}),
    ({"batch_first": True, "nhead": 1}, {}), ({"batch_first": True, "bias": False}, {}),
    ({"batch_first": True, "activation": lambda lib: lib.tanh}, {}), ({}, {"enable_nested_tensor": False}),
    ({"batch_first": True}, {"enable_nested_tensor": False})])
def test_encoder_warns_as_pytorch(options, more):
    said = []
    for lib in (tg, torch):
        options = {"d_model": 8, "nhead": 2, "dim_feedforward": 4, **options}
        layer = lib.nn.TransformerEncoderLayer(**given(lib, options))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            encoder = lib.nn.TransformerEncoder(layer, 1, **more)
        said.append(([str(w.message) for w in caught], encoder.use_nested_tensor, layer.activation_relu_or_gelu))
    assert said[0] == said[1]


@oracle
def test_adaptive_softmax_tells_all_classes():
    results = []
    for lib in (tg, torch):
        lib.manual_seed(0)
        softmax = lib.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [3, 10], div_value=2.0)
        with lib.no_grad():
            for parameter in softmax.parameters():
                parameter.mul_(4)
        x = lib.tensor(floats(30, 8))
        results.append(arrays([softmax.log_prob(x), softmax.predict(x), *softmax(x, softmax.predict(x))]))
    assert_same(*results)
    assert len(np.unique(results[0][1])) > 5


def test_device_and_dtype_reach_the_weights():
    for name, args in (("Linear", (3, 2)), ("Conv2d", (3, 2, 1)), ("BatchNorm1d", (3,)), ("LSTM", (3, 2)),
                       ("LayerNorm", (3,)), ("Embedding", (3, 2)), ("MultiheadAttention", (4, 2)), ("PReLU", ()),
                       ("GRUCell", (3, 2)), ("TransformerDecoderLayer", (4, 2)),
                       ("AdaptiveLogSoftmaxWithLoss", (4, 6, [2]))):
        module = getattr(tg.nn, name)(*args, device="cpu", dtype=tg.float64)
        assert {p.dtype for p in module.parameters()} == {tg.float64}


@oracle
@pytest.mark.parametrize("prefix", ["module.", "a"])
def test_prefixes_are_taken_off(prefix):
    states = []
    for lib in (tg, torch):
        state = lib.nn.Sequential(lib.nn.Linear(1, 1)).state_dict(prefix="module.")
        lib.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, prefix)
        states.append((list(state), list(state._metadata)))
    assert states[0] == states[1]


def test_a_causal_hint_stands_for_the_mask():
    """Where no weights are asked for, PyTorch goes by the hint alone, also over the keys that are added."""
    from nn_oracle import agree

    def program(torch):
        found = []
        x = torch.randn(3, 2, 4)
        for options in ({}, {"add_bias_kv": True}, {"add_zero_attn": True}):
            attention = torch.nn.MultiheadAttention(4, 2, **options)
            mask = torch.ones(3, 3).triu(1).bool()
            found += [attention(x, x, x, attn_mask=mask, is_causal=True, need_weights=needed)[0] for needed in (True, False)]
        return found
    agree(program)


@pytest.mark.parametrize("name", ["ReLU", "Softmax", "Hardtanh", "CrossEntropyLoss", "Linear", "Conv2d", "LSTM", "LayerNorm", "Embedding", "Fold"])
def test_arguments_that_do_not_fit(name):
    """Python's own errors, whichever way the constructor is made."""
    from nn_oracle import agree, raising

    def program(torch):
        layer = getattr(torch.nn, name)
        return [raising(lambda args=args, options=options: layer(*args, **options)) for args, options in (
            ((1,) * 20, {}), ((), {"foo": 1}), ((2,), {"foo": 1}), ((2, 2), {"foo": 1, "bar": 2}))]
    agree(program)
