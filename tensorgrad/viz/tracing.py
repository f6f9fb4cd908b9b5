"""Trace a function of formulas while it runs on real numbers: for loops and helpers that `reading` cannot turn into an
expression.

A traced array has a name, and each result computed from it gets the next name: a loop becomes as many lines as it has
rounds.
"""
from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np

from ..ops.base import OPS
from .reading import NoFormula, Reading

SIGNS: dict[str, type[ast.operator | ast.cmpop]] = {
    "add": ast.Add, "sub": ast.Sub, "mul": ast.Mult, "truediv": ast.Div, "pow": ast.Pow, "matmul": ast.MatMult,
    "mod": ast.Mod, "floordiv": ast.FloorDiv, "and": ast.BitAnd, "or": ast.BitOr, "xor": ast.BitXor}
RELATIONS: dict[str, type[ast.cmpop]] = {"eq": ast.Eq, "ne": ast.NotEq, "lt": ast.Lt, "le": ast.LtE, "gt": ast.Gt,
                                         "ge": ast.GtE}
MOST = 20_000           # lines of a trace


class Traced:
    """An array with a name."""

    __hash__ = None         # type: ignore[assignment]
    __array_ufunc__ = None      # NumPy leaves operators to it

    def __init__(self, trace: Trace, array: Any, name: str) -> None:
        self.trace, self.array, self.name = trace, array, name

    shape = property(lambda self: self.array.shape)
    ndim = property(lambda self: self.array.ndim)
    size = property(lambda self: self.array.size)
    dtype = property(lambda self: self.array.dtype)
    T = property(lambda self: self.trace.note(ast.Attribute(self.node, "T", ast.Load()), self.array.T))
    real = property(lambda self: self)

    @property
    def node(self) -> ast.expr:
        return ast.Name(self.name, ast.Load())

    def __len__(self) -> int:
        return len(self.array)

    def __bool__(self) -> bool:
        raise NoFormula("its path depends on values")

    __float__ = __int__ = __index__ = __iter__ = __bool__       # type: ignore[assignment]

    def __getitem__(self, index: Any) -> Traced:
        if any(isinstance(part, Traced) for part in (index if isinstance(index, tuple) else (index,))):
            raise NoFormula("an index is computed")
        return self.trace.note(ast.Subscript(self.node, self.trace.node(index), ast.Load()), self.array[index])

    def __neg__(self) -> Traced:
        return self.trace.note(ast.UnaryOp(ast.USub(), self.node), -self.array)

    def __invert__(self) -> Traced:
        return self.trace.note(ast.UnaryOp(ast.Invert(), self.node), ~self.array)

    def __getattr__(self, name: str) -> Any:
        if name not in OPS and name not in ("astype", "copy"):
            raise NoFormula(f".{name} has no counterpart")
        return lambda *args, **options: getattr(self.trace.xp, name)(self, *args, **options)


def operator(name: str, sign: Any, turned: bool) -> Callable[[Traced, Any], Traced]:
    def method(self: Traced, other: Any) -> Traced:
        left, right = (other, self) if turned else (self, other)
        nodes = self.trace.node(left), self.trace.node(right)
        expression: ast.expr = (ast.Compare(nodes[0], [sign()], [nodes[1]]) if name in RELATIONS
                                else ast.BinOp(nodes[0], sign(), nodes[1]))
        with np.errstate(all="ignore"):
            return self.trace.note(expression, getattr(bare(left), f"__{name}__")(bare(right))
                                   if isinstance(left, Traced) else
                                   getattr(bare(right), f"__r{name}__")(left))
    return method


for _name, _sign in (SIGNS | RELATIONS).items():
    setattr(Traced, f"__{_name}__", operator(_name, _sign, False))
    if _name in SIGNS:
        setattr(Traced, f"__r{_name}__", operator(_name, _sign, True))


