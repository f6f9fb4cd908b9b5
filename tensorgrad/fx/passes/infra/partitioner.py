"""Divide a graph into parts, as large as possible, that a backend can run. https://pytorch.org/docs/stable/fx.html"""
from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ....graph.names import source_name as qualified_name
from ....graph.node import Node
from ...graph_module import GraphModule
from ..operator_support import OperatorSupportBase
from ..utils.fuser_utils import fuse_by_partitions

__all__ = ["CapabilityBasedPartitioner", "Partition"]
NON_COMPUTE = frozenset(("torch.ops.aten.view", "_operator.getitem"))


class Partition:
    """A part: its nodes, as the keys of a dictionary."""

    def __init__(self, id: int | None = None, nodes: Iterable[Node] | None = None) -> None:
        self.id, self.nodes = id, dict.fromkeys(nodes or ())

    def __repr__(self) -> str:
        return str(self.nodes)

    def add_node(self, node: Node) -> None:
        """Add a node."""
        self.nodes.update({node: None})

    def remove_node(self, node: Node) -> None:
        """Remove a node."""
        del self.nodes[node]

    def size(self) -> int:
        """The number of nodes."""
        return len(self.nodes)


class CapabilityBasedPartitioner:
    """Finds the parts of a module that a backend can run, and replaces each by a call of a module.

    Two parts are joined unless a path leads from one to the other through nodes outside.

    non_compute_ops: qualified names of functions that a part may not consist of
    allowed_single_node_partition_ops: those that may be a part by themselves, beside `allows_single_node_partition`

    >>> import tensorgrad as torch
    >>> from tensorgrad.fx.passes.operator_support import create_op_support
    >>> traced = torch.fx.symbolic_trace(lambda x: torch.relu(x.exp() + 1).neg())
    >>> support = create_op_support(lambda layers, node: node.op == "call_function")
    >>> print(CapabilityBasedPartitioner(traced, support).partition_and_fuse().code.strip())
    def forward(self, x):
        exp = x.exp();  x = None
        fused_0 = self.fused_0(exp);  exp = None
        neg = fused_0.neg();  fused_0 = None
        return neg
    """

    def __init__(self, graph_module: GraphModule, operator_support: OperatorSupportBase,
                 allows_single_node_partition: bool = False, non_compute_ops: Sequence[str] | None = None,
                 allowed_single_node_partition_ops: Sequence[str] | None = None,
                 skip_horizontal_fusion: bool = False) -> None:
        self.graph_module, self.operator_support = graph_module, operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = non_compute_ops or []
        self.allowed_single_node_partition_ops = allowed_single_node_partition_ops or []
        self.skip_horizontal_fusion = skip_horizontal_fusion

    def propose_partitions(self) -> list[Partition]:
        """Return the parts, the last of the graph first."""
        layers = dict(self.graph_module.named_modules())
        parts: dict[int, Partition] = {}
        part_of: dict[Node, Partition] = {}
        for i, node in enumerate(reversed(list(self.graph_module.graph.nodes))):
            candidates = list(parts.values())
            if self.operator_support.is_node_supported(layers, node):
                part = parts[i] = part_of[node] = Partition(i, [node])
                if self.skip_horizontal_fusion:
                    candidates = list({part_of[user].id: part_of[user] for user in node.users if user in part_of
                                       }.values())
                candidates.insert(0, part)
            elif self.skip_horizontal_fusion:
                continue
            for other in candidates[1:]:
                if not _cycle(candidates[0], other, part_of):
                    self._join(candidates[0], other, parts, part_of)
        for node in self.graph_module.graph.nodes:          # parts of a result go with it
            if node.users and node in part_of and all(_is_item(user) for user in node.users):
                for user in node.users:
                    if (before := part_of.get(user)) is not part_of[node]:
                        if before is not None:
                            before.remove_node(user)
                        part_of[node].add_node(user)
                        part_of[user] = part_of[node]
        place = {node: k for k, node in enumerate(self.graph_module.graph.nodes)}
        for part in parts.values():
            part.nodes = dict.fromkeys(sorted(part.nodes, key=place.__getitem__))
        found = [part for part in parts.values() if part.size()]
        return found if self.allows_single_node_partition else [part for part in found if self._computes(part)]

    @staticmethod
    def _join(part: Partition, other: Partition, parts: dict[int, Partition], part_of: dict[Node, Partition]) -> None:
        part.nodes.update(other.nodes)
        part_of.update(dict.fromkeys(other.nodes, part))
        # the joined part keeps the place of the older one
        old, new = sorted((part.id, other.id))          # type: ignore[type-var]
        places = list(parts.items())
        parts.clear()
        parts.update((part.id if key == old else key, part if key == old else each) for key, each in places
                     if key != new)

    def _computes(self, part: Partition) -> bool:
        """Return True if a part has two functions that compute something, or one that may be a part by itself."""
        passive = NON_COMPUTE.union(self.non_compute_ops)
        names = [qualified_name(node.target) for node in part.nodes if node.op == "call_function"]
        return (sum(name not in passive for name in names)
                + sum(name in self.allowed_single_node_partition_ops for name in names) > 1)

    def fuse_partitions(self, partitions: list[Partition], prefix: str = "fused_") -> GraphModule:
        """Replace parts by calls of modules."""
        return fuse_by_partitions(self.graph_module, [part.nodes for part in partitions], prefix)

    def remove_bookend_non_compute_ops(self, partitions: list[Partition]) -> None:
        """Remove functions that compute nothing from the borders of parts."""
        for part in partitions:
            for inward in ("all_input_nodes", "users"):
                while border := [node for node in part.nodes if self._is_passive(node)
                                 and not any(other in part.nodes for other in getattr(node, inward))]:
                    for node in border:
                        part.remove_node(node)

    def _is_passive(self, node: Node) -> bool:
        return node.op == "call_function" and qualified_name(node.target) in self.non_compute_ops

    def partition_and_fuse(self, prefix: str = "fused_") -> GraphModule:
        """Find the parts, and replace them by calls of modules."""
        return self.fuse_partitions(self.propose_partitions(), prefix)


def _is_item(node: Node) -> bool:
    return node.op == "call_function" and node.target is operator.getitem


def _cycle(one: Partition, other: Partition, part_of: Mapping[Node, Any]) -> bool:
    """Return True if a path leads from the nodes of two parts through others back to them."""
    inside = one.nodes.keys() | other.nodes.keys()
    waiting = [user for node in inside for user in node.users if user not in inside]
    seen: set[Any] = set()
    while waiting:
        node = waiting.pop()
        if node in inside:
            return True
        if node not in seen:
            # a part becomes one node: a path into it goes on to all its users
            whole = part_of[node].nodes if node in part_of else (node,)
            seen.update(whole)
            waiting += [user for each in whole for user in each.users if user not in whole]
    return False
