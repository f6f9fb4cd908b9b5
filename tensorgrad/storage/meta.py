"""The device 'meta': tensors that have a shape and a dtype, and no values. https://pytorch.org/docs/stable/meta.html

The formulas themselves compute the shapes of results. They run on memory that the system reserves, but does not fill
until it is written to; its contents have no meaning and cannot be read.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from .base import Storage


class Promised:
    """NumPy with new arrays that read as zeros, so that integer arrays are valid indices."""

    empty, empty_like = staticmethod(np.zeros), staticmethod(np.zeros_like)

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


class MetaStorage(Storage):
    device = "meta"
    module = Promised()
    array_type = np.ndarray

    @classmethod
    def asarray(cls, data: Any, dtype: Any = None) -> Any:
        return np.zeros_like(np.asarray(data, dtype), subok=False)

    @classmethod
    def host(cls, array: Any) -> np.ndarray[Any, Any]:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")

    @classmethod
    def seen(cls, array: Any) -> np.ndarray[Any, Any]:
        return np.empty(0)
