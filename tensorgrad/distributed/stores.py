"""Where ranks leave values for each other: what every store can do, and stores of one process.

https://pytorch.org/docs → torch.distributed.Store

`Values` is the dictionary behind all of them. Its requests have numbers, for a request may come from another process
(`tcp_store.py`) or be read from a file (`file_store.py`): what is asked for is looked up in a table of functions, never
by name.
"""
from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from enum import IntEnum
from typing import Any

from .errors import DistStoreError, QueueEmptyError

__all__ = ["HashStore", "PrefixStore", "Request", "Store", "Values"]

TIMEOUT = timedelta(minutes=30)         # of groups
PATIENCE = timedelta(minutes=5)         # of stores


class Request(IntEnum):
    """Requests that a store answers."""

    SET, GET, ADD, COMPARE_SET, WAIT, CHECK, DELETE, COUNT, KEYS, APPEND, MULTI_GET, MULTI_SET, PUSH, POP, LENGTH = (
        range(1, 16))


# Requests that wait for keys, and which of their fields are keys.
WAITING = {Request.GET: slice(0, 1), Request.MULTI_GET: slice(None), Request.WAIT: slice(None),
           Request.POP: slice(0, 1)}


class Values:
    """Values and queues under keys, all of them bytes.

    `answer` never waits: `missing` says for which keys one has to.
    """

    def __init__(self) -> None:
        self._values: dict[bytes, bytes] = {}
        self._queues: dict[bytes, deque[bytes]] = {}

    def missing(self, request: int, fields: list[bytes]) -> list[bytes]:
        """Return the keys that have to come before the request can be answered."""
        if request not in WAITING:
            return []
        return [key for key in fields[WAITING[request]]
                if key not in (self._queues if request == Request.POP else self._values)]

    def answer(self, request: int, fields: list[bytes]) -> list[bytes]:
        """Return the answer to a request. Errors: ValueError or TypeError if it makes no sense."""
        if request not in TABLE:
            raise ValueError(f"a store knows no request {request}")
        return TABLE[request](self, *fields)

    def _set(self, key: bytes, value: bytes) -> list[bytes]:
        self._values[key] = value
        return []

    def _get(self, *keys: bytes) -> list[bytes]:
        return [self._values[key] for key in keys]

    def _add(self, key: bytes, amount: bytes) -> list[bytes]:
        old = self._values.get(key, b"0")
        try:
            value = self._values[key] = b"%d" % (int(old[:40]) + int(amount[:40]))
        except ValueError:
            raise ValueError(f"stoll\nadd() counts up integers, the value of {key.decode(errors='replace')!r} is "
                             f"{old[:40]!r}") from None
        return [value]

    def _compare_set(self, key: bytes, expected: bytes, desired: bytes) -> list[bytes]:
        if self._values.get(key, b"") == expected:
            self._values[key] = desired
        return [self._values.get(key, expected)]

    def _wait(self, *keys: bytes) -> list[bytes]:
        return []

    def _check(self, *keys: bytes) -> list[bytes]:
        return [b"1" if all(key in self._values for key in keys) else b""]

    def _delete(self, key: bytes) -> list[bytes]:
        return [b"1" if self._values.pop(key, None) is not None else b""]

    def _count(self) -> list[bytes]:
        return [b"%d" % (len(self._values) + len(self._queues))]

    def _keys(self) -> list[bytes]:
        return [*self._values, *self._queues]

    def _append(self, key: bytes, value: bytes) -> list[bytes]:
        self._values[key] = self._values.get(key, b"") + value
        return []

    def _multi_set(self, *pairs: bytes) -> list[bytes]:
        self._values.update(zip(pairs[::2], pairs[1::2], strict=True))
        return []

    def _push(self, key: bytes, value: bytes) -> list[bytes]:
        self._queues.setdefault(key, deque()).append(value)
        return []

    def _pop(self, key: bytes) -> list[bytes]:
        queue = self._queues[key]
        value = queue.popleft()
        if not queue:
            del self._queues[key]
        return [value]

    def _length(self, key: bytes) -> list[bytes]:
        return [b"%d" % len(self._queues.get(key, ()))]


