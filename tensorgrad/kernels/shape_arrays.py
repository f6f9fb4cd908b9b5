"""Movements on arrays that are memory: views of it, and elements written where they belong."""
from __future__ import annotations

from typing import Any

from .arrays import in_arrays

FULL = slice(None)

# ── views ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@in_arrays("reshape")
def reshape(xp: Any, x: Any, *, shape: Any) -> Any:
    return x.reshape(shape)       # the method: half of the time of the function, and programs reshape a lot


@in_arrays("permute_dims")
def permute_dims(xp: Any, x: Any, *, axes: Any) -> Any:
    return x.transpose(axes)


@in_arrays("swapaxes")
def swapaxes(xp: Any, x: Any, *, axis1: int, axis2: int) -> Any:
    return x.swapaxes(axis1, axis2)


@in_arrays("t")
def t(xp: Any, x: Any) -> Any:
    return x.T


@in_arrays("broadcast_to")
def broadcast_to(xp: Any, x: Any, *, shape: Any) -> Any:
    return writeable(xp.broadcast_to(x, shape))


@in_arrays("diagonal")
def diagonal(xp: Any, x: Any, *, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    return writeable(xp.diagonal(x, offset, axis1, axis2))


@in_arrays("unfold")
def unfold(xp: Any, x: Any, *, axis: int, size: int, step: int) -> Any:
    count = (x.shape[axis] - size) // step + 1
    shape = (*x.shape[:axis], count, *x.shape[axis + 1:], size)
    strides = (*x.strides[:axis], x.strides[axis] * step, *x.strides[axis + 1:], x.strides[axis])
    return xp.lib.stride_tricks.as_strided(x, shape, strides)


@in_arrays("as_strided")
def as_strided(xp: Any, x: Any, *, size: Any, stride: Any, offset: int, memory: Any = None, **layout: Any) -> Any:
    return strided(xp, (x if memory is None else memory).ravel("K"), size, stride, offset)


def strided(xp: Any, flat: Any, size: Any, stride: Any, offset: int) -> Any:
    steps = tuple(s * flat.itemsize for s in stride)
    return xp.lib.stride_tricks.as_strided(flat[offset:], tuple(size), steps)


def writeable(array: Any) -> Any:
    """Make a view writable that NumPy returns read-only; the dispatcher's rules decide what may be written."""
    bare = getattr(array, "values", array)
    if not getattr(bare.flags, "writeable", True) and hasattr(bare, "setflags"):
        try:
            bare.setflags(write=True)
        except ValueError:       # the memory itself is read-only
            pass
    return array


# ── into zeros of a shape ─────────────────────────────────────────────────────────────────────────────────────────────


@in_arrays("place_slice")
def place_slice(xp: Any, x: Any, *, shape: Any, index: Any) -> Any:
    out = xp.zeros(shape, dtype=x.dtype)
    out[index] = x
    return out


@in_arrays("diagonal_place")
def diagonal_place(xp: Any, x: Any, *, shape: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    out = xp.zeros(shape, dtype=x.dtype)
    writeable(xp.diagonal(out, offset, axis1, axis2))[...] = x
    return out


@in_arrays("unfold_add")
def unfold_add(xp: Any, x: Any, *, shape: Any, axis: int, size: int, step: int) -> Any:
    count, spans, lead = x.shape[axis], -(-size // step), (FULL,) * axis
    x = xp.moveaxis(x, -1, axis + 1)
    out = xp.zeros((*shape[:axis], count - 1 + spans, step, *shape[axis + 1:]), dtype=x.dtype)
    for k in range(spans):     # the k-th step of all windows at a time: each adds to distinct elements
        part = x[(*lead, FULL, slice(k * step, (k + 1) * step))]
        out[(*lead, slice(k, k + count), slice(0, part.shape[axis + 1]))] += part
    line = out.reshape((*shape[:axis], (count - 1 + spans) * step, *shape[axis + 1:]))
    out = xp.zeros(shape, dtype=x.dtype)
    whole = (*lead, slice(0, min(shape[axis], line.shape[axis])))
    out[whole] = line[whole]
    return out


@in_arrays("restride")
def restride(xp: Any, x: Any, *, source: Any, target: Any, length: int) -> Any:
    out = xp.zeros(length, dtype=x.dtype)
    places = strided(xp, xp.arange(length), *source)
    xp.add.at(out, places.ravel(), x.ravel())
    return strided(xp, out, *target).copy()


@in_arrays("pad_constant")
def pad_constant(xp: Any, x: Any, *, widths: Any, value: Any = 0) -> Any:
    index = tuple(slice(max(0, -a), n - max(0, -b)) for n, (a, b) in zip(x.shape, widths, strict=True))
    x = x[index]
    shape = tuple(n + max(0, a) + max(0, b) for n, (a, b) in zip(x.shape, widths, strict=True))
    out = xp.zeros(shape, dtype=x.dtype) if value == 0 else xp.full(shape, value, dtype=x.dtype)
    out[tuple(slice(max(0, a), max(0, a) + n) for n, (a, _) in zip(x.shape, widths, strict=True))] = x
    return out


# ── copies ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@in_arrays("concat")
def concat(xp: Any, xs: Any, *, axis: int = 0) -> Any:
    return xp.concatenate(xs, axis)


@in_arrays("flip")
def flip(xp: Any, x: Any, *, axis: Any) -> Any:
    return xp.flip(x, axis).copy("K")


@in_arrays("contiguous")
def contiguous(xp: Any, x: Any) -> Any:
    return x.copy(order="C")


@in_arrays("channels_last")
def channels_last(xp: Any, x: Any) -> Any:
    last = x.ndim - 1
    return x.transpose(0, *range(2, last + 1), 1).copy(order="C").transpose(0, last, *range(1, last))


@in_arrays("to_device")
def to_device(xp: Any, x: Any, *, source: Any, target: Any) -> Any:
    return target.asarray(x if source.device.type == target.device.type else source.host(x))


# ── parts that views show ─────────────────────────────────────────────────────────────────────────────────────────────


@in_arrays("view")
def view(xp: Any, x: Any, *, view: Any, order: Any = None) -> Any:
    return look(xp, laid(x, order) if view[0][0].by_memory else x, view).copy()


@in_arrays("set_view")
def set_view(xp: Any, x: Any, value: Any, *, view: Any, order: Any = None, written: bool = False) -> Any:
    if written:
        return x
    out = laid(xp.asarray(x), order)                # a NumPy scalar would not be written to
    look(xp, out, view)[...] = value
    return out


def look(xp: Any, x: Any, view: Any) -> Any:
    """Go along a chain of view ops."""
    for op, params in view:
        x = op.kernels[xp.backend](x, **params)
    return x


def laid(x: Any, order: Any) -> Any:
    """Copy the gradient x to the memory layout of the whole: `order` are its axes, the slowest first (None: C order).

    In another order, a view of it by `reshape` would be a copy, and `as_strided` would find other elements.
    """
    if order is None:
        return x.copy(order="C")
    return x.transpose(order).copy(order="C").transpose([order.index(axis) for axis in range(x.ndim)])
