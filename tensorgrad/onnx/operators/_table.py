"""The table of operators, which the files of the families fill.

An operator is a function `f(*inputs, **attributes)` of tensors. Absent inputs are None; attributes are numbers,
strings, lists, tensors, or for graphs callables. The function returns a tensor, or a tuple if the operator has several
results.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...api import Tensor
from ...graph.records import Record

OPERATORS: dict[tuple[str, str], list[Operator]] = {}


class Operator(Record):
    """A function for an operator from a version of the operator set on.

    `fixed` has the places of inputs that training must not change; `outputs` is true if the function needs the number
    of results that the node uses, as the argument `outputs`.
    """

    function: Callable[..., Any]
    since: int
    fixed: tuple[int, ...]
    outputs: bool


def operator(names: str, since: int = 1, domain: str = "", fixed: tuple[int, ...] = (),
             outputs: bool = False) -> Callable[[Any], Any]:
    """Decorate the function for operators, from a version of the operator set on."""
    def register(function: Any) -> Any:
        for name in names.split():
            versions = OPERATORS.setdefault((domain, name), [])
            versions.append(Operator(function, since, fixed, outputs))
            versions.sort(key=lambda each: -each.since)
        return function
    return register


def numbers(values: Any) -> list[Any]:
    """Return the numbers of a tensor of one dimension or of a list, as a list."""
    if isinstance(values, Tensor):
        return values.reshape(-1).tolist()  # type: ignore[no-any-return]
    return list(values)


def number(value: Any) -> Any:
    """Return the number of a tensor of one element, or a number itself."""
    return value.item() if isinstance(value, Tensor) else value
