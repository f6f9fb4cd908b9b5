"""torch._dynamo, for programs that exclude functions from compilation: nothing is compiled here."""
from __future__ import annotations

from typing import Any

from .. import compiler
from .._tensor import Tensor
from ..compiler import allow_in_graph, assume_constant_result, disable, is_compiling, list_backends, reset
from . import config
from .eval_frame import OptimizedModule

__all__ = ["OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable", "disallow_in_graph",
           "forbid_in_graph", "graph_break", "is_compiling", "list_backends", "mark_dynamic", "mark_static",
           "mark_static_address",
           "maybe_mark_dynamic", "optimize", "reset",
           "run"]

disallow_in_graph = forbid_in_graph = run = allow_in_graph


def optimize(*args: Any, **kwargs: Any) -> Any:
    """Return the decorator that `torch.compile` is without a function."""
    return compiler.compile()


def graph_break(msg: str = "") -> None:
    """Do nothing: there is no compiled graph."""


def mark_dynamic(*args: Any, **kwargs: Any) -> None:
    """Do nothing: sizes may always change."""


mark_static = maybe_mark_dynamic = mark_dynamic


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Note on a tensor that its memory stays where it is: a compiler may rely on it; nothing here does.

    TypeError for anything but a tensor.
    """
    if not isinstance(t, Tensor):
        raise TypeError(f"mark_static_address expects a tensor but received {type(t)}")
    t._dynamo_static_input_type = "guarded" if guard else "unguarded"  # type: ignore[attr-defined]
