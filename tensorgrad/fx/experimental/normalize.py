"""Bring the arguments of a graph's calls into one form. https://pytorch.org/docs/stable/fx.html"""
from __future__ import annotations

import operator
from typing import Any, ClassVar

from ..._tensor.torch_function import PUBLIC
from ...graph.node import Node
from ...graph.schemas import normalize_function, normalize_module
from ..interpreter import Transformer

__all__ = ["NormalizeArgs", "NormalizeOperators"]


class NormalizeArgs(Transformer):
    """Gives calls of functions and layers all arguments that their signatures have, by name, or in their order with
    `normalize_to_only_use_kwargs=False`.

    >>> import tensorgrad as torch
    >>> traced = torch.fx.symbolic_trace(lambda x: torch.nn.functional.elu(x))
    >>> print(NormalizeArgs(traced).transform().code.strip())
    def forward(self, x):
        elu = torch.nn.functional.elu(input = x, alpha = 1.0, inplace = False);  x = None
        return elu
    """

    def __init__(self, module: Any, normalize_to_only_use_kwargs: bool = True) -> None:
        super().__init__(module)
        self.node_map: dict[Any, Node] = {}
        self.normalize_to_only_use_kwargs = normalize_to_only_use_kwargs

    def run_node(self, n: Node) -> Any:
        """Return the proxy of a node, with its `meta` and type."""
        out = super().run_node(n)
        if n.op != "output":
            self.node_map[out] = n
            out.node.meta, out.node.type = n.meta, n.type
        return out

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return a proxy for the call of a function."""
        found = normalize_function(target, args, kwargs, None, None, self.normalize_to_only_use_kwargs)
        return super().call_function(target, *(found or (args, kwargs)))

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return a proxy for the call of a layer."""
        found = normalize_module(self.module, target, args, kwargs, self.normalize_to_only_use_kwargs)
        return super().call_module(target, *(found or (args, kwargs)))


class NormalizeOperators(Transformer):
    """Writes functions that Python has operators for as these: `torch.add(x, y)` as `x + y`."""

    binary_magic_method_remap: ClassVar[dict[Any, Any]] = {
        PUBLIC[name]: function for name, function in
        {"add": operator.add, "mul": operator.mul, "sub": operator.sub, "div": operator.truediv,
         "floor_divide": operator.floordiv, "remainder": operator.mod, "eq": operator.eq, "ne": operator.ne,
         "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge}.items()}

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return a proxy for the call of a function or an operator."""
        if target in self.binary_magic_method_remap and len(args) == 2:
            return super().call_function(self.binary_magic_method_remap[target], args, {})
        return super().call_function(target, args, kwargs)


