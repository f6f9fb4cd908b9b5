"""Storages as objects, beside PyTorch: the memory of tensors, as bytes and as elements."""
import copy
import gc
import pickle
import weakref

import numpy as np
import pytest
from side_by_side import compare, neutral
from support import cpu_only, on_device

import tensorgrad as tg

pytestmark = pytest.mark.filterwarnings("ignore:TypedStorage")
PROGRAMS = []
program = PROGRAMS.append


def shown(value, torch):
    """Storages as they are printed."""
    if isinstance(value, (tuple, list)):
        return [shown(part, torch) for part in value]
    return repr(value) if torch.is_storage(value) else value


@program
def views_share_a_storage(torch):
    x = torch.arange(6.).reshape(2, 3)
    u = x.untyped_storage()
    return ([view.untyped_storage() is u and view.untyped_storage().data_ptr() == x.data_ptr() == u.data_ptr()
             and view.untyped_storage()._cdata == u._cdata
             for view in (x, x[1], x.t(), x.view(-1)[2:], x.detach(),
                          x.expand(2, 2, 3))], x.clone().untyped_storage() is u, [
             x.data.untyped_storage()._cdata == u._cdata, u.nbytes(), u.size(), len(u), str(u.device), u.is_shared(),
             u.element_size(), u.type(), bool(u),
             u.is_cuda])


@program
def bytes_in_them(torch):
    x = torch.tensor([1.0, -2.0])
    u = x.untyped_storage()
    before = u.tolist()
    u[3] = 0x40
    u[7] = 300
    part = u[4:8]
    part.fill_(1)
    return (before, x.view(torch.int32), u[3], list(part), u.clone().data_ptr() == u.data_ptr(), repr(part),
            u.copy_(torch.UntypedStorage([0] * 8)).tolist(), x)


@program
def made_by_themselves(torch):
    u = torch.UntypedStorage([1, 2, 300])
    return (u, torch.UntypedStorage(), torch.UntypedStorage(3).fill_(2), u.resize_(4).nbytes(), u.resize_(2).tolist(),
            torch.FloatStorage([1, 2]), torch.LongStorage([1, 2]).tolist(), torch.BoolStorage([True, False]),
            torch.FloatStorage(3).size(),
            torch.FloatStorage(),
            torch.TypedStorage([1, 2], dtype=torch.int64), torch.FloatStorage([1, 2]).double(),
            torch.DoubleStorage([1.5]).int(),
            torch.FloatStorage([1, 2]).type())


@program
def their_classes(torch):
    f = torch.FloatStorage(3)
    return (isinstance(f, torch.FloatStorage), isinstance(f, torch.LongStorage), isinstance(f, torch.TypedStorage),
            isinstance(f, torch.UntypedStorage),
            str(f.dtype),
            torch.is_storage(f), torch.is_storage(f.untyped()), torch.is_storage(torch.ones(1)),
            str(torch.FloatStorage.dtype), f.element_size(), f.nbytes(), torch.ByteStorage.from_buffer(b"abcd"),
            torch.storage.UntypedStorage is torch.UntypedStorage,
            f.pickle_storage_type(), torch.FloatStorage.__name__)


@program
def tensors_in_them(torch):
    x = torch.arange(6.)
    u, f = x.untyped_storage(), torch.FloatStorage([1, 2, 3])
    y, z = torch.tensor([]).set_(u, 1, (2,), (2,)), torch.tensor([]).set_(f)
    y.fill_(9.0)
    z[0] = 7.0
    f[1] = 5.0
    return (x, f, z, y.storage_offset(), y.untyped_storage().data_ptr() == u.data_ptr(),
            torch.tensor([], dtype=torch.int32).set_(u), torch.Tensor(f),
            torch.FloatTensor(f), torch.tensor(f), f.clone().fill_(0.0).tolist(), f[1],
            torch.FloatStorage(3).copy_(torch.IntStorage([4, 5, 6])))


