"""PyTorch's class of nodes of a traced graph, and types for annotations, under their names."""
from typing import Any

__all__ = ["Argument", "Node", "Target"]
Argument = Target = Any


class Node:
    """PyTorch's class of nodes of a traced graph; no object is an instance."""
