"""Conversions of bfloat16 and float8, bit for bit as PyTorch has them."""
import numpy as np
import pytest

import tensorgrad as tg
from tensorgrad.dtype import EIGHT_BITS, bfloat16
from tensorgrad.runtime import small_floats

KINDS = pytest.mark.parametrize("dtype", [bfloat16, *EIGHT_BITS], ids=str)


@pytest.fixture(params=["compiled", "plain"])
def kernels(request, monkeypatch):
    if request.param == "plain":
        monkeypatch.setattr(small_floats, "native", None)


def floats():
    """All upper halves of a float32, exact, a little above, and at and around the middle between two; random ones."""
    upper = np.arange(1 << 16, dtype=np.uint32) << 16
    random = np.random.default_rng(0).integers(0, 1 << 32, 20_000, dtype=np.uint32)
    return np.concatenate([upper + rest for rest in (0, 1, 0x7fff, 0x8000, 0x8001)] + [random]).view(np.float32)


def bits(array):
    return array.view(f"u{array.itemsize}")


@KINDS
def test_rounding(dtype, kernels):
    torch = pytest.importorskip("torch")
    x = floats()
    ours = bits(small_floats.narrow(x, dtype.numpy))
    theirs = torch.from_numpy(x).to(getattr(torch, dtype.name)).view(getattr(torch, f"uint{8 * dtype.itemsize}"))
    same = ours == theirs.numpy()
    if dtype is bfloat16:                       # a NaN may have any bits
        same |= np.isnan(x) & np.isnan(small_floats.widen(ours.view(dtype.numpy)))
    assert same.all(), (x[~same][:5], ours[~same][:5])
    for numbers in np.linspace(-500, 500, 999), np.arange(-300, 300), np.array([True, False]):      # by way of float32
        assert (bits(small_floats.convert(numbers, dtype.numpy))
                == bits(small_floats.convert(numbers.astype("f4"), dtype.numpy))).all()


@KINDS
def test_values(dtype, kernels):
    torch = pytest.importorskip("torch")
    patterns = np.arange(1 << 8 * dtype.itemsize, dtype=f"u{dtype.itemsize}")
    theirs = torch.from_numpy(patterns).view(getattr(torch, dtype.name)).float().numpy()
    np.testing.assert_array_equal(small_floats.widen(patterns.view(dtype.numpy)), theirs)


@KINDS
def test_layouts(dtype, kernels):
    """Strides, single elements and empty arrays."""
    wide = np.linspace(-3, 3, 2 * 600 * 3, dtype="f4").reshape(2, 600, 3)
    for x in wide, wide.T, wide[:, ::2], wide[::-1], wide[0, 0, 0].reshape(()), wide[:, :0], np.broadcast_to(
            wide[:1], wide.shape):
        small = small_floats.convert(x, dtype.numpy)
        assert small.shape == x.shape and small.dtype is dtype.numpy
        flat = small_floats.convert(np.ascontiguousarray(x).reshape(-1), dtype.numpy)
        assert bits(small).ravel().tolist() == bits(flat).tolist()
        back = small_floats.convert(small, "f4")
        np.testing.assert_array_equal(back.ravel(), small_floats.widen(flat))
        if 0 not in x.strides and min(x.strides, default=0) >= 0 and x.size > 1:
            assert np.argsort(small.strides).tolist() == np.argsort(x.strides).tolist()


def test_numpy_refuses_to_compute():
    x = tg.ones(3, dtype=tg.bfloat16).array
    for refused in (lambda: x + x, lambda: x.sum(), lambda: np.exp(x), lambda: x.astype("f4"),
                    lambda: np.concatenate([x, np.ones(3, "f4")])):
        with pytest.raises((TypeError, ValueError)):
            refused()


@KINDS
def test_arrays_of_ml_dtypes(dtype):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    theirs = np.array([0.5, 1, 2, 4]).astype(getattr(ml_dtypes, dtype.name))
    for made in (tg.from_numpy(theirs), tg.tensor(theirs), tg.as_tensor(theirs), tg.asarray(theirs),
                 tg.tensor([theirs[0], theirs[1], theirs[2], theirs[3]], dtype=dtype)):
        assert made.dtype is dtype and made.tolist() == [0.5, 1, 2, 4]
    assert tg.from_numpy(theirs).data_ptr() == theirs.ctypes.data
    assert tg.tensor(theirs, dtype=tg.float64).tolist() == [0.5, 1, 2, 4]
