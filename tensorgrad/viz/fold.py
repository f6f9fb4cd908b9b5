"""Large graphs folded: steps grouped by module, repeated blocks told once ("× 12"), and long rows of steps cut into
pieces.

Every group is an interval of time, so no group leads back to itself, whatever the program did.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .model import Model, Node, zip_calls

# the longest block that is looked for; members of a group, and of a piece of it; inputs
PERIOD, CROWD, PIECE, INPUTS = 64, 150, 100, 4


@dataclass(slots=True, eq=False)
class Group:
    """A box that holds steps and other groups."""

    key: str
    title: str
    parent: Group | None = None
    members: list[Any] = field(default_factory=list)        # nodes and groups, in the order of time
    count: int = 0                                          # how many alike it holds, of repeated blocks
    repeats: bool = False                                   # whether it is the rest of a repeated block
    path: tuple[str, ...] = ()
    # (what made the tensor, from, to) -> edges
    links: dict[tuple[str, str, str], list[Any]] = field(default_factory=dict)
    steps: int = 0                                          # how many it holds in all


class Tree:
    """The groups of a model: `root`, `groups` (parents first), where each node is, and `captions` of steps that were
    alone in a module.
    """

    def __init__(self, model: Model, fold: bool = True) -> None:
        self.model = model
        self.groups: list[Group] = []
        self.captions: dict[str, str] = {}
        self.root = self.group("", None)
        self.home: dict[str, Group] = {}
        self.by_modules(fold)
        if fold:
            self.unwrap()
            self.repeat()
            self.cut()
            self.unwrap()
        self.groups = list(self.top_down())
        for group in self.groups:
            for member in group.members:
                if isinstance(member, Node):
                    self.home[member.id] = group
        self.place_leaves()
        self.link()
        for group in reversed(self.groups):
            group.steps = sum(m.steps if isinstance(m, Group) else m.kind != "leaf" for m in group.members)

    def group(self, title: str, parent: Group | None, path: tuple[str, ...] = (), members: Any = ()) -> Group:
        made = Group(f"g{len(self.groups)}", title, parent, list(members), path=path)
        self.groups.append(made)
        for member in made.members:
            if isinstance(member, Group):
                member.parent = made
        return made

    def top_down(self) -> Iterator[Group]:
        todo = [self.root]
        while todo:
            group = todo.pop()
            yield group
            todo.extend(m for m in reversed(group.members) if isinstance(m, Group))

    # ── modules ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def by_modules(self, fold: bool) -> None:
        """Steps that follow each other in one call of a module come into one group."""
        way: list[tuple[tuple[str, int], Group]] = []
        for node in self.model.nodes:
            if node.kind == "leaf":
                continue
            path = list(zip_calls(node)) if fold and node.kind != "value" else []
            depth = 0
            while depth < min(len(way), len(path)) and way[depth][0] == path[depth]:
                depth += 1
            del way[depth:]
            for part in path[depth:]:
                above = way[-1][1] if way else self.root
                inner = self.group(part[0], above, (*above.path, part[0]))
                above.members.append(inner)
                way.append((part, inner))
            (way[-1][1] if way else self.root).members.append(node)

    def unwrap(self) -> None:
        """A group of one member is that member: a step gets its name as a caption, a group a longer title."""
        for group in reversed(list(self.top_down())):
            for k, inner in enumerate(group.members):
                if isinstance(inner, Group) and len(inner.members) == 1:
                    group.members[k] = only = inner.members[0]
                    if isinstance(only, Group):
                        only.parent = group
                        only.title = inner.title if only.count else f"{inner.title}.{only.title}"
                    elif only.kind != "failed":
                        self.captions.setdefault(only.id, inner.title)

    # ── repeated blocks ───────────────────────────────────────────────────────────────────────────────────────────────

    def repeat(self) -> None:
        """Find blocks that repeat, in every group, the innermost first."""
        code: dict[Any, int] = {}
        codes: dict[str, int] = {}        # of a group or node: equal numbers, equal contents
        sources = self.model.inputs()
        holder: dict[str, tuple[Group, int]] = {}
        for group in reversed(list(self.top_down())):
            for _ in range(4):
                self.number(group, holder)
                loose = np.array([self.code_of(m, code, codes) for m in group.members], dtype=np.int64)
                strict = np.array([code.setdefault((int(c), self.wiring(m, k, group, holder, sources)), len(code))
                                   for k, (m, c) in enumerate(zip(group.members, loose))], dtype=np.int64)
                runs = periods(strict, loose, [isinstance(m, Group) for m in group.members])
                if not runs:
                    break
                self.gather(group, runs)
            codes[group.key] = code.setdefault(tuple(self.code_of(m, code, codes) for m in group.members), len(code))

    def code_of(self, member: Any, code: dict[Any, int], codes: dict[str, int]) -> int:
        if isinstance(member, Group):
            if member.key not in codes:
                inner = [member]
                for g in inner:
                    inner.extend(m for m in g.members if isinstance(m, Group) and m.key not in codes)
                for g in reversed(inner):
                    codes[g.key] = code.setdefault(tuple(self.code_of(m, code, codes) for m in g.members), len(code))
            return codes[member.key]
        return code.setdefault((member.kind, member.title, member.shape, self.captions.get(member.id)), len(code))

    def number(self, group: Group, holder: dict[str, tuple[Group, int]]) -> None:
        """Note of each node inside a group which member holds it."""
        for k, member in enumerate(group.members):
            for node in inside(member):
                holder[node.id] = (group, k)

    def wiring(self, member: Any, k: int, group: Group, holder: dict[str, tuple[Group, int]],
               sources: dict[str, list[Any]]) -> tuple[int, ...]:
        """How far back, among the members of the group, lies what a member uses."""
        back = []
        for node in inside(member):
            for edge in sources[node.id]:
                where = holder.get(edge.source)
                if where is not None and where[0] is group and where[1] != k:
                    back.append(min(k - where[1], PERIOD))
        return tuple(back)

    def gather(self, group: Group, runs: list[tuple[int, int, int]]) -> None:
        """Replace runs (start, period, times) of members by groups of blocks."""
        members: list[Any] = []
        at = 0
        for start, period, times in runs:
            members.extend(group.members[at:start])
            blocks = []
            for b in range(times):
                part = group.members[start + b * period:start + (b + 1) * period]
                blocks.append(part[0] if period == 1 else self.group(f"{b + 1}", group, group.path, part))
            names = [m.title for m in (blocks if period == 1 else blocks[0].members)]
            title = (f"{names[0]} … {names[-1]}" if period == 1 and names[0] != names[-1] else names[0] if period == 1
                     else ", ".join(
                names[:3]) + (" …" if period > 3 else ""))
            rest = self.group(f"{times - 1} more like it", group, group.path, blocks[1:])
            rest.count, rest.repeats = times - 1, True
            run = self.group(title, group, group.path, [blocks[0], rest])
            run.count, run.parent = times, group
            members.append(run)
            at = start + times * period
        group.members = [*members, *group.members[at:]]

    # ── crowds ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def cut(self) -> None:
        """Cut groups of very many members into pieces."""
        for group in list(self.top_down()):
            while len(group.members) > CROWD:
                keep = [m for m in group.members if isinstance(m, Node) and m.kind in ("value", "failed")]
                cut = [m for m in group.members if not (isinstance(m, Node) and m.kind in ("value", "failed"))]
                if len(cut) <= PIECE:
                    break
                pieces = [cut[i:i + PIECE] for i in range(0, len(cut), PIECE)]
                group.members = [*(self.group(f"part {k + 1} of {len(pieces)}", group, group.path, piece)
                                   for k, piece in enumerate(pieces)), *keep]

    # ── leaves and links ──────────────────────────────────────────────────────────────────────────────────────────────

    def place_leaves(self) -> None:
        """A leaf is in the innermost group that holds all that use it; the inputs of the whole, if they are few, are
        outside of all.
        """
        inputs = [node.id for node in self.model.nodes if node.kind == "leaf" and node.dtype is not None
                  and not node.parameter]
        outside = set(inputs) if len(inputs) <= INPUTS else ()
        users: dict[str, list[str]] = {}
        for edge in self.model.edges:
            users.setdefault(edge.source, []).append(edge.target)
        for node in self.model.nodes:
            if node.kind == "leaf":
                way: list[Group] | None = None
                for user in users.get(node.id, ()):
                    found = ancestors(self.home[user])
                    if way is not None:
                        depth = 0
                        while depth < min(len(way), len(found)) and way[depth] is found[depth]:
                            depth += 1
                        found = found[:depth]
                    way = found
                home = way[-1] if way and node.id not in outside else self.root
                self.home[node.id] = home
                home.members.append(node)

    def link(self) -> None:
        """Bring each edge to the group where it passes between two members, and to the borders of the groups that it
        enters and leaves.
        """
        ways: dict[str, list[Group]] = {group.key: ancestors(group) for group in self.groups}
        for edge in self.model.edges:
            leaves, enters = ways[self.home[edge.source].key], ways[self.home[edge.target].key]
            depth = 0
            while depth < min(len(leaves), len(enters)) and leaves[depth] is enters[depth]:
                depth += 1
            a, b = edge.source, edge.target
            for group in reversed(leaves[depth:]):
                group.links.setdefault((edge.source, a, f"out:{edge.source}"), []).append(edge)
                a = group.key
            for group in reversed(enters[depth:]):
                group.links.setdefault((edge.source, f"in:{edge.source}", b), []).append(edge)
                b = group.key
            leaves[depth - 1].links.setdefault((edge.source, a, b), []).append(edge)


def ancestors(group: Group | None) -> list[Group]:
    """The groups around a group, from the outermost, and itself."""
    way = []
    while group is not None:
        way.append(group)
        group = group.parent
    return way[::-1]


def inside(member: Any) -> Iterator[Node]:
    """The nodes of a member of a group."""
    todo = [member]
    while todo:
        m = todo.pop()
        if isinstance(m, Group):
            todo.extend(reversed(m.members))
        else:
            yield m


def periods(strict: Any, loose: Any, is_group: list[bool]) -> list[tuple[int, int, int]]:
    """Runs (start, period, times) in which numbers repeat, that do not overlap: those that cover most come first.

    How the first block of a run is wired to what came before it may differ from the others.
    """
    found = []
    n = len(strict)
    for period in range(1, min(PERIOD, n // 2) + 1):
        same = np.concatenate(([False], strict[period:] == strict[:-period], [False]))
        changes = np.flatnonzero(same[1:] != same[:-1])
        for start, end in zip(changes[::2].tolist(), changes[1::2].tolist()):
            for _ in range(period):
                if start and loose[start - 1] == loose[start - 1 + period]:
                    start -= 1
                else:
                    break
            times = (end + period - start) // period
            covered = times * period
            if (times >= 3 and (covered >= 8 or any(is_group[start:start + period]))
                    and len(set(loose[start:start + period].tolist())) >= min(period, 2)):
                found.append((-covered, period, start, times))
    taken = np.zeros(n, dtype=bool)
    chosen = []
    for covered, period, start, times in sorted(found):
        if not taken[start:start - covered].any():
            taken[start:start - covered] = True
            chosen.append((start, period, times))
    return sorted(chosen)
