"""The NumPy kernels of the mathematical ops on arrays that are large enough for their fast ways, beside the ops' own
formulas.
"""
import numpy as np
import pytest
from support import cpu_only

from tensorgrad.ops.base import OPS
from tensorgrad.storage import NumpyStorage

pytestmark = cpu_only
inf, nan = np.inf, np.nan
rng = np.random.default_rng(3)
BEGIN = rng.bit_generator.state


@pytest.fixture(autouse=True)
def the_same_numbers_whatever_ran_before():
    rng.bit_generator.state = BEGIN


def normal(*shape, dtype="float32"):
    return rng.standard_normal(shape).astype(dtype)


def odd(*shape):
    """Numbers among which are NaN, infinities, both zeros, and equal ones."""
    x = normal(*shape)
    flat = x.reshape(-1)
    flat[rng.choice(x.size, 60, replace=False)] = np.repeat([nan, inf, -inf, 0.0, -0.0, 1.0], 10)
    return x


class Formulas:
    """NumPy's functions, and the ops' own definitions where it has none: an `xp` without kernels."""

    def cast(self, x, *, dtype):
        return x.astype(dtype)

    def __getattr__(self, name):
        return getattr(np, name, None) or (lambda *args, **params: definition(name)(self, *args, **params))


def definition(name):
    return OPS[name].kernels.in_arrays or OPS[name].forward


def both(name, *args, **params):
    """Return the results of the kernel and of the formula."""
    with np.errstate(all="ignore"):
        found = OPS[name].kernels[NumpyStorage](*args, **params), definition(name)(Formulas(), *args, **params)
    return [parts if isinstance(parts, tuple) else (parts,) for parts in found]


def check(name, *args, rtol=1e-6, atol=0.0, **params):
    copies = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    for ours, expected in zip(*both(name, *args, **params), strict=True):
        assert np.shape(ours) == np.shape(expected) and ours.dtype == expected.dtype
        np.testing.assert_allclose(ours, expected, rtol=rtol, atol=atol)
    for a, before in zip(args, copies, strict=True):
        np.testing.assert_array_equal(a, before)
        assert not isinstance(a, np.ndarray) or not np.shares_memory(ours, a)


# ── choosing ──────────────────────────────────────────────────────────────────────────────────────────────────────────

WIDE = (120, 100)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64", "bool", "complex64", "complex128"])
def test_where(dtype):
    condition, a, b = rng.random(WIDE) < 0.5, (9 * normal(*WIDE)).astype(dtype), (9 * normal(*WIDE)).astype(dtype)
    check("where", condition, a, b)
    check("where", condition, a, 0)
    check("where", condition, 0, b)
    check("where", condition, a, b[0])
    check("where", condition, a[:1, 0], b)
    check("where", condition[:, 0], a[:, :1].T, b[:1, 0])


def test_where_keeps_every_bit():
    condition, x = rng.random(WIDE) < 0.5, odd(*WIDE)
    check("where", condition, x, -x)
    check("where", condition, x, 0)
    check("where", condition, nan, x)
    check("where", condition, np.asfortranarray(x), x)
    found = OPS["where"].kernels[NumpyStorage](np.ones(WIDE, bool), np.full(WIDE, -0.0, "float32"), 0)
    assert np.signbit(found).all()


@pytest.mark.parametrize("bounds", [(-1.0, 1.0), (None, 0.5), (0.5, None), (1.0, -1.0)])
def test_clamp(bounds):
    check("clamp", odd(*WIDE), *bounds)
    check("clamp", (5 * normal(*WIDE)).astype("int32"), *[b if b is None else int(b) for b in bounds])


# ── elementwise arithmetic ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 5, -1, -2, -7, 16, 0.5, -0.5, 1.7, 17, 2.0])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_power(exponent, dtype):
    with np.errstate(all="ignore"):
        check("power", normal(50, 30, dtype=dtype), exponent, rtol=3e-5)
        if dtype != "complex64" and exponent != -0.5:      # a square root is not defined at −∞, pow is
            x = odd(50, 30).astype(dtype)
            if exponent == 0.5:
                x[x == -inf] = inf
            check("power", x, exponent, rtol=3e-5)


