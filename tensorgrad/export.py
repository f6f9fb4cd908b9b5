"""torch.export: programs are not traced into graphs. https://pytorch.org/docs/stable/export.html"""
from __future__ import annotations

from enum import Enum
from typing import Any

from .messages.unsupported import unsupported

_NAMES = "draft_export export load save"
__all__ = ["Dim", "ExportedProgram", *_NAMES.split()]


class _Hint(Enum):
    """A hint for the size of an axis that has no name."""

    AUTO = 0
    STATIC = 1
    DYNAMIC = 2


class Dim:
    """A size that may vary, by name: for `dynamic_shapes` of torch.onnx.export.

    https://pytorch.org/docs → torch.export.Dim
    """

    AUTO, STATIC, DYNAMIC = _Hint

    def __init__(self, name: str, *, min: Any = None, max: Any = None) -> None:
        if not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        self.__name__, self.min, self.max = name, min, max

    def __repr__(self) -> str:
        return self.__name__


class ExportedProgram:
    """The class of PyTorch's exported programs, for isinstance: it has no instances."""


globals().update(unsupported(_NAMES, "torch.export", "programs are not traced into graphs"))
