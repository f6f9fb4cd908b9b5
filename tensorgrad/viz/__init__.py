"""Pictures of the tape."""
from .formulas import Formulas, formulas
from .graph import Graph, graph
from .render import dot, render
from .watch import watch

__all__ = ["Formulas", "Graph", "dot", "formulas", "graph", "render", "watch"]
