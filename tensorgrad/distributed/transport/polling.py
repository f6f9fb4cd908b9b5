"""Waiting for several sockets at once: `select.poll` where the system has it, the same methods over `select.select`
elsewhere.
"""
from __future__ import annotations

import select
from typing import Any

__all__ = ["HUNG_UP", "IN", "OUT", "Selected", "watcher"]

IN, OUT = getattr(select, "POLLIN", 1), getattr(select, "POLLOUT", 4)
# asks for no more than the end of a connection; `poll` tells of that in any case
HUNG_UP = getattr(select, "POLLRDHUP", 0)


class Selected:
    """Some methods of `select.poll`, over `select.select`.

    Of sockets that are watched for neither reading nor writing it tells nothing.
    """

    def __init__(self) -> None:
        self._events: dict[int, int] = {}

    def register(self, watched: Any, events: int) -> None:
        self._events[watched if isinstance(watched, int) else watched.fileno()] = events

    modify = register

    def unregister(self, watched: Any) -> None:
        del self._events[watched if isinstance(watched, int) else watched.fileno()]

    def poll(self, milliseconds: float | None = None) -> list[tuple[int, int]]:
        reading, writing = ([descriptor for descriptor, events in self._events.items() if events & kind]
                            for kind in (IN, OUT))
        readable, writable, failed = select.select(reading, writing, writing,
                                                   None if milliseconds is None else milliseconds / 1000)
        found = dict.fromkeys(readable, IN)
        for descriptor in {*writable, *failed}:
            found[descriptor] = found.get(descriptor, 0) | OUT
        return list(found.items())


def watcher() -> Any:
    """Return an object with the methods of `select.poll`."""
    return select.poll() if hasattr(select, "poll") else Selected()
