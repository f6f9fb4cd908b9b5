"""LSTM and GRU layers in parts, with packed weights: the product with all inputs, and the steps (compiler/recurrent.py).

    lstm_layer(x, h, c, W, V, b, d)  =  lstm_steps(packed_linear(x, pack(W), b + d), pack(V), h, c)
    gru_layer(x, h, W, V, b, d)      =  gru_steps(packed_linear(x, pack(W), b), pack(V), d, h)
"""
from __future__ import annotations

from typing import Any

from ...graph.lowered import Lowered
from ...graph.node import Node
from ..packed import PackedLinear
from ..recurrent import GruSteps, LstmSteps, PackedGates
from .packing import in_use, noted, panels
from .rewriting import added, op_of, replaced, same_kind, settled


def pack_layers(graph: Lowered) -> None:
    """Pack the weights of layers whose sequences have equal length."""
    if not in_use():
        return
    state = settled(graph)
    packed: dict[Any, Node] = {}
    for node in graph.nodes:
        states, gates = {"lstm_layer": (2, 4), "gru_layer": (1, 3)}.get(op_of(node), (0, 0))
        if not states or node.kwargs.get("sizes") is not None:
            continue
        x, *rest = node.args
        first, (w_ih, w_hh, b_ih, b_hh, *projection) = rest[:states], rest[states:]
        given = [each for each in (*first, w_ih, w_hh, b_ih, b_hh) if each is not None]
        if (any(each is not None for each in projection) or not same_kind(x, *given) or not {w_ih, w_hh} <= state
                or 0 in x.meta["shape"] or 0 in w_hh.meta["shape"]):
            continue
        reverse, bias, dtype = node.kwargs.get("reverse", False), b_ih, x.meta["dtype"]
        if gates == 4:
            bias = b_hh if b_ih is None else b_ih if b_hh is None else added(node, "add", b_ih, b_hh)
        sums = (*x.meta["shape"][:-1], w_ih.meta["shape"][0])
        z = noted(node, PackedLinear(sums[-1], bias is not None), (x, panels(w_ih, packed), *[bias] * (bias is not None)),
                  sums, dtype)
        if w_hh not in packed:
            target = PackedGates(gates)
            packed[w_hh] = noted(node, target, (w_hh,), target.shape(w_hh.meta["shape"]), dtype)
        steps, arguments = ((LstmSteps(reverse), (z, packed[w_hh], *first)) if gates == 4 else
                            (GruSteps(reverse), (z, packed[w_hh], b_hh, *first)))
        replaced(node, noted(node, steps, arguments, node.meta["shape"], node.meta["dtype"]))
