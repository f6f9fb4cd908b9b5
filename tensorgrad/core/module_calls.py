"""Calls of modules, noted on the tape: each at the places of its results, for as long as the graph lives.

Pictures group steps by them.

A note costs less than half a microsecond. A note has the times at which the call began and ended: steps with times in
between were made in the call.
"""
from __future__ import annotations

from itertools import islice
from threading import get_ident
from typing import Any, NamedTuple
from weakref import ref

from ..storage.base import clock
from .tape import TensorBase


class Call(NamedTuple):
    """A call of a module: a weak reference to it, its class, the times of the clock, the thread, and the call that had
    ended at that place before.
    """

    module: Any
    kind: type
    start: int
    end: int
    thread: int
    earlier: Any


MOST = 1000         # parts of a result that are looked through


def ended(module: Any, start: int, result: Any) -> None:
    """Note that the call of a module that began at `start` has this result.

    Tensors that the call did not make itself get no note.
    """
    if not isinstance(result, TensorBase):
        for part in tensors_in(result):
            ended(module, start, part)
        return
    node = result._node
    if node is not None and node.time > start:
        # a Call costs three times as much
        node.calls = (ref(module), type(module), start, next(clock), get_ident(), getattr(node, "calls", None))


def tensors_in(result: Any) -> list[Any]:
    """Return the tensors among the first parts of nested tuples, lists and dicts, which may hold themselves.

    No method of a program's is called.
    """
    found, todo = [], [result]
    for part in todo:                   # grows meanwhile
        kind = next((kind for kind in (tuple, list, dict) if isinstance(part, kind)), None)
        if isinstance(part, TensorBase):
            found.append(part)
        elif kind is not None and len(todo) < MOST:
            todo += islice(dict.values(part) if kind is dict else kind.__iter__(part), MOST)
    return found


def calls_at(node: Any) -> list[Call]:
    """The calls that ended at a place on the tape, the last one first."""
    found, told = [], getattr(node, "calls", None)
    while told is not None:
        found.append(Call(*told))
        told = told[5]
    return found
