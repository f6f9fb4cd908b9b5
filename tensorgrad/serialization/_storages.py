"""Storages of a file, and tensors on them; all bounds are checked first."""
from __future__ import annotations

import sys
from math import prod
from typing import Any

import numpy as np

from ..api import DTYPES
from ..api.storage_objects import TypedStorage, UntypedStorage, storage_of
from ..core.dispatch import wrap
from ..dtype import dtype as Dtype
from ._allowed import Refused
from ._archive import damaged
from ._map_location import Location
from ._names import UNTYPED, StorageType
from ._options import LoadEndianness, options, own

MOST_AXES, LARGEST, NEWEST = 64, 1 << 62, 10


class Records:
    """The storages of an archive, by their keys: each is read once."""

    PATH, VERSION = "data/{}", "version"

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
        check_version(archive, self.VERSION)

    def of_persistent_id(self, pid: Any) -> TypedStorage:
        """Return the storage that a pickle refers to: ('storage', type, key, place, number of elements)."""
        kind, key, place, count = checked_id(pid, 5)
        element = element_of(kind)
        need, have = count * element.itemsize, self._archive.size(self.PATH.format(key))
        if need != have:
            raise RuntimeError(f"record size ({have} bytes) does not match expected size ({need} bytes = {need} "
                               f"elements * 1 bytes/element) for dtype Byte: the storage {key} is to have {count} "
                               f"{element} elements")
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
        if own.skip_data:
            return np.zeros(self._archive.size(self.PATH.format(key)), np.uint8)
        return np.frombuffer(self._archive.memory(self.PATH.format(key)), np.uint8)


def check_version(archive: Any, record: str = "version") -> None:
    """Raise RuntimeError for an archive of a newer version, or without a version."""
    text = bytes(archive.read(record)) if archive.size(record) < 20 else b"?"
    try:
        version = int(text)
    except ValueError:
        raise damaged(f"Couldn't parse the version {text.decode('ascii', 'replace')} as Long Long.") from None
    if not 1 <= version <= NEWEST:
        raise RuntimeError(f"Attempted to read a PyTorch file with version {version}, but the "
                           f"{'maximum' if version > 0 else 'minimum'} supported version for reading is "
                           f"{NEWEST if version > 0 else 1}.")


def checked_id(pid: Any, length: int) -> tuple[StorageType, str, str, int]:
    """Return the parts of a persistent id. Refused if it is invalid."""
    if not isinstance(pid, tuple) or not length <= len(pid) <= 6 or type(pid[0]) is not str or pid[0] != "storage":
        raise Refused(f"persistent ids are of storages only, this is {type(pid).__name__}")
    kind, key, place, count = pid[1:5]
    if (not isinstance(kind, StorageType) or type(key) is not str or type(place) is not str or type(count) is not int
            or not 0 <= count < LARGEST):
        raise Refused("a storage's persistent id is malformed")
    if not key or len(key) > 255 or len(place) > 255 or any(c in key for c in "/\\") or key in (".", ".."):
        raise Refused(f"the storage key {key[:80]!r}, or its place, is not allowed")
    return kind, key, place, count


def element_of(kind: StorageType) -> Dtype:
    """Return the dtype of the elements."""
    return DTYPES[kind.element or "uint8"]  # type: ignore[no-any-return]


def check_bounds(offset: Any, size: Any, stride: Any, count: int) -> None:
    """Refuse an invalid tensor in a storage of `count` elements: arguments that are no counts, and elements outside
    of the storage."""
    if (type(offset) is not int or not all(isinstance(numbers, tuple) and len(numbers) <= MOST_AXES
                                           and all(type(n) is int for n in numbers)
                                           for numbers in (size, stride)) or len(size) != len(stride)):
        raise Refused("offset, size and stride of a tensor are integers, one size and one stride for each of at most "
                      "64 axes")
    if not all(0 <= n < LARGEST for n in (offset, *size, *stride)) or prod(n for n in size if n) >= LARGEST:
        raise Refused("offset, size or stride of a tensor are negative or too large")
    last = offset + sum((n - 1) * s for n, s in zip(size, stride))
    if all(size) and last >= count or offset > count:
        raise Refused(f"a tensor of size {list(size)}, stride {list(stride)} and offset {offset} does not fit into a "
                      f"storage of {count} elements")


def tensor_of(typed: Any, offset: Any, size: Any, stride: Any, element: Any = None, bits: Any = None) -> Any:
    """Return a tensor in a storage. Refused unless the storage has all its elements.

    bits: flags of a conjugate or negative view.
    """
    if type(typed) is UntypedStorage and element is not None:
        typed = TypedStorage._over(typed, element)
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
    if bits:
        untyped = _turned(typed, dtype, bits)
    array, storage = untyped.block(dtype)
    if not all(size):
        view = array[:0].reshape(size)
    elif isinstance(array, np.ndarray):
        # NumPy checks the bounds again
        view = np.ndarray(size, array.dtype, untyped._line, offset * array.itemsize,
                          [s * array.itemsize for s in stride])
    else:
        view = type(storage).xp.as_strided(array, size=size, stride=stride, offset=offset, layout=None,
                                           length=array.size)
    return wrap(view, storage)


def _turned(typed: Any, dtype: Any, bits: Any) -> Any:
    """Return the conjugate or the negative of a storage, made once.

    PyTorch writes such tensors as their base, with a bit set.
    """
    if type(bits) is not dict or any(key not in ("conj", "neg") or type(value) is not bool
                                     for key, value in bits.items()):
        raise Refused("a tensor's metadata are malformed")
    made = typed.__dict__.setdefault("made", {})
    key = dtype, bits.get("conj", False), bits.get("neg", False)
    if key not in made:
        made[key] = _with_bits(typed, *key)
        if own.later is not None and getattr(typed, "unread", False):       # its values come later in the file
            own.later.append(lambda: made[key].copy_(_with_bits(typed, *key)))
    return made[key]


def _with_bits(typed: Any, dtype: Any, conj: bool, neg: bool) -> UntypedStorage:
    """Return a copy of a storage whose elements are conjugated, negated, or both."""
    whole = wrap(*typed._untyped_storage.block(dtype)).clone()
    whole = whole.conj() if conj else whole
    return storage_of(-whole if neg else whole)


def _only_bools(untyped: UntypedStorage) -> None:
    """Refuse bools other than 0 and 1, which are undefined behaviour in C."""
    host = untyped._host()
    if host.size and int(host.max()) > 1:
        untyped.copy_(UntypedStorage._over((host != 0).view(np.uint8)))
