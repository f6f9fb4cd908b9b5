"""Send tensors between processes: they move to shared memory, whose file descriptor is sent.

The memory is an unnamed file, so the system frees it with the last process that holds it, however that process ends.
"""
from __future__ import annotations

import ctypes
import errno
import gc
import mmap
import os
import sys
import weakref
from functools import cache
from multiprocessing.reduction import HAVE_SEND_HANDLE, ForkingPickler
from typing import Any

import numpy as np

from ..api import Tensor
from ..api.storage_objects import UntypedStorage, storage_of
from ..core.dispatch import fresh, wrap
from ..core.tape import TensorBase
from ..dtype import uint8
from ..nn.parameter import Parameter
from ..storage.cpu import NumpyStorage

can_send = os.name == "posix" and HAVE_SEND_HANDLE      # elsewhere, sent tensors are copied
# the blocks of this process, by device and inode
_here: weakref.WeakValueDictionary[tuple[int, int], Block] = weakref.WeakValueDictionary()


class StorageWeakRef:
    """A weak reference to the memory of an `UntypedStorage`, equal to references from other storages of the memory.

    >>> import tensorgrad as torch
    >>> x = torch.ones(4)
    >>> first, second = (StorageWeakRef(t.untyped_storage()) for t in (x, x[1:]))
    >>> first == second, first == StorageWeakRef(x.clone().untyped_storage())
    (True, False)
    """

    __slots__ = ["_memory", "cdata"]

    def __init__(self, storage: Any) -> None:
        storage = getattr(storage, "_untyped_storage", storage)
        self.cdata = storage._cdata
        self._memory = weakref.ref(storage if storage._owner is None else storage._owner)

    def expired(self) -> bool:
        """Return True once the memory is freed."""
        return self._memory() is None

    def __hash__(self) -> int:
        return self.cdata  # type: ignore[no-any-return]

    def __eq__(self, other: Any) -> bool:
        return self is other or self.cdata == other.cdata  # type: ignore[no-any-return]


class Block:
    """A block of shared memory, as bytes. https://pytorch.org/docs/stable/multiprocessing.html → file_descriptor"""

    def __init__(self, size: int, descriptor: int | None = None) -> None:
        self.size = max(size, 1)
        self.descriptor = _new_file(self.size) if descriptor is None else descriptor
        self.array = _mapped(self.descriptor, self.size)
        self.storage: Any = lambda: None            # a weak reference to the storage of received tensors
        weakref.finalize(self, os.close, self.descriptor).atexit = False
        _here[_identity(self.descriptor)] = self

    def view(self, dtype: Any, offset: int, shape: Any, strides: Any) -> Any:
        """Return an array in the block."""
        return np.ndarray(shape, dtype, self.array.data, offset, strides)

    def __reduce__(self) -> Any:
        from ._fd_passing import handed
        return _opened, (self.size, handed(self.descriptor))


def _new_file(size: int) -> int:
    try:
        if hasattr(os, "memfd_create"):
            descriptor: int = os.memfd_create("tensorgrad")
        else:
            from tempfile import TemporaryFile
            with TemporaryFile() as file:
                descriptor = os.dup(file.fileno())
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
        raise OSError(errno.EMFILE, "Too many open files: each block of memory that processes share is one. Share "
                                    "fewer tensors at a time, or allow more by `ulimit -n`") from None
    os.ftruncate(descriptor, size)
    return descriptor


def _mapped(descriptor: int, size: int) -> Any:
    """Map a file as an array of bytes, which unmaps it when freed.

    Python's mmap would keep a second descriptor open for each.
    """
    if sys.version_info >= (3, 13):
        return np.frombuffer(mmap.mmap(descriptor, size, trackfd=False), np.uint8)
    if os.name != "posix":
        return np.frombuffer(mmap.mmap(descriptor, size), np.uint8)
    address = _c_library().mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, descriptor, 0)
    if address == ctypes.c_void_p(-1).value:
        number = ctypes.get_errno()
        raise OSError(number, f"{size} bytes of shared memory cannot be mapped: {os.strerror(number)}")
    memory = _Bytes(address, size, writeable=True)
    weakref.finalize(memory, _c_library().munmap, address, size).atexit = False
    return memory.array()


@cache
def _c_library() -> Any:
    library: Any = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype, library.munmap.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_size_t)
    library.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int,
                             ctypes.c_ssize_t)
    return library


