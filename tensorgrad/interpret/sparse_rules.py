"""Rules of ops on sparse tensors: elementwise ones, reductions, and those that move places."""
from __future__ import annotations

import builtins
from functools import partial
from typing import Any

from ..core.dispatch import fresh, move, namespace
from ..dtype import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr
from ..ops.base import OPS
from ..ops.sparse import sampled
from ..storage.sparse import SHOWN, Compressed, Coo
from .sparse import (
    at,
    check_strides,
    coalesced,
    dense,
    flat,
    hook,
    in_layout,
    is_sparse,
    made,
    pattern,
    refuse,
    rule,
    summed,
    take,
    values,
)

# ── elementwise ───────────────────────────────────────────────────────────────────────────────────────────────────────

def _on_values(name: str, combine: bool, xp: Any, x: Any, *others: Any, **params: Any) -> Any:
    if params.get("decimals"):
        refuse("round.decimals", x)
    x = coalesced(xp, x) if combine else x
    if name == "square":
        return made(xp, pattern(x), values(xp, x) * values(xp, x))
    return made(xp, pattern(x), getattr(xp, name)(values(xp, x), *others, **params))


for _op in list(OPS.values()):
    if _op.zeros:       # an additive op does not need coalesced values
        rule(_op.opname)(partial(_on_values, _op.opname, _op.zeros != "additive"))


@rule("angle")
def angle(xp: Any, x: Any) -> Any:
    if isinstance(pattern(x), Coo):
        refuse("angle", x)
    return made(xp, pattern(x), xp.angle(values(xp, x)))


# functions whose in-place forms require coalesced tensors in PyTorch
COALESCED = frozenset("abs absolute arcsin arcsinh arctan arctanh asin asinh atan atanh ceil deg2rad erf erfinv expm1 "
                      "floor frac log1p nan_to_num rad2deg relu round sgn sign sin sinh sqrt tan tanh trunc".split())


@hook
def check_in_place(x: Any, name: str) -> None:
    """Raise PyTorch's error for a function that cannot replace the values of this tensor."""
    own = pattern(x)
    if isinstance(own, Coo) and not own.coalesced and name in COALESCED:
        raise RuntimeError(f"{name}_ requires coalesced input")


@rule("cast")
def cast(xp: Any, x: Any, *, dtype: Any) -> Any:
    return made(xp, pattern(x), xp.cast(values(xp, x), dtype=dtype))


def fit(name: str, a: Any, b: Any) -> None:
    if tuple(a.shape) != tuple(b.shape):
        if name == "add" and isinstance(pattern(a), Compressed):
            raise RuntimeError("torch.add: Expected input tensors to have the same shape, but got tensor `self` with "
                               f"shape {list(a.shape)} and tensor `other` with shape {list(b.shape)}")
        raise RuntimeError(f"{name}: expected sizes of 'self' and 'other' to match, but {list(a.shape)} != "
                           f"{list(b.shape)}")


@rule("add")
def add(xp: Any, a: Any, b: Any) -> Any:
    if not is_sparse(a):
        if not hasattr(a, "shape") or tuple(a.shape) != tuple(b.shape):
            raise RuntimeError("add: expected 'self' and 'other' to have same size, but self has size "
                               f"{list(getattr(a, 'shape', ()))} while other has size {list(b.shape)} (FYI: "
                               "dense-sparse addition does not currently support broadcasting)")
        return xp.add(a, dense(xp, b))
    if not is_sparse(b):
        if isinstance(pattern(a), Compressed) and hasattr(b, "shape"):
            return xp.add(dense(xp, a), b)
        raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    fit("add", a, b)
    one, two = pattern(a), pattern(b)
    if one is two or same_places(one, two):
        return made(xp, one, xp.add(values(xp, a), values(xp, b)))
    if isinstance(one, Compressed):
        total = add(xp, in_layout(xp, a, sparse_coo), in_layout(xp, b, sparse_coo))
        return in_layout(xp, total, one.layout, one.blocksize)
    if isinstance(two, Compressed):
        return add(xp, a, in_layout(xp, b, sparse_coo))
    if one.sparse_dim != two.sparse_dim:
        if not one.count or not two.count:
            kept, other = (b, a) if not one.count else (a, b)
            found = values(xp, kept)
            return made(xp, pattern(kept), xp.add(found, xp.zeros(tuple(found.shape), dtype=other.dtype)))
        raise RuntimeError(f"add: expected 'self' and 'other' to have same number of sparse dimensions, but got "
                           f"{one.sparse_dim} != {two.sparse_dim}")
    module = one.backend.module
    both = Coo(module.concatenate([one.indices, two.indices], axis=1), one.shape, one.backend)
    total = made(xp, both, xp.concat([values(xp, a), values(xp, b)], axis=0))
    return coalesced(xp, total) if one.coalesced and two.coalesced else total


