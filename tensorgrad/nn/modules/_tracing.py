"""Hooks of tracers into modules: a running tracer takes over their calls and reads of their attributes.

A tracer has `module_called(module, forward, args, kwargs)` and `module_read(module, name, value)`. Programs that do not
trace pay nothing: `NODES`, which calls of modules look at anyway, is empty.
"""
from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..._tensor.torch_function import NODES, forget_passing, node_among
from ._shortcut import Shortcut


class State(threading.local):
    """The tracer of this thread, and the module whose next call it leaves alone."""

    tracer: Any = None
    entered: Any = None


state = State()


class Tracing:
    """The class in NODES while a thread traces, which makes calls of modules ask for the tracer."""


def joined(module: Any, call: Any, args: Any, kwargs: Any) -> Any:
    """Return the result of a call that a tracer or a node among the arguments takes over, else NotImplemented.

    `call` is `Module.__call__`.
    """
    tracer = state.tracer
    if tracer is not None:
        if state.entered is module:
            state.entered = None
            return NotImplemented

        def forward(*args: Any, **kwargs: Any) -> Any:
            state.entered = module
            try:
                return call(module, *args, **kwargs)
            finally:
                state.entered = None
        return tracer.module_called(module, forward, args, kwargs)
    node = node_among(args, kwargs)
    return NotImplemented if node is None else node._joined_by(module, args, kwargs)


def found(module: Any, name: str, value: Any) -> Any:
    """Return the value that a program reads from a module: the tracer's, if this thread traces."""
    return value if state.tracer is None else state.tracer.module_read(module, name, value)


ACTIVE: list[Any] = []          # the tracers of all threads


@contextmanager
def traced(tracer: Any) -> Iterator[None]:
    """Let a tracer take over calls and reads of modules in this thread until the block ends."""
    before = state.tracer, state.entered
    state.tracer, state.entered = tracer, None
    ACTIVE.append(tracer)
    NODES.add(Tracing)
    Shortcut.off()
    try:
        yield
    finally:
        state.tracer, state.entered = before
        ACTIVE.remove(tracer)
        if not ACTIVE:
            NODES.discard(Tracing)
            forget_passing()
            Shortcut.on()
