"""Entries of the reference: signature, docstring, formula and gradients of a function, class or op."""
from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import cache
from types import FunctionType
from typing import Any

from ..ops.base import OPS
from ..viz.formulas import ELSEWHERE, formulas
from .docstrings import first_paragraph, inline, markdown, source
from .names import made_of
from .signatures import signature_of


def table(rows: list[tuple[str, ...]], *head: str) -> str:
    """Return a Markdown table; its cells are Markdown."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |"
                     for row in lines)


def summary(thing: Any) -> str:
    """Return the first paragraph of a docstring as Markdown, or "" for what has no docstring of its own."""
    return inline(first_paragraph(thing)) if documented(thing) else ""


def documented(thing: Any) -> bool:
    """Return True if `thing` has a docstring of its own: numbers and strings show that of their class."""
    return bool(getattr(thing, "__doc__", None)) and (callable(thing) or inspect.isdatadescriptor(thing))


def is_ours(thing: Any) -> bool:
    """Return True unless Python or another package defines `thing`."""
    return str(getattr(thing, "__module__", None) or "tensorgrad").partition(".")[0] == "tensorgrad"


@cache
def gradients_of(op: str) -> str:
    """Return the gradients of an op as code, one for each input, or words where there are no formulas."""
    rules = formulas(OPS[op]).rules
    shown = ", ".join(f"`d{name} = {rule}`" for name, rule in rules.items() if rule != ELSEWHERE)
    return shown or (ELSEWHERE if rules else "by its definition" if OPS[op].composite else "none")


@cache
def forward_of(op: str) -> str:
    """Return the formula of an op as code, or "" where it only repeats the op's name."""
    forward = formulas(OPS[op]).forward
    return ("" if forward.startswith(f"{op}(") and "," not in forward or forward == first_paragraph(OPS[op])
            else f"`{forward}`")


def computed(function: Any, name: str) -> str:
    """Return which ops and functions a function calls, with the op's formula and gradients if it calls a single one."""
    ops, functions = made_of(function) if isinstance(inspect.unwrap(function), FunctionType) else ((), ())
    called = [*(f"`{op}`" for op in ops), *(f"`{f}()`" for f in functions if f != name and not f.startswith("is_"))]
    if not called:
        return ""
    lines = []
    if len(called) == 1 and len(ops) == 1:
        if forward := forward_of(ops[0]):
            lines.append(f"- **Formula**: {forward}")
        lines.append(f"- **Gradient**, given that of the result, g: {gradients_of(ops[0])}")
    return "\n".join([*lines, f"- **Ops**: {', '.join(called)}" if ops and len(called) == len(ops)
                      else f"- **Made of**: {', '.join(called)}"])


def function(name: str, thing: Any, title: str, notes: str = "", maths: bool = True) -> Iterator[str]:
    """Yield the entry of a function: signature, docstring, formula and gradients if it is one of maths, the page of
    PyTorch's manual.
    """
    yield f"### {title}"
    yield f"`{name}{signature_of(thing)}`"
    if documented(thing):
        yield markdown(thing)
    page = source(thing)
    yield "\n".join(filter(None, (computed(thing, name) if maths else "", notes,
                                  f"- **PyTorch**: {page}" if page else "")))


def kind(name: str, thing: type, title: str, notes: str = "") -> Iterator[str]:
    """Yield the entry of a class: how it is made, its docstring, its own public members."""
    yield f"### {title}"
    yield f"`{name}{signature_of(thing)}`"
    if "__doc__" in vars(thing) and thing.__doc__:
        yield markdown(thing)
    rows = [(f"`{member}{signature_of(value, not static) if callable(value) else ''}`", summary(value))
            for member, value, static in members(thing)]
    if rows:
        yield table(rows, "member", "purpose")
    page = source(thing)
    yield "\n".join(filter(None, (notes, f"- **PyTorch**: {page}" if page else "")))


def members(cls: type) -> list[tuple[str, Any, bool]]:
    """Return (name, value, True if it takes no self) of each public, documented member that a class itself defines."""
    found: list[tuple[str, Any, bool]] = []
    for name, value in sorted(vars(cls).items()) if is_ours(cls) else ():
        if name.startswith("_") or isinstance(value, type) or name in getattr(cls, "_fields", ()):
            continue
        bound = getattr(cls, name, None)
        shown = value if inspect.isdatadescriptor(value) else bound
        inherited = any(getattr(base, name, None) is not None and first_paragraph(getattr(base, name))
                        == first_paragraph(shown) for base in cls.__mro__[1:])
        if documented(shown) and (callable(shown) or inspect.isdatadescriptor(value)) and not inherited:
            found.append((name, shown, isinstance(value, (staticmethod, classmethod))))
    return found


def tensor_members() -> list[tuple[str, Any]]:
    """Return the public methods and properties of Tensor, by name."""
    from .._tensor import Tensor
    return sorted((name, getattr(Tensor, name)) for name in dir(Tensor) if not name.startswith("_"))
