"""Systems of linear equations, inverses, determinants, exponentials: functions of stacks of square matrices.

Holomorphic ones (all but log|det| and the pseudo-inverse) have the real formulas; the engine conjugates around them.
"""
from __future__ import annotations

from functools import partial
from math import factorial

from ._lapack import matrix_by_matrix, no_info, permutation, solved, triangular
from .base import Op
from .elementwise import is_complex
from .matrix import transposed
from .reduction import products_of_others
from .signatures import inferred, parts


class LinAlgError(RuntimeError):
    """A factorization does not exist, or was not found. https://pytorch.org/docs → torch.linalg.LinAlgError"""

    __module__ = "tensorgrad._C"


LinAlgError.__name__ = LinAlgError.__qualname__ = "_LinAlgError"        # as messages of PyTorch show it


class OnMatrices(Op):
    """Ops on stacks of matrices of floating point or complex numbers."""

    __slots__ = ()
    kinds = "fc"
    column_major = True
    host = True
    batch = "stacked"
    # the axes of inputs and results, and the results' dtypes: see ops/signatures.py; `infer` and `core` follow from it
    signature = ""

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if said := cls.__dict__.get("signature"):
            axes, kinds = said.split()
            cls.core, cls.infer = tuple(map(len, parts(axes)[0])), partial(inferred, axes, kinds)

    def explain(*shapes):
        """PyTorch's error for stacks that do not broadcast; it looks at the right-hand sides first."""
        lead = [shape[:-2] for shape in reversed(shapes)]
        return unlike(*lead) if len(lead) == 2 else None


def unlike(a, b):
    ndim = max(len(a), len(b))
    for axis in range(-1, -1 - min(len(a), len(b)), -1):
        if a[axis] != b[axis] and 1 not in (a[axis], b[axis]):
            return RuntimeError(f"The size of tensor a ({a[axis]}) must match the size of tensor b ({b[axis]}) at "
                                f"non-singleton dimension {ndim + axis}")
    return None


def adjoint(xp, x):
    """xᴴ: rows and columns exchanged, and conjugated."""
    return xp.conj(transposed(xp, x)) if is_complex(x) else transposed(xp, x)


def on_diagonal(xp, d, n):
    """Square matrices with d on their diagonals."""
    return xp.diagonal_place(d, shape=(*d.shape[:-1], n, n), axis1=-2, axis2=-1)


def diagonal_of(xp, x):
    return xp.diagonal(x, axis1=-2, axis2=-1)


def per_matrix(xp, g):
    """A number for each matrix, shaped to multiply these."""
    return xp.reshape(g, (*g.shape, 1, 1))


# ── systems of equations ──────────────────────────────────────────────────────────────────────────────────────────────


class SolveLinear(OnMatrices):
    """A⁻¹·B; info tells the first zero on the diagonal of U in A = P·L·U, from 1"""

    kernel_name = "lu_cpu"
    torch_name = "LinalgSolveEx"
    signature = "(n,n),(n,p)->(n,p),() xi"
    outputs = ("result", "info")

    def forward(xp, a, b):               return solved(xp, a, b)
    def grad_a(xp, g, a, result):
        return -xp.matmul(xp.solve_linear(transposed(xp, a), g[0])[0], transposed(xp, result))
    def grad_b(xp, g, a):                return xp.solve_linear(transposed(xp, a), g[0])[0]


class SolveTriangular(OnMatrices):
    """A⁻¹·B for triangular A; `unit`: its diagonal counts as ones"""

    kernel_name = "triangular_solve_cpu"
    torch_name = "LinalgSolveTriangular"
    signature = "(n,n),(n,p)->(n,p) x"

    def forward(xp, a, b, *, upper, unit=False):
        return triangular(xp, a, b, upper, unit)

    def grad_a(xp, g, a, out, upper, unit=False):
        full = xp.matmul(xp.solve_triangular(transposed(xp, a), g, upper=not upper, unit=unit), transposed(xp, out))
        return -(xp.triu(full, k=int(unit)) if upper else xp.tril(full, k=-int(unit)))

    def grad_b(xp, g, a, upper, unit=False):
        return xp.solve_triangular(transposed(xp, a), g, upper=not upper, unit=unit)


class InverseMatrix(OnMatrices):
    """A⁻¹, and info as of `solve_linear`"""

    torch_name = "LinalgInvEx"
    signature = "(n,n)->(n,n),() xi"
    outputs = ("inverse", "info")

    def forward(xp, a):
        try:
            return xp.linalg.inv(a), no_info(xp, a)
        except ValueError:
            return solved(xp, a, xp.eye(a.shape[-1], dtype=a.dtype))

    def grad_a(xp, g, inverse):
        back = transposed(xp, inverse)
        return -xp.matmul(xp.matmul(back, g[0]), back)


