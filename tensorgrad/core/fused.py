"""Tape steps of kernel pairs: a fast kernel's own shortcut back, and the op's definition for higher derivatives."""
from __future__ import annotations

from typing import Any

from ..ops.base import HALVES
from .dispatch import defined, wrap, xp
from .mode import mode
from .plan import kind
from .stale import second_time, stale
from .step import PlainStep, widened
from .tape import FREED, TensorBase
from .unbroadcast import fitted


@kind("fused")
class FusedStep(PlainStep):
    """An application of a kernel pair. The step saves the inputs of the op's formulas, like a plain step.

    `residual` is (pair, kept, watched): `kept` comes from the pair's forward; `watched` are (place, tensor) of
    arguments among it, and (-1, tensor) of results (see `tape.record_fused`), which must not be modified. Arguments are
    read from their tensors, since an in-place op may give these other memory.
    """

    __slots__ = ()

    def pull(self, g: Any, useful: Any) -> Any:
        residual = self.residual
        if residual is None:
            if self.saved is FREED:
                raise second_time(self)
            return self.by_formulas().pull(g, useful)      # another thread converted it to a step of formulas
        pair, kept, watched = residual
        for _, tensor in watched:
            self._check(tensor)
        values = current(kept, watched)
        if values is None:
            return self.pull_anew(g, useful)
        needs = tuple([e is not None and (useful is None or e in useful) for e in self.edges])
        xp = self._storage.xp
        if type(g) is list or g.dtype.char in HALVES:
            g = widened(xp, g) if type(g) is list else widened(xp, [g])[0]
        return [(e, ge if ge.shape == e.shape and ge.dtype is e.dtype else fitted(xp, ge, e))
                for e, ge in zip(self.edges, pair.backward(g, values, needs), strict=False)
                if e is not None and ge is not None]

    def pull_anew(self, g: Any, useful: Any) -> Any:
        """`pull` by formulas, because an argument's new memory does not fit the kernel."""
        return self.by_formulas().pull(g, useful)

    def pull_tensors(self, g: Any, useful: Any) -> Any:
        return self.by_formulas().pull_tensors(g, useful)

    def by_formulas(self) -> PlainStep:
        """Become a step of formulas, and stay the same object, so that linked results lead to it and its hooks."""
        self.__class__ = self.plan.node_type
        self.residual = None
        return self

    def moved(self, result: Any, target: Any, storage: Any) -> None:
        """Do nothing: the kernel keeps the result in separate memory."""

    def free(self) -> None:
        self.saved, self.residual = FREED, None

    def _check(self, tensor: Any) -> None:
        if isinstance(tensor, TensorBase) and tensor._storage.written > self.time:
            result = type(tensor) is TensorBase        # an alias of a result
            raise stale(self, tensor.array, tensor._storage, self if result else tensor._node,
                        tensor._storage.version_at(self.time))


def current(kept: Any, watched: Any) -> Any:
    """Return `kept` with arguments read again; None if one has memory of another shape, dtype or layout now."""
    values: Any = kept
    for place, tensor in watched:
        if place < 0:
            continue
        before, now = kept[place] if isinstance(kept, (tuple, list)) else kept, tensor.array
        if now is not before:
            if type(now) is not type(before) or now.shape != before.shape or now.dtype != before.dtype or \
                    getattr(now, "strides", None) != getattr(before, "strides", None):
                return None
            if not isinstance(kept, (tuple, list)):
                return now
            values = (*values[:place], now, *values[place + 1:])
    return values


def composed(step: Any, apart: list[Any] | None = None) -> Any:
    """Recompute the results of a step on the tape, from the ops that define it.

    `apart` collects separate nodes for the arguments, so that gradients end there even if one argument depends on
    another.
    """
    if step.saved is FREED:
        raise second_time(step)
    op, before = step.op, mode.grad
    args = [a if e is None else wrap(a.array, a._storage, e) for a, e in zip(step.saved, step.edges, strict=True)]
    for tensor in step.saved:
        step._check(tensor)
    mode.set_grad(True)
    try:
        if apart is not None:
            args = [a if e is None else xp.reshape(a, a.array.shape) for a, e in zip(args, step.edges, strict=True)]
            apart += [a if e is None else a._node for a, e in zip(args, step.edges, strict=True)]
        y = defined(op, type(step._storage), args, step.edges, step.params)
    finally:
        mode.set_grad(before)
    return y if op.several else [y]
