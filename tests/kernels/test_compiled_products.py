"""Products of matrices by compiled code against NumPy's in float64: all layouts, sizes on both sides of each block, and
any number of threads.
"""
from itertools import product as all_of

import numpy as np
import pytest
from support import cpu_only, skip_file

from tensorgrad.runtime.native import native

if native is None:
    skip_file("the compiled kernels are not there")
from tensorgrad.kernels import matrix_compiled

pytestmark = cpu_only
SIZES = [(1, 64, 700), (4, 4, 2100), (5, 5, 2300), (3, 100, 400), (12, 33, 130), (13, 260, 33), (14, 32, 256),
         (15, 33, 257), (29, 65, 512), (31, 19, 300), (32, 140, 256), (33, 40, 256), (42, 31, 530), (43, 97, 600),
         (64, 10, 300), (128, 193, 300), (337, 70, 40), (340, 129, 260), (700, 34, 515), (20, 3100, 20),
         (345, 3080, 10), (200, 64, 1), (33, 512, 1100)]


def laid(rng, shape, how, dtype):
    """A matrix in rows, in columns, or with gaps between its rows."""
    if how == "columns":
        return np.ascontiguousarray(rng.standard_normal(shape[::-1]).astype(dtype)).T
    if how == "gaps":
        return rng.standard_normal((shape[0], shape[1] + 5)).astype(dtype)[:, 2:-3]
    return rng.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("threads", [1, 2, 3], indirect=True)
def test_products_of_all_layouts_and_sizes(threads, dtype):
    rng = np.random.default_rng(0)
    for (m, n, k), layout_a, layout_b in all_of(SIZES, ("rows", "columns", "gaps"), ("rows", "columns", "gaps")):
        a, b, bias = (laid(rng, (m, k), layout_a, dtype), laid(rng, (k, n), layout_b, dtype),
                      rng.standard_normal(n).astype(dtype))
        for shift in (None, bias):
            out = matrix_compiled.product(a, b, shift)
            if out is NotImplemented:
                assert m * n * k < matrix_compiled.SMALL
                continue
            exact = a.astype(float) @ b.astype(float) + (0 if shift is None else shift)
            sizes = abs(a.astype(float)) @ abs(b.astype(float)) + 1
            assert (abs(out - exact) <= 4 * np.finfo(dtype).eps * sizes).all(), (m, n, k, layout_a, layout_b)


@pytest.mark.parametrize("threads", [1, 2, 3], indirect=True)
def test_stacks_of_products(threads):
    rng = np.random.default_rng(0)
    for stack, (m, n, k) in all_of([(5,), (2, 3)], [(64, 64, 32), (33, 65, 20), (128, 31, 70), (4, 200, 60)]):
        for order_a, order_b in all_of((0, 1), (0, 1)):
            a = rng.standard_normal((*stack, k, m)).swapaxes(-1, -2) if order_a else rng.standard_normal((*stack, m, k))
            b = rng.standard_normal((*stack, n, k)).swapaxes(-1, -2) if order_b else rng.standard_normal((*stack, k, n))
            np.testing.assert_allclose(matrix_compiled.product(a, b), np.einsum("...ij,...jk->...ik", a, b), rtol=1e-11,
                                       atol=1e-11)


def test_what_is_not_a_number_stays_in_its_row_and_column():
    for m, n, k in ((40, 70, 300), (341, 64, 40), (7, 64, 200), (30, 64, 300)):
        a, b = np.ones((m, k), np.float32), np.ones((n, k), np.float32).T
        a[3, k // 2], b[k - 1, 5] = np.nan, np.inf
        out = matrix_compiled.product(a, b)
        assert np.isnan(out[3]).all() and np.isinf(np.delete(out[:, 5], 3)).all()
        assert np.isfinite(np.delete(np.delete(out, 3, 0), 5, 1)).all()


@pytest.mark.parametrize("threads", [2, 5], indirect=True)
def test_many_loops_one_after_the_other(threads):
    """Threads that come late to a loop find the next one, or nothing: no part is done twice, or not at all."""
    rng = np.random.default_rng(0)
    operands = [(rng.integers(-9, 9, (40, k)).astype("float32"), rng.integers(-9, 9, (k, 100)).astype("float32"))
                for k in (64, 100, 300)]
    exact = [a @ b for a, b in operands]
    for turn in range(3000):
        place = turn % 3
        np.testing.assert_array_equal(matrix_compiled.product(*operands[place]), exact[place])


@pytest.mark.parametrize("threads", [3], indirect=True)
def test_loops_of_several_threads(threads):
    from concurrent.futures import ThreadPoolExecutor
    rng = np.random.default_rng(0)
    a, b = rng.integers(-9, 9, (60, 80)).astype("float32"), rng.integers(-9, 9, (80, 90)).astype("float32")
    with ThreadPoolExecutor(4) as several:
        for found in several.map(lambda _: matrix_compiled.product(a, b), range(2000)):
            np.testing.assert_array_equal(found, a @ b)
