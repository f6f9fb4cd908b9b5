"""Draw graphs with Matplotlib: nodes are values, edges are layers."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..viz.layout import layout
from ..viz.plots import canvas, plain
from ..viz.text import columns
from .data import SymbolicData
from .graph_algorithms import default_edge_text, default_node_text, figure_out_nodes_between, sort_graph_and_check_DAG, variable_name_resolver

FONT, LETTER, LINE = 9.0, 5.6, 12.0                 # points: of the text, of a letter's width, and of a line's height
MARGIN, LEGEND = 12.0, 34.0
LARGEST = 100.0                                     # inches: the largest default size of a figure
COLOURS = {"input": "#ffc9c0", "output": "#bfe8c4", "hidden": "#c4ecf2"}


def draw_graph(*, model: Any = None, inputs: Any = None, outputs: Any = None, node_text_func: Callable[[Any], str] | None = None,
               edge_text_func: Callable[[Any], str] | None = None, node_text_namespace: dict[str, Any] | None = None, rotate_graph: bool = False,
               rotate_labels: bool = False, show: bool = False, figsize: tuple[float, float] | None = None) -> Any:
    """Draw a model's graph, or the graph between inputs and outputs, as a Matplotlib Figure.

    By default `figsize` fits the text.

    Nodes show their shapes, `node_text_func(node)`, or their names in `node_text_namespace`, such as `globals()`. Edges
    show the class of the layer, or `edge_text_func(layer)`. With `rotate_graph`, the graph goes from left to right.
    `rotate_labels` turns the texts of the edges by 90°. `show` opens a window. Without `inputs`, all ancestors of the
    `outputs` are drawn; without `outputs`, all descendants of the `inputs`.

    KeyError if there is neither a model nor a node; ImportError without Matplotlib (extra `plot`), which `picture` does without.

    >>> import tensorgrad as torch
    >>> from tensorgrad.symbolic import Input, draw_graph
    >>> x = Input((8,))
    >>> figure = draw_graph(inputs=x, outputs=torch.nn.Linear(8, 4)(x))
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['(None, 8)', '(None, 4)', 'Linear']
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
        node_text_func = default_node_text if node_text_namespace is None else variable_name_resolver(node_text_namespace)
    drawn = Drawing(rotate_graph, rotate_labels)
    for node in nodes:
        drawn.node(node, str(node_text_func(node)), "input" if node in starts else "output" if node in ends else "hidden")
    for node in nodes:
        if node not in starts:
            text = str((edge_text_func or default_edge_text)(node.layer))
            for parent in node.parents:
                if parent in among:
                    drawn.edge(parent, node, text)
    return drawn.figure(figsize, show)


def _listed(nodes: Any) -> list[Any] | None:
    if nodes is None:
        return None
    nodes = [nodes] if isinstance(nodes, SymbolicData) else list(nodes)
    for node in nodes:
        if not isinstance(node, SymbolicData):
            raise TypeError(f"draw_graph: inputs and outputs must be nodes of a graph, not {type(node).__name__}")
    return nodes


