"""Chains of elementwise ops as one loop: the kernel `loop` beside the definition, programs that it refuses, and the
pass that makes loops.
"""
import numpy as np
import pytest

import tensorgrad as tg
from tensorgrad.compiler.executable import build
from tensorgrad.compiler.loop_instructions import Unserved
from tensorgrad.compiler.loop_programs import Layout, program
from tensorgrad.compiler.loops import At, Loop, Step
from tensorgrad.compiler.values import computed
from tensorgrad.graph import lower
from tensorgrad.kernels.compiled import WANTED
from tensorgrad.ops.base import OPS
from tensorgrad.runtime.native import native

needs_kernels = pytest.mark.skipif(native is None or not WANTED, reason="needs the compiled kernels")
DTYPES = [np.float32, np.float64]
UNARY = """
    negative absolute square reciprocal sqrt rsqrt exp expm1 log log1p tanh sigmoid erf floor ceil trunc
    round sign sgn isnan isinf isfinite logical_not relu hardsigmoid hardswish log_sigmoid silu mish
    gelu gelu_tanh clone sin cos tan arcsin arccos arctan sinh cosh arcsinh arccosh arctanh exp2 log2 log10
    conj signbit nan_to_num deg2rad rad2deg sinc logit
""".split()
BINARY = """
    add subtract rsub multiply divide maximum minimum fmax fmin copysign equal not_equal less less_equal
    greater greater_equal logical_and logical_or logical_xor arctan2 floor_divide remainder fmod
""".split()
WITH_PARAMS = [("hardtanh", {"low": -1, "high": 2.5}), ("leaky_relu", {"slope": 0.1}), ("elu", {"alpha": 1.5}),
               ("elu", {"alpha": 1.5, "scale": 2.0}), ("celu", {"alpha": 0.5}),
               ("softplus", {"beta": 2, "threshold": 20}),
               ("hardshrink", {"lambd": 0.5}), ("softshrink", {"lambd": 0.5}),
               ("threshold", {"threshold": 0.3, "value": -7.0}), ("cast", {"dtype": np.dtype(bool)}), ("round", {})]
SMOOTH = {"exp", "expm1", "log", "log1p", "tanh", "sigmoid", "erf", "rsqrt", "log_sigmoid", "silu", "mish", "gelu",
          "gelu_tanh", "elu", "celu", "softplus", "hardsigmoid", "hardswish", "deg2rad", "rad2deg", "sinc", "logit",
          "sin", "cos"}


def special(dtype, n=300, seed=0):
    """Ordinary numbers among which are NaN, infinities, zeros of both signs, subnormal and huge numbers."""
    found = np.random.default_rng(seed).normal(0, 3, n).astype(dtype)
    info = np.finfo(dtype)
    odd = [np.nan, np.inf, -np.inf, 0, -0.0, info.smallest_subnormal, -info.tiny / 4, info.max, -info.max, 1, -1, 0.5,
           1e5, -2e6, 2.5, -1.5, 3, -3, 88, -88, info.eps]
    found[:len(odd)] = np.array(odd, dtype)[:n]
    np.random.default_rng(seed + 1).shuffle(found)
    return found


def layout(a):
    return Layout(a.shape, tuple(s // a.itemsize for s in a.strides), a.dtype)


def by_kernel(loop, *arrays, over=None):
    made = program(loop, [layout(a) for a in arrays])
    found = {k: np.full(made.shapes[k], -77, made.dtype if i < 3 else bool)
             for i, k in enumerate(made.outputs) if k is not None}
    if over is not None:
        assert over in made.over[0]
        found[0] = arrays[over]
    assert native.loop(*made.arguments(arrays, found)) is None
    results = [found[k] for k in made.same]
    return results if len(results) > 1 else results[0]


def defined(loop, *arrays):
    with np.errstate(all="ignore"):
        return loop(*arrays)


def one(opname, *operands, **params):
    count = sum(isinstance(a, At) for a in operands)
    return Loop(count, (Step(opname, operands, tuple(params.items())),), (count,))


def check(found, wanted, smooth=False):
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    if not smooth:
        np.testing.assert_array_equal(found, wanted)
        if found.dtype != bool:
            np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))
        return
    info = np.finfo(wanted.dtype)
    with np.errstate(all="ignore"):
        apart = np.abs(found - wanted)
        fine = (apart <= 8 * info.eps * np.abs(wanted) + 4 * info.tiny) | (found == wanted)
    assert (fine | (np.isnan(found) & np.isnan(wanted))).all()


