"""Calls of modules, noted on the tape: each at the places of its results, for as long as the graph lives. Pictures group steps by them.

A note costs less than half a microsecond. It is made of the numbers of the clock: a step that was made in between was made in the call.
"""
from __future__ import annotations

from threading import get_ident
from typing import Any, NamedTuple
from weakref import ref

from ..storage.base import clock
from .tape import TensorBase


class Call(NamedTuple):
    """A call of a module: a weak reference to it, its class, the times of the clock, the thread, and the call that had ended at that place before."""

    module: Any
    kind: type
    start: int
    end: int
    thread: int
    earlier: Any


def ended(module: Any, start: int, result: Any) -> None:
    """Note that the call of a module that began at `start` has this result. What the call did not make itself gets no note."""
    if isinstance(result, TensorBase):
        node = result._node
        if node is not None and node.time > start:
            node.calls = (ref(module), type(module), start, next(clock), get_ident(), getattr(node, "calls", None))     # a Call costs three times as much
    elif isinstance(result, (tuple, list)):
        for part in result:
            ended(module, start, part)
    elif isinstance(result, dict):
        for part in result.values():
            ended(module, start, part)


def calls_at(node: Any) -> list[Call]:
    """The calls that ended at a place on the tape, the last one first."""
    found, told = [], getattr(node, "calls", None)
    while told is not None:
        found.append(Call(*told))
        told = told[5]
    return found
