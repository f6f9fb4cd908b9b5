"""Sizes that stay symbolic while a program is recorded: what it computes from them, and what it asks about them.

A size is an object that passes for an `int`, but is none: Python and C must ask it for its value (`__index__`,
`__hash__`, `str`, …), which fixes it. Its arithmetic gives further such numbers. Comparisons are answered for the sizes
at hand, and noted: a graph is the program's for other sizes if all questions have their answers there.
"""
from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from ..size import Unhashable
from .nesting import leaves, mapped

PLAIN = (int, float, bool)


class Sizes:
    """The sizes that a trace reads from `nodes`, numbers made of them, and questions about these."""

    def __init__(self) -> None:
        self.numbers: dict[Any, Number] = {}
        self.asked: dict[Any, tuple[Callable[..., Any], tuple[Any, ...], Any]] = {}
        self.added: dict[Any, tuple[Callable[..., Any], Any, Any]] = {}     # nodes of passes: how to infer their shapes
        self.fixings = 0                        # how often a number was fixed

    def of(self, node: Any, what: str, axis: int | None, value: int) -> Number:
        """Return what a node's array has: its `shape` or `strides` along an axis, a flag, or if it is a view."""
        key = node, what, axis
        if key not in self.numbers:
            self.numbers[key] = Whole(self, value, None, key)
        return self.numbers[key]

    def named(self, array: Any) -> Any:
        """Make the shape of a recorded array symbolic, and return the array."""
        array.shape = array.node.meta["shape"] = self.shape(array.node, array.shape)
        return array

    def shape(self, node: Any, shape: Sequence[int]) -> tuple[Number, ...]:
        """Return the symbolic shape of a node."""
        return Shape([self.of(node, "shape", axis, n) for axis, n in enumerate(shape)])

    def computed(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return a number that is a function of numbers."""
        key = function, *map(_key, args)
        if key not in self.numbers:
            value = function(*map(plain, args))
            if type(value) not in (int, float):                 # a complex power: no symbol
                return function(*map(fixed, args))
            self.numbers[key] = (Whole if type(value) is int else Real)(self, value, function, args)
        return self.numbers[key]

    def ask(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return the answer to a question, and note it."""
        key = function, *map(_key, args)
        if key not in self.asked:
            self.asked[key] = function, args, function(*map(plain, args))
        return self.asked[key][2]


class Shape(tuple[Any, ...]):
    """A tuple that asks nothing about its sizes when it is compared with one of another length."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple) and len(self) == len(other) and tuple.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__


class Number:
    """A number made of sizes: `function` of `args`; a size itself has no function, and where it is from as `args`."""

    __slots__ = ("log", "value", "function", "args")
    symbolic: ClassVar[bool] = True
    __array_ufunc__ = None                      # NumPy's numbers and arrays leave operations to this class

    def __init__(self, log: Sizes, value: Any, function: Callable[..., Any] | None, args: tuple[Any, ...]) -> None:
        self.log, self.value, self.function, self.args = log, value, function, args

    def fixed(self) -> Any:
        """Return the value as Python's own number: from now on, it must be this one."""
        self.log.fixings += 1
        self.log.ask(operator.eq, self, self.value)
        return self.value

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.fixed(), dtype)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(type(self.value), name):
            raise AttributeError(f"{type(self.value).__name__!r} object has no attribute {name!r}")
        return getattr(self.fixed(), name)

    def __copy__(self) -> Number:
        return self

    def __deepcopy__(self, memo: Any) -> Number:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self.value), (self.fixed(),)

    def __round__(self, digits: Any = None) -> Any:
        return self.log.computed(round, self) if digits is None else self.log.computed(round, self, digits)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __bool__(self) -> bool:
        return bool(self.log.ask(bool, self))

    def __hash__(self) -> int:
        if sys._getframe(1).f_globals.get("__name__") == Unhashable.__module__:
            raise Unhashable("a symbolic size")                 # a cache of the package does without
        return hash(self.fixed())

    __int__ = lambda self: int(self.fixed())                                # noqa: E731
    __float__ = lambda self: float(self.fixed())                            # noqa: E731
    __complex__ = lambda self: complex(self.fixed())                        # noqa: E731
    __str__ = lambda self: str(self.fixed())                                # type: ignore[assignment]  # noqa: E731
    __repr__ = lambda self: repr(self.fixed())                              # type: ignore[assignment]  # noqa: E731
    __format__ = lambda self, spec: format(self.fixed(), spec)              # type: ignore[assignment]  # noqa: E731


class Whole(Number):
    """A symbolic `int`."""

    __slots__ = ()
    __class__ = property(lambda self: int)      # type: ignore[assignment]
    __index__ = Number.__int__


class Real(Number):
    """A symbolic `float`."""

    __slots__ = ()
    __class__ = property(lambda self: float)    # type: ignore[assignment]


NUMBERS = frozenset({Whole, Real})


def _operand(other: Any) -> Any:
    """Return what numbers compute with; NotImplemented for other objects."""
    if type(other) in NUMBERS or type(other) in PLAIN:
        return other
    return other.item() if isinstance(other, np.generic) and other.dtype.kind in "biuf" else NotImplemented


def _attach(name: str, function: Callable[..., Any]) -> None:
    def forward(self: Number, other: Any) -> Any:
        operand = _operand(other)
        return NotImplemented if operand is NotImplemented else self.log.computed(function, self, operand)

    def reflected(self: Number, other: Any) -> Any:
        operand = _operand(other)
        return NotImplemented if operand is NotImplemented else self.log.computed(function, operand, self)
    setattr(Number, f"__{name}__", forward)
    setattr(Number, f"__r{name}__", reflected)


