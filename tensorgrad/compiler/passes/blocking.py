"""Run chains of convolutions, pools and elementwise ops in blocks of channels.

    relu(convolution(x, W) + b)  =  from_blocked(blocked_convolution(to_blocked(x), pack(W), pad(b)))

Copies between both orders remain where a chain begins and ends. Packing depends on the state alone. A first layer reads
pictures in the usual order, and a mean over all places needs no copy back.
"""
from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any

from ...graph.lowered import Lowered
from ...graph.node import Node
from ...kernels.compiled import choices
from ..blocked import (
    BLOCK,
    BlockedBias,
    BlockedConvolution,
    BlockedDepthwise,
    BlockedMean,
    BlockedPool,
    BlockedScale,
    BlockedWeight,
    DepthwiseWeight,
    Following,
    FromBlocked,
    ToBlocked,
    WinogradWeight,
    blocks,
)
from ..packed import following
from ..targets import Joined
from .joins import ACTIVATIONS
from .norms import normalization, per_channel
from .rewriting import added, op_of, replaced, same_kind, settled, unused

FINITE = ("add", "subtract", "divide", "negative", "absolute", "maximum", "minimum", "clamp")     # for 0 and numbers
CONVOLUTIONS = ("convolution", "convolution_input")
FAR = 256                           # the largest window and step: rows are copied with their border
FEW = 32                            # with fewer tiles, Winograd's weights are used only if they have
SMALL = 64                          # at most so many pairs of blocks
MANY = 192                          # with so many tiles, making the weights of points in each run takes up to 4 % of it
FIRST = 4                           # a first layer has at most so many channels: it reads pictures as they are
NARROW = 4                          # results with at most so many channels would fill vectors with zeros


def in_blocks(graph: Lowered) -> None:
    """Run chains of convolutions in blocks of channels."""
    Blocking(graph).run()


