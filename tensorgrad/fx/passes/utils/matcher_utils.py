"""Find the places of a graph that have the form of another graph."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ....graph.graph import Graph
from ....graph.node import Node
from ... import graph_module
from .fuser_utils import validate_partition

__all__ = ["InternalMatch", "SubgraphMatcher"]
ENDS = ("placeholder", "output")


@dataclass
class InternalMatch:
    """A place that matches a pattern: `nodes_map` maps the pattern's nodes to the graph's, or to constants.

    `anchors` are the pattern's results that nothing else uses, `placeholder_nodes` and `returning_nodes` what the
    graph has for its inputs and results.
    """

    anchors: list[Node]
    nodes_map: dict[Any, Any] = field(default_factory=dict)
    placeholder_nodes: list[Any] = field(default_factory=list)
    returning_nodes: list[Any] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)

    def computing(self) -> list[Node]:
        """Return the graph's nodes that the pattern's steps match."""
        return [found for node, found in self.nodes_map.items() if node.op not in ENDS]


class SubgraphMatcher:
    """Finds a pattern in graphs: steps of the same targets with the same arguments; inputs match any value.

    match_output, match_placeholder: the pattern's output, or inputs, match only these
    remove_overlapping_matches: of matches that share steps the first is kept
    ignore_literals: constants need not be equal

    ValueError for an empty pattern, AssertionError for one with unused steps.

    >>> import tensorgrad as torch
    >>> pattern = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1).graph
    >>> graph = torch.fx.symbolic_trace(lambda x: (torch.relu(x * 2) + 1).sum()).graph
    >>> [match.placeholder_nodes for match in SubgraphMatcher(pattern).match(graph)]
    [[mul]]
    """

    def __init__(self, pattern: Graph, match_output: bool = False, match_placeholder: bool = False,
                 remove_overlapping_matches: bool = True, ignore_literals: bool = False) -> None:
        self.pattern, self.match_output, self.match_placeholder = pattern, match_output, match_placeholder
        self.remove_overlapping_matches, self.ignore_literals = remove_overlapping_matches, ignore_literals
        if len(pattern.nodes) == 0:
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        if any(node.op != "output" and not node.is_impure() and not node.users for node in pattern.nodes):
            raise AssertionError("SubgraphMatcher cannot be initialized with an pattern with dead code")
        self.pattern_placeholder_nodes = pattern.find_nodes(op="placeholder")
        output = next(iter(reversed(pattern.nodes)))
        self.pattern_returning_nodes = output.all_input_nodes
        self.pattern_anchors = ([output] if match_output
                                else [node for node in output.all_input_nodes if len(node.users) == 1])

    def _match_attributes(self, pn: Node, gn: Node) -> bool:
        """Return True if two `get_attr` nodes both name a tensor. RuntimeError for other attributes of one type."""
        for node in (pn, gn):
            if node.graph.owning_module is None:
                raise AssertionError(f"{'pn' if node is pn else 'gn'}.graph.owning_module must not be None")
        wanted, found = (graph_module._get_attr(node.graph.owning_module, node.target) for node in (pn, gn))
        if type(wanted) is not type(found):
            return False
        if isinstance(wanted, graph_module.Tensor):
            return True
        raise RuntimeError(f"Unsupported type {wanted} when matching attributes")

    def _nodes_are_equal(self, pn: Node, gn: Node, node_name_match: str = "") -> bool:
        """Return True if two nodes match, regardless of their arguments."""
        if not self.match_placeholder and pn.op == "placeholder" or node_name_match and node_name_match in gn.name:
            return True
        if pn.op != gn.op:
            return False
        if pn.op == "get_attr":
            return self._match_attributes(pn, gn)
        return pn.op in ENDS or bool(pn.target == gn.target)

    def _match_literals(self, pn: Any, gn: Any, match: InternalMatch) -> bool:
        """Return True if two arguments match of which one at most is a node."""
        if isinstance(pn, Node):
            if pn.op != "placeholder":
                return False
            return bool(match.nodes_map.setdefault(pn, gn) == gn)
        return not isinstance(gn, Node) and type(gn) is type(pn) and bool(gn == pn)

    def _match_nodes(self, pn: Node, gn: Node, match: InternalMatch, node_name_match: str = "") -> bool:
        """Return True if two nodes match with all that they are computed from; note them in the match."""
        if pn in match.nodes_map:
            return match.nodes_map[pn] is gn
        if any(gn is found for found in match.nodes_map.values()) or not self._nodes_are_equal(pn, gn,
                                                                                              node_name_match):
            return False
        match.nodes_map[pn] = gn
        if pn.op == "placeholder":
            return True
        return (len(pn.args) == len(gn.args) and list(pn.kwargs) == list(gn.kwargs)
                and self._match_arguments([*pn.args, *pn.kwargs.values()], [*gn.args, *gn.kwargs.values()], match))

    def _match_arguments(self, wanted: Any, found: Any, match: InternalMatch) -> bool:
        return len(wanted) == len(found) and all(
            self._match_nodes(a, b, match) if isinstance(a, Node) and isinstance(b, Node)
            else self._match_arguments(a, b, match) if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple))
            else self._match_literals(a, b, match) or self.ignore_literals
            for a, b in zip(wanted, found, strict=True))

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """Return the places of a graph that match; nodes whose name contains `node_name_match` match any node.

        No value in the middle of a match is used outside of it, and no other path leads from a match back into it.
        """
        found: list[InternalMatch] = []
        candidates = [(anchor, [node for node in graph.nodes if self._nodes_are_equal(anchor, node, node_name_match)])
                      for anchor in self.pattern_anchors]
        candidates = [(anchor, nodes) for anchor, nodes in candidates if nodes]

        def search(index: int, nodes_map: dict[Any, Any]) -> None:
            if index == len(candidates):
                match = InternalMatch(self.pattern_anchors, nodes_map)
                match.placeholder_nodes = [nodes_map[node] for node in self.pattern_placeholder_nodes]
                match.returning_nodes = [nodes_map[node] for node in self.pattern_returning_nodes]
                found.append(match)
                return
            anchor, nodes = candidates[index]
            for node in nodes:
                attempt = InternalMatch(self.pattern_anchors, nodes_map.copy())
                if self._match_nodes(anchor, node, attempt, node_name_match):
                    search(index + 1, attempt.nodes_map)
        if candidates:
            search(0, {})
        found = [match for match in found if self._is_contained(match.nodes_map)
                 and validate_partition(match.computing())]
        return self._remove_overlapping_matches(found) if self.remove_overlapping_matches else found

    def _is_contained(self, nodes_map: dict[Any, Any]) -> bool:
        """Return True if only results of the match are used outside of it."""
        inside = {found: node for node, found in nodes_map.items() if node.op != "placeholder"}
        return all(user in inside for found, node in inside.items() if node not in self.pattern_returning_nodes
                   for user in found.users)

    def _remove_overlapping_matches(self, matches: list[InternalMatch]) -> list[InternalMatch]:
        kept, seen = [], set()
        for match in matches:
            nodes = match.computing()
            if seen.isdisjoint(nodes):
                kept.append(match)
                seen.update(nodes)
        return kept
