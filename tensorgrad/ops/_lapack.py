"""Functions of LAPACK that array modules lack: LU, triangular systems, LDLᴴ, and factorizations that fail without an
exception.

Functions of arrays `f(xp, …)`, on stacks of matrices in the last two axes. `info` is LAPACK's: 0, or one plus the place
where a factorization broke down. Loops run over columns, never over elements, and big matrices are cut into blocks so
that matrix products do the work.
"""
from __future__ import annotations

from math import prod, sqrt

PANEL = 16      # columns that LU eliminates one by one
BLOCK = 128     # the order up to which the general solver, fast for triangular systems, is used


def stacked(x):
    """Return a stack of matrices with one leading axis, and the leading shape that it had."""
    *lead, m, n = x.shape
    return x.reshape(prod(lead), m, n), tuple(lead)


def common_lead(a, b):
    """The shape of two stacks that broadcast, less the matrices."""
    m, n = a.shape[:-2], b.shape[:-2]
    count = max(len(m), len(n))
    pairs = zip((1,) * (count - len(m)) + m, (1,) * (count - len(n)) + n, strict=True)
    return tuple(j if i == 1 else i for i, j in pairs)


def no_info(xp, x):
    """Return an info of zeros, one per matrix of a stack."""
    return xp.zeros(x.shape[:-2], dtype="int32")


def first_zero(xp, diagonal):
    """Return the number, from 1, of the first zero on each diagonal; 0 where there is none."""
    if not diagonal.shape[-1]:
        return xp.zeros(diagonal.shape[:-1], dtype="int32")
    zero = diagonal == 0
    return xp.where(xp.any(zero, axis=-1), xp.argmax(zero, axis=-1) + 1, 0).astype("int32")


def modulus(xp, x):
    """Return |re x| + |im x|, which LAPACK compares to find the greatest complex number."""
    return xp.absolute(x.real) + xp.absolute(x.imag) if x.dtype.kind == "c" else xp.absolute(x)


# ── triangular systems ────────────────────────────────────────────────────────────────────────────────────────────────


def triangular(xp, a, b, upper, unit):
    """Solve A·X = B for triangular A. The other triangle, and the diagonal if `unit`, are not read."""
    if not upper:      # reversed in both axes, a lower triangle is an upper one
        # a copy, since a reversed view has negative strides
        return triangular(xp, xp.flip(a, (-2, -1)), xp.flip(b, -2), True, unit)[..., ::-1, :].copy()
    if unit:
        n = a.shape[-1]
        a = xp.triu(a, 1) + xp.eye(n, dtype=a.dtype)
    return back_substituted(xp, xp.triu(a), b)


def back_substituted(xp, u, b):
    """X of U·X = B, in halves while U is large.

    An upper triangle is its own LU factor, so the general solver neither pivots nor fills in.
    """
    n = u.shape[-1]
    if n > BLOCK:
        half = n // 2
        below = back_substituted(xp, u[..., half:, half:], b[..., half:, :])
        above = back_substituted(xp, u[..., :half, :half], b[..., :half, :] - u[..., :half, half:] @ below)
        return xp.concatenate([above, below], -2)
    if xp.any(xp.diagonal(u, 0, -2, -1) == 0):
        return by_columns(xp, u, b)
    return xp.linalg.solve(u, b)


def by_columns(xp, u, b):
    """Solve U·X = B for a singular U, where the general solver gives up; X has infinities and NaN."""
    lead = common_lead(u, b)
    x = xp.broadcast_to(b, (*lead, *b.shape[-2:])).copy()
    for i in range(u.shape[-1] - 1, -1, -1):
        row = x[..., i:i + 1, :] / u[..., i:i + 1, i:i + 1]
        x[..., i:i + 1, :] = row
        x[..., :i, :] -= u[..., :i, i:i + 1] * row
    return x


# ── LU ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def lu(xp, x):
    """Factor A = P·L·U with partial pivoting: return L and U in one matrix, the row exchanged with each row (from 1),
    and info.
    """
    (a, lead), (m, n) = stacked(x), x.shape[-2:]
    a, k = a.copy(), min(m, n)
    pivots = xp.zeros((len(a), k), dtype="int32")
    for start in range(0, k, PANEL):
        stop = min(start + PANEL, k)
        for j in range(start, stop):
            pivots[:, j] = eliminate(xp, a, j, stop) + 1
        if stop < n:
            a[:, start:stop, stop:] = triangular(xp, a[:, start:stop, start:stop], a[:, start:stop, stop:], False, True)
            a[:, stop:, stop:] -= a[:, stop:, start:stop] @ a[:, start:stop, stop:]
    info = first_zero(xp, xp.diagonal(a, 0, 1, 2))
    return a.reshape(x.shape), pivots.reshape((*lead, k)), info.reshape(lead)


