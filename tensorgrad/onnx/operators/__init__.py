"""ONNX's operators as functions of tensors, by families."""
from __future__ import annotations

from importlib import import_module
from typing import Any

from ._table import OPERATORS, Operator

FAMILIES = "control elementwise images indexing losses matrices neural recurrent reductions sequences shapes".split()


def find(domain: str, name: str, version: int) -> Operator | None:
    """Return the function that computes an operator of a version of the operator set; None if there is none."""
    if not OPERATORS:
        for family in FAMILIES:
            import_module(f"{__name__}.{family}")
    versions = OPERATORS.get(("" if domain == "ai.onnx" else domain, name), ())
    return next((each for each in versions if each.since <= version), None)


def names() -> list[tuple[str, str]]:
    """Return (domain, name) of all operators that are known."""
    find("", "", 1)
    return sorted(OPERATORS)


__all__: list[Any] = ["find", "names"]
