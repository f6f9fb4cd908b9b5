"""Convolution with fewer products: the same numbers as those of the formulas, whatever the shapes, blocks and threads; infinity where it belongs."""
from contextlib import ExitStack

import numpy as np
import pytest
from support import cpu_only

import tensorgrad as tg
from tensorgrad.core.dispatch import OpDispatch
from tensorgrad.kernels import convolution_numpy, products_numpy, winograd_numpy
from tensorgrad.ops.convolution import Convolution, ConvolutionInput, ConvolutionWeight
from tensorgrad.ops.windows import output_length
from tensorgrad.runtime import thread_pool
from tensorgrad.storage.cpu import NumpyStorage

pytestmark = cpu_only
xp = NumpyStorage.xp

CASES = [      # images, channels, size, kernel, results, stride, padding
    (3, 4, (9, 11), (3, 3), 5, (1, 1), (1, 1)),
    (2, 3, (8, 8), (3, 3), 2, (1, 1), (0, 0)),
    (1, 2, (7, 4), (3, 3), 3, (1, 1), (2, 2)),
    (2, 1, (1, 1), (3, 3), 1, (1, 1), (1, 1)),
    (2, 3, (2, 1), (3, 3), 4, (1, 1), (2, 1)),
    (2, 4, (8, 7), (3, 2), 5, (1, 1), (0, 1)),
    (2, 3, (3, 3), (2, 2), 2, (1, 1), (4, 5)),
    (2, 3, (8, 9), (4, 4), 5, (2, 2), (1, 1)),
    (9, 2, (4, 4), (4, 4), 3, (2, 2), (1, 1)),
    (2, 3, (7, 9), (4, 2), 5, (2, 1), (0, 0)),
    (2, 3, (8, 9), (6, 5), 2, (2, 2), (2, 1)),
    (2, 2, (11, 12), (5, 6), 2, (2, 3), (2, 0)),
    (1, 2, (9, 9), (6, 9), 4, (3, 3), (4, 5)),
    (2, 2, (2, 2), (6, 6), 3, (3, 3), (2, 2)),
    (1, 3, (32, 32), (3, 3), 2, (1, 1), (1, 1)),        # float64: channels a multiple of a page apart
]


@pytest.fixture(params=[1, 2])
def workers(request, monkeypatch, threads):
    """With one thread and products as a whole, and with two however little there is to do, and small products in pieces."""
    monkeypatch.setattr(products_numpy, "small_kernels", lambda: request.param == 2)
    if request.param == 2:
        monkeypatch.setattr(thread_pool, "WORTH", 1)
        monkeypatch.setattr(thread_pool, "can_start", lambda: True)
    return request.param


@pytest.fixture
def always(monkeypatch):
    """Points wherever there is a way, whether they pay or not."""
    monkeypatch.setattr(convolution_numpy, "ways", points_first)


RANKED = convolution_numpy.ways


def points_first(*arrays):
    return sorted(RANKED(*arrays), key="points".__ne__)


def drawn(case, dtype=np.float64):
    n, c, size, kernel, o, stride, padding = case
    rng = np.random.default_rng(0)
    shapes = (n, c, *size), (o, c, *kernel), (o,), (n, o, *output_length(size, kernel, stride, padding, (1, 1))), (c,)
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes], dict(stride=stride, padding=padding, dilation=(1, 1))


