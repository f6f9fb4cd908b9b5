"""Scales and shifts of channels, folded into the weights of the product before them, or after.

    (W x + b) · s + t  =  (s W) x + (s b + t)          as batch norm after a convolution or a linear layer
    W (x · s + t) + b  =  (W s) x + (W t + b)          before one, unless padding adds zeros to a shifted x

s and t are numbers, or have one for each channel. They, and the weights, must depend on the state alone: their new
values are nodes of the state, too.
"""
from __future__ import annotations

from math import isfinite
from typing import Any, NamedTuple

from ...graph.lowered import Lowered
from ...graph.node import Node
from .rewriting import added, only_user, op_of, replaced, same_kind, settled

# ops with weights: the axis of the weights that has the result's channels; the other one of 0 and 1 has those of x
PRODUCTS = {"linear": 0, "linear_without_bias": 0, "convolution": 0, "convolution_input": 1}


def fold_norms(graph: Lowered) -> None:
    """Fold affine maps of channels into convolutions, transposed convolutions and linear layers."""
    state = settled(graph)
    for node in graph.nodes:
        while (new := (mapped_before if op_of(node) in PRODUCTS else mapped_after)(node, state)) is not None:
            node = replaced(node, new)
            state.update(each for each in node.args[1:] if each is not None)


def mapped_after(node: Node, state: set[Node]) -> Node | None:
    """Return one product for a node that maps the result of a product."""
    for y in node._input_nodes if op_of(node) in MAPS else ():
        if op_of(y) in PRODUCTS and only_user(y) is node and weighted(y, state):
            affine = affine_map(node, y, channel_axis(y, y), state)
            if affine is not None:
                x, w, b = (*y.args, None)[:3]
                w = scaled(y, w, affine.scale, PRODUCTS[op_of(y)], node)
                if b is not None and affine.scale is not None:
                    b = added(node, "multiply", b, affine.scale)
                return product(y, x, w, plus(b, affine.shift, node), node)
    return None


def mapped_before(node: Node, state: set[Node]) -> Node | None:
    """Return one product for a product of the result of a map."""
    y, *_ = node.args
    for x in y._input_nodes if op_of(y) in MAPS and only_user(y) is node and weighted(node, state) else ():
        affine = affine_map(y, x, channel_axis(node, y), state)
        if affine is not None and (affine.shift is None or unpadded(node)):
            _, w, b = (*node.args, None)[:3]
            axis = 1 - PRODUCTS[op_of(node)]
            if affine.shift is not None:
                terms = scaled(node, w, affine.shift, axis, node)
                b = plus(b, added(node, "sum", terms, axis=tuple(range(1, len(terms.meta["shape"])))), node)
            return product(node, x, scaled(node, w, affine.scale, axis, node), b, node)
    return None


# ── affine maps ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Affine(NamedTuple):
    """x · scale + shift. Each is a number, a node of shape () or (channels,), or None."""

    scale: Any
    shift: Any


def affine_map(node: Node, x: Node, axis: int, state: set[Node]) -> Affine | None:
    """Return what a node does to x, if that is an affine map of the channels along an axis of x."""
    if not same_kind(node, x) or node.meta["shape"] != x.meta["shape"]:
        return None
    first, *others = node.args
    if op_of(node) == "affine_by_channel":
        return normalization(node, state) if first is x and axis == 1 else None
    other = per_channel(others[0] if first is x else first, node, axis, state)
    if other is None or first is not x and op_of(node) in ("divide", "subtract"):
        return None
    found: Affine = MAPS[op_of(node)](node, other)
    return found


MAPS: dict[str, Any] = {
    "affine_by_channel": None,
    "multiply": lambda node, s: Affine(s, None),
    "divide": lambda node, s: Affine(added(node, "divide", 1.0, s) if isinstance(s, Node) else 1 / s, None),
    "add": lambda node, t: Affine(None, t),
    "subtract": lambda node, t: Affine(None, added(node, "negative", t) if isinstance(t, Node) else -t),
}


