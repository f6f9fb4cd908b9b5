"""Shapes, slices, padding, and makers of new arrays."""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ..ops.windows import window_count_along
from ..storage.cpu import NumpyStorage
from ._graph import BOOL, INT, Graph, Refused, Term
from ._sizes import Varying
from ._table import RULES, rule

END = np.iinfo(np.int64).max


@rule("reshape expand_dims squeeze")
def reshape(g: Graph, x: Any, **params: Any) -> Any:
    if x.shape == g.out[0].shape:
        return g.Identity(x)
    axis = params.get("axis")
    if g.op == "expand_dims" and isinstance(axis, int):
        return g.Unsqueeze(x, [axis])
    if g.op == "squeeze" and axis is not None:
        return g.Squeeze(x, [axis] if isinstance(axis, int) else list(axis))
    return g.reshape(x, g.out[0].shape)


@rule("permute_dims swapaxes t")
def transpose(g: Graph, x: Any, *, axes: Any = None, axis1: int = 0, axis2: int = 1) -> Any:
    if axes is None:
        order = list(range(x.ndim))
        if x.ndim:
            order[axis1], order[axis2] = order[axis2], order[axis1]
        axes = order
    axes = [a % x.ndim for a in axes]
    return g.Identity(x) if axes == list(range(x.ndim)) else g.Transpose(x, perm=axes)


@rule("broadcast_to")
def broadcast_to(g: Graph, x: Any, *, shape: Any) -> Any:
    return g.expand(x, g.out[0].shape)


@rule("get_slice get_item")
def basic_index(g: Graph, x: Any, *, index: Any) -> Any:
    """Index by integers, slices, None and an ellipsis: a Slice, then Squeeze and Unsqueeze."""
    used = sum(p is not None and p is not Ellipsis for p in index)
    parts: list[Any] = []
    for p in index:
        parts += [slice(None)] * (x.ndim - used) if p is Ellipsis else [p]
    axes, starts, stops, steps, gone, new = [], [], [], [], [], []
    axis = place = 0
    for p in parts:
        if p is None:
            new.append(place)
            place += 1
            continue
        if isinstance(p, slice):
            step = 1 if p.step is None else p.step
            start = (0 if step > 0 else END) if p.start is None else p.start
            stop = (END if step > 0 else -END) if p.stop is None else p.stop
            place += 1
        else:
            start, stop, step = p, END if p == -1 else p + 1, 1
            gone.append(axis)
        if not (start == 0 and stop == END and step == 1):
            axes.append(axis), starts.append(start), stops.append(stop), steps.append(step)
        axis += 1
    out = g.Slice(x, g.sizes(starts, x), g.sizes(stops, x), axes, steps) if axes else x
    out = g.Squeeze(out, gone) if gone else out
    out = g.Unsqueeze(out, new) if new else out
    return g.Identity(x) if out is x else out


@rule("unbind")
def unbind(g: Graph, x: Any, *, axis: int) -> Any:
    return [g.Gather(x, g.constant(i), axis=axis) for i in range(len(g.out))]


@rule("split_sizes split_with_sizes")
def split(g: Graph, x: Any, *, sizes: Any, axis: int) -> Any:
    if len(sizes) == 1:
        return [g.Identity(x)]
    return g.Split(x, g.sizes(sizes, x), axis=axis, outputs=len(sizes))


@rule("concat")
def concat(g: Graph, *xs: Any, axis: int = 0) -> Any:
    return g.Concat(*[g.cast(x, g.out[0].dtype) for x in xs], axis=axis)


@rule("stack")
def stack(g: Graph, *xs: Any, axis: int = 0) -> Any:
    return g.Concat(*[g.Unsqueeze(g.cast(x, g.out[0].dtype), [axis]) for x in xs], axis=axis)


@rule("flip")
def flip(g: Graph, x: Any, *, axis: Any) -> Any:
    axes = list(range(x.ndim)) if axis is None else [axis] if isinstance(axis, int) else list(axis)
    return g.Slice(x, [END] * len(axes), [-END] * len(axes), axes, [-1] * len(axes)) if axes else g.Identity(x)


@rule("roll")
def roll(g: Graph, x: Any, *, shift: Any, axis: Any) -> Any:
    if not x.ndim or axis is None:
        raise Refused("of all elements")
    shifts, axes = (v if isinstance(v, (tuple, list)) else (v,) for v in (shift, axis))
    out = g.Identity(x)
    for s, a in zip(shifts, axes, strict=True):
        n = x.shape[a]
        if isinstance(s, Varying) or isinstance(n, Varying) and s < 0:
            raise Refused("by a number that varies")
        s = s if isinstance(n, Varying) else s % n if n else 0
        if s:
            out = g.Concat(g.Slice(out, [-s], [END], [a]), g.Slice(out, [0], [-s], [a]), axis=a)
    return out


