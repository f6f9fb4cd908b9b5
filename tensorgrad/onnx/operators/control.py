"""Operators that run graphs. https://onnx.ai/onnx/operators/

A graph is a callable: it takes the graph's inputs, and returns a list of its outputs.
"""
from __future__ import annotations

from typing import Any

from ... import api as torch
from ._table import number, operator


@operator("If")
def if_(condition: Any, *, then_branch: Any, else_branch: Any) -> Any:
    found = then_branch() if bool(number(condition)) else else_branch()
    return tuple(found) if len(found) != 1 else found[0]


@operator("Loop")
def loop(most: Any, condition: Any, *values: Any, body: Any) -> Any:
    """Run the body while its first output is true, at most so many times. Its further outputs are the values that it
    carries on, and results of each round, which are stacked."""
    limit = None if most is None else int(number(most))
    going = condition is None or bool(number(condition))
    carried, rows, round_ = list(values), [], 0
    while going and (limit is None or round_ < limit):
        again, *found = body(torch.tensor(round_), torch.tensor(going), *carried)
        going = bool(number(again))
        carried, row = found[:len(carried)], found[len(carried):]
        rows.append(row)
        round_ += 1
    count = len(body.outputs) - 1 - len(values)
    stacked = [torch.stack([row[i] for row in rows]) if rows else torch.zeros(0) for i in range(count)]
    found = (*carried, *stacked)
    return found if len(found) != 1 else found[0]


@operator("Scan", since=9)
def scan(*values: Any, body: Any, num_scan_inputs: int, scan_input_axes: Any = None, scan_input_directions: Any = None,
         scan_output_axes: Any = None, scan_output_directions: Any = None) -> Any:
    """Run the body for each element of the last inputs along their axes, with the first inputs as its state."""
    states, inputs = list(values[:-num_scan_inputs]), values[-num_scan_inputs:]
    axes = scan_input_axes or [0] * num_scan_inputs
    backward = scan_input_directions or [0] * num_scan_inputs
    steps = inputs[0].shape[axes[0]]
    rows = []
    for t in range(steps):
        parts = [x.select(axis, steps - 1 - t if turned else t)
                 for x, axis, turned in zip(inputs, axes, backward, strict=True)]
        found = body(*states, *parts)
        states = found[:len(states)]
        rows.append(found[len(states):])
    results = []
    for i in range(len(body.outputs) - len(states)):
        row = [each[i] for each in rows]
        if scan_output_directions and scan_output_directions[i]:
            row.reverse()
        results.append(torch.stack(row, scan_output_axes[i] if scan_output_axes else 0))
    found = (*states, *results)
    return found if len(found) != 1 else found[0]


@operator("Scan", since=8)
def scan_of_batches(lengths: Any, *values: Any, body: Any, num_scan_inputs: int, directions: Any = None) -> Any:
    """Run the body over the second axis, for each element of the batch, which is the first axis."""
    found = []
    for row in range(values[0].shape[0]):
        one = scan(*[x[row] for x in values], body=body, num_scan_inputs=num_scan_inputs,
                   scan_input_directions=directions)
        found.append(one if isinstance(one, tuple) else (one,))
    stacked = tuple(map(torch.stack, zip(*found, strict=True)))
    return stacked if len(stacked) != 1 else stacked[0]


@operator("SequenceMap")
def sequence_map(values: Any, *others: Any, body: Any) -> Any:
    """Run the body for each element of a list, and of further lists, or with further tensors."""
    rows = [body(value, *(other[i] if isinstance(other, list) else other for other in others))
            for i, value in enumerate(values)]
    found = tuple([row[i] for row in rows] for i in range(len(body.outputs)))
    return found if len(found) != 1 else found[0]
