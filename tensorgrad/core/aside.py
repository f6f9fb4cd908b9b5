"""Deferred gradients: worker threads compute gradients of parameters during a sweep, since they are not read before its end.

An op that sets `aside = "w"` has such a gradient, which takes long. It is deferred only if that cannot be observed: the
parameter is reached once, there are no hooks, and Python's threads share work (see runtime/thread_pool.py), not those of compiled
loops. BLAS uses one thread until the end of the sweep.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

from ..runtime import threads
from ..runtime.thread_pool import Work, aside, available
from ..storage.cpu import NumpyStorage
from .mode import mode
from .plan import kind
from .step import PlainStep
from .tape import Leaf
from .unbroadcast import fitted

WORTH = 1 << 23         # multiplications from which on another thread is worth it
WAITING = 2             # waiting gradients per thread: their inputs stay in memory


class Later:
    """A gradient that is being computed."""

    __slots__ = ("edge", "value", "work")

    def __init__(self, edge: Any, formula: Callable[[], Any], xp: Any) -> None:
        self.edge, self.value = edge, None

        def job() -> None:
            ge = formula()
            self.value = ge if ge.shape == edge.shape and ge.dtype is edge.dtype else fitted(xp, ge, edge)
        self.work: Work = aside(job)


class Aside:
    """The deferred gradients of a sweep.

    `order` are its steps; `last` maps each leaf to the last step that reaches it; `grads` are the gradients so far.
    """

    def __init__(self, order: Any, last: Any, grads: Any) -> None:
        self.order, self.last, self.grads, self.allowed = order, last, grads, None
        self.begun: list[Later] = []

    allowed: bool | None

    def takes(self, node: Any, edge: Any, g: Any) -> bool:
        """Return True if a step with gradient g should defer the gradient of this edge."""
        if self.allowed is None:
            self.allowed = available(1e9) > 1 and all(step.hooks is None for steps in (self.order, self.last) for step in steps)
        return self.allowed and type(edge) is Leaf and self.last[edge] is node and edge not in self.grads and type(node._storage) is NumpyStorage \
            and prod(edge.shape) * (g.size // max(g.shape[1], 1)) >= WORTH and g.dtype.kind == "f" and not node.packs

    def begin(self, node: Any, edge: Any, formula: Callable[[], Any]) -> None:
        """Defer a gradient to a worker thread; if too many are waiting, compute the first of them here."""
        if not self.begun:
            threads.single_blas.__enter__()
        self.begun.append(Later(edge, formula, node._storage.xp))
        waiting = [later.work for later in self.begun if later.work.parts]
        if len(waiting) > WAITING * threads.get_num_threads():
            waiting[0].help()

    def results(self) -> Iterator[tuple[Any, Any]]:
        """(leaf, gradient), in the order in which they were put aside."""
        for later in self.begun:
            later.work.finish()
            yield later.edge, later.value

    def close(self) -> None:
        """Stop all work, also after an error."""
        if self.begun:
            for later in self.begun:
                later.work.give_up()
            threads.single_blas.__exit__()
            self.begun = []


@kind("aside")
class AsideStep(PlainStep):
    """Like `PlainStep`, but defers a large parameter gradient to a worker thread."""

    __slots__ = ()

    def pull(self, g: Any, useful: Any) -> list[tuple[Any, Any]]:
        edge, aside = self.edges[self.op.inputs.index(self.op.aside)], mode.sweep and mode.sweep.aside
        if not aside or not aside.takes(self, edge, g):
            return self._pull(g, useful)
        ((_, formula),) = self._pull(g, (), edge)
        aside.begin(self, edge, formula)
        return self._pull(g, {e for e in self.edges if e is not edge})
