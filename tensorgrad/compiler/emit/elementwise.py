"""Functions of each element, and of two arrays that broadcast: native/activations.inc and native/elementwise.inc."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

import numpy as np

from ..memory import Value
from . import emits


def packed(value: Value) -> list[int] | None:
    """Return the axes by descending stride, if the memory has no gaps; else None."""
    order = sorted(range(value.ndim), key=lambda axis: (-value.strides[axis], -value.shape[axis]))
    step = 1
    for axis in reversed(order):
        if value.shape[axis] != 1 and value.strides[axis] != step:
            return None
        step *= value.shape[axis]
    return order


def mapped(build: Any, node: Any, kernel: str, x: Any, *numbers: float) -> Any:
    """Call a kernel of one array; its result has the array's layout."""
    if not isinstance(x, Value) or x.dtype != node.meta["dtype"]:
        return NotImplemented
    if packed(x) is None:
        x = build.whole(x)
    flat = build.view(x, (x.size,), (1,))
    out = build.reuse(flat, flat.shape, x.dtype)
    build.call(f"map_{kernel}", flat, out, *numbers)
    return build.view(out, x.shape, x.strides)


def of_one(opname: str, kernel: str = "", numbers: Callable[..., Sequence[Any]] = tuple) -> None:
    """Register an op of one array; `numbers` converts its parameters to the kernel's."""
    @emits(opname)
    def emit(build: Any, node: Any, x: Any, *more: Any, **params: Any) -> Any:
        given = [*numbers(*more, **params)]
        if any(type(number) not in (int, float) for number in given):
            return NotImplemented
        return mapped(build, node, kernel or opname, x, *map(float, given))


for _op in ("negative", "absolute", "square", "reciprocal", "sqrt", "rsqrt", "exp", "expm1", "log", "log1p", "tanh",
            "sigmoid", "erf", "relu", "hardsigmoid", "hardswish", "log_sigmoid", "silu", "mish", "gelu", "gelu_tanh"):
    of_one(_op)
of_one("leaky_relu", "", lambda slope: (slope,))
of_one("hardtanh", "", lambda low, high: (low, high))
of_one("elu", "", lambda alpha, scale=1.0: (alpha * scale, scale, 1.0))
of_one("celu", "elu", lambda alpha: (alpha, 1.0, 1 / alpha))
of_one("softplus", "", lambda beta, threshold: (beta, threshold, 1 / beta if beta else inf))


@emits("clamp")
def clamp(build: Any, node: Any, x: Any, lo: Any, hi: Any) -> Any:
    lo, hi = -inf if lo is None else lo, inf if hi is None else hi
    if type(lo) not in (int, float) or type(hi) not in (int, float) or not lo <= hi:
        return NotImplemented
    return mapped(build, node, "hardtanh", x, float(lo), float(hi))


# ── of two arrays ─────────────────────────────────────────────────────────────────────────────────────────────────────


def operand(build: Any, value: Any, shape: Any, dtype: Any) -> Any:
    """Return an operand as a value that is broadcast to a shape, with strides 0; NotImplemented for other dtypes."""
    if isinstance(value, Value):
        if value.dtype != dtype:
            return NotImplemented
    elif type(value) in (int, float):
        with np.errstate(over="ignore"):
            value = build.constant(np.asarray(value, dtype))
    else:
        return NotImplemented
    lead = len(shape) - value.ndim
    steps = (0,) * lead + tuple(0 if n == 1 else step for n, step in zip(value.shape, value.strides, strict=True))
    return build.view(value, shape, steps)


def in_rows(shape: Any, operands: Sequence[Value]) -> tuple[list[int], list[list[int]]]:
    """Join axes that all operands, and a contiguous result, walk through with one stride."""
    lengths: list[int] = []
    steps: list[list[int]] = [[] for _ in operands]
    for axis, n in enumerate(shape):
        if n == 1:
            continue
        if lengths and all(known[-1] == x.strides[axis] * n for known, x in zip(steps, operands, strict=True)):
            lengths[-1] *= n
            for known, x in zip(steps, operands, strict=True):
                known[-1] = x.strides[axis]
        else:
            lengths.append(n)
            for known, x in zip(steps, operands, strict=True):
                known.append(x.strides[axis])
    return lengths, steps


