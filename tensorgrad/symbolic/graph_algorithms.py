"""The nodes between the inputs and outputs of a graph, and their order.

No function here recurses, so deep graphs are safe.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .calls import Attribute, Call, Method
from .data import SymbolicCallable, SymbolicData, SymbolicTensor


def figure_out_nodes_between(inputs: Iterable[Any] | None = None, outputs: Iterable[Any] | None = None) -> set[Any]:
    """Return the nodes that depend on the inputs and that the outputs depend on, both included.

    Without inputs: all ancestors of the outputs; without outputs: all descendants of the inputs.

    >>> from tensorgrad.symbolic import Input
    >>> x = Input((3,)); y = x + 1; z = y * 2; other = y.relu()
    >>> figure_out_nodes_between([x], [z]) == {x, y, z}
    True
    """
    if inputs is None and outputs is None:
        raise ValueError("figure_out_nodes_between: inputs or outputs are needed")
    starts = None if inputs is None else set(inputs)
    before = (None if outputs is None else _reached(outputs, lambda node: () if starts is not None and node in starts
                                                    else node.parents))
    after = None if starts is None else _reached(starts, lambda node: node.children)
    found = after if before is None else before if after is None else before & after
    assert found is not None
    return found


def _reached(nodes: Iterable[Any], neighbours: Callable[[Any], Iterable[Any]]) -> set[Any]:
    found = set(nodes)
    waiting = list(found)
    while waiting:
        for node in neighbours(waiting.pop()):
            if node not in found:
                found.add(node)
                waiting.append(node)
    return found


def check_for_missing_inputs(used: set[Any], inputs: Iterable[Any]) -> None:
    """Raise AssertionError if a node depends on another that is neither among them nor an input."""
    known = set(inputs)
    for node in sorted(used - known, key=lambda n: n._order):
        assert node.parents, (f"The graph depends on the output of a foreign node: {describe(node)} is not among the "
                              f"inputs.")
        for parent in node.parents:
            assert parent in used or parent in known, (f"{describe(node)} depends on the output of a foreign node, "
                                                       f"{describe(parent)}.")


def sort_graph_and_check_DAG(nodes: Iterable[Any]) -> list[Any]:
    """Return the nodes in order of creation, which is topological. AssertionError if there is a cycle."""
    ordered = sorted(nodes, key=lambda n: n._order)
    place = {node: k for k, node in enumerate(ordered)}
    if any(place.get(parent, -1) >= k for k, node in enumerate(ordered) for parent in node.parents):
        return _sorted_anew(ordered)
    return ordered


def _sorted_anew(nodes: list[Any]) -> list[Any]:
    """Sort topologically, for nodes whose parents were changed by hand."""
    among = set(nodes)
    missing = {node: sum(p in among for p in node.parents) for node in nodes}
    ready = [node for node in nodes if not missing[node]]
    done = []
    while ready:
        done.append(node := ready.pop(0))
        for other in nodes:
            if node in other.parents:
                missing[other] -= 1
                if not missing[other]:
                    ready.append(other)
    assert len(done) == len(nodes), "The graph is not a DAG: a node depends on its own output."
    return done


topological_sort = sort_graph_and_check_DAG


def describe(node: Any) -> str:
    """A node in an error message."""
    made_by = "an input" if node._call is None else f"the output of {node._call.title()}"
    return f"{repr(node.custom_name) + ', ' if node.custom_name else ''}{made_by} ({default_node_text(node)})"


def default_node_text(node: Any) -> str:
    """Return a node's text in pictures: its shape, or the type of its value."""
    if isinstance(node, SymbolicTensor):
        return str(tuple(node.shape))
    if isinstance(node, SymbolicCallable):
        return "callable"
    value = node._in_world(0)
    return f"{type(value).__name__}({len(value)})" if hasattr(value, "__len__") else type(value).__name__


def default_edge_text(layer: Any) -> str:
    """Return an edge's text in pictures: the name of the layer's class, or `.attribute`."""
    if isinstance(layer, (Attribute, Method)):
        return f".{layer.name}"
    return "" if layer is None else Call(layer).title()


def variable_name_resolver(namespace: dict[str, Any]) -> Callable[[Any], str]:
    """A function that finds the name of a node in a namespace, such as `globals()`; "?" for those that have none."""
    names = {value: name for name, value in reversed(namespace.items())
             if isinstance(value, SymbolicData) and not name.startswith("_")}
    return lambda node: names.get(node, "?")


def __getattr__(name: str) -> Any:
    if name == "draw_graph":            # lazily: the module of drawings imports this one
        from .drawing import draw_graph
        return draw_graph
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
