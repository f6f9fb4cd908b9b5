"""Every op of the table, on its samples: values, first and second gradients, dtypes, memory. See samples.py."""
import gc
from math import prod

import numpy as np
import pytest
from samples import SAMPLES
from sampling import Values
from support import DEVICE, cpu_only

import tensorgrad
from tensorgrad import const
from tensorgrad.autograd import backward, grad
from tensorgrad.core.dispatch import apply, wrap
from tensorgrad.ops.base import OPS, input_name
from tensorgrad.runtime.small_floats import convert
from tensorgrad.storage.base import Storage
from tensorgrad.storage.simulated import SimulatedArray, fetch, module_of, send

CASES = [(OPS[name], sample, f"{name}{sample}") for name, rows in SAMPLES.items() for sample in rows if name in OPS]


def learns(op):
    return op.differentiable or op.composite


def cases(*checks, where=lambda op, sample: True):
    """Run a test on the samples to which its checks apply."""
    chosen = [pytest.param(op, sample, id=label) for op, sample, label in CASES
              if not set(checks) & sample.skipped and where(op, sample)]
    return pytest.mark.parametrize(("op", "sample"), chosen)


class Bare(Storage):
    """Arrays that refuse to mix with host arrays, on which no op has a kernel: each runs from its formula."""

    module, array_type, host = module_of(0), SimulatedArray, staticmethod(fetch)

    @classmethod
    def asarray(cls, data, dtype=None):
        if isinstance(data, SimulatedArray):
            return data if dtype is None else data.astype(dtype, copy=False)
        return send(np.asarray(data, dtype), 0)

    @classmethod
    def aliases(cls, a, b):
        return Storage.aliases.__func__(cls, a.values, b.values)


# ── one application of an op ──────────────────────────────────────────────────────────────────────────────────────────


def is_array(value):
    return isinstance(value, np.ndarray)


def on_test_device(array):
    return tensorgrad.tensor(array, device=DEVICE)


def on_bare_device(array):
    return wrap(Bare.asarray(array), Bare())


def run(op, sample, inputs):
    """The results, as a list."""
    inputs = sample.prepared(inputs)
    results = apply(op, inputs, **sample.params) if op.sequence else apply(op, *inputs, **sample.params)
    results = list(results) if op.several else [results]
    return [out if out.layout is tensorgrad.strided else out.to_dense() for out in results]


def host(tensor):
    tensor = tensor.detach() if tensor.layout is tensorgrad.strided else tensor.detach().to_dense()
    return type(tensor._storage).host(tensor.array)


def learnt(op, sample):
    """The positions of the inputs that a gradient flows to."""
    return [i for i, each in enumerate(sample.inputs) if isinstance(each, Values) and each.kind in "fc" and each.learnt
            and (op.composite or hasattr(op, f"grad_{input_name(op, i)}"))] if learns(op) else []


def is_wavy(array):
    return array.dtype.kind in "fcV"


def unequal(array):
    """An upstream gradient: numbers of both signs, no two alike."""
    count = np.arange(array.size, dtype="float64").reshape(array.shape)
    wave = 1.3 * np.cos(1.7 * count + 0.4) + 0.1
    return convert(np.asarray(wave + 1j * np.sin(count + 0.3) if array.dtype.kind == "c" else wave), array.dtype)


def pulled(op, sample, arrays, put=on_test_device, upstream=None, create_graph=False, tangible=None):
    """Results and gradients of one application: (outputs, upstream gradients, {position: gradient}, the inputs and
    upstreams as tensors).
    """
    positions = learnt(op, sample)
    inputs = [put(a) if is_array(a) else a for a in arrays]
    for i in positions:
        inputs[i].requires_grad_()
    outputs = run(op, sample, inputs)
    roots = [out for out in outputs if out.requires_grad]
    upstream = [unequal(host(out)) for out in roots] if upstream is None else upstream
    seeds = [put(g).requires_grad_(create_graph) for g in upstream]
    found = (grad(roots, [inputs[i] for i in positions], seeds, create_graph=create_graph, allow_unused=True) if roots
             else [None] * len(positions))
    return outputs, upstream, dict(zip(positions, found, strict=True)), [inputs[i] for i in positions] + seeds


