"""Programs of the kernel `loop`: its call for a `Loop` and operands of given shapes, strides and dtypes.

native/loop.h says how a program is laid out, and native/loop.c checks it.
"""
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ..graph.records import Record
from .loop_instructions import (
    BOOL,
    DROPPED,
    FULL,
    REDUCTIONS,
    ROW,
    Instructions,
    Lane,
    Unserved,
    instructions,
    kind_of,
    kinds,
    rows_of,
)
from .loops import Loop

AXES, REGISTERS, NUMBERS, STEPS = 4, 16, 64, 128
INPUTS = {"values": 8, "bytes": 2, "int64": 1}          # how many operands of each kind the kernel takes, in its order
FIRST_OF = {"values": 0, "bytes": 8, "int64": 10}
ALL_INPUTS, RESULTS, OUTPUTS = 11, 3, 4
INPUT, OUTPUT = REGISTERS, REGISTERS + ALL_INPUTS
NUMBER = OUTPUT + OUTPUTS
WRITTEN = {FULL: 1, ROW: 2, DROPPED: 2}
MODEST = 1 << 40
MOST_ROW = 1 << 14                                      # elements, where all of a row waits for its reduction


class Layout(NamedTuple):
    """An array of a call: strides in elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: Any


def contiguous(shape: tuple[int, ...], dtype: Any) -> Layout:
    """Return the layout of an array in C order."""
    steps = [1]
    for n in reversed(shape[1:]):
        steps.append(steps[-1] * n)
    return Layout(shape, tuple(reversed(steps))[:len(shape)], dtype)


class Program(Record):
    """A call of the kernel.

    `inputs` has, for each array that the kernel reads, the operand that it is; `outputs` has, for each array that it
    writes, the result that it is. `numbers` follow the arrays. An output may be written over an operand of `over`.
    """

    inputs: list[int | None]
    outputs: list[int | None]
    code: np.ndarray
    numbers: list[int]
    shapes: dict[int, tuple[int, ...]]  # of the results that it writes
    dtype: Any                          # of the arithmetic, and of results that are no truth values
    same: list[int]                     # for each result of the loop, the first that equals it
    over: dict[Any, list[int]]

    def arguments(self, operands: Sequence[Any], results: dict[int, Any]) -> list[Any]:
        """Return the arguments of the kernel."""
        return [*(None if k is None else operands[k] for k in self.inputs),
                *(None if k is None else results[k] for k in self.outputs), self.code, *self.numbers]


def program(loop: Loop, operands: Sequence[Layout]) -> Program:
    """Return the program of a loop. Unserved if the kernel cannot run it."""
    if not kinds():
        raise Unserved("no compiled module")
    shape = np.broadcast_shapes(*(o.shape for o in operands))
    reduced = reduced_axes(loop, len(shape))
    axes, steps = _merged(shape, [_steps(o, shape) for o in operands], reduced)
    made, results = instructions(loop, _type_of(loop, operands), [o.dtype for o in operands],
                                 [_form(o, shape, reduced) for o in operands], ndim=len(shape), reduced=reduced,
                                 count=axes[-1])
    if axes[-1] > MOST_ROW and not made.in_parts:
        raise Unserved("rows too long")
    places, outputs = _inputs(operands), _outputs(results)
    code = _Code(made, [INPUT + p for p in places], {lane.at[1]: OUTPUT + k for k, lane in outputs})
    at_inputs: list[int | None] = [None] * ALL_INPUTS
    inputs, reach = np.zeros((ALL_INPUTS, AXES + 1), np.int64), [1] * ALL_INPUTS
    for k, (operand, place) in enumerate(zip(operands, places, strict=True)):
        at_inputs[place] = k
        inputs[place] = *steps[k], operand.dtype == BOOL
        reach[place] = 1 + sum((n - 1) * s for n, s in zip(axes, steps[k], strict=True))
    first = {lane.at: i for i, lane in reversed(list(enumerate(results)))}
    written = {k: first[lane.at] for k, lane in outputs}
    whole = [k for k, operand in enumerate(operands) if operand.shape == shape and places[k] < FIRST_OF["bytes"]
             and all(n == 1 or s == prod(axes[i + 1:]) for i, (n, s) in enumerate(zip(axes, steps[k], strict=True)))]
    over = _over(made, code.at, whole, {lane.at[1]: written[k] for k, lane in outputs if k < RESULTS})
    forms = {k: lane.form for k, lane in outputs}
    sizes = [1 if k not in forms else prod(axes) if forms[k] == FULL else prod(axes[:-1]) for k in range(OUTPUTS)]
    return Program(at_inputs, [written.get(k) for k in range(OUTPUTS)],
                   code.program(inputs, [WRITTEN[forms[k]] if k in forms else 0 for k in range(OUTPUTS)]),
                   [*axes, *reach, *sizes], {written[k]: _shape(shape, form, reduced) for k, form in forms.items()},
                   made.dtype, [first[lane.at] for lane in results], over)


def reduced_axes(loop: Loop, ndim: int) -> int:
    """Return how many of the last axes a loop's reductions take: 0 without any. Unserved if they differ."""
    found = {rows_of(dict(step.params).get("axis"), ndim) for step in loop.steps if step.opname in REDUCTIONS}
    if found == {0} or len(found) > 1:
        raise Unserved("reductions along other axes than the last")
    return found.pop() if found else 0