# ── the kernel beside the definition ──────────────────────────────────────────────────────────────────────────────────


@needs_kernels
@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_of_one_array(dtype):
    x = special(dtype)
    for opname, params in [(name, {}) for name in UNARY] + WITH_PARAMS:
        loop = one(opname, At(0), **params)
        for a in (x, x[:7], x[13:14]):
            found, wanted = by_kernel(loop, a), defined(loop, a)
            if opname in ("sin", "cos"):
                zeros = np.array([0, -0.0], dtype)
                check(by_kernel(loop, zeros), defined(loop, zeros))
                check(by_kernel(loop, a[np.abs(a) < 1e4]), defined(loop, a[np.abs(a) < 1e4]), True)
            if opname in ("negative", "copysign", "round", "hardshrink", "softshrink", "threshold") or opname in SMOOTH:
                check(found, wanted, opname in SMOOTH)
            else:
                np.testing.assert_array_equal(found, wanted, err_msg=opname)


@needs_kernels
@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_of_two_arrays(dtype):
    x = special(dtype, 19)
    a, b = np.repeat(x, 19), np.tile(x, 19)
    for opname in BINARY:
        for operands, arrays in (((At(0), At(1)), (a, b)), ((At(0), 2.5), (a,)), ((-0.0, At(0)), (a,)),
                                 ((At(0), At(1)), (a, b[5:6])), ((At(0), At(1)), (a[3:4].reshape(()), b))):
            loop = one(opname, *operands)
            if opname in OPS and opname.startswith("logical") and len(arrays) == 1:
                continue                                    # of tensors alone
            np.testing.assert_array_equal(by_kernel(loop, *arrays), defined(loop, *arrays), err_msg=opname)
    for opname in ("hypot", "logaddexp", "xlogy"):
        for operands in ((a, b), (a, b[5:6])):
            operands = [np.abs(x) for x in operands] if opname == "logaddexp" else operands
            loop = one(opname, At(0), At(1))
            check(by_kernel(loop, *operands), defined(loop, *operands), smooth=True)
    signs = by_kernel(one("copysign", At(0), At(1)), a, b)
    np.testing.assert_array_equal(np.signbit(signs), np.signbit(np.copysign(a, b)))


@needs_kernels
@pytest.mark.parametrize("dtype", DTYPES)
def test_choices_bounds_and_powers(dtype):
    x, y, mask = special(dtype), special(dtype, seed=1), np.random.default_rng(2).random(300) < 0.5
    some = mask[:1].reshape(())
    check(by_kernel(one("where", At(0), At(1), At(2)), mask, x, y), np.where(mask, x, y))
    check(by_kernel(one("where", At(0), At(1), 0), mask, x), np.where(mask, x, dtype(0)))
    check(by_kernel(one("where", At(0), -1, At(1)), mask, x), np.where(mask, dtype(-1), x))
    check(by_kernel(one("where", At(0), At(1), At(2)), some, x, y), np.where(some, x, y))
    check(by_kernel(one("masked_fill", At(0), float("-inf"), At(1)), x, mask), np.where(mask, dtype("-inf"), x))
    for lo, hi in ((-1, 2), (None, 0.5), (0.5, None), (2, -1)):
        loop = one("clamp", At(0), lo, hi)
        np.testing.assert_array_equal(by_kernel(loop, x), defined(loop, x))
    for n in (2, 3.0, -1, -2, 0.5, -0.5, 1, 4, 7, 16):
        loop = one("power", At(0), n)
        check(by_kernel(loop, x), defined(loop, x), smooth=n == -0.5)
    for operands, arrays in (((At(0), At(1)), (x, y)), ((2.0, At(0)), (x,)),
                             *(((At(0), n), (x,)) for n in (0, 2.5, 17, -1.5))):
        loop = one("power", *operands)
        check(by_kernel(loop, *arrays), defined(loop, *arrays), smooth=True)
    with pytest.raises(Unserved):
        program(one("power", At(0), True), [layout(x)])


