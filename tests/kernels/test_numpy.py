"""Common properties of NumPy kernels: threads, partial blocks, and reused memory where there are no compiled
kernels.
"""
import os
import subprocess
import sys
import threading
from itertools import product

import numpy as np
import pytest
from support import cpu_only

import tensorgrad as tg
from tensorgrad.kernels import (
    attention_numpy,
    convolution_numpy,
    matrix_numpy,
    normalization_numpy,
    optimizer_numpy,
    pooling_numpy,
    windows_arrays,
)
from tensorgrad.ops.convolution import Convolution, ConvolutionInput, ConvolutionWeight
from tensorgrad.ops.normalization import NativeBatchNorm
from tensorgrad.runtime import thread_pool
from tensorgrad.storage.cpu import NumpyStorage

pytestmark = cpu_only
xp = NumpyStorage.xp


@pytest.fixture
def two_threads(monkeypatch, threads):
    monkeypatch.setattr(thread_pool, "WORTH", 1)
    monkeypatch.setattr(thread_pool, "can_start", lambda: True)


def test_parts_run_in_threads_of_their_own(two_threads):
    seen, together = {}, threading.Barrier(3, timeout=60)

    def task(part):
        seen[part] = threading.get_ident()
        together.wait()
    thread_pool.share(task, range(3))
    assert len(set(seen.values())) == 3 and seen[0] == threading.get_ident()


@pytest.mark.parametrize("fails", [0, 1])
def test_an_error_in_a_part_is_raised_once_all_are_done(two_threads, fails):
    done = []

    def task(part):
        if part == fails:
            raise ArithmeticError(f"part {part}")
        done.append(part)
    with pytest.raises(ArithmeticError, match=f"part {fails}"):
        thread_pool.share(task, range(2))
    assert done == [1 - fails]
    assert not thread_pool.state.busy


def test_threads_heed_what_numpy_was_told_about_overflow(two_threads):
    with np.errstate(over="ignore"):
        thread_pool.share(lambda part: np.exp(np.float32([1e9])), range(2))
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        thread_pool.share(lambda part: part and np.exp(np.float32([1e9])), range(2))


def test_a_part_is_not_shared_again(two_threads):
    found = []
    thread_pool.share(lambda part: found.append(thread_pool.available(1e9)), range(2))
    assert found == [1, 1] and thread_pool.available(1e9) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_children_start_threads_of_their_own():
    code = ("import os, numpy as np\nfrom tensorgrad.runtime import thread_pool as s\nout = np.zeros(2)\n"
            "def task(i): out[i] += 1\ns.share(task, range(2))\n"
            "if (child := os.fork()): assert os.waitpid(child, 0)[1] == 0\nelse: s.share(task, range(2)); os._exit(0 "
            "if out.tolist() == [2, 2] else 1)")
    assert not (done := run(code)).returncode, done.stderr


CASES = [      # images, channels, size, kernel, results, stride, padding, dilation
    (3, 4, (9, 11), (3, 3), 5, (1, 1), (1, 1), (1, 1)),
    (9, 4, (9, 7), (3, 2), 5, (2, 2), (1, 0), (1, 1)),
    (9, 2, (10, 5), (4, 4), 3, (2, 2), (1, 1), (1, 1)),
    (8, 2, (7, 9), (2, 3), 3, (3, 1), (2, 0), (2, 3)),
    (9, 3, (1, 1), (3, 3), 2, (1, 1), (1, 1), (1, 1)),
    (9, 3, (1, 1), (2, 2), 2, (3, 3), (3, 3), (1, 1)),
    (2, 3, (20,), (5,), 2, (2,), (3,), (2,)),
    (8, 2, (4, 5, 6), (2, 3, 2), 3, (1, 2, 1), (0, 1, 1), (1, 1, 2)),
]


