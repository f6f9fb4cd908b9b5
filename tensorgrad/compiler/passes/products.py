"""Products with a matrix of weights, in one form.

    x · A  =  linear_without_bias(x, Aᵀ)      if A is a matrix that depends on the state alone; Aᵀ is a view
"""
from __future__ import annotations

from ...graph.lowered import Lowered
from .rewriting import added, op_of, replaced, same_kind, settled


def as_linear(graph: Lowered) -> None:
    """Write products with a matrix of the state as linear layers."""
    state = settled(graph)
    for node in graph.nodes:
        if op_of(node) == "matmul" and node not in state:
            x, a = node.args
            if (a in state and len(a.meta["shape"]) == 2 and len(x.meta["shape"]) >= 2 and same_kind(node, x, a)):
                replaced(node, added(node, "linear_without_bias", x, added(node, "t", a)))
