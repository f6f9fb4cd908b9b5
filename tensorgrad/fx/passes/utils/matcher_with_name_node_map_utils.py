"""Find patterns whose nodes have names."""
from __future__ import annotations

from typing import Any

from ....graph.node import Node
from ....utils._pytree import tree_flatten, tree_unflatten
from ...graph_module import GraphModule
from .matcher_utils import InternalMatch, SubgraphMatcher

__all__ = ["SubgraphMatcherWithNameNodeMap"]


def _split_to_graph_and_name_node_map(gm: GraphModule) -> tuple[GraphModule, dict[str, Node]]:
    """Return a pattern without the last part of its result, and that part: {name: node}."""
    output = gm.graph.output_node()
    if getattr(gm, "_out_spec", None) is None:
        raise AssertionError("gm._out_spec is None")
    result = tree_unflatten(output.args[0], gm._out_spec)
    if not isinstance(result, tuple):
        raise AssertionError("Expecting the pattern graph to return a tuple")
    if len(result) < 2:
        raise AssertionError("Expecting the pattern graph to have at least two outputs")
    *rest, names = result
    if not isinstance(names, dict):
        raise AssertionError("Expecting the input graph to have a dict output as the last element")
    leaves, spec = tree_flatten(rest)
    output.args = (leaves,)
    codegen: Any = gm.graph._codegen
    codegen.pytree_info = codegen.pytree_info._replace(out_spec=spec)
    gm.recompile()
    return gm, names


class SubgraphMatcherWithNameNodeMap(SubgraphMatcher):
    """A matcher of a pattern whose result's last part is {name: value}: matches have these nodes, as
    `name_node_map`."""

    def __init__(self, pattern_gm: GraphModule, match_output: bool = False, match_placeholder: bool = False,
                 remove_overlapping_matches: bool = True, ignore_literals: bool = False) -> None:
        pattern_gm, self.name_node_map = _split_to_graph_and_name_node_map(pattern_gm)
        super().__init__(pattern_gm.graph, match_output, match_placeholder, remove_overlapping_matches,
                         ignore_literals)

    def match(self, graph: Any, node_name_match: str = "") -> list[InternalMatch]:
        """Return the places of a graph that match."""
        found = super().match(graph, node_name_match)
        for match in found:
            match.name_node_map.update({name: match.nodes_map[node] for name, node in self.name_node_map.items()})
        return found