def same_places(one: Any, two: Any) -> bool:
    """Return True if two patterns have the same index arrays."""
    if type(one) is not type(two) or one.layout is not two.layout or one.values_shape != two.values_shape:
        return False
    if isinstance(one, Coo):
        return one.sparse_dim == two.sparse_dim and bool((one.indices == two.indices).all())
    return (one.blocksize == two.blocksize and bool((one.compressed == two.compressed).all())
            and bool((one.plain == two.plain).all()))


@rule("subtract")
def subtract(xp: Any, a: Any, b: Any) -> Any:
    if is_sparse(b) and hasattr(a, "dtype") and a.dtype != b.dtype:     # negated in the common dtype: b may be unsigned
        v = values(xp, b)
        return add(xp, a, made(xp, pattern(b), xp.subtract(xp.zeros((1,) * v.ndim, dtype=a.dtype), v)))
    return add(xp, a, _on_values("negative", False, xp, b) if is_sparse(b) else -b)


@rule("multiply")
def multiply(xp: Any, a: Any, b: Any) -> Any:
    if not is_sparse(a) or is_sparse(b) and not pattern(a).shape:
        a, b = b, a
    if is_sparse(b) and not pattern(b).shape:
        b = dense(xp, b)
    if not getattr(b, "shape", ()):
        found = values(xp, a)
        if not pattern(a).shape and hasattr(b, "shape"):        # two tensors without axes: both decide on the dtype
            b = xp.reshape(b, (1,) * len(found.shape))
        return made(xp, pattern(a), xp.multiply(found, b))
    if not is_sparse(b):
        return _times_dense(xp, a, b)
    one, two = pattern(a), pattern(b)
    if one is two and getattr(one, "coalesced", True):
        return made(xp, one, xp.multiply(values(xp, a), values(xp, b)))
    if isinstance(one, Compressed) or isinstance(two, Compressed):
        fit("mul", a, b)
        found = multiply(xp, in_layout(xp, a, sparse_coo), in_layout(xp, b, sparse_coo))
        return found if isinstance(one, Coo) else in_layout(xp, found, one.layout, one.blocksize)
    places = one.shape[:one.sparse_dim]
    if len(one.shape) != len(two.shape) or places != two.shape[:two.sparse_dim]:
        raise RuntimeError("sparse_binary_op_intersection_cpu(): expects sparse inputs with equal dimensionality, "
                           "number of sparse dimensions, and shape of sparse dimensions")
    if one.coalesced or not two.coalesced:
        a, b, one, two = b, coalesced(xp, a), two, one.ordered[0]
    # the places of the tensor that need not be coalesced, where the other tensor has a value
    module = one.backend.module
    there = module.nonzero(module.isin(one.keys, two.keys))[0]
    common = Coo(one.indices[:, there], two.shape, one.backend, one.coalesced)
    there_in_b = sampled(xp, b, common)  # type: ignore[no-untyped-call]
    found = xp.multiply(take(xp, values(xp, a), there), there_in_b)
    return made(xp, Coo(common.indices, (*places, *found.shape[1:]), one.backend, one.coalesced), found)


