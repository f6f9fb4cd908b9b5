"""State dicts as .npz files."""
import numpy as np
import pytest

import tensorgrad as tg
from tensorgrad.utils import npz


def test_a_state_dict_comes_back(tmp_path):
    model, other = (tg.nn.Sequential(tg.nn.Linear(3, 4), tg.nn.BatchNorm1d(4)) for _ in range(2))
    npz.save_file(model.state_dict(), tmp_path / "model.npz")
    other.load_state_dict(npz.load_file(tmp_path / "model.npz"))
    for a, b in zip(model.state_dict().values(), other.state_dict().values(), strict=True):
        assert a.dtype is b.dtype and tg.equal(a, b)


@pytest.mark.parametrize("dtype", [tg.bool, tg.uint8, tg.int64, tg.float16, tg.float64, tg.complex64])
def test_dtypes_and_shapes(tmp_path, dtype):
    values = {"scalar": tg.ones((), dtype=dtype), "none": tg.ones(0, 2, dtype=dtype),
              "turned": tg.arange(6).reshape(2, 3).to(dtype).t()}
    npz.save_file(values, tmp_path / "x.npz")
    for name, value in npz.load_file(tmp_path / "x.npz").items():
        assert value.dtype is dtype and tg.equal(value, values[name])


def test_numpy_reads_and_writes_them(tmp_path):
    npz.save_file({"a.b": tg.tensor([1., 2.])}, tmp_path / "x.npz")
    assert np.load(tmp_path / "x.npz")["a.b"].tolist() == [1, 2]
    np.savez_compressed(tmp_path / "y.npz", w=np.arange(3, dtype=">i4"))
    assert npz.load_file(tmp_path / "y.npz")["w"].tolist() == [0, 1, 2]


def test_nothing_is_unpickled_and_nothing_lost(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, w=np.array([object()]))
    with pytest.raises(ValueError, match="allow_pickle"):
        npz.load_file(path)
    np.save(tmp_path / "y.npy", np.ones(2))
    with pytest.raises(ValueError, match="single array"):
        npz.load_file(tmp_path / "y.npy")
    np.savez(path, w=np.array(["text"]))
    with pytest.raises(ValueError, match="dtype"):
        npz.load_file(path)
    npz.save_file({"w": tg.ones(1)}, path)
    for wrong in ({"w": tg.zeros(1), "x": 3}, {"w": tg.zeros(1), "x": tg.ones(1, dtype=tg.bfloat16)}):
        with pytest.raises(TypeError, match="'x'"):
            npz.save_file(wrong, path)
    assert npz.load_file(path)["w"].item() == 1