@pytest.mark.parametrize("block", [1, 500, 1 << 19])
@pytest.mark.parametrize("wide", [1, 1 << 30])
@pytest.mark.parametrize("narrow", [0, 16])
@pytest.mark.parametrize("case", CASES)
def test_convolution_in_blocks_is_that_of_the_formulas(monkeypatch, two_threads, block, wide, narrow, case):
    n, c, size, kernel, o, stride, padding, dilation = case
    for name, number in (("BLOCK", block), ("WIDE", wide), ("NARROW", narrow)):
        monkeypatch.setattr(convolution_numpy, name, number)
    convolution_numpy.sizes_of.cache_clear()
    rng, how = np.random.default_rng(0), dict(stride=stride, padding=padding, dilation=dilation)
    x, w, b = rng.standard_normal((n, c, *size)), rng.standard_normal((o, c, *kernel)), rng.standard_normal(o)
    y = Convolution.forward(xp, x, w, b, **how)
    g, bias = rng.standard_normal(y.shape), rng.standard_normal(c)
    each = dict(how, groups=c)
    alone, some = w[:1, :1].repeat(c, 0), g[:, :1].repeat(c, 1)
    for ours, formula in ((convolution_numpy.convolution(x, w, b, **how), y),
                          (convolution_numpy.convolution(x, alone, bias, **each),
                           Convolution.forward(xp, x, alone, bias, **each)),
                          (convolution_numpy.convolution_input(some, alone, bias, size=size, **each),
                           ConvolutionInput.forward(xp, some, alone, bias, size=size, **each)),
                          (convolution_numpy.convolution_weight(some, x, size=kernel, **each),
                           ConvolutionWeight.forward(xp, some, x, size=kernel, **each)),
                          (convolution_numpy.convolution_input(g, w, bias, size=size, **how),
                           ConvolutionInput.forward(xp, g, w, bias, size=size, **how)),
                          (convolution_numpy.convolution_weight(g, x, size=kernel, **how),
                           ConvolutionWeight.forward(xp, g, x, size=kernel, **how))):
        np.testing.assert_allclose(ours, formula, atol=1e-12)


@pytest.mark.parametrize("x, kernel, o, stride, padding, dilation", [
    ((1, 32, 1, 16), (1, 5), 32, (2, 2), (1, 0), (1, 2)), ((17, 3, 14, 1), (3, 2), 32, (1, 3), (0, 2), (1, 1)),
    ((2, 8, 1, 3, 4), (1, 2, 5), 5, (2, 1, 1), (1, 1, 2), (1, 1, 1))])
def test_where_nothing_but_padding_is_seen(x, kernel, o, stride, padding, dilation):
    how, x = dict(stride=stride, padding=padding, dilation=dilation), np.ones(x)
    w = np.ones((o, x.shape[1], *kernel))
    y = convolution_numpy.convolution(x, w, np.ones(o), **how)
    assert (y == 1).all() and not convolution_numpy.convolution_input(y, w, None, size=x.shape[2:], **how).any()
    assert not convolution_numpy.convolution_weight(y, x, size=kernel, **how).any()


def test_arrays_of_a_convolution_may_have_any_strides():
    rng, how = np.random.default_rng(0), dict(stride=(2, 1), padding=(1, 0), dilation=(1, 1))
    for n in (3, 9):
        x, w = (rng.standard_normal((n, 10, 4, 9)).transpose(0, 2, 3, 1),
                rng.standard_normal((3, 5, 2, 4)).transpose(1, 3, 0, 2))
        y = Convolution.forward(xp, x, w, None, **how)
        g = rng.standard_normal(y.shape)[:, :, ::-1]
        np.testing.assert_allclose(convolution_numpy.convolution(x, w, None, **how), y, atol=1e-12)
        np.testing.assert_allclose(convolution_numpy.convolution_input(g, w, None, size=(9, 10), **how),
                                   ConvolutionInput.forward(xp, g, w, None, size=(9, 10), **how), atol=1e-12)
        np.testing.assert_allclose(convolution_numpy.convolution_weight(g, x, size=(3, 2), **how),
                                   ConvolutionWeight.forward(xp, g, x, size=(3, 2), **how), atol=1e-12)


def test_memory_of_a_convolution_is_bounded(monkeypatch):
    memory, taken = thread_pool.Scratch(), []
    take = memory.take
    monkeypatch.setattr(convolution_numpy, "BLOCK", 1 << 14)
    monkeypatch.setattr(convolution_numpy, "scratch", memory)
    monkeypatch.setattr(memory, "take", lambda name, shape, dtype: taken.append((name, np.prod(shape)))
                        or take(name, shape, dtype))
    x, w, how = np.ones((3, 4, 64, 64)), np.ones((4, 4, 3, 3)), dict(stride=(1, 1), padding=(1, 1), dilation=(1, 1))
    convolution_numpy.convolution(x, w, None, **how)
    convolution_numpy.convolution_weight(x, x, size=(3, 3), **how)
    assert max(size for _, size in taken) < 1.3 * (1 << 14)
    taken.clear()
    convolution_numpy.convolution_input(x, w, None, size=(64, 64), **how)
    assert max(size for name, size in taken if name == "columns") < 1.3 * (1 << 14)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@np.errstate(all="ignore")
