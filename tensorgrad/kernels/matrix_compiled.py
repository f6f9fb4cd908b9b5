"""Products of matrices by compiled code, native/gemm.inc: with one thread pool for all loops, none competes with BLAS's
threads.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from .compiled import done, native, register

SMALL = 1 << 15         # multiplications: below, BLAS is done before a call of ours has begun


def steps(x: Any) -> tuple[int, ...]:
    """Return the strides, in elements, along both axes of the stack, to the next row, and to the next column."""
    size = x.itemsize
    return (*(0,) * (4 - x.ndim), *(step // size if n > 1 else 0 for n, step in zip(x.shape, x.strides, strict=True)))


def product(a: Any, b: Any, bias: Any = None) -> Any:
    """a · b + bias of matrices, or stacks of them along at most two axes; NotImplemented for others, and for small
    ones.
    """
    if (b.ndim == 2 and a.size * b.shape[-1] < SMALL or a.dtype is not b.dtype or a.dtype.char not in "fd" or a.ndim < 2
            or b.ndim < 2):
        return NotImplemented
    *stack, m, k = a.shape
    rows, n = b.shape[-2:]
    if b.ndim == 2 and (not stack or a.flags.c_contiguous):       # one product: rows of a stack follow each other
        m = a.size // k if k else 0
        if rows != k or m * n * k < SMALL or n < 4:
            return NotImplemented
        out, size = np.empty((*a.shape[:-1], n), a.dtype), a.itemsize
        (row, column), (b_row, b_column) = (k * size, size) if stack else a.strides, b.strides
        return done(native.matmul(a, b, out, None, bias, m, n, k, 1, 1, 0, 0, row // size, column // size, 0, 0,
                                  b_row // size, b_column // size, 0), out)
    stack = stack or list(b.shape[:-2])
    if a.ndim > 4 or b.ndim > 4 or a.ndim != 2 != b.ndim and a.shape[:-2] != b.shape[:-2]:
        return NotImplemented
    outer, inner = (1, 1, *stack)[-2:]
    if rows != k or m * n * k * outer * inner < SMALL or m < 4 or n < 4:
        return NotImplemented
    out = np.empty((*stack, m, n), a.dtype)
    return done(native.matmul(a, b, out, None, bias, m, n, k, outer, inner, *steps(a), *steps(b), 0), out)


def times(a: Any, b: Any) -> Any:
    """a · b, by whichever serves."""
    out = product(a, b)
    return np.matmul(a, b) if out is NotImplemented else out


@register("matmul")
def matmul(a: Any, b: Any) -> Any:
    return product(a, b)


@register("linear")
def linear(x: Any, w: Any, b: Any) -> Any:
    if b is not None and b.shape != w.shape[:1]:
        return NotImplemented
    n, k = w.shape
    if n < 4 or not x.size or not x.flags.c_contiguous or not w.flags.c_contiguous:
        return product(x, w.T, b)
    out = np.empty((*x.shape[:-1], n), x.dtype)
    return done(native.matmul(x, w, out, None, b, x.size // k, n, k, 1, 1, 0, 0, k, 1, 0, 0, 1, k, 0), out)


@register("linear_without_bias")
def linear_without_bias(x: Any, w: Any) -> Any:
    return linear(x, w, None)
