"""Winograd's way to convolve beside the sums taken one by one: results, gradients, numbers that are none."""
import os

import numpy as np
import pytest
from support import cpu_only

import tensorgrad as tg
from tensorgrad.runtime.native import native

KERNELS = os.environ.get("TENSORGRAD_KERNELS", "")
pytestmark = [cpu_only, pytest.mark.skipif(native is None or KERNELS != "",
                                           reason="the compiled kernels are not there")]
flags = tg.backends.compiled.flags
nan, inf = float("nan"), float("inf")


def drawn(n, c, o, size, padding=(1, 1), groups=1, bias=True, dtype="float64", kernel=(3, 3), stride=1):
    """x, w, the bias, an upstream gradient, and how to convolve."""
    rng = np.random.default_rng(n * c + o)
    length = [(s + 2 * p - k) // stride + 1 for s, p, k in zip(size, padding, kernel, strict=True)]
    shapes = (n, c * groups, *size), (o * groups, c, *kernel), (o * groups,), (n, o * groups, *length)
    x, w, b, up = (rng.standard_normal(shape).astype(dtype) for shape in shapes)
    return x, w, b if bias else None, up, {"padding": padding, "groups": groups, "stride": stride}


def computed(x, w, b, up, how):
    """The result and all gradients."""
    inputs = [None if a is None else tg.from_numpy(a.copy()).requires_grad_() for a in (x, w, b)]
    y = tg.nn.functional.conv2d(*inputs, **how)
    y.backward(tg.from_numpy(up))
    return [y.detach().numpy()] + [a.grad.numpy() for a in inputs if a is not None]


def both(case):
    """By Winograd's way, and directly in float64."""
    with flags(True, winograd="always"):
        ours = computed(*case)
    with flags(True, winograd=False), np.errstate(all="ignore"):
        return ours, computed(*(a if a is None or isinstance(a, dict) else a.astype("float64") for a in case))


def close(ours, exact, factor=1.0):
    for a, b in zip(ours, exact, strict=True):
        scale = np.abs(b).max(initial=1e-3)
        np.testing.assert_allclose(a, b, rtol=0, atol=factor * scale * (1e-14 if a.dtype == "float64" else 2e-6))


CASES = [drawn(n, c, o, (h, w), (p, q), bias=bool(h % 2), dtype=("float32", "float64")[(h + w) % 2])
         for i, (h, w) in enumerate(np.ndindex(9, 9))
         for n, c, o, p, q in [(1 + i % 5, 1 + i * 7 % 40, 1 + i * 11 % 40, i % 3, i // 3 % 3)]
         for h, w in [(h + 1, w + 1)] if h + 2 * p > 2 and w + 2 * q > 2]
CASES += [drawn(2, 5, 6, (6, 7), (p, q)) for p, q in ((3, 0), (0, 4), (5, 5))]
CASES += [drawn(2, c, o, (7, 6), groups=groups, dtype=dtype)
          for c, o, groups, dtype in ((3, 5, 2, "float32"), (17, 8, 3, "float64"), (2, 40, 2, "float32"))]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0].shape}-{case[1].shape}-{case[0].dtype}")
def test_small_sizes(case):
    close(*both(case))


OTHERS = [((2, 2), 1), ((4, 4), 2), ((3, 3), 2), ((4, 3), 2), ((5, 5), 2), ((6, 5), 2), ((6, 6), 2)]


@pytest.mark.parametrize("kernel, stride", OTHERS)
def test_windows_of_two_and_three_in_each_phase_of_the_strides(kernel, stride):
    """All ends of images and kernels, some groups and types, and more channels than a vector has."""
    done = 0
    for i, (h, w) in enumerate(np.ndindex(6, 6)):
        size, padding = (h * 2 + i % 2 + 1, w * 2 + i % 3 + 1), (i % 4, i // 2 % 4)
        if all(s + 2 * p >= k for s, p, k in zip(size, padding, kernel, strict=True)):
            case = drawn(1 + i % 3, 1 + i * 7 % 40, 1 + i * 11 % 40, size, padding, 1 + i % 2, bool(h % 2),
                         ("float32", "float64")[w % 2], kernel, stride)
            close(*both(case), 2)
            done += 1
    assert done > 20


@pytest.mark.parametrize("kernel, stride", OTHERS)
@pytest.mark.parametrize("threads", [1, 2, 3], indirect=True)
def test_phases_beyond_a_block(kernel, stride, threads):
    """Rows that are parted, blocks of tiles, and kernels with more outputs than there are tiles; the way was taken, and
    the number of threads does not show.
    """
    found = []
    for shape in ((1, 3, 20, (5, 150)), (2, 70, 33, (19, 40)), (3, 20, 100, (9, 8))):
        case = drawn(*shape, (2, 1), dtype="float32", kernel=kernel, stride=stride)
        ours, exact = both(case)
        close(ours, exact, 3)
        with flags(True, winograd=False):
            assert not any(np.array_equal(a, b) for a, b in zip(ours[:3], computed(*case)[:3], strict=True))
        tg.set_num_threads(1)
        found += [a.tobytes() == b.tobytes() for a, b in zip(ours, both(case)[0], strict=True)]
        tg.set_num_threads(threads)
    assert all(found)


@pytest.mark.parametrize("kernel, stride, padding", [((4, 4), 2, 1), ((2, 2), 1, 0), ((5, 5), 2, 2), ((3, 3), 1, 1)])
def test_transposed_with_a_bias(kernel, stride, padding):
    x, w, b, _, _ = drawn(3, 19, 21, (7, 6), kernel=kernel)
    args = tg.from_numpy(x), tg.from_numpy(w.swapaxes(0, 1).copy()), tg.from_numpy(b)
    with flags(True, winograd="always"):
        ours = tg.nn.functional.conv_transpose2d(*args, stride=stride, padding=padding, output_padding=stride - 1)
    with flags(True, winograd=False):
        direct = tg.nn.functional.conv_transpose2d(*args, stride=stride, padding=padding, output_padding=stride - 1)
    close([ours.numpy()], [direct.numpy()])
    assert not tg.equal(ours, direct)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n, c, o, size, groups",
                         [(1, 3, 20, (5, 131), 1), (2, 150, 33, (9, 20), 1), (3, 20, 35, (31, 33), 2),
                          (11, 257, 16, (4, 5), 1)])
@pytest.mark.parametrize("threads", [1, 2, 3], indirect=True)
def test_sizes_beyond_a_block(n, c, o, size, groups, dtype, threads):
    case = drawn(n, c, o, size, groups=groups, dtype=dtype)
    ours, exact = both(case)
    close(ours, exact, 3)
    for first, again in zip(ours, both(case)[0], strict=True):
        assert first.tobytes() == again.tobytes()


def test_the_number_of_threads_does_not_show(threads):
    case, found = drawn(4, 20, 24, (14, 15), dtype="float32"), set()
    for number in (1, 2, 3, 4):
        tg.set_num_threads(number)
        with flags(True, winograd="always"):
            found.add(b"".join(a.tobytes() for a in computed(*case)))
    assert len(found) == 1


@pytest.mark.parametrize("value", [nan, inf, -inf, 3e38, -2e38])
@pytest.mark.parametrize("place", [0, 1, 3])
@pytest.mark.parametrize("kernel, stride", [((3, 3), 1), ((4, 4), 2)])
def test_numbers_that_are_none_stay_where_they_are(place, value, kernel, stride):
    """Results next to one of them, but not of it, are what they would be: what overflows on the way does not show
    either.
    """
    case = drawn(2, 4, 18, (9 * stride, 10 * stride), dtype="float32", kernel=kernel, stride=stride)
    case[place][(1, 2, 1, 1) if place == 1 else (1, 3, 4, 5)] = value
    with np.errstate(all="ignore"):
        with flags(True, winograd="always"):
            ours = computed(*case)
        with flags(True, winograd=False):
            direct = computed(*case)
    for a, b in zip(ours, direct, strict=True):
        for kind in (np.isnan, np.isposinf, np.isneginf):
            np.testing.assert_array_equal(kind(a), kind(b))
        finite = np.isfinite(b)
        assert finite.any()
        np.testing.assert_allclose(a[finite], b[finite], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("c", [16, 64, 256])
def test_the_error_is_that_of_the_direct_way(c):
    case = drawn(1, c, 32, (14, 14), dtype="float32")
    ours, exact = both(case)
    with flags(True, winograd=False):
        direct = computed(*case)
    for a, d, e in zip(ours, direct, exact, strict=True):
        assert np.abs(a - e).max() < 3 * np.abs(d - e).max() + 1e-7 * np.abs(e).max()


def test_the_switch():
    case = drawn(4, 64, 64, (24, 24), dtype="float32")
    before = tg.backends.compiled.set_flags()
    assert before == (True, True)
    found = {}
    for how in (False, True, "always"):
        with flags(True, winograd=how):
            assert tg.backends.compiled.set_flags() == (True, how)
            found[how] = computed(*case)
        assert tg.backends.compiled.set_flags() == before
    for chosen, always in zip(found[True], found["always"], strict=True):
        np.testing.assert_array_equal(chosen, always)
    _, exact = both(case)
    close(found[False], exact, 2)    # 2,304 products one after the other: PyTorch is as far off
    close(found[True], exact)
    assert not np.array_equal(found[False][0], found[True][0])
    with pytest.raises(ValueError, match="winograd may be True, False or 'always', not 'sometimes'"):
        tg.backends.compiled.set_flags(winograd="sometimes")
    with flags(True, winograd="always"):        # nothing else is touched
        for other in ({"stride": 3}, {"stride": (1, 2)}, {"dilation": 2}):
            x, w = tg.from_numpy(case[0]), tg.from_numpy(case[1])
            y = tg.nn.functional.conv2d(x, w, **other)
            with flags(True, winograd=False):
                assert tg.equal(y, tg.nn.functional.conv2d(x, w, **other))


@pytest.mark.parametrize("size, kernel, more", [
    ((2,), (1,), {"stride": 2}), ((5,), (1,), {"stride": 7}), ((3, 4), (1, 1), {"stride": (1, 9)}),
    ((3, 4), (1, 1), {"stride": 2 ** 31 - 1}),
    ((6, 5), (2, 3), {"stride": 2 ** 40}), ((70, 70), (3, 3), {"stride": 67})])
def test_strides_that_leave_few_results(size, kernel, more):
    x, w = tg.randn(3, 2, *size, dtype=tg.float64), tg.randn(4, 2, *kernel, dtype=tg.float64)
    given = [t.requires_grad_() for t in (x, w)]
    function = tg.nn.functional.conv1d if len(size) == 1 else tg.nn.functional.conv2d
    found = []
    for on in (True, False):
        with flags(on):
            y = function(*given, **more)
            found.append((y, *tg.autograd.grad(y, given, tg.arange(y.numel(), dtype=y.dtype).view(y.shape))))
    for ours, exact in zip(*found, strict=True):
        tg.testing.assert_close(ours, exact)


@pytest.mark.parametrize("more", [{"dilation": 2, "output_padding": 1}, {"dilation": 3, "output_padding": 2},
                                  {"stride": 3, "output_padding": 2}])
@pytest.mark.parametrize("kernel", [1, 3])
def test_results_beyond_the_last_window(kernel, more):
    y, w, b = (tg.randn(4, 1, 4, dtype=tg.float64), tg.randn(1, 5, kernel, dtype=tg.float64),
               tg.randn(5, dtype=tg.float64))
    with flags(True):
        ours = tg.nn.functional.conv_transpose1d(y, w, b, **more)
    with flags(False):
        tg.testing.assert_close(ours, tg.nn.functional.conv_transpose1d(y, w, b, **more))
