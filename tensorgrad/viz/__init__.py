"""Pictures and explanations of the tape.

`tape` reads all that is known of some steps, once. `model` is the plain graph that is drawn of it, by `drawing` alone:
`fold` groups it, `layout` and `scene` place it, `svg`, `dot`, `html` and `matplotlib_export` write it; `graph` and
`render` offer it. `step_texts` puts the steps into words, with `formulas` from the source of the ops (`reading`,
`notation`) or, for whole layers, from `textbook_gradients`. `report` lists the steps, `explained_graph`, `frames` and
`animation` walk through them, and `explain` offers them. `exercises` ask about them. `nan` finds where a NaN came from,
and `nan_search` stops a program at its first one. `monitor` shows a training while it runs. `watch` notes where steps
are made, `last_loss` the last loss of a program. `collectives` shows what ranks send to each other.
"""
from importlib import import_module
from typing import Any

from .exercises.exercise import Exercise
from .exercises.generation import exercise
from .explain import Explanation, explain
from .formulas import Formulas, formulas
from .graph import Graph, graph
from .monitor import monitor
from .nan import NanReport, explain_nan
from .plots import plot_grad_flow, plot_loss, plot_weights
from .render import dot, render
from .watch import watch


def __getattr__(name: str) -> Any:
    """The module `collectives`, when it is asked for."""
    if name != "collectives":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(".collectives", __name__)


__all__ = ["Exercise", "Explanation", "Formulas", "Graph", "NanReport", "collectives", "dot", "exercise", "explain",
           "explain_nan", "formulas", "graph", "monitor", "plot_grad_flow", "plot_loss", "plot_weights", "render",
           "watch"]
