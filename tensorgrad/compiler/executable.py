"""A lowered graph, ready to run on arrays."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..graph.lowered import Lowered
from ..graph.nesting import mapped
from ..graph.node import Node
from ..graph.uses import last_uses
from ..utils._pytree import tree_flatten
from .passes import optimize
from .passes.rewriting import settled
from .values import computed


class Executable:
    """Runs an optimized graph: `executable(arrays)` returns the arrays of its outputs, in the order of their leaves.

    Nodes that depend on parameters and constants alone are computed at the first call, and again once a parameter has
    changed (another array, or a write in place). Several threads may call one executable.

    `left` lists (node, reason) for the nodes that Python runs.
    """

    def __init__(self, graph: Lowered) -> None:
        self.graph = optimize(graph)
        self.left: list[tuple[str, str]] = []
        self._tensors = list(graph.tensors.items())
        ahead = settled(graph)
        self._ahead = [node for node in graph.nodes if node in ahead and node.op == "call_function"]
        self._steps = [(node, ended) for node, ended in last_uses(graph).items()
                       if node not in ahead and node.op != "placeholder"]
        self._names = [node for node in graph.nodes if node.op == "get_attr"]
        self._inputs = [node for node in graph.nodes if node.op == "placeholder"]
        self._settled: tuple[Any, dict[Node, Any]] = (None, {})

    def __call__(self, arrays: Sequence[np.ndarray]) -> list[Any]:
        env = dict(self._constants())
        env.update(zip(self._inputs, arrays, strict=True))
        for node, ended in self._steps:
            if node.op == "output":
                return [env[leaf] for leaf in tree_flatten(node.args[0])[0] if isinstance(leaf, Node)]
            env[node] = _value(node, env)
            for other in ended:
                env.pop(other, None)
        raise AssertionError("a graph ends with its output")

    def _constants(self) -> dict[Node, Any]:
        now = [(tensor.array, tensor._storage, tensor._storage.written) for _, tensor in self._tensors]
        stamps, values = self._settled
        if stamps is None or any(a[0] is not b[0] or a[1:] != b[1:] for a, b in zip(now, stamps, strict=True)):
            values = {node: type(t._storage).host(t.array) for node in self._names
                      for t in (self.graph.tensors[node.target],)}
            for node in self._ahead:
                values[node] = _value(node, values)
            self._settled = now, values
        return values


def _value(node: Node, env: dict[Node, Any]) -> Any:
    def value(leaf: Any) -> Any:
        return env[leaf] if isinstance(leaf, Node) else leaf
    return computed(node.target, [mapped(value, a) for a in node.args],
                    {key: mapped(value, a) for key, a in node.kwargs.items()})


def build(graph: Lowered) -> Executable:
    """Return the executable of a lowered graph, which is optimized in place."""
    return Executable(graph)