class PseudoInverse(OnMatrices):
    """A⁺, Moore and Penrose's inverse: singular values up to max(atol, rtol·σ₁) count as zero"""

    torch_name = "LinalgPinv"
    signature = "(m,n),(),()->(n,m) x"
    analytic = False
    column_major, row_major = False, True

    def forward(xp, a, atol, rtol, *, hermitian=False):
        u, size, vh = spectral(xp, a, hermitian)
        if not size.shape[-1]:
            return xp.zeros((*a.shape[:-2], a.shape[-1], a.shape[-2]), dtype=a.dtype)
        length = xp.absolute(size)
        kept = length > xp.maximum(column(atol), column(rtol) * xp.max(length, axis=-1, keepdims=True))
        inverse = xp.where(kept, 1 / xp.where(kept, size, 1), 0)
        return ((adjoint(xp, vh) * inverse[..., None, :]) @ adjoint(xp, u)).astype(a.dtype)

    def grad_a(xp, g, a, out):
        gh, back = adjoint(xp, g), adjoint(xp, out)
        rows = xp.matmul(gh - xp.matmul(a, xp.matmul(out, gh)), xp.matmul(out, back))
        columns = xp.matmul(xp.matmul(back, out), gh - xp.matmul(xp.matmul(gh, out), a))
        return rows + columns - xp.matmul(xp.matmul(back, g), back)


def column(tolerance):
    """A tolerance for each matrix, or for all, along the axis of the singular values."""
    return tolerance[..., None] if hasattr(tolerance, "shape") else tolerance


def spectral(xp, a, hermitian):
    """U, d, Vᴴ of U·diag(d)·Vᴴ = A: the singular values, or the eigenvalues of a Hermitian A."""
    if not hermitian:
        return singular(xp, a, False)
    values, vectors = xp.linalg.eigh(a)
    return vectors, values, adjoint(xp, vectors)


def singular(xp, a, full):
    """U, S, Vᴴ, with NaN for S where A has infinities; the error if they are not found, or A has NaN."""
    infinite, a = without_infinities(xp, a)
    try:
        u, size, vh = xp.linalg.svd(a, full_matrices=full)
    except ValueError:
        raise not_converged("svd", bool(xp.all(xp.isfinite(a)))) from None
    return u, nan_where(xp, infinite, size), vh


def without_infinities(xp, a):
    """Return a mask of matrices with infinities but no NaN, and A with zeros for them: OpenBLAS would not end."""
    endless, undefined = xp.isinf(a), xp.any(xp.isnan(a), axis=(-2, -1), keepdims=True)
    infinite = xp.any(endless, axis=(-2, -1), keepdims=True) & ~undefined
    return infinite, xp.where(infinite, 0, xp.where(endless, xp.nan, a))


def nan_where(xp, infinite, values):
    """A row of values for each matrix, NaN for those that `without_infinities` found."""
    return xp.where(xp.any(infinite, axis=-1), xp.nan * (1 + 1j) if is_complex(values) else xp.nan, values)


def not_converged(name, finite):
    return LinAlgError(f"linalg.{name}: The algorithm failed to converge because the input matrix " + (
        "is ill-conditioned or has too many repeated singular values (error code: 1)." if finite
        else "contained non-finite values."))


class InColumns(OnMatrices):
    """A, with its matrices column by column in memory, as LAPACK's functions leave what is computed here without
    them
    """

    torch_name = "Clone"
    kinds = "biufcV"
    core = (2,)

    def infer(a):             return a.shape, a.dtype
    def forward(xp, a):       return xp.swapaxes(xp.swapaxes(a, -1, -2).copy(), -1, -2)
    def grad_a(xp, g):        return g


class PivotOrder(Op):
    """For each row of A = P·L·U its row in L·U, from LU's exchanges of rows; `back`: the inverse permutation"""

    kinds = "i"
    host = True
    batch = "stacked"
    core = (1,)

    def infer(pivots, *, rows, back=False):
        return (*pivots.shape[:-1], rows), "int64"

    def forward(xp, pivots, *, rows, back=False):
        order = permutation(xp, pivots, rows)
        return xp.argsort(order, axis=-1) if back else order


# ── determinants ──────────────────────────────────────────────────────────────────────────────────────────────────────


