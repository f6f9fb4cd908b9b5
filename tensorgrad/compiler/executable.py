"""A lowered graph, ready to run on arrays."""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from ..graph.lowered import Lowered
from ..graph.nesting import mapped
from ..graph.node import Node
from ..graph.records import Record
from ..kernels.compiled import WANTED, enabled
from ..runtime.numpy_state import compute
from ..storage.base import lock
from .freezing import is_large, packed_over, trim
from .guards import Stamps
from .memory import ARENA, STRONG, WEAK
from .passes import optimize
from .passes.packing import share_packed
from .passes.rewriting import settled
from .plan import Build, Changed, Plan, Step, in_bytes
from .room import padded, room
from .shared import Shared, Values
from .steps import Steps
from .values import computed

TRIMMED = 4 << 20       # bytes of parameters, after which freed memory is given back


class Executable:
    """Runs an optimized graph: `executable(arrays)` returns the arrays of its outputs, in the order of their leaves.

    Nodes that depend on parameters and constants alone are computed ahead, and again once a parameter has changed
    (another array, or a write in place). Several threads may call one executable.

    With the compiled kernels, a `Plan` runs the graph; `left` lists (node, reason) for the nodes that Python runs in
    it. Without them, Python runs all nodes. `memory` has the bytes of the plan's arena and of its constants.

    With `erase`, the executable is frozen: it takes the place of the graph's tensors, and lets go of each as soon as
    what depends on it is computed. `erase()` is called before, so that nothing else holds them, and after memory for
    the plan and all packed weights was found.
    """

    def __init__(self, graph: Lowered, shared: Shared | None = None, erase: Callable[[], None] | None = None) -> None:
        self.graph = optimize(graph)
        self._shared = shared or Shared()
        self._frozen = erase is not None
        if self._frozen:
            share_packed(graph)
        self.left: list[tuple[str, str]] = []
        self.memory = {"arena": 0, "unplanned": 0, "constants": 0}
        ahead = settled(graph)
        self._ahead = largest_first(graph, ahead)
        self._known = ahead
        self._plan: Plan | None = None
        for node in graph.nodes if self._frozen else ():
            node.meta.pop("value", None)
        self.stamps = Stamps(() if self._frozen else graph.tensors.values())
        if self._frozen:
            self._make_plan(forms(ahead))
        values = self._computed(erase)
        if not self._frozen:
            self._make_plan(values)
        self._settled: tuple[dict[Node, Any], Any] = values, self._bound(values)

    def __call__(self, arrays: Sequence[np.ndarray]) -> list[Any]:
        values, bound = self._constants()
        plan = self._plan
        if bound is None or plan is None:
            return compute(self._by_python, values, arrays)  # type: ignore[no-any-return]
        if plan.in_c:
            try:
                found = bound.run(arrays)
                if found is NotImplemented:
                    found = bound.run([_solid(array) for array in arrays])
            except MemoryError:             # Python frees values as it goes
                found = None
            if found is not None and not plan.simple:
                found = plan.results(found)
        else:
            found = compute(self._in_parts, plan, bound, arrays)
        return compute(self._by_python, values, arrays) if found is None else found  # type: ignore[no-any-return]

    def _make_plan(self, known: dict[Node, Any]) -> None:
        """Plan the nodes that are not computed ahead, given arrays like those that are."""
        if WANTED and enabled():
            self._plan = Build(self.graph, known).plan()
            self.left = self._plan.left
            self.memory.update(arena=self._plan.arena, unplanned=self._plan.unplanned)

    @cached_property
    def _steps(self) -> Steps:
        return Steps(self.graph, self._known)

    def _by_python(self, values: dict[Node, Any], arrays: Sequence[np.ndarray]) -> list[Any]:
        return self._steps.run(values, arrays)

    # ── constants ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _computed(self, erase: Callable[[], None] | None = None) -> dict[Node, Any]:
        """Return the values that are computed ahead, packed weights in one block of memory."""
        packed = sum(padded(_bytes(node)) for node, _ in self._ahead if isinstance(node.target, Record)
                     and not (self._frozen and is_large(node)))
        with room.of(packed):
            if erase is not None:
                compute(room.reserve)
                erase()
            return compute(self._values)        # type: ignore[no-any-return]

    def _values(self) -> dict[Node, Any]:
        """Return the values of the nodes that are computed ahead and that others use."""
        values: dict[Node, Any] = {}
        tensors, known = self.graph.tensors, None if self._frozen else self._shared.of(self.graph.tensors)
        missing = self._missing(known, values)
        freed = 0
        left = Counter(node.target for node, _ in self._ahead if node.op == "get_attr")
        for node, ended in self._ahead:
            if node not in missing:
                pass
            elif node.op == "get_attr":
                left[node.target] -= 1
                tensor = tensors[node.target] if left[node.target] or not self._frozen else tensors.pop(node.target)
                values[node] = type(tensor._storage).host(tensor.array)
                del tensor
            else:
                found = packed_over(node, ended, values) if self._frozen else None
                values[node] = _value(node, values) if found is None else found
                if known is not None:
                    known.keep(node, values[node])
            for other in ended:
                values.pop(other, None)
            if self._frozen:
                freed += sum(map(_bytes, ended))
                if freed > TRIMMED:
                    freed = trim()
        if freed:
            trim()
        return values

    def _missing(self, known: Values | None, values: dict[Node, Any]) -> set[Node]:
        """Return the nodes to compute; `values` gets what other executables have.

        A frozen executable shares nothing: shared values are named by arrays that live.
        """
        if known is None:
            return {node for node, _ in self._ahead}
        found = {node: known.find(node) for node, _ in self._ahead if node.op != "get_attr"}
        missing: set[Node] = set()
        for node, _ in reversed(self._ahead):
            if set(node.users) - self._known or not missing.isdisjoint(node.users):
                if found.get(node) is None:
                    missing.add(node)
                else:
                    values[node] = found[node]
        return missing

    def _constants(self) -> tuple[dict[Node, Any], Any]:
        """Return the values of the nodes that are computed ahead, and the program with them."""
        if self.stamps.changed():
            with lock:                      # a trace in another thread may hold the tensors: they come back
                if self.stamps.changed():
                    stamps = Stamps(self.stamps.tensors)    # first: the next call sees a write that comes meanwhile
                    values = self._computed()
                    self._settled = values, self._bound(values)
                    self.stamps = stamps                    # last: until then, other threads wait for the lock
        return self._settled

    def _bound(self, values: dict[Node, Any]) -> Any:
        """Return the plan's program with these constants; None if they do not fit it."""
        if self._plan is None:
            return None
        constants = []
        for source in self._plan.constants:
            if isinstance(source, tuple):
                node, part = source
                source = values[node] if part is None else values[node][part]
            constants.append(source if type(source) is np.ndarray else np.asarray(source))
        self.memory["constants"] = sum(array.nbytes for array in constants)
        try:
            bound = self._plan.program.bind(constants)
            return self._plan.program.bind([*map(_solid, constants)]) if bound is NotImplemented else bound
        except ValueError:                  # a parameter has another shape or dtype now
            return None

    # ── runs ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _in_parts(self, plan: Plan, bound: Any, arrays: Sequence[np.ndarray]) -> list[Any] | None:
        """Run a plan that has steps of Python; None if an index is out of range, or shapes are not as planned."""
        run = bound.start(arrays)
        if run is NotImplemented:
            arrays = [_solid(array) for array in arrays]
            run = bound.start(arrays)
        of_kind = [np.frombuffer(run, np.uint8) if plan.arena else None], arrays, bound.constants(), run.outputs()
        memory = [of_kind[kind][which] if kind == ARENA else in_bytes(of_kind[kind][which])
                  for kind, which in plan.places]
        for part in plan.parts:
            if isinstance(part, Step):
                try:
                    part.run(memory)
                except Changed:
                    return None
            elif not run.go(*part):
                return None
        return plan.results(run.outputs())