@needs_kernels
def test_operands_of_other_dtypes_are_converted_as_they_are_read():
    x, words = special(np.float32, 60), np.arange(-30, 30) * 2 ** 40 + 1
    pixels, odd = np.arange(60, dtype=np.uint8) * 4, np.arange(60, dtype=np.uint8) % 3
    for other in (words, words[:1], pixels, odd.view(bool), np.int64(7).reshape(())):
        loop = Loop(2, (Step("cast", (At(1),), (("dtype", np.dtype(np.float32)),)), Step("add", (At(0), At(2)))), (3,))
        np.testing.assert_array_equal(by_kernel(loop, x, other), x + other.astype(np.float32))
    for other in (words.astype(np.int32), np.ones(60), np.ones(60, np.float16)):
        with pytest.raises(Unserved):
            program(loop, [layout(x), layout(other)])


SHAPES = [((2, 3, 1500), (1500,)), ((2, 3, 1500), (3, 1)), ((5, 7), (7,)), ((5, 7), (5, 1)), ((200, 9), (200, 1)),
          ((300, 9), (9,)), ((2, 3, 4, 5), (3, 1, 1)), ((2, 3, 4, 5), (2, 1, 4, 1)), ((3, 1, 5), (1, 4, 1)), ((), (3,)),
          ((2, 1, 1030), (3, 1)), ((1, 1), ()), ((40, 3, 2), (1, 3, 1)), ((1100,), (3, 1))]


@needs_kernels
@pytest.mark.parametrize("dtype", DTYPES)
def test_operands_broadcast(dtype):
    loop = Loop(3, (Step("multiply", (At(0), At(1))), Step("where", (At(2), At(3), At(1)))), (3, 4))
    rng = np.random.default_rng(0)
    for a, b in SHAPES:
        for c in (a, b):
            arrays = [rng.normal(size=a).astype(dtype), rng.normal(size=b).astype(dtype), rng.random(size=c) < 0.5]
            for found, wanted in zip(by_kernel(loop, *arrays), defined(loop, *arrays), strict=True):
                check(found, np.array(np.broadcast_to(wanted, found.shape)))
    with pytest.raises(Unserved, match="axes"):
        program(one("add", At(0), At(1)), [Layout((2, 3, 2, 3, 2), (36, 12, 6, 2, 1), dtype),
                                           Layout((2, 1, 2, 1, 2), (4, 4, 2, 2, 1), dtype)])


@needs_kernels
def test_operands_of_any_layout():
    x = special(np.float32, 24 * 60).reshape(24, 60)
    loop = one("add", At(0), At(1))
    for a in (x.T, x[::2].T, x[:, ::3], x[3:, 4:50], np.broadcast_to(x[:, :1], (24, 50)),
              x.reshape(4, 6, 60).transpose(1, 0, 2)):
        np.testing.assert_array_equal(by_kernel(loop, a, a[..., :1]), defined(loop, a, a[..., :1]))
    with pytest.raises(Unserved):
        program(loop, [layout(x[::-1]), layout(x)])


@needs_kernels
def test_several_results_equal_ones_and_operands_among_them():
    x, b = (np.random.default_rng(0).normal(size=s).astype(np.float32) for s in ((4, 10), 10))
    steps = (Step("add", (At(0), At(1))), Step("add", (At(0), At(1))), Step("less", (At(2), 1.0)),
             Step("clone", (At(0),)), Step("tanh", (At(2),)))
    found = by_kernel(Loop(2, steps, (2, 3, 4, 5, 6)), x, b)
    for got, wanted in zip(found, (x + b, x + b, x + b < 1, x), strict=False):
        np.testing.assert_array_equal(got, wanted)
    assert found[0] is found[1]
    with pytest.raises(Unserved, match="results"):
        program(Loop(1, tuple(Step("add", (At(0), k)) for k in range(4)), (1, 2, 3, 4)), [layout(x)])


