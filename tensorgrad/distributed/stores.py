"""Where processes leave values for each other: a dictionary in this process, or one that the first process serves to the others."""
from __future__ import annotations

import os
import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from multiprocessing import connection, util
from typing import Any

from .errors import DistStoreError

__all__ = ["HashStore", "PrefixStore", "Store", "TCPStore"]

TIMEOUT = timedelta(minutes=30)


def as_bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


class Store:
    """Values under keys, all of them bytes. https://pytorch.org/docs → torch.distributed.Store"""

    timeout = TIMEOUT

    def ask(self, what: str, key: str, value: bytes = b"", number: float = 0.0) -> bytes:
        """One request, and its answer."""
        raise NotImplementedError(f"{type(self).__name__} does not define ask")

    def set(self, key: str, value: Any) -> None:
        """Put a value under a key."""
        self.ask("set", key, as_bytes(value))

    def get(self, key: str) -> bytes:
        """The value under a key, as soon as there is one."""
        return self.ask("get", key, number=self.timeout.total_seconds())

    def add(self, key: str, amount: int) -> int:
        """Count up."""
        return int(self.ask("add", key, number=amount))

    def compare_set(self, key: str, expected: Any, desired: Any) -> bytes:
        """Put a value in the place of an expected one; what is there afterwards."""
        expected = as_bytes(expected)
        return self.ask("swap", key, struct.pack("!I", len(expected)) + expected + as_bytes(desired))

    def wait(self, keys: Any, timeout: timedelta | None = None) -> None:
        """Until all keys have values."""
        for key in keys:
            self.ask("get", key, number=(timeout or self.timeout).total_seconds())

    def check(self, keys: Any) -> bool:
        """Whether all keys have values."""
        return all(self.ask("has", key) for key in keys)

    def delete_key(self, key: str) -> bool:
        """Forget a value; whether there was one."""
        return bool(self.ask("delete", key))

    def num_keys(self) -> int:
        """How many values there are."""
        return int(self.ask("count", ""))

    def set_timeout(self, timeout: timedelta) -> None:
        """How long to wait for values."""
        self.timeout = timeout

    def post(self, key: str, value: bytes, readers: int) -> None:
        """Leave a value for so many readers: the last one takes it away."""
        if readers:
            self.ask("post", key, value, readers)

    def take(self, key: str) -> bytes:
        """A value that was posted, as soon as it is there."""
        return self.ask("take", key, number=self.timeout.total_seconds())


class HashStore(Store):
    """A dictionary that the threads of one process share. https://pytorch.org/docs → torch.distributed.HashStore"""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}
        self._readers: dict[str, int] = {}
        self._changed = threading.Condition()

    def ask(self, what: str, key: str, value: bytes = b"", number: float = 0.0) -> bytes:
        with self._changed:
            if what in ("get", "take") and not self._changed.wait_for(lambda: key in self._values, number):
                raise DistStoreError(f"wait timeout after {round(1000 * number)}ms, keys: /{key}")
            answer: bytes = getattr(self, f"_{what}")(key, value, number)
            self._changed.notify_all()
            return answer

    def _set(self, key: str, value: bytes, number: float) -> bytes:
        self._values[key] = value
        return b""

    def _post(self, key: str, value: bytes, number: float) -> bytes:
        self._values[key], self._readers[key] = value, int(number)
        return b""

    def _get(self, key: str, value: bytes, number: float) -> bytes:
        return self._values[key]

    def _take(self, key: str, value: bytes, number: float) -> bytes:
        self._readers[key] -= 1
        if self._readers[key]:
            return self._values[key]
        del self._readers[key]
        return self._values.pop(key)

    def _add(self, key: str, value: bytes, number: float) -> bytes:
        self._values[key] = str(int(self._values.get(key, b"0")) + int(number)).encode()
        return self._values[key]

    def _swap(self, key: str, value: bytes, number: float) -> bytes:
        size = 4 + struct.unpack("!I", value[:4])[0]
        expected, desired = value[4:size], value[size:]
        if self._values.get(key, b"") == expected:
            self._values[key] = desired
        return self._values.get(key, expected)

    def _has(self, key: str, value: bytes, number: float) -> bytes:
        return b"1" if key in self._values else b""

    def _delete(self, key: str, value: bytes, number: float) -> bytes:
        return b"1" if self._values.pop(key, None) is not None else b""

    def _count(self, key: str, value: bytes, number: float) -> bytes:
        return str(len(self._values)).encode()


