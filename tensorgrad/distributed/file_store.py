"""A dictionary in a file that the ranks of one machine share. https://pytorch.org/docs → torch.distributed.FileStore

The file is a log of the requests that changed values, each with a checksum. Whoever asks locks the file, reads what is
new there, and appends. A file that is not such a log is refused.
"""
from __future__ import annotations

import os
import time
import weakref
import zlib
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

from . import wire_protocol
from .errors import DistStoreError
from .stores import WAITING, Request, Store, Values, milliseconds, rooted, seconds, shown

__all__ = ["FileStore"]

MAGIC = b"tensorgrad store 1\n"
READS = WAITING.keys() - {Request.POP} | {Request.CHECK, Request.COUNT, Request.KEYS, Request.LENGTH}
# how many have the file open, how many had it; other keys begin with "/"
USERS, ENDED = b"efcount/", b"efended/"


class FileStore(Store):
    """A dictionary in a file. https://pytorch.org/docs → torch.distributed.FileStore

    The last of `world_size` stores removes the file when it goes; with `world_size` -1 it stays. Errors: DistStoreError
    if the file holds something else.

    >>> import os, tempfile
    >>> from tensorgrad.distributed import FileStore
    >>> path = os.path.join(tempfile.mkdtemp(), "store")
    >>> store = FileStore(path, 1)
    >>> store.set("lr", "0.1"); store.get("lr")
    b'0.1'
    """

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        self._path, self._world_size = os.fspath(file_name), world_size
        self._state = _Log(self._path)
        try:
            self._request(Request.ADD, [USERS, b"1"])
        except BaseException:
            self._state.close()
            raise
        self._pid = os.getpid()
        weakref.finalize(self, _leave, self._state, world_size)

    @property
    def path(self) -> str:
        """The name of the file."""
        return self._path

    def ask(self, request: Request, fields: list[bytes], timeout: timedelta | None = None) -> list[bytes]:
        fields = rooted(request, fields)
        timeout = self._timeout if timeout is None else timeout
        end, pause = time.monotonic() + seconds(timeout), 0.001
        while True:
            missing, answer = self._request(request, fields)
            if not missing:
                return [key[1:] for key in answer if key[:1] == b"/"] if request == Request.KEYS else answer
            if time.monotonic() >= end:
                what = (f"Timeout waiting for key: {missing[0][1:].decode(errors='replace')} after "
                        f"{milliseconds(timeout)} ms")
                raise DistStoreError(what if request != Request.WAIT
                                     else f"Wait timeout\nafter {milliseconds(timeout)}ms, keys: {shown(missing)}")
            time.sleep(min(pause, max(0.0, end - time.monotonic())))
            pause = min(1.5 * pause, 0.02)

    def _request(self, request: Request, fields: list[bytes]) -> tuple[list[bytes], list[bytes]]:
        """Return the keys that are missing, or the answer."""
        with self._state.locked() as values:
            missing = values.missing(request, fields)
            if missing:
                return missing, []
            answer = values.answer(request, fields)
            if request not in READS:
                self._state.append(request, fields)
            return [], answer

    def has_extended_api(self) -> bool:
        """Return True if there are append, multi_get and multi_set: always."""
        return True


class _Log:
    """The file, and the values that its requests come to."""

    def __init__(self, path: str) -> None:
        self.path, self.values, self.end = path, Values(), 0
        self._file: Any = None
        self._pid = 0

    @contextmanager
    def locked(self) -> Any:
        """Lock the file, and read what others have appended."""
        # a lock belongs to an opened file, which a forked child would share
        if self._file is None or self._pid != os.getpid():
            self.close()
            self._file, self._pid = self._opened(), os.getpid()
        _lock(self._file)
        try:
            self._read()
            yield self.values
        finally:
            _unlock(self._file)

    def _opened(self) -> Any:
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        try:
            return open(os.open(self.path, flags, 0o600), "r+b", buffering=0)
        except OSError as error:
            raise DistStoreError(f"The file {self.path!r} of a store cannot be opened: {error.strerror}") from None

    def _read(self) -> None:
        self._file.seek(self.end)
        data = self._file.read()
        if self.end == 0 and not data:
            self._file.write(MAGIC)
            self.end = len(MAGIC)
            return
        at = 0
        if self.end == 0:
            if not data.startswith(MAGIC):
                raise self._broken("does not begin as one")
            at = len(MAGIC)
        while at < len(data):
            at = self._apply(data, at)
        self.end += at

    def _apply(self, data: bytes, at: int) -> int:
        """Take the request at a place; return the place after it."""
        head = at + 2 * wire_protocol.SIZE.size
        try:
            checksum, size = (wire_protocol.SIZE.unpack_from(data, at)[0],
                              wire_protocol.SIZE.unpack_from(data, at + wire_protocol.SIZE.size)[0])
            body = data[head:head + size]
            if len(body) != size or zlib.crc32(body) != checksum:
                raise ValueError("an entry is damaged")
            request, fields = wire_protocol.split(body)
            if request in READS or self.values.missing(request, fields):
                raise ValueError(f"an entry asks for {request}")
            self.values.answer(request, fields)
        except (ValueError, TypeError, wire_protocol.struct.error) as error:
            raise self._broken(f"at byte {self.end + at}: {error}") from None
        return head + size

    def _broken(self, why: str) -> DistStoreError:
        return DistStoreError(f"The file {self.path!r} is not the log of a store: {why}. Remove it, or name another.")

    def append(self, request: int, fields: list[bytes]) -> None:
        frame = wire_protocol.join(request, fields)
        entry = wire_protocol.SIZE.pack(zlib.crc32(frame[wire_protocol.SIZE.size:])) + frame
        self._file.seek(self.end)
        if self._file.write(entry) != len(entry):
            self._file.truncate(self.end)
            raise DistStoreError(f"The file {self.path!r} of a store cannot be written: the disk is full")
        self.end += len(entry)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _leave(log: _Log, world_size: int) -> None:
    """Count this user out; the last of all removes the file."""
    if log._pid != os.getpid():
        log.close()
        return
    with suppress(OSError, DistStoreError, ValueError):
        with log.locked() as values:
            left = int(values.answer(Request.ADD, [USERS, b"-1"])[0])
            ended = int(values.answer(Request.ADD, [ENDED, b"1"])[0])
            log.append(Request.ADD, [USERS, b"-1"])
            log.append(Request.ADD, [ENDED, b"1"])
            if left == 0 and 0 <= world_size <= ended:
                os.unlink(log.path)
    log.close()


def _lock(file: Any) -> None:
    try:
        import fcntl
    except ImportError:
        import msvcrt
        while True:
            with suppress(OSError):
                file.seek(1 << 40)
                msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)            # type: ignore[attr-defined]
                return
    fcntl.flock(file, fcntl.LOCK_EX)


def _unlock(file: Any) -> None:
    try:
        import fcntl
    except ImportError:
        import msvcrt
        file.seek(1 << 40)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)                   # type: ignore[attr-defined]
        return
    fcntl.flock(file, fcntl.LOCK_UN)
