"""Tape steps of kernel pairs of composite ops: higher derivatives sweep back through the ops that define them."""
from __future__ import annotations

from typing import Any

from .fused import FusedStep, composed
from .mode import mode
from .plan import kind
from .step import PlainStep
from .sweep import sweep


@kind("composed")
class ComposedStep(FusedStep):
    """A fused step of a composite op, which has no gradient formulas. The step saves all arguments."""

    __slots__ = ()

    def pull_tensors(self, g: Any, useful: Any) -> Any:
        places: list[Any] = []
        y = composed(self, places)
        roots = {o._node: gi for o, gi in zip(y, g if self.op.several else [g], strict=True) if o._node is not None}
        wanted = [(e, place) for e, place in zip(self.edges, places, strict=True)
                  if e is not None and (useful is None or e in useful)]
        found = sweep(roots, create_graph=mode.grad, retain_graph=True, wanted=frozenset(place for _, place in wanted))
        return [(e, found[place]) for e, place in wanted if place in found]

    pull_anew = pull_tensors

    def by_formulas(self) -> PlainStep:
        """Return the step unchanged: a composite op has no gradient formulas."""
        return self
