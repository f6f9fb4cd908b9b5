"""The graph of an explanation, as its page, its film and its exercises draw it: boxes with lines for numbers that show
when the steps come to them.
"""
from __future__ import annotations

from typing import Any

from .model import Model, Node
from .scene import Scene
from .text import clean, escape, shorten


class Boxes(Scene):
    """The boxes of the graph, with lines for the value and the gradient, which show when the lesson comes to them."""

    def lines(self, node: Node) -> list[tuple[str, str]]:
        lines = [("title", shorten(clean(node.title)))]
        if node.kind == "step" and node.name:
            lines.append(("name", node.name))
        if node.value and node.dtype is not None:
            lines.append(("value", f"= {node.value}"))
        return lines + ([("gradient", f"grad {node.gradient}")] if node.gradient else [])

    def told(self, node: Node) -> str:
        return f"{node.name} = {node.title}" if node.kind == "step" else node.title


def framed(page: str) -> str:
    """A page within another, as notebooks show it."""
    return (f'<iframe srcdoc="{escape(page, lines=True)}" style="width:100%;height:640px;border:0" title="Backprop, '
            f'step by step"></iframe>')


def pictured(explanation: Any, some: set[Any] | None) -> Model:
    """The graph that the page draws: all of it, or the steps of `some` and what leads to them."""
    model = explanation.model
    ends = {node.id for node in model.nodes if node.kind == "value"}        # the root says so itself
    keep = {n.id for n in model.nodes if n.id not in ends and (some is None or n.tape in some)}
    if some is not None:
        keep |= {e.source for e in model.edges if e.target in keep and model.by_id[e.source].kind == "leaf"}
    part = Model([n for n in model.nodes if n.id in keep],
                 [e for e in model.edges if e.source in keep and e.target in keep])
    part.by_id = {n.id: n for n in part.nodes}
    return part
