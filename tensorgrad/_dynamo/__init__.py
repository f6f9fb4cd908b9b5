"""torch._dynamo, for programs that exclude functions from compilation: nothing is compiled here."""
from __future__ import annotations

from typing import Any

from .. import compiler
from ..compiler import allow_in_graph, assume_constant_result, disable, is_compiling, list_backends, reset
from . import config
from .eval_frame import OptimizedModule

__all__ = ["OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable", "disallow_in_graph",
           "forbid_in_graph", "graph_break", "is_compiling", "list_backends", "mark_dynamic", "mark_static",
           "maybe_mark_dynamic", "optimize", "reset",
           "run"]

disallow_in_graph = forbid_in_graph = run = allow_in_graph


def optimize(*args: Any, **kwargs: Any) -> Any:
    """Return a decorator that returns its function."""
    return compiler.compile()


def graph_break(msg: str = "") -> None:
    """Do nothing: there is no compiled graph."""


def mark_dynamic(*args: Any, **kwargs: Any) -> None:
    """Do nothing: sizes may always change."""


mark_static = maybe_mark_dynamic = mark_dynamic