def _form(operand: Layout, shape: tuple[int, ...], reduced: int) -> int:
    """Return whether an operand has all elements of a row, or one for all of them."""
    lead = len(shape) - len(operand.shape)
    inside = operand.shape[max(len(shape) - reduced - lead, 0):] if reduced else shape
    return ROW if reduced and set(inside) <= {1} and set(shape[len(shape) - reduced:]) != {1} else FULL


def _shape(shape: tuple[int, ...], form: int, reduced: int) -> tuple[int, ...]:
    rows = shape[:len(shape) - reduced]
    return shape if form == FULL else rows if form == DROPPED else rows + (1,) * reduced


def _type_of(loop: Loop, operands: Sequence[Layout]) -> Any:
    """Return the dtype that the loop computes in: that of its floating point operands, or else of its casts."""
    found = {np.dtype(o.dtype) for o in operands if np.dtype(o.dtype).char in "fd"}
    found = found or {np.dtype(d) for step in loop.steps for name, d in step.params
                      if name == "dtype" and np.dtype(d).char in "fd"}
    if len(found) > 1:
        raise Unserved("operands of several dtypes")
    return found.pop() if found else np.dtype(np.float32)           # which truth values alone do not mind


def _steps(operand: Layout, shape: tuple[int, ...]) -> list[int]:
    """Return the steps of an operand along the axes of the result; 0 where it is broadcast."""
    lead = len(shape) - len(operand.shape)
    steps = [0] * lead + [0 if n == 1 else s for n, s in zip(operand.shape, operand.strides, strict=True)]
    if any(s < 0 or s >= MODEST for s in steps):
        raise Unserved("a negative stride")
    return steps


def _merged(shape: tuple[int, ...], steps: list[list[int]], reduced: int) -> tuple[list[int], list[list[int]]]:
    """Return the fewest axes along which all operands have steps, four of them, with the operands' steps.

    The last `reduced` axes become the last one.
    """
    if not prod(shape) or prod(shape) >= MODEST:
        raise Unserved("an empty result")
    end = len(shape) - reduced
    columns = list(zip(shape, *steps, strict=True))
    rows, within = _joined(columns[:end]), _joined(columns[end:])
    if reduced:
        within = within or [(1, *[0] * len(steps))]
    if len(within) > 1 + 3 * (not reduced) or len(rows) + len(within) > AXES:
        raise Unserved("too many axes")
    found = rows + within
    found = [(1, *[0] * len(steps))] * (AXES - len(found)) + found
    return [c[0] for c in found], [[c[1 + k] for c in found] for k in range(len(steps))]


