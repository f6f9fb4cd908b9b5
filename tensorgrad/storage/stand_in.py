"""A backend in the place of others, for one thread and a time."""
from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .base import Storage

lock = threading.RLock()


class Backends(dict[str, Any]):
    """Which backend a device has: another one for the thread that asked for it."""

    def __init__(self, backends: Any, stand_in: type[Storage], kinds: tuple[str, ...]) -> None:
        super().__init__(backends)
        self.thread, self.stand_in, self.kinds = threading.get_ident(), stand_in, kinds

    def get(self, name: str, default: Any = None) -> Any:
        return self.stand_in if name.partition(":")[0] in self.kinds and threading.get_ident() == self.thread else super().get(name, default)


@contextmanager
def standing_in(backend: type[Storage], *kinds: str) -> Iterator[None]:
    """In a `with` block, tensors that this thread makes on devices of these kinds are the backend's. One thread at a time."""
    with lock:
        before = Storage.by_device
        Storage.by_device = Backends(before, backend, kinds)
        try:
            yield
        finally:
            before.update(Storage.by_device)             # what was registered meanwhile
            Storage.by_device = before
