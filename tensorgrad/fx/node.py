"""torch.fx.node: nodes of graphs, under PyTorch's names. https://pytorch.org/docs/stable/fx.html#torch.fx.Node"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..api import Tensor, device, dtype, layout, memory_format
from ..graph.effects import SIDE_EFFECTS as _side_effectful_functions
from ..graph.effects import has_side_effect
from ..graph.names import source_name as _get_qualified_name
from ..graph.names import type_name as _type_repr
from ..graph.nesting import aggregate, immutable_dict, immutable_list
from ..graph.node import OPS as _legal_ops
from ..graph.node import Node, map_arg
from ..graph.node import told as _format_arg

__all__ = ["Argument", "Node", "Target", "base_types", "has_side_effect", "map_aggregate", "map_arg"]
Argument = Target = Any
BaseArgumentTypes = str | int | float | bool | complex | dtype | Tensor | device | memory_format | layout
base_types = (str, int, float, bool, complex, dtype, Tensor, device, memory_format, layout)


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """Return nested lists, tuples, dictionaries and slices with `fn(leaf)` in place of each leaf.

    >>> map_aggregate([1, {"k": (2,)}], lambda leaf: leaf * 10)
    [10, {'k': (20,)}]
    """
    return aggregate(a, fn)


_USED = (_side_effectful_functions, _get_qualified_name, _type_repr, immutable_dict, immutable_list, _legal_ops,
         _format_arg)
