"""Pictures of the tape."""
from .explain import Exercise, Explanation, explain
from .formulas import Formulas, formulas
from .graph import Graph, graph
from .plots import plot_grad_flow, plot_loss, plot_weights
from .render import dot, render
from .watch import watch

__all__ = ["Exercise", "Explanation", "Formulas", "Graph", "dot", "explain", "formulas", "graph", "plot_grad_flow", "plot_loss", "plot_weights",
           "render", "watch"]
