"""Convolution on NumPy, in the fastest of three ways: rows, columns, or points. Depthwise ones differ.

Threads share the images. All ways compute in memory that is used again and again, no more of it than the cache holds.
"""
from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from ..core.dispatch import OpDispatch
from ..ops.convolution import Convolution, ConvolutionInput, ConvolutionWeight
from ..ops.windows import output_length
from ..runtime.thread_pool import spans
from . import columns_numpy as columns
from . import depthwise_numpy as depthwise
from . import rows_numpy as rows
from . import winograd_numpy as winograd
from .convolution_costs import ranked
from .windows_arrays import padded
from .windows_numpy import BLOCK, WIDE, along

CPU = OpDispatch.backend("cpu")


def served(x: Any, w: Any) -> bool:
    return bool(x.dtype == w.dtype and x.dtype.kind == "f" and x.dtype.itemsize > 2 and x.size and w.size)


def is_depthwise(w: Any, groups: int) -> bool:
    """Return True for a depthwise convolution, whose channels have separate kernels: it has no matrix product."""
    return groups > 1 and w.shape[1] == 1 and w.shape[0] == groups


def by_groups(task: Any, groups: int, how: Any, *arrays: Any) -> None:
    """Call `task(*arrays, how)` for each group; arguments are (array, axis to split). 1-d convolutions get a first axis of length 1."""
    if len(how[0]) == 1:
        how = ((1, *how[0]), (0, *how[1]), (1, *how[2]))
        arrays = tuple((a if a is None or a.ndim == 1 else a[:, :, None], axis) for a, axis in arrays)
    if groups == 1:
        return task(*[a for a, _ in arrays], how)
    for i in range(groups):
        task(*(None if a is None else a[(slice(None),) * axis + (spans(a.shape[axis], groups)[i],)] for a, axis in arrays), how)


COMPUTE = {         # functions that fill the output, or a gradient; they return False if values are not finite and another way must be used
    "output": {"rows": rows.correlate, "columns": columns.correlate, "points": winograd.correlate},
    "input": {"rows": rows.back, "columns": columns.back, "points": winograd.back},
    "weight": {"rows": rows.weight, "columns": columns.weight, "points": winograd.weight},
}


def ways(of: str, x: Any, w: Any, y: Any, how: Any) -> tuple[str, ...]:
    """Return the ways to compute `of` from the other two arrays, the fastest first."""
    return ways_of_shapes(of, x.shape, w.shape, y.shape, how)


@lru_cache(1 << 12)
def ways_of_shapes(of: str, x: Any, w: Any, y: Any, how: Any) -> tuple[str, ...]:
    numbers = columns.columns_of(x[2:], w[1], w[2:], y[2:], how).height * prod(y[2:])      # 0: nothing but padding is seen
    return ranked(of, ("rows", *["columns"] * (0 < numbers <= BLOCK), *["points"] * winograd.fits(w[2:], how)), x, w, y, how[0])


def compute(of: str, found: tuple[str, ...], *arrays: Any) -> bool:
    """Compute `of` in the first way that succeeds; return True if one does."""
    return any(COMPUTE[of][way](*arrays) is not False for way in found)


def forward(x: Any, w: Any, b: Any, y: Any, how: Any) -> None:
    compute("output", ways("output", x, w, y, how), x, w, b, y, how)


def backward(y: Any, w: Any, b: Any, x: Any, how: Any) -> None:
    if not compute("input", ways("input", x, w, y, how), y, w, b, x, how):
        by_formula(y, w, b, x, how)


def depthwise_backward(y: Any, w: Any, b: Any, x: Any, how: Any) -> None:
    if not depthwise.back(y, w, b, x, how):
        by_formula(y, w, b, x, how, groups=len(w))


def by_formula(y: Any, w: Any, b: Any, x: Any, how: Any, groups: int = 1) -> None:
    """Fill x with the gradient of the input by the formula, since a kernel that is not finite must not reach other places."""
    stride, padding, dilation = how
    x[...] = ConvolutionInput.forward(CPU.xp, y, w, b, size=x.shape[2:], stride=stride, padding=padding, dilation=dilation, groups=groups)