def first_gradients(op, sample, arrays, upstream):
    found = pulled(op, sample, arrays, upstream=upstream)[2]
    return [np.zeros_like(arrays[i]) if g is None else host(g) for i, g in found.items()]


def dot(a, b):
    """The real inner product: what a gradient and a direction make of each other."""
    return float(np.sum(np.real(np.conj(a) * b)))


def loss(op, sample, arrays, upstream):
    with tensorgrad.no_grad():
        outputs = [host(out) for out in run(op, sample, [on_test_device(a) if is_array(a) else a for a in arrays])]
    return sum(dot(g, out) for g, out in zip(upstream, filter(is_wavy, outputs), strict=True))


def slope(function, arrays, place, direction, step=1e-4):
    """The derivative of function(arrays) as arrays[place] moves: central differences of fourth order."""
    def at(t):
        return function([*arrays[:place], np.asarray(arrays[place] + t * direction), *arrays[place + 1:]])
    return (8 * (at(step) - at(-step)) - (at(2 * step) - at(-2 * step))) / (12 * step)


def some_direction(array, rng):
    wave = rng.uniform(-1, 1, array.shape)
    return wave + 1j * rng.uniform(-1, 1, array.shape) if array.dtype.kind == "c" else wave


def agrees(found, expected, what):
    assert abs(found - expected) <= 1e-7 + 2e-6 * abs(expected), f"{what}: {found}, by central differences {expected}"


# ── the table ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_op_has_samples():
    assert set(SAMPLES) == set(OPS)


def test_every_op_is_explained_and_named():
    assert not [name for name, op in OPS.items() if not op.__dict__.get("__doc__")]
    members = {member.value for member in const.OP}
    assert members == set(OPS)


# ── values and gradients ──────────────────────────────────────────────────────────────────────────────────────────────


@cases()
def test_forward(op, sample):
    inputs = [on_test_device(a) if is_array(a) else a for a in sample.draw()]
    for out in run(op, sample, inputs):
        assert np.isfinite(host(out)).all()
        assert type(out.array) is type(out._storage).array_type


def check_gradient(op, sample, dtype):
    arrays = sample.draw(dtype)
    _, upstream, found, _ = pulled(op, sample, arrays)
    rng = np.random.default_rng(5)
    for i, g in found.items():
        g = np.zeros_like(arrays[i]) if g is None else host(g)
        assert g.shape == arrays[i].shape and g.dtype == arrays[i].dtype
        direction = some_direction(arrays[i], rng)
        expected = slope(lambda moved: loss(op, sample, moved, upstream), arrays, i, direction)
        agrees(dot(g, direction), expected, f"gradient of {input_name(op, i)}")


def check_second(op, sample, dtype):
    """Gradients of Σ u · gradient, for numbers u, with respect to inputs and upstream gradients."""
    arrays = sample.draw(dtype)
    _, upstream, found, moving = pulled(op, sample, arrays, create_graph=True)
    first = [g for g in found.values() if g is not None and g.requires_grad]
    weights = {i: 0.7 * unequal(arrays[i]) for i in found}
    used = [weights[i] for i, g in found.items() if g is not None and g.requires_grad]
    second = (grad(first, moving, [on_test_device(u) for u in used], allow_unused=True) if first
              else [None] * len(moving))
    positions, points = list(found), [*(arrays[i] for i in found), *upstream]

    def weighted(moved):
        changed = dict(zip(positions, moved, strict=False))
        gradients = first_gradients(op, sample, [changed.get(i, a) for i, a in enumerate(arrays)],
                                    moved[len(positions):])
        return sum(dot(weights[i], g) for i, g in zip(positions, gradients, strict=True))

    rng = np.random.default_rng(6)
    for place, g in enumerate(second):
        direction = some_direction(points[place], rng)
        expected = slope(weighted, points, place, direction)
        name = input_name(op, positions[place]) if place < len(positions) else "the upstream gradient"
        agrees(0.0 if g is None else dot(host(g), direction), expected, f"second gradient of {name}")


