"""The compiled kernels beside the ops' own formulas, which a process of their own computes: results and gradients."""
import os
import sys
from functools import cache

import numpy as np
import pytest
from samples import SAMPLES
from sampling import Sample, between, fixed, index, positive, real
from support import COMMON, cpu_only, fresh_process

import tensorgrad
from tensorgrad.core.dispatch import OpDispatch
from tensorgrad.ops.base import OPS, Pair
from tensorgrad.runtime.native import native
from tensorgrad.storage import NumpyStorage

KERNELS = os.environ.get("TENSORGRAD_KERNELS", "")
pytestmark = [cpu_only, pytest.mark.skipif(native is None or KERNELS != "",
                                           reason="the compiled kernels are not there")]

UNARY = ("exp expm1 log log1p tanh sigmoid erf relu sqrt rsqrt negative absolute square reciprocal gelu gelu_tanh silu "
         "mish hardswish hardsigmoid log_sigmoid leaky_relu hardtanh elu celu softplus").split()
BINARY = "add subtract multiply divide maximum minimum tanh_gradient sigmoid_gradient relu_gradient".split()
REDUCTIONS = "sum mean variance deviation amax amin vector_norm".split()
AXES = [{"axis": 2}, {"axis": 1}, {"axis": 0}, {"axis": (0, 1)}, {"axis": (1, 2)}, {"axis": (0, 2)}, {"axis": None},
        {"axis": 1, "keepdims": True}]
MATRIX, CUBE, LONG = (132, 500), (6, 40, 30), (3, 70_000)
CONVOLUTIONS = [                                        # x, w, size of y, stride, padding, dilation, groups
    # pixels and outputs in more than one tile
    ((2, 20, 9, 31), (35, 20, 3, 3), (9, 31), (1, 1), (1, 1), (1, 1), 1),
    ((2, 70, 8, 8), (40, 70, 4, 4), (4, 4), (2, 2), (1, 1), (1, 1), 1),                 # inputs in more than one block
    ((17, 6, 5, 5), (9, 6, 3, 3), (5, 5), (1, 1), (1, 1), (1, 1), 1),                   # images side by side
    ((9, 40, 2, 2), (33, 40, 4, 4), (1, 1), (2, 2), (1, 1), (1, 1), 1),
    ((2, 3, 40, 70), (8, 3, 7, 7), (20, 35), (2, 2), (3, 3), (1, 1), 1),                # a gradient of few channels
    ((1, 18, 6, 40), (2, 18, 3, 5), (6, 36), (1, 1), (2, 2), (2, 2), 1),
    # a kernel as large as the picture
    ((8, 5, 33, 3), (4, 5, 33, 3), (1, 1), (1, 1), (0, 0), (1, 1), 1),
    # groups, and strides that leave pixels out
    ((2, 12, 11, 13), (18, 4, 3, 2), (3, 7), (3, 2), (1, 2), (2, 3), 3),
    ((5, 34, 7, 6), (19, 34, 1, 1), (7, 6), (1, 1), (0, 0), (1, 1), 1),                 # products
    ((9, 34, 7, 7), (19, 34, 1, 1), (4, 4), (2, 2), (0, 0), (1, 1), 1),
    ((2, 10, 50), (17, 10, 5), (25,), (2,), (2,), (1,), 1)]
nan, inf = float("nan"), float("inf")


