"""`draw`: the only way from boxes and arrows to SVG, DOT, PNG, PDF, a page, or a Matplotlib figure.

Whoever has a graph (`viz.graph`, `viz.render`, `symbolic.picture`, `symbolic.draw_graph`, nngraph's modules,
explanations, their films and exercises) makes a `Model` of nodes and edges, wraps it in a `Graph`, and asks for a form
of it. `fold` groups the nodes, `scene` sizes and `layout` places the boxes, and one writer for each form is called
here.
"""
from __future__ import annotations

from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from . import dot, html, matplotlib_export, svg
from .fold import Tree
from .model import Model
from .scene import Scene, Shows
from .text import escape

FORMS = ("html", "svg", "dot", "png", "pdf")            # of files, by their suffixes


def draw(graph: Graph, form: str, **options: Any) -> Any:
    """Draw a graph: "svg", "dot" and "html" are text, "png" and "pdf" are bytes, "figure" is a Matplotlib Figure.

    `options` are those of `matplotlib_export.figure`. Errors: ImportError without Matplotlib for "png", "pdf" and
        "figure"; ValueError for
    another form.

    >>> model = Model()
    >>> _ = model.link(model.add("leaf", "x"), model.add("value", "y"))
    >>> draw(Graph(model), "dot").splitlines()[-2]
    '  "n0" -> "n1"'
    """
    if form == "svg":
        return svg.written(graph.scene, graph.title)
    if form == "dot":
        return dot.written(graph.scene)
    if form == "html":
        failed = next((node for node in graph.model.nodes if node.kind == "failed"), None)
        return html.graph_page(graph.tree, graph.shows, graph.title, "" if failed is None else graph.scene.told(failed))
    if form in ("png", "pdf"):
        return matplotlib_export.painted(draw(graph, "svg"), form)
    if form == "figure":
        return matplotlib_export.figure(draw(graph, "svg"), **options)
    raise ValueError(f"draw: the form must be 'figure' or one of {', '.join(map(repr, FORMS))}, not {form!r}")


class Graph:
    """A graph, ready to be looked at.

    The drawing shows itself in notebooks; `save` writes it to a file of any of its formats.
    """

    def __init__(self, model: Model, shows: Shows | None = None, fold: bool = True, title: str = "",
                 scene: type[Scene] = Scene) -> None:
        self.model, self.shows, self.fold, self._scene = model, shows or Shows(), fold, scene
        self.steps = sum(node.kind == "step" for node in model.nodes)
        self.title = title or titled("Backward graph" if self.shows.backward else "Graph", model)

    @cached_property
    def tree(self) -> Tree:
        return Tree(self.model, self.fold)

    @cached_property
    def scene(self) -> Scene:
        return self._scene(self.tree, self.shows)

    def dot(self) -> str:
        """The graph as DOT text, for graphviz. Groups are clusters."""
        return draw(self, "dot")

    def svg(self) -> str:
        """The graph as SVG."""
        return draw(self, "svg")

    def html(self) -> str:
        """The graph as a self-contained page: groups open and close by click and keyboard, boxes have details."""
        return draw(self, "html")

    def png(self) -> bytes:
        """The graph as a PNG picture. Errors: ImportError without Matplotlib, which the extra `viz` brings."""
        return draw(self, "png")

    def pdf(self) -> bytes:
        """The graph as a PDF page, its fonts embedded.

        Errors: ImportError without Matplotlib, which the extra `viz` brings.
        """
        return draw(self, "pdf")

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the graph to a file whose suffix says how: .dot, .svg, .png, .pdf or .html.

        Folders are made. Returns the path.

        >>> import tensorgrad as torch, tempfile
        >>> w = torch.ones(2, requires_grad=True)
        >>> torch.viz.graph(w * 2).save(tempfile.mkdtemp() + "/graph.svg").name
        'graph.svg'
        """
        path = Path(path)
        if path.suffix[1:] not in FORMS:
            raise ValueError(f"save: the path must end in one of {', '.join(f'.{form}' for form in FORMS)}, and "
                             f"{str(path)!r} does not")
        content = draw(self, path.suffix[1:])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        return (f'<iframe srcdoc="{escape(self.html(), lines=True)}" sandbox="allow-scripts" '
                f'title="{escape(self.title)}" style="width:100%;height:640px;border:1px solid '
                f'#d5dce6;border-radius:6px"></iframe>')

    def __repr__(self) -> str:
        return (f"<{self.title}, {len(self.model.nodes) - self.steps:,} leaves and outputs: .svg(), .html(), .dot(), "
                f".save(path)>")


def titled(name: str, model: Model) -> str:
    """Return the title of a graph that has no other: "Graph of 2 steps"."""
    steps = sum(node.kind == "step" for node in model.nodes)
    return f"{name} of {steps:,} step{'s' if steps != 1 else ''}"


__all__ = ["FORMS", "Graph", "draw", "titled"]
