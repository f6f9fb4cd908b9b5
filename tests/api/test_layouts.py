"""Memory layouts of results: PyTorch's strides, where NumPy's would differ."""
import numpy as np
import pytest
from side_by_side import same
from support import cpu_only

from tensorgrad.storage.layout import like, slowest_first

pytestmark = cpu_only


def strides(value):
    """The strides along axes of more than one element: others lead nowhere."""
    if isinstance(value, (list, tuple)):
        return [strides(v) for v in value]
    return [s for s, n in zip(value.stride(), value.shape) if n > 1]


def matrices(torch, *shape):
    """Positive definite ones."""
    x = torch.tensor(np.random.RandomState(0).randn(*shape))
    return x @ x.mT + 4 * torch.eye(shape[-1], dtype=x.dtype)


FACTORS = ("cholesky", "cholesky_ex", "eigh", "eig", "inv", "inv_ex", "lu_factor_ex", "lu", "ldl_factor_ex", "qr",
           "svd", "svdvals", "pinv", "matrix_exp")


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("lead", [(), (2,), (2, 4)])
def test_linalg_gives_columns(lead, turned):
    """Matrices from LAPACK are column-major; values computed from them, and eigenvalues, are not."""
    def program(torch):
        a = matrices(torch, *lead, 3, 3)
        a, b, pivots = (a.mT if turned else a, torch.ones(*lead, 3, 2, dtype=a.dtype),
                        torch.ones(*lead, 3, dtype=torch.int32))
        found = [strides(getattr(torch.linalg, name)(a)) for name in FACTORS]
        found += [strides(torch.linalg.qr(a[..., :2], mode)) for mode in ("reduced", "complete", "r")]
        found += ([strides(f(a)) for f in (torch.svd, torch.geqrf, torch.cholesky_inverse, torch.inverse)]
                  + [strides(torch.svd(a, compute_uv=False))])
        found += ([strides(torch.linalg.solve(a, x)) for x in (b, b.mT.contiguous().mT, b[..., 0])]
                  + [strides(torch.linalg.solve(a, b.mT, left=False))])
        found += [strides(torch.linalg.solve_triangular(a, b, upper=True)),
                  strides(torch.linalg.solve_triangular(a, b.mT, upper=True, left=False))]
        found += [strides(torch.linalg.lu_solve(a, pivots, b, adjoint=adjoint)) for adjoint in (False, True)]
        found += [strides(torch.linalg.ldl_solve(a, pivots, b)), strides(torch.cholesky_solve(b, a)),
                  strides(torch.triangular_solve(b, a))]
        packed, tau = torch.geqrf(a[..., :2])
        return found, [strides(f) for f in (torch.linalg.householder_product(packed, tau), torch.ormqr(packed, tau, b))]
    same(program)


def test_gradients_go_through_columns():
    def program(torch):
        x = matrices(torch, 2, 3, 3).requires_grad_()
        packed, tau = torch.geqrf(x.detach())
        loss = torch.linalg.cholesky(x).sin().sum() + torch.cholesky_inverse(x.tril()).sum() + torch.linalg.lu_solve(
            x, torch.ones(2, 3, dtype=torch.int32), packed, adjoint=True).sum()
        return torch.autograd.grad(loss, x)[0].diagonal(dim1=1, dim2=2), torch.ormqr(packed, tau, x.detach())
    same(program)


def test_what_lies_in_columns_is_a_copy():
    def program(torch):
        a = matrices(torch, 3, 3).mT.contiguous().mT
        _, kept = torch.triangular_solve(torch.ones(3, 1, dtype=a.dtype), a)
        kept.zero_()
        return a
    same(program)


def test_elementwise_results_follow_the_first_operand():
    """Operands with different layouts: the first determines the order of the axes, expanded axes are ignored."""
    def program(torch):
        x, t, e = torch.ones(3, 4), torch.ones(4, 3).T, torch.ones(1, 4).expand(3, 4)
        y = torch.ones(2, 3, 4, 5).permute(0, 2, 3, 1)
        thin, tall = torch.ones(3, 1), torch.ones(4, 1, 2).permute(2, 1, 0)
        pairs = ((x, t), (t, x), (e, t), (t, e), (e, t.double()), (x, t.long()), (t.long(), x), (t, x[0]),
                 (y, y.contiguous()), (y.contiguous(), y), (thin, tall))
        found = [[strides(f(a, b)) for f in (torch.add, torch.mul, torch.maximum, torch.gt, torch.atan2, torch.fmod)]
                 for a, b in pairs]
        found += ([strides(f(t, x, x[0])) for f in (torch.addcmul, torch.addcdiv, torch.lerp, torch.clamp)]
                  + [strides(torch.where(t > 0, x, x))])
        return (found, strides(t.add(x)), strides(torch.pow(2, t)), strides(torch.float_power(2, t)), strides(t ** -1),
                strides(t ** 1))
    same(program)


