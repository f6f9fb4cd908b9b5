"""The rules: how each op of the table is said in ONNX. They stand in the files `_rules_*`, by family.

A rule is a function `rule(g, *inputs, **params)` that adds nodes and gives the result, or a list of results. A string of ONNX
operators is a rule, too: one applied to the next, from the right.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

RULES: dict[str, Callable[..., Any]] = {}


def rule(names: str) -> Callable[[Any], Any]:
    """The rule for these ops."""
    def register(function: Any) -> Any:
        RULES.update(dict.fromkeys(names.split(), function))
        return function
    return register
