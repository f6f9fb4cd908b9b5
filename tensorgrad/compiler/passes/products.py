"""Products with a matrix of weights, in one form.

    x · A                       =  linear_without_bias(x, Aᵀ)      if A is a matrix of the state; Aᵀ is a view
    reshape(linear(x, w, b))    =  linear(reshape(x), w, b)        if each vector remains one
"""
from __future__ import annotations

from ...graph.lowered import Lowered
from .rewriting import added, only_user, op_of, replaced, same_kind, settled


def as_linear(graph: Lowered) -> None:
    """Write products with a matrix of the state as linear layers."""
    state = settled(graph)
    for node in graph.nodes:
        if op_of(node) == "matmul" and node not in state:
            x, a = node.args
            if a in state and len(a.meta["shape"]) == 2 and len(x.meta["shape"]) >= 2 and same_kind(node, x, a):
                replaced(node, added(node, "linear_without_bias", x, added(node, "t", a)))


def over_leading_axes(graph: Lowered) -> None:
    """Move a reshape of a linear layer's result, which adds leading axes, to its operand."""
    for node in graph.nodes:
        if op_of(node) == "reshape" and op_of(y := node.args[0]) in ("linear", "linear_without_bias"):
            shape, (rows, *weights) = node.meta["shape"], y.args
            if (only_user(y) is node and len(y.meta["shape"]) == 2 and len(shape) > 2
                    and shape[-1] == y.meta["shape"][-1] and 0 not in shape):
                x = added(y, "reshape", rows, shape=(*shape[:-1], rows.meta["shape"][-1]))
                replaced(node, added(node, op_of(y), x, *weights))
