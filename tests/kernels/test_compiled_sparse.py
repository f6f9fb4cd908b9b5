"""Compiled products of sparse matrices: against NumPy's kernels and dense products; indices out of range; threads."""
import numpy as np
import pytest

import tensorgrad as tg
from tensorgrad.core.dispatch import OpDispatch
from tensorgrad.runtime.native import native
from tensorgrad.storage.sparse import Csr

pytestmark = pytest.mark.skipif(native is None, reason="there is no compiled code")
if native is not None:
    from tensorgrad.kernels import sparse_compiled as compiled
    from tensorgrad.kernels import sparse_numpy
WIDTHS = [*range(1, 18), 23, 31, 32, 33, 64, 65, 100, 128, 130, 264]


def matrix(rows, n, count, index, seed=0):
    """A matrix with empty rows, columns in no order, and places that occur twice; and its rows."""
    rng = np.random.default_rng(seed)
    owner = np.sort(rng.integers(0, rows, count) // 3 * 3 % rows)
    columns = rng.integers(0, n, count).astype(index)
    columns[1::7] = columns[0]
    return Csr(np.searchsorted(owner, np.arange(rows + 1)).astype(index), columns, (rows, n)), owner


def dense(values, pattern, owner):
    out = np.zeros(pattern.shape)
    np.add.at(out, (owner, pattern.indices), values)
    return out


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products(dtype, index):
    rng, close = np.random.default_rng(1), {"rtol": 1e-4 if dtype is np.float32 else 1e-12, "atol": 1e-5}
    pattern, owner = matrix(41, 29, 300, index)
    values = rng.standard_normal(300).astype(dtype)
    full = dense(values, pattern, owner)
    for width in WIDTHS:
        a, b = rng.standard_normal((41, width)).astype(dtype), rng.standard_normal((29, width)).astype(dtype)
        out = compiled.sparse_matmul(values, b, pattern=pattern)
        assert out.dtype == dtype
        np.testing.assert_allclose(out, full @ b, **close)
        turned = compiled.sparse_matmul(values, a, pattern=pattern, transposed=True)
        np.testing.assert_allclose(turned, full.T @ a, **close)
        np.testing.assert_allclose(compiled.sampled_matmul(a, b, pattern=pattern), (a @ b.T)[owner, pattern.indices],
                                   **close)


def test_arrays_that_are_not_contiguous():
    pattern, owner = matrix(13, 9, 40, np.int64)
    rng = np.random.default_rng(2)
    values, b, a = rng.standard_normal(80)[::2], rng.standard_normal((5, 9)).T, rng.standard_normal((13, 10))[:, ::-2]
    np.testing.assert_allclose(compiled.sparse_matmul(values, b, pattern=pattern), dense(values, pattern, owner) @ b)
    np.testing.assert_allclose(compiled.sampled_matmul(a, b, pattern=pattern), (a @ b.T)[owner, pattern.indices])


def test_what_the_kernels_leave_to_numpy():
    pattern, _ = matrix(13, 9, 40, np.int64)
    empty = Csr(np.zeros(14, np.int64), np.zeros(0, np.int64), (13, 9))
    for values, b, where in ((np.ones(40, np.float16), np.ones((9, 2), np.float16), pattern),
                             (np.ones(40, np.float32), np.ones((9, 2)), pattern),
                             (np.ones(40, complex), np.ones((9, 2), complex), pattern),
                             (np.ones(40), np.ones((9, 0)), pattern), (np.ones(0), np.ones((9, 2)), empty)):
        assert compiled.sparse_matmul(values, b, pattern=where) is NotImplemented
        found = OpDispatch.op("sparse_matmul").kernels[OpDispatch.backend("cpu")](values, b, pattern=where)
        np.testing.assert_array_equal(found, sparse_numpy.sparse_matmul(values, b, pattern=where), strict=True)


@pytest.mark.parametrize("index", ["", "_32"])
@pytest.mark.parametrize("wrong", ["column below", "column above", "start below", "start above", "starts fall",
                                   "order"])
def test_indices_out_of_range(wrong, index):
    """Indices out of range are reported, and nothing outside the arrays is read."""
    kind = np.int32 if index else np.int64
    starts, places = np.array([0, 2, 3, 5], kind), np.array([0, 3, 1, 2, 3], kind)
    order, out, bad = np.arange(5), np.zeros((3, 2)), np.zeros(1, np.int64)
    values, b, a = np.ones(5), np.ones((4, 2)), np.ones((3, 2))
    least, most = np.iinfo(kind).min, np.iinfo(kind).max
    {"column below": lambda: places.__setitem__(2, least), "column above": lambda: places.__setitem__(2, most),
     "start below": lambda: starts.__setitem__(0, least), "start above": lambda: starts.__setitem__(3, most),
     "starts fall": lambda: starts.__setitem__(1, 4), "order": lambda: order.__setitem__(3, 5)}[wrong]()
    product = getattr(native, f"sparse_matmul{index}")
    assert product(values, starts, places, order, b, out, bad, 3, 4, 2) is None and bad[0]
    if wrong != "order":
        assert product(values, starts, places, None, b, out, bad, 3, 4, 2) is None and bad[0]
        bad[:] = 0
        samples = getattr(native, f"sampled_matmul{index}")
        assert samples(a, starts, places, b, np.zeros(5), bad, 3, 4, 2) is None and bad[0]


def test_calls_that_do_not_fit():
    values, starts, places, b, out, bad = (np.ones(5), np.array([0, 2, 3, 5]), np.array([0, 3, 1, 2, 3]),
                                           np.ones((4, 2)), np.ones((3, 2)), np.ones(1, np.int64))
    call = native.sparse_matmul
    with pytest.raises(ValueError, match="edges == rows \\+ 1"):
        call(values, starts[:3].copy(), places, None, b, out, bad, 3, 4, 2)
    with pytest.raises(ValueError, match="columns"):
        call(values, starts, places[:3].copy(), None, b, out, bad, 3, 4, 2)
    with pytest.raises(ValueError, match="out"):
        call(values, starts, places, None, b, b[:2].copy(), bad, 3, 4, 2)
    assert call(values, starts.astype(np.int32), places, None, b, out, bad, 3, 4, 2) is NotImplemented
    assert call(values, starts, places, None, b, b[:3], bad, 3, 4, 2) is NotImplemented         # out is a part of b
    assert native.sparse_matmul_32(values, starts, places, None, b, out, bad, 3, 4, 2) is NotImplemented


@pytest.mark.parametrize("width", [1, 7, 64])
def test_results_do_not_depend_on_threads(width):
    pattern, _ = matrix(3000, 2000, 40_000, np.int64)
    rng, threads, found = np.random.default_rng(3), tg.get_num_threads(), []
    values, a, b = rng.standard_normal(40_000), rng.standard_normal((3000, width)), rng.standard_normal((2000, width))
    try:
        for count in (1, 2, 3):
            tg.set_num_threads(count)
            found.append((compiled.sparse_matmul(values, b, pattern=pattern),
                          compiled.sparse_matmul(values, a, pattern=pattern, transposed=True),
                          compiled.sampled_matmul(a, b, pattern=pattern)))
    finally:
        tg.set_num_threads(threads)
    for others in found[1:]:
        for one, other in zip(found[0], others):
            np.testing.assert_array_equal(one, other)


def test_gradients_are_each_others_products():
    from tensorgrad.core.dispatch import xp
    pattern, _ = matrix(7, 5, 20, np.int64)
    rng = np.random.default_rng(4)
    values, b = (tg.tensor(rng.standard_normal(s), requires_grad=True) for s in (20, (5, 3)))
    assert tg.autograd.gradcheck(lambda v, b: xp.sparse_matmul(v, b, pattern=pattern), (values, b))
    assert tg.autograd.gradgradcheck(lambda v, b: xp.sparse_matmul(v, b, pattern=pattern), (values, b))


@pytest.mark.parametrize("most", [1 << 8, 1 << 16, (1 << 16) + 1, 100_000, 1 << 32, (1 << 32) + 1])
def test_order_of_columns(most):
    """Sorting is stable, digit by digit as well as at once."""
    from tensorgrad.storage.sparse import order_of
    columns = np.random.default_rng(5).integers(0, most, 5000)
    columns[:100] = most - 1
    columns[1::50] = columns[0::50]
    for part in (columns, columns[:50]):
        np.testing.assert_array_equal(order_of(np, part, most), np.argsort(part, kind="stable"))
