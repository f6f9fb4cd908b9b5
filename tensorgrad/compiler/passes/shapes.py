"""Write views in few forms, and drop views that have no effect.

    expand_dims, squeeze                        =  reshape
    t, swapaxes                                 =  permute_dims, or reshape if the axes that move have length 1
    get_item, a part of unbind or of a split    =  get_slice without new axes
    reshape(reshape(x)), permute(permute(x))    =  one of them
    reshape to the shape that x has, …          =  x
    permute(reshape(permute(x)))                =  reshape(permute(x)), if axes that are merged stay together
    columns of windows side by side             =  permute(reshape(x)): patches of images
    x + broadcast_to(y)                         =  x + y, which broadcasts anyway
"""
from __future__ import annotations

import operator
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ...graph.lowered import Lowered
from ...graph.node import Node
from ...size import shape_together
from .rewriting import added, only_user, op_of, replaced


def simplify_views(graph: Lowered) -> None:
    """Rewrite views in their common forms, and drop copies and casts that change nothing."""
    for node in graph.nodes:
        if (found := simpler(node)) is not None:
            replaced(node, found)
        elif node.op == "call_function" and getattr(node.target, "elementwise", False):
            without_broadcasts(node)


def simpler(node: Node) -> Node | None:
    """Return a node that can replace another; None if there is none."""
    if node.target is operator.getitem:
        return part(node)
    rule = RULES.get(op_of(node))
    return None if rule is None else rule(node)


def reshaped(node: Node) -> Node | None:
    """The elements of x, in order, in the node's shape."""
    x: Node = node.args[0]
    shape = node.meta["shape"]
    while op_of(x) in IN_ORDER:
        x = x.args[0]
    if x.meta["shape"] == shape:
        return x
    if x is node.args[0] and op_of(node) == "reshape":
        return None
    return added(node, "reshape", x, shape=shape)


IN_ORDER = ("reshape", "expand_dims", "squeeze")


def permuted(node: Node) -> Node | None:
    """The axes of x in another order."""
    x: Node = node.args[0]
    axes = axes_of(node)
    while op_of(x) in ORDERS:
        inner = axes_of(x)
        axes, x = tuple(inner[axis] for axis in axes), x.args[0]
    shape = x.meta["shape"]
    if axes == tuple(range(len(axes))):
        return x
    if (moved := [axis for axis in axes if shape[axis] != 1]) == sorted(moved) or not prod(shape):
        return added(node, "reshape", x, shape=node.meta["shape"])
    if op_of(x) == "reshape" and only_user(x) is not None and op_of(y := x.args[0]) in ORDERS:
        merged = groups(y.meta["shape"], shape)
        if merged is not None:
            whole = added(node, "permute_dims", y, axes=tuple(axis for i in axes for axis in merged[i]))
            return added(node, "reshape", permuted(whole) or whole, shape=node.meta["shape"])
    if x is node.args[0] and node.kwargs.get("axes") == axes:
        return None
    return added(node, "permute_dims", x, axes=axes)


def groups(shape: tuple[int, ...], merged: tuple[int, ...]) -> list[list[int]] | None:
    """Return, for each axis of a merged shape, the axes that it is made of; None if some are not whole axes."""
    found: list[list[int]] = []
    axis = 0
    for n in merged:
        found.append([])
        size = 1
        while axis < len(shape) and size * shape[axis] <= n and (size != n or shape[axis] == 1):
            size *= shape[axis]
            found[-1].append(axis)
            axis += 1
        if size != n:
            return None
    return found if axis == len(shape) else None