def test_integer_powers():
    a, b = rng.integers(-3, 4, 200), rng.integers(-2, 6, 200)
    expected = [x ** y if y >= 0 else {1: 1, -1: 1 if y % 2 == 0 else -1}.get(x, 0)
                for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert OPS["power"].kernels[NumpyStorage](a, b).tolist() == expected


@pytest.mark.parametrize("name", ["remainder", "fmod", "floor_divide"])
def test_remainders(name):
    a, b = 30 * normal(*WIDE), 3 * normal(*WIDE)
    whole = np.trunc(a)
    for x, y in [(a, b), (whole, 3.0), (whole, -3.0), (a, b[0]), (a[:1], b), (a, b * 1e-9), (odd(*WIDE), b),
                 (a, odd(*WIDE)), (a, 0.0)]:
        check(name, x, y, rtol=0, atol=0)
    check(name, whole.astype("int64"), np.abs(whole.astype("int64")).clip(1))


def test_remainders_have_the_right_sign_of_zero():
    a = np.repeat(np.float32([6.0, -6.0]), 300)
    kernels = {name: OPS[name].kernels[NumpyStorage] for name in ("remainder", "fmod")}
    assert np.signbit(kernels["remainder"](a, -3.0)).all() and not np.signbit(kernels["remainder"](a, 3.0)).any()
    assert (np.signbit(kernels["fmod"](a, 3.0)) == np.signbit(a)).all()


@pytest.mark.parametrize("name", ["hypot", "logaddexp"])
def test_pairs(name):
    a, b = odd(*WIDE), odd(*WIDE)
    check(name, a, b, rtol=2e-6, atol=1e-6)
    check(name, 1e30 * np.abs(a), b, rtol=2e-6)
    check(name, a.astype("float64"), b.astype("float64"), rtol=1e-12, atol=1e-14)
    check(name, a, b[0], rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["sigmoid", "sign"])
def test_single(name):
    x = 20 * odd(*WIDE)
    if name == "sign":
        np.testing.assert_array_equal(OPS[name].kernels[NumpyStorage](x), np.nan_to_num(np.sign(x)))
    else:
        # at −88 the result is too small to be a normal number: it may be 0
        check(name, x, atol=np.finfo("float32").tiny)


# ── reductions ────────────────────────────────────────────────────────────────────────────────────────────────────────

SHAPES = [(5000,), (9001,), (70, 90), (2100, 9), (9, 2100), (3, 4200), (5, 6, 7, 40), (1, 5000, 1), (4, 1, 3000)]
AXES = [None, 0, -1, (0, 1), (0, 2, 3), (1, 2), (1,), (2, 3)]


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "bool", "complex64"])
def test_sums(shape, dtype, keepdims):
    x = (4 * normal(*shape)).astype(dtype)
    exact = x.astype("complex128" if dtype == "complex64" else "float64")
    axes = [a for a in AXES if a is None or max(np.atleast_1d(a)) < len(shape)]
    tolerance = {"float16": 5e-1, "float64": 1e-10}.get(dtype, 2e-2)
    for axis in axes:
        for array, reference in ((x, exact), (x.swapaxes(0, -1), exact.swapaxes(0, -1)), (x[::2], exact[::2])):
            found = OPS["sum"].kernels[NumpyStorage](array, axis=axis, keepdims=keepdims)
            expected = reference.sum(axis=axis, keepdims=keepdims)
            assert found.shape == expected.shape and found.dtype == ("int64" if dtype in ("int32", "bool") else dtype)
            np.testing.assert_allclose(found, expected, rtol=1e-3 if dtype == "float16" else 1e-6, atol=tolerance)


def test_sums_of_many_lose_no_digits():
    x = rng.random(3_000_000, "float32")
    for shape, axis in (((-1,), None), ((3, -1), 1), ((-1, 10), 0)):
        found = OPS["sum"].kernels[NumpyStorage](x.reshape(shape), axis=axis)
        np.testing.assert_allclose(found, x.reshape(shape).sum(axis=axis, dtype="float64"), rtol=2e-6)


def test_sums_of_what_is_not_finite():
    x = normal(80, 90)
    x[3, 4], x[5, 6], x[5, 7] = inf, inf, -inf
    check("sum", x, axis=1, atol=1e-5)
    check("sum", x, axis=0, atol=1e-5)
    check("mean", x, axis=1, atol=1e-6)


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_moments(axis, dtype):
    x = (100 + normal(90, 110)).astype(dtype)
    for name in ("mean", "variance", "deviation", "vector_norm"):
        check(name, x, axis=axis, rtol=1e-5)
        check(name, x, axis=axis, keepdims=True, rtol=1e-5)
    check("variance", x, axis=axis, correction=0, rtol=1e-5)
    check("prod", (x / 100).astype(dtype), axis=axis, rtol=1e-3)
    check("logsumexp", x, axis=(0,) if axis is None else axis)


