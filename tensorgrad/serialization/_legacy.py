"""Files of PyTorch before 1.6: four pickles, the keys of the storages, and the storages in sequence.

    magic number, protocol, system, object, keys; then for each key an int64 number of elements, and their bytes
"""
from __future__ import annotations

import pickle
import struct
import sys
from typing import Any

import numpy as np

from ..api.storage_objects import TypedStorage, UntypedStorage
from ._allowed import Refused
from ._archive import _fill, damaged
from ._map_location import Location
from ._options import own
from ._storages import LARGEST, checked_id, element_of
from ._unpickler import RestrictedUnpickler

MAGIC, PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
SYSTEM = {"protocol_version": PROTOCOL, "little_endian": sys.byteorder == "little",
          "type_sizes": {"short": 2, "int": 4, "long": 4}}


def write(file: Any, data: bytes, storages: list[Any], sizes: list[int], protocol: int) -> None:
    """Write the pickle of an object, and the storages that it refers to by their numbers. sizes: of their elements."""
    for head in (MAGIC, PROTOCOL, SYSTEM):
        file.write(pickle.dumps(head, protocol))
    file.write(data)
    file.write(pickle.dumps([str(key) for key in range(len(storages))], protocol))
    for memory, itemsize in zip(storages, sizes):
        file.write(struct.pack("<q", len(memory) // itemsize))
        file.write(memory)


def read(file: Any, location: Location, unpickle: Any) -> Any:
    """Read the object. unpickle: the function that reads a pickle and runs its code, None for the restricted reader."""
    start = file.tell()
    file.seek(0, 2)
    reader = Reader(file, location, unpickle, file.tell() - start)
    file.seek(start)
    try:
        magic = reader.pickle()
    except (pickle.UnpicklingError, EOFError, ValueError, KeyError, IndexError, AttributeError) as error:
        raise pickle.UnpicklingError(f"this is no file of tensors: {error}") from None
    if type(magic) is not int or magic != MAGIC:
        raise RuntimeError("Invalid magic number; corrupt file?")
    protocol = reader.pickle()
    if type(protocol) is not int or protocol != PROTOCOL:
        shown = protocol if type(protocol) is int and abs(protocol) < LARGEST else type(protocol).__name__
        raise RuntimeError(f"Invalid protocol version: {shown}")
    system = reader.pickle()
    if isinstance(system, dict) and system.get("little_endian", system.get(b"little_endian", True)) is not True:
        raise RuntimeError("the file was written on a machine with the other order of bytes")
    result = reader.pickle()
    keys = reader.pickle()
    keys = [text_of(key) for key in keys] if type(keys) is list else keys
    if type(keys) is not list or not all(type(key) is str for key in keys) or sorted(keys) != sorted(reader.storages):
        raise damaged("its list of storages is not that of its tensors")
    for key in keys:
        reader.fill(key)
    reader.finish()
    return result


def text_of(value: Any) -> Any:
    """Return the text of bytes, as which files of Python 2 are read with encoding="bytes"; others as they are."""
    return value.decode("latin1") if type(value) is bytes else value


class Reader:
    """Reads pickles from a file, and the storages that they refer to."""

    def __init__(self, file: Any, location: Location, unpickle: Any, length: int, names: Any = None) -> None:
        self.file, self.location, self.unpickle, self.length, self.names = file, location, unpickle, length, names
        # key → (the storage that is read into, the storage on its device)
        self.storages: dict[str, tuple[UntypedStorage, TypedStorage]] = {}
        self.views: dict[tuple[str, str], TypedStorage] = {}
        self.promised = 0
        self.pending: list[Any] = []        # what to do once the storages are filled

    def pickle(self) -> Any:
        """Read the next pickle of the file."""
        own.later = self.pending
        try:
            if self.unpickle is None:
                return RestrictedUnpickler(self.file, self.storage, self.length, self.names).load()
            return self.unpickle(self.file, self.storage)
        finally:
            own.later = None

    def finish(self) -> None:
        """Fill the sparse tensors, once the storages of their indices are read."""
        for fill in self.pending:
            fill()

    def storage(self, pid: Any) -> Any:
        """Return the storage that a pickle refers to; its bytes come later in the file."""
        if isinstance(pid, tuple):
            pid = tuple(map(text_of, pid))
        if self.unpickle is not None and isinstance(pid, tuple) and pid and pid[0] == "module":
            return pid[1]           # a class, which is stored with its source
        kind, key, place, count = checked_id(pid, 5)
        element = element_of(kind)
        if key not in self.storages:
            self.promise(count * element.itemsize, key)
            memory = UntypedStorage(count * element.itemsize)
            typed = TypedStorage._over(self.location.place(memory, place), element)
            typed.unread = True     # type: ignore[attr-defined]
            self.storages[key] = memory, typed
        whole = self.storages[key][1]
        if whole.dtype is not element or whole.size() != count:
            raise Refused(f"the storage {key} is of two types or lengths")
        return whole if len(pid) == 5 or pid[5] is None else self.view(whole, key, pid[5])

    def promise(self, nbytes: int, key: Any) -> None:
        """Add to the bytes that storages claim. Refused if the sum exceeds the file's length."""
        self.promised += nbytes
        if not 0 <= nbytes or self.promised > self.length:
            raise Refused(f"the storage {key} is longer than the file")

    def view(self, whole: TypedStorage, key: str, described: Any) -> TypedStorage:
        """Return a part of a storage that is a storage itself, as in the oldest files: (key, offset, number of
        elements)."""
        if (type(described) is not tuple or len(described) != 3
                or type(described[0]) not in (str, bytes) or len(described[0]) > 255):
            raise Refused("the part of a storage is malformed")
        name, offset, count = text_of(described[0]), *described[1:]
        if (key, name) not in self.views:
            self.views[key, name] = part_of(whole, offset, count)
        return self.views[key, name]

    def fill(self, key: str) -> None:
        """Read the bytes of a storage."""
        memory, typed = self.storages[key]
        size, head = memory.nbytes(), self.file.read(8)
        if len(head) < 8 or struct.unpack("<q", head)[0] * typed.element_size() != size:
            raise damaged(f"the storage {key} has another length than its tensors say")
        data = bytearray(size)
        if _fill(self.file, memoryview(data)) != size:
            raise damaged(f"the storage {key} is cut off")
        if not own.skip_data:
            if typed.dtype.name == "bool" and size and max(data) > 1:
                data = bytearray((np.frombuffer(data, np.uint8) != 0).tobytes())
            typed._untyped_storage.copy_(UntypedStorage._over(np.frombuffer(data, np.uint8)))


def part_of(whole: TypedStorage, offset: Any, count: Any) -> TypedStorage:
    """Return a storage of some elements of another, which shares its memory."""
    if type(offset) is not int or type(count) is not int or offset < 0 or count < 0 or offset + count > whole.size():
        raise Refused("the part of a storage lies outside it")
    itemsize = whole.element_size()
    return TypedStorage._over(whole._untyped_storage[offset * itemsize:(offset + count) * itemsize], whole.dtype)
