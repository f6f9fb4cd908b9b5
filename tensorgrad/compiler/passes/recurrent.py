"""LSTM and GRU layers in parts, with packed weights: a product with the inputs of all steps, and the steps.

    lstm_layer(x, h, c, W, V, b, d)  =  lstm_steps(packed_linear(x, pack(W), b + d), pack(V), h, c)
    gru_layer(x, h, W, V, b, d)      =  gru_steps(packed_linear(x, pack(W), b), pack(V), d, h)
"""
from __future__ import annotations

from typing import Any, NamedTuple

from ...graph.lowered import Lowered
from ...graph.node import Node
from ..packed import PackedLinear
from ..recurrent import GruSteps, LstmSteps, PackedGates
from .packing import in_use, noted, panels
from .rewriting import added, op_of, replaced, same_kind, settled


class Layer(NamedTuple):
    """The operands of a layer: h, or h and c, are the first states."""

    x: Node
    states: tuple[Node, ...]
    w_ih: Node
    w_hh: Node
    b_ih: Node | None
    b_hh: Node | None
    w_hr: Node | None = None


def pack_layers(graph: Lowered) -> None:
    """Pack the weights of layers whose sequences have equal length."""
    if not in_use():
        return
    state = settled(graph)
    packed: dict[Any, Node] = {}
    for node in graph.nodes:
        layer = layer_of(node)
        if layer is not None and serves(layer, state):
            replaced(node, (lstm if len(layer.states) == 2 else gru)(node, layer, packed))


def layer_of(node: Node) -> Layer | None:
    """Return the operands of a layer whose sequences have equal length."""
    states = {"lstm_layer": 2, "gru_layer": 1}.get(op_of(node))
    if states is None or node.kwargs.get("sizes") is not None:
        return None
    x, *rest = node.args
    return Layer(x, tuple(rest[:states]), *rest[states:])


def serves(layer: Layer, state: set[Node]) -> bool:
    """Return True if the kernels of packed weights compute this layer."""
    x, states, w_ih, w_hh, b_ih, b_hh, w_hr = layer
    given = [each for each in (x, *states, w_ih, w_hh, b_ih, b_hh) if each is not None]
    return w_hr is None and same_kind(*given) and {w_ih, w_hh} <= state and all(0 not in n.meta["shape"] for n in given)


def lstm(node: Node, layer: Layer, packed: dict[Any, Node]) -> Node:
    b, d = layer.b_ih, layer.b_hh
    bias = d if b is None else b if d is None else added(node, "add", b, d)
    operands = (sums(node, layer, bias, packed), gates(node, layer.w_hh, 4, packed), *layer.states)
    return noted(node, LstmSteps(node.kwargs.get("reverse", False)), operands, node.meta["shape"], node.meta["dtype"])


def gru(node: Node, layer: Layer, packed: dict[Any, Node]) -> Node:
    operands = (sums(node, layer, layer.b_ih, packed), gates(node, layer.w_hh, 3, packed), layer.b_hh, *layer.states)
    return noted(node, GruSteps(node.kwargs.get("reverse", False)), operands, node.meta["shape"], node.meta["dtype"])


def sums(node: Node, layer: Layer, bias: Any, packed: dict[Any, Node]) -> Node:
    """Add the product with the inputs: their part of the sums of all gates."""
    n = layer.w_ih.meta["shape"][0]
    operands = (layer.x, panels(layer.w_ih, packed), *([] if bias is None else [bias]))
    return noted(node, PackedLinear(n, bias is not None), operands, (*layer.x.meta["shape"][:-1], n),
                 layer.x.meta["dtype"])


def gates(node: Node, w_hh: Node, count: int, packed: dict[Any, Node]) -> Node:
    """Return the node that packs the weight of the hidden state."""
    if w_hh not in packed:
        target = PackedGates(count)
        packed[w_hh] = noted(node, target, (w_hh,), target.shape(w_hh.meta["shape"]), w_hh.meta["dtype"])
    return packed[w_hh]