class TCPStore(Store):
    """A dictionary in one process, the master, that others reach over the network. https://pytorch.org/docs → torch.distributed.TCPStore

    A request is what, key, number and value, with zeros between; an answer begins with "+", or with "-" if it is an error. Nothing is unpickled.
    """

    def __init__(self, host_name: str, port: int, world_size: int | None = None, is_master: bool = False, timeout: timedelta = TIMEOUT,
                 wait_for_workers: bool = True, **options: Any) -> None:
        self.host, self.port, self.timeout, self._local = host_name, port, timeout, threading.local()
        if is_master:
            self._values, self._clients = HashStore(), 0
            listener = connection.Listener((host_name, port), "AF_INET", backlog=64)
            self.port = listener.address[1]     # type: ignore[index]
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
            util.Finalize(None, self._linger, exitpriority=10)          # others may still be reading when the master is done
        if world_size is not None and world_size > 1 and wait_for_workers:
            self.add("workers", 1)
            _until(lambda: self.add("workers", 0) >= world_size, timeout, "not all workers came")

    def ask(self, what: str, key: str, value: bytes = b"", number: float = 0.0) -> bytes:
        if not hasattr(self._local, "line"):
            self._local.line = _until(self._connected, self.timeout, f"no store at {self.host}:{self.port}")
        line = self._local.line
        line.send_bytes(b"\0".join((what.encode(), key.encode(), repr(number).encode(), value)))
        answer: bytes = line.recv_bytes()
        if answer[:1] == b"-":
            raise DistStoreError(answer[1:].decode())
        return answer[1:]

    def _connected(self) -> Any:
        with suppress(ConnectionError):
            return at_once(connection.Client((self.host, self.port), "AF_INET"))

    def _accept(self, listener: Any) -> None:
        while True:
            threading.Thread(target=self._serve, args=(at_once(listener.accept()),), daemon=True).start()

    def _serve(self, line: Any) -> None:
        self._clients += 1
        with suppress(EOFError, OSError):
            while True:
                what, key, number, value = line.recv_bytes().split(b"\0", 3)
                try:
                    answer = b"+" + self._values.ask(what.decode(), key.decode(), value, float(number))
                except DistStoreError as error:
                    answer = b"-" + str(error).encode()
                line.send_bytes(answer)
        self._clients -= 1

    def _linger(self) -> None:
        own = int(hasattr(self._local, "line"))
        with suppress(DistStoreError):
            _until(lambda: self._clients <= own, timedelta(seconds=10), "")


def at_once(line: Any) -> Any:
    """A connection that sends what it is given without waiting for more."""
    with socket.socket(fileno=os.dup(line.fileno())) as same:
        same.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return line


def _until(found: Callable[[], Any], timeout: timedelta, message: str) -> Any:
    """What a function gives, as soon as that is something."""
    end = time.monotonic() + timeout.total_seconds()
    while not (value := found()):
        if time.monotonic() > end:
            raise DistStoreError(message)
        time.sleep(0.005)
    return value


class PrefixStore(Store):
    """A store whose keys all begin alike. https://pytorch.org/docs → torch.distributed.PrefixStore"""

    def __init__(self, prefix: str, store: Store) -> None:
        self.prefix, self.underlying_store, self.timeout = prefix, store, store.timeout

    def ask(self, what: str, key: str, value: bytes = b"", number: float = 0.0) -> bytes:
        return self.underlying_store.ask(what, f"{self.prefix}/{key}", value, number)
