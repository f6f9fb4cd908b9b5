"""The CPU: NumPy arrays in main memory."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..runtime.small_floats import converted, fill
from .base import Storage
from .layout import like, ordered


class NumpyStorage(Storage):
    device = "cpu"
    module = np  # type: ignore[misc]
    array_type = np.ndarray
    piece = 1 << 16
    lands = True
    asarray = staticmethod(np.asarray)  # type: ignore[assignment]
    row_major = staticmethod(np.ascontiguousarray)
    ordered = staticmethod(ordered)
    assign = staticmethod(fill)

    @staticmethod
    def cast(array: Any, dtype: Any) -> Any:
        return like(array, dtype) if 0 in array.strides and array.dtype != dtype else converted(array, dtype)

    @staticmethod
    def column_major(array: Any) -> Any:
        turned = array.swapaxes(-1, -2)
        return array if turned.flags.c_contiguous else np.ascontiguousarray(turned).swapaxes(-1, -2)

    @classmethod
    def host(cls, array: Any) -> np.ndarray[Any, Any]:
        return array  # type: ignore[no-any-return]
