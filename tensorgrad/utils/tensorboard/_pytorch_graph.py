"""PyTorch's place for `graph`."""
from ._graph import graph

__all__ = ["graph"]
