"""The module that made each step: from the calls that modules note on the tape, each by the variable of the program or
its name in the module around it.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..core.module_calls import Call, calls_at
from ..core.tape import TensorBase

Path = tuple[str, ...]
# the path of a module, and for each of its parts when the call of that module began; 0 of a list of modules
Place = tuple[Path, tuple[int, ...]]


def outermost(scope: Mapping[str, Any], module: Any = None) -> dict[str, Any]:
    """The modules among a program's variables that are not part of others, by name.

    `module`, whose name is left out, is not among them.
    """
    found = {name: value for name, value in scope.items() if not isinstance(value, TensorBase)
             and hasattr(value, "named_modules")}
    inner = {id(part) for value in found.values() for part in value.modules() if part is not value}
    return {name: value for name, value in found.items() if value is not module and id(value) not in inner}


def paths(scope: Mapping[str, Any], module: Any = None) -> dict[int, Path]:
    """{id of a module: its path} of `module` and its parts, whose paths are within it, and of modules among a program's
    variables and their parts.
    """
    found = {} if module is None else named(module, ())
    for name, value in outermost(scope, module).items():
        found = named(value, (name,)) | found
    return found


def named(module: Any, prefix: Path) -> dict[int, Path]:
    """{id of a module: its path} of a module and all that it is made of."""
    return {id(part): (*prefix, *name.split(".")) if name else prefix for name, part in module.named_modules()}


def homes(nodes: Iterable[Any], known: Mapping[int, Path]) -> tuple[dict[Any, Place], list[Any]]:
    """{place on the tape: the module it was made in}, for places in the order of time, and the outermost modules that
    have no other name than their class.

    `known` has the paths of modules by their ids. A step was made in the calls that had begun and not ended then. Where
    calls of several threads had, it is those whose results it led to.
    """
    nodes = list(nodes)
    calls: dict[int, Call] = {}                     # by their starts, which differ
    ends: dict[int, list[Any]] = {}
    for node in nodes:
        for call in calls_at(node):
            calls[call.start] = call
            ends.setdefault(call.start, []).append(node)
    told, behind, found = Paths(known), dict[int, set[Any]](), {}
    for node, running in during(nodes, [calls[start] for start in sorted(calls)]):
        if len({call.thread for call in running}) > 1:
            for call in running:
                if call.start not in behind:
                    behind[call.start] = since(call.start, ends[call.start])
            running = [call for call in running if node in behind[call.start]]
        if running:
            found[node] = told.of(running)
    return found, told.nameless


def during(nodes: Iterable[Any], calls: Iterable[Call]) -> Iterator[tuple[Any, list[Call]]]:
    """Each node with the calls that ran when it was made, the first one first.

    Nodes and calls come in the order of time.
    """
    running: list[Call] = []
    waiting = iter(calls)
    following = next(waiting, None)
    for node in nodes:
        while following is not None and following.start < node.time:
            running.append(following)
            following = next(waiting, None)
        running = [call for call in running if call.end > node.time]
        yield node, running


def since(start: int, places: Iterable[Any]) -> set[Any]:
    """All that leads to some places on the tape and was made after a time."""
    todo = list(places)
    found = set(todo)
    while todo:
        for e in todo.pop().edges:
            if e is not None and e.time > start and e not in found:
                found.add(e)
                todo.append(e)
    return found


class Paths:
    """The paths of calls within calls.

    Modules that no variable of the program has are called by their class, and their parts as they call them.
    """

    def __init__(self, known: Mapping[int, Path]) -> None:
        self.known = dict(known)
        self.told: dict[int, Place] = {}            # by the start of the last call
        self.nameless: list[Any] = []

    def of(self, running: list[Call]) -> Place:
        """The path of the last of these calls, each made in the one before."""
        if running[-1].start not in self.told:
            place: Place = (), ()
            for call in running:
                if call.start not in self.told:
                    outer, calls = place
                    path = self.within(outer, call)
                    began = (*calls, *[0] * (len(path) - len(calls)))
                    self.told[call.start] = path, (*began[:-1], call.start) if len(path) > len(outer) else began
                place = self.told[call.start]
        return self.told[running[-1].start]

    def within(self, outer: Path, call: Call) -> Path:
        """The path of a call that was made in the module `outer`: one that is longer, but of the module whose name is
        left out.
        """
        module = call.module()
        own = self.known.get(id(module)) if module is not None else None
        if own is None:
            own = (*outer, call.kind.__name__)
            if module is not None and not outer:
                self.known |= named(module, own) | self.known
                self.nameless.append(module)
        if own[:len(outer)] == outer:
            return own if len(own) > len(outer) or not own else (*outer, own[-1])
        return (*outer, own[-1]) if own else outer
