"""Pictures of the tape."""
from .graph import Graph, graph
from .render import dot, render
from .watch import watch

__all__ = ["Graph", "dot", "graph", "render", "watch"]
