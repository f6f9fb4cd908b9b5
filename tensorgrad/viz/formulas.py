"""Formulas of ops and of their gradients, in plain text, read from the definitions of the ops."""
from __future__ import annotations

import ast
import inspect
import math
import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..ops.base import OPS, Op
from .notation import OPEN, Unspeakable, function, notation
from .reading import SPELLED, NoFormula, definitions, read
from .textbook_gradients import RULES, WORDS, Words
from .torch_names import public

LONGEST = 200                   # longer formulas are easier to read in the source
ELSEWHERE = "see the source"
BY_DEFINITION = "the definition's own steps, one after the other, from the last to the first"
SIMPLE = (bool, int, float, str, type(None))
KNOWN = {*SPELLED, *dir(math), "max", "min", "float"}       # helpers whose names explain themselves


class Formulas(NamedTuple):
    """`forward` computes; `rules[input]` is the gradient of that input, given g, that of the result.

    `source` is the file and the line of the op.
    """

    forward: str
    rules: dict[str, str]
    source: tuple[str, int]


def formulas(op: type[Op] | str, options: Mapping[str, Any] | None = None) -> Formulas:
    """The formulas of an op, as mathematics in plain text: what it computes, and the gradient of each input.

    `op` is its name, its class, or that of its tape nodes. Formulas are those of real numbers, for arrays that are
    neither empty nor, where matrices are meant, vectors. Where a gradient is no formula but a loop or a list of cases,
    its rule says in words what it computes; of a program's own op, "see the source".

    `options` are what the op was applied with (`node.params`; None for an input that was not there, a number for one
    that is a Python number): formulas are then of this case alone. Else they tell the cases apart, and leave out what
    is None by default.

    Raises: TypeError for what is no op, ValueError for an unknown name. Source: the op's own `forward` and `grad_*`; of
        ops whose backward is a kernel,
    `textbook_gradients`.

    >>> from tensorgrad.viz import formulas
    >>> import tensorgrad as torch
    >>> formulas("tanh").rules
    {'x': 'g · (1 − out²)'}
    >>> x = torch.ones(2, requires_grad=True)
    >>> formulas(type(x.sigmoid().grad_fn)).rules
    {'x': 'g · out · (1 − out)'}
    >>> loss = torch.nn.functional.mse_loss(x, torch.zeros(2)).grad_fn
    >>> formulas(type(loss)).rules['x'], formulas(type(loss), loss.params).rules['x']
    ('2 · (x − y) · (g / n if reduction = mean, else g)', '2 · (x − y) · g / n')
    """
    if isinstance(op, str):
        op = called(op)
    if not (isinstance(op, type) and issubclass(op, Op)):
        raise TypeError(f"formulas() takes the name or the class of an op, such as type(tensor.grad_fn), not "
                        f"{op!r:.100}")
    if not hasattr(op, "opname"):
        return Formulas(described(op), {}, place_of(op))
    given = options or {}
    defaults = {name: value for name, value in op.parameters.items()
                if name not in given and (value is None or options is not None and isinstance(value, SIMPLE))}
    chosen = {name: value for name, value in given.items() if isinstance(value, SIMPLE)}
    table: Any = OPS.get(op.opname)
    own: Any = table if table is not None and issubclass(op, table) else op
    return _formulas(own, frozenset({**defaults, **chosen}.items()))


def called(name: str) -> type[Op]:
    """The op of this name in the op table or, if there is none, the first that PyTorch calls so."""
    found = OPS.get(name) or next((op for opname, op in OPS.items() if public(opname) == name), None)
    if found is None:
        near = get_close_matches(name, [*OPS, *map(public, OPS)], n=1)
        raise ValueError(f"there is no op {name!r}" + (f": did you mean {near[0]!r}?" if near else ""))
    return found


