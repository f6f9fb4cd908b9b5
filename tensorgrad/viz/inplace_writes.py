"""Writes in place on the tape, as the statements of the program: `c[:, 1] *= 2` is one write, of up to seven steps.

A write to a part of a tensor is recorded as the selection of the part, the operation on it, and the tensor with that
part replaced. Python's `*=` then assigns the part to itself, which is recorded, too.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import groupby
from typing import Any, NamedTuple

from ..core.step import Operand
from .torch_names import public, subscript, viewed

SIGNS = {"add": "+=", "subtract": "-=", "multiply": "*=", "divide": "/=", "power": "**=", "matmul": "@=",
         "remainder": "%=", "floor_divide": "//="}
PARTS = ("get_item", "get_slice", "view")
NUMBERED = re.compile(r"v\d+$")             # a name that no variable of the program gave
SUBSCRIPT = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


class Write(NamedTuple):
    """A statement that writes to a part of a tensor.

    - `steps`: its steps in the order of time; the last makes the tensor as it is after the write
    - `target`: the place of the tensor before the write; None where that needs no gradient
    - `where`: the part, as an index; `sign`: "=", "*=" or, of a method, ".exp_"
    - `value`: the step that computes what is written; None if the program had it
    - `part`: the step that selects what is computed with; None if nothing is
    - `operands`: the inputs of `value` that are not the part; without a `value`, what is written; `fill`: the number
      that is
    - `template`, `arrays`: of an index with arrays, its parts and the arrays
    """

    steps: tuple[Any, ...]
    target: Any
    where: str
    sign: str
    value: Any
    part: Any
    operands: tuple[Operand, ...]
    fill: Any = None
    template: Any = None
    arrays: tuple[Operand, ...] = ()

    @property
    def last(self) -> Any:
        return self.steps[-1]

    @property
    def main(self) -> Any:
        """The step that has the operands."""
        return self.last if self.value is None else self.value

    def named(self, spoken: Callable[[Operand], str]) -> Write:
        """The write, with the names of its index arrays in `where`."""
        return (self if self.template is None
                else self._replace(where=subscript(self.template, [*map(spoken, self.arrays)])))

    def text(self, name: str, spoken: Callable[[Operand], str]) -> str:
        """The statement, for a tensor of this name and operands as `spoken` says them.

        >>> Write((None,), None, "[0]", "=", None, None, (), 0).text("c", str)
        'c[0] = 0'
        """
        given = ", ".join(map(spoken, self.operands)) if self.fill is None else f"{self.fill:g}"
        if self.sign.startswith("."):
            return f"{name}{self.where}{self.sign}({given})"
        return f"{name}{self.where} {self.sign} {given}"


def writes(tape: Any) -> dict[Any, Write]:
    """{the last step of a write: the write}, of those on a tape between whose steps back no other adds to the gradient
    of the target.
    """
    users: dict[Any, list[Any]] = {}
    for node in tape.steps:
        for e in node.edges:
            if e is not None:
                users.setdefault(e, []).append(node)
    givers: dict[Any, list[Any]] = {}           # the steps back that add to the gradient of a place, in their order
    for back in tape.back:
        for share in back.shares:
            givers.setdefault(share.edge, []).append(back.node)
    found: dict[Any, Write] = {}
    inner: set[Any] = set()
    for node, step in tape.steps.items():
        if named(tape, node) == "index_put":
            found[node] = at_arrays(node, step)
        if named(tape, node) != "set_view" or node in inner:
            continue
        write = written_again(one(tape, node, users), tape, users)
        own = [giver in write.steps for giver in givers.get(write.target, ())]
        if sum(mine for mine, _ in groupby(own)) <= 1:
            found[write.last] = write
            inner.update(write.steps)
    return found


def at_arrays(node: Any, step: Any) -> Write:
    """The write of an `index_put`: `c[i] = v`."""
    sign = "+=" if node.params.get("accumulate") else "="
    return Write((node,), node.edges[0], "", sign, None, None, (step.inputs[1],), None, node.params["template"],
                 step.inputs[2:])


def one(tape: Any, node: Any, users: Mapping[Any, list[Any]]) -> Write:
    """The write that ends with this `set_view`."""
    target, made = node.edges
    view = node.params["view"]
    where = viewed(view)
    step = tape.steps.get(made)
    value = tape.steps[node].inputs[1]
    if step is None or step.op is None or step.op.several or users.get(made) != [node] or made in tape.leaves:
        return Write((node,), target, where, "=", None, None, (value,))
    part = next((o.edge for o in step.inputs if o.edge is not None and selects(tape, o.edge, target, view)
                 and users.get(o.edge) == [made]), None)
    operands = tuple(o for o in step.inputs if o.edge is None or o.edge is not part)
    steps = (*([part] if part is not None else []), made, node)
    name = step.op.opname
    if name == "filled":
        return Write(steps, target, where, "=", made, part, (), made.params["value"])
    if name == "copied":
        return Write(steps, target, where, "=", made, part, operands[-1:])
    if part is None:
        return Write((node,), target, where, "=", None, None, (value,))
    first = step.inputs[0].edge is part
    return Write(steps, target, where, SIGNS.get(name, f".{public(name)}_") if first else f".{public(name)}_", made,
                 part, operands)


def selects(tape: Any, place: Any, target: Any, view: Any) -> bool:
    """Return True if a step selects the part of `target` that `view` shows."""
    step = tape.steps.get(place)
    if step is None or named(tape, place) not in PARTS or place.edges[0] is not target or target is None:
        return False
    path = place.params["view"] if "view" in place.params else ((step.op, place.params),)
    return viewed(path) == viewed(view)


def written_again(write: Write, tape: Any, users: Mapping[Any, list[Any]]) -> Write:
    """A write with the assignment of the part to itself, with which Python ends `c[0] *= 2`."""
    last = write.last
    copies = [s for node in users.get(last, ()) if (s := sole(users, node)) is not None and named(tape, s) == "copied"]
    if len(users.get(last, ())) != 3 or len(copies) != 2 or copies[0] is not copies[1]:
        return write
    end = sole(users, copies[0])
    if (end is None or named(tape, end) != "set_view" or end.edges[0] is not last
            or viewed(end.params["view"]) != write.where):
        return write
    if ({*copies[0].edges, end} != {*users[last]} or not all(selects(tape, e, last, end.params["view"])
                                                             for e in copies[0].edges)):
        return write
    return write._replace(steps=(*write.steps, *copies[0].edges, copies[0], end))


def named(tape: Any, node: Any) -> str:
    """The name of a step's op; '' for a function of the program's own."""
    op = tape.steps[node].op
    return "" if op is None else op.opname


def sole(users: Mapping[Any, list[Any]], node: Any) -> Any:
    """The only step that uses a place; None if there are others, or none."""
    using = users.get(node, ())
    return using[0] if len(using) == 1 else None


def ends(found: Mapping[Any, Write]) -> dict[Any, Any]:
    """{the last step of a write: that of the last write to its tensor}."""
    after = {write.target: last for last, write in found.items() if write.target is not None}
    told: dict[Any, Any] = {}
    for last in reversed(found):
        told[last] = told[after[last]] if last in after else last
    return told


def versioned(names: Mapping[Any, str], found: Mapping[Any, Write]) -> dict[Any, str]:
    """Names of the versions of tensors that are written to: `c₁` before the last write to `c`, for places without a
    name of the program.

    The part of a tensor that a write reads is called `c₁[0]`, what it writes there `c₂[0]`.
    """
    names = dict(names)
    before: dict[Any, Any] = {write.target: write for write in found.values() if write.target is not None}
    for write in found.values():
        if write.target in found:
            continue                        # not the first write to its tensor
        chain: list[Any] = [write.target]
        after: Any = write
        while after is not None:
            chain.append(after.last)
            after = before.get(after.last)
        known = [names[place] for place in chain if place is not None and not NUMBERED.match(names[place])]
        for number, place in enumerate(chain):
            if known and place is not None and NUMBERED.match(names[place]):
                names[place] = known[-1] + str(number).translate(SUBSCRIPT)
    for write in found.values():
        if write.part is not None and write.target is not None:
            names[write.part] = f"{names[write.target]}{write.where}"
        if write.value is not None and NUMBERED.match(names[write.value]):
            names[write.value] = f"{names[write.last]}{write.where}"
    return names