def rows():
    """Every op with a compiled kernel, in the ways of the table and in shapes that are large enough for it."""
    for op in (*UNARY, *BINARY):
        for number, row in enumerate(SAMPLES[op]):
            if number < 2:
                yield op, row
            if all(hasattr(each, "draw") for each in row.inputs):
                yield op, row.reshaped(MATRIX)
    for op in BINARY[:4]:
        for a, b in ((MATRIX, (500,)), ((500,), MATRIX), (MATRIX, (132, 1)), ((1, 500), MATRIX), (MATRIX, ()),
                     (CUBE + (9,), (30, 9)), (MATRIX, (1, 1))):
            yield op, Sample(positive(*a), positive(*b))
    for op in ("softmax", "log_softmax"):
        for shape, axis in (((50, 33), 1), ((50, 33), 0), ((4, 70, 130), 1), ((3, 5000), 1), ((2, 7, 1), 2), ((9,), 0)):
            yield op, Sample(between(-20, 9, *shape), axis=axis)
    for reduction in ("none", "sum", "mean"):
        yield "cross_entropy", Sample(between(-9, 9, 60, 41), index(41, 60), None, reduction=reduction,
                                      ignore_index=-100)
        yield "cross_entropy", Sample(between(-9, 9, 60, 5), index(5, 60), fixed(5), reduction=reduction,
                                      ignore_index=3)
        yield "nll_loss", Sample(between(-9, 9, 60, 41), index(41, 60), None, reduction=reduction, ignore_index=-100)
        yield "nll_loss", Sample(between(-9, 9, 60, 5), index(5, 60), fixed(5), reduction=reduction, ignore_index=3)
        for shape in ((40, 30), (3, 41_000)):
            yield "mse_loss", Sample(real(*shape), real(*shape), reduction=reduction)
            yield "smooth_l1_loss", Sample(real(*shape), real(*shape), reduction=reduction, beta=0.7)
            yield "huber_loss", Sample(real(*shape), real(*shape), reduction=reduction, delta=0.7)
            yield "binary_cross_entropy", Sample(between(0.01, 0.99, *shape), between(0, 1, *shape), None,
                                                 reduction=reduction)
            yield "binary_cross_entropy_with_logits", Sample(between(-9, 9, *shape), between(0, 1, *shape), None, None,
                                                             reduction=reduction)
    for shape, axis in (((40, 130), 1), ((43, 130), 0), ((3, 3000), 1), ((5, 9, 70), 1), ((9,), 0)):
        yield "cumsum", Sample(real(*shape), axis=axis)
    for axis in (0, 1, 2):
        yield "take_axis", Sample(real(12, 15, 40), index(12, 20), axis=axis)
        yield "add_axis", Sample(real(20, 20, 20), index(13, 20), size=13, axis=axis)
        yield "border", Sample(real(12, 15, 40), index(12, 20), axis=axis)
        yield "upsample_nearest", Sample(real(12, 15, 40), index(12, 20), axis=axis)
    yield "region_max", Sample(real(6, 9, 20, 30), index(600, 4, 3, 7), ndim=2)
    yield "region_max", Sample(real(9, 40), index(40, 4, 12), ndim=1)
    for shape in ((40, 130), (3, 41_000)):
        yield "clamp", Sample(real(*shape), -0.5, 0.6)
        yield "clamp", Sample(real(*shape), None, 0.6)
        yield "clamp", Sample(real(*shape), 0.5, -0.5)
        yield "lerp", Sample(real(*shape), real(*shape), 0.2)
        yield "lerp", Sample(real(*shape), real(*shape), 0.7)
        yield "clone", Sample(real(*shape))
        yield "flip", Sample(real(*shape), axis=(1,))
    for w, b in ((real(60), real(60)), (real(60), None), (None, None)):
        yield "native_layer_norm", Sample(real(150, 60), w, b, ndim=1, eps=1e-5)
        yield "rms_norm", Sample(real(150, 60), w, ndim=1, eps=1e-5)
        w, b = (each and real(12) for each in (w, b))
        yield "native_group_norm", Sample(real(5, 12, 7, 6), w, b, groups=3, eps=1e-5)
        for shape in ((5, 12, 7, 6), (130, 12), (2, 12, 1, 1)):
            yield "native_batch_norm", Sample(real(*shape), w, b, eps=1e-5)
            yield "affine_by_channel", Sample(real(*shape), w, b, real(12), positive(12), eps=1e-5)
    yield "native_layer_norm", Sample(real(4, 20, 30), real(20, 30), real(20, 30), ndim=2, eps=1e-3)
    yield "native_layer_norm", Sample(real(75, 1024), real(1024), None, ndim=1, eps=1e-5)
    yield "native_layer_norm", Sample(real(2, 9001), real(9001), real(9001), ndim=1, eps=1e-5)
    yield "native_batch_norm", Sample(real(70, 130), real(130), real(130), eps=1e-5)
    for op in REDUCTIONS:
        for params in AXES:
            yield op, Sample(positive(*CUBE), **params)
        for shape, axis in ((LONG, 1), (LONG, None), ((3000, 5), 0), ((600, 1100), 0)):
            yield op, Sample(positive(*shape), axis=axis)
    for op in ("argmax", "argmin", "max_dim", "min_dim"):
        for axis in (0, 1):
            yield op, Sample(real(40, 130), axis=axis)


    for x, w, y, stride, padding, dilation, groups in CONVOLUTIONS:
        ways = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        n, c, o = x[0], x[1], w[0]
        yield "convolution", Sample(real(*x), real(*w), real(o), **ways)
        yield "convolution_input", Sample(real(n, o, *y), real(*w), real(c), size=x[2:], **ways)
        yield "convolution_weight", Sample(real(n, o, *y), real(*x), size=w[2:], **ways)


