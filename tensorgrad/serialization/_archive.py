"""The zip archive of a `.pt` file: uncompressed entries, each beginning at a multiple of 64 bytes.

    <name>/data.pkl  <name>/.format_version  <name>/.storage_alignment  <name>/byteorder  <name>/data/<key> …
    <name>/version  <name>/.data/serialization_id

`zipfile` does not check enough, so the reader is our own: the directory and each entry's header must agree, the entries
and the directory must fill the file without an overlap or a gap, and nothing may be longer than the file.
"""
from __future__ import annotations

import mmap
import struct
import sys
import zlib
from typing import Any, NamedTuple

from ._options import options

MOST_ENTRIES = 100_000
LONGEST_COMMENT = 65_535
ZIP64_FROM = 1 << 31
FULL16, FULL32 = 0xFFFF, 0xFFFFFFFF          # the number is in the zip64 record
ENCRYPTED, LATER = 0x1, 0x8                  # flags: encrypted; sizes follow the data
DESCRIPTOR = 24                              # the most bytes of sizes that follow the data
ALIGNED = 16                                 # bytes: the largest alignment of an element
DAMAGED = ("PytorchStreamReader failed reading zip archive: {0}. If you are seeing this error, there is a high "
           "likelihood that your checkpoint file is corrupted. This can happen if the checkpoint was not saved "
           "properly, was transferred incorrectly, or the file was modified after saving.")


def damaged(what: str) -> RuntimeError:
    """Return the error for a damaged archive."""
    return RuntimeError(DAMAGED.format(what))


class Entry(NamedTuple):
    """A record, as the directory describes it. begin: the offset of its bytes, from its own header."""

    raw: bytes
    header: int
    size: int
    checksum: int
    begin: int = 0


