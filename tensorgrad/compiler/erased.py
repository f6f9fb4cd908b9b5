"""Freeze a compiled module: free tensors that its graph no longer needs because they were packed or folded."""
from __future__ import annotations

from typing import Any

from .._tensor import Tensor
from ..nn.modules.module import Module
from .tracing import Trace

FROZEN = ("Trying to run Pytorch Eager Module after Dynamo Freezing. The original parameters have been discarded for "
          "memory efficiency. Found in op {} for erased parameter {} of {}")


class Erased(Tensor):
    """The replacement of a freed tensor: has its shape and dtype, and refuses all operations."""

    _is_param = True

    @staticmethod
    def __new__(cls, tensor: Any, name: str, owner: str) -> Any:
        made = Tensor._make_wrapper_subclass(cls, tensor.shape, dtype=tensor.dtype)
        made.erased, made.owner = name, owner
        return made

    def __init__(self, *args: Any) -> None:
        pass

    def __repr__(self) -> str:                      # type: ignore[override]
        return f"Erased({self.owner}.{self.erased}, {list(self.shape)})"

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise RuntimeError(FROZEN.format("pickle", self.erased, self.owner))

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        first = next((arg for arg in args if isinstance(arg, cls)), None)
        raise RuntimeError(FROZEN.format(func, getattr(first, "erased", "a parameter"), getattr(first, "owner", "it")))


def erase(module: Module, trace: Trace) -> None:
    """Replace the parameters and buffers that a module's trace read, so that only its graph holds them."""
    read = {id(tensor) for tensor in trace.tensors.values()}
    for path, child in module.named_modules():
        for table in (child._parameters, child._buffers):
            for name, tensor in list(table.items()):
                if id(tensor) in read:
                    table[name] = Erased(tensor, name, f"{type(child).__name__} {path}".rstrip())
    trace.surroundings.forget_tensors()
    if trace.graph is not None:
        trace.graph.relied = ()


__all__ = ["Erased", "erase"]
