"""Conversions of memory formats, accepted without effect: there is a single format here, and formats do not change
results."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...api._kinds import MemoryFormat
    from ..modules.module import Module

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def convert_conv2d_weight_memory_format(module: Module, memory_format: MemoryFormat) -> Any:
    """Return the module unchanged."""
    return module


def convert_conv3d_weight_memory_format(module: Module, memory_format: MemoryFormat) -> Any:
    """Return the module unchanged."""
    return module
