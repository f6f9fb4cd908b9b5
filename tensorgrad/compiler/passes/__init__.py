"""Passes: functions that rewrite a lowered graph in place, without changing what it computes.

The graph is that of `graph.lower`: nodes whose targets are ops of the table, with `meta["shape"]` and `meta["dtype"]`.
Nodes that depend on `get_attr` nodes alone are computed ahead of the calls, and anew after a parameter changes: a pass
may therefore write what it does to weights as nodes (`weight * scale`).
"""
from __future__ import annotations

from collections.abc import Callable

from ...graph.lowered import Lowered
from .blocking import in_blocks
from .common import merge_equal
from .constants import fold_constants
from .dead import drop_unused
from .idioms import write_idioms
from .joins import join
from .known import compute_known, has_masks
from .loops import make_loops
from .norms import fold_norms
from .packing import in_use, pack
from .plain import for_numpy
from .products import as_linear, over_leading_axes
from .recurrent import pack_layers
from .shapes import simplify_views
from .taps import crop_kernels

# those that serve graphs with symbolic sizes, and the others, in the order in which they run
FIRST: list[Callable[[Lowered], None]] = [
    compute_known,
    drop_unused,
    simplify_views,
    fold_constants,
    merge_equal,
    as_linear,
    write_idioms,
    crop_kernels,
    fold_norms,
    over_leading_axes,
    simplify_views,
    join,
]
LATER: list[Callable[[Lowered], None]] = [
    in_blocks,
    pack,
    pack_layers,
    for_numpy,
    drop_unused,
    make_loops,
]
PASSES = FIRST + LATER
OF_KERNELS = {in_blocks, pack, pack_layers, make_loops}     # run if compiled kernels are in use
OF_NUMPY = {for_numpy}                                      # run otherwise


def simplify(graph: Lowered) -> None:
    """Run the passes that serve graphs with symbolic sizes, unless they need masks that are made of sizes."""
    if has_masks(graph):
        return
    for each in FIRST[1:]:
        each(graph)
    graph.simplified = True


def optimize(graph: Lowered) -> Lowered:
    """Run all passes, or those that are left for a graph that is simplified, and return the graph."""
    others = OF_NUMPY if in_use() else OF_KERNELS
    first = ([compute_known, *(each for each in FIRST if each.__name__ in graph.postponed)] if graph.simplified
             else FIRST)
    for each in (*first, *(each for each in LATER if each not in others)):
        each(graph)
    graph.lint()
    return graph
