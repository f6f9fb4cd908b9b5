"""Optimizer steps as one kernel each, for the backends that have them.

A kernel updates many parameters at once, `kernel(rows, **numbers)`. A row has the arrays of a parameter, of its state
(one may be None), and of its gradient, which is only read. The kernel returns the positions of rows that it did not
update.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..advice import wrote
from ..runtime.numpy_state import compute
from ..storage.base import clock
from .dispatch import OpDispatch
from .fast_path import PLAIN
from .mode import mode

KERNELS: dict[tuple[str, Any], Callable[..., Sequence[int]]] = {}


def register(name: str, device: Any) -> Callable[[Any], Any]:
    """Decorate a function to make it the kernel of this update on the device."""
    def decorate(kernel: Any) -> Any:
        KERNELS[name, OpDispatch.backend(device)] = kernel
        return kernel
    return decorate


def at_once(name: str, rows: list[tuple[Any, ...] | None], optional: int, **numbers: Any) -> Sequence[int]:
    """Update parameters by a kernel, unrecorded; return the positions of rows that are None or were not updated.

    `optional` is the position in a row that may be None, for state that a rule does not use.
    """
    backend = next((type(row[0]._storage) for row in rows if row is not None), None)
    kernel = KERNELS.get((name, backend))
    if kernel is None or mode.record or mode.watching.hooks or \
            not all(isinstance(number, (int, float)) for number in numbers.values()):
        return range(len(rows))
    given = [None if row is None else arrays_of(row, backend, optional) for row in rows]
    ready = [place for place, arrays in enumerate(given) if arrays is not None]
    refused = {ready[i] for i in compute(kernel, [given[place] for place in ready], **numbers)}
    left, began = [], next(clock)
    for place, row in enumerate(rows):
        if row is None or given[place] is None or place in refused:
            left.append(place)
            continue
        for tensor in row[:-1]:
            if tensor is not None:
                tensor._storage.wrote()
    wrote(began, next(clock))
    return left


def arrays_of(row: tuple[Any, ...], backend: Any, optional: int) -> tuple[Any, ...] | None:
    """Return the arrays of a row; None if the backend's kernel cannot update them, or if a loaded state is no
    tensor.
    """
    arrays: list[Any] = []
    for place, tensor in enumerate(row):
        if tensor is None and place == optional:
            arrays.append(None)
        elif type(tensor) in PLAIN and type(storage := tensor._storage) is backend and not storage.inference:
            arrays.append(tensor.array)
        else:
            return None
    return tuple(arrays)