@needs_kernels
def test_results_over_operands():
    x, b = (np.random.default_rng(0).normal(size=s).astype(np.float32) for s in ((4, 10), 10))
    chain = Loop(2, (Step("multiply", (At(0), 2.0)), Step("add", (At(2), At(1)))), (3,))
    wanted = x * 2 + b
    y = x.copy()
    np.testing.assert_array_equal(by_kernel(chain, y, b, over=0), wanted)
    assert program(chain, [layout(x), layout(b)]).over == {0: [0]}
    assert program(chain, [layout(np.asfortranarray(x)), layout(b)]).over == {0: []}
    # the first result comes before the operand is read for the last time
    early = Loop(1, (Step("add", (At(0), 1.0)), Step("multiply", (At(0), 2.0))), (1, 2))
    assert program(early, [layout(x)]).over == {0: [], 1: [0]}


def random_loop(rng):
    """A loop over four operands, of ops whose results are exact, and numbers that it computes."""
    steps, numbers, truths = [], [0, 1, 2, 3], []
    for at in range(4, 4 + rng.integers(1, 40)):
        a, b = (At(int(rng.choice(numbers))) for _ in range(2))
        kind = rng.integers(5)
        if kind == 0:
            steps.append(Step(str(rng.choice(["negative", "absolute", "relu", "floor", "sign"])), (a,)))
        elif kind == 1 and truths:
            steps.append(Step("where", (At(int(rng.choice(truths))), a, float(rng.normal()))))
        elif kind == 2:
            steps.append(Step(str(rng.choice(["less", "greater_equal", "equal"])), (a, b)))
        else:
            steps.append(Step(str(rng.choice(["add", "subtract", "maximum", "minimum"])), (a, b)))
        (truths if kind == 2 else numbers).append(at)
    results = [int(k) for k in rng.permutation(numbers) if k >= 4][:3] + truths[-1:]
    return Loop(4, tuple(steps), tuple(results))


@needs_kernels
@pytest.mark.parametrize("seed", range(3))
def test_random_chains(seed):
    rng = np.random.default_rng(seed)
    for _ in range(12):
        dtype, shape = DTYPES[rng.integers(2)], tuple(rng.integers(1, 40, rng.integers(1, 4)))
        arrays = [rng.normal(size=tuple(n if rng.random() < 0.7 else 1 for n in shape)).astype(dtype) for _ in range(3)]
        loop = random_loop(rng)
        arrays.append(rng.normal(size=shape).astype(dtype))
        found, wanted = by_kernel(loop, *arrays), defined(loop, *arrays)
        for got, want in zip(*([x] if len(loop.results) == 1 else x for x in (found, wanted)), strict=True):
            np.testing.assert_array_equal(got, np.broadcast_to(want, got.shape))


def test_the_definition_leaves_operands_alone():
    rng = np.random.default_rng(0)
    for dtype in DTYPES:
        arrays = [rng.normal(size=s).astype(dtype) for s in ((4, 5), (5,), (4, 1), ())]
        loop, before = random_loop(rng), [a.copy() for a in arrays]
        found = defined(loop, *arrays)
        values = list(arrays)
        with np.errstate(all="ignore"):
            for each in loop.steps:
                given = [values[a.value] if isinstance(a, At) else a for a in each.operands]
                values.append(computed(OPS[each.opname], given, dict(each.params)))
        for got, k in zip(found if len(loop.results) > 1 else [found], loop.results, strict=True):
            np.testing.assert_array_equal(got, values[k])
            assert got.dtype == np.asarray(values[k]).dtype
        for a, same in zip(arrays, before, strict=True):
            np.testing.assert_array_equal(a, same)


@needs_kernels
def test_threads_change_nothing():
    x, b = special(np.float32, 1 << 18).reshape(256, 1024), special(np.float32, 256).reshape(256, 1)
    loop = Loop(2, (Step("multiply", (At(0), At(1))), Step("tanh", (At(2),)), Step("add", (At(3), At(0)))), (4,))
    before = tg.get_num_threads()
    try:
        found = []
        for threads in (1, 2):
            tg.set_num_threads(threads)
            found.append(by_kernel(loop, x, b))
    finally:
        tg.set_num_threads(before)
    np.testing.assert_array_equal(*found)


# ── rows ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def step(opname, *operands, **params):
    return Step(opname, operands, tuple(params.items()))


def along(*axes, keepdims=True):
    return {"axis": axes, "keepdims": keepdims}


