"""The steps of a run: what the ops of the table do to recorded arrays.

The ops run on the wrapped arrays, and each application becomes a step of the graph. Graphs are functional: a write in
place gives the array a new value, and its bases new values that contain it (`set_view`). An array and its views share a
`Memory`, which dates the writes; stale views recompute their values on the next access.
"""
from __future__ import annotations

import sys
from functools import cache, partial
from typing import Any

import numpy as np

from ..interpret._batched_ops import runner as _runner
from ..interpret.symbol import Symbol, together
from ..interpret.symbol_storage import SymbolStorage
from ..ops.base import OPS
from ..storage.base import NoValues
from ..storage.cpu import NumpyStorage
from .lines import CannotLower, ReadsValues, user_line
from .recorded import Recorded, applied, clock, is_array, template_of, without_masks
from .recorder import running
from .steps import Item
from .symbolic_sizes import fixed, plain, plainly, symbolic

runner = cache(_runner)
OWN = f"{__name__.partition('.')[0]}.ops."
CLONE, COPIED, GET_SLICE, SET_VIEW = OPS["clone"], OPS["copied"], OPS["get_slice"], OPS["set_view"]
UNBIND = OPS["unbind"]
COPIES = CLONE, COPIED, OPS["channels_last"]         # these keep the values, and are no steps


def run(op: Any, *args: Any, **params: Any) -> Any:
    """Compute an op on its operands' wrapped arrays, and record the step, or the steps of its definition."""
    recorder = running()
    if recorder.watcher is None or not op.__module__.startswith(OWN):
        return recorded(recorder, op, args, params)
    watcher, recorder.watcher = recorder.watcher, None
    sys.setprofile(None)
    try:
        return recorded(recorder, op, args, params)
    finally:
        recorder.watcher = watcher
        sys.setprofile(watcher)


def recorded(recorder: Any, op: Any, args: Any, params: Any) -> Any:
    """Like `run`, for a recorder."""
    operands = tuple(args[0]) if op.sequence else args
    if recorder.whole is not None and not recorder.whole(op, operands, params):
        return op.forward(recorder.backend.xp, *args, **params)
    if type(params.get("memory")) is Recorded:
        operands, params = _of_memory(**params)
    operands = tuple(Recorded(a) if isinstance(a, np.ndarray) else a for a in operands)
    varies = recorder.sizes is not None and (
        any(symbolic(a.shape if type(a) is Recorded else a) for a in operands) or symbolic(params))
    if varies and op is UNBIND:
        fixed(operands[0].shape[params["axis"]])        # there are as many results
    results, known = compute(op, operands, params, varies)
    arrays = [a for a in operands if type(a) is Recorded]
    if op in COPIES and recorder.sizes is None:
        nodes = [argument(operands[-1]) if operands[-1].node is not None or not known else None]
    elif known and recorder.fold and all(a.node is None for a in arrays):
        nodes = [None] * len(results)
    else:
        given = list(map(argument, operands))
        nodes = recorder.step(op, [given] if op.sequence else given, params, results, known, op.several,
                              None if not varies else partial(inferred_elementwise, op, results[0].dtype)
                              if op.elementwise and not op.several else partial(inferred_results, op))
        if op in COPIES:
            nodes[0].meta["copies"] = True
    source = arrays[0] if arrays and arrays[0] is operands[0] and (op.view or not op.several) else None
    memory = None if source is None else owner(source.inner)
    outs = []
    for k, (inner, node) in enumerate(zip(results, nodes, strict=True)):
        view = source is not None and bool(inner.size) and (
            inner.base is not None if varies else owner(inner) is memory)
        if varies and source is not None and node is not None:
            recorder.sizes.ask(bool, recorder.sizes.of(node, "is_view", None, view))
        outs.append(Recorded(inner, node, known, source if view else None))
        if varies:
            recorder.sizes.named(outs[-1])
        if view:
            outs[-1].made_by = ((GET_SLICE, {"index": _piece(outs, k, source.ndim, params["axis"])}) if op.several
                                else (op, params))
    if varies and op.several:
        nodes[0].args[0].meta["shape"] = [out.shape for out in outs]
    return outs if op.several else outs[0]