class Blocking:
    """Rewrites a graph from its first node to its last: `inside` has the node in blocks for each node that has one."""

    def __init__(self, graph: Lowered) -> None:
        self.graph = graph
        self.state = settled(graph)
        self.inside: dict[Node, Node] = {}
        self.packed: dict[tuple[Node, Any], Node] = {}

    def run(self) -> None:
        """Rewrite all nodes that can run in blocks; copy what other nodes read of them."""
        for node in list(self.graph.nodes):
            if node.op == "call_function" and node not in self.state and of_pictures(node):
                rule = RULES.get(getattr(node.target, "opname", ""))
                new = None if rule is None else rule(self, node)
                if new is None and getattr(node.target, "elementwise", False):
                    new = self.chain(node)
                if new is not None:
                    self.inside[node] = new
        for node, new in self.inside.items():
            if any(user not in self.inside for user in node.users):
                node.replace_all_uses_with(self.added(node, FromBlocked(node.meta["shape"][1]), new),
                                           lambda user: user not in self.inside)
        unused(list(self.inside))

    # ── nodes ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def added(self, place: Node, target: Any, *args: Any, shape: Any = None, **params: Any) -> Node:
        """Add a node in blocks before another."""
        with self.graph.inserting_before(place):
            node = self.graph.call_function(target, args, params)
        shape = target.shape(*(a.meta["shape"] for a in args)) if shape is None else shape
        node.meta.update({key: place.meta[key] for key in ("scope", "source") if key in place.meta}, shape=shape,
                         dtype=place.meta["dtype"])
        return node

    def blocked(self, x: Node, place: Node) -> Node:
        """Return pictures in blocks: as they are, or copied."""
        if x not in self.inside and (x, None) not in self.packed:
            self.packed[x, None] = self.added(place, ToBlocked(), x)
        return self.inside.get(x) or self.packed[x, None]

    def has_blocks(self, x: Node) -> bool:
        """Return True if a node in blocks holds these pictures."""
        return x in self.inside or (x, None) in self.packed

    def weight(self, w: Node, target: Any, place: Node) -> Node:
        """Return the node that packs a weight or a bias. Factors of a weight's outputs are applied while it does."""
        if (w, target) not in self.packed:
            factors = factors_of_outputs(w) if isinstance(target, (BlockedWeight, WinogradWeight)) else None
            operands = (w,) if factors is None or getattr(target, "transposed", False) else (w.args[0], factors)
            late = getattr(target, "late", False)
            with self.graph.inserting_before(place) if late else self.graph.inserting_after(w):
                node = self.graph.call_function(target, operands)
            node.meta.update(shape=target.shape(w.meta["shape"]), dtype=w.meta["dtype"])
            self.packed[w, target] = node
        return self.packed[w, target]

    # ── rules: the node in blocks, or None ────────────────────────────────────────────────────────────────────────────

    def convolution(self, node: Node) -> Node | None:
        """A convolution, and what is joined to it"""
        joined = node.target if isinstance(node.target, Joined) else Joined(node.target.opname)
        x, w, b, *residual = (*node.args, None)[:3] + node.args[3:]
        if (w not in self.state or not (b is None or b in self.state) or following(joined.activation) is None
                or any(r.meta["shape"] != node.meta["shape"] for r in residual)):
            return None
        transposed = joined.opname == "convolution_input"
        how: dict[str, Any] = {key: tuple(node.kwargs[key]) for key in ("stride", "padding", "dilation")}
        groups, channels, outs = node.kwargs.get("groups", 1), x.meta["shape"][1], node.meta["shape"][1]
        first = channels <= FIRST and x not in self.inside and groups == 1 and not transposed
        depthwise = groups == channels == outs and groups > 1
        if any(max(k * d, s) > FAR or p > k * d for k, d, s, p in zip(w.meta["shape"][2:], how["dilation"],
                                                                      how["stride"], how["padding"], strict=True)):
            return None
        if outs <= NARROW:
            return None
        if groups > 1 and (transposed or not depthwise and (channels // groups % BLOCK or outs // groups % BLOCK)):
            return None
        operands = [self.weight(b, BlockedBias(), node)] if b is not None else []
        operands += [self.blocked(r, node) for r in residual]
        after = Following(b is not None, bool(residual), joined.activation)
        if depthwise and not transposed:
            return self.added(node, BlockedDepthwise(**how, following=after), self.blocked(x, node),
                              self.weight(w, DepthwiseWeight(), node), *operands)
        target = BlockedConvolution(outs, tuple(node.meta["shape"][2:]), **how, groups=groups, transposed=transposed,
                                    first=first, following=after)
        if not first and suits_winograd(target, x.meta["shape"], w.meta["shape"]):
            target = target.but(winograd=True)
        packing = target.weight
        if target.winograd and winograd_tiles(target, x.meta["shape"]) >= MANY:
            packing = WinogradWeight(late=True)
        return self.added(node, target, x if first else self.blocked(x, node), self.weight(w, packing, node), *operands)

    def pool(self, node: Node) -> Node | None:
        """The largest, or the sum, of each window"""
        x, = node.args
        if x not in self.inside or len(node.kwargs["kernel"]) != 2:
            return None
        how: dict[str, Any] = {key: value if key == "scale" else tuple(value) for key, value in node.kwargs.items()}
        how["widths"] = tuple(map(tuple, how["widths"]))
        return self.added(node, BlockedPool(node.target.opname, tuple(node.meta["shape"][2:]), **how), self.inside[x])

    def mean(self, node: Node) -> Node | None:
        """The mean over places"""
        x, = node.args
        axis = node.kwargs.get("axis")
        axes = sorted(a % 4 for a in axis) if isinstance(axis, (tuple, list)) else []
        if x not in self.inside or axes != [2, 3]:
            return None
        y = self.added(node, BlockedMean(), self.inside[x])
        if node.kwargs.get("keepdims"):
            return y
        y = self.added(node, FromBlocked(x.meta["shape"][1]), y)
        replaced(node, added(node, "reshape", y, shape=node.meta["shape"]))
        return None

    def elementwise(self, node: Node) -> Node | None:
        """An op of pictures of one shape, and numbers: finite for 0, so that no channel after the last matters"""
        pictures = [a for a in node.args if isinstance(a, Node)]
        others = [a for a in node.args[1:] if not isinstance(a, Node)]
        if (self.inside.keys().isdisjoint(pictures) or any(not self.has_blocks(x) for x in pictures)
                or any(x.meta["shape"] != node.meta["shape"] for x in pictures)
                or any(a is not None and (type(a) not in (int, float) or not isfinite(a)) for a in others)
                or node.target.opname == "divide" and (not others or not others[0])):
            return None
        args = [self.blocked(a, node) if isinstance(a, Node) else a for a in node.args]
        return self.added(node, node.target, *args, shape=self.blocked(pictures[0], node).meta["shape"], **node.kwargs)

    def product(self, node: Node) -> Node | None:
        """Pictures times numbers, a number for each channel, or for each image and channel"""
        for x, by in (node.args, node.args[::-1]):
            if x not in self.inside or not isinstance(by, Node) or x.meta["shape"] != node.meta["shape"]:
                continue
            if by in self.inside and by.meta["shape"] == (*x.meta["shape"][:2], 1, 1):
                return self.added(node, BlockedScale(), self.inside[x], self.inside[by])
            scale = per_channel(by, node, 1, self.state) if by in self.state else None
            if isinstance(scale, Node) and scale.meta["shape"] == x.meta["shape"][1:2]:
                return self.mapped(node, x, scale, None)
        return self.elementwise(node)

    def affine(self, node: Node) -> Node | None:
        """A norm with known statistics: a product with a number for each channel, and a sum with another"""
        x = node.args[0]
        found = normalization(node, self.state) if x in self.inside else None
        return None if found is None else self.mapped(node, x, found.scale, found.shift)

    def mapped(self, node: Node, x: Node, scale: Node, shift: Node | None) -> Node:
        """x · scale + shift, as a convolution of each channel by one number"""
        w = self.weight(added(node, "reshape", scale, shape=(*scale.meta["shape"], 1, 1, 1)), DepthwiseWeight(), node)
        rest = [] if shift is None else [self.weight(shift, BlockedBias(), node)]
        target = BlockedDepthwise((1, 1), (0, 0), (1, 1), Following(bias=bool(rest)))
        return self.added(node, target, self.inside[x], w, *rest)

    def chain(self, node: Node) -> Node | None:
        """A function of pictures of one shape and of numbers, where channels fill their blocks: none has to stay 0"""
        pictures = list(node._input_nodes)
        if (not self.inside.keys() >= set(pictures) or len({x.meta["shape"] for x in pictures}) > 1
                or pictures[0].meta["shape"][1] % BLOCK or any(isinstance(a, (list, tuple)) for a in node.args)):
            return None
        args = [self.inside[a] if isinstance(a, Node) else a for a in node.args]
        return self.added(node, node.target, *args, shape=self.inside[pictures[0]].meta["shape"], **node.kwargs)

    def concat(self, node: Node) -> Node | None:
        """Pictures side by side, where each but the last fills its blocks"""
        parts = node.args[0] if len(node.args) == 1 and isinstance(node.args[0], (list, tuple)) else node.args
        if (node.kwargs.get("axis", 0) % 4 != 1 or not self.inside.keys() >= set(parts)
                or any(x.meta["shape"][1] % BLOCK for x in parts[:-1])):
            return None
        inside = [self.inside[x] for x in parts]
        shape = *inside[0].meta["shape"][:1], sum(x.meta["shape"][1] for x in inside), *inside[0].meta["shape"][2:]
        args = (type(node.args[0])(inside),) if parts is node.args[0] else inside
        return self.added(node, node.target, *args, shape=shape, **{**node.kwargs, "axis": 1})


def factors_of_outputs(w: Node) -> Node | None:
    """Return the second operand of a product of weights, if it has a number for each output of a convolution."""
    shape = w.meta["shape"]
    if op_of(w) != "multiply" or not all(isinstance(a, Node) and same_kind(w, a) for a in w.args):
        return None
    weights, factors = w.args
    fits = weights.meta["shape"] == shape and factors.meta["shape"] == (shape[0], *(1,) * (len(shape) - 1))
    return factors if fits else None


def winograd_tiles(target: BlockedConvolution, x: tuple[int, ...]) -> int:
    """Return the number of tiles of 2 × 2 results."""
    return x[0] * -(-target.size[0] // 2) * -(-target.size[1] // 2)


def suits_winograd(target: BlockedConvolution, x: tuple[int, ...], w: tuple[int, ...]) -> bool:
    """Return True if Winograd's convolution is faster, by the number of products in whole tiles, or always wanted.

    Its weights take 16 / 9 of the memory: too much for few tiles, unless the weights are small.
    """
    wanted = choices["winograd"]
    if (not wanted or w[2:] != (3, 3) or target.stride != (1, 1) or target.dilation != (1, 1) or target.groups > 1
            or target.transposed):
        return False
    tiles = winograd_tiles(target, x)
    taps = [sum(max(0, min(places, size + before - k) - max(0, before - k)) for k in range(3))
            for places, size, before in zip(target.size, x[2:], target.padding, strict=True)]
    direct = x[0] * taps[0] * taps[1]
    small = blocks(w[0]) * blocks(w[1]) <= SMALL
    return wanted == "always" or 16 * 1.2 * tiles < direct and w[1] >= BLOCK and (tiles >= FEW or small)


def of_pictures(node: Node) -> bool:
    """Return True if a node's result and operands are of float32 and not empty, the first being pictures."""
    found = [node, *node._input_nodes]
    return (all(isinstance(x.meta.get("shape"), tuple) and 0 not in x.meta["shape"] and x.meta["dtype"].char == "f"
                for x in found) and len(found) > 1 and len(found[1].meta["shape"]) == 4)


RULES: dict[str, Callable[[Blocking, Node], Node | None]] = {
    **dict.fromkeys(CONVOLUTIONS, Blocking.convolution), **dict.fromkeys(("max_pool", "window_sum"), Blocking.pool),
    **dict.fromkeys((*sorted(ACTIVATIONS), *FINITE), Blocking.elementwise), "mean": Blocking.mean,
    "multiply": Blocking.product, "affine_by_channel": Blocking.affine, "concat": Blocking.concat,
}
