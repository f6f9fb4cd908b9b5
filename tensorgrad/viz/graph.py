"""`tensorgrad.viz.graph`: the graph that tensors came from, read from the tape and drawn by `drawing`."""
from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from .drawing import Graph
from .modules import paths
from .naming import unnamed, variables
from .scene import Shows
from .tape import read, read_failed

# drawing functions of other kinds of graphs, registered by their modules
PICTURES: dict[type, Callable[..., Graph]] = {}


def graph(*outputs: Any, module: Any = None, names: dict[str, Any] | None = None, values: bool = False,
          gradients: Any = None, shapes: bool = True, saved: bool = False, source: bool = False, backward: bool = False,
          fold: bool = True,
          title: str = "") -> Graph:
    """The graph that these tensors came from, to be shown in a notebook or saved as .svg, .html, .dot, .png or .pdf.

    `render` gives a finished picture of one tensor's graph with its numbers; `explain` also says how each gradient
    comes about. Here, boxes are steps, leaves and outputs, and the options say what they show.

    Parameters are called what `module` calls them, other tensors and modules what `names` does, a mapping from names to
    these. Without `names`, they are called by the variables of the program that calls. `values` and `shapes` are those
    of the tensors, as far as the tape knows them, `saved` is what steps keep for the way back, `source` the line of the
    program (noted inside of `viz.watch()`). `gradients` are collected from ones at the outputs, or from those given,
    and change no `.grad`. `backward` draws the way back, each edge with its gradient. Unless `fold` is off, steps are
    grouped by module and repeated blocks are told once.

    A SymbolicModel or a layers.Functional is drawn as `symbolic.picture` does. Raises a RuntimeError if no tensor
    requires grad, and a TypeError for what is no tensor.

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
    names = (unnamed(scope, module) if names is None
             else {name: value for name, value in names.items() if not hasattr(value, "named_modules")})
    wanted = backward if gradients is None else gradients
    model = read(*outputs, module=module, names=names, gradients=wanted, modules=paths(scope, module))
    shows = Shows(shapes, values, wanted is not False, saved, source, backward)
    return Graph(model, shows, fold, title)


def failed(seen: Any, *, values: bool = False, shapes: bool = True, source: bool = True, fold: bool = True,
           title: str = "") -> Graph:
    """Return the picture of a forward that failed under `watch`: its recorded steps, and the operation that failed."""
    model = read_failed(seen)
    return Graph(model, Shows(shapes, values, source=source), fold, title or f"Failed at {seen.failure.title}")


__all__ = ["Graph", "graph"]
