"""All rules: those of the families' files, and the `onnx` attributes of ops."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ops.base import OPS
from . import _rules_elementwise, _rules_indexing, _rules_nn, _rules_reduction, _rules_shape  # noqa: F401  they register theirs
from ._table import RULES


def load() -> dict[str, Callable[..., Any]]:
    """Return {op: rule}, including ops defined since the last call."""
    for name, op in OPS.items():
        if op.onnx not in ("", "definition") and name not in RULES:
            RULES[name] = lambda g, *inputs, kind=op.onnx: g.node(kind, *inputs)
    return RULES