@pytest.mark.parametrize("block, piece, gathered", [(1, 2, 1), (300, 7, 40), (1 << 19, 1 << 11, 1 << 13)])
@pytest.mark.parametrize("case", CASES)
def test_results_are_those_of_the_formulas(monkeypatch, workers, block, piece, gathered, case):
    monkeypatch.setattr(winograd_numpy, "BLOCK", block)
    monkeypatch.setattr(winograd_numpy, "PIECE", piece)
    monkeypatch.setattr(winograd_numpy, "GATHERED", gathered)
    monkeypatch.setattr(winograd_numpy, "SCATTERED", gathered)
    monkeypatch.setattr(winograd_numpy, "scratch", thread_pool.Scratch())           # views of it depend on the pieces
    (x, w, b, g, bias), how = drawn(case)
    key = tuple(how.values())
    assert winograd_numpy.fits(w.shape[2:], key)
    for fill, first, second, offset, formula in (
            (winograd_numpy.correlate, x, w, b, Convolution.forward(xp, x, w, b, **how)),
            (winograd_numpy.correlate, x, w, None, Convolution.forward(xp, x, w, None, **how)),
            (winograd_numpy.back, g, w, bias, ConvolutionInput.forward(xp, g, w, bias, size=x.shape[2:], **how)),
            (winograd_numpy.back, g, w, None, ConvolutionInput.forward(xp, g, w, None, size=x.shape[2:], **how))):
        out = np.full(formula.shape, np.nan)
        assert fill(first, second, offset, out, key)
        np.testing.assert_allclose(out, formula, atol=1e-12)
    out = np.full(w.shape, np.nan)
    assert winograd_numpy.weight(g, x, out, key)
    np.testing.assert_allclose(out, ConvolutionWeight.forward(xp, g, x, size=w.shape[2:], **how), atol=1e-12)


@pytest.mark.parametrize("case", CASES[:1] + CASES[7:8])
def test_arrays_may_lie_anywhere(workers, case):
    (x, w, b, g, _), how = drawn(case)
    key = tuple(how.values())
    apart, turned, backward = np.repeat(x, 2, axis=3)[..., ::2], w.transpose(2, 0, 3, 1).copy().transpose(1, 3, 0, 2), g[:, :, ::-1].copy()[:, :, ::-1]
    y, gx, gw = (np.empty((*a.shape[:2], 2 * a.shape[2], a.shape[3]))[:, :, ::2] for a in (g, x, w))
    assert winograd_numpy.correlate(apart, turned, b, y, key) and winograd_numpy.back(backward, turned, None, gx, key)
    assert winograd_numpy.weight(backward, apart, gw, key)
    np.testing.assert_allclose(y, Convolution.forward(xp, x, w, b, **how), atol=1e-12)
    np.testing.assert_allclose(gx, ConvolutionInput.forward(xp, g, w, None, size=x.shape[2:], **how), atol=1e-12)
    np.testing.assert_allclose(gw, ConvolutionWeight.forward(xp, g, x, size=w.shape[2:], **how), atol=1e-12)


@pytest.mark.parametrize("kernel, stride", [(3, 1), (4, 2), (6, 2)])
def test_float32_is_as_close_as_pytorch_asks(always, kernel, stride):
    rng, how = np.random.default_rng(0), dict(stride=(stride, stride), padding=(1, 1), dilation=(1, 1))
    x, w = rng.standard_normal((4, 64, 14, 14)), rng.standard_normal((64, 64, kernel, kernel)) / np.sqrt(64 * kernel ** 2)
    y = Convolution.forward(xp, x, w, None, **how)
    g = rng.standard_normal(y.shape)
    scaled = g / np.sqrt(g[:, 0].size)                      # so that sums over images and places are of order one, too
    x32, w32, g32, scaled32 = (a.astype(np.float32) for a in (x, w, g, scaled))
    for ours, exact in ((convolution_numpy.convolution(x32, w32, None, **how), y),
                        (convolution_numpy.convolution_input(g32, w32, None, size=(14, 14), **how),
                         ConvolutionInput.forward(xp, g, w, None, size=(14, 14), **how)),
                        (convolution_numpy.convolution_weight(scaled32, x32, size=w.shape[2:], **how),
                         ConvolutionWeight.forward(xp, scaled, x, size=w.shape[2:], **how))):
        assert ours.dtype == np.float32
        np.testing.assert_allclose(ours, exact, rtol=1.3e-6, atol=1e-5)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38])