def _times_dense(xp: Any, a: Any, b: Any) -> Any:
    own, shape = pattern(a), tuple(b.shape)
    if len(shape) > len(own.shape):
        for size in shape[:len(shape) - len(own.shape)][::-1]:
            a = repeated(xp, in_layout(xp, a, sparse_coo), size)
        own = pattern(a)
    lead = len(own.shape) - len(shape)
    for axis, size in enumerate(shape, lead):
        if own.shape[axis] == 1 != size:
            a = stretched(xp, in_layout(xp, a, sparse_coo), axis, size)
            own = pattern(a)
    if shape != own.shape:
        b = xp.broadcast_to(b, shape=own.shape)
    return made(xp, own, xp.multiply(values(xp, a), sampled(xp, b, own)))  # type: ignore[no-untyped-call]


def repeated(xp: Any, x: Any, size: int) -> Any:
    """Repeat the tensor along a new first axis."""
    own = pattern(x)
    module = own.backend.module
    which = module.repeat(module.arange(size), own.count)
    order = module.tile(module.arange(own.count), size)
    indices = module.concatenate([which[None], own.indices[:, order]])
    return made(xp, Coo(indices, (size, *own.shape), own.backend, own.coalesced), take(xp, values(xp, x), order))


def stretched(xp: Any, x: Any, axis: int, size: int) -> Any:
    """Repeat the only element of an axis."""
    own = pattern(x)
    module, shape, place = own.backend.module, (*own.shape[:axis], size, *own.shape[axis + 1:]), axis - own.sparse_dim
    if place >= 0:
        found = values(xp, x)
        found = xp.broadcast_to(found, shape=(*found.shape[:place + 1], size, *found.shape[place + 2:]))
        return made(xp, Coo(own.indices, shape, own.backend, own.coalesced), found)
    order = module.repeat(module.arange(own.count), size)
    indices = own.indices[:, order].copy()
    indices[axis] = module.tile(module.arange(size), own.count)
    return made(xp, Coo(indices, shape, own.backend), take(xp, values(xp, x), order))


def has_axes(x: Any) -> bool:
    """Return True for an operand that is neither a number nor 0-dimensional."""
    return len(getattr(x, "shape", ())) > 0


def _divided(name: str, xp: Any, a: Any, b: Any) -> Any:
    if not is_sparse(a):
        raise RuntimeError("Sparse division requires a scalar or zero-dim dense tensor divisor (got shape "
                           f"{list(b.shape)} for divisor)")
    if is_sparse(b) or has_axes(b):
        kind = "division" if name == "divide" else "floor division"
        raise RuntimeError(f"Sparse {kind} requires a scalar or zero-dim dense tensor divisor (got shape "
                           f"{list(b.shape)} for divisor)")
    if name != "divide":
        a = coalesced(xp, a)
    return made(xp, pattern(a), getattr(xp, name)(values(xp, a), b))


for _name in ("divide", "floor_divide", "trunc_divide"):
    rule(_name)(partial(_divided, _name))


@rule("power")
def power(xp: Any, a: Any, b: Any) -> Any:
    if is_sparse(b) or not is_sparse(a) or has_axes(b):
        refuse("pow.Tensor_Tensor", a, b)
    if b == 0:
        raise RuntimeError("pow: cannot raise to zeroth power on sparse tensor; it would make the result tensor dense")
    a = coalesced(xp, a)
    return made(xp, pattern(a), xp.power(values(xp, a), b))


# ── reductions ────────────────────────────────────────────────────────────────────────────────────────────────────────