def largest_first(graph: Lowered, ahead: set[Node]) -> list[tuple[Node, list[Node]]]:
    """Return the nodes that are computed ahead in the order of their computation, each with those that end with it.

    Values that other nodes need come by size, with all that it depends on: results on the way to the largest, such as
    folded weights, are freed while few others are there.
    """
    needed = [node for node in graph.nodes if node in ahead and set(node.users) - ahead]
    order: dict[Node, None] = {}
    waiting = sorted(needed, key=_bytes)
    while waiting:
        node = waiting[-1]
        if missing := [other for other in node._input_nodes if other not in order]:
            waiting += missing
        else:
            order[waiting.pop()] = None
    found: list[tuple[Node, list[Node]]] = []
    seen = set(needed)
    for node in reversed(order):
        found.append((node, [other for other in node._input_nodes if other not in seen]))
        seen.update(node._input_nodes)
    return found[::-1]


def forms(nodes: set[Node]) -> dict[Node, Any]:
    """Return arrays of the shapes and dtypes of nodes, without memory for their elements."""
    def form(shape: Any, dtype: Any) -> Any:
        return (tuple(map(form, shape, dtype)) if isinstance(dtype, list) else
                np.broadcast_to(np.zeros((), dtype), shape))
    return {node: form(node.meta["shape"], node.meta["dtype"]) for node in nodes if set(node.users) - nodes}


def _bytes(node: Node) -> int:
    shape, dtype = node.meta.get("shape"), node.meta.get("dtype")
    return prod(shape) * dtype.itemsize if isinstance(shape, tuple) and isinstance(dtype, np.dtype) else 0


def _solid(array: Any) -> Any:
    """Return a contiguous array at an address that programs accept: itself, or a copy."""
    if type(array) is not np.ndarray:
        array = np.asarray(array)
    if array.flags.c_contiguous and array.ctypes.data % WEAK == 0:
        return array
    memory = np.empty(array.nbytes + STRONG, np.uint8)
    start = -memory.ctypes.data % STRONG
    copy = memory[start:start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def _value(node: Node, env: dict[Node, Any]) -> Any:
    def value(leaf: Any) -> Any:
        return env[leaf] if isinstance(leaf, Node) else leaf
    return computed(node.target, [mapped(value, a) for a in node.args],
                    {key: mapped(value, a) for key, a in node.kwargs.items()})


def build(graph: Lowered, shared: Shared | None = None, erase: Callable[[], None] | None = None) -> Executable:
    """Return the executable of a lowered graph, which is optimized in place.

    Executables with one `shared` keep equal values that they compute ahead once. With `erase`, it is frozen.
    """
    return Executable(graph, shared, erase)
