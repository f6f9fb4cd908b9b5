"""Files of PyTorch before 0.1.10: a tar archive of three members.

    storages    how many; for each the pickle of (key, place, type), an int64 number of elements, their bytes; then the
    pickle of the parts of storages that
                are storages themselves: [(key, key of the whole, offset, number of elements)]
    tensors     how many; for each the pickle of (key, key of the storage, type), int32 ndim, 4 bytes of nothing, int64
    sizes, strides and offset
    pickle      the object, whose tensors are persistent ids: their keys as text
"""
from __future__ import annotations

import io
import struct
from typing import Any

from ..api.storage_objects import ELEMENTS, TypedStorage, UntypedStorage
from ._allowed import Refused
from ._archive import _fill, damaged
from ._legacy import Reader, part_of, text_of
from ._map_location import Location
from ._names import StorageType
from ._storages import LARGEST, MOST_AXES, element_of, tensor_of

BLOCK, MOST_MEMBERS, MOST_ITEMS = 512, 100, 1_000_000
TENSOR_TYPES = {("torch", name.replace("Storage", "Tensor")): StorageType("torch", name, element)
                for name, element in ELEMENTS.items()}


def is_tar(head: bytes) -> bool:
    """Return True if a file with this beginning is a tar archive."""
    return len(head) >= BLOCK and head[257:262] == b"ustar"


def read(file: Any, location: Location, unpickle: Any) -> Any:
    """Read the object. unpickle: the function that reads a pickle and runs its code, None for the restricted reader."""
    members = _members(file)
    if missing := {"storages", "tensors", "pickle"} - members.keys():
        raise damaged(f"the tar archive has no member {sorted(missing)[0]}")
    found: dict[int, Any] = {}
    _read_storages(_reader(members["storages"], location, unpickle), found)
    _read_tensors(_reader(members["tensors"], location, unpickle), found)
    last = _reader(members["pickle"], location, unpickle)

    def named(pid: Any) -> Any:
        if unpickle is not None and isinstance(pid, tuple):
            return pid[0]           # a class, with the text of its source
        pid = text_of(pid)
        if (type(pid) is not str or len(pid) > 20 or not pid.isascii() or not pid.removeprefix("-").isdigit()
                or int(pid) not in found):
            raise Refused("a persistent id is that of no tensor or storage")
        return found[int(pid)]
    last.storage = named  # type: ignore[method-assign]
    result = last.pickle()
    last.finish()
    return result


def _reader(data: bytes, location: Location, unpickle: Any) -> Reader:
    return Reader(io.BytesIO(data), location, unpickle, len(data), TENSOR_TYPES)


def _members(file: Any) -> dict[str, bytes]:
    """Return the regular files of a tar archive by name."""
    members: dict[str, bytes] = {}
    start = file.tell()
    left = file.seek(0, 2) - start
    file.seek(start)
    for _ in range(MOST_MEMBERS):
        head = file.read(BLOCK)
        left -= BLOCK
        if len(head) < BLOCK or not any(head):
            return members
        try:
            size, checksum = (int(head[a:b].strip(b" \0") or b"0", 8) for a, b in ((124, 136), (148, 156)))
        except ValueError:
            raise damaged("a header of the tar archive is malformed") from None
        if sum(head[:148]) + sum(head[156:]) + 8 * 32 != checksum or not 0 <= size <= left:
            raise damaged("a header of the tar archive is malformed")
        data = file.read(size)
        if len(data) != size:
            raise damaged("the tar archive is cut off")
        padding = -size % BLOCK
        file.read(padding)
        left -= size + padding
        name = head[:100].rstrip(b"\0").decode("latin1").removeprefix("./")
        if head[156:157] in (b"0", b"\0"):
            if name in members:
                raise damaged(f"there are two members {name!r}")
            members[name] = data
    raise damaged(f"the tar archive has more than {MOST_MEMBERS} members")


def _count(number: Any) -> int:
    if type(number) is not int or not 0 <= number <= MOST_ITEMS:
        raise Refused("a number of items is malformed")
    return number


def _described(reader: Reader, found: dict[int, Any]) -> tuple[Any, ...]:
    item = reader.pickle()
    right = isinstance(item, (tuple, list)) and len(item) == 3 and type(item[0]) is int and abs(item[0]) < LARGEST
    if not right or item[0] in found:
        raise Refused("the description of a tensor or storage is malformed")
    return tuple(item)


def _read_storages(reader: Reader, found: dict[int, Any]) -> None:
    for _ in range(_count(reader.pickle())):
        key, place, kind = map(text_of, _described(reader, found))
        if reader.unpickle is not None and not isinstance(kind, StorageType):
            kind = TENSOR_TYPES["torch", kind.__name__.replace("Storage", "Tensor")]
        if not isinstance(kind, StorageType) or type(place) is not str:
            raise Refused("the description of a storage is malformed")
        (count,) = struct.unpack("<q", _exactly(reader, 8))
        element = element_of(kind)
        reader.promise(count * element.itemsize, key)
        untyped = UntypedStorage(count * element.itemsize)
        if _fill(reader.file, memoryview(untyped._line)) != untyped.nbytes():
            raise damaged("a storage is cut off")
        found[key] = TypedStorage._over(reader.location.place(untyped, place), element)
    parts = reader.pickle()
    if (not isinstance(parts, (list, tuple))
            or not all(isinstance(part, (list, tuple)) and len(part) == 4 and type(part[0]) is int
                       and type(part[1]) is int
                       for part in parts)):
        raise Refused("the parts of storages are malformed")
    for key, whole, offset, count in parts:
        if key in found or whole not in found:
            raise Refused("the part of a storage is malformed")
        found[key] = part_of(found[whole], offset, count)


def _read_tensors(reader: Reader, found: dict[int, Any]) -> None:
    for _ in range(_count(reader.pickle())):
        key, storage, _ = _described(reader, found)
        (ndim,) = struct.unpack("<i4x", _exactly(reader, 8))
        if not 0 <= ndim <= MOST_AXES or type(storage) is not int or not isinstance(found.get(storage), TypedStorage):
            raise Refused("the description of a tensor is malformed")
        *numbers, offset = struct.unpack(f"<{2 * ndim + 1}q", _exactly(reader, 8 * (2 * ndim + 1)))
        found[key] = tensor_of(found[storage], offset, tuple(numbers[:ndim]), tuple(numbers[ndim:]))


def _exactly(reader: Reader, size: int) -> bytes:
    data: bytes = reader.file.read(size)
    if len(data) != size:
        raise damaged("the tar archive is cut off")
    return data
