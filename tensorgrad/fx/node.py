"""The class of the nodes of a traced graph, and types to annotate with, in PyTorch's place for them."""
from typing import Any

__all__ = ["Argument", "Node", "Target"]
Argument = Target = Any


class Node:
    """The class of the nodes of a traced graph: nothing here is one."""