def _attach_comparison(name: str, function: Callable[..., Any]) -> None:
    def compare(self: Number, other: Any) -> Any:
        operand = _operand(other)
        return NotImplemented if operand is NotImplemented else self.log.ask(function, self, operand)
    setattr(Number, f"__{name}__", compare)


def _attach_unary(name: str, function: Callable[..., Any]) -> None:
    setattr(Number, f"__{name}__", lambda self: self.log.computed(function, self))


for _name in ("add", "sub", "mul", "floordiv", "truediv", "mod", "pow", "lshift", "rshift", "and_", "or_", "xor"):
    _attach(_name.strip("_"), getattr(operator, _name))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _attach_comparison(_name, getattr(operator, _name))
for _name, _function in {"neg": operator.neg, "pos": operator.pos, "abs": operator.abs, "invert": operator.invert,
                         "floor": math.floor, "ceil": math.ceil, "trunc": math.trunc}.items():
    _attach_unary(_name, _function)


def _key(a: Any) -> Any:
    return id(a) if type(a) in NUMBERS else (type(a), repr(a) if type(a) is float else a)


def plain(a: Any) -> Any:
    """Return the value of a symbolic number without fixing it, anything else as it is."""
    return a.value if type(a) in NUMBERS else a


def fixed(a: Any) -> Any:
    """Return a symbolic number as Python's own, which it must be from now on; anything else as it is."""
    return a.fixed() if type(a) in NUMBERS else a


def plainly(tree: Any) -> Any:
    """Return a nest with the values of symbolic numbers."""
    return mapped(plain, tree) if symbolic(tree) else tree


def symbolic(tree: Any) -> bool:
    """Return True if there are symbolic numbers in a nest."""
    return any(type(leaf) in NUMBERS for leaf in leaves(tree))


class Point:
    """Values of symbolic numbers, `values[slots[id(number)]]`, where nodes have these `arrays`."""

    __slots__ = ("arrays", "values", "slots")

    def __init__(self, values: list[Any], slots: dict[int, int]) -> None:
        self.arrays: dict[Any, Any] = {}
        self.values, self.slots = values, slots

    def __call__(self, a: Any) -> Any:
        """Return the value of a symbolic number, anything else as it is."""
        return self.values[self.slots[id(a)]] if type(a) in NUMBERS else a


class Formulas:
    """Symbolic numbers, computed step by step as the arrays of `nodes`, in this order, become known."""

    def __init__(self, needed: Iterable[Any], log: Sizes, nodes: Iterable[Any]) -> None:
        self.slots: dict[int, int] = {}
        self.first: list[Any] = []                  # constants, and room for the rest
        self.sizes: dict[Any, list[tuple[int, str, int | None]]] = {}
        self.steps: dict[Any, list[tuple[int, Callable[..., Any], int, int]]] = {}
        wanted = within(needed)
        place = {node: i for i, node in enumerate(nodes)}
        ready: dict[int, Any] = {}
        for number in log.numbers.values():         # operands come before what is computed of them
            if id(number) not in wanted:
                continue
            if number.function is None:
                node, what, axis = number.args
                self.sizes.setdefault(node, []).append((self._slot(number), what, axis))
            else:
                operands = [*map(self._slot, number.args), -1][:2]
                node = max((ready[id(a)] for a in number.args if type(a) in NUMBERS), key=place.__getitem__)
                self.steps.setdefault(node, []).append((self._slot(number), number.function, operands[0], operands[1]))
            ready[id(number)] = node

    def _slot(self, a: Any) -> int:
        """Return the place of a number, or of a constant, among the values."""
        if type(a) in NUMBERS and id(a) in self.slots:
            return self.slots[id(a)]
        self.first.append(None if type(a) in NUMBERS else a)
        if type(a) in NUMBERS:
            self.slots[id(a)] = len(self.first) - 1
        return len(self.first) - 1

    def places(self, tree: Sequence[Any]) -> list[int]:
        """Return the places of numbers and constants among the values."""
        return [self._slot(a) for a in tree]

    def begun(self) -> Point:
        """Return a point where no array is known yet."""
        return Point(self.first.copy(), self.slots)

    def known(self, node: Any, array: Any, point: Point) -> None:
        """Note the array of a node, and compute what depends on it."""
        point.arrays[node] = array
        values = point.values
        for slot, what, axis in self.sizes.get(node, ()):
            values[slot] = (getattr(array, what)[axis] if axis is not None else getattr(array.flags, what)
                            if what != "is_view" else bool(array.size) and array.base is not None)
        for slot, function, a, b in self.steps.get(node, ()):
            values[slot] = function(values[a]) if b < 0 else function(values[a], values[b])


def numbers(tree: Any) -> list[Number]:
    """Return the symbolic numbers in a nest."""
    return [leaf for leaf in leaves(tree) if type(leaf) in NUMBERS]


def within(found: Iterable[Any]) -> dict[int, Number]:
    """Return the symbolic numbers among leaves, and those that they are made of, by their identities."""
    waiting, seen = list(found), dict[int, Number]()
    while waiting:
        a = waiting.pop()
        if type(a) in NUMBERS and id(a) not in seen:
            seen[id(a)] = a
            waiting += a.args if a.function is not None else ()
    return seen


def sources(found: Iterable[Any]) -> list[Any]:
    """Return the nodes whose sizes the numbers among leaves are made of."""
    return [a.args[0] for a in within(found).values() if a.function is None]
