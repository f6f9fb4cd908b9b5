"""Nested lists, tuples, dictionaries and slices."""
from ..graph.nesting import leaves, mapped

__all__ = ["leaves", "mapped"]
