"""A lowered graph, ready to run on arrays."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..graph.lowered import Lowered
from ..graph.nesting import leaves, mapped
from ..graph.node import Node
from ..graph.uses import last_uses
from ..kernels.compiled import WANTED, enabled
from ..runtime.numpy_state import compute
from ..storage.base import lock
from .guards import Stamps
from .memory import STRONG
from .passes import optimize
from .passes.rewriting import settled
from .plan import Build, Changed, Plan, Step
from .values import computed


class Executable:
    """Runs an optimized graph: `executable(arrays)` returns the arrays of its outputs, in the order of their leaves.

    Nodes that depend on parameters and constants alone are computed ahead, and again once a parameter has changed
    (another array, or a write in place). Several threads may call one executable.

    With the compiled kernels, a `Plan` runs the graph; `left` lists (node, reason) for the nodes that Python runs in
    it. Without them, Python runs all nodes. `memory` has the bytes of the plan's arena and of its constants.
    """

    def __init__(self, graph: Lowered) -> None:
        self.graph = optimize(graph)
        self.left: list[tuple[str, str]] = []
        self.memory = {"arena": 0, "unplanned": 0, "constants": 0}
        ahead = settled(graph)
        self._ahead = [node for node in graph.nodes if node in ahead and node.op == "call_function"]
        self._steps = [(node, ended) for node, ended in last_uses(graph).items()
                       if node not in ahead and node.op != "placeholder"]
        self._names = [node for node in graph.nodes if node.op == "get_attr"]
        self._inputs = [node for node in graph.nodes if node.op == "placeholder"]
        self._plan: Plan | None = None
        self.stamps = Stamps(graph.tensors.values())
        values = compute(self._values)
        if WANTED and enabled():
            self._plan = Build(graph, values).plan()
            self.left = self._plan.left
            self.memory.update(arena=self._plan.arena, unplanned=self._plan.unplanned)
        self._settled: tuple[dict[Node, Any], Any] = values, self._bound(values)

    def __call__(self, arrays: Sequence[np.ndarray]) -> list[Any]:
        values, bound = self._constants()
        plan = self._plan
        if bound is None or plan is None:
            return compute(self._by_python, values, arrays)  # type: ignore[no-any-return]
        if plan.simple:
            found = bound.run(arrays)
            if found is NotImplemented:
                found = bound.run([_solid(array) for array in arrays])
        else:
            found = compute(self._in_parts, plan, bound, arrays)
        return compute(self._by_python, values, arrays) if found is None else found  # type: ignore[no-any-return]

    # ── constants ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _values(self) -> dict[Node, Any]:
        values = {node: type(t._storage).host(t.array) for node in self._names
                  for t in (self.graph.tensors[node.target],)}
        for node in self._ahead:
            values[node] = _value(node, values)
        return values

    def _constants(self) -> tuple[dict[Node, Any], Any]:
        """Return the values of the nodes that are computed ahead, and the program with them."""
        if self.stamps.changed():
            with lock:                      # a trace in another thread may hold the tensors: they come back
                if self.stamps.changed():
                    stamps = Stamps(self.stamps.tensors)    # first: the next call sees a write that comes meanwhile
                    values = compute(self._values)
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
        """Run a plan that has steps of Python, or results that are views; None if an index is out of range."""
        run = bound.start(arrays)
        if run is NotImplemented:
            arrays = [_solid(array) for array in arrays]
            run = bound.start(arrays)
        outputs = run.outputs()
        of_kind = [[np.frombuffer(run, np.uint8)] if plan.arena else [np.empty(0, np.uint8)], arrays, bound.constants(),
                   outputs]
        memory = [of_kind[kind][which] for kind, which in plan.places]
        memory = [array.reshape(-1).view(np.uint8) if array.ndim != 1 or array.dtype != np.uint8 else array
                  for array in memory]
        for part in plan.parts:
            if isinstance(part, Step):
                try:
                    part.run(memory)
                except Changed:
                    return None
            elif not run.go(*part):
                return None
        return [outputs[plan.places[value.buffer.place][1]] if value.is_whole else value.among(memory)
                for value in plan.outputs]

    def _by_python(self, values: dict[Node, Any], arrays: Sequence[np.ndarray]) -> list[Any]:
        env = dict(values)
        env.update(zip(self._inputs, arrays, strict=True))
        for node, ended in self._steps:
            if node.op == "output":
                return [env[leaf] for leaf in leaves(node.args[0]) if isinstance(leaf, Node)]
            env[node] = _value(node, env)
            for other in ended:
                env.pop(other, None)
        raise AssertionError("a graph ends with its output")


def _solid(array: Any) -> Any:
    """Return a contiguous array at an address that programs accept: itself, or a copy."""
    if type(array) is not np.ndarray:
        array = np.asarray(array)
    if array.flags.c_contiguous and array.ctypes.data % STRONG == 0:
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


def build(graph: Lowered) -> Executable:
    """Return the executable of a lowered graph, which is optimized in place."""
    return Executable(graph)