def _identity(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def _opened(size: int, sent: Any) -> Block:
    """Return the block of a received descriptor; one object per block."""
    descriptor = sent.detach()
    known = _here.get(_identity(descriptor))
    if known is None:
        return Block(size, descriptor)
    os.close(descriptor)
    return known


def share(tensor: Any) -> Any:
    """Move a CPU tensor, and all tensors that share its memory, to shared memory."""
    if type(tensor._storage) is not NumpyStorage or tensor._storage.shared is not None:
        return tensor
    line = _line(tensor._storage)
    storages = _storages(tensor._storage, line)
    family = _family(tensor, storages)
    memories = [s.memory for s in storages if s.memory is not None] + ([] if line is None else [line._line])
    low, high = _around([tensor.array, *memories])
    family = [t for t in family if _bounds(t.array)[0] < high and low < _bounds(t.array)[1] or t is tensor]
    low, high = _around([*memories, *(t.array for t in family)])
    block = Block(high - low)
    block.array[:high - low] = _Bytes(low, high - low).array() if high > low else 0

    def moved(a: Any) -> Any:
        return block.view(a.dtype, _bounds(a)[0] - low + _first(a), a.shape, a.strides)
    known = {id(a): moved(a) for a in memories}
    for t in family:
        t.array, t._storage.shared = moved(t.array), block
        if t._storage.memory is not None:
            t._storage.memory = known.get(id(t._storage.memory), t._storage.memory)
    for s in storages:
        s.memory, s.shared = known.get(id(s.memory), s.memory), block
    if line is not None:
        line._line, line._blocks = (known[id(line._line)],
                                    {dtype: (moved(array), s) for dtype, (array, s) in line._blocks.items()})
    block.storage = weakref.ref(tensor._storage)
    return tensor


def _line(storage: Any) -> Any:
    """Return the UntypedStorage of the memory, if a program holds it."""
    found = storage.__dict__.get("bytes")
    return None if found is None else found()


def _storages(storage: Any, line: Any) -> list[Any]:
    """Return the storages of the memory: one for each dtype."""
    others = [] if line is None else [line._owner, *(other for _, other in line._blocks.values())]
    return list({id(s): s for s in (storage, *others) if s is not None}.values())


def _family(tensor: Any, storages: list[Any]) -> list[Any]:
    """Return the tensors that share this one's memory.

    If there are others, the garbage collector's list of objects is searched, after `gc.unfreeze()`: objects that it was
    told to leave out may be such tensors.
    """
    if len(storages) == 1 and (tensor._storage.memory is None or _references(tensor) == _references_of_one()):
        return [tensor]
    kinds, memories = {id(s) for s in storages}, {id(s.memory) for s in storages if s.memory is not None}
    gc.unfreeze()
    return [t for t in gc.get_objects() if issubclass(type(t), TensorBase)
            and (id(t._storage) in kinds or id(t._storage.memory) in memories)]


def _references(tensor: Any) -> tuple[int, int]:
    """Count the references to a tensor's storage and, except its own array's, to its memory."""
    storage, memory = tensor._storage, tensor._storage.memory
    return sys.getrefcount(storage), sys.getrefcount(memory) - (tensor.array is memory) - (tensor.array.base is memory)


@cache
def _references_of_one() -> tuple[int, int]:
    """Return `_references` of a tensor that shares no memory, which depend on Python's version."""
    one = fresh(np.empty(1), NumpyStorage)
    one._storage.memory = one.array
    return _references(one)


class _Bytes:
    """Memory at an address, as NumPy's array interface."""

    def __init__(self, address: int, size: int, writeable: bool = False) -> None:
        self.__array_interface__ = {"data": (address, not writeable), "shape": (size,), "typestr": "|u1", "version": 3}

    def array(self) -> Any:
        return np.asarray(self)


def _bounds(array: Any) -> tuple[int, int]:
    """Return the addresses of an array's first byte and of the byte after its last."""
    start = array.__array_interface__["data"][0]
    if not array.size:
        return start, start
    steps = [(n - 1) * step for n, step in zip(array.shape, array.strides, strict=True)]
    return start + sum(s for s in steps if s < 0), start + sum(s for s in steps if s > 0) + array.itemsize


def _around(arrays: list[Any]) -> tuple[int, int]:
    """Return the addresses of the first byte of all arrays and of the byte after the last."""
    bounds = [_bounds(a) for a in arrays]
    return min(low for low, _ in bounds), max(high for _, high in bounds)


def _first(array: Any) -> int:
    """Return the offset of the first element from the first byte."""
    return int(array.__array_interface__["data"][0]) - _bounds(array)[0]


def _reduced(tensor: Any) -> Any:
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError("Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does "
                           "not support crossing process boundaries.  If you just want to transfer the data, call "
                           "detach() on the tensor before serializing (e.g., putting it on the queue).")
    if (not can_send or type(tensor._storage) is not NumpyStorage or type(tensor) not in (Tensor, Parameter)
            or not tensor.array.size):
        return tensor.__reduce_ex__(4)
    block, array = share(tensor)._storage.shared, tensor.array
    offset = array.__array_interface__["data"][0] - block.array.__array_interface__["data"][0]
    return _rebuilt, (type(tensor), block, array.dtype, offset, array.shape, array.strides, tensor.requires_grad,
                      dict(tensor.__dict__))


def _rebuilt(kind: Any, block: Block, dtype: Any, offset: int, shape: Any, strides: Any, requires_grad: bool,
             attributes: Any) -> Any:
    array, storage = block.view(dtype, offset, shape, strides), block.storage()
    tensor = fresh(array, NumpyStorage) if storage is None else wrap(array, storage)
    if storage is None:
        tensor._storage.shared, block.storage = block, weakref.ref(tensor._storage)
        tensor._storage.memory = block.view(dtype, 0, (block.size // array.itemsize,), (array.itemsize,))
    if kind is Parameter:
        tensor = Parameter(tensor, requires_grad)
        tensor._storage.shared = block
    else:
        tensor.requires_grad_(requires_grad)
    tensor.__dict__.update(attributes)
    return tensor


def _reduced_storage(storage: Any) -> Any:
    """Send a storage as a tensor of its bytes."""
    if storage.device.type != "cpu" or not storage.nbytes():
        return storage.__reduce__()
    return storage_of, (wrap(*storage.block(uint8)),)


def init_reductions() -> None:
    """Register the reductions of tensors and storages with the standard library."""
    ForkingPickler.register(Tensor, _reduced)
    ForkingPickler.register(Parameter, _reduced)
    ForkingPickler.register(UntypedStorage, _reduced_storage)
