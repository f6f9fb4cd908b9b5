"""Replace parts of a graph by others. https://pytorch.org/docs/stable/fx.html#torch.fx.replace_pattern"""
from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..graph.graph import Graph
from ..graph.node import Node
from ..nn import Module
from ._symbolic_trace import symbolic_trace
from .graph_module import GraphModule
from .passes.utils.matcher_utils import InternalMatch, SubgraphMatcher

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class Match(NamedTuple):
    """A place that was replaced: the pattern's result, and {the pattern's node: the graph's}."""

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """Like `Match`, with the nodes in its place."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def graph_of(program: Any) -> Graph:
    """Return the graph of a module, or of a function that is traced, or a graph itself."""
    if isinstance(program, Graph):
        return program
    return program.graph if isinstance(program, GraphModule) else symbolic_trace(program).graph


def replace_pattern(gm: GraphModule, pattern: Any, replacement: Any) -> list[Match]:
    """Replace all places of a module's graph that compute what a function or module does by another one of the same
    arguments, and return them. https://pytorch.org/docs/stable/fx.html#torch.fx.replace_pattern

    >>> import tensorgrad as torch
    >>> traced = torch.fx.symbolic_trace(lambda x: torch.relu(x * 2) + 1)
    >>> matches = torch.fx.replace_pattern(traced, lambda x: torch.relu(x), lambda x: torch.tanh(x).abs())
    >>> print(traced.code.strip())
    def forward(self, x):
        mul = x * 2;  x = None
        tanh = torch.tanh(mul);  mul = None
        abs_1 = tanh.abs();  tanh = None
        add = abs_1 + 1;  abs_1 = None
        return add
    """
    return [Match(each.anchor, each.nodes_map) for each in replace_pattern_with_filters(gm, pattern, replacement)]


def replace_pattern_with_filters(gm: GraphModule, pattern: Any, replacement: Any = None,
                                 match_filters: list[Callable[..., bool]] | None = None, ignore_literals: bool = False,
                                 replacement_callback: Callable[..., Graph] | None = None,
                                 node_name_match: str = "") -> list[ReplacedPatterns]:
    """Like `replace_pattern`, where all filters hold: `filter(match, graph, pattern's graph)`.

    `replacement_callback`, of the same arguments, returns the replacement of a match as a graph.
    """
    graph, wanted = gm.graph, graph_of(pattern)
    matcher = SubgraphMatcher(wanted, ignore_literals=ignore_literals)
    matches = [match for match in matcher.match(graph, node_name_match=node_name_match)
               if all(accepts(match, graph, wanted) for accepts in match_filters or ())]
    if replacement is None and replacement_callback is None:
        raise AssertionError("Must provide either a replacement GraphModule or a replacement callback")
    given = None if replacement is None else graph_of(replacement)
    changed: dict[Node, Node] = {}              # results of earlier replacements
    done = []
    for match in matches:
        new = given if replacement_callback is None else replacement_callback(match, graph, wanted)
        done.append(_replaced(graph, wanted, new, match, changed))      # type: ignore[arg-type]
    gm.recompile()
    if isinstance(replacement, Module):
        _replace_attributes(gm, replacement)
    return done


def _replaced(graph: Graph, wanted: Graph, new: Graph, match: InternalMatch,
              changed: dict[Node, Node]) -> ReplacedPatterns:
    """Put a copy of a graph in the place of a match."""
    inputs = new.find_nodes(op="placeholder")
    if len(match.placeholder_nodes) != len(inputs):
        raise AssertionError(f"Placeholder count mismatch: {len(match.placeholder_nodes)} vs {len(inputs)}")
    for node, found in match.nodes_map.items():
        if node.op == "placeholder" and isinstance(found, Node):
            match.nodes_map[node] = changed.get(found, found)
    match.placeholder_nodes = [changed.get(found, found) if isinstance(found, Node) else found
                               for found in match.placeholder_nodes]
    copies: dict[Node, Any] = dict(zip(inputs, match.placeholder_nodes, strict=True))
    with graph.inserting_before(_place(graph, match)):
        results = graph.graph_copy(new, copies)
    results = (results,) if isinstance(results, Node) else results
    replacements = [node for node in copies.values() if node not in match.placeholder_nodes]
    if len(match.returning_nodes) != len(results):
        raise AssertionError(f"Returning nodes count mismatch: {len(match.returning_nodes)} vs {len(results)}")
    for old, result in zip(match.returning_nodes, results, strict=True):
        old.replace_all_uses_with(result)
        changed[old] = result
    for node in reversed(wanted.nodes):
        if node.op not in ("placeholder", "output"):
            graph.erase_node(match.nodes_map[node])
    return ReplacedPatterns(match.anchors[0], match.nodes_map, replacements)


def _place(graph: Graph, match: InternalMatch) -> Node:
    """Return the node before which a replacement goes: the first user of a result, else the one after the last."""
    users = {user for node in match.returning_nodes for user in node.users}
    if users:
        return min(users)
    found = max(match.returning_nodes).next
    if found is graph._root:
        raise AssertionError("The insert point can't be None")
    return found


def _replace_attributes(gm: GraphModule, replacement: Module) -> None:
    """Give a module copies of the layers and tensors of a replacement that its graph names."""
    gm.delete_all_unused_submodules()
    if isinstance(replacement, GraphModule):
        replacement.graph.lint()
    for node in gm.graph.nodes:
        if node.op not in ("call_module", "get_attr") or _attribute(gm, node.target) is not None:
            continue
        found = _attribute(replacement, node.target)
        if found is None:
            raise RuntimeError('Attempted to create a "', node.op, f'" node during subgraph rewriting with target '
                               f"{node.target}, but the referenced attribute does not exist in the replacement "
                               f"GraphModule")
        if isinstance(found, Module):
            gm.add_submodule(node.target, copy.deepcopy(found))
        else:
            setattr(gm, node.target, copy.deepcopy(found))
    gm.graph.lint()


def _attribute(module: Module, target: str) -> Any:
    """Return the attribute at a dotted path; None if there is none."""
    path, _, name = target.rpartition(".")
    try:
        return getattr(module.get_submodule(path), name, None)
    except AttributeError:
        return None
