"""All rules, those of the families' files and those that an op's record says itself."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ops.base import OPS
from . import _rules_elementwise, _rules_indexing, _rules_nn, _rules_reduction, _rules_shape  # noqa: F401  they register theirs
from ._table import RULES


def load() -> dict[str, Callable[..., Any]]:
    """Return {op: rule}, with rules for ops that were defined since."""
    for name, op in OPS.items():
        if op.onnx not in ("", "definition") and name not in RULES:
            RULES[name] = lambda g, *inputs, kind=op.onnx: g.node(kind, *inputs)
    return RULES
