"""Families: graphs of one trace for many sizes, each with a plan of its own.

A program is traced with symbolic sizes (`graph.symbolic_sizes`). A call with other sizes gets its graph by replay, if
all questions that the program asked about sizes have the same answers: Python does not run.
"""
from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Sequence
from copy import copy
from typing import Any

from .._dynamo import config
from .._dynamo.exc import ConstraintViolationError
from ..core.dispatch import PLAIN
from ..graph.replay import Replay
from ..graph.symbolic_sizes import NUMBERS, Sizes, plain
from .entries import Entry
from .passes import simplify
from .signature import Signature
from .tracing import Trace

MARKS = "_dynamo_dynamic_indices", "_dynamo_weak_dynamic_indices"      # of a tensor's axes
VIOLATED = """Constraints violated (L['{0}'].size()[{1}])! For more information, run with TORCH_LOGS="+dynamic".
  - You marked L['{0}'].size()[{1}] as dynamic but your code specialized it to be a constant ({2}). If you're using \
mark_dynamic, either remove it or use maybe_mark_dynamic. If you're using Dim.DYNAMIC, replace it with either \
Dim.STATIC or Dim.AUTO."""
MOST_KEPT = 64              # sizes of a program that have plans at a time
SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "add": "+", "sub": "-", "mul": "*",
         "floordiv": "//", "truediv": "/", "mod": "%", "pow": "**", "lshift": "<<", "rshift": ">>", "and_": "&",
         "or_": "|", "xor": "^"}


class General(Signature):
    """The signature of calls that differ in sizes: `varies(tensor, place, axis)` tells which count as any.

    `axes` are these, as (place of the tensor, axis).
    """

    __slots__ = ("varies", "axes")

    def __init__(self, varies: Callable[[Any, int, int], bool]) -> None:
        super().__init__()
        self.varies = varies
        self.axes: set[tuple[int, int]] = set()

    def add(self, value: Any) -> None:
        """Add an argument."""
        if type(value) not in PLAIN:
            return super().add(value)
        array, place = value.array, len(self.tensors)
        axes = {axis for axis in range(array.ndim) if self.varies(value, place, axis)}
        self.axes.update((place, axis) for axis in axes)
        self.key += (tuple(None if axis in axes else n for axis, n in enumerate(array.shape)), array.dtype,
                     None if axes else array.strides)
        self.tensors.append(value)


class Family:
    """A trace with symbolic sizes, and what all its entries share: `base` has the guards of Python's state."""

    def __init__(self, trace: Trace, sizes: Sizes, axes: Collection[tuple[int, int]], objects: Sequence[Any]) -> None:
        assert trace.graph is not None
        self.base = Entry.of_trace(trace, objects, None)
        self.replay = Replay(trace.graph, sizes, simplify, (trace.strides, [value for _, value in trace.slots]))
        self.inputs_of = inputs = [node for node in trace.graph.nodes if node.op == "placeholder"]
        self.names = {(inputs[place], axis): f"s{number}" for number, (place, axis) in enumerate(sorted(axes))}
        named = [[self.names.get((node, axis), str(plain(n))) for axis, n in enumerate(node.meta["shape"])]
                 for node in inputs]
        self.inputs = ", ".join(f"{node.meta['dtype']}[{', '.join(shape)}]"
                                for node, shape in zip(inputs, named, strict=True))
        self.sizes = 0                              # how many it was planned for

    def entry(self, tensors: Sequence[Any], build: Callable[[Any], Any]) -> Entry:
        """Return the entry for inputs like these. Raises OtherPath."""
        graph, point = self.replay.at([tensor.array for tensor in tensors])
        made = copy(self.base)
        made.family = self
        made.strides = [tuple(map(point, steps)) for steps in self.base.strides]
        made.slots = [(kind, point(value)) for kind, value in self.base.slots]
        made.run = build(graph)
        self.sizes += 1
        return made

    def check_marks(self, tensors: Sequence[Any]) -> None:
        """Raise PyTorch's error if the program fixes a size that `mark_dynamic` says to vary."""
        marked = {(node, axis) for node, tensor in zip(self.inputs_of, tensors, strict=True)
                  for axis in getattr(tensor, MARKS[0], ())}
        for function, (a, *rest), answer in self.replay.asked if marked else ():
            equal = function is operator.eq and answer or function is operator.ne and not answer
            if equal and a.function is None and a.args[::2] in marked and type(rest[0]) not in NUMBERS:
                raise ConstraintViolationError(VIOLATED.format(a.args[0].target, a.args[2], a.value))

    @property
    def questions(self) -> list[str]:
        """The conditions on sizes of inputs under which the program takes this path."""
        found = {}
        for function, args, answer in self.replay.asked:
            if all(self._named(a) for a in args):
                sign = SIGNS.get(function.__name__.strip("_"))
                text = f" {sign} ".join(map(self._text, args)) if sign else f"{self._text(args[0])} != 0"
                found[text if answer else f"not {text}"] = None
        return list(found)

    def _named(self, a: Any) -> bool:
        """Return True if a number is made of sizes of inputs alone."""
        if type(a) not in NUMBERS:
            return True
        return a.args[:3:2] in self.names and a.args[1] == "shape" if a.function is None else all(
            map(self._named, a.args))

    def _text(self, a: Any) -> str:
        if type(a) not in NUMBERS:
            return str(a)
        if a.function is None:
            return self.names[a.args[0], a.args[2]]
        name = a.function.__name__
        sign = SIGNS.get(name)
        parts = [f"({self._text(part)})" if type(part) in NUMBERS and part.function is not None and sign
                 else self._text(part) for part in a.args]
        return f" {sign} ".join(parts) if sign else f"{name}({', '.join(parts)})"