def special():
    """Numbers that are none, infinite, or zero."""
    x = np.resize(np.array([nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 90.0, -90.0, 1e-40, 30.0, -3.0], "float32"), 1 << 16)
    for op in (op for op in UNARY if op != "absolute"):        # whose slope at NaN is PyTorch's, and not the formula's
        yield op, (x,), SAMPLES[op][0].params
    for op in BINARY[:6]:
        yield op, (x, np.repeat(x[:12], 6000)[:1 << 16]), {}
    lines = np.array([[nan, 1, 2], [inf, 1, 2], [-inf, 1, 2], [-inf, -inf, -inf], [-2000, 0, 1], [3e38, -3e38, 0]],
                     "float32")
    for op in ("softmax", "log_softmax"):
        yield op, (lines,), {"axis": 1}
        yield op, (lines,), {"axis": 0}
    for op in ("amax", "amin", "sum"):
        yield op, (np.tile(lines, (1, 400)),), {"axis": 1}
        yield op, (np.tile(lines, (1, 400)),), {"axis": 0}
    for op in ("argmax", "argmin"):
        yield op, (np.tile(lines, (1, 400)),), {"axis": 1}


def cases():
    """Name → (op, inputs, parameters)."""
    found = {}
    for op, row in rows():
        for dtype in ("float32", "float64"):
            inputs = row.draw(dtype)
            found[f"{len(found)}-{op}-{dtype}"] = op, inputs, row.params
        if op in UNARY and inputs[0].shape == MATRIX:
            found[f"{len(found)}-{op}-transposed"] = op, [np.ascontiguousarray(inputs[0].T).T], row.params
            found[f"{len(found)}-{op}-gaps"] = op, [np.repeat(inputs[0], 2, axis=1)[:, ::2]], row.params
    for op, inputs, params in special():
        found[f"{len(found)}-{op}-special"] = op, inputs, params
    return found


def computed(op, inputs, params):
    """The results, and the gradients of the inputs that have one."""
    with np.errstate(all="ignore"):
        tensors = [tensorgrad.from_numpy(x).requires_grad_(x.dtype.kind == "f"
                                                           and (OPS[op].differentiable or OPS[op].composite))
                   if isinstance(x, np.ndarray) else x for x in inputs]
        outs = OpDispatch.execute(op, *tensors, **params)
        outs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
        smooth = [out for out in outs if out.requires_grad]
        upstream = [tensorgrad.from_numpy(np.asarray(np.cos(np.arange(out.array.size)).reshape(out.shape) + 2,
                                                     out.array.dtype)) for out in smooth]
        learnt = [t for t in tensors if getattr(t, "requires_grad", False)]
        gradients = tensorgrad.autograd.grad(smooth, learnt, upstream, allow_unused=True) if smooth else ()
        return [out.detach().numpy() for out in outs] + [g.numpy() for g in gradients if g is not None]


def all_results():
    return {f"{name}/{i}": y for name, case in cases().items() for i, y in enumerate(computed(*case))}


@cache
def expected(folder):
    path = f"{folder}/formulas.npz"
    fresh_process(f"import sys; sys.path.insert(0, {str(COMMON)!r}); import numpy, tests.kernels.test_compiled_kernels "
                  f"as t; numpy.savez({path!r}, **t.all_results())", TENSORGRAD_KERNELS="reference")
    return np.load(path)


@pytest.fixture(scope="module")
def formulas(tmp_path_factory):
    return expected(tmp_path_factory.mktemp("formulas"))


NAMES = sorted(cases(), key=lambda name: int(name.split("-")[0])) if KERNELS == "" else []