TABLE: dict[int, Callable[..., list[bytes]]] = {
    Request.SET: Values._set, Request.GET: Values._get, Request.ADD: Values._add,
    Request.COMPARE_SET: Values._compare_set, Request.WAIT: Values._wait,
    Request.CHECK: Values._check, Request.DELETE: Values._delete, Request.COUNT: Values._count,
    Request.KEYS: Values._keys, Request.APPEND: Values._append, Request.MULTI_GET: Values._get,
    Request.MULTI_SET: Values._multi_set, Request.PUSH: Values._push,
    Request.POP: Values._pop, Request.LENGTH: Values._length}


def _bytes(value: Any, method: str) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    raise TypeError(f"{method}(): incompatible function arguments. The following argument types are supported:\n    "
                    f"keys are str, values str or bytes; got {type(value).__name__}")


def _several(keys: Any, method: str) -> list[Any]:
    if isinstance(keys, (str, bytes)) or not hasattr(keys, "__iter__"):
        raise TypeError(f"{method}(): incompatible function arguments. The following argument types are supported:\n   "
                        f" a list of str; got {type(keys).__name__}")
    return list(keys)


class Store:
    """Values under keys, all of them bytes, that several ranks see. https://pytorch.org/docs → torch.distributed.Store

    A subclass defines these methods, or `ask`, which all of them call here.
    """

    _timeout = PATIENCE

    def ask(self, request: Request, fields: list[bytes], timeout: timedelta | None = None) -> list[bytes]:
        """Return the answer to one request. Errors: DistStoreError after the time limit, the store's own if None."""
        raise NotImplementedError(f"{type(self).__name__} does not define {request.name.lower()}")

    @property
    def timeout(self) -> timedelta:
        """How long to wait for values."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long to wait for values."""
        if not isinstance(timeout, timedelta):
            raise TypeError("set_timeout(): incompatible function arguments. The following argument types are "
                            f"supported:\n    a datetime.timedelta; got {type(timeout).__name__}")
        self._timeout = timeout

    def set(self, key: str, value: Any) -> None:
        """Put a value under a key. https://pytorch.org/docs → torch.distributed.Store.set"""
        self.ask(Request.SET, [_bytes(key, "set"), _bytes(value, "set")])

    def get(self, key: str) -> bytes:
        """Return the value under a key, as soon as there is one. Errors: DistStoreError after the time limit."""
        return self.ask(Request.GET, [_bytes(key, "get")])[0]

    def add(self, key: str, amount: int) -> int:
        """Count up, from 0, and return the sum. https://pytorch.org/docs → torch.distributed.Store.add"""
        if not hasattr(amount, "__index__"):
            raise TypeError("add(): incompatible function arguments. The following argument types are supported:\n    "
                            f"a str and an int; got {type(amount).__name__}")
        return int(self.ask(Request.ADD, [_bytes(key, "add"), b"%d" % amount])[0])

    def compare_set(self, key: str, expected_value: Any, desired_value: Any) -> bytes:
        """Put a value in the place of an expected one, or of none if that is empty; return the value that is there
        then, or the expected one.
        """
        return self.ask(Request.COMPARE_SET,
                        [_bytes(field, "compare_set") for field in (key, expected_value, desired_value)])[0]

    def wait(self, keys: Any, timeout: timedelta | None = None) -> None:
        """Wait until all keys have values. Errors: DistStoreError after the time limit."""
        self.ask(Request.WAIT, [_bytes(key, "wait") for key in _several(keys, "wait")], timeout)

    def check(self, keys: Any) -> bool:
        """Return True if all keys have values."""
        return bool(self.ask(Request.CHECK, [_bytes(key, "check") for key in _several(keys, "check")])[0])

    def delete_key(self, key: str) -> bool:
        """Forget a value; return True if there was one."""
        return bool(self.ask(Request.DELETE, [_bytes(key, "delete_key")])[0])

    def num_keys(self) -> int:
        """Return how many values there are, those the store keeps for itself among them."""
        return int(self.ask(Request.COUNT, [])[0])

    def list_keys(self) -> list[str]:
        """Return all keys."""
        return [key.decode(errors="replace") for key in self.ask(Request.KEYS, [])]

    def append(self, key: str, value: Any) -> None:
        """Add bytes to the end of a value."""
        self.ask(Request.APPEND, [_bytes(key, "append"), _bytes(value, "append")])

    def multi_get(self, keys: Any) -> list[bytes]:
        """Return the values under all keys, as soon as there are some."""
        return self.ask(Request.MULTI_GET, [_bytes(key, "multi_get") for key in _several(keys, "multi_get")])

    def multi_set(self, keys: Any, values: Any) -> None:
        """Put values under keys, all at once."""
        keys, values = _several(keys, "multi_set"), _several(values, "multi_set")
        if len(keys) != len(values):
            raise DistStoreError("multiSet keys and values vectors must be of same size")
        self.ask(Request.MULTI_SET, [_bytes(field, "multi_set") for pair in zip(keys, values) for field in pair])

    def queue_push(self, key: str, value: Any) -> None:
        """Put a value at the end of a queue."""
        self.ask(Request.PUSH, [_bytes(key, "queue_push"), _bytes(value, "queue_push")])

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take the first value of a queue.

        Errors: QueueEmptyError if there is none and `block` is False, DistStoreError after the time limit.
        """
        try:
            return self.ask(Request.POP, [_bytes(key, "queue_pop")], None if block else timedelta(0))[0]
        except DistStoreError:
            if block:
                raise
            raise QueueEmptyError("queue is empty") from None

    def queue_len(self, key: str) -> int:
        """Return how many values a queue has."""
        return int(self.ask(Request.LENGTH, [_bytes(key, "queue_len")])[0])

    def has_extended_api(self) -> bool:
        """Return True if there are append, multi_get and multi_set: always."""
        return True

    def barrier(self, key: str, world_size: int, timeout: timedelta | None = None) -> None:
        """Wait until so many ranks have called this with the key. Errors: DistStoreError after the time limit."""
        if self.add(f"{key}/num_members", 1) == world_size:
            self.set(f"{key}/last_member", "1")
        self.wait([f"{key}/last_member"], timeout or self.timeout)

    def clone(self) -> Store:
        """Return a store of the same values that another thread can wait at."""
        return self


def rooted(request: Request, fields: list[bytes]) -> list[bytes]:
    """Return the fields of a request with "/" before each key, as PyTorch's stores name keys."""
    if request in WAITING or request == Request.CHECK:
        return [b"/" + field for field in fields]
    if request == Request.MULTI_SET:                    # keys and values in turn
        return [b"/" + field if i % 2 == 0 else field for i, field in enumerate(fields)]
    return [b"/" + fields[0], *fields[1:]] if fields else fields


