"""Views: other shapes and strides for the memory of an operand. A reshape that is not a view copies first."""
from __future__ import annotations

from collections.abc import Callable
from operator import getitem
from typing import Any

import numpy as np

from ...ops.base import OPS
from ..memory import Value
from . import emits

OF_NUMPY: dict[str, Callable[..., Any]] = {
    "permute_dims": lambda x, *, axes: x.transpose(axes),
    "swapaxes": lambda x, *, axis1, axis2: x.swapaxes(axis1, axis2),
    "t": lambda x: x.T,
    "squeeze": lambda x, *, axis: np.squeeze(x, axis),
    "diagonal": np.diagonal,
    "broadcast_to": lambda x, *, shape: np.broadcast_to(x, shape),
    "getitem": lambda x, *, index: x[(*index, ...)],
}


def seen(value: Value, view: Callable[[Any], Any]) -> Any:
    """Apply a function of views to an array of the plan; return a value, a tuple of them, or NotImplemented.

    The function sees the template of the memory.
    """
    memory = value.buffer.memory
    start, found = memory.ctypes.data, view(value.within(memory))

    def as_value(array: Any) -> Any:
        size = value.dtype.itemsize
        offset = array.ctypes.data - start if array.size else 0
        if array.dtype != value.dtype or not 0 <= offset <= value.buffer.bytes or offset % size:
            return NotImplemented
        return Value(array.shape, value.dtype, tuple(step // size for step in array.strides), offset // size,
                     value.buffer)
    if not isinstance(found, (tuple, list)):
        return as_value(found)
    parts = tuple(map(as_value, found))
    return NotImplemented if NotImplemented in parts else parts


def of_op(opname: str) -> None:
    """Register an op whose kernel on NumPy returns views."""
    @emits(opname)
    def emit(build: Any, node: Any, x: Any, **params: Any) -> Any:
        kernel = OF_NUMPY.get(opname) or (lambda array, **params: _kernel(opname)(array, **params))
        return seen(x, lambda array: kernel(array, **params))


def _kernel(opname: str) -> Any:
    from ...storage.cpu import NumpyStorage
    return OPS[opname].kernels[NumpyStorage]


for _op in (*OF_NUMPY, "expand_dims", "get_slice", "unfold", "unbind", "split_sizes", "split_with_sizes"):
    if _op in OPS:
        of_op(_op)


@emits("reshape")
def reshape(build: Any, node: Any, x: Value, *, shape: Any) -> Any:
    def view(array: Any) -> Any:
        array.shape = node.meta["shape"]        # raises where the shape needs a copy
        return array
    try:
        return seen(x, view)
    except AttributeError:
        return seen(build.whole(x), view)


@emits(getitem)
def part(build: Any, node: Any, xs: Any, which: Any) -> Any:
    """Return a part of a node with several results."""
    return xs[which] if isinstance(xs, (tuple, list)) and isinstance(which, int) else NotImplemented
