"""The meaning of a lowered graph's nodes, on arrays, which passes and executors must keep."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.dispatch import fresh
from ..graph.steps import Draw, Foreign, Make
from ..interpret._batched_ops import runner as _runner
from ..ops.base import Op
from ..storage.cpu import NumpyStorage
from .indices import checked


def kernel_of(op: type[Op]) -> Any:
    """Return the function of arrays that computes an op."""
    return checked(op.opname, _runner(op, NumpyStorage))


def computed(target: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
    """Return the result of one node, an array or a tuple of arrays, from arrays of the CPU.

    `target` is an op of the table, a function of `graph.steps`, a target that a pass made, or a function of arrays such
    as `operator.getitem`.
    """
    if isinstance(target, type) and issubclass(target, Op):
        return kernel_of(target)(*operands, **params)
    if isinstance(target, (Make, Draw, Foreign)):
        return _arrays(target(*[fresh(a, NumpyStorage) if isinstance(a, NumpyStorage.array_type) else a
                                for a in operands], **params))
    return target(*operands, **params)


def _arrays(found: Any) -> Any:
    return tuple(part.array for part in found) if isinstance(found, (list, tuple)) else found.array