def seconds(timeout: timedelta) -> float:
    """Return the seconds of a time limit, at most as many as the system can wait: 23 days."""
    return min(timeout.total_seconds(), 2e6)


def milliseconds(timeout: timedelta) -> int:
    return round(1000 * timeout.total_seconds())


def shown(keys: list[bytes]) -> str:
    return ", ".join(key.decode(errors="replace") for key in keys[:8]) + (", …" if len(keys) > 8 else "")


class HashStore(Store):
    """A dictionary that the threads of one process share. https://pytorch.org/docs → torch.distributed.HashStore

    >>> from tensorgrad.distributed import HashStore
    >>> store = HashStore()
    >>> store.set("lr", "0.1"); store.add("steps", 3); store.get("lr")
    3
    b'0.1'
    """

    def __init__(self) -> None:
        self._values, self._changed = Values(), threading.Condition()

    def ask(self, request: Request, fields: list[bytes], timeout: timedelta | None = None) -> list[bytes]:
        timeout = self._timeout if timeout is None else timeout
        end: float | None = None
        with self._changed:
            while missing := self._values.missing(request, fields):
                end = time.monotonic() + seconds(timeout) if end is None else end
                if not self._changed.wait(max(0.0, end - time.monotonic())) and time.monotonic() >= end:
                    raise DistStoreError(f"Wait timeout\nafter {milliseconds(timeout)}ms, keys: {shown(missing)}")
            answer = self._values.answer(request, fields)
            self._changed.notify_all()
            return answer