RMS = Loop(2, (step("power", At(0), 2), step("mean", At(2), **along(1)), step("add", At(3), 1e-6),
               step("rsqrt", At(4)), step("multiply", At(0), At(5)), step("multiply", At(1), At(6))), (7, 3))
SOFTMAX = Loop(1, (step("amax", At(0), **along(1)), step("subtract", At(0), At(1)), step("exp", At(2)),
                   step("sum", At(3), **along(1)), step("divide", At(3), At(4))), (5,))
NORM = Loop(2, (step("mean", At(0), **along(1)), step("subtract", At(0), At(2)), step("variance", At(0), **along(1)),
                step("add", At(4), 1e-5), step("sqrt", At(5)), step("divide", At(3), At(6)),
                step("multiply", At(7), At(1))), (8,))
LOSS = Loop(2, (step("subtract", At(0), At(1)), step("absolute", At(2)), step("less", At(3), 1.0),
                step("where", At(4), At(2), At(3)), step("mean", At(5), axis=(1,)), step("negative", At(6)),
                step("amin", At(5), axis=(1,)), step("subtract", At(7), At(8))), (7, 9, 4))


@needs_kernels
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(300, 9), (5, 100), (2, 2500), (1, 16384)])
def test_rows(dtype, shape):
    x, w = (np.random.default_rng(0).normal(size=s).astype(dtype) for s in (shape, shape[1:]))
    limit = 1e-5 if dtype == np.float32 else 1e-12
    for loop, arrays in ((RMS, (x, w)), (SOFTMAX, (x,)), (NORM, (x, w)), (LOSS, (x, w)), (NORM, (x.T.copy().T, x))):
        found, wanted = by_kernel(loop, *arrays), defined(loop, *arrays)
        for got, want in zip(*((y if isinstance(y, (tuple, list)) else [y]) for y in (found, wanted)), strict=True):
            np.testing.assert_allclose(got.astype(np.float64), want, limit, limit)
            assert got.shape == want.shape and got.dtype == want.dtype


@needs_kernels
@pytest.mark.parametrize("dtype", DTYPES)
def test_long_rows(dtype):
    """Loops over long rows, in which no element waits for a reduction."""
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(3, 70_001)).astype(dtype), rng.normal(size=70_001).astype(dtype)
    before = tg.get_num_threads()
    found = []
    try:
        for threads in (1, 2):
            tg.set_num_threads(threads)
            found.append(by_kernel(LOSS, x, w))
    finally:
        tg.set_num_threads(before)
    for got, same, want in zip(*found, defined(LOSS, x, w), strict=True):
        np.testing.assert_array_equal(got, same)
        np.testing.assert_allclose(got.astype(np.float64), want, 1e-5 if dtype == np.float32 else 1e-12)
    for loop in (RMS, SOFTMAX, NORM):
        with pytest.raises(Unserved, match="too long"):
            program(loop, [layout(x), layout(w)][:loop.operands])
    total = one("sum", At(0), axis=None)
    np.testing.assert_allclose(by_kernel(total, x), x.sum(dtype=np.float64), 1e-5)
    assert by_kernel(total, x).shape == () and by_kernel(one("sum", At(0), axis=None, keepdims=True), x).shape == (1, 1)


@needs_kernels
def test_extremes_of_rows_pass_nan_and_infinity():
    x = np.zeros((4, 5000), np.float32)
    x[0, 4097], x[1, 3], x[2, 4999] = np.nan, -np.inf, np.inf
    for opname in ("amax", "amin", "sum", "mean"):
        for a in (x, x[:, 4000:], x[:, ::7]):
            loop = Loop(1, (step("negative", At(0)), step(opname, At(1), **along(1))), (2,))
            np.testing.assert_array_equal(by_kernel(loop, a), defined(loop, a))


@needs_kernels
def test_sums_of_products():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 3, 5000)).astype(np.float32)
    x[0, 7], y[1, 4000], x[2, :2] = np.inf, np.nan, 0
    for a, b in ((x, y), (x[:, :9], y[:, :9]), (x, x), (x, x[:, :1]), (x[:, ::2], y[:, 1::2])):
        for opname in ("sum", "mean"):
            loop = Loop(2, (step("multiply", At(0), At(1)), step(opname, At(2), **along(1))), (3,))
            np.testing.assert_allclose(by_kernel(loop, a, b), defined(loop, a, b), 1e-4, 1e-5)
    endless = Loop(1, (step("multiply", At(0), float("inf")), step("sum", At(1), axis=None)), (2,))
    assert np.isnan(by_kernel(endless, x[2:])) and by_kernel(endless, np.abs(x[2:, 2:])) == np.inf


