"""Recorded programs: mutable lists of nodes, in the form of torch.fx. https://pytorch.org/docs/stable/fx.html"""
from __future__ import annotations

from typing import Any

from .effects import has_side_effect
from .graph import Graph
from .lines import CannotLower, ReadsValues
from .nesting import immutable_dict, immutable_list
from .node import Node, map_arg

LATER = {"lower": "lowering", "Lowered": "lowered"}         # imports modules, needed only to run programs

__all__ = ["CannotLower", "Graph", "Lowered", "Node", "ReadsValues", "has_side_effect", "immutable_dict",
           "immutable_list", "lower", "map_arg"]


def __getattr__(name: str) -> Any:
    if name not in LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module
    return getattr(import_module(f"{__name__}.{LATER[name]}"), name)
