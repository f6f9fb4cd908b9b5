"""The ops of the table on arrays with hidden axes, by family.

Where nothing is said of an op, it runs for one example after the other. `DEFINED` ones run from their definition, made of functions that know
about batches; the others go to the kernel for whole arrays, with the hidden axes where they do no harm.
"""
from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

from ._batched_functions import aligned, all_full, full, hidden_of, is_shared, looped, pushed, shared_values, wrapped

DEFAULTS: dict[str, Any] = {"axis1": 0, "axis2": 1, "axis": None}

def rule_of(op: Any, backend: Any) -> Any:
    """The kernel of an op on a backend of batches, from what the op's record says; None where its definition, made of batched functions, serves."""
    inner = runner(op, backend.inner)
    if op.by_values:
        return partial(dynamic, op.by_values)
    if op.opname in RULES:
        return partial(RULES[op.opname], backend, inner)
    if op.opname in WRITING:
        return partial(WRITING[op.opname], backend, inner, op)
    return FAMILIES[op.batch](op, backend, inner)


def runner(op: Any, backend: Any) -> Any:
    """The kernel for whole arrays, without a shortcut back."""
    def run(*args: Any, **params: Any) -> Any:
        kernel = op.kernels[backend]
        if hasattr(kernel, "backward"):
            served = kernel.forward(*args, **params)
            return op.forward(backend.xp, *args, **params) if served is NotImplemented else served[0]
        return kernel(*args, **params)
    return run


# ── families ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def elementwise(backend: Any, inner: Any, *args: Any, **params: Any) -> Any:
    return wrapped(backend.array_type, inner(*aligned(backend.array_type, args), **params))


def trailing(backend: Any, inner: Any, x: Any, *rest: Any, **params: Any) -> Any:
    return wrapped(backend.array_type, inner(x.values, *rest, **params))


def along(backend: Any, inner: Any, named: Any, given: Any, op: Any, *args: Any, **params: Any) -> Any:
    """Ops whose parameters name axes."""
    x = args[0]
    arrays = [x.values] if len(args) == 1 else all_full(backend, *args)
    for name in named:
        axis = params.get(name, DEFAULTS.get(name))
        params[name] = grown_axes(backend, x, axis) if op.opname == "expand_dims" else pushed(backend, x, axis)
    if not x.ndim and op.opname not in ("expand_dims", "squeeze"):     # one element counts as having an axis
        arrays = [a.reshape(*a.shape, 1) for a in arrays]
        params |= {name: backend.rank for name in named}
        out = inner(*arrays, **params)
        parts = [o.reshape(o.shape[:backend.rank]) for o in (out if op.several else [out])]
        return wrapped(backend.array_type, parts if op.several else parts[0])
    if op.opname == "squeeze" and not x.ndim:
        return backend.array_type(x.values)
    return wrapped(backend.array_type, inner(*arrays, **params))


def grown_axes(backend: Any, x: Any, axis: Any) -> Any:
    """New axes, counted from the front of the values."""
    axes = axis if isinstance(axis, tuple) else (axis,)
    pushed_axes = tuple(a % (x.ndim + len(axes)) + backend.rank for a in axes)
    return pushed_axes if isinstance(axis, tuple) else pushed_axes[0]


def shaped(backend: Any, inner: Any, named: Any, *args: Any, shape: Any, **params: Any) -> Any:
    """Ops that put values into zeros of a shape."""
    arrays = all_full(backend, *args)
    hidden = arrays[0].shape[:backend.rank]
    for name in named:
        axis = params.get(name, DEFAULTS[name])
        params[name] = axis % len(shape) + backend.rank
    if "index" in params:
        params["index"] = (*(slice(None),) * backend.rank, *params["index"])
    return backend.array_type(inner(*arrays, shape=(*hidden, *shape), **params))


def stacked(backend: Any, inner: Any, core: tuple[int, ...], *args: Any, **params: Any) -> Any:
    """Functions of stacks of matrices and vectors."""
    batched = backend.array_type
    hidden = hidden_of(backend, args)
    lead = max(a.ndim - n for a, n in zip(args, core, strict=True) if type(a) is batched)
    arrays = []
    for a, n in zip(args, core, strict=True):
        if type(a) is batched:
            values = full(backend, a, hidden)
            a = values.reshape(*hidden, *(1,) * (lead + n - a.ndim), *a.shape)
        arrays.append(a)
    return wrapped(batched, inner(*arrays, **params))


