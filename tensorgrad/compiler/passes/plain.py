"""Forms of products that are faster on NumPy alone. Their weights are nodes of the state.

    linear(x, w)         =  turned(x, wᵀ)             for one row, and for many
    convolution(x, w)    =  winograd(x, G w Gᵀ)       for kernels of 3 × 3 over many channels
"""
from __future__ import annotations

from math import prod
from typing import Any

from ...graph.lowered import Lowered
from ...graph.node import Node
from ..targets import Joined
from ..turned import Turned
from ..winograd import LEAST, Winograd, WinogradKernels
from .rewriting import added, described, op_of, replaced, same_kind, settled

CHANNELS = 48                       # with fewer channels, NumPy's calls take most of the time of tiles
FEW = range(2, 57)                  # rows that kernels/matrix_numpy.py multiplies as columns


def for_numpy(graph: Lowered) -> None:
    """Write linear layers and convolutions for NumPy."""
    state = settled(graph)
    for node in graph.nodes:
        target = node.target if isinstance(node.target, Joined) else Joined(op_of(node))
        if node in state or node.op != "call_function" or len(node.args) < 2 or node.args[1] not in state:
            continue
        if target.opname in ("linear", "linear_without_bias"):
            turn(node, target)
        elif target.opname == "convolution":
            by_tiles(node, target)


def turn(node: Node, target: Joined) -> None:
    """Transpose the weights of a linear layer."""
    x, w, *rest = node.args
    rows, size = prod(x.meta["shape"][:-1]), prod(w.meta["shape"])
    if rows not in FEW and rows and size and len(w.meta["shape"]) == 2 and same_kind(node, x, w, *rest):
        if op_of(w) in ("permute_dims", "t"):
            turned: Node = w.args[0]
        else:
            turned = added(node, "contiguous", added(node, "permute_dims", w, axes=(1, 0)))
        _replaced(node, Turned(target), x, turned, *rest)


def by_tiles(node: Node, target: Joined) -> None:
    """Compute a convolution by Winograd's formula, where that is faster."""
    x, w, b, *rest = node.args
    how = [node.kwargs["stride"], node.kwargs["dilation"], node.kwargs.get("groups", 1)]
    if (how == [(1, 1), (1, 1), 1] and tuple(w.meta["shape"][2:]) == (3, 3)
            and same_kind(node, *node._input_nodes) and worth_tiles(w.meta["shape"], node.meta["shape"])):
        with node.graph.inserting_before(node):
            kernels = node.graph.call_function(WinogradKernels(), (w,))
        kernels.meta.update(shape=(4, 4, *w.meta["shape"][:2]), dtype=w.meta["dtype"])
        described(kernels, node)
        _replaced(node, Winograd(target, tuple(node.kwargs["padding"])), x, w, b, *rest, kernels)


def worth_tiles(kernels: tuple[int, ...], result: tuple[int, ...]) -> bool:
    """Return True if tiles take less time than columns (in nanoseconds, measured on one core with AVX-512).

    Columns cost copies and 9 products for each place, tiles 16 products and additions, which short rows slow down.
    """
    outputs, channels, *_ = kernels
    n, _, rows, columns = result
    some = -(-rows // 2) * (-(-columns // 2) + 1)
    by_columns = n * rows * columns * channels * 9 * (0.4 + 0.0125 * outputs)
    additions = (28 * channels + 24 * outputs) * (0.25 + 5 / max(some, 1))
    by_tiles = n * some * (16 * channels * 0.0125 * outputs + additions)
    return min(outputs, channels) >= CHANNELS and n * some >= LEAST and by_tiles < 0.9 * by_columns


def _replaced(node: Node, target: Any, *args: Any) -> None:
    """Put a call of another target in the place of a node."""
    with node.graph.inserting_before(node):
        new = node.graph.call_function(target, args)
    new.meta.update(node.meta)
    replaced(node, new)
