"""Files of PyTorch before 1.6: four pickles, the keys of the storages, and the storages one after the other.

    magic number, protocol, system, object, keys; then for each key an int64 number of elements, and their bytes
"""
from __future__ import annotations

import pickle
import struct
import tarfile
from typing import Any

import numpy as np

from ._archive import damaged
from ._storages import Location, TypedStorage, UntypedStorage, checked_id, element_of
from ._unpickler import Refused, RestrictedUnpickler

MAGIC, PROTOCOL = 0x1950A86A20F9469CFC6C, 1001


def read(file: Any, location: Location, module: Any) -> Any:
    """The object. module: the pickle module to run it with, None to run nothing."""
    start = file.tell()
    if tarfile.is_tarfile(file):
        raise RuntimeError("this file is in the tar format of PyTorch before 0.1.10: open it with PyTorch and save it again")
    file.seek(0, 2)
    length = file.tell()
    file.seek(start)
    reader = _Reader(file, location, module, length)
    try:
        magic = reader.pickle()
    except (pickle.UnpicklingError, EOFError, ValueError, KeyError, IndexError, AttributeError) as error:
        raise pickle.UnpicklingError(f"this is no file of tensors: {error}") from None
    if magic != MAGIC:
        raise RuntimeError("Invalid magic number; corrupt file?")
    if (protocol := reader.pickle()) != PROTOCOL:
        raise RuntimeError(f"Invalid protocol version: {protocol}")
    reader.pickle()     # the byte order and the sizes of C's types on the machine that wrote it
    result = reader.pickle()
    keys = reader.pickle()
    if type(keys) is not list or sorted(map(str, keys)) != sorted(reader.storages):
        raise damaged("its list of storages is not that of its tensors")
    for key in keys:
        reader.fill(key)
    return result


class _Reader:
    def __init__(self, file: Any, location: Location, module: Any, length: int) -> None:
        self.file, self.location, self.module, self.length = file, location, module, length
        self.storages: dict[str, tuple[UntypedStorage, Any, Any, str]] = {}

    def pickle(self) -> Any:
        """The next pickle of the file."""
        if self.module is None:
            return RestrictedUnpickler(self.file, self.storage).load()
        from . import unpickled
        return unpickled(self.file, self.storage, self.module)

    def storage(self, pid: Any) -> TypedStorage:
        """The storage that a pickle refers to; its bytes come later in the file."""
        if isinstance(pid, tuple) and pid and isinstance(pid[0], bytes):
            pid = (pid[0].decode("ascii"), *pid[1:])
        kind, key, place, count = checked_id(pid, 5)
        if len(pid) > 5 and pid[5] is not None:
            raise Refused("views of storages are not supported")
        element = element_of(kind)
        if key not in self.storages:
            if count * element.itemsize > self.length:
                raise Refused(f"the storage {key} is longer than the file")
            memory = UntypedStorage(np.zeros(count * element.itemsize, np.uint8))
            self.storages[key] = memory, self.location.place(memory, place), element, place
        return TypedStorage(self.storages[key][1], element)

    def fill(self, key: Any) -> None:
        """Read the bytes of a storage."""
        memory, placed, element, _ = self.storages[str(key)]
        head = self.file.read(8)
        size = memory.nbytes()
        if len(head) < 8 or struct.unpack("<q", head)[0] * element.itemsize != size:
            raise damaged(f"the storage {key} has another length than its tensors say")
        data = self.file.read(size)
        if len(data) != size:
            raise damaged(f"the storage {key} is cut off")
        memory.bytes[...] = np.frombuffer(data, np.uint8)
        for array, storage in placed.blocks.values():
            if not isinstance(array, np.ndarray):
                array[...] = type(storage).asarray(memory.bytes.view(element.numpy))