class Drawing:
    """Boxes with text, and paths between them. The text of an edge is a box on its path, so that no two texts overlap."""

    def __init__(self, sideways: bool, upright: bool) -> None:
        self.sideways, self.upright = sideways, upright
        self.number: dict[Any, int] = {}
        self.texts: list[str] = []
        self.kinds: list[str] = []
        self.sizes: list[tuple[float, float]] = []
        self.edges: list[tuple[int, int]] = []

    def box(self, text: str, kind: str) -> int:
        lines = plain_lines(text)
        width, height = max(map(columns, lines)) * LETTER + 14, LINE * len(lines) + 8
        if kind == "edge":
            width, height = (height - 4, width - 4) if self.upright else (width - 4, height - 4)
        self.texts.append("\n".join(lines))
        self.kinds.append(kind)
        self.sizes.append((height, width) if self.sideways else (width, height))
        return len(self.texts) - 1

    def node(self, node: Any, text: str, kind: str) -> None:
        self.number[node] = self.box(text, kind)

    def edge(self, parent: Any, child: Any, text: str) -> None:
        a, b = self.number[parent], self.number[child]
        if text:
            label = self.box(text, "edge")
            self.edges += [(a, label), (label, b)]
        else:
            self.edges.append((a, b))

    def figure(self, figsize: tuple[float, float] | None, show: bool) -> Any:
        """Return the figure with the layout. A unit is a point, or less if the figure is too small."""
        places = layout(self.sizes, self.edges)
        width, height = (places.height, places.width) if self.sideways else (places.width, places.height)
        width, height = max(width + 2 * MARGIN, 180.0), height + 2 * MARGIN
        if figsize is None:
            scale = min(1.0, 72 * LARGEST / max(width, height))
            figsize = width * scale / 72, (height * scale + LEGEND) / 72
        else:
            scale = min(72 * figsize[0] / width, max(72 * figsize[1] - LEGEND, 1.0) / height)
        figure, axes = sheet(figsize, show)
        figure.set_layout_engine("none")
        low = min(LEGEND / 72 / figsize[1], 0.5)
        axes.set_position((0, low, 1, 1 - low))
        axes.axis("off")
        axes.set(xlim=(-MARGIN, width - MARGIN), ylim=(height - MARGIN, -MARGIN), aspect="equal")
        for (x, y), (w, h), text, kind in zip(self.turned(zip(places.x, places.y)), self.turned(self.sizes), self.texts, self.kinds):
            self.draw_box(axes, x, y, w, h, text, kind, scale)
        for (_, target), way in zip(self.edges, places.routes):
            draw_way(axes, self.turned(way), self.kinds[target] != "edge", scale)
        legend(figure)
        if show:
            from matplotlib import pyplot
            pyplot.show()
        return figure

    def turned(self, points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
        return [(y, x) if self.sideways else (x, y) for x, y in points]

    def draw_box(self, axes: Any, x: float, y: float, w: float, h: float, text: str, kind: str, scale: float) -> None:
        from matplotlib.patches import FancyBboxPatch
        if kind != "edge":
            axes.add_patch(FancyBboxPatch((x - w / 2 + 3, y - h / 2 + 3), w - 6, h - 6, boxstyle="round,pad=3", facecolor=COLOURS[kind], edgecolor="#475569",
                                          linewidth=0.8 * scale, zorder=2))
        axes.text(x, y, text, ha="center", va="center", family="monospace", fontsize=FONT * scale, zorder=3, linespacing=1.2,
                  rotation=90 if kind == "edge" and self.upright else 0, color="#0f172a" if kind != "edge" else "#334155")


def sheet(figsize: tuple[float, float], show: bool) -> tuple[Any, Any]:
    """Return a figure of this size and its axes; it has a window if `show`."""
    if not show:
        return canvas(None, *figsize)
    canvas(None, 1, 1)                      # raises the ImportError that names the extra
    from matplotlib import pyplot
    figure = pyplot.figure(figsize=figsize)
    return figure, figure.add_subplot()


def draw_way(axes: Any, points: list[tuple[float, float]], arrow: bool, scale: float) -> None:
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path
    axes.add_patch(FancyArrowPatch(path=Path(points), arrowstyle="-|>" if arrow else "-", mutation_scale=9 * scale, color="#64748b",
                                   linewidth=1.0 * scale, joinstyle="round", zorder=1))


def legend(figure: Any) -> None:
    from matplotlib.patches import Patch
    marks = [Patch(facecolor=colour, edgecolor="#475569", label=kind) for kind, colour in COLOURS.items()]
    figure.legend(handles=marks, loc="lower center", ncols=3, frameon=False, fontsize=FONT, columnspacing=1.2, handlelength=1.2)


def plain_lines(text: str) -> list[str]:
    """Return the lines of an untrusted text, escaped for Matplotlib and cut if they are long."""
    return [plain(line) if line else "" for line in text.split("\n")[:6]]


__all__ = ["draw_graph"]
