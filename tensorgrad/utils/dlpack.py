"""Memory handed to other libraries and taken from them, as DLPack capsules. https://pytorch.org/docs/stable/dlpack.html"""
from __future__ import annotations

from typing import Any

from ..api import from_dlpack as _from_dlpack


class _Capsule:
    """A bare capsule of host memory, as an object that knows the protocol."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def from_dlpack(ext_tensor: Any) -> Any:
    """A tensor in the memory of a capsule, or of an object of another library. https://pytorch.org/docs → torch.from_dlpack"""
    return _from_dlpack(ext_tensor if hasattr(ext_tensor, "__dlpack__") else _Capsule(ext_tensor))


def to_dlpack(tensor: Any) -> Any:
    """A capsule with the memory of a tensor. https://pytorch.org/docs → torch.utils.dlpack.to_dlpack"""
    return tensor.__dlpack__()


__all__ = ["from_dlpack", "to_dlpack"]