def takes_floats(sample):
    """Return True if there are inputs whose dtype the test chooses."""
    return any(isinstance(each, Values) and each.kind == "f" for each in sample.inputs)


def is_complex_function(op, sample):
    return bool(learnt(op, sample)) and "c" in op.kinds and takes_floats(sample)


@cases("gradient", where=learnt)
def test_gradient(op, sample):
    check_gradient(op, sample, "float64")


@cases("gradient", "second", where=learnt)
def test_second_gradient(op, sample):
    check_second(op, sample, "float64")


@cases("gradient", "complex", where=is_complex_function)
def test_complex_gradient(op, sample):
    check_gradient(op, sample, "complex128")


@cases("gradient", "second", "complex", where=is_complex_function)
def test_complex_second_gradient(op, sample):
    check_second(op, sample, "complex128")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@cases("device")
def test_formula_agrees_with_kernel(op, sample, dtype):
    """The op with whatever kernel it has, beside the bare formula on a device that has none."""
    compare_with_formula(op, sample, dtype)


@pytest.mark.parametrize(("op", "sample"),
                         [pytest.param(OPS[name], rows[0].reshaped((3, 30_001)), id=name)
                          for name, rows in SAMPLES.items()
                          if OPS[name].elementwise and OPS[name].kernels.registered])
def test_formula_agrees_with_kernel_of_many_elements(op, sample):
    """Kernels may go through large arrays in another way."""
    compare_with_formula(op, sample, "float32")


def compare_with_formula(op, sample, dtype):
    arrays = sample.draw(dtype)
    tolerance = 1e-11 if dtype == "float64" else 3e-5
    outputs, upstream, found, _ = pulled(op, sample, arrays)
    bare_outputs, _, bare_found, _ = pulled(op, sample, arrays, on_bare_device, upstream)
    for out, bare in zip([*outputs, *found.values()], [*bare_outputs, *bare_found.values()], strict=True):
        assert (out is None) is (bare is None)
        if out is not None:
            assert out.dtype is bare.dtype
            np.testing.assert_allclose(host(out), host(bare), rtol=tolerance, atol=tolerance)


# ── dtypes and layouts ────────────────────────────────────────────────────────────────────────────────────────────────

PRECISION = {"float32": 2e-5, "float16": 1e-2, "bfloat16": 6e-2}


@cases("dtype", where=lambda op, sample: takes_floats(sample))
def test_float32(op, sample):
    check_dtype(op, sample, tensorgrad.float32)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@cases("dtype", "half", where=lambda op, sample: takes_floats(sample))
def test_half_precision(op, sample, dtype):
    check_dtype(op, sample, getattr(tensorgrad, dtype))


def check_dtype(op, sample, dtype):
    """Results and gradients have the dtype of the inputs, and are as near to the exact ones as it allows."""
    arrays = [convert(a, dtype.numpy) if is_array(a) and is_wavy(a) else a for a in sample.draw()]
    exact = [convert(a, "float64") if is_array(a) and is_wavy(a) else a for a in arrays]
    outputs, upstream, found, _ = pulled(op, sample, arrays)
    exact_outputs, _, exact_found, _ = pulled(op, sample, exact, upstream=[convert(g, "float64") for g in upstream])
    for value, reference in zip([*outputs, *found.values()], [*exact_outputs, *exact_found.values()], strict=True):
        assert (value is None) is (reference is None)
        if value is not None and is_wavy(value.array):
            assert value.dtype is dtype
            reference, value = host(reference), convert(host(value), "float64")
            size = max(1.0, np.abs(reference).max(initial=0.0))
            np.testing.assert_allclose(value, reference, rtol=0, atol=PRECISION[dtype.name] * size)


def stretched(array):
    """Return the values with gaps between them, and the axes in reverse memory order."""
    if not is_array(array) or not array.ndim:
        return array
    wide = np.repeat(array.T.copy(), 2, axis=0)[::2].T
    assert array.size < 2 or wide.base is not None
    return wide


