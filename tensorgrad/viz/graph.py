"""`tensorgrad.viz.graph`: the graph that tensors came from, as DOT, SVG, PNG, PDF and one self-contained page."""
from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from .dot import dot
from .fold import Tree
from .html import graph_page
from .matplotlib_export import painted
from .model import Model
from .modules import paths
from .naming import unnamed, variables
from .scene import Scene, Shows
from .svg import draw
from .tape import read, read_failed
from .text import escape

PICTURES: dict[type, Callable[..., Graph]] = {}     # drawing functions of other kinds of graphs, registered by their modules


class Graph:
    """A graph, ready to be looked at. It shows itself in notebooks; `save` writes it to a file of any of its formats."""

    def __init__(self, model: Model, shows: Shows, fold: bool = True, title: str = "") -> None:
        self.model, self.shows, self.fold = model, shows, fold
        self.steps = sum(node.kind == "step" for node in model.nodes)
        self.title = title or f"{'Backward graph' if shows.backward else 'Graph'} of {self.steps:,} step{'s' if self.steps != 1 else ''}"

    @cached_property
    def tree(self) -> Tree:
        return Tree(self.model, self.fold)

    @cached_property
    def scene(self) -> Scene:
        return Scene(self.tree, self.shows)

    def dot(self) -> str:
        """The graph as DOT text, for graphviz. Groups are clusters."""
        return dot(self.scene)

    def svg(self) -> str:
        """The graph as SVG."""
        return draw(self.scene, title=self.title)

    def html(self) -> str:
        """The graph as a self-contained page: groups open and close by click and keyboard, boxes have details."""
        failed = next((node for node in self.model.nodes if node.kind == "failed"), None)
        return graph_page(self.tree, self.shows, self.title, "" if failed is None else self.scene.told(failed))

    def png(self) -> bytes:
        """The graph as a PNG picture. Errors: ImportError without Matplotlib, which the extra `viz` brings."""
        return painted(self.svg(), "png")

    def pdf(self) -> bytes:
        """The graph as a PDF page, its fonts embedded. Errors: ImportError without Matplotlib, which the extra `viz` brings."""
        return painted(self.svg(), "pdf")

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the graph to a file whose suffix says how: .dot, .svg, .png, .pdf or .html. Folders are made. Returns the path.

        >>> import tensorgrad as torch, tempfile
        >>> w = torch.ones(2, requires_grad=True)
        >>> torch.viz.graph(w * 2).save(tempfile.mkdtemp() + "/graph.svg").name
        'graph.svg'
        """
        path = Path(path)
        if path.suffix not in WRITTEN:
            raise ValueError(f"save: the path must end in one of {', '.join(WRITTEN)}, and {str(path)!r} does not")
        content = getattr(self, WRITTEN[path.suffix])()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        return (f'<iframe srcdoc="{escape(self.html(), lines=True)}" sandbox="allow-scripts" title="{escape(self.title)}" '
                'style="width:100%;height:640px;border:1px solid #d5dce6;border-radius:6px"></iframe>')

    def __repr__(self) -> str:
        return f"<{self.title}, {len(self.model.nodes) - self.steps:,} leaves and outputs: .svg(), .html(), .dot(), .save(path)>"


WRITTEN = {".dot": "dot", ".svg": "svg", ".png": "png", ".pdf": "pdf", ".html": "html"}


def graph(*outputs: Any, module: Any = None, names: dict[str, Any] | None = None, values: bool = False, gradients: Any = None, shapes: bool = True,
          saved: bool = False, source: bool = False, backward: bool = False, fold: bool = True, title: str = "") -> Graph:
    """The graph that these tensors came from, to be shown in a notebook or saved as .svg, .html, .dot, .png or .pdf.

    Parameters are called what `module` calls them, other tensors and modules what `names` does, a mapping from names to these. Without `names`, they are
    called by the variables of the program that calls. `values` and `shapes` are those of the tensors, as far as the tape knows them, `saved` is what
    steps keep for the way back, `source` the line of the program (noted inside of `viz.watch()`).
    `gradients` are collected from ones at the outputs, or from those given, and change no `.grad`. `backward` draws the way back, each edge with
    its gradient. Unless `fold` is off, steps are grouped by module and repeated blocks are told once.

    A SymbolicModel or a layers.Functional is drawn as `symbolic.picture` does. Raises a RuntimeError if no tensor requires grad, and a TypeError for what is
    no tensor.

    >>> import tensorgrad as torch
    >>> w = torch.tensor([1., 2.], requires_grad=True)
    >>> picture = torch.viz.graph((w * 3).sum(), names={"w": w}, values=True)
    >>> picture
    <Graph of 2 steps, 3 leaves and outputs: .svg(), .html(), .dot(), .save(path)>
    >>> "multiply" in picture.svg() and "<script>" in picture.html()
    True
    """
    for cls, drawn in PICTURES.items():
        if any(isinstance(output, cls) for output in outputs):
            return drawn(*outputs, shapes=shapes, fold=fold, title=title)
    scope = variables(sys._getframe(1)) if names is None else names
    names = unnamed(scope, module) if names is None else {name: value for name, value in names.items() if not hasattr(value, "named_modules")}
    wanted = backward if gradients is None else gradients
    model = read(*outputs, module=module, names=names, gradients=wanted, modules=paths(scope, module))
    shows = Shows(shapes, values, wanted is not False, saved, source, backward)
    return Graph(model, shows, fold, title)


def failed(seen: Any, *, values: bool = False, shapes: bool = True, source: bool = True, fold: bool = True, title: str = "") -> Graph:
    """Return the picture of a forward that failed under `watch`: its recorded steps, and the operation that failed."""
    model = read_failed(seen)
    return Graph(model, Shows(shapes, values, source=source), fold, title or f"Failed at {seen.failure.title}")


__all__ = ["Graph", "graph"]
