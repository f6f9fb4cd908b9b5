"""A product, what is added to it, and the activation that follows, joined to one node.

    activation(W x + b + residual)  =  Joined("linear", activation, residual=True)(x, W, b, residual)
    attention(q · s, k)             =  attention(q, k) with s in its scale
"""
from __future__ import annotations

from math import isfinite
from typing import Any

from ...graph.lowered import Lowered
from ...graph.node import Node
from ..targets import Activation, Joined
from .rewriting import added, only_user, op_of, replaced, same_kind

PRODUCTS = {"linear", "linear_without_bias", "convolution", "convolution_input", "matmul"}
ACTIVATIONS = {"relu", "leaky_relu", "hardtanh", "hardsigmoid", "hardswish", "elu", "silu", "sigmoid", "tanh", "gelu",
               "gelu_tanh", "mish", "softplus"}


def join(graph: Lowered) -> None:
    """Join residuals and activations to products, and scales to attention."""
    place = {node: i for i, node in enumerate(graph.nodes)}
    for node in graph.nodes:
        if op_of(node) == "attention":
            scale_of_operands(node)
        elif op_of(node) == "add":
            with_residual(node, place)
        elif op_of(node) in ACTIVATIONS:
            with_activation(node, place)


def joint(node: Any) -> Joined | None:
    """Return a product, or one with a residual, as Joined; None if it has its activation already."""
    if op_of(node) in PRODUCTS:
        return Joined(op_of(node))
    target = node.target if isinstance(node, Node) else None
    return target if isinstance(target, Joined) and target.activation is None else None


def with_activation(node: Node, place: dict[Node, int]) -> None:
    """activation(product)"""
    y = node.args[0]
    target = joint(y)
    if target is not None and only_user(y) is node and same_kind(node, y):
        activation = Activation(op_of(node), tuple(sorted(node.kwargs.items())))
        joined = Joined(target.opname, activation, target.residual)
        place[replaced(node, added(node, joined, *y.args, **y.kwargs))] = place[node]


def with_residual(node: Node, place: dict[Node, int]) -> None:
    """product + other: of two products, the one that runs last takes the other as its residual."""
    terms = list(node._input_nodes)
    if (len(terms) != 2 or not same_kind(node, *terms)
            or any(each.meta["shape"] != node.meta["shape"] for each in terms)):
        return
    found = [(place[y], y, target.opname) for y in terms
             if (target := joint(y)) is not None and not target.residual and only_user(y) is node]
    if found:
        _, y, opname = max(found)
        other, = (each for each in terms if each is not y)
        new = replaced(node, added(node, Joined(opname, residual=True), *y.args, other, **y.kwargs))
        place[new] = place[node]


def scale_of_operands(node: Node) -> None:
    """attention(q · s, k) = softmax(q kᵀ · (s · scale)): factors of queries and keys that are numbers."""
    for i in (0, 1):
        while op_of(scaled := node.args[i]) == "multiply" and only_user(scaled) is node:
            factors = [a for a in scaled.args if type(a) in (int, float)]
            rest = [a for a in scaled.args if isinstance(a, Node)]
            if len(factors) != 1 or not isfinite(factors[0]) or not same_kind(scaled, *rest):
                break
            node.kwargs = {**node.kwargs, "scale": node.kwargs["scale"] * factors[0]}
            scaled.replace_all_uses_with(rest[0])
            scaled.graph.erase_node(scaled)