def of_weight(y: Any, x: Any, out: Any, how: Any) -> None:
    compute("weight", ways("weight", x, out, y, how), y, x, out, how)


def is_matrix(w: Any, stride: Any, padding: Any, groups: int, places: int) -> bool:
    """Return True if the convolution is a matrix product, with enough places for a product per image to be fast."""
    return groups == 1 and prod(w.shape[2:]) == 1 and set(stride) == {1} and not any(padding) and places >= WIDE


@OpDispatch.register("convolution", "cpu")
def convolution(x: Any, w: Any, b: Any, *, stride: Any, padding: Any, dilation: Any, groups: int = 1) -> Any:
    length = output_length(x.shape[2:], w.shape[2:], stride, padding, dilation)
    if not served(x, w) or not prod(length):
        return Convolution.forward(CPU.xp, x, w, b, stride=stride, padding=padding, dilation=dilation, groups=groups)
    n, o = len(x), len(w)
    y = np.empty((n, o, *length), x.dtype)
    if is_depthwise(w, groups):
        by_groups(depthwise.correlate, 1, (stride, padding, dilation), (x, 1), (w, 0), (b, 0), (y, 1))
    elif is_matrix(w, stride, padding, groups, prod(length)):
        np.matmul(w.reshape(o, -1), x.reshape(n, x.shape[1], -1), out=y.reshape(n, o, -1))
        if b is not None:
            y += along(b, len(length))
    else:
        by_groups(forward, groups, (stride, padding, dilation), (x, 1), (w, 0), (b, 0), (y, 1))
    return y


@OpDispatch.register("convolution_input", "cpu")
def convolution_input(y: Any, w: Any, b: Any, *, size: Any, stride: Any, padding: Any, dilation: Any, groups: int = 1) -> Any:
    if not served(y, w) or not prod(size):
        return ConvolutionInput.forward(CPU.xp, y, w, b, size=size, stride=stride, padding=padding, dilation=dilation, groups=groups)
    n, c = len(y), w.shape[1] * groups
    x = np.empty((n, c, *size), y.dtype)
    if is_depthwise(w, groups):
        by_groups(depthwise_backward, 1, (stride, padding, dilation), (y, 1), (w, 0), (b, 0), (x, 1))
    elif is_matrix(w, stride, padding, groups, prod(size)) and y.shape[2:] == x.shape[2:]:
        np.matmul(w.reshape(len(w), -1).T, y.reshape(n, len(w), -1), out=x.reshape(n, c, -1))
        if b is not None:
            x += along(b, len(size))
    else:
        by_groups(backward, groups, (stride, padding, dilation), (y, 1), (w, 0), (b, 0), (x, 1))
    return x


@OpDispatch.register("convolution_weight", "cpu")
def convolution_weight(y: Any, x: Any, *, size: Any, stride: Any, padding: Any, dilation: Any, groups: int = 1) -> Any:
    if not served(y, x) or not prod(size):
        return ConvolutionWeight.forward(CPU.xp, y, x, size=size, stride=stride, padding=padding, dilation=dilation, groups=groups)
    o, c = y.shape[1], x.shape[1] // groups
    out = np.empty((o, c, *size), y.dtype)
    if groups > 1 and c == 1 and o == groups:
        by_groups(depthwise.weight, 1, (stride, padding, dilation), (y, 1), (x, 1), (out, 0))
    else:
        by_groups(of_weight, groups, (stride, padding, dilation), (y, 1), (x, 1), (out, 0))
    return out


@OpDispatch.register("columns", "cpu")
def windows(x: Any, *, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    """Return a copy of all windows."""
    (n, c, *size), length = x.shape, output_length(x.shape[2:], kernel, stride, padding, dilation)
    x = np.ascontiguousarray(padded(np, x, padding)).reshape(1, n * c, *(d + 2 * p for d, p in zip(size, padding, strict=True)))
    out = np.empty((n, c, *kernel, *length), x.dtype)
    CPU.assign(out.reshape(n * c, *kernel, *length), columns.seen_through(x, kernel, length, stride, dilation)[0])
    return out
