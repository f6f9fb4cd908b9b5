"""Helpers of tests, under PyTorch's names."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .. import cuda, random


@contextmanager
def freeze_rng_state() -> Iterator[None]:
    """Leave the random numbers after a `with` block as if it had drawn none."""
    states = random.get_rng_state(), cuda.get_rng_state_all() if cuda.is_available() else None
    try:
        yield
    finally:
        random.set_rng_state(states[0])
        if states[1] is not None:
            cuda.set_rng_state_all(states[1])


def wrapper_set_seed(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function with the seed 42; the random numbers of others go on as before."""
    with freeze_rng_state():
        random.manual_seed(42)
        return op(*args, **kwargs)
