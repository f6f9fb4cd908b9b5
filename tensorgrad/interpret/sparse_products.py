"""Rules of products with sparse matrices, and of functions along rows or columns."""
from __future__ import annotations

from math import prod
from typing import Any

from ..dtype import sparse_coo, sparse_csc, sparse_csr
from ..runtime.small_floats import computed
from ..storage.sparse import Compressed, Coo, starts_of
from .sparse import coalesced, flat, in_layout, is_sparse, made, pattern, refuse, rule, summed, take, values
from .sparse_rules import t as transposed


def misfit(a: Any, b: Any) -> RuntimeError:
    shapes = [f"{n}x{m}" for n, m in (tuple(x.shape[-2:]) for x in (a, b))]
    return RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({shapes[0]} and {shapes[1]})")


@rule("matmul")
def matmul(xp: Any, a: Any, b: Any) -> Any:
    if len(b.shape) == 1 and is_sparse(a) and not is_sparse(b):
        if a.shape[-1] != b.shape[0]:
            raise RuntimeError("mv: expected self.size(-1) == vec.size(-1)" if isinstance(pattern(a), Coo) else
                               f"size mismatch, got input ({a.shape[0]}), mat ({'x'.join(map(str, a.shape))}), vec "
                               f"({b.shape[0]})")
        return xp.squeeze(matmul(xp, a, xp.expand_dims(b, axis=1)), axis=(1,))
    if len(a.shape) == 3 and len(b.shape) == 3:
        return stack_matmul(xp, a, b)
    if len(a.shape) != 2 or len(b.shape) != 2:
        if is_sparse(a) and is_sparse(b) or len(a.shape) > 2 or len(b.shape) > 2:
            raise RuntimeError("expand is unsupported for Sparse tensors")
        refuse("mv" if len(b.shape) == 1 else "dot", a, b)
    if a.shape[1] != b.shape[0]:
        if isinstance(pattern(a), Coo) and not is_sparse(b):
            raise RuntimeError(f"addmm: Argument #3 (dense): Expected dim 0 size {a.shape[1]}, got {b.shape[0]}")
        raise misfit(a, b)
    check_plain(a, b)
    if is_sparse(a) and is_sparse(b):
        return of_two(xp, a, b)
    if is_sparse(a):
        rows, found = by_rows(xp, a)
        return xp.sparse_matmul(found, b, pattern=rows)
    rows, found = by_rows(xp, b)
    return xp.t(xp.sparse_matmul(found, xp.t(a), pattern=rows, transposed=True))


@rule("linear_without_bias")
def linear_without_bias(xp: Any, x: Any, w: Any) -> Any:
    """x·wᵀ"""
    if is_sparse(w):
        return matmul(xp, x, transposed(xp, w))
    return matmul(xp, x, xp.t(w) if len(w.shape) == 2 else w)


@rule("linear")
def linear(xp: Any, x: Any, w: Any, b: Any) -> Any:
    return xp.add(linear_without_bias(xp, x, w), b)


def check_plain(*operands: Any) -> None:
    for x in operands:
        if is_sparse(x) and pattern(x).dense_dim:
            raise RuntimeError(f"addmm: matrices expected, got {pattern(x).sparse_dim}D tensor")


def by_rows(xp: Any, x: Any) -> tuple[Any, Any]:
    """Return the rows of a sparse matrix as a Csr, and its values in the order of the rows."""
    rows, order = pattern(x).csr
    return rows, take(xp, flat(xp, x), order)


def stack_matmul(xp: Any, a: Any, b: Any) -> Any:
    """Multiply stacks of sparse and dense matrices: as one product, with a block-diagonal sparse matrix."""
    count, n, k = a.shape
    if tuple(b.shape[:2]) != (count, k):
        raise misfit(a, b)
    if not is_sparse(a) or is_sparse(b):
        refuse("bmm", a, b)
    a = in_layout(xp, a, sparse_coo)
    check_plain(a)
    csr, order = blocks(pattern(a), n, k).csr
    out = xp.sparse_matmul(take(xp, values(xp, a), order), xp.reshape(b, (count * k, b.shape[2])), pattern=csr)
    return xp.reshape(out, (count, n, b.shape[2]))


def of_two(xp: Any, a: Any, b: Any) -> Any:
    """Multiply two sparse matrices: each value of a row of `a` times the values of a row of `b`."""
    layout = pattern(a).layout if pattern(a).layout is not sparse_csc else sparse_csr
    a, b = coalesced(xp, in_layout(xp, a, sparse_coo)), coalesced(xp, in_layout(xp, b, sparse_coo))
    one, two, module = pattern(a), pattern(b), pattern(a).backend.module
    rows, inner = one.indices
    starts = starts_of(module, two.indices[0], two.shape[0])
    first, counts = starts[inner], starts[inner + 1] - starts[inner]
    left = module.repeat(module.arange(one.count), counts)
    right = module.arange(left.size) - module.repeat(module.cumsum(counts) - counts, counts) + first[left]
    met = Coo(module.stack([rows[left], two.indices[1][right]]), (one.shape[0], two.shape[1]), one.backend)
    out = coalesced(xp, made(xp, met, take(xp, values(xp, a), left) * take(xp, values(xp, b), right)))
    return out if layout is sparse_coo else in_layout(xp, out, layout)


