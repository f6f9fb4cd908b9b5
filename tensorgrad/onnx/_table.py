"""The rules: how each op of the table is said in ONNX. They stand in the files `_rules_*`, by family.

A rule is a function `rule(g, *inputs, **params)` that adds nodes and gives the result, or a list of results. A string of ONNX
operators is a rule, too: one applied to the next, from the right.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ops.base import OPS

RULES: dict[str, Callable[..., Any]] = {}


def rule(names: str) -> Callable[[Any], Any]:
    """The rule for these ops."""
    def register(function: Any) -> Any:
        RULES.update(dict.fromkeys(names.split(), function))
        return function
    return register


def load() -> dict[str, Callable[..., Any]]:
    """All rules."""
    from . import _rules_elementwise, _rules_indexing, _rules_nn, _rules_reduction, _rules_shape  # noqa: F401
    for name, op in OPS.items():
        if op.onnx and name not in RULES:
            RULES[name] = lambda g, *inputs, kind=op.onnx: g.node(kind, *inputs)
    return RULES
