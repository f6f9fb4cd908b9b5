"""Options of reading and writing.

https://pytorch.org/docs/stable/notes/serialization.html#torch-serialization-config
"""
from __future__ import annotations

import enum
import mmap
import threading
from typing import Any

MAP_PRIVATE, MAP_SHARED = getattr(mmap, "MAP_PRIVATE", 2), getattr(mmap, "MAP_SHARED", 1)


class Options:
    """The options and their defaults."""

    endianness: LoadEndianness | None = None
    mmap_flags: int = MAP_PRIVATE
    crc32: bool = True
    mmap: bool = False
    mapped_crc32: bool = False  # verify mapped records as well, which reads them entirely
    alignment: int = 64         # of written records
    offsets: bool = False       # `alignment` and `offsets` exist in PyTorch, and have no effect here
    pinned: bool = False


class LoadEndianness(enum.Enum):
    """The byte order of files that do not record it. https://pytorch.org/docs → torch.serialization.LoadEndianness"""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class OfThread(threading.local):
    """The options that are per thread."""

    skip_data: bool = False     # values are left out
    materialize_fake_tensors: bool = False      # and fake tensors are written as real ones
    later: list[Any] | None = None      # what to do once the values of the tensors are read, if they come later
    encoding: str = "utf-8"     # of the texts of Python 2; "bytes" keeps them as bytes


options, own = Options(), OfThread()


def get_default_load_endianness() -> LoadEndianness | None:
    """Return the byte order of files that do not record it; None: this machine's.
    https://pytorch.org/docs → torch.serialization.get_default_load_endianness
    """
    return options.endianness


def set_default_load_endianness(endianness: Any) -> None:
    """Set the byte order of files that do not record it.
    https://pytorch.org/docs → torch.serialization.set_default_load_endianness
    """
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    options.endianness = endianness


def get_crc32_options() -> bool:
    """Return True if checksums are written, and verified when a file is read.
    https://pytorch.org/docs → torch.serialization.get_crc32_options
    """
    return options.crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Set whether checksums are written, and verified on reading: files without them are written faster.
    https://pytorch.org/docs → torch.serialization.set_crc32_options
    """
    options.crc32 = bool(compute_crc32)


def get_default_mmap_options() -> int:
    """Return mmap.MAP_PRIVATE, or MAP_SHARED, under which writes to a mapped tensor change the file.
    https://pytorch.org/docs → torch.serialization.get_default_mmap_options
    """
    return options.mmap_flags


class _Setting:
    """Sets an option from construction on; as a context manager, until the block ends."""

    _of: Any = options
    _name: str
    _before: Any

    def _set(self, value: Any) -> None:
        self._before = getattr(self._of, self._name)
        setattr(self._of, self._name, value)

    def __enter__(self) -> None:
        """Do nothing: the constructor has set the option."""

    def __exit__(self, *exception: Any) -> None:
        setattr(self._of, self._name, self._before)


class set_default_mmap_options(_Setting):
    """Sets the flags of memory maps: MAP_SHARED lets writes to a mapped tensor change the file, MAP_PRIVATE does not.
    https://pytorch.org/docs → torch.serialization.set_default_mmap_options
    """

    _name = "mmap_flags"

    def __init__(self, flags: int) -> None:
        if flags not in (MAP_PRIVATE, MAP_SHARED):
            raise ValueError(f"Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or "
                             f"mmap.MAP_SHARED, but got {flags}")
        self._set(flags)


class decoding(_Setting):
    """A context manager in which files are read with this encoding of the texts of Python 2."""

    _of, _name = own, "encoding"

    def __init__(self, encoding: Any) -> None:
        self._encoding = encoding

    def __enter__(self) -> None:
        self._set(str(self._encoding))


class skip_data(_Setting):
    """A context manager in which files are read and written without the contents of storages, as zeros; with
    `materialize_fake_tensors`, fake tensors are written as tensors on the devices that they name.
    https://pytorch.org/docs → torch.serialization.skip_data
    """

    _of, _name = own, "skip_data"

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        self._set(True)
        self._materialized, own.materialize_fake_tensors = own.materialize_fake_tensors, self.materialize_fake_tensors

    def __exit__(self, *exception: Any) -> None:
        super().__exit__(*exception)
        own.materialize_fake_tensors = self._materialized