def normalization(node: Node, state: set[Node]) -> Affine | None:
    """(x - μ) / √(σ² + ε) · w + b: scale = w / √(σ² + ε), shift = b - μ · scale"""
    x, w, b, mean, variance = node.args
    channels = tuple(x.meta["shape"][1:2])
    if not all(each is None or each in state and same_kind(x, each) and each.meta["shape"] == channels
               for each in (w, b, mean, variance)):
        return None
    deviation = added(node, "sqrt", added(node, "add", variance, node.kwargs["eps"]))
    scale = added(node, "divide", 1.0 if w is None else w, deviation)
    centre = added(node, "multiply", mean, scale)
    return Affine(scale, added(node, "negative", centre) if b is None else added(node, "subtract", b, centre))


def per_channel(value: Any, node: Node, axis: int, state: set[Node]) -> Any:
    """Return a number, or a node of shape () or (channels,), for an operand that varies along an axis alone; or None.

    Numbers that are 0, infinite or NaN are None, too.
    """
    if not isinstance(value, Node):
        return float(value) if type(value) in (int, float) and isfinite(value) and value else None
    shape, like = value.meta["shape"], node.meta["shape"]
    sizes = (1,) * (len(like) - len(shape)) + tuple(shape)
    if value not in state or not same_kind(value, node) or any(n != 1 for i, n in enumerate(sizes) if i != axis):
        return None
    wanted = () if sizes[axis] == 1 else (sizes[axis],)
    return value if shape == wanted else added(node, "reshape", value, shape=wanted)


# ── products ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def weighted(node: Node, state: set[Node]) -> bool:
    """Return True if the weights of a product are state, and of the dtype of its result, and the bias is a vector."""
    weights = [each for each in node.args[1:] if each is not None]
    return (all(each in state for each in weights) and same_kind(node, *weights) and len(node.meta["shape"]) > 1
            and all(len(each.meta["shape"]) == 1 for each in weights[1:]))


def channel_axis(product: Node, x: Node) -> int:
    """Return the axis of the channels in the operand, or the result, of a product."""
    return len(x.meta["shape"]) - 1 if op_of(product).startswith("linear") else 1


def unpadded(node: Node) -> bool:
    """Return True if a product adds no zeros to its operand, so that a shifted operand shifts the result evenly."""
    return op_of(node) != "convolution_input" and not any(node.kwargs.get("padding", ()))


def scaled(product: Node, w: Node, scale: Any, axis: int, place: Node) -> Node:
    """Return weights times a number, or times a number for each channel of the result (or operand) of a product.

    Channels along axis 1 of weights are those of one group: weights of shape (groups · a, b, …) are, for this, of shape
    (groups, a, b, …), and the channels (groups, 1, b, …).
    """
    if scale is None:
        return w
    if not isinstance(scale, Node) or scale.meta["shape"] == ():
        return added(place, "multiply", w, scale)
    first, second, *window = w.meta["shape"]
    groups = product.kwargs.get("groups", 1)
    if axis == 0:
        return added(place, "multiply", w, added(place, "reshape", scale, shape=(first, 1, *(1,) * len(window))))
    if groups == 1:
        return added(place, "multiply", w, added(place, "reshape", scale, shape=(1, second, *(1,) * len(window))))
    grouped = added(place, "reshape", w, shape=(groups, first // groups, second, *window))
    by = added(place, "reshape", scale, shape=(groups, 1, second, *(1,) * len(window)))
    return added(place, "reshape", added(place, "multiply", grouped, by), shape=w.meta["shape"])


def plus(b: Any, shift: Any, place: Node) -> Any:
    """Return the sum of a bias and a shift, each of which may be None."""
    return b if shift is None else shift if b is None else added(place, "add", b, shift)


def product(old: Node, x: Node, w: Node, b: Any, place: Node) -> Node | None:
    """Return a product like another, with other operands, for the node that it takes the place of.

    A bias that is a number is None: products take vectors.
    """
    if b is not None and (not isinstance(b, Node) or b.meta["shape"] == ()):
        return None
    if op_of(old).startswith("linear"):
        return added(place, "linear_without_bias", x, w) if b is None else added(place, "linear", x, w, b)
    return added(place, op_of(old), x, w, b, **old.kwargs)