@rule("tril triu")
def triangle(g: Graph, x: Any, *, k: int = 0) -> Any:
    values = g.cast(x, "int32") if x.dtype == BOOL else x
    out = g.Trilu(values, g.scalar(k), upper=int(g.op == "triu"))
    return g.cast(out, BOOL) if x.dtype == BOOL else out


@rule("pad_constant")
def pad(g: Graph, x: Any, *, widths: Any, value: Any = 0) -> Any:
    values = g.cast(x, "int32") if x.dtype == BOOL else x
    cut = [i for i, pair in enumerate(widths) if any(not isinstance(n, Varying) and n < 0 for n in pair)]
    if cut:       # cropped axes
        values = Term(g.Slice(values, g.sizes([0 - _least(widths[i][0]) for i in cut]),
                              g.sizes([_least(widths[i][1]) or END for i in cut]), cut).name, None, values.dtype)
        widths = [tuple(n if isinstance(n, Varying) else max(n, 0) for n in pair) for pair in widths]
        if not any(map(any, widths)):
            return g.cast(values, x.dtype)
    ends = g.sizes([a for a, _ in widths] + [b for _, b in widths], x)
    out = g.Pad(values, ends, g.constant(value, values.dtype), mode="constant")
    return g.cast(out, BOOL) if x.dtype == BOOL else out


def _least(n: Any) -> Any:
    """Return a negative width, which crops, or 0."""
    return 0 if isinstance(n, Varying) else min(n, 0)


