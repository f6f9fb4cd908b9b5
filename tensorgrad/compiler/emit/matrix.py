"""Products of matrices: native/gemm.inc."""
from __future__ import annotations

from math import prod
from typing import Any

from ..memory import Value
from . import emits


def product(build: Any, a: Value, b: Value, bias: Any = None) -> Any:
    """Return a · b + bias, of matrices or stacks of them along at most two axes; NotImplemented for others."""
    if a.dtype != b.dtype or a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-2]:
        return NotImplemented
    *stack, m, k = a.shape
    n = b.shape[-1]
    if b.ndim == 2 and (not stack or a.contiguous):                 # one product: the rows of a stack are contiguous
        rows, steps = prod(stack) * m, (k, 1) if stack else steps_of(a)[2:]
        out = build.new((*stack, m, n), a.dtype)
        build.call("matmul", build.view(a, (1, 1, rows, k), (0, 0, *steps)), spread(build, b), out, None, bias, rows, n,
                   k, 1, 1, 0, 0, *steps, 0, 0, *steps_of(b)[2:], 0)
        return out
    stack = stack or list(b.shape[:-2])
    if a.ndim > 4 or b.ndim > 4 or a.ndim != 2 != b.ndim and a.shape[:-2] != b.shape[:-2]:
        return NotImplemented
    outer, inner = (1, 1, *stack)[-2:]
    out = build.new((*stack, m, n), a.dtype)
    build.call("matmul", spread(build, a), spread(build, b), out, None, bias, m, n, k, outer, inner, *steps_of(a),
               *steps_of(b), 0)
    return out


def steps_of(x: Value) -> tuple[int, ...]:
    """Return the strides along both axes of the stack, to the next row, and to the next column."""
    return (*(0,) * (4 - x.ndim), *(step if n > 1 else 0 for n, step in zip(x.shape, x.strides, strict=True)))


def spread(build: Any, x: Value) -> Value:
    return build.view(x, (1,) * (4 - x.ndim) + x.shape, steps_of(x))  # type: ignore[no-any-return]


@emits("matmul")
def matmul(build: Any, node: Any, a: Value, b: Value) -> Any:
    return product(build, a, b)


@emits("linear")
def linear(build: Any, node: Any, x: Value, w: Value, b: Value | None) -> Any:
    if b is not None and (b.shape != w.shape[:1] or not b.contiguous) or x.dtype != w.dtype or x.ndim < 1:
        return NotImplemented
    (n, k), x = w.shape, build.whole(x)
    out = build.new((*x.shape[:-1], n), x.dtype)
    row, column = w.strides
    build.call("matmul", x, w, out, None, b, x.size // k if k else 0, n, k, 1, 1, 0, 0, k, 1, 0, 0, column, row, 0)
    return out


@emits("linear_without_bias")
def linear_without_bias(build: Any, node: Any, x: Value, w: Value) -> Any:
    return linear(build, node, x, w, None)
