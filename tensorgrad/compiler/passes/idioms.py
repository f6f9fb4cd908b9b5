"""Recognize ops of the table that a program writes out, as exports to ONNX do: each becomes one node.

    0.5 x (1 + erf(x / √2))                            =  gelu(x)
    0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³)))         =  gelu_tanh(x)
    x σ(x),  x · hardsigmoid(x),  x · min(max(x + 3, 0), 6) / 6   =  silu(x), hardswish(x), hardswish(x)
    softmax(s · q kᵀ) v                                =  attention(q, k, v, scale=s)
    softmax(where(mask, s · q kᵀ, -∞)) v               =  attention(q, k, v, causal=True), if the mask says so

Factors and terms may come in any order and nesting.
"""
from __future__ import annotations

from math import isclose, pi, prod, sqrt
from typing import Any

import numpy as np

from ...core.dispatch import fresh
from ...graph.lowered import Lowered
from ...graph.node import Node
from ...storage.cpu import NumpyStorage
from .constants import constant
from .rewriting import added, described, only_user, op_of, replaced, same_kind

SLOPE = sqrt(2 / pi)


def write_idioms(graph: Lowered) -> None:
    """Replace ops that are written out."""
    for node in graph.nodes:
        name = op_of(node)
        if name in ("multiply", "divide") and same_kind(node):
            for rule in (gelu, gelu_tanh, silu, hardswish):
                if (x := rule(node)) is not None and same_kind(node, x) and x.meta["shape"] == node.meta["shape"]:
                    replaced(node, added(node, rule.__name__, x))
                    break
        elif name == "matmul" and same_kind(node) and (new := attention(node)) is not None:
            replaced(node, new)


# ── activations ───────────────────────────────────────────────────────────────────────────────────────────────────────


def gelu(node: Node) -> Node | None:
    """0.5 x (1 + erf(x / √2))"""
    for x, bent in pairs(node, 0.5):
        if (inner := above_one(bent, "erf")) is not None and near(*factors(inner), sqrt(0.5), [x]):
            return x
    return None


def gelu_tanh(node: Node) -> Node | None:
    """0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³))), or with x (1 + 0.044715 x²) in it"""
    for x, bent in pairs(node, 0.5):
        scale, found = factors(inner) if (inner := above_one(bent, "tanh")) is not None else (0.0, [])
        if not isclose(scale, SLOPE, rel_tol=1e-6):
            continue
        if len(found) == 1:
            constant_term, parts = terms(found[0])
            if constant_term == 0 and len(parts) == 2 and x in parts:
                cube = parts[1 - parts.index(x)]
                if near(*powers(cube, x), 0.044715, 3):
                    return x
        elif len(found) == 2 and x in found:
            constant_term, parts = terms(found[1 - found.index(x)])
            if constant_term == 1 and len(parts) == 1 and near(*powers(parts[0], x), 0.044715, 2):
                return x
    return None


def silu(node: Node) -> Node | None:
    """x σ(x)"""
    return next((x for x, bent in pairs(node, 1.0) if applied(bent, "sigmoid", x)), None)


def hardswish(node: Node) -> Node | None:
    """x · hardsigmoid(x), or x · clamp(x + 3, 0, 6) / 6"""
    for x, bent in pairs(node, 1.0):
        if applied(bent, "hardsigmoid", x):
            return x
    for x, bent in pairs(node, 1 / 6):
        if bounds(bent) == (0, 6) and terms(bent.args[0]) == (3, [x]):
            return x
    return None


def applied(node: Node, name: str, x: Node) -> bool:
    """Return True for a node that applies the op of this name to x."""
    return op_of(node) == name and node.args[0] is x


def bounds(node: Node) -> Any:
    """Return the bounds to which a node clamps its operand; None for other nodes."""
    if op_of(node) == "hardtanh":
        return node.kwargs["low"], node.kwargs["high"]
    return tuple(node.args[1:]) if op_of(node) == "clamp" else None


def above_one(node: Node, name: str) -> Node | None:
    """Return y of 1 + f(y)."""
    number, parts = terms(node)
    y: Node | None = parts[0].args[0] if number == 1 and len(parts) == 1 and op_of(parts[0]) == name else None
    return y


def pairs(node: Node, number: float) -> list[tuple[Node, Node]]:
    """Return (a, b) and (b, a) for a product number · a · b."""
    scale, found = factors(node)
    return [(found[0], found[1]), (found[1], found[0])] if len(found) == 2 and near(scale, [], number, []) else []


def near(number: float, rest: Any, wanted: float, others: Any) -> bool:
    """Return True if two numbers are equal, up to rounding to float32, and the rest is equal."""
    return bool(isclose(number, wanted, rel_tol=1e-6)) and bool(rest == others)


# ── products and sums ─────────────────────────────────────────────────────────────────────────────────────────────────