def _of_memory(*, memory: Recorded, **params: Any) -> tuple[tuple[Recorded], dict[str, Any]]:
    """Convert a view by strides (`as_strided`) to a view of the array that spans the memory."""
    strides = tuple(step // memory.itemsize for step in memory.strides)
    return (memory,), {**params, "layout": (memory.shape, strides, 0)}


def _piece(parts: Any, k: int, ndim: int, axis: int) -> tuple[Any, ...]:
    """Return the index of part k of an array that is the concatenation of parts along an axis."""
    axis %= ndim
    start = sum(part.shape[axis] for part in parts[:k]) if parts[k].ndim == ndim else 0
    return (*(slice(None),) * axis, slice(start, start + parts[k].shape[axis]) if parts[k].ndim == ndim else k)


def argument(a: Any) -> Any:
    """Return the node or constant of an operand in a step."""
    if type(a) is not Recorded:
        return a
    if a.node is not None:
        return a.node
    return running().constant(a.inner)


def compute(op: Any, operands: Any, params: Any, varies: bool = False) -> tuple[tuple[Any, ...], bool]:
    """Return (results of an op, True if they do not depend on the inputs, nor on sizes that vary)."""
    known = not varies and all(a.known for a in operands if type(a) is Recorded)
    bare = [a.inner if type(a) is Recorded else a for a in operands]
    if varies:
        bare, params = list(map(plain, bare)), plainly(params)
    if known or running().reading is not None:
        if op.by_values:
            running().rely(a for a in operands if type(a) is Recorded)
        return results_of(op, NumpyStorage, bare, params), known
    try:
        return (symbols_of(op, [SymbolStorage.asarray(a) if isinstance(a, np.ndarray) else a for a in bare], params),
                False)
    except NoValues as error:
        what = str(error)
    running().rely(a for a in operands if type(a) is Recorded and a.known)
    try:                                              # known operands may determine the shapes
        return results_of(op, SymbolStorage, bare, params), False
    except (NoValues, TypeError, AttributeError):
        raise ReadsValues(f"{op.opname}: {what.partition(' needs values')[0]}", user_line()) from None


def inferred_results(op: Any, args: Any, params: Any) -> Any:
    """Return the result or results of an op on symbols, and arrays where values are known."""
    operands = args[0] if op.sequence else args
    try:
        found = symbols_of(op, [SymbolStorage.asarray(a) if isinstance(a, np.ndarray) else a for a in operands], params)
    except NoValues:
        found = results_of(op, SymbolStorage, operands, params)
    return found if op.several else found[0]


def inferred_elementwise(op: Any, dtype: Any, args: Any, params: Any) -> Any:
    """Return the result of an elementwise op; `dtype` is the same for all sizes."""
    arrays = [a for a in args if type(a) is Symbol or isinstance(a, np.ndarray)]
    if all(a._strides is None if type(a) is Symbol else a.flags.c_contiguous for a in arrays):
        return Symbol(together(*[a.shape for a in arrays]), dtype)
    return inferred_results(op, args, params)


def results_of(op: Any, backend: Any, operands: Any, params: Any) -> tuple[Any, ...]:
    found = runner(op, backend)(operands, **params) if op.sequence else runner(op, backend)(*operands, **params)
    return tuple(x if type(x) is Symbol else np.asarray(x) for x in (found if op.several else (found,)))


# (op, operands, parameters) → (shape, dtype, strides) of each result: models repeat layers
inferred: dict[Any, Any] = {}
MOST = 4096


def symbols_of(op: Any, operands: Any, params: Any) -> tuple[Any, ...]:
    """Return the results of an op on symbols; cached unless they are views or quick to infer."""
    if op.view:
        return results_of(op, SymbolStorage, operands, params)
    key = (op, *((a.shape, a.dtype, a._strides) if type(a) is Symbol else (type(a), a) for a in operands),
           *((name, type(value), value) for name, value in params.items()))
    try:
        known = inferred.get(key)
    except TypeError:                                  # an unhashable parameter
        return results_of(op, SymbolStorage, operands, params)
    if known is None:
        found = results_of(op, SymbolStorage, operands, params)
        if len(inferred) >= MOST:
            inferred.clear()
        if all(x.base is None for x in found):
            inferred[key] = tuple((x.shape, x.dtype, x._strides) for x in found)
        return found
    return tuple(Symbol(*one) for one in known)


def owner(array: Any) -> Any:
    """Return the array that owns the memory of another."""
    if type(array) is Symbol:
        return array.owner()
    while isinstance(base := getattr(array, "base", None), np.ndarray):
        array = base
    return array


class Scalars:
    """Whole numbers that a program reads from tensors of one element: steps with the given values.

    Without given values, the inputs' own are used, and noted in `seen`.
    """

    def __init__(self, values: list[int] | None = None) -> None:
        self.values, self.seen = values, list[int]()

    def read(self, array: Recorded) -> Any:
        """Return the array that the program reads."""
        if self.values is None:
            self.seen.append(int(array.inner.item()))
            return array.inner
        if len(self.seen) == len(self.values):
            raise ReadsValues("a number that depends on the inputs is read", user_line())
        value = self.values[len(self.seen)]
        self.seen.append(value)
        node, = running().step(Item("item"), (argument(array),), {}, [np.array(value)], False)
        node.meta["scalar"] = value
        return np.full(array.shape, value, array.dtype)


# ── writes in place ───────────────────────────────────────────────────────────────────────────────────────────────────


def write(x: Recorded, index: Any, value: Any) -> None:
    """x[index] = value."""
    parts = without_masks(index if isinstance(index, tuple) else (index,))
    value = running().backend.asarray(value, x.dtype)
    if any(map(is_array, parts)):
        written(x, applied("index_put", x, value, *filter(is_array, parts), template=template_of(parts)))
        return
    target = x if all(p is Ellipsis for p in parts) else x[parts]
    if value.shape != target.shape:
        if value.ndim > target.ndim:
            value = value.reshape(value.shape[value.ndim - target.ndim:])
        value = applied("broadcast_to", value, shape=target.shape) if value.shape != target.shape else value
    written(target, value)


def written(x: Recorded, new: Recorded) -> None:
    """Assign another array's value to an array, and update the arrays that it is a view of."""
    memory = x.memory
    if memory.fixed:
        raise CannotLower(f"a write in place to {memory.name}", user_line())
    if memory.name is not None and memory.name not in running().written:
        running().written.append(memory.name)
    x.settled()
    chain = [x]
    while chain[-1].parent is not None:
        chain.append(chain[-1].parent)
    for view, base in zip(chain, chain[1:], strict=False):
        old, order = Recorded(base.inner, base.node, base.known), _order(base)
        old.shape = base.shape
        view.take(new)
        new = run(SET_VIEW, old, new, view=(view.made_by,), order=order)
    chain[-1].take(new)
    memory.written = now = next(clock)
    for array in chain:
        array.made = now


def _order(x: Recorded) -> tuple[int, ...] | None:
    """Return the axes by descending stride; None if the array is C-contiguous."""
    return None if x.flags.c_contiguous else tuple(sorted(range(x.ndim), key=lambda axis: -abs(x.strides[axis])))
