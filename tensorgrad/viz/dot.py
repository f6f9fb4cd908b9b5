"""A graph as DOT text, for graphviz: groups are clusters, and closed ones boxes."""
from __future__ import annotations

from .fold import Group, ancestors
from .model import Node
from .scene import Scene, told_steps
from .text import numbers, quoted, shorten

LOOKS = {"leaf": 'shape=box style=filled fillcolor="#ffffff" color="#475569"',
         "constant": 'shape=box style=filled fillcolor="#f3f5f8" color="#a3aebd"',
         "step": 'shape=box style="rounded,filled" fillcolor="#e3eefc" color="#2f6fc4"',
         "value": 'shape=box style="rounded,filled" fillcolor="#1d4f91" color="#1d4f91" fontcolor="#ffffff"',
         "failed": 'shape=box style="rounded,filled,dashed" fillcolor="#fff3e6" color="#d55e00" penwidth=2.5'}


def written(drawn: Scene) -> str:
    """A scene as DOT text."""
    lines = ["digraph {", *["  rankdir=LR"] * drawn.shows.sideways,
             '  node [fontname="monospace" fontsize=10]', '  edge [fontname="monospace" fontsize=9 color="#64748b"]']
    todo: list[Group | str] = [drawn.tree.root]
    depth = 1
    while todo:
        group = todo.pop()
        if isinstance(group, str):      # the end of a cluster
            depth -= 1
            lines.append("  " * depth + group)
            continue
        if group is not drawn.tree.root:
            lines.append("  " * depth + f"subgraph {quoted('cluster_' + group.key)} {{")
            depth += 1
            title = shorten(group.title) + (f"  × {group.count}" if group.count and not group.repeats else "")
            lines.append("  " * depth + f'label={quoted(title)} labeljust=l fontname="monospace" fontsize=10 '
                                        f'style=rounded color="#b6c2d1"')
            todo.append("}")
        for member in group.members:
            if isinstance(member, Node):
                box = drawn.box(member)
                text = "\n".join(line for _, line in box.lines)
                lines.append("  " * depth + f"{quoted(member.id)} [label={quoted(text)} tooltip={quoted(box.tip)} "
                                            f"{LOOKS[box.kind]}]")
            elif member.key in drawn.opened:
                todo.append(member)
            else:
                text, shape = f"{shorten(member.title)}\n{told_steps(member)}", "box3d" if member.count else "box"
                lines.append("  " * depth + f"{quoted(member.key)} [label={quoted(text)} shape={shape} style=filled "
                                            f"fillcolor=white]")
    return "\n".join([*lines, *edges(drawn), "}"])


def edges(drawn: Scene) -> list[str]:
    """The edges between what is visible, each once, with its gradient if the picture is of the way back."""
    seen: dict[tuple[str, str], str] = {}
    for edge in drawn.tree.model.edges:
        a, b = visible(edge.source, drawn), visible(edge.target, drawn)
        if a != b:
            back = drawn.shows.backward
            known = back and edge.gradient is not None
            label = shorten(numbers(edge.gradient, 4)) if known else edge.text
            seen.setdefault((b, a) if back else (a, b), f" [label={quoted(label)}]" if label else "")
    return [f"  {quoted(a)} -> {quoted(b)}{label}" for (a, b), label in seen.items()]


def visible(node: str, drawn: Scene) -> str:
    """The node, or the outermost closed group that holds it."""
    return next((group.key for group in ancestors(drawn.tree.home[node]) if group.key not in drawn.opened), node)


__all__ = ["written"]
