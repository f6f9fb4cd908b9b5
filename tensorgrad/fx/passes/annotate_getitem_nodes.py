"""Types of the parts of typed sequences. https://pytorch.org/docs/stable/fx.html"""
from __future__ import annotations

import operator
from typing import get_args, get_origin, get_type_hints

from ...graph.graph import Graph

__all__ = ["annotate_getitem_nodes"]


def annotate_getitem_nodes(graph: Graph) -> None:
    """Give nodes that take a part of a tuple, list or named tuple the part's type, if the sequence has one.

    >>> import tensorgrad as torch
    >>> graph = torch.fx.symbolic_trace(lambda pair: pair[0]).graph
    >>> graph.find_nodes(op="placeholder")[0].type = tuple[int, torch.Tensor]
    >>> annotate_getitem_nodes(graph)
    >>> [node.type for node in graph.nodes if node.op == "call_function"]
    [<class 'int'>]
    """
    for node in graph.find_nodes(op="call_function", target=operator.getitem):
        sequence, index = node.args
        kind, parts = sequence.type, get_args(sequence.type)
        if get_origin(kind) is list or get_origin(kind) is tuple and len(parts) == 2 and parts[1] is ...:
            node.type = parts[0]
        elif get_origin(kind) is tuple and index < len(parts):
            node.type = parts[index]
        elif hasattr(kind, "_fields"):
            node.type = list(get_type_hints(kind).values())[index]
