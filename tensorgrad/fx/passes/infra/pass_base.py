"""The base of passes over modules. https://pytorch.org/docs/stable/fx.html"""
from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

__all__ = ["PassBase", "PassResult"]


class PassResult(NamedTuple):
    """A pass's module, and True if it differs from the given one."""

    graph_module: Any
    modified: bool


class PassBase(ABC):
    """A pass: `call` returns its result; `requires` and `ensures` check the module before and after.

    >>> import tensorgrad as torch
    >>> class Clean(PassBase):
    ...     def call(self, graph_module):
    ...         return PassResult(graph_module, graph_module.graph.eliminate_dead_code())
    >>> Clean()(torch.fx.symbolic_trace(lambda x: x)).modified
    False
    """

    def __call__(self, graph_module: Any) -> PassResult | None:
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abstractmethod
    def call(self, graph_module: Any) -> PassResult | None:
        """Return the result of the pass."""

    def requires(self, graph_module: Any) -> None:
        """Raise an error unless the pass can take the module; here do nothing."""
        return

    def ensures(self, graph_module: Any) -> None:
        """Raise an error unless the module is as it should be after the pass; here do nothing."""
        return
