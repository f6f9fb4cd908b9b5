"""Matrix products on NumPy, always through BLAS.

Measured with OpenBLAS 0.3.31 and AVX-512, one core, float32: 32 rows times a column-major matrix (256, 1024), such as a
layer's w.T, take 0.18 ms; w times the rows as columns 0.09, and 0.02 to transpose the result. 2 rows times a matrix
(512, 2048) take 0.50 ms, times w.T 0.56; one by one 0.09.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ..core.dispatch import OpDispatch
from .shape_arrays import writeable

EXACT = float(1 << 53)      # integers below this are exact in double precision
ONE_BY_ONE = range(2, 4)    # rows that are multiplied one by one
FEW = range(4, 57)          # rows for which BLAS is slower with a transposed matrix
LARGE = 1 << 13             # elements of a matrix from which on this matters


@OpDispatch.register("matmul", "cpu")
def matmul(a: Any, b: Any) -> Any:
    """Multiply a stack with a matrix as one product; half precision and integers by way of BLAS's dtypes."""
    kind = a.dtype.kind
    if a.ndim <= 2 and a.dtype.char in "fdFD":
        return np.matmul(a, b) if b.size < LARGE else product(a, b)
    if kind == "f" and a.dtype.itemsize == 2:
        return np.asarray(_product(a.astype(np.float32), b.astype(np.float32))).astype(a.dtype)
    if kind in "iu" and b.ndim > 1 and a.size * b.shape[-1] > 1 << 12 and _exact_in_double(a, b):
        return _product(a.astype(np.float64), b.astype(np.float64)).astype(a.dtype)
    return _product(a, b)


@OpDispatch.register("linear_without_bias", "cpu")
def linear_without_bias(x: Any, w: Any) -> Any:
    return matmul(x, w.T)


def product(a: Any, b: Any) -> Any:
    """a @ b of matrices."""
    return np.ascontiguousarray(of_few(a, b)) if is_of_few(a, b) else np.matmul(a, b)


def is_of_few(a: Any, b: Any) -> bool:
    """Return True if a has a few rows and b is a large matrix."""
    return bool(a.ndim == b.ndim == 2 and 1 < a.shape[0] < FEW.stop and b.size >= LARGE)


def of_few(a: Any, b: Any) -> Any:
    """Return a @ b for a few rows a and a large matrix b. For a column-major b, this is the transpose of bᵀ @ aᵀ."""
    rows, turned = len(a), b.flags.f_contiguous
    if a.dtype != b.dtype or not (turned or b.flags.c_contiguous):
        return np.matmul(a, b)
    if rows in ONE_BY_ONE:
        return np.matmul(b.T, a[:, :, None])[:, :, 0]
    if rows in FEW and turned:
        return np.matmul(b.T, a.T).T
    return np.matmul(a, b)


def _product(a: Any, b: Any) -> Any:
    if b.ndim == 2 and a.ndim > 2 and a.shape[-1] == b.shape[0]:
        return product(a.reshape(-1, b.shape[0]), b).reshape(*a.shape[:-1], b.shape[1]) if a.size else np.matmul(a, b)
    return np.matmul(a, b)


@OpDispatch.register("linear", "cpu")
def linear(x: Any, w: Any, b: Any) -> Any:
    """Multiply, and add the bias in place, or while the product of a few rows is transposed."""
    if x.dtype.char in "fd" and x.dtype == b.dtype and is_of_few(x, w.T):
        return np.add(of_few(x, w.T), b, order="C")
    y = matmul(x, w.T)
    if y.dtype != b.dtype:
        return y + b
    y += b
    return y


def _exact_in_double(a: Any, b: Any) -> bool:
    bound = float(np.abs(a).max(initial=0)) * float(np.abs(b).max(initial=0)) * a.shape[-1]
    return bound < min(EXACT, float(np.iinfo(a.dtype).max))


@OpDispatch.register("expand_dims", "cpu")
def expand_dims(x: Any, axis: Any) -> Any:
    """NumPy's takes microseconds, too."""
    if not isinstance(x, np.ndarray) or type(axis) is not int or not 0 <= axis <= x.ndim:
        return np.expand_dims(x, axis)
    shape = x.shape
    return x.reshape((*shape[:axis], 1, *shape[axis:]))


@OpDispatch.register("get_slice", "cpu")
def get_slice(x: Any, index: Any) -> Any:
    """New axes have PyTorch's strides, not 0."""
    y = x[index if ... in index else (*index, ...)]
    if None not in index or not isinstance(y, np.ndarray):
        return y
    return x[(*(part for part in index if part is not None), *(() if ... in index else (...,)))].reshape(y.shape)


@OpDispatch.register("broadcast_to", "cpu")
def broadcast_to(x: Any, shape: Any) -> Any:
    """Broadcast by a view with zero strides, in a fraction of the microseconds that NumPy's function takes."""
    if not isinstance(x, (np.ndarray, np.generic)) or not x.flags.c_contiguous or x.dtype.kind == "V" or not x.size:
        return writeable(np.broadcast_to(x, shape))
    lead = len(shape) - x.ndim
    steps = [0] * lead
    for n, m, step in zip(x.shape, shape[lead:], x.strides):
        if n != m and n != 1:
            return writeable(np.broadcast_to(x, shape))
        steps.append(step if n == m else 0)
    if x.ndim and 1 in shape[:lead]:    # a new axis of length 1 has a step as if it were longer
        for axis in reversed(range(lead)):
            if shape[axis] == 1:
                steps[axis] = shape[axis + 1] * steps[axis + 1]
    return np.ndarray(shape, x.dtype, x, 0, steps) if lead >= 0 else writeable(np.broadcast_to(x, shape))