def eliminate(xp, a, j, stop):
    """Eliminate column j in its panel, with partial pivoting; return the rows of the pivots."""
    stack = xp.arange(len(a))
    found = j + xp.argmax(modulus(xp, a[:, j:, j]), axis=1)
    row = a[stack, found]
    a[stack, found] = a[:, j]
    a[:, j] = row
    pivot = row[:, j]
    a[:, j + 1:, j] /= xp.where(pivot == 0, 1, pivot)[:, None]
    a[:, j + 1:, j + 1:stop] -= a[:, j + 1:, j, None] * a[:, j, None, j + 1:stop]
    return found


def permutation(xp, pivots, rows):
    """Return for each row of P·L·U its row in L·U, given the exchanges of `lu`."""
    *lead, k = pivots.shape
    steps = pivots.reshape(prod(lead), k) - 1
    stack = xp.arange(len(steps))
    order = xp.broadcast_to(xp.arange(rows), (len(steps), rows)).copy()
    for j in range(k):      # order[i]: the row of A that is now row i
        found = steps[:, j]
        row = order[stack, found]
        order[stack, found] = order[:, j]
        order[:, j] = row
    return xp.argsort(order, axis=-1).reshape((*lead, rows))


# ── systems and factors that may not exist ────────────────────────────────────────────────────────────────────────────


def solved(xp, a, b):
    """Solve A·X = B; return X and info. For a singular A, X has the infinities and NaN that its LU factors give."""
    try:
        return xp.linalg.solve(a, b), no_info(xp, a)
    except ValueError:
        factors, pivots, info = lu(xp, a)
    order = xp.argsort(permutation(xp, pivots, a.shape[-1]), axis=-1)
    lead = common_lead(a, b)
    b, order = xp.broadcast_to(b, (*lead, *b.shape[-2:])), xp.broadcast_to(order, (*lead, a.shape[-1]))
    y = triangular(xp, factors, xp.take_along_axis(b, order[..., None], -2), False, True)
    return triangular(xp, factors, y, True, False), info


def cholesky(xp, x):
    """L of L·Lᴴ = A for the lower triangle of A, and info: a factor that breaks off where A is not positive
    definite.
    """
    try:
        factor = xp.linalg.cholesky(x)
        if not xp.any(xp.isnan(factor)):
            return factor, no_info(xp, x)
    except ValueError:
        pass
    a, lead = stacked(xp.tril(x))
    a, info = a.copy(), xp.zeros(len(a), dtype="int32")
    for j in range(a.shape[-1]):
        size = a[:, j, j].real
        info = xp.where((info == 0) & ~(size > 0), j + 1, info).astype("int32")
        root = xp.sqrt(xp.where(info == 0, size, 1))[:, None]
        a[:, j:, j] = xp.where(info[:, None] == 0, a[:, j:, j] / root, a[:, j:, j])
        column = xp.where(info[:, None] == 0, a[:, j + 1:, j], 0)
        a[:, j + 1:, j + 1:] -= column[:, :, None] * column[:, None, :].conj()
    return xp.tril(a).reshape(x.shape), info.reshape(lead)


def matrix_by_matrix(xp, factor, x, *more):
    """`factor` of a stack; if that fails, of each of its matrices, with NaN for those where it does not converge."""
    try:
        return factor(x)
    except ValueError:
        a, lead = stacked(x)
    parts = [_or_nan(xp, factor, matrix) for matrix in a]
    return tuple(xp.stack(part).reshape((*lead, *part[0].shape)) for part in zip(*parts, strict=True))


def _or_nan(xp, factor, matrix):
    try:
        return tuple(factor(matrix))
    except ValueError:
        return tuple(part * float("nan") for part in factor(xp.eye(*matrix.shape, dtype=matrix.dtype)))


# ── LDLᴴ ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

GROWTH = (1 + sqrt(17)) / 8      # Bunch and Kaufman's bound between pivots of order one and two, for least growth


def ldl(xp, x, hermitian):
    """L·D·Lᵀ (or L·D·Lᴴ) = A, with Bunch and Kaufman's pivoting: D has blocks of order one and two.

    LD, the exchanges as LAPACK writes them, info.
    """
    a, lead = stacked(xp.tril(x))
    a, n = a.copy(), x.shape[-1]
    pivots = [[0] * n for _ in range(len(a))]
    info = [_ldl_matrix(xp, matrix, row, hermitian and x.dtype.kind == "c")
            for matrix, row in zip(a, pivots, strict=True)]
    return (xp.tril(a).reshape(x.shape), xp.asarray(pivots, dtype="int32").reshape((*lead, n)),
            xp.asarray(info, dtype="int32").reshape(lead))