def sampled_addmm(xp: Any, x: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
    """beta·x + alpha·(a·b), at the places of x alone; for a matrix, or for each matrix of a stack."""
    batch = tuple(a.shape[:-2])
    if batch != pattern(x).batch:
        x = repeated(xp, x, batch)
    own = pattern(x)
    if batch:
        (n, k), m = a.shape[-2:], b.shape[-1]
        rows = blocks(own, n, m).csr[0]
        count = prod(batch)
        a, b = xp.reshape(a, (count * n, k)), xp.reshape(xp.swapaxes(b, axis1=-2, axis2=-1), (count * m, k))
    else:
        rows, b = own.csr[0], xp.t(b)
    product = xp.reshape(xp.sampled_matmul(a, b, pattern=rows), own.values_shape)
    product = product if alpha == 1 else product * alpha
    return made(xp, own, product if beta == 0 else values(xp, x) * beta + product)


def repeated(xp: Any, x: Any, batch: tuple[int, ...]) -> Any:
    """Return a stack of equal compressed matrices."""
    own = pattern(x)
    lines, plain = (own.backend.module.broadcast_to(part, (*batch, part.shape[-1])).copy()
                    for part in (own.compressed, own.plain))
    wanted = Compressed(own.layout, lines, plain, (*batch, *own.shape), own.backend, own.blocksize, own.dense_dim)
    return made(xp, wanted, xp.broadcast_to(values(xp, x), shape=wanted.values_shape))


def blocks(own: Any, n: int, m: int) -> Coo:
    """Return the pattern of the block-diagonal matrix of a stack of (n, m) matrices."""
    *lead, rows, columns = own.entries.indices
    module, sizes = own.backend.module, own.shape[:len(lead)]
    which = module.zeros(rows.shape, dtype="int64")
    for index, size in zip(lead, sizes, strict=True):
        which = which * size + index
    count = prod(sizes)
    return Coo(module.stack([which * n + rows, which * m + columns]), (count * n, count * m), own.backend,
               own.entries.coalesced)


# ── along rows and columns ────────────────────────────────────────────────────────────────────────────────────────────


def softmax(xp: Any, x: Any, axis: int, log: bool) -> Any:
    """Softmax of the values; places without a value count as −∞."""
    x = coalesced(xp, in_layout(xp, x, sparse_coo))
    own, found = pattern(x), values(xp, x)
    if axis >= own.sparse_dim:
        inner = axis - own.sparse_dim + 1
        return made(xp, own, (xp.log_softmax if log else xp.softmax)(found, axis=inner))
    slots, count = lines(own, axis)
    high = xp.constant(highest(own.backend, getattr(found, "array", found), slots, count))
    moved = found - take(xp, high, slots)
    total = summed(xp, xp.exp(moved), slots, count)
    if log:
        return made(xp, own, moved - take(xp, xp.log(total), slots))
    return made(xp, own, xp.exp(moved) / take(xp, total, slots))


def lines(own: Coo, axis: int) -> tuple[Any, int]:
    """Return for each value the number of its line along an axis, and how many lines there are."""
    module = own.backend.module
    keys = module.zeros(own.count, dtype="int64")
    for i in range(own.sparse_dim):
        if i != axis:
            keys = keys * own.shape[i] + own.indices[i]
    unique, slots = module.unique(keys, return_inverse=True)
    return slots.reshape(-1), int(unique.size)


def highest(backend: Any, values: Any, slots: Any, count: int) -> Any:
    """Return the largest value of each slot."""
    module = backend.module
    order = module.argsort(slots, kind="stable")
    if not count:
        return module.zeros((0, *values.shape[1:]), dtype=values.dtype)
    starts = module.searchsorted(slots[order], module.arange(count), side="left")
    if hasattr(module.maximum, "reduceat"):
        return module.maximum.reduceat(values[order], starts, axis=0)
    out = module.full((count, *values.shape[1:]), -float("inf"), dtype=values.dtype)
    module.maximum.at(out, slots, values)
    return out


def reduced_matmul(xp: Any, a: Any, b: Any, reduce: str) -> Any:
    """The product in which the terms of an element are combined by sum, mean, amax or amin."""
    rows, found = by_rows(xp, a)
    module = rows.module
    if reduce in ("sum", "mean"):
        out = xp.sparse_matmul(found, b, pattern=rows)
        if reduce == "sum":
            return out
        counts = module.maximum(rows.indptr[1:] - rows.indptr[:-1], 1).reshape(-1, 1)
        return out / xp.cast(xp.constant(counts), dtype=getattr(b.dtype, "numpy", b.dtype))
    terms = xp.expand_dims(found, axis=-1) * xp.embedding(b, xp.constant(rows.indices))
    width = b.shape[1]
    numbers = getattr(terms, "array", terms)
    if numbers.dtype.kind == "V":               # a dtype without comparisons: compared in float32
        numbers = pattern(a).backend.cast(numbers, computed(numbers.dtype))
    chosen, there = extremes(numbers, rows, reduce == "amax")
    flat_terms = xp.embedding(xp.reshape(terms, (-1,)), xp.constant(chosen))
    out = xp.embedding_add(flat_terms, xp.constant(there), rows=rows.shape[0])
    return xp.reshape(out, (rows.shape[0], width))


def extremes(terms: Any, rows: Any, largest: bool) -> tuple[Any, Any]:
    """Return for each row with values and each column the flat index of the largest (or least) term; and those rows."""
    import numpy as np
    backend_terms = np.asarray(terms)
    full = np.flatnonzero(rows.indptr[1:] > rows.indptr[:-1])
    count, width = backend_terms.shape
    if not full.size:
        return np.zeros((0, width), dtype="int64"), full
    starts = rows.indptr[full]
    best = (np.maximum if largest else np.minimum).reduceat(backend_terms, starts, axis=0)
    slots = np.searchsorted(full, rows.rows)
    place = np.where(backend_terms == best[slots], np.arange(count)[:, None], count)
    first = np.minimum.reduceat(place, starts, axis=0)
    return first * width + np.arange(width), full