@pytest.mark.parametrize("where", ["x", "w"])
@pytest.mark.parametrize("kernel, stride", [(3, 1), (4, 2)])
def test_what_is_not_finite_spreads_no_further(always, workers, value, where, kernel, stride):
    rng, how = np.random.default_rng(0), dict(stride=(stride, stride), padding=(1, 1), dilation=(1, 1))
    x, w = rng.random((2, 3, 8, 8), np.float32) + 1, rng.random((4, 3, kernel, kernel), np.float32) + 1
    g = rng.random((2, 4, 8 // stride, 8 // stride), np.float32) + 1
    (x if where == "x" else w)[1, 2, 2, 1] = value
    with np.errstate(all="ignore"):
        for ours, formula in ((convolution_numpy.convolution(x, w, None, **how), Convolution.forward(xp, x, w, None, **how)),
                              (convolution_numpy.convolution_input(g, w, None, size=(8, 8), **how),
                               ConvolutionInput.forward(xp, g, w, None, size=(8, 8), **how)),
                              (convolution_numpy.convolution_weight(g, x, size=(kernel, kernel), **how),
                               ConvolutionWeight.forward(xp, g, x, size=(kernel, kernel), **how))):
            np.testing.assert_allclose(ours, formula, rtol=1e-5)


def test_callers_are_told_of_what_is_not_finite_without_a_warning(workers):
    (x, w, _, g, _), how = drawn(CASES[0])
    key = tuple(how.values())
    x[1, 2, 3, 4] = g[1, 2, 3, 4] = np.inf
    assert not winograd_numpy.correlate(x, w, None, np.empty_like(g), key)
    assert not winograd_numpy.back(g, w, None, np.empty_like(x), key)
    assert not winograd_numpy.weight(g, x, np.empty_like(w), key)


def test_a_result_depends_on_its_window_alone(workers):
    """Not even the rounding of a number ten million times as large reaches beyond."""
    x, w, how = np.ones((1, 1, 8, 8), np.float32), np.full((1, 1, 3, 3), 0.1, np.float32), ((1, 1), (0, 0), (1, 1))
    alone, beside = np.empty((2, 1, 1, 6, 6), np.float32)
    winograd_numpy.correlate(x, w, None, alone, how)
    x[0, 0, 3, 4] = 1e7
    winograd_numpy.correlate(x, w, None, beside, how)
    changed = np.zeros((6, 6), bool)
    changed[1:4, 2:5] = True
    assert (alone == beside)[0, 0][~changed].all() and (alone != beside)[0, 0][changed].all()


def test_the_same_from_run_to_run(always, workers):
    (x, w, b, g, _), how = drawn((16, 8, (14, 14), (3, 3), 8, (1, 1), (1, 1)), np.float32)
    runs = [(convolution_numpy.convolution(x, w, b, **how), convolution_numpy.convolution_weight(g, x, size=(3, 3), **how)) for _ in range(3)]
    assert all(np.array_equal(a, b) for other in runs[1:] for a, b in zip(runs[0], other, strict=True))


def test_memory_is_bounded(monkeypatch):
    memory, taken = thread_pool.Scratch(), {}
    take = memory.take
    monkeypatch.setattr(winograd_numpy, "BLOCK", 1 << 14)
    monkeypatch.setattr(winograd_numpy, "scratch", memory)
    monkeypatch.setattr(memory, "take", lambda name, shape, dtype: taken.setdefault(name, []).append(shape) or take(name, shape, dtype))
    x, w, y = np.ones((3, 4, 64, 64)), np.ones((4, 4, 3, 3)), np.empty((3, 4, 64, 64))
    assert winograd_numpy.correlate(x, w, None, y, ((1, 1), (1, 1), (1, 1)))
    assert max(np.prod(shape) for shapes in taken.values() for shape in shapes) < 1.3 * winograd_numpy.BLOCK
    assert len(winograd_numpy.Scheme((3, 3), ((1, 1), (1, 1), (1, 1))).blocks(3, (32, 32), 4, 1)) == 3 * 4


@pytest.mark.parametrize("kernel, stride, padding, dilation", [
    ((3,), (1,), (1,), (1,)), ((3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1)), ((1, 1), (1, 1), (0, 0), (1, 1)), ((1, 3), (1, 1), (0, 1), (1, 1)),
    ((3, 3), (1, 1), (2, 2), (2, 2)), ((5, 5), (1, 1), (2, 2), (1, 1)), ((2, 2), (2, 2), (0, 0), (1, 1))])
def test_other_kernels_go_another_way(kernel, stride, padding, dilation):
    assert not winograd_numpy.fits(kernel, (stride, padding, dilation))


@pytest.mark.parametrize("n, c, o, kernel, stride, size, way", [
    (32, 64, 64, 3, 1, 8, "points"), (8, 256, 256, 3, 1, 14, "points"), (16, 64, 128, 4, 2, 16, "points"), (1, 64, 64, 3, 1, 56, "points"),
    (4, 3, 16, 3, 1, 32, "rows"), (1, 512, 512, 3, 1, 7, "columns"), (1, 64, 64, 3, 1, 8, "columns"), (32, 256, 256, 3, 1, 2, "columns"),
    (32, 64, 128, 3, 2, 32, "columns"), (32, 64, 64, 3, 2, 16, "columns"), (32, 64, 64, 5, 1, 28, "rows"), (1, 64, 64, 5, 1, 14, "columns")])
def test_points_are_for_many_channels_at_many_places(n, c, o, kernel, stride, size, way):
    """The algorithm is chosen by the costs, which come from measurements of the three algorithms."""
    x, w, how = np.empty((n, c, size, size)), np.empty((o, c, kernel, kernel)), ((stride,) * 2, ((kernel - 1) // 2,) * 2, (1, 1))
    y = np.empty((n, o, *output_length((size, size), (kernel, kernel), *how)))
    assert convolution_numpy.ways("output", x, w, y, how)[0] == way


@pytest.mark.parametrize("of", ["output", "input", "weight"])
def test_each_way_is_left_to_what_it_can_do(of):
    """No points for strides that part a kernel into single places, no columns larger than a block."""
    for size, kernel, stride, expected in ((300, 3, 1, {"rows", "points"}), (8, 1, 2, {"rows", "columns"}), (8, 3, 1, {"rows", "columns", "points"})):
        x, w, how = np.empty((1, 64, size, size)), np.empty((64, 64, kernel, kernel)), ((stride,) * 2, (0, 0), (1, 1))
        y = np.empty((1, 64, *output_length((size, size), (kernel, kernel), *how)))
        assert set(convolution_numpy.ways(of, x, w, y, how)) == expected


@pytest.mark.parametrize("groups, batch", [(1, 1), (1, 3), (2, 2), (1, 0)])
def test_layers_come_to_the_same(monkeypatch, workers, groups, batch):
    """Values and gradients, also of transposed convolution, which takes the three ops in another order."""
    def results():
        tg.manual_seed(0)
        x = tg.randn(batch, 4, 7, 6, dtype=tg.float64, requires_grad=True)
        down = tg.nn.Conv2d(4, 6, 3, padding=1, groups=groups, dtype=tg.float64)
        up = tg.nn.ConvTranspose2d(6, 2, 4, stride=2, padding=1, output_padding=1, groups=groups, dtype=tg.float64)
        y = up(down(x))
        (y * y).sum().backward()
        return [t.detach().numpy() for t in (y, x.grad, *(p.grad for layer in (down, up) for p in layer.parameters()))]

    with ExitStack() as numpy_alone:
        for name in ("convolution", "convolution_input", "convolution_weight"):
            numpy_alone.enter_context(OpDispatch.override(name, "cpu", getattr(convolution_numpy, name)))
        monkeypatch.setattr(convolution_numpy, "ways", lambda *arrays: ("rows",))
        plain = results()
        monkeypatch.setattr(convolution_numpy, "ways", points_first)
        for ours, expected in zip(results(), plain, strict=True):
            np.testing.assert_allclose(ours, expected, atol=1e-11)