@pytest.mark.parametrize("name", NAMES)
def test_as_the_formula_says(name, formulas, threads):
    op, inputs, params = cases_once()[name]
    copies = [x.copy() if isinstance(x, np.ndarray) else x for x in inputs]
    found = computed(op, inputs, params)
    for i, ours in enumerate(found):
        theirs = formulas[f"{name}/{i}"]
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
        scale = np.abs(theirs[np.isfinite(theirs)]).max(initial=1)
        double = ours.dtype == np.float64
        np.testing.assert_allclose(ours, theirs, rtol=1e-12 if double else 4e-6,
                                   atol=scale * (1e-13 if double else 1e-6))
    for x, before in zip(inputs, copies, strict=True):
        np.testing.assert_array_equal(x, before)
    for ours, again in zip(found, computed(op, inputs, params), strict=True):
        assert ours.tobytes() == again.tobytes()


@cache
def cases_once():
    return cases()


def test_every_one_of_them_is_registered():
    """The ops above run compiled code, and decline inputs that it does not serve."""
    for op in sorted({case[0] for case in cases_once().values()}):
        kernel = OPS[op].kernels.registered[NumpyStorage][-1]
        function = kernel.forward if isinstance(kernel, Pair) else kernel
        assert function.__module__.endswith("_compiled"), op


def test_halves_and_integers_go_the_old_way():
    for dtype in (tensorgrad.float16, tensorgrad.bfloat16):
        x = tensorgrad.linspace(-3, 3, 5000).to(dtype)
        for f in (tensorgrad.nn.functional.gelu, tensorgrad.tanh, lambda x: x.softmax(0), lambda x: x.sum(),
                  lambda x: x + x):
            assert f(x).dtype == dtype
    assert tensorgrad.arange(10_000).sum().item() == 49_995_000
    assert tensorgrad.arange(-5000, 5000).relu().dtype == tensorgrad.int64


@pytest.mark.parametrize("target", [5, -1])
def test_a_target_that_is_no_class(target):
    with pytest.raises(IndexError, match=f"Target {target} is out of bounds"):
        tensorgrad.nn.functional.cross_entropy(tensorgrad.zeros(3, 5), tensorgrad.tensor([0, target, 9]))


def test_long_sums_keep_their_digits():
    x = np.full(1 << 22, 0.1, "float32")
    exact = float(np.float32(0.1)) * x.size
    assert abs(float(tensorgrad.from_numpy(x).sum()) / exact - 1) < 2e-7
    assert abs(float(tensorgrad.from_numpy(x.reshape(-1, 16)).sum(0)[3]) / (exact / 16) - 1) < 1e-6
    assert float(tensorgrad.from_numpy(x + 1000).var()) < 1e-6


# products are rounded once, with the sum that they go into
FUSED = native is None or native.instructions != "baseline"
ULPS = {"exp": 1.1 if FUSED else 1.2, "expm1": 2.2, "log": 1.1, "log1p": 1.1, "tanh": 1.6,
        "sigmoid": 2.4 if FUSED else 2.7, "sqrt": 0.51, "rsqrt": 1.6}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", ULPS)
def test_units_in_the_last_place(op, dtype):
    """Errors over the whole range. The exact values come in extended precision, which not every machine has."""
    if np.finfo(np.longdouble).nmant < 60:
        pytest.skip("long double is no longer than double")
    rng = np.random.default_rng(5)
    low, high = (-87, 88) if dtype == "float32" else (-700, 709)
    x = np.concatenate([rng.uniform(low, high, 20_000), rng.uniform(-2, 2, 20_000),
                        rng.uniform(-1, 1, 9000) * 10.0 ** rng.uniform(-37, 0, 9000)]).astype(dtype)
    if op in ("log", "sqrt", "rsqrt", "log1p"):
        x = np.abs(x) * np.where(np.arange(x.size) % 3, 1, dtype == "float32" and 1e-38 or 1e-300).astype(dtype)
        x = x[x > 0]
    wide = x.astype(np.longdouble)
    with np.errstate(all="ignore"):
        exact = {"sigmoid": lambda x: 1 / (1 + np.exp(-x)), "rsqrt": lambda x: 1 / np.sqrt(x)}.get(op,
                                                                                                   getattr(np, op,
                                                                                                           None))(wide)
        # enough of them for every kernel
        found = getattr(tensorgrad, op)(tensorgrad.from_numpy(np.resize(x, 1 << 16))).numpy()[:x.size]
    normal = np.abs(exact) > np.finfo(dtype).tiny
    error = np.abs(found - exact)[normal] / np.spacing(np.abs(exact[normal]).astype(dtype))
    assert np.nan_to_num(error, nan=np.inf).max() <= ULPS[op]


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