@rule("diagonal")
def diagonal(g: Graph, x: Any, *, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    n, m = x.shape[axis1], x.shape[axis2]
    if isinstance(n, Varying) or isinstance(m, Varying):
        raise Refused("of a dynamic axis")
    rest = [d for d in range(x.ndim) if d not in (axis1 % x.ndim, axis2 % x.ndim)]
    places = np.diagonal(np.arange(n * m).reshape(n, m), offset)
    moved = Term(g.Transpose(x, perm=[*rest, axis1 % x.ndim, axis2 % x.ndim]).name, (*[x.shape[d] for d in rest], n, m),
                 x.dtype)
    return g.Gather(g.reshape(moved, (*moved.shape[:-2], n * m)), places, axis=-1)


@rule("diagonal_place")
def diagonal_place(g: Graph, x: Any, *, shape: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    n, m = shape[axis1], shape[axis2]
    if isinstance(n, Varying) or isinstance(m, Varying):
        raise Refused("along a dynamic axis")
    there, number = np.zeros(n * m, bool), np.zeros(n * m, np.int64)
    places = np.diagonal(np.arange(n * m).reshape(n, m), offset)
    there[places], number[places] = True, np.arange(len(places))
    flat = g.Where(there, g.Gather(x, number, axis=-1), g.like(0, x))
    ndim = len(shape)
    rest = [d for d in range(ndim) if d not in (axis1 % ndim, axis2 % ndim)]
    order = [*rest, axis1 % ndim, axis2 % ndim]
    square = g.reshape(Term(flat.name, (*x.shape[:-1], n * m), x.dtype), (*x.shape[:-1], n, m))
    return g.Transpose(square, perm=[order.index(d) for d in range(ndim)])


@rule("unfold")
def unfold(g: Graph, x: Any, *, axis: int, size: int, step: int) -> Any:
    """Gather windows along an axis, then move their elements' axis to the end."""
    if isinstance(x.shape[axis], Varying):
        raise Refused("along a dynamic axis")
    axis %= x.ndim
    count = window_count_along(x.shape[axis], size, step)
    places = np.arange(count)[:, None] * step + np.arange(size)
    order = [d for d in range(x.ndim + 1) if d != axis + 1] + [axis + 1]
    return g.Transpose(g.Gather(x, places, axis=axis), perm=order)


@rule("as_strided")
def as_strided(g: Graph, x: Any, *, size: Any, stride: Any, offset: int, layout: Any, length: int,
               memory: Any = None) -> Any:
    if isinstance(length, Varying) or layout[2] or length != prod(x.shape):
        raise Refused("of a part of the memory")
    places = np.lib.stride_tricks.as_strided(np.arange(length)[offset:], tuple(size), tuple(s * 8 for s in stride))
    return g.Gather(g.Reshape(x, [-1]), np.ascontiguousarray(places), axis=0)


@rule("set_view")
def set_view(g: Graph, x: Any, value: Any, *, view: Any, order: Any = None, written: bool = False) -> Any:
    """Replace the part of x that a view shows: the view of x's flat indices tells the positions to write to."""
    if len(view) > 1:
        raise Refused("through several views")
    (op, params), = view
    if not any(isinstance(n, Varying) for n in x.shape):
        places: Any = np.arange(prod(x.shape)).reshape(x.shape)
        places = op.kernels[NumpyStorage](places, **params)
        places = g.constant(np.ascontiguousarray(places).reshape(-1))
    else:
        kept = g.op, g.out
        g.op, g.out = op.opname, [Term("", value.shape, INT)]
        places = RULES[op.opname](g, g.flat_places(x), **params)
        g.op, g.out = kept
        places = g.Reshape(places, [-1])
    flat = g.ScatterElements(g.Reshape(x, [-1]), places, g.Reshape(g.cast(value, x.dtype), [-1]), axis=0)
    return (g.reshape(Term(flat.name, None, x.dtype), x.shape) if not any(isinstance(n, Varying) for n in x.shape)
            else g.Reshape(flat, g.Shape(x)))


# ── new arrays: constants, unless their shapes depend on dynamic axes ─────────────────────────────────────────────────


@rule("make_zeros make_ones make_full")
def filled(g: Graph, *, args: Any) -> Any:
    value = {"make_zeros": 0, "make_ones": 1}.get(g.op) if g.op != "make_full" else args[1]
    return g.Expand(g.constant(value, g.out[0].dtype), g.sizes(g.out[0].shape))


@rule("filled")
def filled_like(g: Graph, x: Any, *, value: Any) -> Any:
    return g.Expand(g.constant(value, x.dtype), g.Shape(x))


@rule("make_arange")
def arange(g: Graph, *, args: Any) -> Any:
    start, stop, step = (0, *args, 1) if len(args) == 1 else (*args, 1)[:3]
    dtype = INT if all(isinstance(v, (int, Varying)) for v in (start, stop, step)) else g.out[0].dtype
    return g.cast(Term(g.Range(*[g.scalar(v, dtype) for v in (start, stop, step)]).name, g.out[0].shape, dtype),
                  g.out[0].dtype)


@rule("make_eye")
def eye(g: Graph, *, args: Any) -> Any:
    rows, columns = (g.Range(g.constant(0), g.scalar(n), g.constant(1)) for n in g.out[0].shape)
    return g.cast(g.Equal(g.Unsqueeze(rows, [1]), columns), g.out[0].dtype)


# ── random numbers: drawn anew each time ──────────────────────────────────────────────────────────────────────────────


def _like_out(g: Graph) -> Any:
    return g.Expand(g.constant(0.0, g.out[0].dtype), g.sizes(g.out[0].shape))


@rule("draw_uniform draw_normal")
def draw(g: Graph, *, args: Any, **params: Any) -> Any:
    a, b = (*args[1:3], *((0.0, 1.0)[len(args) - 1:]))[:2]
    if g.op == "draw_uniform":
        return g.RandomUniformLike(_like_out(g), low=float(a), high=float(b))
    return g.RandomNormalLike(_like_out(g), mean=float(a), scale=float(b))


@rule("draw_normal_around")
def draw_around(g: Graph, *tensors: Any, args: Any, **params: Any) -> Any:
    given = iter(tensors)
    mean, deviation = (next(given) if a is None else g.constant(a, g.out[0].dtype) for a in args[:2])
    return g.Add(g.Mul(g.RandomNormalLike(_like_out(g)), deviation), mean)


@rule("draw_bernoulli")
def bernoulli(g: Graph, *tensors: Any, args: Any, **params: Any) -> Any:
    p = tensors[0] if tensors else g.like(float(args[0]), np.dtype("float32"))
    drawn = g.RandomUniformLike(g.Expand(g.constant(0.0, "float32"), g.sizes(g.out[0].shape)), low=0.0, high=1.0)
    return g.cast(g.Less(drawn, g.cast(p, "float32")), g.out[0].dtype)


@rule("draw_dropout")
def dropout(g: Graph, *, args: Any, **params: Any) -> Any:
    """0 with probability p, else 1 / (1 − p)."""
    drawn = g.RandomUniformLike(g.Expand(g.constant(0.0, "float32"), g.sizes(g.out[0].shape)), low=0.0, high=1.0)
    kept = g.cast(g.GreaterOrEqual(drawn, g.constant(args[1], "float32")), g.out[0].dtype)
    return g.Mul(kept, g.like(1 / (1 - args[1]), g.out[0].dtype))


@rule("draw_randint")
def randint(g: Graph, *, args: Any, **params: Any) -> Any:
    drawn = g.RandomUniformLike(g.Expand(g.constant(0.0, "float32"), g.sizes(g.out[0].shape)), low=float(args[0]),
                                high=float(args[1]))
    return g.cast(g.Floor(drawn), g.out[0].dtype)