@pytest.mark.parametrize("name", ["max_dim", "min_dim", "argmax", "argmin"])
@pytest.mark.parametrize("axis", [0, 1, -1, -3])
def test_extremes(name, axis):
    for x in (rng.integers(0, 5, (30, 20, 10)), normal(30, 20, 10), odd(30, 20, 10), (normal(30, 20, 10) > 0)):
        check(name, x, axis=axis)
        check(name, x, axis=axis, keepdims=True)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_running(name, axis):
    x = normal(12, 11, 70)
    check(name, x, axis=axis, rtol=3e-5, atol=1e-5)
    check(name, x.swapaxes(0, 2), axis=axis, rtol=3e-5, atol=1e-5)
    check(name, x.astype("complex64"), axis=axis, rtol=1e-4, atol=1e-4) if name in ("cumsum", "cumprod") else None
    check(name, rng.integers(-2, 3, (9, 8, 70)), axis=axis) if "log" not in name else None
    check(name, odd(9, 8, 70), axis=axis) if "max" in name or "min" in name else None


# ── order ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_sort(axis, descending):
    for x in (normal(300, 40), odd(300, 40), rng.integers(0, 9, (300, 40)), np.zeros((300, 40), "float32")):
        check("sort_dim", x, axis=axis, descending=descending)


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("k", [1, 7, 200])
def test_topk(k, largest):
    x = rng.permutation(30_000).reshape(100, 300).astype("float32")
    check("topk", x, k=k, axis=1, largest=largest)
    check("topk", x.T, k=k, axis=0, largest=largest)
    x[0, 4] = nan
    check("topk", x, k=k, axis=1, largest=largest)


def test_ranks():
    x = rng.permutation(9_000).reshape(90, 100).astype("float32")
    for axis in (0, 1):
        check("kthvalue", x, k=17, axis=axis)
        check("median_dim", x, axis=axis, keepdims=True)
        check("median_dim", x.astype("int64"), axis=axis)
    check("median_of_all", x)
    x[3, 4] = nan
    check("median_dim", x, axis=1)
    check("median_of_all", x)


# ── products and shapes ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "int32", "int64", "uint8"])
def test_matmul(dtype):
    def draw(*shape):
        return (4 * normal(*shape)).astype("int64" if np.dtype(dtype).kind == "u" else dtype).astype(dtype)
    for a, b in [(draw(40, 30), draw(30, 50)), (draw(4, 40, 30), draw(30, 50)), (draw(2, 4, 40, 30), draw(4, 30, 5)),
                 (draw(4, 40, 30), draw(30)),
                 (draw(30), draw(30)), (draw(30, 40).T, draw(50, 30).T), (draw(4, 0, 3), draw(3, 2)),
                 (draw(0, 3), draw(3, 2))]:
        found = OPS["matmul"].kernels[NumpyStorage](a, b)
        if dtype == "float16":
            np.testing.assert_allclose(found, a.astype("float64") @ b.astype("float64"), rtol=2e-3, atol=2e-2)
        else:
            np.testing.assert_allclose(found, a @ b, rtol=1e-4, atol=1e-4)
        assert found.dtype == dtype


def test_integer_products_that_double_precision_cannot_hold():
    a = np.full((70, 70), 2 ** 31 + 1)
    found = OPS["matmul"].kernels[NumpyStorage](a, a)
    np.testing.assert_array_equal(found, a @ a)


@pytest.mark.parametrize(("shape", "target"), [
    ((), (2, 3)), ((1,), (2, 3)), ((3, 1), (3, 4)), ((3, 1), (2, 3, 4)), ((2, 3), (2, 3)), ((1, 3), (0, 3)),
    ((0, 3), (2, 0, 3))])
def test_broadcast_to(shape, target):
    for x in (normal(*shape), np.asfortranarray(normal(*shape)), normal(*shape)[..., None][..., 0]):
        found = OPS["broadcast_to"].kernels[NumpyStorage](x, shape=target)
        np.testing.assert_array_equal(found, np.broadcast_to(x, target))
    with pytest.raises(ValueError):
        OPS["broadcast_to"].kernels[NumpyStorage](np.zeros((2, 2)), shape=(3, 2))
