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
from .joins import join
from .loops import make_loops
from .norms import fold_norms
from .packing import pack
from .products import as_linear
from .recurrent import pack_layers
from .shapes import simplify_views

# in the order in which they run
PASSES: list[Callable[[Lowered], None]] = [
    drop_unused,
    simplify_views,
    fold_constants,
    merge_equal,
    as_linear,
    fold_norms,
    join,
    in_blocks,
    pack,
    pack_layers,
    make_loops,
    drop_unused,
]


def optimize(graph: Lowered) -> Lowered:
    """Run all passes, and return the graph."""
    for each in PASSES:
        each(graph)
    graph.lint()
    return graph