class Families:
    """The families of a program, by general signatures, and which sizes vary.

    All do if `dynamic` is true; none if it is False; if it is None, those that have had two values, or are marked.
    `refused` says why calls have no symbolic trace.
    """

    def __init__(self, dynamic: bool | None) -> None:
        self.dynamic = dynamic
        self.families: dict[Any, list[Family]] = {}
        self.first: dict[Any, list[tuple[int, ...]]] = {}       # shapes of the first call, by signature without sizes
        self.varied: dict[Any, set[tuple[int, int]]] = {}
        self.refused: dict[Any, str] = {}
        self.kept: OrderedDict[Any, tuple[Entry, int]] = OrderedDict()      # with the calls when it was last looked at

    def __len__(self) -> int:
        return sum(map(len, self.families.values()))

    def __iter__(self) -> Iterator[Family]:
        return (family for kept in self.families.values() for family in kept)

    def of(self, general: General | None) -> Sequence[Family]:
        """Return the families of a signature, the latest first."""
        return () if general is None else self.families.get(general.key, ())

    def add(self, general: General, family: Family) -> None:
        """Keep a family."""
        self.families.setdefault(general.key, []).insert(0, family)

    def general(self, key: tuple[Any, ...], args: Any, kwargs: Any) -> General | None:
        """Return the signature of a call, whose own is `key`, without the sizes that vary; None if none does."""
        if self.dynamic is False:
            return None
        form = _filled(General(lambda tensor, place, axis: True), key, args, kwargs)
        shapes = [tensor.array.shape for tensor in form.tensors]
        varied = self.varied.setdefault(form.key, set())
        if config.automatic_dynamic_shapes:
            for place, (one, other) in enumerate(zip(self.first.setdefault(form.key, shapes), shapes, strict=True)):
                varied.update((place, axis) for axis, (n, m) in enumerate(zip(one, other, strict=True)) if n != m)
        every = self.dynamic or not config.assume_static_by_default

        def varies(tensor: Any, place: int, axis: int) -> bool:
            if tensor.array.shape[axis] < 2 or axis in getattr(tensor, "_dynamo_static_indices", ()):
                return False
            return every or (place, axis) in varied or any(axis in getattr(tensor, name, ()) for name in MARKS)
        found = _filled(General(varies), key, args, kwargs)
        return found if found.axes and found.key not in self.refused else None

    def keep(self, key: Any, entry: Entry, entries: dict[Any, list[Entry]]) -> None:
        """Add an entry for some sizes, and drop one that was not called of late if there are too many."""
        entries[key] = [entry, *(other for other in entries.get(key, ()) if other.family is not entry.family)]
        self.kept[key, entry.family] = entry, 0
        while len(self.kept) > MOST_KEPT:
            place, (old, calls) = self.kept.popitem(last=False)
            if old.calls != calls:
                self.kept[place] = old, old.calls
            elif not (left := [other for other in entries.get(place[0], ()) if other is not old]):
                entries.pop(place[0], None)
            else:
                entries[place[0]] = left


def _filled(general: General, key: tuple[Any, ...], args: Any, kwargs: Any) -> General:
    """Return a general signature with these arguments, and the rest of their own."""
    for value in args:
        general.add(value)
    if kwargs:
        general.add(kwargs)
    rest = key[len(general.key):]
    general.key = (*general.key, *rest)
    return general


__all__ = ["Families", "Family", "General"]
