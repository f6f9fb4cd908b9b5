"""Factorizations of matrices: Cholesky, QR, LU, LDLᴴ, eigenvalues, singular values; and their derivatives.

With G the gradient of a factor, the formulas are those of M. Giles (2008), of S. Walter and L. Lehmann for QR (2010)
and of Z. Wan and S. Zhang for complex singular vectors (2019). Where eigenvalues or singular values coincide, their
vectors have no derivative: the parts that would be divided by zero are left out, which is right for all functions that
    do not depend on the choice of the vectors.
"""
from __future__ import annotations

from ._lapack import cholesky, ldl, ldl_solved, lu, matrix_by_matrix
from .elementwise import is_complex
from .linalg import LinAlgError, OnMatrices, adjoint, diagonal_of, nan_where, on_diagonal, singular, without_infinities
from .matrix import transposed
from .signatures import complex_dtype, inferred


def over(xp, x, gap):
    """x / gap, and 0 where the gap is 0."""
    return xp.where(gap == 0, 0, x / xp.where(gap == 0, 1, gap))


def gaps(xp, values):
    """out[…, i, j] = values[j] − values[i]"""
    return xp.expand_dims(values, -2) - xp.expand_dims(values, -1)


def lower_half(xp, x):
    """The lower triangle, with half of the diagonal."""
    return 0.5 * (xp.tril(x) + xp.tril(x, k=-1))


def divided(xp, x, upper):
    """x·U⁻ᴴ for an upper triangle U."""
    return adjoint(xp, xp.solve_triangular(upper, adjoint(xp, x), upper=True))


class Factorization(OnMatrices):
    """Ops with several factors as results."""

    __slots__ = ()
    analytic = False


# ── triangles ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class CholeskyFactor(Factorization):
    """L·Lᴴ = A for the lower triangle L; info tells which leading minor is not positive, from 1"""

    kernel_name = "cholesky_cpu"
    torch_name = "LinalgCholeskyEx"
    signature = "(n,n)->(n,n),() xi"
    outputs = ("L", "info")

    def forward(xp, a):
        return cholesky(xp, a)

    def grad_a(xp, g, L):
        back = adjoint(xp, L)
        inner = xp.matmul(back, g[0])
        inner = 0.5 * (xp.tril(inner) + adjoint(xp, xp.tril(inner, k=-1)))
        return divided(xp, xp.solve_triangular(back, inner, upper=True), back)


class LuFactor(OnMatrices):
    """P·L·U = A: L and U in one matrix, the exchanges of rows, and info: the first zero on the diagonal of U, from 1"""

    kernel_name = "lu_cpu"
    torch_name = "LinalgLuFactorEx"
    signature = "(m,n)->(m,n),(k),() xii"
    outputs = ("LU", "pivots", "info")

    def forward(xp, a):
        return lu(xp, a)

    def grad_a(xp, g, LU, pivots):
        m, n = LU.shape[-2:]
        k = min(m, n)
        order = xp.broadcast_to(xp.expand_dims(xp.pivot_order(pivots, rows=m), -1), shape=tuple(LU.shape))
        return xp.take_along_axis(lu_gradient(xp, g[0], LU, m, n, k), order, axis=len(LU.shape) - 2)


def lu_gradient(xp, g, packed, m, n, k):
    """Return the gradient of L·U, given that of L and U packed in one m × n matrix; k = min(m, n) is the order of its
    square corner.
    """
    def part(x, rows, columns):
        return xp.get_slice(x, index=(..., slice(*rows), slice(*columns)))
    corner, g_corner = part(packed, (0, k), (0, k)), part(g, (0, k), (0, k))
    below, beside = xp.tril(g_corner, k=-1), xp.triu(g_corner)
    if m > k:
        left = transposed(xp, xp.solve_triangular(corner, transposed(xp, part(g, (k, m), (0, k))), upper=True))
        beside = beside - xp.triu(xp.matmul(transposed(xp, part(packed, (k, m), (0, k))), left))
    if n > k:
        right = xp.solve_triangular(transposed(xp, corner), part(g, (0, k), (k, n)), upper=True, unit=True)
        below = below - xp.tril(xp.matmul(right, transposed(xp, part(packed, (0, k), (k, n)))), k=-1)
    lower = xp.tril(corner, k=-1) + xp.eye(k, dtype=packed.dtype)
    inner = (xp.tril(xp.matmul(transposed(xp, lower), below), k=-1)
             + xp.triu(xp.matmul(beside, transposed(xp, xp.triu(corner)))))
    inner = xp.solve_triangular(transposed(xp, corner), inner, upper=True, unit=True)
    inner = transposed(xp, xp.solve_triangular(corner, transposed(xp, inner), upper=True))
    if m > k:
        return xp.concat([inner, left], axis=len(g.shape) - 2)
    return xp.concat([inner, right], axis=len(g.shape) - 1) if n > k else inner


