"""Zip archives of `.pt` files, record by record, under PyTorch's names: `PyTorchFileReader`, `_open_zipfile_writer`, ….

>>> import io
>>> file = io.BytesIO()
>>> with _open_zipfile_writer(file) as archive:
...     archive.write_record("notes", b"text", 4)
>>> _ = file.seek(0)
>>> with _open_zipfile_reader(file) as archive:
...     archive.get_record("notes"), archive.has_record("other")
(b'text', False)
"""
from __future__ import annotations

import io
import os
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from ..api.storage_objects import TypedStorage, UntypedStorage
from ._archive import Archive, ArchiveWriter
from ._atomic import replacing
from ._options import options


class PyTorchFileReader:
    """Reads the records of an archive by name. file: a path, or a file at the archive's beginning."""

    def __init__(self, file: Any) -> None:
        if isinstance(file, (str, os.PathLike)):
            file = open(file, "rb")         # noqa: SIM115
            weakref.finalize(self, file.close)
        self._archive = Archive(file)

    def get_record(self, name: str) -> bytes:
        """Return the bytes of a record. RuntimeError if there is none of that name, or its checksum is wrong."""
        return bytes(self._archive.read(name))

    def has_record(self, name: str) -> bool:
        """Return True if there is a record of that name."""
        return self._archive.has(name)

    def get_all_records(self) -> list[str]:
        """Return the names of the records."""
        return self._archive.names()

    def get_record_offset(self, name: str) -> int:
        """Return where the bytes of a record begin, from the archive's beginning."""
        return self._archive.begin_of(name)

    def get_record_size(self, name: str) -> int:
        """Return the length of a record in bytes."""
        return self._archive.size(name)

    def serialization_id(self) -> str:
        """Return the archive's number, which depends on its contents; "" if it has none."""
        name = ".data/serialization_id"
        return self.get_record(name).decode("ascii", "replace") if self.has_record(name) else ""


class PyTorchFileWriter:
    """Writes the records of an archive to a file."""

    def __init__(self, file: Any, name: str = "archive") -> None:
        self._writer = ArchiveWriter(file, name)
        self._written: list[str] = []

    def write_record(self, name: str, data: Any, size: int) -> None:
        """Write the first `size` bytes of a text, bytes or a storage. RuntimeError if there is such a record."""
        if name in self._written:
            raise RuntimeError(f"Tried to serialize file twice: {name}")
        if isinstance(data, (TypedStorage, UntypedStorage)):
            data = (data if isinstance(data, UntypedStorage) else data.untyped())._host()
        view = memoryview(data.encode() if isinstance(data, str) else data).cast("B")
        if not 0 <= size <= len(view):
            raise RuntimeError(f"the record {name} is to have {size} bytes, and {len(view)} are given")
        self._writer.add(name, view[:size])
        self._written.append(name)

    def write_record_metadata(self, name: str, size: int) -> None:
        """Write a record of zeros, whose bytes are to be filled in later: it has no checksum."""
        before, options.crc32 = options.crc32, False
        try:
            self.write_record(name, bytes(size), size)
        finally:
            options.crc32 = before

    def get_all_written_records(self) -> list[str]:
        """Return the names of the records so far."""
        return list(self._written)

    def archive_name(self) -> str:
        """Return the name of the folder that the records are in."""
        return self._writer.name

    def write_end_of_file(self) -> None:
        """Write the version, the number of the contents and the directory."""
        self._writer.finish(".data/version" if ".data/extern_modules" in self._written else "version")


def _is_zipfile(f: Any) -> bool:
    """Return True if a file continues with the beginning of a zip archive; its position is kept."""
    start = f.tell()
    head = f.read(4)
    f.seek(start)
    return bool(head == b"PK\x03\x04")


def _open_file_like(name_or_buffer: Any, mode: str) -> AbstractContextManager[Any]:
    """Open a path, or take a file as it is: a file that is given is not closed."""
    if isinstance(name_or_buffer, (str, os.PathLike)):
        return open(name_or_buffer, mode)
    if "w" in mode:
        return _flushing(name_or_buffer)
    if "r" in mode:
        return nullcontext(name_or_buffer)
    raise RuntimeError(f"Expected 'r' or 'w' in mode but got {mode}")


@contextmanager
def _flushing(file: Any) -> Iterator[Any]:
    yield file
    file.flush()


@contextmanager
def _open_zipfile_reader(name_or_buffer: Any) -> Iterator[PyTorchFileReader]:
    """Yield the reader of an archive, in a file or at a path."""
    with _open_file_like(name_or_buffer, "rb") as file:
        yield PyTorchFileReader(file)


@contextmanager
def _open_zipfile_writer(name_or_buffer: Any) -> Iterator[PyTorchFileWriter]:
    """Yield the writer of an archive to a file, or to a path, whose file is replaced once the archive is complete."""
    path = isinstance(name_or_buffer, (str, os.PathLike))
    if not path and not hasattr(name_or_buffer, "write"):
        raise AttributeError("Buffer must have a write method")
    buffer = io.BytesIO()
    name = os.path.splitext(os.path.basename(os.fspath(name_or_buffer)))[0] if path else "archive"
    writer = PyTorchFileWriter(buffer, name)
    yield writer
    writer.write_end_of_file()
    with replacing(name_or_buffer) if path else _flushing(name_or_buffer) as file:
        file.write(buffer.getbuffer())