def _joined(columns: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Join axes (length, step of each operand) that all operands pass as if they were one; drop those of length 1."""
    found: list[tuple[int, ...]] = []
    for n, *steps in columns:
        if n > 1 and found and all(before == s * n for before, s in zip(found[-1][1:], steps, strict=True)):
            found[-1] = (found[-1][0] * n, *steps)
        elif n > 1:
            found.append((n, *steps))
    return found


def _inputs(operands: Sequence[Layout]) -> list[int]:
    """Return the place of each operand among the kernel's arrays."""
    taken = dict.fromkeys(INPUTS, 0)
    places = []
    for operand in operands:
        kind = kind_of(operand.dtype)
        if not kind or taken[kind] == INPUTS[kind]:
            raise Unserved("too many operands")
        places.append(FIRST_OF[kind] + taken[kind])
        taken[kind] += 1
    return places


def _outputs(results: list[Lane]) -> list[tuple[int, Lane]]:
    """Return (place among the kernel's results, result) of those that are different."""
    taken = {"values": 0, "bytes": 0}
    found: list[tuple[int, Lane]] = []
    for lane in results:
        if any(lane.at == other.at for _, other in found):
            continue
        kind = "bytes" if lane.dtype == BOOL else "values"
        if taken[kind] == (1 if kind == "bytes" else RESULTS):
            raise Unserved("too many results")
        found.append((taken[kind] + (RESULTS if kind == "bytes" else 0), lane))
        taken[kind] += 1
    return found


class _Code:
    """The instructions that results depend on, with places: results are put into outputs, other values into registers
    that are free.
    """

    def __init__(self, made: Instructions, inputs: list[int], outputs: dict[int, int]) -> None:
        self.at = _needed(made, outputs)
        self.numbers: list[float] = []
        self.rows: list[list[int]] = []
        last = {a: at for at in self.at for a in _sources(made, at, "at")}
        places: dict[int, int] = {}
        free = list(range(REGISTERS))[::-1]
        for at in self.at:
            name, operands, by_row = made.rows[at]
            of = [(inputs if a[0] == "in" else places)[a[1]] if isinstance(a, tuple) else self._number(a)
                  for a in operands]
            ended = [a for a in _sources(made, at, "at") if last[a] == at and places[a] < REGISTERS]
            # a number for each row may not be overwritten by elements, which are made row by row
            kept = [places[a] for a in ended if made.rows[a].by_row and not by_row]
            free += [places[a] for a in ended if places[a] not in kept]
            if at not in outputs and not free:
                raise Unserved("too many values at once")
            places[at] = outputs[at] if at in outputs else free.pop()
            free += kept
            self.rows.append([kinds()[name], int(by_row), places[at], *of, *[0] * (4 - len(of))])
        if len(self.rows) > STEPS or len(self.numbers) > NUMBERS:
            raise Unserved("too many steps or numbers")

    def program(self, inputs: np.ndarray, outputs: list[int]) -> np.ndarray:
        """Return the program as native/loop.h has it."""
        bits = np.array(self.numbers, np.float64).view(np.int64)
        return np.concatenate([np.array([len(self.numbers), len(self.rows)]), inputs.ravel(), np.array(outputs), bits,
                               np.array(self.rows).ravel()]).astype(np.int64)

    def _number(self, a: float) -> int:
        hexes = [b.hex() for b in self.numbers]             # 0 and −0 differ, NaN equals NaN
        if a.hex() not in hexes:
            self.numbers.append(a)
            return NUMBER + len(hexes)
        return NUMBER + hexes.index(a.hex())


def _sources(made: Instructions, at: int, kind: str) -> set[int]:
    """Return the instructions ("at"), or inputs ("in"), that an instruction reads."""
    return {a[1] for a in made.rows[at].operands if isinstance(a, tuple) and a[0] == kind}


def _needed(made: Instructions, outputs: dict[int, int]) -> list[int]:
    needed = set(outputs)
    for at in range(len(made.rows) - 1, -1, -1):
        if at in needed:
            needed |= _sources(made, at, "at")
    return sorted(needed)


def _over(made: Instructions, order: list[int], whole: list[int], results: dict[int, int]) -> dict[int, list[int]]:
    """Return, for each result's number, the operands over which it may be written: those in its shape and order that
    no later instruction reads.
    """
    last = {k: at for at in order for k in _sources(made, at, "in")}
    return {number: [k for k in whole if last.get(k, -1) <= at] for at, number in results.items()}