class Trace:
    """The lines that a function ran. `constants` maps names to values that do not depend on the traced arrays."""

    def __init__(self, xp: Any, known: Callable[[str], bool]) -> None:
        self.lines: list[tuple[tuple[str, ...], ast.expr]] = []
        self.constants: dict[str, Any] = {}
        self.xp = Namespace(self, xp, known)

    def note(self, expression: ast.expr, value: Any) -> Any:
        """Add a line, and return the traced value, or values, of its expression."""
        if len(self.lines) >= MOST:
            raise NoFormula("it is too long to be written out")
        first, several = len(self.lines), isinstance(value, (tuple, list))
        names = tuple(f"t{first}.{i}" for i in range(len(value))) if several else (f"t{first}",)
        self.lines.append((names, expression))
        found = [Traced(self, np.asarray(part), name)
                 for part, name in zip(value if several else (value,), names, strict=True)]
        return found if several else found[0]

    def node(self, value: Any) -> ast.expr:
        """Return an expression for a value: the name of a traced one, or of a constant."""
        if isinstance(value, Traced):
            return value.node
        if isinstance(value, (tuple, list)) and any(isinstance(part, Traced) for part in value):
            return ast.Tuple(list(map(self.node, value)), ast.Load())
        if value is None or type(value) in (bool, int, str):
            return ast.Constant(value)
        name = f"k{len(self.constants)}"
        self.constants[name] = value
        return ast.Name(name, ast.Load())


class Namespace:
    """The op table on traced arrays, as functions of formulas call it."""

    def __init__(self, trace: Trace, xp: Any, known: Callable[[str], bool]) -> None:
        self._trace, self._xp, self._known = trace, xp, known

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._xp, name)
        if not callable(function) or isinstance(function, type):
            return function

        def call(*args: Any, **options: Any) -> Any:
            if not any(map(holds, (*args, *options.values()))):
                return function(*args, **options)
            if name in ("zeros_like", "ones_like", "full_like"):
                return function(bare(args[0]), *args[1:], **options)
            if not self._known(name) and name in OPS:
                return OPS[name].forward(self, *args, **options)
            keywords = [ast.keyword(key, self._trace.node(value)) for key, value in options.items()]
            expression = ast.Call(ast.Attribute(ast.Name("xp", ast.Load()), name, ast.Load()),
                                  list(map(self._trace.node, args)), keywords)
            with np.errstate(all="ignore"):
                return self._trace.note(expression,
                                        function(*map(bare, args),
                                                 **{key: bare(value) for key, value in options.items()}))
        return call


def holds(value: Any) -> bool:
    """Return True if a value is traced, or contains a traced one."""
    return isinstance(value, Traced) or isinstance(value, (tuple, list)) and any(map(holds, value))


def bare(value: Any) -> Any:
    """Return a value with arrays in place of traced ones."""
    return (value.array if isinstance(value, Traced) else type(value)(map(bare, value))
            if isinstance(value, (tuple, list)) and holds(value) else value)


def traced(function: Any, values: dict[str, Any], xp: Any, known: Callable[[str], bool]) -> tuple[Reading,
                                                                                                  dict[str, Any]]:
    """Return a function's lines and result for these arguments, and their constants.

    NoFormula if it branches on values, or calls functions that are no ops.

    `known(name)` is True for ops whose calls stay; the definitions of others are traced.
    """
    trace, code = Trace(xp, known), function.__code__
    given = {name: argument(trace, name, values[name])
             for name in code.co_varnames[1:code.co_argcount + code.co_kwonlyargcount] if name in values}
    positional = [given.pop(name) for name in code.co_varnames[1:code.co_argcount] if name in given]
    try:
        found = function(trace.xp, *positional, **given)
    except NoFormula:
        raise
    except Exception as error:
        raise NoFormula(f"{type(error).__name__}: {error}") from None
    return Reading(trace.node(tuple(found) if isinstance(found, list) else found), trace.lines), trace.constants


def argument(trace: Trace, name: str, value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return Traced(trace, np.asarray(value), name)
    if isinstance(value, (tuple, list)) and any(isinstance(part, np.ndarray) for part in value):
        return [argument(trace, f"{name}[{i}]", part) for i, part in enumerate(value)]
    return value
