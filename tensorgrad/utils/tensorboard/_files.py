"""Event files: records with checksums, written by a thread.

A record is its length, the checksum of the length, the data, the checksum of the data: https://www.tensorflow.org →
TFRecord.
"""
from __future__ import annotations

import atexit
import itertools
import os
import socket
import struct
import threading
import time
from functools import cache
from typing import Any

import numpy as np

from ._wire import Event, Message, SourceMetadata

POLYNOMIAL = 0x82F63B78     # CRC-32C (Castagnoli), the bits reversed
BLOCK = 256


@cache
def _step() -> list[int]:
    """Return the CRC table: the effect of each byte on the checksum."""
    step = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        step = step >> 1 ^ np.where(step & 1, np.uint32(POLYNOMIAL), np.uint32(0))
    return step.tolist()  # type: ignore[no-any-return]


@cache
def _tables() -> tuple[Any, list[list[int]]]:
    """Return tables[i, b], the contribution of byte b at position i of a block to the checksum; and the first four
    as lists."""
    step = np.array(_step(), np.uint32)
    tables = [step]
    for _ in range(BLOCK - 1):
        tables.append(tables[-1] >> 8 ^ step[tables[-1] & 255])
    return np.stack(tables[::-1]), [table.tolist() for table in tables[:-5:-1]]


def crc32c(data: bytes) -> int:
    """Return the checksum CRC-32C. The checksum is linear: the bytes of a block contribute independently, and the
    checksum so far to its first four bytes.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    step, rest, crc = _step(), len(data) % BLOCK, 0xFFFFFFFF
    for byte in data[:rest]:
        crc = step[(crc ^ byte) & 255] ^ crc >> 8
    if len(data) > rest:
        tables, (a, b, c, d) = _tables()
        blocks, places = np.frombuffer(data, np.uint8, offset=rest).reshape(-1, BLOCK), np.arange(BLOCK)
        for start in range(0, len(blocks), 1024):
            for added in np.bitwise_xor.reduce(tables[places, blocks[start:start + 1024]], axis=1).tolist():
                crc = a[crc & 255] ^ b[crc >> 8 & 255] ^ c[crc >> 16 & 255] ^ d[crc >> 24] ^ added
    return crc ^ 0xFFFFFFFF


def _masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", (crc >> 15 | crc << 17) + 0xA282EAD8 & 0xFFFFFFFF)


def record(data: bytes) -> bytes:
    """Return the data as a record, with its length and checksums."""
    length = struct.pack("<Q", len(data))
    return b"".join((length, _masked(length), data, _masked(data)))


_numbers = itertools.count()


class EventFileWriter:
    """Writes events to a new file in a directory.

    A thread, started with the first event, writes events once `max_queue_size` of them wait, or `flush_secs` after the
    first. `flush`, `close` and the end of the program wait for it. After a fork, the child writes to its own file.
    """

    def __init__(self, logdir: str, max_queue_size: int = 10, flush_secs: float = 120,
                 filename_suffix: str = "") -> None:
        self._logdir, self._limit, self._seconds, self._suffix = logdir, max_queue_size, flush_secs, filename_suffix
        self._open()

    def _open(self) -> None:
        os.makedirs(self._logdir, exist_ok=True)
        self._process = os.getpid()
        name = (f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{self._process}.{next(_numbers)}"
                f"{self._suffix}")
        self._file_name = os.path.join(self._logdir, name)
        self._file = open(self._file_name, "wb", buffering=0)     # unbuffered: a forked child inherits no data to write
        self._turn = threading.Condition()
        self._thread: threading.Thread | None = None
        self._waiting: list[bytes] = []
        self._due = 0.0             # the time at which to write waiting events
        self._pressing = self._writing = self._closed = False
        self._error: Exception | None = None
        self._write([Event(wall_time=time.time(), file_version="brain.Event:2",
                           source_metadata=SourceMetadata(writer=__name__)).SerializeToString()])
        atexit.register(self._at_exit)

    def get_logdir(self) -> str:
        """The directory of the file."""
        return self._logdir

    def add_event(self, event: Message) -> None:
        """Queue an event."""
        if not hasattr(event, "SerializeToString"):
            raise TypeError(f"Expected an event_pb2.Event proto,  but got {type(event)}")
        data = event.SerializeToString()
        self._check()
        with self._turn:
            while 0 < self._limit <= len(self._waiting) and self._error is None:
                self._turn.wait()
            self._check()
            if not self._waiting:
                self._due = time.monotonic() + self._seconds
            self._waiting.append(data)
            self._pressing |= 0 < self._limit <= len(self._waiting)
            if self._thread is None and not self._start():
                self._take()
            if self._pressing or len(self._waiting) == 1:
                self._turn.notify_all()

    def flush(self) -> None:
        """Wait until all events are written."""
        self._check()
        with self._turn:
            self._pressing = True
            self._turn.notify_all()
            self._turn.wait_for(lambda: not (self._waiting or self._writing) or self._error is not None)
            self._check()

    def close(self) -> None:
        """Write waiting events, and close the file."""
        if self._closed:
            return
        if self._process == os.getpid():
            with self._turn:
                self._closed = True
                self._turn.notify_all()
            if self._thread is not None:
                self._thread.join()
        self._closed = True
        self._file.close()
        atexit.unregister(self._at_exit)

    def reopen(self) -> None:
        """After `close`, write to a new file in the same directory."""
        if self._closed:
            self._open()

    def _at_exit(self) -> None:
        if self._process == os.getpid():
            self.close()

    def _check(self) -> None:
        if self._closed:
            raise OSError("Writer is closed")
        if self._process != os.getpid():
            self._file.close()
            atexit.unregister(self._at_exit)
            self._open()
        if self._error is not None:
            raise self._error

    def _start(self) -> bool:
        """Start the thread; False if the interpreter is shutting down and refuses."""
        thread = threading.Thread(target=self._run, name="tensorboard events", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return False
        self._thread = thread
        return True

    def _run(self) -> None:
        with self._turn:
            while not (self._closed and not self._waiting):
                while not self._closed and not (self._pressing and self._waiting):
                    left = self._due - time.monotonic() if self._waiting else threading.TIMEOUT_MAX
                    if left <= 0:
                        break
                    self._turn.wait(min(left, threading.TIMEOUT_MAX))
                self._take()

    def _take(self) -> None:
        """Write waiting events; other threads may add more meanwhile."""
        taken, self._waiting, self._pressing, self._writing = self._waiting, [], False, True
        self._turn.notify_all()
        self._turn.release()
        try:
            self._write(taken)
        except Exception as error:
            self._error = error
        finally:
            self._turn.acquire()
            self._writing = False
            self._turn.notify_all()

    def _write(self, events: list[bytes]) -> None:
        data = memoryview(b"".join(map(record, events)))
        while data:
            data = data[self._file.write(data):]