@needs_kernels
def test_rows_of_several_axes_and_operands_of_rows():
    rng = np.random.default_rng(0)
    x, scale, shift = (rng.normal(size=s).astype(np.float32) for s in ((2, 3, 4, 5), (3, 1, 1), (2, 1, 1, 1)))
    loop = Loop(3, (step("mean", At(0), **along(2, 3)), step("add", At(3), At(1)), step("multiply", At(4), At(2)),
                    step("subtract", At(0), At(5))), (6, 5))
    for got, want in zip(by_kernel(loop, x, scale, shift), defined(loop, x, scale, shift), strict=True):
        np.testing.assert_allclose(got, want, 1e-5, 1e-6)
    weight = rng.normal(size=(4, 1)).astype(np.float32)
    with pytest.raises(Unserved, match="axes"):                # a row is one axis for all operands
        program(loop, [layout(x), layout(weight), layout(shift)])
    for axis in (1, (0, 1), (1, 3)):
        with pytest.raises(Unserved, match="reductions"):
            program(one("sum", At(0), axis=axis), [layout(x)])
    with pytest.raises(Unserved):                               # of two kinds of rows
        program(Loop(1, (step("sum", At(0), axis=3), step("sum", At(0), axis=(2, 3))), (1, 2)), [layout(x)])
    square = np.ones((4, 4), np.float32)                        # rows without their axis would meet columns
    with pytest.raises(Unserved, match="without their axes"):
        program(Loop(1, (step("sum", At(0), axis=1), step("add", At(0), At(1))), (2,)), [layout(square)])
    middle = Loop(1, (step("mean", At(0), axis=None), step("subtract", At(0), At(1))), (2,))
    np.testing.assert_array_equal(by_kernel(middle, square), 0 * square)


# ── programs that are refused ─────────────────────────────────────────────────────────────────────────────────────────


def arguments():
    x, b, mask = np.ones((6, 5), np.float32), np.ones(5, np.float32), np.ones((6, 5), bool)
    steps = Step("add", (At(0), At(1))), Step("where", (At(2), At(3), 2.0)), Step("less", (At(4), 1.0))
    loop = Loop(3, steps, (4, 5))
    made = program(loop, [layout(a) for a in (x, b, mask)])
    return made.arguments([x, b, mask], {0: np.zeros_like(x), 1: np.zeros_like(mask)})


CODE = 15               # the program's place among the arguments
HEAD = 2 + 11 * 5


@needs_kernels
def test_a_valid_program_is_one():
    assert native.loop(*arguments()) is None


@needs_kernels
@pytest.mark.parametrize("at, values", [
    (0, (-1, 0, 1, 3, 65, 2 ** 62, -2 ** 63)),                  # numbers
    (1, (-1, 0, 1, 4, 129, 2 ** 61)),                           # steps
    (2, (-1, 1, 2 ** 40, 2 ** 62)), (3, (-1, 1)),                # strides of x: outer axes have length 1
    (5, (-1, 2, 5, 7, 2 ** 40, 2 ** 62)), (4, (-1, 6, 2 ** 62)),
    (HEAD, (0, 2, 3, -1)), (HEAD + 1, (1, 2, -1)), (HEAD + 3, (0, 2)),             # outputs
    (HEAD + 6, (-1, 2 ** 40, 101, 255)),                          # an instruction
    (HEAD + 7, (1, 2, -1)),                                      # by row
    (HEAD + 8, (-1, 16, 17, 31, 32, 2 ** 32, 2 ** 62)),          # where it goes
    (HEAD + 9, (-1, 0, 1, 18, 28, 33, 95, 2 ** 32 + 16)),        # what it reads
])
def test_invalid_programs_are_refused(at, values):
    given = arguments()
    for value in values:
        code = given[CODE].copy()
        if code[at] == value or at in (2, 3) and value >= 0:
            continue
        code[at] = value
        with pytest.raises(ValueError, match="does not hold: is_loop"):
            native.loop(*given[:CODE], code, *given[CODE + 1:])


