"""Lists, tuples, dictionaries and slices with things in them, to any depth."""
from ..graph.nesting import leaves, mapped

__all__ = ["leaves", "mapped"]
