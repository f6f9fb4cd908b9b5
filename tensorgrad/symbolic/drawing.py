"""`draw_graph`: a graph of symbols whose boxes are values and whose arrows are layers, as a Matplotlib Figure."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..viz.drawing import Graph, draw
from ..viz.model import Model, Node
from ..viz.scene import LINES, Scene, Shows
from ..viz.svg import COLOURS
from ..viz.text import shorten
from .data import SymbolicData
from .graph_algorithms import (
    default_edge_text,
    default_node_text,
    figure_out_nodes_between,
    sort_graph_and_check_DAG,
    variable_name_resolver,
)

# inches: the height of the legend, and the largest default size of a figure
LEGEND, LARGEST = 0.47, 100.0
KINDS = {"input": "leaf", "output": "value", "hidden": "step"}


def draw_graph(*, model: Any = None, inputs: Any = None, outputs: Any = None,
               node_text_func: Callable[[Any], str] | None = None, edge_text_func: Callable[[Any], str] | None = None,
               node_text_namespace: dict[str, Any] | None = None, rotate_graph: bool = False,
               rotate_labels: bool = False, show: bool = False,
               figsize: tuple[float, float] | None = None) -> Any:
    """Draw a model's graph, or the graph between inputs and outputs, as a Matplotlib Figure whose boxes are values and
    whose arrows are layers.

    `picture` draws the same graph with layers as boxes and groups of them, and needs no Matplotlib. By default
    `figsize` fits the text.

    Nodes show their shapes, `node_text_func(node)`, or their names in `node_text_namespace`, such as `globals()`. Edges
    show the class of the layer, or `edge_text_func(layer)`. With `rotate_graph`, the graph goes from left to right.
    `rotate_labels` turns the texts of the edges by 90°. `show` opens a window. Without `inputs`, all ancestors of the
    `outputs` are drawn; without `outputs`, all descendants of the `inputs`.

    KeyError if there is neither a model nor a node; ImportError without Matplotlib (extra `plot`), which `picture` does
    without.

    >>> import tensorgrad as torch
    >>> from tensorgrad.symbolic import Input, draw_graph
    >>> x = Input((8,))
    >>> figure = draw_graph(inputs=x, outputs=torch.nn.Linear(8, 4)(x))
    >>> sorted(text.get_text() for text in figure.axes[0].texts)
    ['(None, 4)', '(None, 8)', 'Linear']
    """
    if model is not None:
        inputs, outputs = model.inputs if inputs is None else inputs, model.outputs if outputs is None else outputs
    if inputs is None and outputs is None:
        raise KeyError("draw_graph: a model, inputs or outputs are needed")
    starts, ends = _listed(inputs), _listed(outputs)
    nodes = sort_graph_and_check_DAG(figure_out_nodes_between(starts, ends))
    if starts is None:
        starts = [node for node in nodes if not node.parents]
    among = set(nodes)
    if ends is None:
        ends = [node for node in nodes if among.isdisjoint(node.children)]
    if node_text_func is None:
        node_text_func = (default_node_text if node_text_namespace is None
                          else variable_name_resolver(node_text_namespace))
    drawn, made = Model(), {}
    for node in nodes:
        kind = KINDS["input" if node in starts else "output" if node in ends else "hidden"]
        made[node] = drawn.add(kind, str(node_text_func(node)), tape=node)
    for node in nodes:
        text = "" if node in starts else str((edge_text_func or default_edge_text)(node.layer))
        for position, parent in enumerate(() if node in starts else node.parents):
            if parent in among:
                drawn.link(made[parent], made[node], position=position, text=text)
    graph = Graph(drawn, Shows(sideways=rotate_graph, upright=rotate_labels), False, scene=Texts)
    figure = draw(graph, "figure", size=figsize, most=LARGEST, foot=LEGEND, window=show)
    legend(figure)
    if show:
        from matplotlib import pyplot
        pyplot.show()
    return figure


class Texts(Scene):
    """Boxes that show a text that was given, and nothing else."""

    def lines(self, node: Node) -> list[tuple[str, str]]:
        return [("title", shorten(line)) for line in node.title.split("\n")[:LINES]]

    def told(self, node: Node) -> str:
        return node.title


def legend(figure: Any) -> None:
    from matplotlib.patches import Patch
    marks = [Patch(facecolor=COLOURS[look][0], edgecolor=COLOURS[edge][0], label=kind)
             for kind, look, edge in (("input", "leaf", "leaf-edge"), ("output", "value", "value"),
                                      ("hidden", "step", "step-edge"))]
    figure.legend(handles=marks, loc="lower center", ncols=3, frameon=False, fontsize=9, columnspacing=1.2,
                  handlelength=1.2)


def _listed(nodes: Any) -> list[Any] | None:
    if nodes is None:
        return None
    nodes = [nodes] if isinstance(nodes, SymbolicData) else list(nodes)
    for node in nodes:
        if not isinstance(node, SymbolicData):
            raise TypeError(f"draw_graph: inputs and outputs must be nodes of a graph, not {type(node).__name__}")
    return nodes


__all__ = ["draw_graph"]
