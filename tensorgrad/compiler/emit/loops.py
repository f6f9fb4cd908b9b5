"""Loops, and elementwise ops and reductions that have no kernel of their own, by the kernel `loop`."""
from __future__ import annotations

from typing import Any

import numpy as np

from ...ops.base import OPS
from ..loop_instructions import Unserved, rows_of
from ..loop_programs import RESULTS, Layout, contiguous, program
from ..loops import At, Loop, Step
from . import emits
from .reduction import SQUARES, axes_of, fronted, reduced

MOST_TURNED = 1 << 13           # elements: more are not worth a copy with other axes last


@emits(Loop)
def loop(build: Any, node: Any, *operands: Any) -> Any:
    return run(build, node.target, operands)


@emits(*(op.opname for op in OPS.values() if op.elementwise), "cast")
def elementwise(build: Any, node: Any, *operands: Any, **params: Any) -> Any:
    values = [a for a in operands if hasattr(a, "buffer")]
    numbers = iter(range(len(values)))
    step = Step(node.target.opname, tuple(At(next(numbers)) if hasattr(a, "buffer") else a for a in operands),
                tuple(params.items()))
    return run(build, Loop(len(values), (step,), (len(values),)), values)


@emits("any", "all", "logsumexp", "vector_norm")
def reduction(build: Any, node: Any, x: Any, *, axis: Any = None, keepdims: bool = False, **params: Any) -> Any:
    shape, axes = tuple(node.meta["shape"]), axes_of(x.ndim, axis)
    if not x.size or not axes:
        return NotImplemented
    if not rows_of(axis, x.ndim):
        if node.target.opname == "vector_norm" and params.get("ord", 2) == 2:
            return root_of_squares(build, node, x, axis)
        if x.size > MOST_TURNED:
            return NotImplemented
        x = fronted(build, x, axis)
    step = Step(node.target.opname, (At(0),), (("axis", tuple(range(x.ndim - len(axes), x.ndim))), *params.items()))
    found = run(build, Loop(1, (step,), (1,)), [x])
    return found if found is NotImplemented else build.view(found, shape, contiguous(shape, found.dtype).strides)


def root_of_squares(build: Any, node: Any, x: Any, axis: Any) -> Any:
    centre = build.constant(np.zeros(node.meta["shape"], x.dtype))
    squares = reduced(build, node, x, axis, SQUARES, 1.0, centre)
    return squares if squares is NotImplemented else run(build, Loop(1, (Step("sqrt", (At(0),)),), (1,)), [squares])


def run(build: Any, target: Loop, operands: Any) -> Any:
    """Call the kernel for a loop; return its results, or NotImplemented."""
    try:
        made = program(target, [Layout(v.shape, v.strides, v.dtype) for v in operands])
    except Unserved:
        return NotImplemented
    free = [k for k, v in enumerate(operands) if sum(v.buffer is other.buffer for other in operands) == 1]
    found = {}
    for place, k in enumerate(made.outputs):
        if k is not None:
            dtype = made.dtype if place < RESULTS else np.dtype(bool)
            found[k] = _memory(build, operands, [o for o in made.over.get(k, ()) if o in free], made.shapes[k],
                               dtype)
            free = [o for o in free if operands[o].buffer is not found[k].buffer]
    build.call("loop", *made.arguments(operands, found))
    results = tuple(found[k] for k in made.same)
    return results if len(results) > 1 else results[0]


def _memory(build: Any, operands: Any, over: list[int], shape: tuple[int, ...], dtype: Any) -> Any:
    """Return memory for a result: that of an operand that nothing needs any more, or new memory."""
    for k in over:
        found = build.reuse(operands[k], shape, dtype)
        if found.buffer is operands[k].buffer:
            return found
    return build.new(shape, dtype)
