"""Hooks for vmap's batches in the dispatcher and the engine. interpret/batching.py, which makes batches, registers the
functions: without it there are no batches."""
from __future__ import annotations

from typing import Any


class Batches:
    """The registered functions."""

    __slots__ = ("gathered", "with_memory", "moved", "lifted", "detour", "by_own_rule")

    gathered: Any           # gathered(args): operands of several levels, all at the deepest
    # with_memory(tensor, other): a copy for each example of the other, which can take its values
    with_memory: Any
    moved: Any              # moved(tensor, backend): a copy on another device
    lifted: Any             # lifted(tensor, backend): a tensor at a deeper level
    detour: Any             # detour(grads, order): the rearrangement for a sweep from batched gradients
    by_own_rule: Any        # by_own_rule(function, args): apply a Function to batches by its `vmap`

    def register(self, **answers: Any) -> None:
        for name, answer in answers.items():
            setattr(self, name, answer)


batches = Batches()