class Archive:
    """An archive to read, which begins at the file's current position."""

    def __init__(self, file: Any, path: Any = None) -> None:
        self._file, self._start = file, file.tell()
        file.seek(0, 2)
        self.length = file.tell() - self._start
        self._entries: dict[str, Entry] = {}
        tops = {self._named(entry) for entry in self._directory()}
        if len(tops) != 1:
            raise damaged("its entries are not in one folder")
        self._top = tops.pop()
        self._lay_out()
        self._map: Any = None
        if path is not None and options.mmap_flags == getattr(mmap, "MAP_SHARED", 1):
            with open(path, "r+b") as mapped:
                self._map = mmap.mmap(mapped.fileno(), 0, access=mmap.ACCESS_WRITE)
        elif path is not None:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)

    # the directory

    def _at(self, begin: int, size: int, what: str) -> bytes:
        if begin < 0 or begin + size > self.length:
            raise damaged(f"{what} lies outside the file")
        self._file.seek(self._start + begin)
        data: bytes = self._file.read(size)
        if len(data) != size:
            raise damaged(f"{what} is cut off")
        return data

    def _directory(self) -> list[Entry]:
        begin = max(self.length - LONGEST_COMMENT - 22, 0)
        tail = self._at(begin, self.length - begin, "its end")
        end = tail.rfind(b"PK\5\6", 0, len(tail) - 18)
        if end < 0:
            raise damaged("failed finding central directory")
        disk, first, here, count, size, at, comment = struct.unpack_from("<4H2LH", tail, end + 4)
        if end + 22 + comment != len(tail):
            raise damaged("something follows its end")
        stop = begin + end
        if (stop >= 20 and self._at(stop - 20, 4, "its end") == b"PK\6\7" or FULL16 in (here, count)
                or FULL32 in (size, at)):
            small = disk, first, here, count, size, at
            stop, disk, first, here, count, size, at = self._large_directory(stop)
            if any(a not in (b, full) for a, b, full in zip(small, (disk, first, here, count, size, at),
                                                            [FULL16] * 4 + [FULL32] * 2)):
                raise damaged("its two ends say different things")
        if disk or first or here != count or at + size != stop:
            raise damaged("its central directory is not where it says")
        if count > MOST_ENTRIES:
            raise damaged(f"it has {count} entries, more than {MOST_ENTRIES}")
        data, entries, place = self._at(at, size, "its central directory"), [], 0
        for _ in range(count):
            if data[place:place + 4] != b"PK\1\2" or place + 46 > size:
                raise damaged("its central directory is malformed")
            fields = struct.unpack_from("<6H3L5H2L", data, place + 4)
            after = place + 46 + sum(fields[9:12])
            if after > size:
                raise damaged("its central directory is malformed")
            entries.append(self._entry_of(fields, data[place + 46:after]))
            place = after
        if place != size:
            raise damaged("its central directory is longer than its entries")
        self._end = at
        return entries

    def _large_directory(self, end: int) -> tuple[int, ...]:
        locator = self._at(end - 20, 20, "its zip64 locator")
        magic, disk, at, disks = struct.unpack("<4sLQL", locator)
        if magic != b"PK\6\7" or disk or disks > 1 or at + 56 > end - 20:
            raise damaged("its zip64 record is malformed")
        fields = struct.unpack("<4sQ2H2L4Q", self._at(at, 56, "its zip64 record"))
        if fields[0] != b"PK\6\6" or at + 12 + fields[1] != end - 20:
            raise damaged("its zip64 record is malformed")
        return (at, *fields[4:])

    def _entry_of(self, fields: tuple[int, ...], text: bytes) -> Entry:
        _, _, flags, method, _, _, checksum, packed, size, name, extra, _, disk, _, _, header = fields
        raw = text[:name]
        large = iter(_large_numbers(text[name:name + extra]))
        try:
            size, packed, header = (next(large) if number == FULL32 else number for number in (size, packed, header))
        except RuntimeError:        # StopIteration inside a generator
            raise damaged(f"the entry {raw!r:.80} is malformed") from None
        if method or flags & ENCRYPTED:
            raise damaged(f"the entry {raw!r:.80} is compressed or encrypted")
        if size != packed or disk not in (0, FULL16) or header + 30 + name + size > self.length:
            raise damaged(f"the entry {raw!r:.80} is longer than the file")
        return Entry(raw, header, size, checksum)

    def _named(self, entry: Entry) -> str:
        try:
            name = entry.raw.decode("utf-8")
        except UnicodeDecodeError:
            name = entry.raw.decode("latin1")
        parts = name.split("/")
        if name.startswith("/") or "\\" in name or ".." in parts or len(parts) < 2 or "\0" in name:
            raise damaged(f"the entry name {name!r:.80} is not allowed")
        if name in self._entries:
            raise damaged(f"there are two entries {name!r:.80}")
        self._entries[name] = entry
        return parts[0]

    def _lay_out(self) -> None:
        """Find the offsets of the records, which must follow each other without a gap; a data descriptor may follow
        a record."""
        at = after = 0
        for name, entry in sorted(self._entries.items(), key=lambda item: item[1].header):
            if not at <= entry.header <= after:
                raise damaged(f"the entry {name!r:.80} "
                              f"{'overlaps another' if entry.header < at else 'does not follow the one before'}")
            begin, flags = self._begin(name, entry)
            self._entries[name] = entry._replace(begin=begin)
            at = begin + entry.size
            after = at + DESCRIPTOR * bool(flags & LATER)
        if not at <= self._end <= after:
            raise damaged("its central directory does not follow its entries")

    # the records

    def has(self, name: str) -> bool:
        """Return True if there is such a record."""
        return f"{self._top}/{name}" in self._entries

    def size(self, name: str) -> int:
        """The length of a record, in bytes."""
        return self._entry(name).size

    def names(self) -> list[str]:
        """Return the names of the records, in the order of the directory."""
        return [name.removeprefix(f"{self._top}/") for name in self._entries]

    def begin_of(self, name: str) -> int:
        """Return where the bytes of a record begin, from the archive's beginning."""
        return self._entry(name).begin

    def _entry(self, name: str) -> Entry:
        try:
            return self._entries[f"{self._top}/{name}"]
        except KeyError:
            raise damaged(f"file not found: {self._top}/{name:.80}") from None

    def _begin(self, name: str, entry: Entry) -> tuple[int, int]:
        """Return (offset of a record's bytes, flags) from its header.

        RuntimeError if that contradicts the directory.
        """
        magic, _, flags, method, _, _, checksum, packed, size, length, extra = struct.unpack("<4s5H3L2H",
                                                                                             self._at(entry.header, 30,
                                                                                                      f"the record "
                                                                                                      f"{name:.80}"))
        agreed = ((not size and not packed and flags & LATER) or (packed, size, checksum)
                  == (entry.size, entry.size, entry.checksum) or FULL32 in (packed, size))
        if (magic != b"PK\3\4" or method or flags & ENCRYPTED or not agreed
                or self._at(entry.header + 30, length, "a name") != entry.raw):
            raise damaged(f"the record {name:.80} is another one than the central directory says")
        return entry.header + 30 + length + extra, flags

    def read(self, name: str) -> bytearray:
        """Return the bytes of a record, after verifying its checksum."""
        entry = self._entry(name)
        self._file.seek(self._start + entry.begin)
        data = bytearray(entry.size)
        filled = _fill(self._file, memoryview(data))
        if filled != entry.size:
            raise damaged(f"the record {name:.80} is cut off")
        if options.crc32:
            _check_sum(name, data, entry)
        return data

    def memory(self, name: str) -> Any:
        """Return the writable bytes of a record: in the mapped file, with its checksum verified if `mapped_crc32` is
        set, or else read into memory."""
        if self._map is None:
            return self.read(name)
        entry = self._entry(name)
        begin = self._start + entry.begin
        if begin % ALIGNED:
            return self.read(name)
        mapped = memoryview(self._map)[begin:begin + entry.size]
        if options.mapped_crc32:
            _check_sum(name, mapped, entry)
        return mapped