@needs_kernels
def test_invalid_calls_are_refused():
    given = arguments()
    for length in range(1, len(given[CODE])):
        with pytest.raises(ValueError, match="is_loop"):
            native.loop(*given[:CODE], given[CODE][:length], *given[CODE + 1:])
    for k in (0, 1, 8):                                          # an operand that is missing, or shorter
        with pytest.raises(ValueError):
            native.loop(*given[:k], None, *given[k + 1:])
        with pytest.raises(ValueError):
            native.loop(*given[:k], given[k].ravel()[:-1], *given[k + 1:])
    for k in (11, 14):
        with pytest.raises(ValueError):
            native.loop(*given[:k], given[k][:-1], *given[k + 1:])
    for k in range(CODE + 1, CODE + 5):                          # sizes
        for size in (given[k] + 1, 2 ** 39):
            with pytest.raises(ValueError):
                native.loop(*given[:k], size, *given[k + 1:])
    assert native.loop(*given[:11], given[0][:, ::-1], *given[12:]) is NotImplemented
    with pytest.raises(ValueError):
        native.loop(given[0][::-1], *given[1:])
    square = np.ones((4, 4), np.float32)
    with pytest.raises(ValueError, match="is_loop"):             # over an operand that is read in another order
        made = program(one("add", At(0), 1.0), [layout(square.T)])
        native.loop(*made.arguments([square.T], {0: square}))


@needs_kernels
def test_changed_programs_run_or_are_refused():
    """Changed programs are refused, or write to their results alone; none ends the process."""
    rng = np.random.default_rng(0)
    x, w = (rng.normal(size=s).astype(np.float32) for s in ((3, 20), 20))
    ran = 0
    for loop in (RMS, LOSS):
        made = program(loop, [layout(x), layout(w)])
        for _ in range(400):
            code = made.code.copy()
            for at in rng.integers(0, len(code), rng.integers(1, 3)):
                code[at] = rng.choice([code[at] + 1, code[at] - 1, 0, 1, *rng.integers(0, 100, 3), -1, 2 ** 40])
            found = {k: np.zeros(made.shapes[k], np.float32 if k < 2 else bool) for k in made.shapes}
            given = made.arguments([x, w], found)
            given[CODE] = code
            try:
                ran += native.loop(*given) is None
            except ValueError as error:
                assert "is_loop" in str(error)
    assert 100 < ran < 700


# ── the pass ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def compiled(f, *inputs):
    executable = build(lower(f, inputs))
    with np.errstate(all="ignore"):
        found = executable([x.array for x in inputs])
    wanted = f(*inputs)
    for got, want in zip(found, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        np.testing.assert_allclose(got, want.array, 1e-6, 1e-6)
        assert got.dtype == want.array.dtype and got.shape == want.array.shape
    return [node.target for node in executable.graph.nodes if isinstance(node.target, Loop)]


def normalized(x, w, b):
    mean = x.mean(-1, keepdim=True)
    spread = ((x - mean) ** 2).mean(-1, keepdim=True)
    return (x - mean) / tg.sqrt(spread + 1e-5) * w + b


def huber(x, y):
    d = (x - y).abs()
    return tg.where(d < 1, 0.5 * d * d, d - 0.5)


def rotated(q, cos, sin):
    half = tg.cat((-q[..., 4:], q[..., :4]), -1)
    return q * cos + half * sin


@needs_kernels
@pytest.mark.parametrize("f, shapes, loops", [
    (lambda x: x * tg.clamp(x + 3, 0, 5) / 6, [(3, 4)], 1),
    (lambda a, b: tg.nn.functional.silu(a) * b, [(3, 4), (3, 4)], 1),
    (huber, [(3, 4), (4,)], 1),
    (rotated, [(2, 3, 8), (3, 8), (3, 8)], 1),
    (lambda x: ((y := x + 1), y * 2, y > 2), [(5,)], 1),
    (lambda x, y: (x * 2) @ y + 1 - x, [(3, 3), (3, 3)], 1),      # the product is between: x · 2 stays alone
    (lambda x, m: x.masked_fill(m > 0, float("-inf")) * 2, [(3, 4), (4,)], 1),       # m > 0 is smaller
])
def test_chains_become_loops(f, shapes, loops):
    rng = np.random.default_rng(0)
    assert len(compiled(f, *(tg.tensor(rng.normal(size=s).astype("f")) for s in shapes))) == loops


@needs_kernels
def test_norms_written_out_become_one_loop():
    x, w, b = tg.randn(5, 16), tg.randn(16), tg.randn(16)
    rms, = compiled(lambda x, w: w * (x * tg.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)), x, w)
    assert [s.opname for s in rms.steps] == ["power", "mean", "add", "rsqrt", "multiply", "multiply"]
    assert len(compiled(normalized, x, w, b)) == 1
    assert len(compiled(lambda x, y: huber(x, y).mean(), x, tg.randn(5, 16))) == 1
    assert len(compiled(lambda x, y: (huber(x, y).sum(-1) * 2).neg(), x, tg.randn(5, 16))) == 1
    assert len(compiled(lambda x, y: (x - y).exp().sum(0) * 2 - w, x, tg.randn(5, 16))) == 2     # along the first axis
    assert len(compiled(lambda x, y: (x * 2).sum(-1) + y, tg.randn(16, 16), w)) == 1     # y belongs to no row
    long = tg.randn(2, 20_000)
    assert len(compiled(lambda x: (x * 2 - 1).mean(-1, keepdim=True) * 3, long)) == 1
    found = compiled(lambda x: (y := x * 2 - 1) / y.abs().mean(-1, keepdim=True), long)
    assert sorted(s.opname for loop in found for s in loop.steps) == ["absolute", "mean", "multiply", "subtract"]