class LdlFactor(OnMatrices):
    """L·D·Lᵀ = A, or L·D·Lᴴ, in one triangle; the exchanges, and info as of `lu_factor`"""

    kernel_name = "ldl_factor_kernel_cpu"
    outputs = ("LD", "pivots", "info")
    signature = "(n,n)->(n,n),(n),() xii"

    def forward(xp, a, *, hermitian=False): return ldl(xp, a, hermitian)


class LdlSolve(OnMatrices):
    """A⁻¹·B from what `ldl_factor` gives"""

    kernel_name = "ldl_solve_kernel_cpu"
    signature = "(n,n),(n),(n,p)->(n,p) x"

    def forward(xp, ld, pivots, b, *, hermitian=False): return ldl_solved(xp, ld, pivots, b, hermitian)


# ── QR ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


class QrFactor(Factorization):
    """Q·R = A for a Q with orthonormal columns and an upper triangle R"""

    kernel_name = "geqrf_cpu"
    torch_name = "LinalgQr"
    outputs = ("Q", "R")
    core = (2,)

    def infer(a, *, mode="reduced"):
        if mode == "r":
            return ((0,), a.dtype), inferred("(m,n)->(k,n)", "x", a)
        return inferred("(m,n)->(m,m),(m,n)" if mode == "complete" else "(m,n)->(m,k),(k,n)", "xx", a)

    def forward(xp, a, *, mode="reduced"):
        return tuple(xp.linalg.qr(a, mode)) if mode != "r" else (xp.zeros((0,), dtype=a.dtype), xp.linalg.qr(a, mode))

    def grad_a(xp, g, Q, R, mode="reduced"):
        m, n = Q.shape[-2] if mode != "r" else 0, R.shape[-1]
        if mode == "r":
            raise RuntimeError("linalg_qr_backward: The derivative of linalg.qr depends on Q, which is not computed "
                               "when mode='r'. Please use linalg.qr(A, mode='reduced') if you are going to "
                               "differentiate through linalg.qr.")
        if mode == "complete" and m > n:
            raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols.")
        if m >= n:
            return qr_gradient(xp, *g, Q, R)
        ends = (..., slice(None), slice(0, m)), (..., slice(None), slice(m, n))
        (square, rest), (g_square, g_rest) = ([xp.get_slice(x, index=index) for index in ends] for x in (R, g[1]))
        first = qr_gradient(xp, g[0] + xp.matmul(xp.matmul(Q, rest), adjoint(xp, g_rest)), g_square, Q, square)
        return xp.concat([first, xp.matmul(Q, g_rest)], axis=len(R.shape) - 1)


def qr_gradient(xp, gq, gr, q, r):
    """For at least as many rows as columns: (G_Q + Q·(M + Mᴴ))·R⁻ᴴ, where M is the lower half of R·G_Rᴴ − G_Qᴴ·Q."""
    half = lower_half(xp, xp.matmul(r, adjoint(xp, gr)) - xp.matmul(adjoint(xp, gq), q))
    return divided(xp, gq + xp.matmul(q, half + adjoint(xp, half)), r)


class HouseholderFactors(OnMatrices):
    """QR as LAPACK leaves it: R, and below it the vectors of the reflections that make Q; and their factors τ"""

    outputs = ("a", "tau")
    signature = "(m,n)->(m,n),(k) xx"

    def forward(xp, a):
        packed, tau = xp.linalg.qr(a, "raw")
        return xp.swapaxes(packed, -1, -2), tau


# ── eigenvalues ───────────────────────────────────────────────────────────────────────────────────────────────────────


class EighPairs(Factorization):
    """V·diag(λ)·Vᴴ = A for a Hermitian A, of which one triangle is read"""

    torch_name = "LinalgEigh"
    signature = "(n,n)->(n),(n,n) rx"
    outputs = ("eigenvalues", "eigenvectors")

    def forward(xp, a, *, uplo="L"):
        return matrix_by_matrix(xp, lambda x: tuple(xp.linalg.eigh(x, uplo)), a)

    def grad_a(xp, g, eigenvalues, eigenvectors):
        back = adjoint(xp, eigenvectors)
        inner = over(xp, xp.matmul(back, g[1]), gaps(xp, eigenvalues)) + on_diagonal(xp, g[0], g[0].shape[-1])
        out = xp.matmul(eigenvectors, xp.matmul(inner, back))
        return (out + adjoint(xp, out)) / 2