def _check_sum(name: str, data: Any, entry: Entry) -> None:
    """Raise RuntimeError if the checksum is wrong. 0 is none: PyTorch writes it after `set_crc32_options(False)`."""
    if entry.checksum and zlib.crc32(data) != entry.checksum:
        raise damaged(f"failed reading file {name:.80} (the checksum is wrong)")


def _large_numbers(extra: bytes) -> tuple[int, ...]:
    """The numbers of a zip64 extra field."""
    place = 0
    while place + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, place)
        if kind == 1:
            data = extra[place + 4:place + 4 + length]
            return struct.unpack(f"<{len(data) // 8}Q", data[:len(data) // 8 * 8])
        place += 4 + length
    return ()


def _fill(file: Any, target: memoryview) -> int:
    """Read from a file until the target is full, or the file ends."""
    done = 0
    while done < len(target):
        if hasattr(file, "readinto"):
            got = file.readinto(target[done:]) or 0
        else:
            data = file.read(len(target) - done)
            got = len(data)
            target[done:done + got] = data
        if not got:
            break
        done += got
    return done


def write_archive(file: Any, name: str, data: bytes, storages: list[Any], order: bool = True) -> None:
    """Write the archive of a pickle and the storages that it refers to by number. order: also write the byte order."""
    writer = ArchiveWriter(file, name)
    with writer.archive:
        writer.add("data.pkl", data)
        writer.add(".format_version", b"1")
        writer.add(".storage_alignment", str(options.alignment).encode())
        if order:
            writer.add("byteorder", sys.byteorder.encode())
        for key, memory in enumerate(storages):
            writer.add(f"data/{key}", memory)
        writer.finish()


class ArchiveWriter:
    """An archive to write: records in a folder of this name, then `finish`."""

    def __init__(self, file: Any, name: str) -> None:
        import hashlib
        import zipfile  # imported late: it imports compression modules as well
        self.name, self._sizes = name, hashlib.sha1(usedforsecurity=False)
        self.archive = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED)

    def add(self, name: str, data: Any) -> None:
        """Write a record."""
        _add(self.archive, f"{self.name}/{name}", data)
        if name == "data.pkl":
            self._sizes.update(data)
        elif name.startswith("data/"):
            self._sizes.update(str(len(data)).encode())
        elif name.endswith((".py", ".pkl")):
            self._sizes.update(data)

    def finish(self, version: str = "version") -> None:
        """Write the version, a number that depends on the contents, and the directory."""
        self.add(version, b"3\n")
        number = int(self._sizes.hexdigest(), 16) % 10 ** 40
        self.add(".data/serialization_id", str(number).zfill(40).encode())
        self.archive.close()


def _add(archive: Any, name: str, data: Any) -> None:
    """Write an entry. Its checksum is 0 after `set_crc32_options(False)`, which `zipfile` cannot leave out itself."""
    from zipfile import ZipInfo
    entry = ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    large = len(data) >= ZIP64_FROM
    entry.header_offset = archive.fp.tell()
    padding = -(entry.header_offset + 30 + len(name.encode()) + 4 + (20 if large else 0)) % options.alignment
    entry.extra = b"FB" + struct.pack("<H", padding) + b"Z" * padding
    entry.external_attr = 0o600 << 16
    entry.file_size = entry.compress_size = len(data)
    entry.CRC = zlib.crc32(data) if options.crc32 else 0
    archive.fp.write(entry.FileHeader(large))
    archive.fp.write(data)
    archive.filelist.append(entry)
    archive.NameToInfo[name] = entry
    archive.start_dir = archive.fp.tell()
