"""The list of steps, folded by the modules that made them."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..text import escape, shorten
from .frames import Frame

FEW = 36           # frames of a list that is open from the beginning


@dataclass(slots=True)
class Fold:
    """A call of a module, in the order of time: numbers of frames, and the calls within it."""

    name: str
    members: list[Any] = field(default_factory=list)

    def count(self) -> int:
        return sum(member.count() if isinstance(member, Fold) else 1 for member in self.members)


def steplist(frames: Sequence[Frame], groups: Mapping[Any, tuple[str, ...]]) -> str:
    """The list of frames as HTML; `groups` has the paths of modules of places on the tape."""
    opened = " open" if len(frames) <= FEW else ""
    root = folded(frames, groups)
    return f'<nav class="list" aria-label="Steps"><ol>{items(root, frames, opened)}</ol></nav>'


def folded(frames: Sequence[Frame], groups: Mapping[Any, tuple[str, ...]]) -> Fold:
    """The frames in a tree of modules: neighbours of one module are in one fold."""
    root = Fold("")
    way: list[Fold] = [root]
    for i, frame in enumerate(frames):
        path = (groups.get(frame.nodes[0], ()) if frame.phase and len(frame.nodes) == 1 and (frame.ways or frame.values)
                else ())
        same = 0
        while same < min(len(path), len(way) - 1) and way[same + 1].name == path[same]:
            same += 1
        if frames[i - 1].phase != frame.phase:
            same = 0
        del way[same + 1:]
        for name in path[same:]:
            way[-1].members.append(fold := Fold(name))
            way.append(fold)
        way[-1].members.append(i)
    return root


def items(fold: Fold, frames: Sequence[Frame], opened: str) -> str:
    parts = []
    for member in fold.members:
        if isinstance(member, Fold):
            name = member.name
            # a module that does nothing but call another
            while len(member.members) == 1 and isinstance(member.members[0], Fold):
                member = member.members[0]
                name += f".{member.name}"
            if member.count() == 1:
                parts.append(item(member.members[0], frames, name))
                continue
            parts.append(f'<li><details{opened}><summary>{escape(shorten(name))} <small>{member.count()} '
                         f'steps</small></summary>'
                         f"<ol>{items(member, frames, opened)}</ol></details></li>")
        else:
            parts.append(item(member, frames))
    return "".join(parts)


def item(number: int, frames: Sequence[Frame], module: str = "") -> str:
    """A frame; behind it the module that made it, if it is alone in there."""
    frame = frames[number]
    said = f" <small>{escape(shorten(module))}</small>" if module else ""
    return (f'<li><button type="button" data-frame="{number}" '
            f'data-phase="{frame.phase}">{escape(shorten(frame.short, 48))}{said}</button></li>')