@cpu_only
@cases("strided", where=lambda op, sample: any(isinstance(each, Values) and len(each.shape) for each in sample.inputs))
def test_strided(op, sample):
    arrays = sample.draw()
    outputs, upstream, found, _ = pulled(op, sample, arrays)
    others, _, other_found, _ = pulled(op, sample, [stretched(a) for a in arrays], tensorgrad.from_numpy, upstream)
    for one, other in zip([*outputs, *found.values()], [*others, *other_found.values()], strict=True):
        if one is not None:
            np.testing.assert_allclose(host(one), host(other), rtol=1e-12, atol=1e-12)


ELEMENTWISE = [pytest.param(OPS[name], rows[0], id=name) for name, rows in SAMPLES.items()
               if name in OPS and OPS[name].elementwise]


@pytest.mark.parametrize("shape", [(), (0, 3)], ids=str)
@pytest.mark.parametrize(("op", "sample"), ELEMENTWISE)
def test_elementwise_shapes(op, sample, shape):
    """Single elements and empty arrays are arrays like others."""
    usual = pulled(op, sample, sample.draw())[0]
    outputs, _, found, _ = pulled(op, sample.reshaped(shape), sample.reshaped(shape).draw())
    for out, like in zip(outputs, usual, strict=True):
        assert out.shape == shape and out.dtype is like.dtype and type(out.array) is type(out._storage).array_type
    assert all(g is None or g.shape == shape for g in found.values())


# ── memory ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def frozen():
    """Only what a test makes is looked through for cycles."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@cpu_only
@cases("memory")
def test_memory(op, sample, frozen):
    """Inputs and upstream gradients stay as they are; .grad owns writable memory; nothing is left behind."""
    check_memory(op, sample)          # fills the caches
    gc.collect()
    gc.disable()
    try:
        check_memory(op, sample)
        assert gc.collect() == 0, "a reference cycle was left"
    finally:
        gc.enable()


def check_memory(op, sample):
    arrays = sample.draw()
    inputs = [tensorgrad.from_numpy(a) if is_array(a) else a for a in arrays]
    leaves = [inputs[i].requires_grad_() for i in learnt(op, sample)]
    outputs = run(op, sample, inputs)
    if not op.view:
        assert not any(np.shares_memory(out.array, a) for out in outputs for a in arrays if is_array(a))
    roots = [out for out in outputs if out.requires_grad]
    seeds = [unequal(host(out)) for out in roots]
    if roots:
        backward(roots, [tensorgrad.from_numpy(g) for g in seeds])
    for array, before in zip(arrays, sample.draw(), strict=True):
        if is_array(array):
            np.testing.assert_array_equal(array, before)
    for g, out in zip(seeds, roots, strict=True):
        np.testing.assert_array_equal(g, unequal(host(out)))
    gradients = [leaf.grad.array for leaf in leaves if leaf.grad is not None]
    others = [a for a in [*arrays, *seeds, *(out.array for out in outputs)] if is_array(a)]
    for i, g in enumerate(gradients):
        assert g.flags.writeable
        assert not any(np.shares_memory(g, other) for other in [*gradients[:i], *others])


def test_ctc_gradient_through_log_softmax():
    """PyTorch's gradient of ctc_loss is the true one where its input is a log_softmax."""
    sample = SAMPLES["ctc_loss"][0]
    x, *rest = sample.draw()
    inputs = [on_test_device(a) for a in rest]

    def value(x):
        return run(OPS["ctc_loss"], sample, [x.log_softmax(2), *inputs])[0]
    g = unequal(np.empty(2))
    point = on_test_device(x).requires_grad_()
    found = grad(value(point), point, on_test_device(g))[0]
    direction = some_direction(x, np.random.default_rng(7))
    expected = slope(lambda moved: dot(g, host(value(on_test_device(moved[0])))), [x], 0, direction)
    agrees(dot(host(found), direction), expected, "gradient")
    assert prod(found.shape) == x.size