def patches(node: Node) -> Node | None:
    """Windows that partition x, as a view: (N, C, *K, *L)."""
    x: Node = node.args[0]
    kernel, stride, padding, dilation = (tuple(node.kwargs[name]) for name in
                                         ("kernel", "stride", "padding", "dilation"))
    n, channels, *size = x.meta["shape"]
    rest = [d % k for d, k in zip(size, kernel, strict=True)]
    if kernel != stride or any(padding) or set(dilation) != {1} or any(rest):
        return None
    split = (length for d, k in zip(size, kernel, strict=True) for length in (d // k, k))
    places = tuple(range(2, 2 + 2 * len(size), 2))
    whole = added(node, "reshape", x, shape=(n, channels, *split))
    return added(node, "permute_dims", whole, axes=(0, 1, *(place + 1 for place in places), *places))


def axes_of(node: Node) -> tuple[int, ...]:
    """Return the axes of the operand that the axes of a permuted result are."""
    axes = list(range(len(node.args[0].meta["shape"])))
    if op_of(node) == "permute_dims":
        return tuple(axes[axis] for axis in node.kwargs["axes"])
    i, j = (node.kwargs["axis1"], node.kwargs["axis2"]) if op_of(node) == "swapaxes" else (0, -1)
    if axes:
        axes[i], axes[j] = axes[j], axes[i]
    return tuple(axes)


ORDERS = ("permute_dims", "swapaxes", "t")


def part(node: Node) -> Node | None:
    """A result of `unbind` or of a split, as a slice."""
    whole, k = node.args
    name = op_of(whole)
    if name not in ("unbind", "split_sizes", "split_with_sizes"):
        return None
    x, axis = whole.args[0], whole.kwargs["axis"] % len(whole.args[0].meta["shape"])
    sizes = whole.kwargs.get("sizes", ())
    index = k if name == "unbind" else slice(start := sum(sizes[:k]), start + sizes[k])
    return added(node, "get_slice", x, index=(*(slice(None),) * axis, index))


def sliced(node: Node) -> Node | None:
    """A slice of x; x itself if it is whole. New axes are made by `reshape`."""
    x: Node = node.args[0]
    index = node.kwargs["index"]
    if None in index:
        rest = added(node, "get_slice", x, index=tuple(each for each in index if each is not None))
        return added(node, "reshape", sliced(rest) or rest, shape=node.meta["shape"])
    if (x.meta["shape"] == node.meta["shape"]
            and all(type(each) is slice and (each.step is None or each.step > 0) for each in index)):
        return x
    return added(node, "get_slice", x, index=index) if op_of(node) == "get_item" else None


def broadcast(node: Node) -> Node | None:
    """x repeated; x itself if it has the shape."""
    x: Node = node.args[0]
    return x if x.meta["shape"] == node.meta["shape"] else None


def cast(node: Node) -> Node | None:
    """x itself, if it has the dtype, or has been cast to a wider one and is cast back."""
    x: Node = node.args[0]
    dtype = node.meta["dtype"]
    if x.meta["dtype"] == dtype:
        return x
    first: Node = x.args[0] if op_of(x) == "cast" else x
    return first if first.meta["dtype"] == dtype and holds(x.meta["dtype"], dtype) else None


def holds(wide: Any, narrow: Any) -> bool:
    """Return True if a dtype represents all values of another."""
    return wide.kind in "biufc" and narrow.kind in "biufc" and np.can_cast(narrow, wide, "safe")


def same(node: Node) -> Node:
    """A copy: nothing in a graph is written to."""
    x: Node = node.args[0]
    return x


RULES: dict[str, Callable[[Node], Node | None]] = {
    **dict.fromkeys(IN_ORDER, reshaped), **dict.fromkeys(ORDERS, permuted), "get_item": sliced, "get_slice": sliced,
    "broadcast_to": broadcast, "cast": cast, "clone": same, "columns": patches,
}


def without_broadcasts(node: Node) -> None:
    """Replace an operand `broadcast_to(y)` by y, if the node's result keeps its shape."""
    for i, operand in enumerate(node.args):
        if op_of(operand) == "broadcast_to":
            others = [a.meta["shape"] for j, a in enumerate(node.args) if j != i and isinstance(a, Node)]
            if shape_together(operand.args[0].meta["shape"], *others) == node.meta["shape"]:
                node.update_arg(i, operand.args[0])
