"""The zip archive that a `.pt` file is: entries stored as they are, each beginning at a multiple of 64 bytes.

    <name>/data.pkl  <name>/.format_version  <name>/.storage_alignment  <name>/byteorder  <name>/data/<key> …  <name>/version  <name>/.data/serialization_id
"""
from __future__ import annotations

import hashlib
import mmap
import struct
import sys
import zipfile
from typing import Any

ALIGNMENT = 64
MOST_ENTRIES = 100_000
ZIP64_FROM = 1 << 31
DAMAGED = ("PytorchStreamReader failed reading zip archive: {0}. If you are seeing this error, there is a high likelihood that your checkpoint file is "
           "corrupted. This can happen if the checkpoint was not saved properly, was transferred incorrectly, or the file was modified after saving.")


def damaged(what: str) -> RuntimeError:
    """The error for an archive that is not as it has to be."""
    return RuntimeError(DAMAGED.format(what))


class Archive:
    """An archive to read from. Everything that it says of itself is checked first."""

    def __init__(self, file: Any, path: Any = None) -> None:
        self._file = file
        file.seek(0, 2)
        self.length = file.tell()
        try:
            self._zip = zipfile.ZipFile(file)
            entries = self._zip.infolist()
        except (zipfile.BadZipFile, ValueError, struct.error, NotImplementedError, OverflowError, UnicodeDecodeError) as error:
            raise damaged(f"failed finding central directory ({error})") from None
        if len(entries) > MOST_ENTRIES:
            raise damaged(f"it has {len(entries)} entries, more than {MOST_ENTRIES}")
        self._entries: dict[str, zipfile.ZipInfo] = {}
        tops = {self._checked(entry) for entry in entries}
        if len(tops) != 1:
            raise damaged("its entries are not in one folder")
        self._top = tops.pop()
        self._map: Any = None
        if path is not None:
            with open(path, "rb") as mapped:
                self._map = mmap.mmap(mapped.fileno(), 0, access=mmap.ACCESS_COPY)

    def _checked(self, entry: zipfile.ZipInfo) -> str:
        name = entry.filename
        parts = name.split("/")
        if name.startswith("/") or "\\" in name or ".." in parts or len(parts) < 2 or "\0" in entry.orig_filename:
            raise damaged(f"the entry name {name!r} is not allowed")
        if name in self._entries:
            raise damaged(f"there are two entries {name!r}")
        if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 0x1:
            raise damaged(f"the entry {name!r} is compressed or encrypted")
        if entry.file_size != entry.compress_size or entry.header_offset + 30 + entry.file_size > self.length:
            raise damaged(f"the entry {name!r} is longer than the file")
        self._entries[name] = entry
        return parts[0]

    def has(self, name: str) -> bool:
        """Whether there is such a record."""
        return f"{self._top}/{name}" in self._entries

    def size(self, name: str) -> int:
        """The length of a record, in bytes."""
        return self._entry(name).file_size

    def _entry(self, name: str) -> zipfile.ZipInfo:
        try:
            return self._entries[f"{self._top}/{name}"]
        except KeyError:
            raise damaged(f"file not found: {self._top}/{name}") from None

    def read(self, name: str) -> bytes:
        """The bytes of a record, its checksum checked."""
        try:
            data = self._zip.read(self._entry(name))
        except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError) as error:
            raise damaged(f"failed reading file {name} ({error})") from None
        if len(data) != self.size(name):
            raise damaged(f"the record {name} is cut off")
        return data

    def memory(self, name: str) -> Any:
        """The bytes of a record to write to: in the mapped file, or else read into memory."""
        if self._map is None:
            return bytearray(self.read(name))
        entry = self._entry(name)
        header = self._map[entry.header_offset:entry.header_offset + 30]
        if len(header) < 30 or header[:4] != b"PK\x03\x04":
            raise damaged(f"the record {name} has no header")
        begin = entry.header_offset + 30 + sum(struct.unpack("<HH", header[26:30]))
        if begin + entry.file_size > self.length:
            raise damaged(f"the record {name} is cut off")
        return memoryview(self._map)[begin:begin + entry.file_size]


def write_archive(file: Any, name: str, data: bytes, storages: list[Any]) -> None:
    """Write the archive of a pickle and the storages that it refers to by their numbers."""
    digest = hashlib.sha1(data, usedforsecurity=False)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        _add(archive, f"{name}/data.pkl", data)
        _add(archive, f"{name}/.format_version", b"1")
        _add(archive, f"{name}/.storage_alignment", str(ALIGNMENT).encode())
        _add(archive, f"{name}/byteorder", sys.byteorder.encode())
        for key, memory in enumerate(storages):
            _add(archive, f"{name}/data/{key}", memory)
            digest.update(str(len(memory)).encode())
        _add(archive, f"{name}/version", b"3\n")
        _add(archive, f"{name}/.data/serialization_id", str(int(digest.hexdigest(), 16) % 10 ** 40).zfill(40).encode())


def _add(archive: zipfile.ZipFile, name: str, data: Any) -> None:
    entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    large = len(data) >= ZIP64_FROM
    begin = archive.fp.tell() + 30 + len(name.encode()) + 4 + (20 if large else 0)  # type: ignore[union-attr]
    padding = -begin % ALIGNMENT
    entry.extra = b"FB" + struct.pack("<H", padding) + b"Z" * padding
    entry.file_size = len(data)
    with archive.open(entry, "w", force_zip64=large) as target:
        target.write(data)