class Whole:
    """A batch's functions, but `any` and `all` look at all examples, and give an answer."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend.xp, name)

    def any(self, x: Any) -> Any:
        return x.values.any()

    def all(self, x: Any) -> Any:
        return x.values.all()


# ── single ops ────────────────────────────────────────────────────────────────────────────────────────────────────────


def of_all(reduction: str, backend: Any, inner: Any, x: Any) -> Any:
    """The extreme of all elements, or the middle one."""
    line = x.values.reshape(*x.hidden, x.size)
    out = getattr(backend.inner.xp, reduction)(line, axis=backend.rank)
    return backend.array_type(out[0] if isinstance(out, (tuple, list)) else out)


def transposed(backend: Any, inner: Any, x: Any) -> Any:
    return x.T


def along_one(backend: Any, inner: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Reductions along one axis, or all elements in a line."""
    if axis is not None and x.ndim:
        return backend.array_type(inner(x.values, axis=pushed(backend, x, axis), keepdims=keepdims))
    out = inner(x.values.reshape(*x.hidden, x.size), axis=backend.rank)
    return backend.array_type(out.reshape(*x.hidden, *(1,) * x.ndim) if keepdims else out)


def padded(backend: Any, inner: Any, x: Any, *, widths: Any, **params: Any) -> Any:
    return backend.array_type(inner(x.values, widths=(*((0, 0),) * backend.rank, *widths), **params))


def cloned(backend: Any, inner: Any, x: Any) -> Any:
    return x.copy(order="K")


def copied(backend: Any, inner: Any, x: Any, source: Any) -> Any:
    return backend.array_type(full(backend, source, hidden_of(backend, (x, source))).copy())


def rows_added(backend: Any, inner: Any, x: Any, index: Any, *, rows: int) -> Any:
    """Slices added up in rows: each example has rows of its own in one long table."""
    hidden = hidden_of(backend, (x, index))
    values, places = full(backend, x, hidden), full(backend, index, hidden)
    count = prod(hidden)
    starts = backend.inner.xp.arange(count).reshape(*hidden, *(1,) * index.ndim) * rows
    values = values.reshape(count * index.size, *x.shape[index.ndim:])
    out = inner(values, (places + starts).reshape(-1), rows=rows * count)
    return backend.array_type(out.reshape(*hidden, rows, *x.shape[index.ndim:]))


def resampled(backend: Any, inner: Any, x: Any, m: Any, *, axis: int, **params: Any) -> Any:
    """An axis as sums of its places; the weights are the same for all examples, or else there is a product for each."""
    if not is_shared(m):
        return looped(backend, inner, x, m, axis=axis, **params)
    return backend.array_type(inner(x.values, shared_values(m), axis=pushed(backend, x, axis), **params))


def layer_norm(backend: Any, inner: Any, x: Any, w: Any, b: Any, *, ndim: int, eps: float) -> Any:
    if all(p is None or is_shared(p) for p in (w, b)):
        return backend.array_type(inner(x.values, *(p if p is None else shared_values(p) for p in (w, b)), ndim=ndim, eps=eps))
    out = backend.array_type(inner(x.values, None, None, ndim=ndim, eps=eps))
    out = out if w is None else out * w
    return out if b is None else out + b


def group_norm(backend: Any, inner: Any, x: Any, w: Any, b: Any, *, groups: int, eps: float) -> Any:
    """Each sample is by itself: batches of samples are a longer batch."""
    whole = all(p is None or is_shared(p) for p in (w, b))
    given = tuple(p if p is None else shared_values(p) for p in (w, b)) if whole else (None, None)
    out = folded(backend, lambda values: inner(values, *given, groups=groups, eps=eps), x)
    per_channel = (-1, *(1,) * (x.ndim - 2))
    out = out if whole or w is None else out * w.reshape(per_channel)
    return out if whole or b is None else out + b.reshape(per_channel)


def folded(backend: Any, function: Any, x: Any) -> Any:
    """A function of independent samples along the first axis, of all examples' at once."""
    out = function(x.values.reshape(prod(x.hidden) * x.shape[0], *x.shape[1:]))
    return wrapped(backend.array_type, out.reshape(*x.hidden, x.shape[0], *out.shape[1:]))


def windows(backend: Any, inner: Any, x: Any, **params: Any) -> Any:
    return folded(backend, lambda values: inner(values, **params), x)


# ── convolutions: a batch of inputs is a longer batch, a batch of kernels is more groups ──────────────────────────────


def line(backend: Any, x: Any, hidden: tuple[int, ...]) -> Any:
    """The values with all hidden axes in one."""
    return full(backend, x, hidden).reshape(prod(hidden), *x.shape)


def into_channels(values: Any) -> Any:
    """(B, N, C, …) → (N, B·C, …)"""
    return values.swapaxes(0, 1).reshape(values.shape[1], values.shape[0] * values.shape[2], *values.shape[3:])


