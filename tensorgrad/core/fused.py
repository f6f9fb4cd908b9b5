"""Tape steps of kernel pairs: a fast kernel's own shortcut back, and the op's definition for higher derivatives."""
from __future__ import annotations

from typing import Any

from .dispatch import defined, wrap, xp
from .fitting import fitted
from .mode import mode
from .plan import kind
from .stale import second_time, stale
from .step import PlainStep
from .tape import FREED, TensorBase


@kind("fused")
class FusedStep(PlainStep):
    """An application of a kernel pair. It saves what the op's own formulas need, as a plain step does; `residual` is (the pair, what its forward kept,
    what it must not find changed): (place, tensor) of each argument among what was kept, and of each result, whose place is -1 (see `tape.record_fused`).

    Arguments are read from their tensors, which get other memory when an op in place takes theirs.
    """

    __slots__ = ()

    def pull(self, g: Any, useful: Any) -> Any:
        residual = self.residual
        if residual is None:
            if self.saved is FREED:
                raise second_time(self)
            return self.by_formulas().pull(g, useful)      # another thread has made it a step of formulas meanwhile
        pair, kept, watched = residual
        for _, tensor in watched:
            self._check(tensor)
        values = current(kept, watched)
        if values is None:
            return self.pull_anew(g, useful)
        needs = tuple([e is not None and (useful is None or e in useful) for e in self.edges])
        xp = self._storage.xp
        return [(e, ge if ge.shape == e.shape and ge.dtype is e.dtype else fitted(xp, ge, e))
                for e, ge in zip(self.edges, pair.backward(g, values, needs), strict=False) if e is not None and ge is not None]

    def pull_anew(self, g: Any, useful: Any) -> Any:
        """`pull` without the kernel, whose values no longer fit it."""
        return self.by_formulas().pull(g, useful)

    def pull_tensors(self, g: Any, useful: Any) -> Any:
        return self.by_formulas().pull_tensors(g, useful)

    def by_formulas(self) -> PlainStep:
        """Become a step of formulas, and stay the same object: what the formulas ask of its results leads to it, and to its hooks."""
        self.__class__ = self.plan.node_type
        self.residual = None
        return self

    def moved(self, result: Any, target: Any, storage: Any) -> None:
        """The kernel keeps the result in memory of its own."""

    def free(self) -> None:
        self.saved, self.residual = FREED, None

    def _check(self, tensor: Any) -> None:
        if isinstance(tensor, TensorBase) and tensor._storage.written > self.time:
            result = type(tensor) is TensorBase        # one of the aliases that stand for results
            raise stale(self, tensor.array, tensor._storage, self if result else tensor._node, tensor._storage.version_at(self.time))


def current(kept: Any, watched: Any) -> Any:
    """Return what a forward kernel kept; None if an argument has other memory now, whose shape, dtype or layout no longer fit the backward kernel."""
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
    """The results of a step once more, on the tape, from the ops that define it.

    `apart` collects the nodes that arguments have in it: steps of their own, so that a gradient ends there though one argument may come from another.
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