@program
def memory_that_is_freed_and_given_back(torch):
    x = torch.ones(4)
    u = x.untyped_storage()
    u.resize_(0)
    freed = u.nbytes(), x.untyped_storage().nbytes(), u.tolist()
    u.resize_(16)
    x.copy_(torch.arange(4.))
    return freed, x, u.nbytes(), torch.empty(0).untyped_storage().data_ptr()


@program
def copies(torch):
    u, f = torch.UntypedStorage([1, 2]), torch.FloatStorage([1.5])
    a, b = copy.deepcopy([u, u])
    return a is b, a is u, a.tolist(), copy.deepcopy(f).tolist(), copy.copy(u).data_ptr() == u.data_ptr()


def test_pickle():
    for storage in (tg.UntypedStorage([1, 2]), tg.FloatStorage([1.5])):
        assert pickle.loads(pickle.dumps(storage)).tolist() == storage.tolist()


for _what in ("u[5]", "u[1.5]", "u[::2]", "u.copy_(torch.UntypedStorage(1))", "torch.UntypedStorage('a')", "f[5]",
              "f[1.5]", "f[0:1]",
              "torch.tensor([], dtype=torch.int32).set_(f)"):
    def _error(torch, what=_what):
        try:
            eval(what, {"torch": torch, "u": torch.UntypedStorage(2), "f": torch.FloatStorage(2)})
        except Exception as error:
            return type(error), str(error)
    _error.__name__ = _what
    program(_error)

@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_programs(program):
    torch = pytest.importorskip("torch")
    ours, theirs = (neutral(shown(program(library), library), library) for library in (tg, torch))
    compare(ours, theirs, 1e-6, 1e-7, "result")


def test_old_storages_say_that_they_are_old():
    from tensorgrad.api._arguments import WARNED
    WARNED.clear()
    with pytest.warns(UserWarning, match="TypedStorage is deprecated. It will be removed in the future"):
        tg.FloatStorage(1)


def test_a_storage_keeps_no_tensor_alive_and_none_keeps_it():
    gc.disable()
    try:
        x = tg.ones(3)
        array = x.array
        held, u = weakref.ref(x), x.untyped_storage()
        seen = weakref.ref(u)
        del x
        assert held() is None and u.tolist()[:4] == [0, 0, 128, 63] and array is not None
        del u
        assert seen() is None
    finally:
        gc.enable()


def test_writing_to_the_bytes_is_noticed():
    x = tg.ones(2, requires_grad=True)
    y = x * 1
    z = (y * y).sum()
    y.untyped_storage().fill_(0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


@cpu_only
def test_memory_from_numpy(tmp_path):
    line = np.arange(10.)
    x = tg.from_numpy(line[2:9:3])
    assert x.untyped_storage().nbytes() == 56 and x.untyped_storage().data_ptr() == line[2:].ctypes.data
    x.untyped_storage()[0:8].fill_(0)
    assert line[2] == 0
    np.arange(4, dtype=np.uint8).tofile(tmp_path / "bytes")
    tg.UntypedStorage.from_file(tmp_path / "bytes", False, 4).fill_(9)
    assert np.fromfile(tmp_path / "bytes", np.uint8).tolist() == [0, 1, 2, 3]
    tg.UntypedStorage.from_file(tmp_path / "bytes", True, 4).fill_(9)
    assert np.fromfile(tmp_path / "bytes", np.uint8).tolist() == [9] * 4
    with pytest.raises(RuntimeError, match="not resizable"):
        tg.ones(2).untyped_storage().resize_(80)


def test_storages_on_a_device():
    x = on_device(tg.arange(4.))
    u = x.untyped_storage()
    assert (u.device == x.device and x[2:].untyped_storage() is u and u.cpu().tolist()
            == tg.arange(4.).untyped_storage().tolist() and u.to(x.device) is u)
    u.fill_(0)
    assert x.tolist() == [0.0] * 4
    y = on_device(tg.empty(0)).set_(u)
    y[1] = 3.0
    assert x[1] == 3.0 and tg.UntypedStorage([1, 2]).to(x.device).tolist() == [1, 2]
