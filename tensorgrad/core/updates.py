"""Steps of optimizers as one kernel each, for the backends that have one.

A kernel takes many parameters at once, `kernel(rows, **numbers)`: the arrays of each are a tuple of the parameter, what is remembered of it, of which some
may be None, and its gradient, which is read; all others change. It returns the places of the rows that it leaves alone.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..advice import wrote
from ..guest import compute
from ..storage.base import clock
from .dispatch import OpDispatch
from .lanes import PLAIN
from .mode import mode

KERNELS: dict[tuple[str, Any], Callable[..., Sequence[int]]] = {}


def register(name: str, device: Any) -> Callable[[Any], Any]:
    """A decorator: the function becomes the kernel of this update on the device."""
    def decorate(kernel: Any) -> Any:
        KERNELS[name, OpDispatch.backend(device)] = kernel
        return kernel
    return decorate


def at_once(name: str, rows: list[tuple[Any, ...] | None], optional: int, **numbers: Any) -> Sequence[int]:
    """Update parameters by a kernel, given rows of tensors. The places of those that are left, such as those that are None; nothing is recorded.

    `optional` is the place in a row where None may be, for what a rule does not remember.
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
    """Return the arrays of tensors that a kernel of the backend may have; None if it may not: also for values of a file that are no tensors."""
    arrays: list[Any] = []
    for place, tensor in enumerate(row):
        if tensor is None and place == optional:
            arrays.append(None)
        elif type(tensor) in PLAIN and type(storage := tensor._storage) is backend and not storage.inference:
            arrays.append(tensor.array)
        else:
            return None
    return tuple(arrays)