class Determinant(OnMatrices):
    """det A"""

    kernel_name = "lu_cpu"
    torch_name = "LinalgDet"
    signature = "(n,n)->() x"
    onnx = "Det"

    def forward(xp, a):
        return xp.linalg.det(a)

    def grad_a(xp, g, a):
        if 0 in a.shape:
            return xp.zeros(a.shape, dtype=g.dtype)
        return per_matrix(xp, g) * xp.cofactors(a) if a.shape[-1] > 1 else per_matrix(xp, g)


class Cofactors(OnMatrices):
    """det A·A⁻ᵀ, the derivative of det A, which exists where A⁻¹ does not"""

    signature = "(n,n)->(n,n) x"

    def forward(xp, a):
        u, size, vh = matrix_by_matrix(xp, xp.linalg.svd, a)
        phase = xp.linalg.det(u) * xp.linalg.det(vh)
        others = products_of_others(xp, size, size.ndim - 1)
        return phase[..., None, None] * (u.conj() * others[..., None, :]) @ vh.conj()

    def grad_a(xp, g, a, out):
        inverse = transposed(xp, xp.inverse_matrix(a)[0])
        total = xp.sum(g * out, axis=(-2, -1), keepdims=True)
        return total * inverse - xp.matmul(xp.matmul(out, transposed(xp, g)), inverse)


class LogDeterminant(OnMatrices):
    """det A / |det A| and ln |det A|"""

    torch_name = "LinalgSlogdet"
    signature = "(n,n)->(),() xr"
    outputs = ("sign", "logabsdet")
    analytic = False

    def forward(xp, a):
        return tuple(xp.linalg.slogdet(a))

    def grad_a(xp, g, a, sign):
        turned, scaled = g
        if is_complex(a):
            scaled = scaled - 1j * xp.imag(xp.conj(turned) * sign)
        return per_matrix(xp, scaled) * adjoint(xp, xp.inverse_matrix(a)[0])


# ── the exponential ───────────────────────────────────────────────────────────────────────────────────────────────────


class MatrixExponential(OnMatrices):
    """eᴬ = Σ Aᵏ/k!; its derivative in the direction G is the upper right block of exp [A G; 0 A]"""

    torch_name = "LinalgMatrixExp"
    signature = "(n,n)->(n,n) x"
    column_major, row_major = False, True

    def forward(xp, a):
        return exponential(xp, a.astype("float32")).astype(a.dtype) if a.dtype.itemsize == 2 else exponential(xp, a)

    def grad_a(xp, g, a):
        n, back = g.shape[-1], transposed(xp, a)
        upper = xp.concat([back, g], axis=len(a.shape) - 1)
        lower = xp.concat([xp.zeros_like(a), back], axis=len(a.shape) - 1)
        whole = xp.matrix_exponential(xp.concat([upper, lower], axis=len(a.shape) - 2))
        return xp.get_slice(whole, index=(..., slice(0, n), slice(n, 2 * n)))


# The degree of Padé's approximant and the norm up to which it is exact (N. Higham, SIAM J. Matrix Anal. Appl. 26,
# 2005), by precision.
PADE = {False: (7, 3.925724783138660), True: (13, 5.371920351148152)}


def exponential(xp, a):
    """Scaling and squaring: e^(A/2ˢ) by Padé's approximant, squared s times."""
    if not a.size:
        return a.copy()
    degree, bound = PADE[a.dtype.itemsize // (2 if a.dtype.kind == "c" else 1) > 4]
    norm = xp.max(xp.sum(xp.absolute(a), axis=-2), axis=-1)
    squarings = xp.ceil(xp.log2(xp.maximum(xp.where(xp.isfinite(norm), norm, 0) / bound, 1)))
    out = pade(xp, a * xp.exp2(-squarings).astype(norm.dtype)[..., None, None], degree)
    for i in range(int(xp.max(squarings))):
        out = xp.where((i < squarings)[..., None, None], out @ out, out)
    return out


def pade(xp, a, degree):
    """(V − U)⁻¹·(V + U), of the odd part U and the even part V of Padé's numerator."""
    c = [factorial(2 * degree - k) / (factorial(k) * factorial(degree - k)) for k in range(degree + 1)]
    c = [each / c[-1] for each in c]
    powers = [xp.eye(a.shape[-1], dtype=a.dtype), square := a @ a, fourth := square @ square, sixth := fourth @ square]

    def series(c):
        low = sum(x * p for x, p in zip(c[:4], powers, strict=True))
        return low if len(c) == 4 else low + sixth @ (c[4] * square + c[5] * fourth + c[6] * sixth)
    odd, even = a @ series(c[1::2]), series(c[0::2])
    return xp.linalg.solve(even - odd, even + odd)
