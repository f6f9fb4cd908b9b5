"""Rows of tables, read by the subscripts of arrays."""
from __future__ import annotations

from typing import Any

from ..ops.embedding import scaled
from .arrays import in_arrays


@in_arrays("embedding_bag")
def embedding_bag(xp: Any, x: Any, index: Any, bag: Any, s: Any, *, bags: int) -> Any:
    return xp.embedding_add(scaled(xp, x[index], s), bag, rows=bags)
