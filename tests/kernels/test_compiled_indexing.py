"""Compiled pooling, indexing, depthwise convolution, copies and random numbers, each against PyTorch or the NumPy
kernels.
"""
import subprocess
import sys

import numpy as np
import pytest

import tensorgrad as tg
from tensorgrad.runtime.native import native

pytestmark = pytest.mark.skipif(native is None, reason="there is no compiled code")
DTYPES = [np.float32, np.float64]


def draw(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def results(engine, function, arrays, dtype):
    """The result, or first result, and all gradients; two runs give the same."""
    def once():
        tensors = [engine.tensor(a.astype(dtype) if a.dtype.kind == "f" else a) for a in arrays]
        leaves = [t.requires_grad_() for t in tensors if t.is_floating_point()]
        out = function(engine, *tensors)
        outs = out if isinstance(out, tuple) else (out,)
        weights = engine.tensor(draw(*outs[0].shape, seed=1).astype(dtype))
        outs[0].backward(weights)
        return [t.detach().numpy() for t in outs] + [t.grad.numpy() for t in leaves if t.grad is not None]
    first, second = once(), once()
    for a, b in zip(first, second):
        np.testing.assert_array_equal(a, b)
    return first


def compare(function, arrays, dtype, rtol=None):
    torch = pytest.importorskip("torch")
    rtol = rtol or (2e-5 if dtype is np.float32 else 1e-12)
    for a, b in zip(results(tg, function, arrays, dtype), results(torch, function, arrays, dtype), strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)


# ── pooling ───────────────────────────────────────────────────────────────────────────────────────────────────────────

WINDOWS = [(2, 2, 0, 1, False), (3, 2, 1, 1, False), (3, 1, 1, 1, True), (2, 3, 1, 2, True),
           ((3, 2), (2, 1), (1, 0), 1, True), (5, 5, 2, 1, True),
           (3, 3, 1, 2, False), (1, 2, 0, 1, False)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_max_pooling(window, dtype):
    kernel, stride, padding, dilation, ceil_mode = window
    x = draw(2, 3, 13, 37)
    x.flat[::7] = x.flat[1]                       # equals: the first one counts
    x.flat[5] = x.flat[6] = np.nan
    x[0, 0, 3:9] = x[..., 0, :] = -np.inf
    for indices in (False, True):
        compare(lambda t, x, indices=indices: t.nn.functional.max_pool2d(x, kernel, stride, padding, dilation,
                                                                         ceil_mode, return_indices=indices), [x], dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("window", [w for w in WINDOWS if w[3] == 1], ids=str)
def test_average_pooling(window, dtype):
    kernel, stride, padding, _, ceil_mode = window
    for inside, divisor in ((True, None), (False, None), (True, 3)):
        how = kernel, stride, 1 if padding == 2 else padding, ceil_mode, inside, divisor
        compare(lambda t, x, how=how: t.nn.functional.avg_pool2d(x, *how), [draw(2, 3, 13, 37)], dtype)


@pytest.mark.parametrize("name, arguments",
                         [("max_pool1d", (3, 2, 1)), ("avg_pool1d", (4, 3, 1)), ("max_pool1d", (40,)),
                          ("avg_pool1d", (40,)),
                          ("adaptive_avg_pool1d", (8,)), ("adaptive_avg_pool1d", (7,)),
                          ("adaptive_max_pool1d", (7,))])
def test_pooling_in_one_dimension(name, arguments):
    compare(lambda t, x: getattr(t.nn.functional, name)(x, *arguments), [draw(4, 5, 40)], np.float32)


def test_pooling_of_what_does_not_lie_in_rows():
    compare(lambda t, x: t.nn.functional.max_pool2d(x.transpose(2, 3)[..., ::2], 2), [draw(2, 3, 12, 16)], np.float32)
    compare(lambda t, x: t.nn.functional.avg_pool2d(x.transpose(0, 1), 3, 1, 1), [draw(2, 3, 12, 16)], np.float32)


# ── indices ───────────────────────────────────────────────────────────────────────────────────────────────────────────

def spread(i, width):
    return i[:, None].expand(-1, width).contiguous()


PLACES = {
    "embedding": lambda t, x, v, i: t.nn.functional.embedding(i, x),
    "index_select": lambda t, x, v, i: x.index_select(0, i),
    "index_select along rows": lambda t, x, v, i: x.t().contiguous().index_select(1, i),
    "index": lambda t, x, v, i: x[i],
    "index from the end": lambda t, x, v, i: x[i - len(x)],
    "index of columns": lambda t, x, v, i: x.t()[:, i],
    "gather": lambda t, x, v, i: x.gather(0, spread(i, x.shape[1])),
    "gather along rows": lambda t, x, v, i: x.t().gather(1, spread(i, x.shape[1]).t()),
    "scatter_add": lambda t, x, v, i: x.scatter_add(0, spread(i, x.shape[1]), v),
    "scatter_add along rows": lambda t, x, v, i: x.t().scatter_add(1, spread(i, x.shape[1]).t(), v.t()),
    "index_add": lambda t, x, v, i: x.index_add(0, i, v),
    "index_put": lambda t, x, v, i: x.index_put((i,), v, accumulate=True),
    "take_along_dim": lambda t, x, v, i: t.take_along_dim(x, spread(i, x.shape[1]), 0),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", PLACES)
def test_places(name, dtype):
    for rows, count, width in ((50, 700, 8), (5, 600, 1), (1000, 40, 64), (3, 900, 33)):
        i = np.random.default_rng(2).integers(0, rows, count)
        compare(PLACES[name], [draw(rows, width), draw(count, width, seed=3), i], dtype,
                rtol=2e-4 if dtype is np.float32 else 1e-11)


@pytest.mark.parametrize("name", ["embedding", "index_select", "index", "gather", "scatter_add", "index_add"])
def test_an_index_out_of_range_is_an_error_and_nothing_changes(name):
    torch = pytest.importorskip("torch")
    x, v, i = draw(50, 16), draw(60, 16), np.arange(60)
    told = []
    for engine in (tg, torch):
        tensors = [engine.tensor(a) for a in (x, v, i)]
        with pytest.raises((IndexError, RuntimeError)) as error:
            PLACES[name](engine, *tensors)
        told.append((type(error.value), str(error.value).splitlines()[0]))
        assert all(np.array_equal(t.numpy(), a) for t, a in zip(tensors, (x, v, i)))
    assert told[0] == told[1]


def test_rows_of_integers_and_booleans():
    i = np.random.default_rng(0).integers(0, 30, 400)
    for x in (draw(30, 40) > 0, (draw(30, 40) * 100).astype(np.int64), (draw(30, 40) * 100).astype(np.int32),
              draw(30, 40).astype(np.complex64)):
        assert np.array_equal(tg.tensor(x)[tg.tensor(i)].numpy(), x[i])


# ── depthwise convolution ─────────────────────────────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kernel, stride, padding, dilation, shape", [
    (3, 1, 1, 1, (2, 6, 9, 33)), (3, 2, 1, 1, (2, 6, 17, 40)), ((5, 3), (1, 2), (2, 0), (1, 2), (1, 4, 20, 21)),
    (7, 3, 3, 1, (2, 4, 30, 30)), (1, 2, 0, 1, (2, 3, 7, 7)), (5, 1, 2, 1, (3, 8, 50)), (3, 2, 0, 2, (3, 8, 51))])
def test_depthwise_convolution(kernel, stride, padding, dilation, shape, dtype):
    n, c = len(shape) - 2, shape[1]
    w = draw(c, 1, *(kernel if isinstance(kernel, tuple) else (kernel,) * n), seed=4)
    for name, how in ((f"conv{n}d", (dilation, c)), (f"conv_transpose{n}d", (0, c, dilation))):
        compare(lambda t, x, w, b, name=name, how=how: getattr(t.nn.functional, name)(x, w, b, stride, padding, *how),
                [draw(*shape), w, draw(c)], dtype, rtol=2e-4 if dtype is np.float32 else 1e-11)


# ── copies ────────────────────────────────────────────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32, np.complex64, np.int16, np.bool_])
def test_copies_in_rows(dtype):
    choose = np.random.default_rng(0)
    for _ in range(20):
        shape = tuple(choose.integers(1, 14, choose.integers(2, 6)))
        shape = (*shape[:-1], -(-40_000 // int(np.prod(shape[:-1]))))
        x = (draw(*shape) * 100).astype(dtype)
        for view in (x.transpose(choose.permutation(len(shape))), x[..., ::2].swapaxes(0, -1), x[::-1].T):
            assert (np.array_equal(tg.from_numpy(view.copy("K")).contiguous().numpy(), view) if min(view.strides) > 0
                    else True)
            t = tg.tensor(x).permute(tuple(choose.permutation(len(shape)).tolist()))
            y = t.reshape(-1)
            assert y.is_contiguous() and np.array_equal(y.numpy(), t.numpy().ravel())


def test_halves():
    """All numbers of 16 bits, and floats around them: rounded to the nearest, halves to even."""
    torch = pytest.importorskip("torch")
    bits = np.arange(1 << 16, dtype=np.uint32)
    floats = np.concatenate([bits << 16, (bits << 16) + 0x8000, (bits << 16) + 0x8001, bits << 13,
                             (bits << 13) + 0x1000 + 0x38000000,
                             (bits << 9) + 0x38000000]).view(np.float32)
    for half, theirs in ((tg.float16, torch.float16), (tg.bfloat16, torch.bfloat16)):
        narrow = torch.tensor(bits.astype(np.uint16).view(np.int16)).view(theirs)
        wide = narrow.float()
        ours = tg.tensor(wide.numpy()).to(half)
        assert np.array_equal(ours.float().numpy(), wide.numpy(), equal_nan=True)
        assert np.array_equal(tg.tensor(floats).to(half).float().numpy(),
                              torch.tensor(floats).to(theirs).float().numpy(), equal_nan=True)
        x = tg.tensor(floats[:1000]).requires_grad_()
        (x.to(half) * 2).sum().backward()
        assert x.grad.dtype is tg.float32 and tg.equal(x.grad, tg.full((1000,), 2.0))


@pytest.mark.parametrize("dtype", DTYPES)
def test_joined_and_turned(dtype):
    x, y = draw(40, 3, 130), draw(40, 3, 130, seed=2)
    for axis in (0, 1, -1):
        compare(lambda t, x, y, axis=axis: t.cat([x, y[:, :2], y][::1 if axis == 1 else 2], axis), [x, y], dtype)
        compare(lambda t, x, y, axis=axis: t.stack([x, y.flip(-1)], axis), [x, y], dtype)
        compare(lambda t, x, y, axis=axis: t.cat([x.transpose(0, 2), y.transpose(0, 2)], axis).flip(axis), [x, y],
                dtype)
    compare(lambda t, x, y: t.cat([x.reshape(-1), y.reshape(-1).expand(9, -1).reshape(-1)]), [x, draw(7000)], dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_columns_in_bands(dtype):
    """More rows than stay in the cache."""
    index = np.random.default_rng(3).integers(0, 5000, (300, 90))
    compare(lambda t, x, i: x.gather(0, i), [draw(5000, 90), index], dtype)
    compare(lambda t, x, v, i: x.scatter_add(0, i, v), [draw(5000, 90), draw(300, 90), index], dtype)


def test_copies_of_expanded_and_sliced_tensors():
    x = tg.arange(300.).reshape(3, 100)
    wide = x[:, None].expand(-1, 200, -1)
    assert np.array_equal(wide.contiguous().numpy(), np.broadcast_to(x.numpy()[:, None], (3, 200, 100)))
    y = tg.arange(100_000.).reshape(100, 1000)[::2, 1:].t()
    assert np.array_equal(y.reshape(999 * 50).numpy(), y.numpy().ravel())
    assert y.reshape(27, 37, 50).data_ptr() == y.data_ptr()        # a view where one can be


# ── random numbers ────────────────────────────────────────────────────────────────────────────────────────────────────

def stream(compiled):
    generator = tg.Generator().manual_seed(5)
    out = []
    for n in (1, 16, 17, 100, 1000, 2047, 2048, 2049, 5003, 20_001):
        for dtype in DTYPES:
            if not compiled:
                generator._twister = False
            out += [generator.uniform(n, dtype=dtype), generator.normal(n, dtype=dtype),
                    generator.normal((n,), 2., 3., dtype=dtype), generator.bernoulli(0.3, n, dtype=dtype),
                    generator.dropout(n, 0.1, dtype=dtype),
                    generator.exponential(n, 1.7, dtype=dtype)]
        out += [generator.randint(0, 10, n), generator.randint(-5, 1 << 40, n), generator.randperm(n),
                generator.normal(3), generator._state()]
    return out


def test_random_numbers_are_those_of_the_numpy_code():
    for a, b in zip(stream(True), stream(False), strict=True):
        np.testing.assert_array_equal(a, b)


def test_random_numbers_are_pytorchs_and_so_is_the_state():
    torch = pytest.importorskip("torch")
    for n in (16, 100, 10_003):
        torch.manual_seed(n)
        tg.manual_seed(n)
        for draws in (lambda t, n: t.rand(n), lambda t, n: t.randn(n), lambda t, n: t.rand(n, dtype=t.float64),
                      lambda t, n: t.randn(n, dtype=t.float64), lambda t, n: t.randint(0, 1000, (n,)),
                      lambda t, n: t.randperm(n),
                      lambda t, n: t.empty(n).normal_(1, 3), lambda t, n: t.get_rng_state()):
            np.testing.assert_array_equal(draws(tg, n).numpy(), draws(torch, n).numpy())


def test_a_state_taken_between_draws_goes_on_alike():
    generator = tg.Generator().manual_seed(1)
    generator.uniform(1000)
    state = generator.get_state()
    first = generator.normal(999), generator.randperm(500)
    generator.set_state(state)
    second = generator.normal(999), generator.randperm(500)
    other = tg.Generator()
    other.set_state(state)
    other._twister = False
    third = other.normal(999), other.randperm(500)
    for a, b, c in zip(first, second, third):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)


def test_results_do_not_depend_on_threads():
    code = """
import sys, numpy as np, tensorgrad as t
t.set_num_threads(int(sys.argv[1]))
t.manual_seed(0)
x, i, v = t.randn(500, 300, requires_grad=True), t.randint(0, 500, (4000,)), t.randn(4000, 300)
images, w = t.randn(8, 32, 40, 40, requires_grad=True), t.randn(32, 1, 3, 3, requires_grad=True)
F = t.nn.functional
outs = [F.embedding(i, x), x.index_add(0, i, v), F.max_pool2d(images, 3, 2, 1), F.avg_pool2d(images, 3, 1, 1), F.conv2d(images, w, None, 1, 1, 1, 32),
        images.permute(0, 2, 3, 1).contiguous()]
sum((o * t.randn(o.shape)).sum() for o in outs).backward()
found = (*outs, x.grad, images.grad, w.grad) if t.backends.compiled.is_enabled() else (*outs, x.grad, images.grad)      # threads on NumPy add up their own
print([float(np.abs(a.detach().numpy().astype(np.float64)).sum()).hex() for a in found])
"""  # noqa: E501
    one, two = (subprocess.run([sys.executable, "-c", code, n], capture_output=True, text=True, check=True).stdout
                for n in "12")
    assert one == two