@rule("sum")
def sum(xp: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    own = pattern(x)
    if getattr(x, "array", x).dtype.kind in "biu":
        x = cast(xp, x, dtype="int64")
    axes = tuple(range(len(own.shape))) if axis is None or axis == () else axis if isinstance(axis, tuple) else (axis,)
    if isinstance(own, Compressed):
        return _sum_compressed(xp, x, axes, axis is None, keepdims)
    if len(axes) == len(own.shape) and not keepdims:
        return xp.sum(values(xp, x))
    gone = [i for i in axes if i < own.sparse_dim]
    inner = tuple(i - own.sparse_dim + 1 for i in axes if i >= own.sparse_dim)
    left = [i for i in range(own.sparse_dim) if i not in gone]
    found = values(xp, x)
    if inner:
        found = xp.sum(found, axis=inner, keepdims=keepdims)
    dense_shape = tuple(found.shape[1:])
    if not left and not keepdims:
        return xp.sum(found, axis=(0,))
    module = own.backend.module
    if keepdims:
        places = module.stack([own.indices[i] * (i in left) for i in range(own.sparse_dim)])
        shape = (*(n if i in left else 1 for i, n in enumerate(own.shape[:own.sparse_dim])), *dense_shape)
    else:
        places, shape = own.indices[left], (*(own.shape[i] for i in left), *dense_shape)
    if not gone:
        return made(xp, Coo(own.indices, shape, own.backend, own.coalesced), found)
    return coalesced(xp, made(xp, Coo(places, shape, own.backend), found))


def _sum_compressed(xp: Any, x: Any, axes: tuple[int, ...], full: bool, keepdims: bool) -> Any:
    if full:
        return xp.sum(values(xp, x))
    if pattern(x).layout is not sparse_csr:
        raise RuntimeError("Currently the only compressed sparse format supported for sum.dim_IntList is CSR, but got "
                           f"layout {SHOWN[pattern(x).layout]}")
    if not keepdims:
        raise RuntimeError("reduction operations on CSR tensors with keepdim=False is unsupported")
    return in_layout(xp, sum(xp, in_layout(xp, x, sparse_coo), axis=axes, keepdims=True), pattern(x).layout)


@rule("any")
def any_(xp: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    if axis is not None:
        refuse("any.dim", x)
    return xp.any(values(xp, coalesced(xp, x)))


@rule("vector_norm", "count_norm")
def vector_norm(xp: Any, x: Any, *, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    own = pattern(x)
    if isinstance(own, Compressed):
        refuse("norm.out", x)
    if keepdims:
        raise RuntimeError("norm_sparse currently does not support keepdim=True")
    if axis is not None and len(axis) not in (0, len(own.shape)):
        raise RuntimeError("norm_sparse currently only supports full reductions, so 'dim' must either be empty or "
                           "contain all dimensions of the input")
    found = values(xp, coalesced(xp, x))
    return xp.count_norm(found) if ord is None else xp.vector_norm(found, ord=ord)


# ── places ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@rule("permute_dims")
def permute_dims(xp: Any, x: Any, *, axes: Any) -> Any:
    own = pattern(x)
    axes = tuple(a % len(own.shape) for a in axes)
    if axes == tuple(range(len(axes))):
        return x
    if isinstance(own, Compressed):
        return _turned(xp, x, axes)
    sparse_dim = own.sparse_dim
    if sorted(axes[:sparse_dim]) != list(range(sparse_dim)):
        raise RuntimeError("permute(sparse_coo): transpositions between sparse and dense dimensions are not "
                           "allowed.Only transpositions within sparse and dense dimensions are supported.")
    moved = Coo(own.indices[list(axes[:sparse_dim])], tuple(own.shape[a] for a in axes), own.backend)
    found = values(xp, x)
    inner = tuple(a - sparse_dim + 1 for a in axes[sparse_dim:])
    out = made(xp, moved, xp.permute_dims(found, axes=(0, *inner)) if inner else found)
    if not own.coalesced or axes[0]:
        moved.coalesced = False
        return out
    if axes[:sparse_dim] == tuple(range(sparse_dim)):
        moved.coalesced = True
    return coalesced(xp, out)       # as in PyTorch, which does not sort the places


OTHER = {sparse_csr: sparse_csc, sparse_csc: sparse_csr, sparse_bsr: sparse_bsc, sparse_bsc: sparse_bsr}


def _turned(xp: Any, x: Any, axes: tuple[int, ...]) -> Any:
    """Transpose a matrix: rows become columns, and no index changes."""
    own = pattern(x)
    count = len(own.batch)
    if axes != (*range(count), count + 1, count, *range(count + 2, len(axes))):
        raise RuntimeError("transpose: only the two axes of the matrices can be exchanged in a compressed layout")
    flipped = Compressed(OTHER[own.layout], own.compressed, own.plain, tuple(own.shape[a] for a in axes), own.backend,
                         own.blocksize[::-1], own.dense_dim)
    found = values(xp, x)
    if own.blocked:
        place = own.plain.ndim
        found = xp.swapaxes(found, axis1=place, axis2=place + 1)
    return made(xp, flipped, found)


@rule("t")
def t(xp: Any, x: Any) -> Any:
    if pattern(x).dense_dim:
        raise RuntimeError("t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got "
                           f"{pattern(x).sparse_dim} sparse and {pattern(x).dense_dim} dense dimensions")
    return swapaxes(xp, x, axis1=0, axis2=1) if len(x.shape) > 1 else x


@rule("swapaxes")
def swapaxes(xp: Any, x: Any, *, axis1: int, axis2: int) -> Any:
    axes, own = list(range(len(x.shape))), pattern(x)
    axes[axis1], axes[axis2] = axes[axis2], axes[axis1]
    if isinstance(own, Compressed):
        kinds = ["Batch"] * len(own.batch) + ["Sparse"] * 2 + ["Dense"] * own.dense_dim
        if kinds[axis1] != kinds[axis2]:
            raise RuntimeError("transpose(): can only transpose dimensions of the same type (Batch, Sparse, Dense), "
                               f"got {axis1}({kinds[axis1]}) and {axis2}({kinds[axis2]})")
    elif (axis1 < own.sparse_dim) is not (axis2 < own.sparse_dim):
        raise RuntimeError("sparse transpose: transposed dimensions must be sparse "
                           f"Got sparse_dim: {own.sparse_dim}, d0: {axis1}, d1: {axis2}")
    out = permute_dims(xp, x, axes=tuple(axes))
    if isinstance(own, Coo) and not own.count:
        pattern(out).coalesced = True
    return out


@rule("expand_dims")
def expand_dims(xp: Any, x: Any, *, axis: int) -> Any:
    own = pattern(x)
    check_strides(x, "strides")
    axis = axis % (len(own.shape) + 1)
    shape = (*own.shape[:axis], 1, *own.shape[axis:])
    if axis > own.sparse_dim:
        found = xp.expand_dims(values(xp, x), axis=axis - own.sparse_dim + 1)
        return made(xp, Coo(own.indices, shape, own.backend, own.coalesced), found)
    module = own.backend.module
    indices = module.concatenate([own.indices[:axis], module.zeros((1, own.count), dtype="int64"), own.indices[axis:]])
    return made(xp, Coo(indices, shape, own.backend, own.coalesced), values(xp, x))


@rule("concat")
def concat(xp: Any, xs: Any, *, axis: int = 0) -> Any:
    patterns = [pattern(x) for x in xs]
    for p in patterns:
        if p is None:
            raise RuntimeError("Concatenating sparse tensors, but a dense tensor was found at position "
                               f"{patterns.index(None)}.")
        check_strides(xs[patterns.index(p)], "is_contiguous")
    first = patterns[0]
    axis = axis % len(first.shape)
    for place, p in enumerate(patterns):
        if (*p.shape[:axis], *p.shape[axis + 1:]) != (*first.shape[:axis], *first.shape[axis + 1:]):
            shapes = ", ".join(str(list(q.shape)) for q in patterns)
            raise RuntimeError(f"All tensors must have the same shape: {shapes}. Found mismatch at position {place}")
        if p.sparse_dim != first.sparse_dim:
            raise RuntimeError("All tensors must have the same sparse_dim and dense_dim: "
                               + ", ".join(f"{q.sparse_dim}, {q.dense_dim}" for q in patterns))
    shape = list(first.shape)
    shape[axis] = builtins.sum(p.shape[axis] for p in patterns)
    module = first.backend.module
    if axis >= first.sparse_dim:
        return _joined_inside(xp, xs, patterns, axis, tuple(shape))
    pieces, begin = [], 0
    for p in patterns:
        moved = p.indices.copy()
        moved[axis] += begin
        pieces.append(moved)
        begin += p.shape[axis]
    joined = Coo(module.concatenate(pieces, axis=1), tuple(shape), first.backend)
    return made(xp, joined, xp.concat([values(xp, x) for x in xs], axis=0))


def _joined_inside(xp: Any, xs: Any, patterns: Any, axis: int, shape: tuple[int, ...]) -> Any:
    """Join along a dense axis: each value is padded with zeros to the length of all."""
    first = patterns[0]
    place, pieces, begin = axis - first.sparse_dim + 1, [], 0
    for x, p in zip(xs, patterns, strict=True):
        widths = [(0, 0)] * (first.dense_dim + 1)
        widths[place] = (begin, shape[axis] - begin - p.shape[axis])
        pieces.append(_padded(xp, values(xp, x), place, *widths[place]))
        begin += p.shape[axis]
    joined = Coo(first.backend.module.concatenate([p.indices for p in patterns], axis=1), shape, first.backend)
    return made(xp, joined, xp.concat(pieces, axis=0))


def _padded(xp: Any, x: Any, axis: int, before: int, after: int) -> Any:
    def zeros(n: int) -> Any:
        shape = list(x.shape)
        shape[axis] = n
        return xp.zeros(tuple(shape), dtype=x.dtype)
    return xp.concat([zeros(before), x, zeros(after)], axis=axis)


@rule("stack")
def stack(xp: Any, xs: Any, *, axis: int = 0) -> Any:
    for x in xs:
        if not is_sparse(x):
            raise RuntimeError("Concatenating sparse tensors, but a dense tensor was found at position "
                               f"{list(map(is_sparse, xs)).index(False)}.")
    return concat(xp, [expand_dims(xp, x, axis=axis) for x in xs], axis=axis)


@rule("index_select")
def index_select(xp: Any, x: Any, index: Any, *, axis: int) -> Any:
    own = pattern(x)
    if isinstance(own, Compressed):
        refuse("index_select", x)
    chosen = getattr(index, "array", index)
    shape = (*own.shape[:axis], int(chosen.size), *own.shape[axis + 1:])
    if axis >= own.sparse_dim:
        found = xp.index_select(values(xp, x), index, axis=axis - own.sparse_dim + 1)
        return made(xp, Coo(own.indices, shape, own.backend, own.coalesced), found)
    module, order, places = own.backend.module, *_matches(own, axis, chosen)
    indices = own.indices[:, order].copy()
    indices[axis] = places
    return made(xp, Coo(module.ascontiguousarray(indices), shape, own.backend), take(xp, values(xp, x), order))


def _matches(own: Any, axis: int, chosen: Any) -> tuple[Any, Any]:
    """Return the numbers of the values at each chosen index of an axis, and for each of them the number of its choice.
    """
    module = own.backend.module
    chosen = chosen.reshape(-1).astype("int64")
    by_index = module.argsort(own.indices[axis], kind="stable")
    ordered = own.indices[axis][by_index]
    low, high = module.searchsorted(ordered, chosen, side="left"), module.searchsorted(ordered, chosen, side="right")
    counts = high - low
    places = module.repeat(module.arange(chosen.size), counts)
    first = module.cumsum(counts) - counts
    within = module.arange(places.size) - module.repeat(first, counts)
    return by_index[module.repeat(low, counts) + within], places


def selected(xp: Any, x: Any, axis: int, index: int) -> Any:
    """Select one index of an axis, which is dropped."""
    own = pattern(x)
    if isinstance(own, Compressed):
        if not len(own.batch) <= axis < len(own.batch) + 2:
            return _selected_outside(xp, x, axis, index)
        if own.batch:
            raise RuntimeError("select(): selecting sparse dimensions is not supported for batched sparse compressed "
                               "tensors.")
        x = in_layout(xp, x, sparse_coo)
        own = pattern(x)
    shape = (*own.shape[:axis], *own.shape[axis + 1:])
    if axis >= own.sparse_dim:
        found = xp.get_item(values(xp, x), index=(*[slice(None)] * (axis - own.sparse_dim + 1), index))
        return made(xp, Coo(own.indices, shape, own.backend, own.coalesced), found)
    module = own.backend.module
    order = module.nonzero(own.indices[axis] == index)[0]
    found = take(xp, values(xp, x), order)
    if own.sparse_dim == 1:
        return xp.cast(xp.sum(found, axis=(0,)), dtype=getattr(x, "array", x).dtype)
    rest = [i for i in range(own.sparse_dim) if i != axis]
    return made(xp, Coo(own.indices[rest][:, order], shape, own.backend, own.coalesced), found)


def _selected_outside(xp: Any, x: Any, axis: int, index: int) -> Any:
    """Select a matrix of a batch, or along a dense axis an element of each value."""
    own = pattern(x)
    shape, count = (*own.shape[:axis], *own.shape[axis + 1:]), len(own.batch)
    place = axis if axis < count else axis - count - 2 + len(own.values_shape) - own.dense_dim
    found = xp.get_item(values(xp, x), index=(*[slice(None)] * place, index))
    if axis >= count:
        return made(xp, Compressed(own.layout, own.compressed, own.plain, shape, own.backend, own.blocksize,
                                   own.dense_dim - 1), found)
    one, module = (*[slice(None)] * axis, index), own.backend.module
    lines, plain = (module.ascontiguousarray(part[one]) for part in (own.compressed, own.plain))
    return made(xp, Compressed(own.layout, lines, plain, shape, own.backend, own.blocksize, own.dense_dim), found)


def narrowed(xp: Any, x: Any, axis: int, start: int, length: int) -> Any:
    """Select a range of indices of an axis."""
    own = pattern(x)
    shape = (*own.shape[:axis], length, *own.shape[axis + 1:])
    if axis >= own.sparse_dim:
        found = xp.get_item(values(xp, x), index=(*[slice(None)] * (axis - own.sparse_dim + 1),
                                                  slice(start, start + length)))
        return made(xp, Coo(own.indices, shape, own.backend, own.coalesced), xp.contiguous(found))
    module, index = own.backend.module, own.indices[axis]
    order = module.nonzero((index >= start) & (index < start + length))[0]
    indices = own.indices[:, order].copy()
    indices[axis] -= start
    return made(xp, Coo(indices, shape, own.backend, own.coalesced), take(xp, values(xp, x), order))


@rule("get_item")
def get_item(xp: Any, x: Any, *, index: Any) -> Any:
    axis = 0
    for part in index if isinstance(index, tuple) else (index,):
        if part is None:
            x = expand_dims(xp, x, axis=axis) if is_sparse(x) else xp.expand_dims(x, axis=axis)
            axis += 1
        elif isinstance(part, slice):
            if part != slice(None) and part.indices(x.shape[axis]) != (0, x.shape[axis], 1):
                refuse("as_strided", x) if is_sparse(x) else None
                x = xp.get_item(x, index=(*[slice(None)] * axis, part))
            axis += 1
        elif part is not Ellipsis:
            x = (selected(xp, x, axis, part % x.shape[axis]) if is_sparse(x)
                 else xp.get_item(x, index=(*[slice(None)] * axis, part)))
        else:
            axis += len(x.shape) - axis - (len(index) - 1 - index.index(Ellipsis))
    return x


@rule("unbind")
def unbind(xp: Any, x: Any, *, axis: int = 0) -> Any:
    if isinstance(pattern(x), Compressed):
        refuse("unbind.int", x)
    return [selected(xp, x, axis, i) for i in range(x.shape[axis])]


@rule("broadcast_to")
def broadcast_to(xp: Any, x: Any, *, shape: Any) -> Any:
    if tuple(shape) == tuple(x.shape):
        return x
    raise RuntimeError("expand is unsupported for Sparse tensors")


# ── copies ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@hook
def moved(tensor: Any, target: Any) -> Any:
    """Move the tensor to another device: called by `core.dispatch.move`, on Tensors."""
    own, target = pattern(tensor), target.dense or target
    if target.hollow:       # without values, as PyTorch
        none = empty(own, target)
        zeros = target.xp.zeros(none.values_shape, dtype=tensor.array.dtype)
        return made(namespace(target), none, fresh(zeros, target))
    def sent(array: Any) -> Any: return target.asarray(own.backend.host(array))
    if isinstance(own, Coo):
        there: Any = Coo(sent(own.indices), own.shape, target, own.coalesced)
    else:
        there = Compressed(own.layout, sent(own.compressed), sent(own.plain), own.shape, target, own.blocksize,
                           own.dense_dim)
    return made(namespace(target), there, move(values(namespace(own.backend), tensor), target))


def empty(own: Any, backend: Any = None) -> Any:
    """Return the pattern without values for the layout and shape of a tensor, on its backend or another one."""
    backend = backend or own.backend
    zeros = backend.xp.zeros
    if isinstance(own, Coo):
        return Coo(zeros((own.sparse_dim, 0), dtype="int64"), own.shape, backend, True)
    return Compressed(own.layout, zeros(own.compressed.shape, dtype=own.compressed.dtype),
                      zeros((*own.batch, 0), dtype=own.plain.dtype), own.shape, backend, own.blocksize, own.dense_dim)


@rule("zeros_like", "filled")
def zeros_like(xp: Any, x: Any, *, value: Any = 0, dtype: Any = None) -> Any:
    if isinstance(own := pattern(x), Compressed) and value != 0:
        return made(xp, own, xp.full(own.values_shape, value, dtype=dtype or x.dtype))
    if value != 0:
        refuse("fill_.Scalar", x)
    none = empty(pattern(x))
    return made(xp, none, xp.zeros(none.values_shape, dtype=dtype or x.dtype))


def _check_copy(own: Any, source: Any) -> None:
    """Raise PyTorch's error for a compressed tensor that cannot take over the places of another."""
    if not isinstance(own, Compressed):
        raise RuntimeError("copy_sparse_compressed_ expected sparse compressed tensor layout but got "
                           f"{'Strided' if own is None else SHOWN[own.layout]}")
    layout = "Strided" if source is None else SHOWN[source.layout]
    if layout != SHOWN[own.layout]:
        raise RuntimeError("torch.copy_: copy of sparse compressed tensors having different layouts is not supported. "
                           f"self layout is {SHOWN[own.layout]} and src layout is {layout}")
    for axis, (wanted, found) in enumerate(zip(own.shape, source.shape)):
        if wanted != found:
            raise RuntimeError(f"torch.copy_: expected shapes of self and src to match along dimension {axis} for "
                               f"{SHOWN[own.layout]} layout but the corresponding dimensions of self and src are "
                               f"{wanted} and {found}, respectively.")
    if own.count != source.count:
        raise RuntimeError("torch.copy_: only sparse compressed tensors with the same number of specified elements are "
                           "supported.")
    if own.blocksize != source.blocksize:
        raise RuntimeError("torch.copy_: copy of sparse compressed tensors having different block sizes is not "
                           f"supported. self and src block sizes are {list(own.blocksize)} and "
                           f"{list(source.blocksize)}, respectively.")


@rule("copied")
def copied(xp: Any, x: Any, src: Any) -> Any:
    """Return `src`, with its own places, in the layout of x."""
    if isinstance(pattern(x), Compressed) or isinstance(pattern(src), Compressed):
        _check_copy(pattern(x), pattern(src))
    if not is_sparse(x) or not is_sparse(src):
        kinds = [getattr(t, "type", str)() for t in (x, src)]
        raise RuntimeError("copy_() between dense and sparse Tensors is not implemented! Found self type = "
                           f"{kinds[0]} and src type = {kinds[1]}")
    return made(xp, pattern(src), xp.clone(values(xp, src)))


__all__ = ["at", "dense", "flat", "narrowed", "selected", "summed"]
