"""The registry of rules, which export the ops of the table to ONNX. The files `_rules_*` define them, by family.

A rule is a function `rule(g, *inputs, **params)` that adds nodes and returns the result, or a list of results. A string
of ONNX operators is a rule as well: their composition, applied from the right.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

RULES: dict[str, Callable[..., Any]] = {}


def rule(names: str) -> Callable[[Any], Any]:
    """Decorate the rule for these ops."""
    def register(function: Any) -> Any:
        RULES.update(dict.fromkeys(names.split(), function))
        return function
    return register