@needs_kernels
@pytest.mark.parametrize("f", [
    lambda x: x.logsumexp(-1), lambda x: x.logsumexp(1, keepdim=True), lambda x: x.logsumexp((0, 2)),
    lambda x: x.norm(), lambda x: x.norm(dim=1), lambda x: x.norm(dim=(0, 2), keepdim=True),
    lambda x: x.norm(p=3, dim=(1, 2)), lambda x: x.norm(p=float("inf"), dim=2),
    lambda x: (x > 0).any(-1), lambda x: (x > 0).all(), lambda x: x.any(0),
    lambda x: (x * 0.5 + 1).any(-1) & (x > -1).all(-1)])
def test_norms_and_truths_of_rows_and_along_other_axes(f):
    x = tg.randn(3, 40, 9)
    x[1, 2, 3], x[2], x[0, 0] = float("inf"), float("-inf"), 0
    executable = build(lower(f, (x,)))
    found, wanted = executable([x.array])[0], f(x).array
    np.testing.assert_allclose(found, wanted, 1e-6, 1e-6)
    assert found.dtype == wanted.dtype and found.shape == wanted.shape and not executable.left


@needs_kernels
def test_chains_between_convolutions_stay_in_blocks():
    first, second = (tg.nn.Conv2d(a, b, 3, padding=1) for a, b in ((3, 32), (32, 5)))

    def program(x):
        y = first(x)
        return second(y + 0.5 * tg.tanh(y).clamp(-0.5, 0.7) - 1)
    x = tg.randn(2, 3, 9, 9)
    executable = build(lower(program, (x,)))
    names = [type(node.target).__name__ for node in executable.graph.nodes]
    assert names.count("Loop") == 1 and names.count("FromBlocked") == 1 and "ToBlocked" not in names
    np.testing.assert_allclose(executable([x.array])[0], program(x).array, atol=1e-5)


@needs_kernels
def test_what_is_no_chain_stays():
    x = tg.randn(3, 4)
    assert not compiled(lambda x: x.half() * 2 + 1, x)
    assert not compiled(lambda x: x.long() * 2 + 1, x)
    assert not compiled(lambda x: x.flip(0).relu(), x)
    assert not compiled(lambda x: x[:0] * 2 + 1, x)
    w = tg.nn.Parameter(tg.randn(4))
    loops = compiled(lambda x: x * (w * 2 + 1).exp() - 1, x)      # what depends on parameters alone is computed ahead
    assert [step.opname for loop in loops for step in loop.steps] == ["multiply", "subtract"]