class PrefixStore(Store):
    """A store whose keys all begin alike. https://pytorch.org/docs → torch.distributed.PrefixStore

    >>> from tensorgrad.distributed import HashStore, PrefixStore
    >>> store = HashStore()
    >>> PrefixStore("epoch", store).set("1", "done")
    >>> store.list_keys()
    ['epoch/1']
    """

    def __init__(self, prefix: str, store: Store) -> None:
        if not isinstance(prefix, str) or not isinstance(store, Store):
            raise TypeError("__init__(): incompatible constructor arguments. The following argument types are "
                            f"supported:\n    a str and a Store; got {type(prefix).__name__} and "
                            f"{type(store).__name__}")
        self._prefix, self._store = prefix, store

    @property
    def underlying_store(self) -> Store:
        """The store that has the values."""
        return self._store

    @property
    def _underlying_non_prefix_store(self) -> Store:
        store = self._store
        while isinstance(store, PrefixStore):
            store = store._store
        return store

    @property
    def timeout(self) -> timedelta:
        """How long to wait for values."""
        return self._store.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long to wait for values, in the underlying store."""
        self._store.set_timeout(timeout)

    def _key(self, key: str) -> str:
        return f"{self._prefix}/{key}" if isinstance(key, str) else key         # the store says what is wrong with it

    def _keys(self, keys: Any, method: str) -> list[str]:
        return [self._key(key) for key in _several(keys, method)]

    # Each method calls its namesake, which may be a method in Python of somebody's own store.

    def set(self, key: str, value: Any) -> None:
        self._store.set(self._key(key), value)

    def get(self, key: str) -> bytes:
        return self._store.get(self._key(key))

    def add(self, key: str, amount: int) -> int:
        return self._store.add(self._key(key), amount)

    def compare_set(self, key: str, expected_value: Any, desired_value: Any) -> bytes:
        return self._store.compare_set(self._key(key), expected_value, desired_value)

    def wait(self, keys: Any, timeout: timedelta | None = None) -> None:
        if timeout is None:
            self._store.wait(self._keys(keys, "wait"))
        else:
            self._store.wait(self._keys(keys, "wait"), timeout)

    def check(self, keys: Any) -> bool:
        return self._store.check(self._keys(keys, "check"))

    def delete_key(self, key: str) -> bool:
        return self._store.delete_key(self._key(key))

    def num_keys(self) -> int:
        return self._store.num_keys()

    def list_keys(self) -> list[str]:
        start = self._prefix + "/"
        return [key[len(start):] for key in self._store.list_keys() if key.startswith(start)]

    def append(self, key: str, value: Any) -> None:
        self._store.append(self._key(key), value)

    def multi_get(self, keys: Any) -> list[bytes]:
        return self._store.multi_get(self._keys(keys, "multi_get"))

    def multi_set(self, keys: Any, values: Any) -> None:
        self._store.multi_set(self._keys(keys, "multi_set"), values)

    def queue_push(self, key: str, value: Any) -> None:
        self._store.queue_push(self._key(key), value)

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        return self._store.queue_pop(self._key(key), block)

    def queue_len(self, key: str) -> int:
        return self._store.queue_len(self._key(key))

    def has_extended_api(self) -> bool:
        return self._store.has_extended_api()

    def clone(self) -> Store:
        return PrefixStore(self._prefix, self._store.clone())
