"""What a program sets for reading and writing. https://pytorch.org/docs/stable/notes/serialization.html#torch-serialization-config"""
from __future__ import annotations

import enum
import mmap
import threading
from typing import Any

MAP_PRIVATE, MAP_SHARED = getattr(mmap, "MAP_PRIVATE", 2), getattr(mmap, "MAP_SHARED", 1)


class Options:
    """The settings."""

    endianness: LoadEndianness | None = None
    mmap_flags: int = MAP_PRIVATE
    crc32: bool = True
    mmap: bool = False
    mapped_crc32: bool = False  # of mapped records too, which are read for it from end to end
    alignment: int = 64         # of the records that are written
    offsets: bool = False       # these two are PyTorch's, and change nothing here
    pinned: bool = False


class LoadEndianness(enum.Enum):
    """The order of bytes of files that do not say it. https://pytorch.org/docs → torch.serialization.LoadEndianness"""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class OfThread(threading.local):
    """The settings that each thread has its own of."""

    skip: bool = False


options, own = Options(), OfThread()


def get_default_load_endianness() -> LoadEndianness | None:
    """The order of bytes of files that do not say it; None: this machine's. https://pytorch.org/docs → torch.serialization.get_default_load_endianness"""
    return options.endianness


def set_default_load_endianness(endianness: Any) -> None:
    """Set the order of bytes of files that do not say it. https://pytorch.org/docs → torch.serialization.set_default_load_endianness"""
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    options.endianness = endianness


def get_crc32_options() -> bool:
    """Whether checksums are compared when a file is read. https://pytorch.org/docs → torch.serialization.get_crc32_options"""
    return options.crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Compare checksums, or not; they are always written. https://pytorch.org/docs → torch.serialization.set_crc32_options"""
    options.crc32 = bool(compute_crc32)


def get_default_mmap_options() -> int:
    """mmap.MAP_PRIVATE, or MAP_SHARED: writing to a mapped tensor writes the file. https://pytorch.org/docs → torch.serialization.get_default_mmap_options"""
    return options.mmap_flags


class _Setting:
    """A setting that holds from now on, or until the end of a `with` block."""

    _of: Any = options
    _name: str
    _before: Any

    def _set(self, value: Any) -> None:
        self._before = getattr(self._of, self._name)
        setattr(self._of, self._name, value)

    def __enter__(self) -> None:
        """The constructor has done it."""

    def __exit__(self, *exception: Any) -> None:
        setattr(self._of, self._name, self._before)


class set_default_mmap_options(_Setting):
    """Whether mapped files are written to. https://pytorch.org/docs → torch.serialization.set_default_mmap_options"""

    _name = "mmap_flags"

    def __init__(self, flags: int) -> None:
        if flags not in (MAP_PRIVATE, MAP_SHARED):
            raise ValueError(f"Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got {flags}")
        self._set(flags)


class skip_data(_Setting):
    """In a `with` block: files are read and written without the contents of storages: zeros. https://pytorch.org/docs → torch.serialization.skip_data"""

    _of, _name = own, "skip"

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        self._set(True)
