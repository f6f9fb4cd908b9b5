"""Which page of the reference a function or layer is on: the families of the package's modules that define them."""
from __future__ import annotations

import inspect
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple


class Family(NamedTuple):
    """A page's name, title and line in the index, and the files whose functions or classes it documents."""

    page: str
    title: str
    about: str
    files: tuple[str, ...]


def _family(page: str, title: str, about: str, files: str) -> Family:
    return Family(page, title, about, tuple(files.split()))


# The last family of each list takes what the others do not name.
FUNCTIONS = [
    _family("creation", "Creating tensors", "zeros, ranges, conversions from lists and arrays",
            "creation sequences conversion tensor_types"),
    _family("shape", "Shapes and views", "reshape, permute, join, split", "shape joining splitting copies"),
    _family("indexing", "Indexing", "gather, scatter, select, mask", "indexing masks segments"),
    _family("arithmetic", "Arithmetic", "sums, products, quotients, powers, bounds: functions of two tensors", "math"),
    _family("pointwise", "Pointwise functions", "exp, sin, round, erf: functions of each element", "pointwise special"),
    _family("comparison", "Comparison and logic", "eq, isclose, where, logical and bitwise functions", "comparison"),
    _family("reduction", "Reductions", "sum, mean, max, var, norms, running sums, histograms",
            "reduction statistics norms cumulative"),
    _family("sorting", "Sorting and searching", "sort, topk, unique, searchsorted", "sorting"),
    _family("matrix", "Matrices", "products, decompositions, einsum",
            "matrix linalg factorizations elimination solving lowrank einsum"),
    _family("random", "Random numbers", "rand, randn, bernoulli, multinomial", "random"),
    _family("layers", "Functions of layers",
            "activations, losses, convolutions, pooling, normalization under their names in the root",
            "activation loss convolution pooling normalization shuffle sampling linear distance"),
    _family("signals", "Signals", "short-time Fourier transforms and windows", "stft windows"),
    _family("other", "Other functions", "rare functions, and names that PyTorch removed",
            "miscellaneous removed _register"),
]
FUNCTIONAL = [
    _family("activation", "Activations", "relu, gelu, softmax and others", "activation pointwise"),
    _family("pooling", "Pooling", "windows reduced to a maximum or mean, and their inverses", "pooling"),
    _family("loss", "Losses", "a number that says how wrong a prediction is", "loss distance"),
    _family("layers", "Other functions of layers",
            "convolution, attention, normalization, dropout, embedding, resampling", ""),
]
LAYERS = [
    _family("activation", "Activations and attention", "ReLU, GELU, Softmax, MultiheadAttention", "activation"),
    _family("convolution", "Convolutions", "Conv1d to Conv3d, transposed and lazy ones, Fold and Unfold", "conv fold"),
    _family("pooling", "Pooling", "MaxPool, AvgPool, adaptive and fractional ones", "pooling"),
    _family("normalization", "Normalization", "BatchNorm, LayerNorm, GroupNorm, InstanceNorm, RMSNorm",
            "batchnorm instancenorm normalization"),
    _family("recurrent", "Recurrent layers and transformers", "RNN, LSTM, GRU, their cells, Transformer",
            "rnn transformer"),
    _family("loss", "Losses and distances", "CrossEntropyLoss, MSELoss and the others",
            "loss adaptive distance linear_cross_entropy_options"),
    _family("containers", "Modules and containers", "Module, Parameter, Sequential, ModuleList",
            "module container parameter"),
    _family("layers", "Linear layers, dropout, padding, resampling",
            "Linear, Embedding, Dropout, padding, Flatten, Upsample", ""),
]


def file_of(thing: Any) -> str:
    """Return the name of the file that defines a function or class, without its ending."""
    if isinstance(thing, type):
        return thing.__module__.rpartition(".")[2]
    code = getattr(inspect.unwrap(thing), "__code__", None)
    return Path(code.co_filename).stem if code else ""


def sorted_into(families: list[Family], things: Iterable[tuple[str, Any]]) -> dict[Family, list[tuple[str, Any]]]:
    """Return the things of each family, by name."""
    of_file = {file: family for family in families for file in family.files}
    found: dict[Family, list[tuple[str, Any]]] = {family: [] for family in families}
    for name, thing in sorted(things):
        found[of_file.get(file_of(thing), families[-1])].append((name, thing))
    return found
