"""Storages of a file, and the tensors that are made of them, with every bound checked first."""
from __future__ import annotations

import sys
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..api import DTYPES
from ..dispatch import wrap
from ..dtype import dtype as Dtype
from ..storages import TypedStorage, UntypedStorage
from ._names import UNTYPED, StorageType
from ._options import LoadEndianness, options
from ._places import Location
from ._unpickler import Refused

MOST_AXES, LARGEST = 64, 1 << 62


class Records:
    """The storages of an archive, by their keys: each is read once."""

    def __init__(self, archive: Any, location: Location) -> None:
        self._archive, self._location = archive, location
        self._loaded: dict[str, tuple[TypedStorage, StorageType, str]] = {}
        order = {LoadEndianness.LITTLE: "little", LoadEndianness.BIG: "big"}.get(options.endianness, sys.byteorder)  # type: ignore[call-overload]
        if archive.has("byteorder"):
            if archive.size("byteorder") > 16:
                raise ValueError("Unknown endianness type")
            order = archive.read("byteorder").decode("ascii", "replace")
        if order not in ("little", "big"):
            raise ValueError("Unknown endianness type: " + order)
        self._swap = order != sys.byteorder

    def of_persistent_id(self, pid: Any) -> TypedStorage:
        """The storage that a pickle refers to: ('storage', type, key, place, number of elements)."""
        kind, key, place, count = checked_id(pid, 5)
        element = element_of(kind)
        if count * element.itemsize != self._archive.size(f"data/{key}"):
            raise Refused(f"the storage {key} has {self._archive.size(f'data/{key}')} bytes, and not what its {element} elements need")
        if key not in self._loaded:
            untyped = UntypedStorage._over(self._bytes(key))
            if self._swap:
                untyped.byteswap(element)
            typed = TypedStorage._over(self._location.place(untyped, place), element)
            typed.turned = self._swap and kind is UNTYPED       # type: ignore[attr-defined]
            self._loaded[key] = typed, kind, place
        typed, *named = self._loaded[key]
        if named != [kind, place]:
            raise Refused(f"the storage {key} is of two types, or in two places")
        return typed

    def _bytes(self, key: str) -> Any:
        if options.skip:
            return np.zeros(self._archive.size(f"data/{key}"), np.uint8)
        return np.frombuffer(self._archive.memory(f"data/{key}"), np.uint8)


def checked_id(pid: Any, length: int) -> tuple[StorageType, str, str, int]:
    """The parts of a persistent id that is what it has to be."""
    if not isinstance(pid, tuple) or not length <= len(pid) <= 6 or type(pid[0]) is not str or pid[0] != "storage":
        raise Refused(f"persistent ids are of storages only, this is {type(pid).__name__}")
    kind, key, place, count = pid[1:5]
    if not isinstance(kind, StorageType) or type(key) is not str or type(place) is not str or type(count) is not int or not 0 <= count < LARGEST:
        raise Refused("a storage's persistent id is malformed")
    if not key or len(key) > 255 or any(c in key for c in "/\\") or key in (".", ".."):
        raise Refused(f"the storage key {key[:80]!r} is not allowed")
    return kind, key, place, count


def element_of(kind: StorageType) -> Dtype:
    """The dtype of the elements."""
    return DTYPES[kind.element or "uint8"]  # type: ignore[no-any-return]


def check_bounds(offset: Any, size: Any, stride: Any, count: int) -> None:
    """Refuse what is no tensor in a storage of `count` elements: anything but counts, and elements before its beginning or behind its end."""
    if type(offset) is not int or not all(isinstance(numbers, tuple) and len(numbers) <= MOST_AXES and all(type(n) is int for n in numbers)
                                          for numbers in (size, stride)) or len(size) != len(stride):
        raise Refused("offset, size and stride of a tensor are integers, one size and one stride for each of at most 64 axes")
    if not all(0 <= n < LARGEST for n in (offset, *size, *stride)) or prod(n for n in size if n) >= LARGEST:
        raise Refused("offset, size or stride of a tensor are negative or too large")
    last = offset + sum((n - 1) * s for n, s in zip(size, stride))
    if all(size) and last >= count or offset > count:
        raise Refused(f"a tensor of size {list(size)}, stride {list(stride)} and offset {offset} does not fit into a storage of {count} elements")


def tensor_of(typed: Any, offset: Any, size: Any, stride: Any, element: Any = None) -> Any:
    """A tensor in a storage. Refused unless every element of it lies there."""
    if type(typed) is not TypedStorage:
        raise Refused("a tensor is made of a storage")
    dtype, untyped = typed.dtype if element is None else element, typed._untyped_storage
    nbytes = untyped.nbytes()
    check_bounds(offset, size, stride, nbytes // dtype.itemsize)
    if nbytes % dtype.itemsize:
        raise Refused(f"a storage of {nbytes} bytes holds no whole number of {dtype} elements")
    if getattr(typed, "turned", False) and dtype.itemsize > 1:
        raise Refused(f"{dtype} elements of a machine with the other order of bytes are not read")
    if dtype.name == "bool" and dtype not in untyped._blocks:
        _only_bools(untyped)
    array, storage = untyped.block(dtype)
    if not all(size):
        view = array[:0].reshape(size)
    elif isinstance(array, np.ndarray):
        view = as_strided(array[offset:], size, [s * array.itemsize for s in stride])
    else:
        view = type(storage).xp.as_strided(array, size=size, stride=stride, offset=offset, layout=None, length=array.size)
    return wrap(view, storage)


def _only_bools(untyped: UntypedStorage) -> None:
    """A bool of another value than 0 and 1 is undefined behaviour in C."""
    host = untyped._host()
    if host.size and int(host.max()) > 1:
        untyped.copy_(UntypedStorage._over((host != 0).view(np.uint8)))