def test_copies_of_expanded_tensors_lie_in_rows():
    def program(torch):
        x = torch.ones(1, 4).expand(3, 4)
        wide = torch.ones(2, 1, 3).expand(2, 4, 3).permute(2, 0, 1)
        return [[strides(f(e)) for f in (torch.Tensor.double, torch.Tensor.half, torch.clone, torch.sin,
                                         lambda e: e.int().sin(), lambda e: e.bfloat16().exp(),
                                       torch.isreal, torch.ones_like)]
                for e in (x, wide)]
    same(program)


def test_other_results():
    """Sorted and flipped tensors keep the input's layout; gathered, unique and raveled ones are row-major."""
    def program(torch):
        x = torch.arange(12.).reshape(4, 3).T
        index = torch.zeros(2, 3, dtype=torch.int64).T
        found = [f(x) for f in (torch.sort, torch.msort, torch.argsort, torch.flipud, torch.fliplr,
                                lambda x: torch.rot90(x.contiguous(), -1),
                                lambda x: torch.cummax(x, 1), lambda x: torch.cummin(x, 0),
                                lambda x: torch.unique(x, dim=0))]
        found += [torch.gather(x, 1, index), x[:, ::2].ravel(), x[:1, :1].expand(1, 5).ravel(), torch.rrelu(x),
                  *torch.unravel_index(x.long(), (4, 3))]
        volume = torch.arange(128.).reshape(4, 4, 4, 2).permute(3, 2, 1, 0)
        found += [f(volume, 2) for f in (torch.nn.functional.max_pool3d, torch.nn.functional.avg_pool3d)]
        return [strides(f) for f in found]
    same(program)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (0, 2, 1)])
def test_fourier_transforms_leave_the_transformed_axes_innermost(order):
    def program(torch):
        x = torch.ones([(2, 3, 4)[i] for i in order]).permute([order.index(i) for i in range(3)])
        fft, dims = torch.fft, ((0,), (1,), (2,), (1, 2), (2, 0), (0, 2, 1))
        return [[strides(f(x.to(torch.complex64) if f in (fft.irfftn, fft.hfftn) else x, dim=d))
                 for f in (fft.fftn, fft.ifftn, fft.rfftn, fft.irfftn, fft.hfftn, fft.ihfftn)] for d in dims]
    same(program)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_functions_of_expanded_tensors_lie_in_rows(dtype):
    """Of one operand, of the same operand twice, and of what such results are."""
    def program(torch):
        x, y = torch.ones(1, 4, dtype=getattr(torch, dtype)).expand(3, 4), torch.ones(3, 4)
        found = [f(x) for f in (torch.lgamma, torch.digamma, torch.erf, torch.special.i0e, torch.special.i1e,
                                torch.sin)]
        return strides([*found, x * x, x.xlogy(x), x.xlogy(x) - x * y, torch.kl_div(y, x, 0)])
    same(program)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_kept_axes_lie_in_rows(dtype):
    def program(torch):
        x = torch.ones(2, 3, 3, dtype=getattr(torch, dtype)).permute(2, 1, 0)
        return [strides(f(x, dim=1, keepdim=True))
                for f in (torch.sum, torch.prod, torch.std, torch.var, torch.any, torch.amax, torch.linalg.vector_norm)]
    same(program)


def test_scatters_into_a_slice_keep_its_gaps():
    """Results are views of the copied memory at the slice's position; gradients reach its elements only."""
    def program(torch):
        leaf, diagonal = torch.arange(24.).reshape(4, 6).requires_grad_(), torch.ones(3, requires_grad=True)
        found = []
        for x in (leaf[1:, 1::2], leaf[1:, ::2].T, leaf[:1, :3].expand(3, 3), leaf[1:, :3]):
            y = torch.diagonal_scatter(x, diagonal)
            found += [y, strides([y, torch.select_scatter(x, diagonal, 0, 1), torch.slice_scatter(x, diagonal[None], 0, 1, 2)]), y.storage_offset()]  # noqa: E501
            found += torch.autograd.grad(y, (leaf, diagonal), torch.arange(9.).reshape(3, 3))
        return found
    same(program)


def test_single_results():
    """A reflected quotient of tensors, norms brought down, spectra of single samples."""
    def program(torch):
        x, turned = torch.ones(3, 4), torch.ones(4, 3).T
        spectra = torch.stft(turned.to(torch.complex64), 1, 1, window=torch.ones(1), onesided=False,
                             return_complex=True)
        return strides([x.__rtruediv__(turned), turned.__rtruediv__(x),
                        torch.ones(2, 3, 3).permute(2, 1, 0).renorm(2., 0, 1.), spectra])
    same(program)


def test_orders_of_axes():
    """By hand: NumPy arrays, whose strides are known."""
    rows, columns = np.ones((2, 3)), np.ones((3, 2)).T
    assert slowest_first((2, 3), (rows, columns)) == [0, 1]
    assert slowest_first((2, 3), (columns, rows)) == [1, 0]
    assert slowest_first((2, 3), (np.broadcast_to(np.ones(3), (2, 3)), columns)) == [1, 0]
    assert like(np.broadcast_to(np.ones(3), (2, 3)), "float32").strides == (12, 4)
