"""Note the shapes of a graph's values. https://pytorch.org/docs/stable/fx.html"""
from __future__ import annotations

import traceback
from typing import Any, NamedTuple

from ...api import Tensor
from ...dtype import channels_last, channels_last_3d, contiguous_format
from ...graph.nesting import aggregate
from ...graph.node import Node
from ..interpreter import Interpreter

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """The facts about a tensor that passes read, without its values."""

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Any, include_contiguity: bool = True) -> TensorMetadata:
    """Return the facts about a tensor."""
    layout = None
    if include_contiguity:
        layout = next((format for format in (contiguous_format, channels_last, channels_last_3d)
                       if result.is_contiguous(memory_format=format)), None)
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, result.stride(), layout, False, {})


class ShapeProp(Interpreter):
    """Runs a module's graph, and gives each node the facts about its value, as `meta["tensor_meta"]`, and its type, as
    `meta["type"]`. RuntimeError if a node fails.

    Shapes alone suffice: arguments, and the module, may be on the device "meta".

    >>> import tensorgrad as torch
    >>> traced = torch.fx.symbolic_trace(torch.nn.Linear(2, 3))
    >>> result = ShapeProp(traced).propagate(torch.ones(4, 2))
    >>> [tuple(node.meta["tensor_meta"].shape) for node in traced.graph.nodes]
    [(4, 2), (3, 2), (3,), (4, 3), (4, 3)]
    """

    def __init__(self, gm: Any, fake_mode: Any = None) -> None:
        super().__init__(gm)
        self.fake_mode, self.real_module = fake_mode, self.module

    def run_node(self, n: Node) -> Any:
        """Return the value of a node, and note its facts."""
        try:
            result = super().run_node(n)
        except Exception as error:
            traceback.print_exc()
            raise RuntimeError(f"ShapeProp error for: node={n.format_node()} with meta={n.meta}") from error
        tensors = []

        def facts(leaf: Any) -> Any:
            if not isinstance(leaf, Tensor):
                return leaf
            tensors.append(leaf)
            return _extract_tensor_metadata(leaf)
        told = aggregate(result, facts)
        if tensors:
            n.meta["tensor_meta"] = told
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph on these arguments, and return its result."""
        return self.run(*args)