def test_what_is_not_finite_in_a_kernel_is_not_seen_beyond_the_border(value):
    g, how = np.ones((2, 3, 8, 8)), dict(stride=(1, 1), padding=(1, 1), dilation=(1, 1), size=(8, 8))
    for channels, groups in ((3, 1), (1, 3)):               # depthwise as well
        w = np.ones((3, channels, 3, 3))
        w[2, channels - 1, 0, 1] = value
        ours = convolution_numpy.convolution_input(g, w, None, groups=groups, **how)
        np.testing.assert_array_equal(ours, ConvolutionInput.forward(xp, g, w, None, groups=groups, **how))
        assert np.isfinite(ours[:, 2, 7]).all() and not np.isfinite(ours[:, 2, :7]).any()


@pytest.mark.parametrize("groups", [1, 3])
def test_a_stride_beyond_the_input_takes_no_longer_than_one_that_just_leads_there(groups):
    def gradients(stride):
        x = (tg.arange(72.).reshape(1, 3, 4, 1, 6) / 7).requires_grad_()
        w = (tg.arange(24. * 3 // groups).reshape(3, 3 // groups, 2, 1, 4) / 5).requires_grad_()
        y = tg.nn.functional.conv3d(x, w, None, stride=stride, padding=2, dilation=2, groups=groups)
        return tg.autograd.grad(y.square().sum(), (x, w))
    with tg.backends.compiled.flags(enabled=False):
        for ours, theirs in zip(gradients(1 << 32), gradients((9, 6, 11)), strict=True):
            tg.testing.assert_close(ours, theirs)


@np.errstate(all="ignore")
def test_what_one_channel_sees_is_its_own():
    """Infinity in another channel is none of its business."""
    rng, how = np.random.default_rng(0), dict(stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=2)
    x, g = rng.standard_normal((1, 2, 6, 6)), rng.standard_normal((1, 2, 4, 4))
    x[0, 1] = np.inf
    assert np.isfinite(convolution_numpy.convolution(x, np.ones((2, 1, 3, 3)), None, **how)[:, 0]).all()
    assert np.isfinite(convolution_numpy.convolution_weight(g, x, size=(3, 3), **how)[0]).all()


@pytest.mark.parametrize("size, kernel, stride, widths", [
    ((6, 8), (2, 2), (2, 2), ((0, 0), (0, 0))),
    ((7, 9), (2, 2), (2, 2), ((0, 0), (0, 0))),
    ((7, 9), (3, 2), (3, 3), ((1, 0), (1, 1))),
    ((7, 9), (3, 3), (2, 1), ((1, 1), (1, 1))),
    ((9,), (4,), (2,), ((0, 2),)),
    ((5, 5), (5, 5), (5, 5), ((0, 0), (0, 0))),
    ((6, 32), (3, 5), (3, 5), ((0, 0), (0, 0))),
    ((6, 34), (3, 5), (3, 5), ((0, 0), (0, 0))),
])
def test_sums_of_windows_are_those_of_the_formulas(size, kernel, stride, widths):
    rng, how = np.random.default_rng(0), dict(kernel=kernel, stride=stride, widths=widths, scale=0.25)
    x = rng.standard_normal((3, 2, *size))
    y = windows_arrays.window_sum(np, x, **how)
    np.testing.assert_allclose(pooling_numpy.window_sum(x, **how), y, atol=1e-12)
    g = rng.standard_normal(y.shape)
    np.testing.assert_allclose(pooling_numpy.window_spread(g, size=size, **how),
                               windows_arrays.window_spread(np, g, size=size, **how), atol=1e-12)


@pytest.mark.parametrize("value", [np.inf, np.nan, 1e30])
def test_what_one_window_sees_is_its_own(value):
    x, how = np.ones((2, 3, 4, 6), np.float32), dict(kernel=(2, 2), stride=(2, 2), widths=((0, 0), (0, 0)))
    x[1, 1, 2, 3] = value
    y = pooling_numpy.window_sum(x, **how)
    np.testing.assert_array_equal(y, windows_arrays.window_sum(np, x, **how))
    np.testing.assert_array_equal(pooling_numpy.window_spread(y, size=(4, 6), **how),
                                  windows_arrays.window_spread(np, y, size=(4, 6), **how))


@pytest.mark.parametrize("block", [1, 60, 1 << 18])
@pytest.mark.parametrize("narrow", [1, 32])
@pytest.mark.parametrize("shape", [(4, 5, 3, 6), (7, 5)])
def test_channels_are_normalized_some_at_a_time_as_all_at_once(monkeypatch, two_threads, block, narrow, shape):
    monkeypatch.setattr(normalization_numpy, "BLOCK", block)
    monkeypatch.setattr(normalization_numpy, "NARROW", narrow)
    rng, kernel = np.random.default_rng(0), normalization_numpy.BatchNorm
    x, w, b = rng.standard_normal(shape), rng.standard_normal(5), rng.standard_normal(5)
    ours, residual = kernel.forward(x, w, b, eps=1e-5)
    formula = NativeBatchNorm.forward(np, x, w, b, eps=1e-5)
    for a, expected in zip(ours, formula, strict=True):
        np.testing.assert_allclose(a, expected, atol=1e-12)
    given = [rng.standard_normal(a.shape) for a in ours]
    for g in (given, [given[0], np.zeros(5), np.zeros(5)]):
        leaves = [tg.from_numpy(a.copy()).requires_grad_() for a in (x, w, b)]
        axes = (0, *range(2, len(shape)))
        mean, along = leaves[0].mean(axes), (-1, *(1,) * (len(shape) - 2))
        variance = leaves[0].var(axes, correction=0)
        out = ((leaves[0] - mean.reshape(along)) / (variance.reshape(along) + 1e-5).sqrt() * leaves[1].reshape(along)
               + leaves[2].reshape(along))
        tg.autograd.backward([out, mean, variance], [tg.from_numpy(a) for a in g])
        for a, leaf in zip(kernel.backward(g, residual, (True, True, True)), leaves, strict=True):
            np.testing.assert_allclose(a, leaf.grad.numpy(), atol=1e-11)
        assert [a is None for a in kernel.backward(g, residual, (False, True, False))] == [True, False, True]


def test_statistics_of_many_images_are_not_added_up_one_after_the_other():
    x = np.random.default_rng(0).standard_normal((1 << 16, 8), np.float32)
    (_, mean, variance), _ = normalization_numpy.BatchNorm.forward(x + 3, None, None, eps=1e-5)
    # one after the other they are 1.2e-5 off
    np.testing.assert_allclose(variance, (x + 3).var(axis=0, dtype=np.float64), rtol=8e-6)
    np.testing.assert_allclose(mean, (x + 3).mean(axis=0, dtype=np.float64), rtol=8e-6)


def test_planes_are_shared_on_the_way_back_from_maxima(monkeypatch, two_threads):
    rng, how = np.random.default_rng(0), dict(kernel=(3, 3), stride=(2, 2), widths=((1, 1), (1, 1)), dilation=(1, 1))
    x = rng.standard_normal((3, 4, 9, 8))
    y, residual = pooling_numpy.MaxPool.forward(x, **how)
    g = rng.standard_normal(y.shape)
    whole = pooling_numpy.MaxPool.backward(g, residual, (True,))[0]
    monkeypatch.setattr(pooling_numpy, "BLOCK", 100)
    np.testing.assert_array_equal(pooling_numpy.MaxPool.backward(g, residual, (True,))[0], whole)
    assert whole.sum() == pytest.approx(g.sum())


@pytest.mark.parametrize("stride, padding, dilation",
                         [((1, 1), (0, 0), (1, 1)), ((2, 1), (1, 0), (1, 1)), ((1, 2), (2, 1), (1, 2))])
def test_windows_are_those_of_the_formula(stride, padding, dilation):
    x, how = (np.random.default_rng(0).standard_normal((2, 3, 6, 7)),
              dict(kernel=(2, 3), stride=stride, padding=padding, dilation=dilation))
    ours = convolution_numpy.windows(x, **how)
    np.testing.assert_array_equal(ours, windows_arrays.columns(np, x, **how))
    assert ours.flags.c_contiguous and ours.base is None


def test_windows_of_an_axis_without_length_do_not_ask_for_its_step():
    x = np.random.default_rng(0).standard_normal((3, 7, 8))[:, None]
    assert x.strides[1] == 0
    how = dict(kernel=(2, 3), stride=(1, 2), padding=(0, 0), dilation=(2, 1))
    np.testing.assert_array_equal(convolution_numpy.windows(x, **how), windows_arrays.columns(np, x.copy(), **how))
    np.testing.assert_array_equal(tg.nn.functional.unfold(tg.from_numpy(x), (2, 3)),
                                  tg.nn.functional.unfold(tg.from_numpy(x.copy()), (2, 3)))


@pytest.mark.parametrize("name, numbers", [
    ("sgd", dict(lr=0.1, momentum=0.9, dampening=0.0, weight_decay=0.01, nesterov=True)),
    ("sgd", dict(lr=0.1, momentum=0.9, dampening=0.5, weight_decay=0.0, nesterov=False)),
    ("adam", dict(lr=0.1, beta1=0.9, beta2=0.99, eps=1e-8, weight_decay=0.01, decoupled=False)),
    ("adam", dict(lr=0.1, beta1=0.9, beta2=0.99, eps=1e-8, weight_decay=0.01, decoupled=True))])
def test_updates_in_blocks_are_those_of_one(monkeypatch, two_threads, name, numbers):
    rng, update = np.random.default_rng(0), getattr(optimizer_numpy, name)
    arrays = [rng.random(1001) for _ in range(5 if name == "adam" else 3)]
    if name == "adam":
        arrays.insert(4, np.array(3.0))         # the number of steps
    others, apart = [a.copy() for a in arrays], [a[::2] if a.ndim else a.copy() for a in arrays]
    monkeypatch.setattr(optimizer_numpy, "BLOCK", 1 << 20)
    assert update([arrays], **numbers) == []
    monkeypatch.setattr(optimizer_numpy, "BLOCK", 100)
    assert update([apart, others], **numbers) == [0]
    for a, b in zip(arrays, others, strict=True):
        np.testing.assert_array_equal(a, b)
    assert name == "sgd" or (arrays[4], apart[4]) == (4, 3)


def test_blocks_with_one_thread_for_blas_may_overlap(threads):
    single, seen = tg.runtime.threads.single_blas, []
    with single:
        with single:
            pass
        seen.append((tg.runtime.threads.open_blas().get(), tg.get_num_threads()) if tg.runtime.threads.open_blas()
                    else (1, 2))
        tg.set_num_threads(2)
    assert seen == [(1, 2)] and not single.blocks and tg.get_num_threads() == 2


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("rows", [0, 1, 2, 3, 4, 32, 56, 57])
def test_few_rows_times_a_large_matrix(rows, dtype):
    rng = np.random.default_rng(0)
    a, w = rng.standard_normal((rows, 130)).astype(dtype), rng.standard_normal((70, 130)).astype(dtype)
    for b in (w.T, np.ascontiguousarray(w.T), np.asfortranarray(w)[:, ::2].T):
        few = a[:, :b.shape[0]]
        y = matrix_numpy.product(few, b)
        assert y.flags.c_contiguous and y.dtype == dtype
        np.testing.assert_allclose(y, few @ b, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(("name", "options"),
                         [*product(["RNN", "LSTM", "GRU"],
                                   [{}, {"bidirectional": True, "num_layers": 2}, {"bias": False}]),
                          ("LSTM", {"proj_size": 3})], ids=str)
@pytest.mark.parametrize("batch", [1, 5, 60])
@pytest.mark.parametrize("packed", [False, True])
def test_recurrent_layers_without_a_tape_give_the_same(name, batch, options, packed):
    """Without one nothing is kept for the way back, nor given from outside changed."""
    tg.manual_seed(0)
    layer, x = getattr(tg.nn, name)(4, 6, **options), tg.randn(7, batch, 4)
    states = [tg.randn(layer.num_layers * (1 + layer.bidirectional), batch, n) for n in (layer.proj_size or 6, 6)]
    given = states if name == "LSTM" else states[1]
    before = [state.clone() for state in states]
    if packed:
        x = tg.nn.utils.rnn.pack_padded_sequence(x, [7 - i * 6 // batch for i in range(batch)])
    y, last = layer(x, given)
    with tg.no_grad():
        same, last_same = layer(x, given)
    pairs = [(y.data, same.data) if packed else (y, same),
             *(zip(last, last_same) if name == "LSTM" else [(last, last_same)])]
    for ours, theirs in pairs:
        np.testing.assert_allclose(theirs.numpy(), ours.detach().numpy(), rtol=1e-5, atol=1e-6)
    assert pairs[1][1].is_contiguous()
    assert not np.shares_memory(pairs[1][1].numpy(), pairs[0][1].numpy())
    assert all(map(tg.equal, states, before))


@pytest.mark.parametrize("block", [1, 20, 1 << 17])
@pytest.mark.parametrize(("n", "h"), [(1, 3), (3, 2), (4, 1)])
@pytest.mark.parametrize("causal", [False, True])
def test_threads_share_images_and_heads_of_attention(monkeypatch, threads, block, n, h, causal):
    monkeypatch.setattr(attention_numpy, "BLOCK", block)
    rng = np.random.default_rng(0)
    q, k, v, g = (rng.standard_normal((n, h, rows, 4)) for rows in (5, 6, 6, 5))
    mask = None if causal else rng.standard_normal((h, 1, 6))

    def results():
        out, kept = attention_numpy.Attention.forward(q, k, v, mask, causal=causal, scale=0.5)
        return [out, *(x for x in attention_numpy.Attention.backward(g, kept, (True, True, True, mask is not None))
                       if x is not None)]
    alone = results()
    monkeypatch.setattr(thread_pool, "WORTH", 1)
    monkeypatch.setattr(thread_pool, "can_start", lambda: True)
    assert all(map(np.array_equal, results(), alone))


@pytest.mark.parametrize(("ndim", "w"), [(1, True), (1, False), (2, True)])
@pytest.mark.parametrize(("rows", "width"), [(1, 12), (7, 12), (50, 4), (3, 520)])
def test_rows_are_normalized_some_at_a_time_as_all_at_once(monkeypatch, threads, rows, width, ndim, w):
    """Results agree with the formula, which does not use rows, blocks or threads."""
    rng, shape = np.random.default_rng(0), (width,) if ndim == 1 else (width // 4, 4)
    x, g = rng.standard_normal((2, rows, *shape))
    weight, bias = rng.standard_normal((2, *shape)) if w else (None, None)

    def results():
        out, kept = normalization_numpy.LayerNorm.forward(x, weight, bias, ndim=ndim, eps=1e-5)
        return [out, *(gradient for gradient in normalization_numpy.LayerNorm.backward(g, kept, (True, w, w))
                       if gradient is not None)]
    tensors = [tg.from_numpy(a).requires_grad_() for a in (x, weight, bias) if a is not None]
    away = tensors[0] - tensors[0].mean(tuple(range(1, 1 + ndim)), keepdim=True)
    out = away / (away.square().mean(tuple(range(1, 1 + ndim)), keepdim=True) + 1e-5).sqrt()
    out = out * tensors[1] + tensors[2] if w else out
    expected = [out.detach().numpy(), *(t.numpy() for t in tg.autograd.grad(out, tensors, tg.from_numpy(g)))]
    for block in (1 << 18, 1, 30):
        monkeypatch.setattr(normalization_numpy, "BLOCK", block)
        for ours, formula in zip(results(), expected, strict=True):
            np.testing.assert_allclose(ours, formula, rtol=1e-9, atol=1e-12)
    monkeypatch.setattr(thread_pool, "WORTH", 1)
    monkeypatch.setattr(thread_pool, "can_start", lambda: True)
    for ours, formula in zip(results(), expected, strict=True):
        np.testing.assert_allclose(ours, formula, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize("record", [False, True])
def test_recurrent_layers_of_no_sequences_and_of_no_steps(name, record):
    layer = getattr(tg.nn, name)(4, 6, 2, batch_first=True)
    with tg.set_grad_enabled(record):
        y, last = layer(tg.randn(0, 3, 4))
        assert y.shape == (0, 3, 6) and (last[0] if name == "LSTM" else last).shape == (2, 0, 6)
        with pytest.raises(RuntimeError, match="Expected sequence length to be larger than 0 in RNN"):
            layer(tg.randn(2, 0, 4))
    if record:
        y.sum().backward()
        assert all(not p.grad.any() for p in layer.parameters())


def run(code, **variables):
    return subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True,
                          env={**os.environ, **variables}, timeout=60)
