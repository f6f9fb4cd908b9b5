"""Programs of the kernel `loop`: its call for a `Loop` and operands of given shapes, strides and dtypes.

native/loop.h says how a program is laid out, and native/loop.c checks it.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np

from .loop_instructions import BOOL, Instructions, Lane, Unserved, instructions, kind_of, kinds
from .loops import Loop

AXES, REGISTERS, NUMBERS, STEPS = 4, 16, 64, 128
INPUTS = {"values": 8, "bytes": 2, "int64": 1}          # how many operands of each kind the kernel takes, in its order
FIRST_OF = {"values": 0, "bytes": 8, "int64": 10}
ALL_INPUTS, RESULTS, OUTPUTS = 11, 3, 4
INPUT, OUTPUT = REGISTERS, REGISTERS + ALL_INPUTS
NUMBER = OUTPUT + OUTPUTS
FULL = 1
MODEST = 1 << 40


class Layout(NamedTuple):
    """An array of a call: strides in elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: Any


@dataclass
class Program:
    """A call of the kernel.

    `inputs` has, for each array that the kernel reads, the operand that it is; `outputs` has, for each array that it
    writes, the result that it is. `numbers` follow the arrays. An output may be written over an operand of `over`.
    """

    inputs: list[int | None]
    outputs: list[int | None]
    code: np.ndarray
    numbers: list[int]
    shape: tuple[int, ...]
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
    axes, steps = _merged(shape, [_steps(o, shape) for o in operands])
    made, results = instructions(loop, _type_of(operands), [o.dtype for o in operands])
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
    return Program(at_inputs, [written.get(k) for k in range(OUTPUTS)],
                   code.program(inputs, [FULL * (k in written) for k in range(OUTPUTS)]),
                   [*axes, *reach, *(prod(shape) if k in written else 1 for k in range(OUTPUTS))], shape, made.dtype,
                   [first[lane.at] for lane in results], over)


def _type_of(operands: Sequence[Layout]) -> Any:
    """Return the dtype that the loop computes in: that of its floating point operands."""
    found = {np.dtype(o.dtype) for o in operands if np.dtype(o.dtype).char in "fd"}
    if len(found) != 1:
        raise Unserved("operands of several dtypes")
    return found.pop()


def _steps(operand: Layout, shape: tuple[int, ...]) -> list[int]:
    """Return the steps of an operand along the axes of the result; 0 where it is broadcast."""
    lead = len(shape) - len(operand.shape)
    steps = [0] * lead + [0 if n == 1 else s for n, s in zip(operand.shape, operand.strides, strict=True)]
    if any(s < 0 or s >= MODEST for s in steps):
        raise Unserved("a negative stride")
    return steps


def _merged(shape: tuple[int, ...], steps: list[list[int]]) -> tuple[list[int], list[list[int]]]:
    """Return the fewest axes along which all operands have steps, four of them, with the operands' steps."""
    if not prod(shape) or prod(shape) >= MODEST:
        raise Unserved("an empty result")
    columns: list[list[int]] = []               # length, and the step of each operand
    for n, *of_axis in zip(shape, *steps):
        if n == 1:
            continue
        if columns and all(before == s * n for before, s in zip(columns[-1][1:], of_axis, strict=True)):
            columns[-1] = [columns[-1][0] * n, *of_axis]
        else:
            columns.append([n, *of_axis])
    if len(columns) > AXES:
        raise Unserved("too many axes")
    columns = [[1, *[0] * len(steps)]] * (AXES - len(columns)) + columns
    return [c[0] for c in columns], [[c[1 + k] for c in columns] for k in range(len(steps))]


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
            name, operands = made.rows[at]
            of = [(inputs if a[0] == "in" else places)[a[1]] if isinstance(a, tuple) else self._number(a)
                  for a in operands]
            free += [places[a] for a in _sources(made, at, "at") if last[a] == at and places[a] < REGISTERS]
            if at not in outputs and not free:
                raise Unserved("too many values at once")
            places[at] = outputs[at] if at in outputs else free.pop()
            self.rows.append([kinds()[name], 0, places[at], *of, *[0] * (4 - len(of))])
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
    return {a[1] for a in made.rows[at][1] if isinstance(a, tuple) and a[0] == kind}


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
