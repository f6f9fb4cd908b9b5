"""A chain of elementwise steps as one target: the kernel `loop` runs it in one pass over memory (emit/loops.py)."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..graph.records import Record
from ..ops.base import OPS
from .values import computed


class At(Record):
    """A value of a loop: an operand, or the result of a step, which are numbered from the first operand on."""

    value: int


class Step(Record):
    """An application of an op of the table to values of the loop (`At`), numbers, or None."""

    opname: str
    operands: tuple[Any, ...]
    params: tuple[tuple[str, Any], ...] = ()

    @property
    def values(self) -> list[int]:
        return [a.value for a in self.operands if isinstance(a, At)]


class Loop(Record):
    """Steps over `operands` arrays that broadcast to one shape; `results` are the values that leave the loop.

    >>> import numpy as np
    >>> scaled = Loop(2, (Step("multiply", (At(0), 2.0)), Step("add", (At(2), At(1)))), (3,))
    >>> scaled(np.float32([1, 2]), np.float32([10, 20]))
    array([12., 24.], dtype=float32)
    """

    operands: int
    steps: tuple[Step, ...]
    results: tuple[int, ...]

    def __call__(self, *arrays: Any) -> Any:
        values: list[Any] = [*arrays]
        own: set[int] = set()               # values whose memory no other value shares
        last = self._last_uses
        for at, step in enumerate(self.steps, self.operands):
            given = [values[a.value] if isinstance(a, At) else a for a in step.operands]
            free = [values[k] for k in dict.fromkeys(step.values) if k in own and last[k] == at]
            found = _in_place(step, given, free)
            if found is None:
                found = computed(OPS[step.opname], given, dict(step.params))
                if not any(found is a for a in given):
                    own.add(at)
            else:
                own.add(at)
            values.append(found)
            for k in step.values:
                if last[k] == at:
                    values[k] = None
        results = tuple(np.asarray(values[k]) for k in self.results)
        return results if len(results) > 1 else results[0]

    @property
    def _last_uses(self) -> dict[int, int]:
        """Return, for each value, the number of the last step that reads it; results are read after all steps."""
        last = {k: at for at, step in enumerate(self.steps, self.operands) for k in step.values}
        return last | dict.fromkeys(self.results, self.operands + len(self.steps))

    @property
    def __name__(self) -> str:
        names = [step.opname for step in self.steps]
        return "loop_" + "_".join(names if len(names) < 4 else [*names[:2], "to", names[-1]])


def _in_place(step: Step, given: list[Any], free: list[Any]) -> Any:
    """Return the step computed by NumPy's function into the memory of an operand that no later step reads, or None."""
    op = OPS[step.opname]
    ufunc = getattr(np, step.opname, None) if op.native and not step.params else None
    if not isinstance(ufunc, np.ufunc) or not free:
        return None
    arrays = [a for a in given if isinstance(a, np.ndarray)]
    if not arrays or any(a.dtype != arrays[0].dtype or a.dtype.char not in "fd" for a in arrays):
        return None
    char = arrays[0].dtype.char
    if f"{char * ufunc.nin}->{char}" not in ufunc.types:
        return None
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    out = next((a for a in free if isinstance(a, np.ndarray) and a.ndim and a.shape == shape), None)
    return None if out is None else ufunc(*given, out=out)