def solid(build: Any, value: Value) -> Value:
    """Return a contiguous copy of a broadcast value."""
    copy: Value = build.new(value.shape, value.dtype)
    build.copy(value, copy)
    return copy


MOST_CALLS = 8          # the axes that a kernel of two arrays takes; with more, operands are copied


def two(build: Any, node: Any, kernel: str, a: Any, b: Any, *numbers: float) -> Any:
    """Call a kernel of two arrays that broadcast."""
    shape, dtype = tuple(node.meta["shape"]), node.meta["dtype"]
    given = [x for x in (a, b) if isinstance(x, Value)]
    a, b = operand(build, a, shape, dtype), operand(build, b, shape, dtype)
    if a is NotImplemented or b is NotImplemented or 0 in shape:
        return NotImplemented
    if (alike := _alike(build, kernel, a, b, *numbers)) is not None:
        return alike
    lengths, steps = in_rows(shape, (a, b))
    if len(lengths) > 2 and lengths[:-2] and np.prod(lengths[:-2]) > MOST_CALLS or any(
            step and step[-1] not in (0, 1) for step in steps) or all(step and not step[-1] for step in steps):
        a, b = (x if x.contiguous else solid(build, x) for x in (a, b))
        lengths, steps = in_rows(shape, (a, b))
    out = next((found for x in given if x.shape == shape and x.contiguous
                and (found := build.reuse(x, shape, dtype)).buffer is x.buffer), None) or build.new(shape, dtype)
    *outer, rows, n = [1] * (2 - len(lengths)) + lengths
    (*a_outer, a_row, a_column), (*b_outer, b_row, b_column) = ([0] * (2 - len(step)) + step for step in steps)
    for place in np.ndindex(*outer):
        at = [sum(i * s for i, s in zip(place, step, strict=True)) for step in (a_outer, b_outer)]
        start = int(np.ravel_multi_index(place, outer)) * rows * n if outer else 0
        build.call(kernel, build.view(a, (rows, n), (a_row, a_column), at[0]),
                   build.view(b, (rows, n), (b_row, b_column), at[1]),
                   build.view(out, (rows, n), (n, 1), start), rows, n, a_row, a_column, b_row, b_column, *numbers)
    return out


def _alike(build: Any, kernel: str, a: Value, b: Value, *numbers: float) -> Value | None:
    """Call the kernel on two arrays with equal strides, without gaps, which no C order has; None for others."""
    if a.strides != b.strides or a.contiguous or 0 in a.strides or packed(a) is None:
        return None
    flat = [build.view(x, (x.size,), (1,)) for x in (a, b)]
    out, n = build.reuse(flat[0], flat[0].shape, a.dtype), a.size
    build.call(kernel, *flat, out, 1, n, n, 1, n, 1, *numbers)
    return build.view(out, a.shape, a.strides)  # type: ignore[no-any-return]


def of_two(opname: str) -> None:
    @emits(opname)
    def emit(build: Any, node: Any, a: Any, b: Any) -> Any:
        return two(build, node, f"two_{opname}", a, b)


for _op in ("add", "subtract", "multiply", "divide", "maximum", "minimum"):
    of_two(_op)


@emits("rsub")
def rsub(build: Any, node: Any, a: Any, b: Any) -> Any:
    return two(build, node, "two_subtract", b, a)


@emits("lerp")
def lerp(build: Any, node: Any, a: Any, b: Any, t: Any) -> Any:
    if type(t) not in (int, float) or not isinstance(a, Value) or not isinstance(b, Value) or a.shape != b.shape:
        return NotImplemented
    return (two(build, node, "two_lerp", a, b, float(t)) if -0.5 < t < 0.5
            else two(build, node, "two_lerp", b, a, 1.0 - t))
