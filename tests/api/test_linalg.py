"""Linear algebra: beside PyTorch (results, first and second gradients, errors), and without it: what factors are, what
solutions solve.
"""
import numpy as np
import pytest
from side_by_side import compare, outcome
from support import DEVICE

import tensorgrad
from tensorgrad.autograd import gradcheck

L = tensorgrad.linalg
DTYPES = ("float64", "complex128")


def drawn(shape, dtype="float64", seed=0):
    """Numbers from the normal distribution."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape)
    return (values + 1j * rng.standard_normal(shape) if dtype.startswith("complex") else values).astype(dtype)


def ours(array, requires_grad=False):
    return tensorgrad.tensor(array, device=DEVICE).requires_grad_(requires_grad)


def near(a, b, tolerance=1e-10):
    a, b = (np.asarray(x.detach().cpu().numpy() if hasattr(x, "detach") else x) for x in (a, b))
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def outer_first(v):
    """Products of the rows of a basis with the conjugate of its first: what does not depend on the phase of its
    columns.
    """
    return v[..., :1, :].conj() * v


def definite(a):
    return a @ a.mH + a.shape[-1] * a.new_ones(a.shape[-1]).diag()


# ── beside PyTorch: results, gradients, and gradients of gradients ────────────────────────────────────────────────────

SQUARE, TALL, WIDE = (2, 4, 4), (2, 5, 3), (2, 3, 5)
FUNCTIONS = {
    "inv": (lambda t, a: t.linalg.inv(a), SQUARE),
    "inv_ex": (lambda t, a: t.linalg.inv_ex(a).inverse, SQUARE),
    "solve": (lambda t, a, b: t.linalg.solve(a, b), SQUARE, (4, 3)),
    "solve vectors": (lambda t, a, b: t.linalg.solve(a, b), SQUARE, (2, 4)),
    "solve from the right": (lambda t, a, b: t.linalg.solve(a, b, left=False), (4, 4), (2, 3, 4)),
    "solve_triangular": (lambda t, a, b: t.linalg.solve_triangular(a, b, upper=True), SQUARE, (4, 3)),
    "solve_triangular unit": (lambda t, a, b: t.linalg.solve_triangular(a, b, upper=False, left=False,
                                                                        unitriangular=True), (4, 4), (3, 4)),
    "det": (lambda t, a: t.linalg.det(a), SQUARE),
    "slogdet": (lambda t, a: t.linalg.slogdet(a), SQUARE),
    "logdet": (lambda t, a: t.logdet(a @ a.mH), SQUARE),
    "pinv": (lambda t, a: t.linalg.pinv(a), SQUARE),
    "pinv tall": (lambda t, a: t.linalg.pinv(a, rtol=1e-6), TALL),
    "pinv wide": (lambda t, a: t.linalg.pinv(a, atol=1e-9), WIDE),
    "pinv of low rank": (lambda t, a, b: t.linalg.pinv(a @ b, rtol=1e-6), (4, 2), (2, 3)),
    "pinv hermitian": (lambda t, a: t.linalg.pinv(a + a.mH, hermitian=True), SQUARE),
    "lstsq": (lambda t, a, b: t.linalg.lstsq(a, b).solution, TALL, (2, 5, 2)),
    "lstsq wide": (lambda t, a, b: t.linalg.lstsq(a, b, driver="gels").solution, WIDE, (2, 3, 2)),
    "matrix_exp": (lambda t, a: t.linalg.matrix_exp(a), SQUARE),
    "matrix_power": (lambda t, a: t.linalg.matrix_power(a, 5), SQUARE),
    "matrix_power negative": (lambda t, a: t.linalg.matrix_power(a, -2), SQUARE),
    "cholesky": (lambda t, a: t.linalg.cholesky(definite(a)), SQUARE),
    "cholesky upper": (lambda t, a: t.linalg.cholesky(definite(a), upper=True), SQUARE),
    "cholesky_solve": (lambda t, a, b: t.cholesky_solve(b, t.linalg.cholesky(definite(a))), SQUARE, (2, 4, 2)),
    "cholesky_inverse": (lambda t, a: t.cholesky_inverse(t.linalg.cholesky(definite(a), upper=True), upper=True),
                         SQUARE),
    "lu_factor": (lambda t, a: t.linalg.lu_factor(a).LU, SQUARE),
    "lu_factor tall": (lambda t, a: t.linalg.lu_factor(a).LU, TALL),
    "lu_factor wide": (lambda t, a: t.linalg.lu_factor(a).LU, WIDE),
    "lu": (lambda t, a: t.linalg.lu(a)[1:], TALL),
    "lu_solve": (lambda t, a, b: t.linalg.lu_solve(*t.linalg.lu_factor(a), b), SQUARE, (4, 3)),
    "lu_solve adjoint": (lambda t, a, b: t.linalg.lu_solve(*t.linalg.lu_factor(a), b, left=False, adjoint=True), SQUARE,
                         (2, 3, 4)),
    "qr": (lambda t, a: t.linalg.qr(a), TALL),
    "qr wide": (lambda t, a: t.linalg.qr(a), WIDE),
    "qr complete": (lambda t, a: t.linalg.qr(a, "complete"), WIDE),
    "householder_product": (lambda t, a, tau: t.linalg.householder_product(a, tau), TALL, (2, 3)),
    "householder_product fewer": (lambda t, a, tau: t.linalg.householder_product(a, tau), TALL, (2, 2)),
    "ormqr": (lambda t, a, tau, c: t.ormqr(a, tau, c), (5, 3), (3,), (5, 2)),
    "ormqr from the right": (lambda t, a, tau, c: t.ormqr(a, tau, c, left=False, transpose=True), (5, 3), (3,), (2, 5)),
    "eigh": (lambda t, a: (lambda w, v: (w, v.abs(), outer_first(v)))(*t.linalg.eigh(a + a.mH)), SQUARE),
    "eigvalsh": (lambda t, a: t.linalg.eigvalsh(a + a.mH, UPLO="U"), SQUARE),
    "eig": (lambda t, a: (lambda w, v: (w, v.abs(), outer_first(v)))(*t.linalg.eig(a)), SQUARE),
    "eigvals": (lambda t, a: t.linalg.eigvals(a), SQUARE),
    "svd": (lambda t, a: (lambda u, s, vh: (s, u.abs(), outer_first(u), outer_first(vh.mH), u @ vh))(*t.linalg.svd(a)),
            SQUARE),
    "svd tall": (lambda t, a: (lambda u, s, vh: (s, outer_first(u), outer_first(vh.mH), u @ vh))(
        *t.linalg.svd(a, False)), TALL),
    "svd full": (lambda t, a: (lambda u, s, vh: (s, outer_first(u)[..., :3], outer_first(vh.mH)))(*t.linalg.svd(a)),
                 TALL),
    "svd wide": (lambda t, a: (lambda u, s, v: (s, outer_first(u), outer_first(v), u @ v.mH))(*t.svd(a)), WIDE),
    "svdvals": (lambda t, a: t.linalg.svdvals(a), WIDE),
    "nuclear norm": (lambda t, a: t.linalg.matrix_norm(a, "nuc"), TALL),
    "spectral norms": (lambda t, a: [t.linalg.norm(a, order, dim=(-2, -1))
                                     for order in (2, -2, 1, -1, float("inf"), "fro")], WIDE),
    "cond": (lambda t, a: [t.linalg.cond(a, order) for order in (None, -2, "nuc")], SQUARE),
    "tensorsolve": (lambda t, a, b: t.linalg.tensorsolve(a, b), (2, 3, 6), (2, 3)),
    "tensorinv": (lambda t, a: t.linalg.tensorinv(a), (2, 3, 6)),
    "vander": (lambda t, a: t.linalg.vander(a, N=4), (2, 3)),
    "multi_dot": (lambda t, *m: t.linalg.multi_dot(m), (2,), (2, 3), (3, 4), (4, 2)),
    "vecdot": (lambda t, a, b: t.linalg.vecdot(a, b, dim=0), (3, 2), (3, 1)),
    "cross": (lambda t, a, b: t.linalg.cross(a, b), (2, 3), (1, 3)),
    "diagonal": (lambda t, a: t.linalg.diagonal(a, offset=1), SQUARE),
    "triangular_solve": (lambda t, b, a: t.triangular_solve(b, a, transpose=True).solution, (2, 4, 3), SQUARE),
}


def derivatives(torch, function, arrays, make):
    """The results, the gradients of a weighted sum of them, and the gradients of a weighted sum of these."""
    rng = np.random.default_rng(5)

    def loss(parts):
        total = 0.0
        for part in parts:
            shape = tuple(part.shape)
            weights = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if part.dtype.is_complex else 0)
            total = total + (part * make(weights)).sum().real
        return total
    inputs = [make(a).requires_grad_() for a in arrays]
    results = function(torch, *inputs)
    results = [results] if isinstance(results, torch.Tensor) else list(results)
    first = torch.autograd.grad(loss(results), inputs, create_graph=True)
    second = [None]
    if any(g.requires_grad for g in first):
        second = torch.autograd.grad(loss([g for g in first if g.requires_grad]), inputs, allow_unused=True)
    return [[None if x is None else x.detach().cpu().resolve_conj().numpy() for x in part]
            for part in (results, first, second)]


@pytest.mark.filterwarnings("ignore:torch.triangular_solve is deprecated")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_and_derivatives(name, dtype):
    oracle = pytest.importorskip("torch")
    function, *shapes = FUNCTIONS[name]
    arrays = [drawn(shape, dtype, seed) for seed, shape in enumerate(shapes)]
    mine = derivatives(tensorgrad, function, arrays, ours)
    theirs = derivatives(oracle, function, arrays, oracle.tensor)
    for what, one, other, tolerance in zip(("result", "gradient", "second gradient"), mine, theirs, (1e-9, 1e-7, 1e-5),
                                           strict=True):
        for place, (a, b) in enumerate(zip(one, other, strict=True)):
            assert (a is None) == (b is None), what
            if a is not None:
                assert a.shape == b.shape and a.dtype == b.dtype, (what, place)
                scale = max(1.0, np.abs(b).max(initial=0))
                np.testing.assert_allclose(a / scale, b / scale, rtol=tolerance, atol=tolerance,
                                           err_msg=f"{what} {place}")


@pytest.mark.parametrize("name", ["solve", "pinv", "qr", "cholesky", "lu_factor wide", "matrix_exp", "svdvals"])
def test_single_precision(name):
    oracle = pytest.importorskip("torch")
    function, *shapes = FUNCTIONS[name]
    arrays = [drawn(shape, "float32", seed) for seed, shape in enumerate(shapes)]
    for one, other in zip(derivatives(tensorgrad, function, arrays, lambda a: ours(np.asarray(a, "float32")))[:2],
                          derivatives(oracle, function, arrays, lambda a: oracle.tensor(np.asarray(a, "float32")))[:2],
                          strict=True):
        for a, b in zip(one, other, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-3 * np.abs(b).max())


# ── expressions that come to the same: a value, or an error ───────────────────────────────────────────────────────────

EXPRESSIONS = {
    "systems": """
    L.solve(M, v) ; L.solve(M, R) ; L.solve(M, o(3, 2)) ; L.solve(M, o(2)) ; L.solve(M, o(2), left=False) ; L.solve(M, o(3, 2), left=False)
    L.solve(Z, R) ; L.solve(BZ, R) ; L.solve(R, R) ; L.solve(v, v) ; L.solve(I, I) ; L.solve(M, I) ; L.solve(M, D) ; L.solve(H, H) ; L.solve(M, C)
    L.solve(T.expand(2, 3, 3), o(2, 3)) ; L.solve(T.expand(4, 2, 3, 3), o(2, 3)) ; L.solve(T.expand(4, 3, 3), o(2, 3, 1)) ; L.solve(T, s)
    L.solve(M, 1) ; L.solve_ex(Z, R) ; L.solve_ex(Z, R, check_errors=True) ; L.solve_ex(BZ, R) ; L.solve(E, E) ; L.solve(o(1, 1), o(1), left=False)
    L.solve_triangular(M, R, upper=True) ; L.solve_triangular(M, v, upper=True) ; L.solve_triangular(M, o(3, 2), upper=True)
    L.solve_triangular(M, R, upper=True, left=False) ; L.solve_triangular(R, R, upper=True) ; L.solve_triangular(I, I, upper=True)
    L.solve_triangular(H, H, upper=True) ; L.solve_triangular(Z, M, upper=True) ; L.solve_triangular(S, M, upper=False)
    L.tensorsolve(M, o(2)) ; L.tensorsolve(R, o(2)) ; L.tensorsolve(M, v) ; L.tensorsolve(torch.eye(6).reshape(2, 6, 3), o(2, 3), dims=(1,))
    torch.triangular_solve(R, M) ; torch.triangular_solve(v, M) ; torch.triangular_solve(R, R) ; torch.triangular_solve(o(3, 2), M)
    torch.triangular_solve(D, M) ; torch.triangular_solve(I, I)
    """,  # noqa: E501
    "least squares": """
    L.lstsq(M, v) ; L.lstsq(M, o(3, 1)) ; L.lstsq(v, v) ; L.lstsq(R, o(2)) ; L.lstsq(R, o(2, 1)) ; L.lstsq(o(3, 2), o(3, 1))
    L.lstsq(R, M, driver='x') ; L.lstsq(R, M, driver='gels') ; L.lstsq(W, o(3, 1), driver='gels') ; L.lstsq(W, o(3, 1))
    L.lstsq(W, o(3, 1), driver='gelsd') ; L.lstsq(W, o(3, 1), driver='gelss', rcond=.5) ; L.lstsq(o(2, 3, 2), o(2, 3))
    L.lstsq(o(2, 3, 2), o(2, 3, 1), driver='gels') ; L.lstsq(I, I) ; L.lstsq(M, D) ; L.lstsq(H, H) ; L.lstsq(o(0, 3, 2), o(0, 3, 1))
    L.lstsq(o(3, 0), o(3, 1)) ; L.lstsq(M, s)
    """,  # noqa: E501
    "inverses": """
    L.inv(s) ; L.inv(v) ; L.inv(R) ; L.inv(I) ; L.inv(H) ; L.inv(Z) ; L.inv(S) ; L.inv(BZ) ; L.inv(N) ; L.inv(E) ; L.inv(None) ; L.inv_ex(Z)
    L.inv_ex(S) ; L.inv_ex(BZ) ; L.inv_ex(Z, check_errors=True) ; torch.inverse(Z) ; torch.inverse(None) ; L.tensorinv(M) ; L.tensorinv(s)
    L.tensorinv(torch.zeros(2, 3, 6)) ; L.tensorinv(torch.eye(6).reshape(2, 3, 6), ind=0) ; L.matrix_power(Z, -1) ; L.matrix_power(I, -1)
    L.matrix_power(I, 2) ; L.matrix_power(M, .5) ; L.matrix_power(M, 0) ; L.pinv(s) ; L.pinv(I) ; L.pinv(H) ; L.pinv(Z) ; L.pinv(S) ; L.pinv(N)
    L.pinv(R) ; L.pinv(M, .1) ; L.pinv(M, rcond=.1) ; L.pinv(M, atol=o(2)) ; L.pinv(M, rtol=C) ; L.pinv(R, hermitian=True)
    L.pinv(torch.zeros(3, 0, 2)) ; L.pinv(BZ, rtol=torch.tensor([.5, .5])) ; torch.pinverse(M) ; torch.pinverse(s)
    """,  # noqa: E501
    "numbers": """
    L.det(s) ; L.det(R) ; L.det(I) ; L.det(H) ; L.det(Z) ; L.det(BZ) ; L.det(E) ; L.det(None) ; torch.det(None) ; L.slogdet(H) ; L.slogdet(I)
    L.slogdet(Z) ; L.slogdet(K) ; L.slogdet(E) ; torch.slogdet(BZ) ; torch.logdet(Z) ; torch.logdet(K) ; torch.logdet(M) ; torch.logdet(v)
    torch.logdet(I) ; L.matrix_rank(s) ; L.matrix_rank(R) ; L.matrix_rank(I) ; L.matrix_rank(BZ) ; L.matrix_rank(E) ; L.matrix_rank(M, .1)
    L.matrix_rank(M, tol=.1) ; L.matrix_rank(M, atol=.1, rtol=1.) ; L.matrix_rank(M, atol=o(2)) ; L.matrix_rank(M, atol=C) ; L.matrix_rank(N)
    L.matrix_rank(R, hermitian=True) ; L.matrix_rank(K, hermitian=True) ; L.matrix_rank(torch.zeros(3, 0, 2)) ; L.cond(s) ; L.cond(I) ; L.cond(Z)
    L.cond(Z, 1) ; L.cond(Z, 'fro') ; L.cond(BZ, 1) ; L.cond(M, 'x') ; L.cond(M, 3) ; L.cond(R, 'fro') ; L.cond(R, 1) ; L.cond(R, -2) ; L.cond(N)
    L.cond(torch.zeros(0, 3, 3)) ; L.cond(E, 1)
    """,  # noqa: E501
    "norms": """
    L.matrix_norm(s) ; L.matrix_norm(I) ; L.matrix_norm(H) ; L.matrix_norm(M, 'x') ; L.matrix_norm(M, 3) ; L.matrix_norm(M, dim=(0, 0))
    L.matrix_norm(M, dim=(0,)) ; L.matrix_norm(M, dim=(0, 5)) ; L.matrix_norm(M, dtype=torch.int64) ; L.matrix_norm(M, dtype=torch.float64)
    L.matrix_norm(M, dtype=torch.complex64) ; L.matrix_norm(C, dtype=torch.float64) ; L.matrix_norm(M, dtype=torch.float16) ; L.matrix_norm(H, 2)
    L.matrix_norm(torch.zeros(0, 3), 2) ; L.matrix_norm(torch.zeros(0, 3), 1) ; L.matrix_norm(torch.zeros(0, 3), 'nuc')
    L.matrix_norm(o(2, 3, 4), 2, dim=(0, 2), keepdim=True) ; L.matrix_norm(o(2, 3, 4), 1, dim=(2, 0)) ; L.norm(M, 'x') ; L.norm(v, 'fro')
    L.norm(M, 3) ; L.norm(o(2, 2, 2), 3) ; L.norm(M, 2, dim=1) ; L.norm(M, 2, dim=(0, 1)) ; L.norm(o(2, 2, 2), 2, dim=(0, 1, 2)) ; L.norm(M, 0)
    L.norm(M, 'fro', dim=1) ; L.norm(s, 3) ; L.norm(s) ; L.norm(M, keepdim=True) ; L.norm(v, 3) ; L.norm(I) ; L.vector_norm(v, 1) ; L.norm(None)
    """,  # noqa: E501
    "cholesky": """
    L.cholesky(s) ; L.cholesky(R) ; L.cholesky(I) ; L.cholesky(H) ; L.cholesky(Z) ; L.cholesky(BZ) ; L.cholesky(N) ; L.cholesky(K) ; L.cholesky(E)
    L.cholesky(None) ; L.cholesky_ex(K) ; L.cholesky_ex(BZ) ; L.cholesky_ex(Z, check_errors=True) ; torch.cholesky(Z) ; torch.cholesky(R)
    torch.cholesky_solve(R, M) ; torch.cholesky_solve(v, M) ; torch.cholesky_solve(R, R) ; torch.cholesky_solve(o(3, 2), M)
    torch.cholesky_solve(D, M) ; torch.cholesky_solve(I, I) ; torch.cholesky_solve(o(2, 2, 1), o(3, 2, 2)) ; torch.cholesky_inverse(R)
    torch.cholesky_inverse(S) ; torch.cholesky_inverse(Z) ; torch.cholesky_inverse(I) ; torch.cholesky_inverse(E)
    """,  # noqa: E501
    "lu": """
    L.lu(s) ; L.lu(R) ; L.lu(I) ; L.lu(H) ; L.lu(S) ; L.lu(Z) ; L.lu(N) ; L.lu(E) ; L.lu(K) ; L.lu(M, pivot=False) ; L.lu_factor(v) ; L.lu_factor(Z)
    L.lu_factor(BZ) ; L.lu_factor(K) ; L.lu_factor(E) ; L.lu_factor_ex(BZ) ; L.lu_factor_ex(R) ; L.lu_factor_ex(Z, check_errors=True)
    L.lu_solve(M, p, R) ; L.lu_solve(M, p.long(), R) ; L.lu_solve(M, p + 4, R) ; L.lu_solve(M, o(3).int(), R) ; L.lu_solve(R, p, R)
    L.lu_solve(M, p, v) ; L.lu_solve(M, p, o(3, 2)) ; L.lu_solve(M, p, D) ; L.lu_solve(I, p, I) ; torch.lu_solve(R, M, p)
    torch.lu_solve(v, M, p) ; torch.lu_solve(v, v, p) ; torch.lu_unpack(M, p.long()) ; torch.lu_unpack(M, p) ; torch.lu_unpack(M, p, False)
    torch.lu_unpack(M, p, True, False) ; torch.lu_unpack(v, p) ; torch.lu(M, False) ; torch.lu(K, True, True) ; torch.lu(K)
    """,  # noqa: E501
    "ldl": """
    L.ldl_factor(s) ; L.ldl_factor(R) ; L.ldl_factor(I) ; L.ldl_factor(H) ; L.ldl_factor(K) ; L.ldl_factor_ex(Z) ; L.ldl_factor_ex(S)
    L.ldl_factor_ex(BZ) ; L.ldl_factor(E) ; L.ldl_solve(M, p, R) ; L.ldl_solve(M, o(2), R) ; L.ldl_solve(M, o(3).int(), R)
    L.ldl_solve(M, p, v) ; L.ldl_solve(M, p, o(3, 2)) ; L.ldl_solve(M, p, D) ; L.ldl_solve(R, p, D)
    """,  # noqa: E501
    "qr": """
    L.qr(s) ; L.qr(I) ; L.qr(H) ; L.qr(Z) ; L.qr(E) ; L.qr(M, 'x') ; L.qr(W) ; L.qr(W, 'complete') ; L.qr(W, 'r') ; torch.qr(W, some=False)
    torch.geqrf(W) ; torch.geqrf(v) ; torch.geqrf(I) ; L.householder_product(M, o(2)) ; L.householder_product(M, v)
    L.householder_product(R, o(2)) ; L.householder_product(v, o(2)) ; L.householder_product(M, D[0]) ; L.householder_product(I, I[0])
    L.householder_product(M, M) ; torch.ormqr(M, o(2), R) ; torch.ormqr(M, o(2), o(3, 2)) ; torch.ormqr(M, o(2), v) ; torch.ormqr(M, v, R)
    torch.ormqr(v, v, R) ; torch.ormqr(M, o(2), o(3, 2), left=False) ; torch.ormqr(M, D[0], R) ; torch.ormqr(M, o(2), D) ; torch.ormqr(M, s, R)
    torch.ormqr(M, M, R) ; torch.ormqr(o(2, 2, 2), M, R) ; torch.ormqr(I, I[0], I) ; torch.orgqr(W, o(2))
    """,  # noqa: E501
    "values": """
    L.eigh(s) ; L.eigh(R) ; L.eigh(I) ; L.eigh(H) ; L.eigh(K) ; L.eigh(N) ; L.eigh(E) ; L.eigh(M, 'X') ; L.eigh(M, 'u') ; L.eigh(M, 3)
    L.eigvalsh(S, UPLO='U') ; L.eigvalsh(M, UPLO='Q') ; L.eigvalsh(I) ; L.eig(s) ; L.eig(R) ; L.eig(I) ; L.eig(H) ; L.eig(N) ; L.eigvals(R)
    L.svd(s) ; L.svd(I) ; L.svd(H) ; L.svd(N) ; L.svd(E) ; L.svd(M, driver='gesvd') ; L.svd(M, full_matrices=1) ; L.svdvals(K) ; L.svdvals(N)
    L.svdvals(BZ) ; torch.svd(v) ; torch.svd(W, compute_uv=False)
    """,  # noqa: E501
    "others": """
    L.matrix_exp(s) ; L.matrix_exp(R) ; L.matrix_exp(I) ; L.matrix_exp(Z) ; L.matrix_exp(K) ; L.matrix_exp(N) ; L.matrix_exp(E) ; L.vander(s)
    L.vander(v) ; L.vander(I) ; L.vander(H) ; L.vander(v, N=1) ; L.vander(torch.tensor([True]), N=2) ; L.vander(torch.tensor(3), N=2)
    L.vecdot(v, M) ; L.vecdot(v, v.double()) ; L.vecdot(v, o(2)) ; L.vecdot(M, M) ; L.cross(v, v) ; L.cross(v, T) ; L.cross(M, M) ; L.diagonal(v)
    L.diagonal(T, offset=1) ; L.multi_dot([M]) ; L.multi_dot([M, R, T]) ; L.matmul(M, R) ; torch.pca_lowrank(M, q=5)
    torch.pca_lowrank(M, niter=-1) ; torch.lobpcg(M, k=1)
    """,  # noqa: E501
}


def given(torch):
    """The names that expressions are written in: scalar, vectors, matrices that are square, wide, tall, singular,
    indefinite, empty, of other dtypes.
    """
    return {"torch": torch, "L": torch.linalg, "o": torch.ones, "s": torch.tensor(1.0), "v": torch.ones(3),
            "M": torch.eye(2), "T": torch.eye(3), "R": torch.ones(2, 3), "W": torch.tensor([[1.0, 2], [3, 4], [5, 7]]),
            "Z": torch.zeros(2, 2), "S": torch.tensor([[1.0, 2], [2, 4]]), "K": torch.tensor([[1.0, 2], [2, 1]]),
            "BZ": torch.stack([torch.eye(2), torch.zeros(2, 2)]), "N": torch.full((2, 2), float("nan")),
            "E": torch.zeros(0, 0), "I": torch.eye(2, dtype=torch.int64),
            "H": torch.eye(2, dtype=torch.float16), "D": torch.eye(2, dtype=torch.float64),
            "C": torch.eye(2, dtype=torch.complex64),
            "p": torch.tensor([2, 2], dtype=torch.int32)}


@pytest.mark.parametrize("family", EXPRESSIONS)
def test_expressions(family):
    oracle = pytest.importorskip("torch")

    def run(expression, torch):
        def program(torch):
            try:
                return eval(expression, given(torch))
            except torch.linalg.LinAlgError as error:
                return "LinAlgError", str(error).split("\n")[0]
        return outcome(program, torch)[0]
    for line in EXPRESSIONS[family].strip().splitlines():
        for expression in line.split(" ; "):
            compare(run(expression, tensorgrad), run(expression, oracle), 1e-4, 1e-6, expression.strip())


# ── factors multiply to the matrix, and solutions solve ───────────────────────────────────────────────────────────────

SHAPES = [(3, 3), (5, 3), (3, 5), (2, 4, 4), (2, 2, 5, 3), (0, 3), (3, 0), (0, 2, 2), (1, 1), (40, 40), (70, 33),
          (33, 70)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_factors_multiply_to_the_matrix(shape, dtype):
    array = drawn(shape, dtype)
    a = ours(array)
    p, lower, upper = L.lu(a)
    near(p.to(lower.dtype) @ lower @ upper, array)
    near(lower, lower.tril())
    near(upper, upper.triu())
    q, r = L.qr(a)
    near(q @ r, array)
    near(q.mH @ q, np.broadcast_to(np.eye(q.shape[-1]), (*shape[:-2], q.shape[-1], q.shape[-1])))
    whole = L.qr(a, "complete").Q
    near(whole @ whole.mH, np.broadcast_to(np.eye(shape[-2]), (*shape[:-2], shape[-2], shape[-2])))
    u, s, vh = L.svd(a, full_matrices=False)
    near((u * s[..., None, :]) @ vh, array)
    near(L.svdvals(a), s)
    if shape[-2] >= shape[-1]:
        near(L.householder_product(*tensorgrad.geqrf(a)) @ r, array)
    packed, tau = tensorgrad.geqrf(a)
    other = ours(drawn((*shape[:-1], 2), dtype, 1))
    near(tensorgrad.ormqr(packed, tau, other), whole @ other)
    near(tensorgrad.ormqr(packed, tau, other.mH, left=False, transpose=True), other.mH @ whole.mH)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape[-1] == shape[-2]])
def test_square_matrices(shape, dtype):
    array = drawn(shape, dtype)
    a, n = ours(array), shape[-1]
    b = ours(drawn((*shape[:-1], 2), dtype, 1))
    near(a @ L.solve(a, b), b)
    near(a @ L.inv(a), np.broadcast_to(np.eye(n), shape), 1e-8)
    near(a.triu() @ L.solve_triangular(a.triu() + 5 * ours(np.eye(n)), b, upper=True) + 5 * L.solve_triangular(
        a.triu() + 5 * ours(np.eye(n)), b, upper=True), b)
    factors = L.lu_factor(a)
    near(a @ L.lu_solve(*factors, b), b)
    near(L.lu_solve(*factors, b.mH, left=False) @ a, b.mH)
    near(a.mH @ L.lu_solve(*factors, b, adjoint=True), b)
    good = a @ a.mH + 0.1 * ours(np.eye(n))
    lower = L.cholesky(good)
    near(lower @ lower.mH, good)
    near(good @ tensorgrad.cholesky_solve(b, lower), b, 1e-8)
    near(good @ tensorgrad.cholesky_inverse(lower), np.broadcast_to(np.eye(n), shape), 1e-8)
    w, v = L.eigh(a + a.mH)
    near((a + a.mH) @ v, v * w[..., None, :])
    w, v = L.eig(a)
    near(a.to(v.dtype) @ v, v * w[..., None, :])
    near(np.sort_complex(values(L.eigvals(a))), np.sort_complex(values(w)), 1e-8)
    near(L.matrix_exp(a) @ L.matrix_exp(-a), np.broadcast_to(np.eye(n), shape), 1e-4)


def values(x):
    return x.detach().cpu().numpy()


@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (7, 7), (3, 5, 5), (2, 1, 20, 20), (0, 3, 3), (2, 0, 0)])
def test_ldl_solves(shape, dtype, hermitian):
    for seed in range(3):
        array = drawn(shape, dtype, seed)
        array = array + array.swapaxes(-1, -2).conj() if hermitian else array + array.swapaxes(-1, -2)
        # without a diagonal, all pivots are of order two
        array *= 1 - np.eye(shape[-1]) * (seed == 2) * (shape[-1] > 1)
        b = ours(drawn((*shape[:-1], 2), dtype, seed + 9))
        factors = L.ldl_factor(ours(array), hermitian=hermitian)
        near(ours(array) @ L.ldl_solve(*factors, b, hermitian=hermitian), b, 1e-8)


@pytest.mark.parametrize("dtype", DTYPES)
def test_ldl_is_lapack_s(dtype):
    oracle = pytest.importorskip("torch")
    for seed in range(8):
        array = drawn((2, 6, 6), dtype, seed)
        for hermitian in (False, True):
            whole = array + (array.conj() if hermitian else array).swapaxes(-1, -2)
            mine, theirs = (L.ldl_factor(ours(whole), hermitian=hermitian),
                            oracle.linalg.ldl_factor(oracle.tensor(whole), hermitian=hermitian))
            near(mine.LD, theirs.LD.numpy(), 1e-9)
            assert mine.pivots.tolist() == theirs.pivots.tolist()


def test_large_systems_go_by_blocks():
    array = drawn((300, 300)) + 20 * np.eye(300)
    a, b = ours(array), ours(drawn((300, 3), seed=1))
    for upper in (True, False):
        triangle = np.triu(array) if upper else np.tril(array)
        near(ours(triangle) @ L.solve_triangular(a, b, upper=upper), b, 1e-9)
    packed, pivots = L.lu_factor(a)
    near(a @ L.lu_solve(packed, pivots, b), b, 1e-9)


def test_broadcasting_of_stacks():
    a, b = ours(drawn((3, 1, 4, 4))), ours(drawn((2, 4, 2), seed=1))
    x = L.solve(a, b)
    assert x.shape == (3, 2, 4, 2)
    near(a @ x, b.expand(3, 2, 4, 2))
    near(L.lu_solve(*L.lu_factor(a), b), x)
    near(L.solve_triangular(a, b, upper=False), L.solve(a.tril(), b))


# ── where things are singular ─────────────────────────────────────────────────────────────────────────────────────────


def test_the_determinant_of_a_singular_matrix_has_a_gradient():
    for array, expected in ((np.array([[1.0, 2], [2, 4]]), [[4.0, -2], [-2, 1]]), (np.zeros((3, 3)), np.zeros((3, 3))),
                            (np.diag([0.0, 2, 3]), np.diag([6.0, 0, 0]))):
        a = ours(array, True)
        L.det(a).backward()
        near(a.grad, expected)


def test_one_singular_matrix_spoils_no_other():
    stack = ours(np.stack([np.eye(2) * 2, np.zeros((2, 2)), np.array([[1.0, 2], [2, 4]])]))
    inverse, info = L.inv_ex(stack)
    assert info.tolist() == [0, 1, 2] and info.dtype is tensorgrad.int32
    near(inverse[0], np.eye(2) / 2)
    assert not np.isfinite(values(inverse[1:])).any(axis=(1, 2)).all()
    factor, info = L.cholesky_ex(stack)
    assert info.tolist() == [0, 1, 2]
    near(factor[0], np.eye(2) * np.sqrt(2))


def test_equal_eigenvalues_leave_gradients_finite():
    a = ours(np.eye(3), True)
    (L.eigh(a).eigenvalues.sum() + L.svd(a).S.sum() + L.svdvals(a).prod()).backward()
    near(a.grad, 3 * np.eye(3))
    a = ours(np.eye(3), True)
    values_, vectors = L.eigh(a)      # a projector, which does not depend on the choice of vectors
    (vectors @ vectors.mH)[0, 1].backward()
    near(a.grad, np.zeros((3, 3)))


@pytest.mark.parametrize("order", ["fro", 1, -1, float("inf")])
def test_condition_numbers(order):
    a = ours(drawn((2, 3, 3)), True)
    near(L.cond(a, order), np.linalg.cond(values(a), order))
    assert gradcheck(lambda a: L.cond(a, order), (a,))


def test_gradients_of_a_pseudo_inverse_of_low_rank():
    column = ours(drawn((4, 1)), True)
    assert gradcheck(lambda c: L.pinv(c @ c.mH, rtol=1e-6), (column,))


# ── forms ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_results_have_names():
    a = ours(np.eye(2))
    assert L.svd(a)._fields == ("U", "S", "Vh") and tensorgrad.svd(a)._fields == ("U", "S", "V")
    assert L.lstsq(a, a)._fields == ("solution", "residuals", "rank", "singular_values")
    assert type(L.slogdet(a)).__name__ == "linalg_slogdet" and type(a.slogdet()).__name__ == "slogdet"


def test_out():
    a = ours(np.array([[2.0, 0], [0, 4]]))
    out = tensorgrad.empty(2, 2, dtype=tensorgrad.float64, device=DEVICE)
    assert L.inv(a, out=out) is out
    near(out, [[0.5, 0], [0, 0.25]])
    q, r = (tensorgrad.empty(0, dtype=tensorgrad.float64, device=DEVICE) for _ in range(2))
    found = L.qr(a, out=(q, r))
    assert found.Q is q and found.R is r
    near(q @ r, a)


@pytest.mark.filterwarnings("ignore:torch.(qr|lu|lu_solve|cholesky) is deprecated")
def test_methods():
    a = ours(np.array([[2.0, 1], [1, 4]]))
    near(a.inverse() @ a, np.eye(2))
    near(a.det(), 7)
    near(a.logdet().exp(), 7)
    near(a.cholesky() @ a.cholesky().mT, a)
    near(a.pinverse(), a.inverse())
    near(a.qr().Q @ a.qr().R, a)
    near(a.matrix_exp(), L.matrix_exp(a))
    near(a.svd().S, L.svdvals(a))
    near(ours(np.ones((2, 1))).lu_solve(*a.lu()), L.solve(a, ours(np.ones((2, 1)))))
    near(ours(np.ones((2, 1))).cholesky_solve(a.cholesky()), L.solve(a, ours(np.ones((2, 1)))))
    near(a.cholesky().cholesky_inverse(), a.inverse())


def test_the_error_is_a_runtime_error():
    assert issubclass(L.LinAlgError, RuntimeError)
    with pytest.raises(L.LinAlgError, match="is singular"):
        L.inv(ours(np.zeros((2, 2))))


def test_gradients_of_qr_that_do_not_exist():
    a = ours(drawn((4, 2)), True)
    with pytest.raises(RuntimeError, match="not differentiable when mode='complete'"):
        L.qr(a, "complete").R.sum().backward()
    with pytest.raises(RuntimeError, match="depends on Q, which is not computed"):
        L.qr(a, "r").R.sum().backward()


# ── large matrices, in part ───────────────────────────────────────────────────────────────────────────────────────────


def spectrum(m, n, *sizes):
    """A matrix with these singular values."""
    left, right = (np.linalg.qr(drawn((k, len(sizes)), seed=seed))[0] for seed, k in enumerate((m, n)))
    return (left * sizes) @ right.T


@pytest.mark.parametrize("shape", [(30, 20), (20, 30)])
def test_svd_lowrank(shape):
    array = spectrum(*shape, 5.0, 3.0, 2.0)
    u, s, v = tensorgrad.svd_lowrank(ours(array), q=4)
    near(s[:3], [5.0, 3.0, 2.0], 1e-8)
    near((u * s) @ v.mT, array, 1e-8)
    u, s, v = tensorgrad.svd_lowrank(ours(array + 1), q=4, M=ours(np.ones((1, shape[1]))))
    near((u * s) @ v.mT, array, 1e-8)


def test_svd_lowrank_draws_as_pytorch_does():
    oracle = pytest.importorskip("torch")
    array = drawn((2, 8, 6))
    tensorgrad.manual_seed(3), oracle.manual_seed(3)
    for mine, theirs in ((tensorgrad.svd_lowrank(tensorgrad.tensor(array), 3),
                          oracle.svd_lowrank(oracle.tensor(array), 3)),
                         (tensorgrad.pca_lowrank(tensorgrad.tensor(array), 3),
                          oracle.pca_lowrank(oracle.tensor(array), 3))):
        for a, b in zip(mine, theirs, strict=True):
            near(a.abs(), b.abs().numpy(), 1e-7)


def test_pca_lowrank_finds_the_directions():
    points = drawn((50, 1)) @ drawn((1, 5), seed=1) + drawn(5, seed=2)
    u, s, v = tensorgrad.pca_lowrank(ours(points), q=2)
    centered = points - points.mean(0)
    near((u * s) @ v.mT, centered, 1e-8)
    assert values(s)[1] < 1e-8


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_lobpcg(weighted, largest):
    array, b = drawn((2, 24, 24)), drawn((2, 24, 24), seed=1)
    array, b = array @ array.swapaxes(-1, -2), b @ b.swapaxes(-1, -2) / 24 + np.eye(24)
    weight = ours(b) if weighted else None
    found, vectors = tensorgrad.lobpcg(ours(array), k=2, B=weight, largest=largest, tol=1e-9)
    right = (ours(b) if weighted else ours(np.broadcast_to(np.eye(24), b.shape))) @ vectors
    near(ours(array) @ vectors, right * found[..., None, :], 1e-4)
    expected = np.sort(np.linalg.eigvals(np.linalg.solve(b, array)).real if weighted else np.linalg.eigvalsh(array))
    near(found, expected[:, :-3:-1] if largest else expected[:, :2], 1e-6)


@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr"])
def test_extreme_pairs_of_sparse_matrices(layout):
    dense = tensorgrad.diag(tensorgrad.arange(1., 13., dtype=tensorgrad.float64))
    dense[0, 3] = dense[3, 0] = .5
    sparse = getattr(dense, layout)()
    weight = getattr(2 * tensorgrad.eye(12, dtype=tensorgrad.float64), layout)() if layout == "to_sparse" else None
    values, vectors = tensorgrad.lobpcg(sparse, k=2, B=weight, largest=False)
    near(values * (1 if weight is None else 2), tensorgrad.linalg.eigvalsh(dense)[:2].numpy(), 1e-6)
    near(dense @ vectors, (values * vectors * (1 if weight is None else 2)).numpy(), 1e-3)
    if layout == "to_sparse":
        expected = tensorgrad.linalg.svdvals(dense - dense.mean(0))
        found = tensorgrad.pca_lowrank(sparse, q=12)[1]
        np.testing.assert_allclose(found.numpy(), expected.numpy(), atol=1e-9)


def test_lobpcg_has_gradients():
    oracle = pytest.importorskip("torch")
    array = drawn((12, 12))
    array = array @ array.T
    a, b = ours(array, True), oracle.tensor(array, requires_grad=True)
    tensorgrad.lobpcg(a, k=2)[0].sum().backward()
    oracle.lobpcg(b, k=2)[0].sum().backward()
    near(a.grad, b.grad.numpy(), 1e-6)
