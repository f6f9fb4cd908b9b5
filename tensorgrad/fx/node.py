"""Where packages find the class of the nodes of a traced graph, and types to annotate with."""
from typing import Any

from . import Node

__all__ = ["Argument", "Node", "Target"]
Argument = Target = Any
