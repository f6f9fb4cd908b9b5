"""Pack the weights of products, once, in the order in which the compiled kernels read them.

    linear(x, W, b)  =  packed_linear(x, pack(W), b)

Packing depends on the state alone, and several products with one weight share the packed one.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ...graph.lowered import Lowered
from ...graph.node import Node
from ...kernels.compiled import WANTED, enabled
from ...ops.indexing import ARRAY
from ..packed import PackedLinear, PackedRows, PackedWeight, following
from ..targets import Joined
from .rewriting import op_of, replaced, same_kind, settled

FEW = 4                 # with up to so many rows, a weight that other nodes read unpacked is not packed


def pack(graph: Lowered) -> None:
    """Pack the weights of linear layers."""
    if not in_use():
        return
    state = settled(graph)
    packed: dict[Any, Node] = {}
    for node in graph.nodes:
        target = joint(node)
        if target is not None and node not in state and serves(node, target, state):
            replaced(node, product(node, target, packed))


def in_use() -> bool:
    """Return True if compiled kernels are in use."""
    return WANTED and enabled()


def joint(node: Node) -> Joined | None:
    """Return a product with a weight as Joined."""
    if op_of(node) in ("linear", "linear_without_bias"):
        return Joined(op_of(node))
    target = node.target
    return target if isinstance(target, Joined) and target.opname in ("linear", "linear_without_bias") else None


def serves(node: Node, target: Joined, state: set[Node]) -> bool:
    """Return True if the kernel of packed weights computes this product."""
    x, w, *rest = node.args
    shape = x.meta["shape"]
    if w not in state or not same_kind(node, *node._input_nodes) or not shape or following(target.activation) is None:
        return False
    biases = rest[:len(rest) - target.residual]
    rows, sizes = 1, (*shape, *w.meta["shape"])
    for n in shape[:-1]:
        rows *= n
    return (all(b.meta["shape"] == w.meta["shape"][:1] for b in biases) and len(w.meta["shape"]) == 2 and 0 not in sizes
            and (rows > FEW or not read_otherwise(source_of(w)[0])))


def share_packed(graph: Lowered) -> None:
    """Read rows of a packed matrix where rows of the matrix are read, so that nothing needs the matrix itself.

    This takes longer, and saves memory if nothing else holds the matrix.
    """
    for pack in [node for node in graph.nodes if node.target == PackedWeight(True) and len(node.args) == 1]:
        w, = pack.args
        readers = [user for user in w.users if user is not pack]
        if all(reads_rows(user, w) for user in readers):
            for user in readers:
                target = PackedRows(user.target, w.meta["shape"][0])
                with graph.inserting_before(user):
                    new = graph.call_function(target, (pack, *user.args[1:]), user.kwargs)
                new.meta.update(user.meta)
                replaced(user, new)


def reads_rows(node: Node, w: Node) -> bool:
    """Return True if a node reads whole rows of a matrix at integer places."""
    name, params = op_of(node), node.kwargs
    if node.args[0] is not w or len(node.args) != 2 or not isinstance(node.args[1], Node):
        return False
    if node.args[1] is w or node.args[1].meta["dtype"] != np.int64:
        return False
    if name == "index":
        return params["template"][0] is ARRAY and all(part == slice(None) for part in params["template"][1:])
    return name == "embedding" or name in ("take_axis", "index_select") and params["axis"] in (0, -2)


def source_of(w: Node) -> tuple[Node, bool]:
    """Return (the matrix that a weight is or transposes, True unless it is the transpose)."""
    straight = True
    while turns(w):
        w, straight = w.args[0], not straight
    return w, straight


def turns(w: Node) -> bool:
    """Return True if a node is the transpose of a matrix."""
    return op_of(w) == "t" or op_of(w) == "permute_dims" and tuple(w.kwargs["axes"]) in ((1, 0), (-1, -2), (-1, 0))


def read_otherwise(w: Node) -> bool:
    """Return True if a node other than a product reads a weight, which then stays in memory unpacked, too."""
    return not all(joint(user) or turns(user) or isinstance(user.target, PackedWeight) for user in w.users)


def product(node: Node, target: Joined, packed: dict[Any, Node]) -> Node:
    """Add the product with a packed weight before the node that it takes the place of."""
    x, w, *rest = node.args
    found = PackedLinear(w.meta["shape"][0], target.opname == "linear", target.residual, target.activation)
    return noted(node, found, (x, panels(w, packed), *rest), node.meta["shape"], node.meta["dtype"])


def panels(w: Node, packed: dict[Any, Node]) -> Node:
    """Return the node that packs a weight (n, k)."""
    source, transposed = source_of(w)
    if (source, transposed) not in packed:
        target = PackedWeight(transposed)
        with w.graph.inserting_after(source):
            new = w.graph.call_function(target, (source,))
        new.meta.update(shape=target.shape(source.meta["shape"]), dtype=w.meta["dtype"])
        packed[source, transposed] = new
    return packed[source, transposed]


def noted(place: Node, target: Any, args: tuple[Any, ...], shape: Any, dtype: Any) -> Node:
    """Add a node before another, with its meta."""
    with place.graph.inserting_before(place):
        node = place.graph.call_function(target, args)
    node.meta.update({key: place.meta[key] for key in ("scope", "source") if key in place.meta}, shape=shape,
                     dtype=dtype)
    return node