def from_channels(backend: Any, values: Any, hidden: tuple[int, ...]) -> Any:
    """The way back, (N, B·C, …) → (*hidden, N, C, …)"""
    count = prod(hidden)
    values = values.reshape(values.shape[0], count, values.shape[1] // max(count, 1), *values.shape[2:]).swapaxes(0, 1)
    return backend.array_type(values.reshape(*hidden, *values.shape[1:]))


def convolved(backend: Any, inner: Any, x: Any, w: Any, b: Any, *, groups: int = 1, **params: Any) -> Any:
    hidden = hidden_of(backend, (x, w))
    if is_shared(w):
        bias = None if b is None or not is_shared(b) else shared_values(b)
        out = folded(backend, lambda values: inner(values, shared_values(w), bias, groups=groups, **params), x)
        rest = None if bias is not None else b
    else:
        kernels = line(backend, w, hidden)
        kernels = kernels.reshape(kernels.shape[0] * kernels.shape[1], *kernels.shape[2:])
        values = inner(into_channels(line(backend, x, hidden)), kernels, None, groups=groups * prod(hidden), **params)
        out, rest = from_channels(backend, values, hidden), b
    return out if rest is None else out + rest.reshape(-1, *(1,) * (x.ndim - 2))


def convolved_weight(backend: Any, inner: Any, y: Any, x: Any, *, groups: int = 1, **params: Any) -> Any:
    hidden = hidden_of(backend, (y, x))
    out = inner(into_channels(line(backend, y, hidden)), into_channels(line(backend, x, hidden)), groups=groups * prod(hidden), **params)
    return backend.array_type(out.reshape(*hidden, y.shape[1], *out.shape[1:]))


def multiplied(backend: Any, inner: Any, a: Any, b: Any) -> Any:
    return backend.module.matmul(a, b)


def put(backend: Any, inner: Any, op: Any, x: Any, value: Any, *indices: Any, **params: Any) -> Any:
    """Values written at index arrays; at masks that differ from example to example, one after the other."""
    if any(i.dtype.kind == "b" and not is_shared(i) for i in indices):
        return looped(backend, inner, x, value, *indices, **params)
    return op.forward(backend.xp, x, value, *indices, **params)


def put_view(backend: Any, inner: Any, op: Any, x: Any, value: Any, **params: Any) -> Any:
    """A part that a view shows replaced: the whole needs memory for each example before."""
    return op.forward(backend.xp, backend.array_type(full(backend, x, hidden_of(backend, (x, value)))), value, **params)


def dynamic(name: str, *args: Any, **params: Any) -> Any:
    """Ops whose results have a shape that depends on values."""
    raise RuntimeError(f"vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over aten::{name}. Please file an "
                       "issue at https://github.com/pytorch/pytorch/issues if you need this feature.")


WRITING: dict[str, Any] = {"index_put": put, "set_view": put_view}
# Op.batch → what makes the kernel. An example's axes come last: "trailing" ops look at those or at single elements only, and need not know of any in
# front; "defined" ones run from their definition; "checked" ones do, too, with a look at values of all examples that are not allowed.
FAMILIES: dict[str, Any] = {
    "": lambda op, backend, inner: partial(looped, backend, inner),
    "elementwise": lambda op, backend, inner: partial(elementwise, backend, inner),
    "trailing": lambda op, backend, inner: partial(trailing, backend, inner),
    "along": lambda op, backend, inner: partial(along, backend, inner, op.axes, [n for n in op.axes if n in op.parameters], op),
    "shaped": lambda op, backend, inner: partial(shaped, backend, inner, op.axes),
    "stacked": lambda op, backend, inner: partial(stacked, backend, inner, op.core),
    "defined": lambda op, backend, inner: None,
    "checked": lambda op, backend, inner: partial(op.forward, Whole(backend)),
}
RULES: dict[str, Any] = {
    "t": transposed, "prod": along_one, "argmax": along_one, "argmin": along_one, "pad_constant": padded, "clone": cloned,
    "copied": copied, "embedding_add": rows_added,
    "resample": resampled, "add_axis": resampled, "native_layer_norm": layer_norm, "native_group_norm": group_norm, "columns": windows,
    "columns_added": windows, "convolution": convolved, "convolution_input": convolved, "convolution_weight": convolved_weight, "matmul": multiplied,
    "greatest_of_all": partial(of_all, "max"), "least_of_all": partial(of_all, "min"), "median_of_all": partial(of_all, "median_dim"),
    "nanmedian_of_all": partial(of_all, "nanmedian_dim"),
}
