"""Storages of a file: where they go, and the tensors that are made of them, with every bound checked first."""
from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..api import DTYPES, device
from ..device import device as Device
from ..dispatch import wrap
from ..dtype import dtype as Dtype
from ..storage.base import backend_of
from ..storage.cpu import NumpyStorage
from ._names import StorageType
from ._unpickler import Refused


class UntypedStorage:
    """A block of bytes from a file, on its way to tensors: what `map_location` functions are given. https://pytorch.org/docs → torch.UntypedStorage"""

    def __init__(self, data: Any, where: Any = "cpu") -> None:
        self.bytes, self.device = data, Device(where)       # a NumPy array of uint8, in host memory
        self.blocks: dict[Any, tuple[Any, Any]] = {}        # dtype → (array, storage): made once, so that tensors share them

    def nbytes(self) -> int:
        """The number of bytes."""
        return int(self.bytes.size)

    size = __len__ = nbytes

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return int(self.bytes.__array_interface__["data"][0])

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def __getitem__(self, index: Any) -> Any:
        return self.bytes[index].tolist()

    def to(self, where: Any) -> UntypedStorage:
        """The same bytes, for a device."""
        return self if Device(where) == self.device else UntypedStorage(self.bytes, where)

    def cpu(self) -> UntypedStorage:
        """The same bytes, for the CPU."""
        return self.to("cpu")

    def cuda(self, index: Any = None, non_blocking: bool = False) -> UntypedStorage:
        """The same bytes, for a CUDA device."""
        return self.to(Device("cuda", index) if isinstance(index, int) else index or "cuda")

    def tolist(self) -> list[int]:
        """The bytes."""
        return self.bytes.tolist()  # type: ignore[no-any-return]

    def block(self, element: Dtype) -> tuple[Any, Any]:
        """(array, storage) of the bytes as elements of a dtype."""
        if element not in self.blocks:
            if self.bytes.size % element.itemsize:
                raise Refused(f"a storage of {self.bytes.size} bytes holds no whole number of {element} elements")
            if element.name == "bool" and self.bytes.size and int(self.bytes.max()) > 1:
                self.bytes = (self.bytes != 0).view(np.uint8)       # a bool of another value than 0 and 1 is undefined behaviour in C
            flat = self.bytes.view(element.numpy)
            backend = NumpyStorage if self.device.type == "cpu" else backend_of(self.device)
            array = flat if backend is NumpyStorage else backend.asarray(flat)
            storage = backend()
            storage.memory = array
            self.blocks[element] = array, storage
        return self.blocks[element]


class TypedStorage:
    """A storage, and the dtype that a file says its elements have."""

    def __init__(self, untyped: UntypedStorage, element: Dtype) -> None:
        self.untyped, self.dtype = untyped, element


class Location:
    """`map_location`: where storages go."""

    def __init__(self, given: Any) -> None:
        self.given = given

    def place(self, storage: UntypedStorage, place: str) -> UntypedStorage:
        """The storage, where it is to go."""
        given = self.given
        if callable(given) and not isinstance(given, (str, Device)):
            moved = given(storage, place)
            return storage if moved is None else moved
        target = place if given is None else given.get(place, place) if isinstance(given, dict) else given
        where = device(target)
        if where.type == "cuda":
            from .. import cuda
            if not cuda.is_available():
                raise RuntimeError("Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are running on a CPU-only "
                                   "machine, please use torch.load with map_location=torch.device('cpu') to map your storages to the CPU.")
            if where.index is not None and where.index >= cuda.device_count():
                raise RuntimeError(f"Attempting to deserialize object on CUDA device {where.index} but torch.cuda.device_count() is {cuda.device_count()}. "
                                   "Please use torch.load with map_location to map your storages to an existing device.")
        return storage.to(where)


class Records:
    """The storages of an archive, by their keys: each is read once."""

    def __init__(self, archive: Any, location: Location) -> None:
        self._archive, self._location = archive, location
        self._loaded: dict[str, UntypedStorage] = {}
        order = archive.read("byteorder").decode("ascii", "replace") if archive.has("byteorder") else "little"
        if order not in ("little", "big"):
            raise ValueError("Unknown endianness type: " + order)
        self._swap = order != sys.byteorder

    def of_persistent_id(self, pid: Any) -> TypedStorage:
        """The storage that a pickle refers to: ('storage', type, key, place, number of elements)."""
        kind, key, place, count = checked_id(pid, 5)
        itemsize = element_of(kind).itemsize
        if count * itemsize != self._archive.size(f"data/{key}"):
            raise Refused(f"the storage {key} has {self._archive.size(f'data/{key}')} bytes, and not the {count * itemsize} that the file says it has")
        if key not in self._loaded:
            raw = np.frombuffer(self._archive.memory(f"data/{key}"), np.uint8)
            if self._swap and itemsize > 1:
                raw = raw.reshape(-1, itemsize)[:, ::-1].reshape(-1).copy()
            self._loaded[key] = self._location.place(UntypedStorage(raw), place)
        return TypedStorage(self._loaded[key], element_of(kind))


def checked_id(pid: Any, length: int) -> tuple[StorageType, str, str, int]:
    """The parts of a persistent id that is what it has to be."""
    if not isinstance(pid, tuple) or len(pid) < length or pid[0] != "storage":
        raise Refused(f"persistent ids are of storages only, this is {type(pid).__name__}")
    kind, key, place, count = pid[1:5]
    if not isinstance(kind, StorageType) or not isinstance(key, str) or not isinstance(place, str) or type(count) is not int or count < 0:
        raise Refused("a storage's persistent id is malformed")
    if not key or any(c in key for c in "/\\") or key in (".", ".."):
        raise Refused(f"the storage key {key!r} is not allowed")
    return kind, key, place, count


def element_of(kind: StorageType) -> Dtype:
    """The dtype of the elements."""
    return DTYPES[kind.element or "uint8"]  # type: ignore[no-any-return]


def tensor_of(typed: Any, offset: Any, size: Any, stride: Any, element: Any = None) -> Any:
    """A tensor in a storage. Refused unless every element of it lies there."""
    if not isinstance(typed, TypedStorage):
        raise Refused("a tensor is made of a storage")
    dtype = typed.dtype if element is None else element
    if type(offset) is not int or not all(isinstance(numbers, tuple) and all(type(n) is int for n in numbers) for numbers in (size, stride)):
        raise Refused("offset, size and stride of a tensor are integers")
    if offset < 0 or len(size) != len(stride) or len(size) > 64 or any(n < 0 for n in (*size, *stride)):
        raise Refused(f"offset {offset}, size {list(size)} and stride {list(stride)} do not describe a tensor")
    array, storage = typed.untyped.block(dtype)
    count = typed.untyped.nbytes() // dtype.itemsize
    last = offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    if all(size) and last >= count or offset > count:
        raise Refused(f"a tensor of size {list(size)}, stride {list(stride)} and offset {offset} does not fit into a storage of {count} elements")
    if not all(size):
        view = array[:0].reshape(size)
    elif isinstance(array, np.ndarray):
        view = as_strided(array[offset:], size, [s * array.itemsize for s in stride])
    else:
        view = type(storage).xp.as_strided(array, size=size, stride=stride, offset=offset, layout=None, length=count)
    return wrap(view, storage)