def factors(node: Any, root: bool = True) -> tuple[float, list[Node]]:
    """Return the number and the nodes whose product a node is; products that others use are nodes."""
    name = op_of(node)
    if type(node) in (int, float):
        return float(node), []
    if name == "divide" and type(node.args[1]) in (int, float) and node.args[1] and (root or only_user(node)):
        number, found = factors(node.args[0], False)
        return number / node.args[1], found
    if name != "multiply" or not root and only_user(node) is None:
        return 1.0, [node]
    (a, of_a), (b, of_b) = (factors(each, False) for each in node.args)
    return a * b, of_a + of_b


def terms(node: Any, root: bool = True) -> tuple[float, list[Node]]:
    """Return the number and the nodes whose sum a node is."""
    if type(node) in (int, float):
        return float(node), []
    if op_of(node) != "add" or not root and only_user(node) is None:
        return 0.0, [node]
    (a, of_a), (b, of_b) = (terms(each, False) for each in node.args)
    return a + b, of_a + of_b


def powers(node: Node, x: Node) -> tuple[float, int]:
    """Return the number and the exponent of a power of x times a number; exponent 0 for anything else."""
    number, found = factors(node)
    exponent = 0
    for each in found:
        if each is x:
            exponent += 1
        elif op_of(each) == "square" and each.args[0] is x:
            exponent += 2
        elif op_of(each) == "power" and each.args[0] is x and each.args[1] in (2, 3):
            exponent += int(each.args[1])
        else:
            return number, 0
    return number, exponent


# ── attention ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def attention(node: Node) -> Node | None:
    """softmax(scores) v"""
    weights, v = node.args
    if (op_of(weights) != "softmax" or only_user(weights) is not node or not same_kind(node, v)
            or weights.kwargs["axis"] % len(weights.meta["shape"]) != 3):
        return None
    scores, mask = masked(weights.args[0])
    scale, found = factors(scores)
    if len(found) != 1 or op_of(found[0]) != "matmul" or only_user(found[0]) is None:
        return None
    (by_q, of_q), (by_k, of_k) = (factors(each, False) for each in found[0].args)
    if len(of_q) != 1 or len(of_k) != 1 or not by_q * by_k * scale:
        return None
    (q,), (columns,), scale = of_q, of_k, by_q * by_k * scale
    if not same_kind(node, q, columns) or any(
            each.meta["shape"][:2] != node.meta["shape"][:2] for each in (q, columns, v)):
        return None
    if any(len(each.meta["shape"]) != 4 or not prod(each.meta["shape"]) for each in (q, columns, v)):
        return None
    hidden = None if mask is None else causal_or_constant(mask, weights)
    if mask is not None and hidden is None:
        return None
    k = added(node, "permute_dims", columns, axes=(0, 1, 3, 2))
    return added(node, "attention", q, k, v, hidden if isinstance(hidden, Node) else None, causal=hidden is True,
                 scale=scale)


def masked(scores: Node) -> tuple[Node, Any]:
    """Return scores and the array that is added to them, or None.

    A number in place of some scores counts as −∞ if its softmax is 0 beside any other score.
    """
    if only_user(scores) is not None and op_of(scores) == "where":
        seen, rest, hidden = scores.args
        number = value if (value := constant(hidden)) is not None else hidden
        if constant(seen) is not None and np.ndim(number) == 0 and not isinstance(number, Node) and number < -1e30:
            return rest, np.where(constant(seen), 0.0, -np.inf)
    if only_user(scores) is not None and op_of(scores) == "add":
        for one, other in (scores.args, reversed(scores.args)):
            if (value := constant(other)) is not None:
                return one, value
    return scores, None


def causal_or_constant(mask: Any, weights: Node) -> Any:
    """Return True for the mask that hides later places from each place; a node for another one, or None if it hides all
    places from one: their weights are NaN then, not 0."""
    shape, dtype = weights.meta["shape"], weights.meta["dtype"]
    full = np.broadcast_to(mask, np.broadcast_shapes(mask.shape, (1, 1, *shape[2:])))
    if not (full > -np.inf).any(axis=-1).all() or np.isnan(full).any():
        return None
    if shape[2] == shape[3] and np.array_equal(full, np.broadcast_to(
            np.where(np.tri(shape[2], dtype=bool), 0.0, -np.inf), full.shape)):
        return True
    graph: Any = weights.graph
    name = next(f"_mask{i}" for i in range(len(graph.tensors) + 1) if f"_mask{i}" not in graph.tensors)
    graph.tensors[name] = fresh(full.astype(dtype), NumpyStorage)
    with graph.inserting_before(weights):
        node = graph.get_attr(name)
    node.meta.update(shape=full.shape, dtype=dtype, value=graph.tensors[name].array)
    described(node, weights)
    return node