@lru_cache(maxsize=1024)
def _formulas(op: Any, options: frozenset[tuple[str, Any]]) -> Formulas:
    known = dict(options)
    usual = {name: value for name, value in op.parameters.items() if isinstance(value, SIMPLE)} | known

    def rule(function: Any) -> str:
        found = formula(function, known)
        by_default = formula(function, usual) if found is None and usual != known else None
        return found or (f"{by_default}, by default" if by_default else ELSEWHERE)
    rules: dict[str, str] = {}
    in_table = OPS.get(op.opname) is op
    in_words: Mapping[str, str] = WORDS.get(op.opname, {}) if in_table else {}
    taught: Mapping[str, Any] = RULES.get(op.opname, {}) if in_table else {}
    for name in dict.fromkeys(op.inputs):
        own_rule = taught.get(name) or getattr(op, f"grad_{name}", None)
        if name in in_words:
            rules[name] = Words(in_words[name])
        elif own_rule is not None:
            rules[name] = rule(own_rule)
        elif op.composite and not taught and not in_words:
            rules[name] = Words(BY_DEFINITION)
    own: str | None
    if op.kernels.in_arrays and op.kernels.primitive and op.notation in ("", "{}") and not hasattr(np, op.opname):
        own = None              # its formula would be its own name, and NumPy has no such function
    elif "{}" in op.notation:
        own = notation(function(op.opname, *map(ast.Name, op.inputs)))
    else:
        own = formula(op.forward, known, whole=True)
    return Formulas(own or described(op), rules, place_of(op))


def formula(function: Any, options: dict[str, Any], whole: bool = False) -> str | None:
    """Return a function's result as mathematics; None if it is no formula, or one longer than LONGEST.

    Helpers are inlined, or named where the inlined formula would be too long or have details without a notation. With
    `whole`, formulas that name helpers or leave out details do not count.
    """
    found = []
    for helpers in (True, False):
        try:
            value, locals = read(function, options, helpers)
            if not (whole and any(map(unread, (value, *(v for _, v in locals))))):
                found.append(told(value, locals))
        except (NoFormula, Unspeakable):
            continue
    found = [text for text in found if len(text) <= LONGEST]
    return next((text for text in found if OPEN not in text), found[0] if found else None)


def told(value: ast.expr, locals: list[tuple[tuple[str, ...], ast.expr]]) -> str:
    """Write an expression, followed by the definitions of the locals in it."""
    text, defined = notation(value), ""
    for names, own in reversed(locals):
        if any(re.search(rf"(?<![\w.]){name}(?![\w′])", text + defined) for name in names):
            defined = f", {', '.join(names)} = {definition(own)}{defined}"
    return text + (f", with {defined[2:]}" if defined else "")


def unread(value: ast.expr) -> bool:
    """Return True if an expression has helpers known by their name alone, or details without a notation."""
    return any(isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id not in KNOWN
               or isinstance(n, (ast.Starred, ast.Slice, ast.GeneratorExp))
               for n in ast.walk(value))


def definition(value: ast.expr) -> str:
    """Write the value of a local; a condition gets brackets, as its = is a comparison."""
    condition = (isinstance(value, (ast.Compare, ast.BoolOp)) or isinstance(value, ast.BinOp)
                 and isinstance(value.op, (ast.BitAnd, ast.BitOr)))
    return f"({notation(value)})" if condition else notation(value)


def described(op: type[Op]) -> str:
    return " ".join((inspect.getdoc(op) or "").partition("\n\n")[0].split()) or ELSEWHERE


def place_of(op: type[Op]) -> tuple[str, int]:
    """Return an op's file, relative to the package for ops of the table, and its line."""
    code = getattr(getattr(op, "forward", None), "__code__", None)
    path = getattr(inspect.getmodule(op), "__file__", None) or (code.co_filename if code else "")
    found = definitions(path) if path else {}
    own = next((cls.__name__ for cls in op.__mro__ if cls.__name__ in found), None)
    line = found[own] if own else code.co_firstlineno if code else 1
    root = Path(__file__).resolve().parents[2]
    whole = Path(path).resolve()
    return whole.relative_to(root).as_posix() if whole.is_relative_to(root) else path, line