def _ldl_matrix(xp, a, pivots, hermitian):
    """Factor one matrix in place and record its exchanges; return its info."""
    k, n, info = 0, len(a), 0
    while k < n:
        found, step = _ldl_pivot(xp, a, k)
        if step == 0:
            info, step = info or k + 1, 1
        else:
            _exchange(xp, a, k, k + step - 1, found, hermitian)
            _clear(xp, a, k, k + step, hermitian)
        pivots[k:k + step] = [found + 1] if step == 1 else [-found - 1] * 2
        k += step
    return info


def _ldl_pivot(xp, a, k):
    """The row to bring to the front, and the order of the pivot: 0 for a column of zeros."""
    here, column = float(modulus(xp, a[k, k])), modulus(xp, a[k + 1:, k])
    below = k + 1 + int(xp.argmax(column)) if len(column) else k
    greatest = float(column[below - k - 1]) if len(column) else 0.0
    if max(here, greatest) == 0:
        return k, 0
    if here >= GROWTH * greatest:
        return k, 1
    row = float(xp.max(modulus(xp, xp.concatenate([a[below, k:below], a[below + 1:, below]]))))
    if here * row >= GROWTH * greatest * greatest:
        return k, 1
    return (below, 1) if float(modulus(xp, a[below, below])) >= GROWTH * row else (below, 2)


def _exchange(xp, a, k, i, j, hermitian):
    """Exchange rows and columns i < j of the lower triangle that remains from k on."""
    if i == j:
        return
    turned = xp.conj if hermitian else (lambda part: part)
    a[j + 1:, i], a[j + 1:, j] = a[j + 1:, j].copy(), a[j + 1:, i].copy()
    a[i + 1:j, i], a[j, i + 1:j] = turned(a[j, i + 1:j]).copy(), turned(a[i + 1:j, i]).copy()
    a[j, i] = turned(a[j, i])
    a[i, i], a[j, j] = a[j, j].copy(), a[i, i].copy()
    a[i, k:i], a[j, k:i] = a[j, k:i].copy(), a[i, k:i].copy()


def _clear(xp, a, k, stop, hermitian):
    """Divide the columns of a pivot by it, and subtract their product from the remaining matrix."""
    block, left = _block(xp, a, k, stop, hermitian), a[stop:, k:stop].copy()
    factor = xp.linalg.solve(block.T, left.T).T if stop - k > 1 else left / block
    a[stop:, stop:] -= xp.tril(factor @ (left.conj() if hermitian else left).T)
    a[stop:, k:stop] = factor


def _block(xp, a, k, stop, hermitian):
    """A pivot, whole."""
    block = a[k:stop, k:stop].copy()
    if stop - k > 1:
        block[0, 1] = xp.conj(block[1, 0]) if hermitian else block[1, 0]
    if hermitian:
        block = xp.where(xp.eye(stop - k, dtype=bool), block.real, block)
    return block


def ldl_solved(xp, factors, pivots, b, hermitian):
    """Solve A·X = B, given the factors and exchanges of `ldl`."""
    lead = common_lead(factors, b)
    n, columns = b.shape[-2:]
    x, _ = stacked(xp.broadcast_to(b, (*lead, n, columns)).copy())
    a, _ = stacked(xp.broadcast_to(factors, (*lead, n, n)))
    exchanges = xp.broadcast_to(pivots, (*lead, n)).reshape(len(a), n).tolist()
    for matrix, row, right in zip(a, exchanges, x, strict=True):
        _ldl_solve_matrix(xp, matrix, row, right, hermitian and factors.dtype.kind == "c")
    return x.reshape((*lead, n, columns))


def _ldl_solve_matrix(xp, a, pivots, x, hermitian):
    """Solve for one matrix, overwriting its right-hand sides."""
    starts = _pivot_starts(pivots)
    for k, stop, found in starts:
        _swap(x, stop - 1, found)
        x[stop:] -= a[stop:, k:stop] @ x[k:stop]
        x[k:stop] = (xp.linalg.solve(_block(xp, a, k, stop, hermitian), x[k:stop]) if stop - k > 1
                     else x[k:stop] / a[k, k])
    for k, stop, found in reversed(starts):
        left = a[stop:, k:stop]
        x[k:stop] -= (left.conj() if hermitian else left).T @ x[stop:]
        _swap(x, stop - 1, found)


def _pivot_starts(pivots):
    """(first row, row after the last, row exchanged with the last) of each pivot."""
    found, k = [], 0
    while k < len(pivots):
        step = 1 if pivots[k] > 0 else 2
        found.append((k, k + step, abs(pivots[k]) - 1))
        k += step
    return found


def _swap(x, i, j):
    if i != j:
        x[i], x[j] = x[j].copy(), x[i].copy()
