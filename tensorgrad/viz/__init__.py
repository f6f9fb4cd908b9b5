"""Pictures of the tape."""
from .explain import Exercise, Explanation, explain
from .formulas import Formulas, formulas
from .graph import Graph, graph
from .render import dot, render
from .watch import watch

__all__ = ["Exercise", "Explanation", "Formulas", "Graph", "dot", "explain", "formulas", "graph", "render", "watch"]
