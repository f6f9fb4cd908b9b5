"""The base of nested tensors of both layouts: how they hand functions on, and how they are copied and written."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from .. import api as tg
from .._tensor.torch_function import DisableTorchFunctionSubclass


class Nested(tg.Tensor):
    """A tensor of the values of all components; a subclass says where each component is among them."""

    rules: ClassVar[list[Callable[..., Any]]]           # the module with a subclass's rules registers their function

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with DisableTorchFunctionSubclass():
            return cls.rules[0](func, args, kwargs or {})

    is_nested = property(lambda self: True)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            if not self.is_leaf:
                raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
                                   "protocol at the moment.")
            copy = self._of_gradient(plain(self).detach().clone())
            memo[id(self)] = copy.requires_grad_(self.requires_grad)
        return memo[id(self)]

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)


def plain(x: Any) -> Any:
    """Return the values of all components as a tensor, with their history."""
    with DisableTorchFunctionSubclass():
        values = x.as_subclass(tg.Tensor)
    values.origin = x.origin
    return values