class EighValues(OnMatrices):
    """The eigenvalues of a Hermitian A, from the least to the greatest"""

    torch_name = "LinalgEigh"
    signature = "(n,n)->(n) r"
    analytic = False

    def forward(xp, a, *, uplo="L"):
        return matrix_by_matrix(xp, lambda x: (xp.linalg.eigvalsh(x, uplo),), a)[0]

    def grad_a(xp, g, a, uplo="L"):
        _, vectors = xp.eigh_pairs(a, uplo=uplo)
        return xp.matmul(vectors * xp.expand_dims(g, -2), adjoint(xp, vectors))


class EigPairs(Factorization):
    """A·V = V·diag(λ), with columns of length 1"""

    torch_name = "LinalgEig"
    signature = "(n,n)->(n),(n,n) cc"
    outputs = ("eigenvalues", "eigenvectors")

    def forward(xp, a):
        return tuple(part.astype(complex_dtype(a.dtype)) for part in xp.linalg.eig(a))

    def grad_a(xp, g, eigenvalues, eigenvectors):
        back = adjoint(xp, eigenvectors)
        turned = xp.matmul(back, g[1])
        # columns keep their length
        free = turned - xp.matmul(back, eigenvectors) * xp.expand_dims(xp.real(diagonal_of(xp, turned)), -2)
        inner = over(xp, free, xp.conj(gaps(xp, eigenvalues))) + on_diagonal(xp, g[0], g[0].shape[-1])
        return xp.solve_linear(back, xp.matmul(inner, back))[0]


class EigValues(OnMatrices):
    """The eigenvalues of A, in an order of their own, NaN if A has infinities: for gradients, take those of
    `eig_pairs`
    """

    signature = "(n,n)->(n) c"

    def forward(xp, a):
        infinite, finite = without_infinities(xp, a)
        return nan_where(xp, infinite, xp.linalg.eigvals(finite).astype(complex_dtype(a.dtype)))


# ── singular values ───────────────────────────────────────────────────────────────────────────────────────────────────


class SvdFactor(Factorization):
    """U·diag(S)·Vᴴ = A, with orthonormal columns in U and V; `full`: and the columns that complete them to bases"""

    kernel_name = "linalg_svd_cpu"
    torch_name = "LinalgSvd"
    outputs = ("U", "S", "Vh")
    core = (2,)

    def infer(a, *, full):
        return inferred("(m,n)->(m,m),(k),(n,n)" if full else "(m,n)->(m,k),(k),(k,n)", "xrx", a)

    def forward(xp, a, *, full):
        return singular(xp, a, full)

    def grad_a(xp, g, U, S, Vh, full):
        k = S.shape[-1]
        columns, rows = (..., slice(None), slice(0, k)), (..., slice(0, k), slice(None))
        gu, gs, gvh = xp.get_slice(g[0], index=columns), g[1], xp.get_slice(g[2], index=rows)
        u, vh = xp.get_slice(U, index=columns), xp.get_slice(Vh, index=rows)
        return svd_gradient(xp, gu, gs, gvh, u, S, vh)


def svd_gradient(xp, gu, gs, gvh, u, s, vh):
    """U·(core)·Vᴴ, plus what of G_U and G_V is at right angles to U and V, over S."""
    k, row, column = s.shape[-1], xp.expand_dims(s, -2), xp.expand_dims(s, -1)
    left, right = xp.matmul(adjoint(xp, u), gu), xp.matmul(gvh, adjoint(xp, vh))
    difference = (row - column) * (row + column)
    core = (over(xp, left - adjoint(xp, left), difference) * row + column
            * over(xp, adjoint(xp, right) - right, difference))
    core = core + on_diagonal(xp, gs, k)
    if is_complex(u):
        core = core + on_diagonal(xp, 1j * over(xp, xp.imag(diagonal_of(xp, left)), s), k)
    out = xp.matmul(u, xp.matmul(core, vh))
    if u.shape[-2] > k:
        out = out + xp.matmul(over(xp, gu - xp.matmul(u, left), row), vh)
    if vh.shape[-1] > k:
        out = out + xp.matmul(u, over(xp, gvh - xp.matmul(right, vh), column))
    return out


class SingularValues(OnMatrices):
    """The singular values of A, from the greatest to the least"""

    kernel_name = "linalg_svd_cpu"
    torch_name = "LinalgSvd"
    signature = "(m,n)->(k) r"
    analytic = False

    def forward(xp, a):
        infinite, finite = without_infinities(xp, a)
        try:
            return nan_where(xp, infinite, xp.linalg.svd(finite, compute_uv=False))
        except ValueError:
            return singular(xp, a, False)[1]

    def grad_a(xp, g, a):
        u, _, vh = xp.svd_factor(a, full=False)
        return xp.matmul(u * xp.expand_dims(g, -2), vh)


__all__ = ["LinAlgError"]
