"""States of GPUs' random number generators, for code that runs a part of a program again."""
from __future__ import annotations

from typing import Any

from .. import api as tg
from ._pytree import tree_leaves


def get_device_states(*args: Any) -> tuple[list[int], list[Any]]:
    """Return the GPUs of the tensors among the arguments, and the states of their generators."""
    indices = [x.device.index for x in tree_leaves(args) if isinstance(x, tg.Tensor) and x.device.type == "cuda"]
    if not indices:
        return [], []
    from .. import cuda
    return indices, [cuda.get_rng_state(index) for index in indices]


def set_device_states(devices: Any, states: Any, *, device_type: str | None = None) -> None:
    """Set the states of the generators of GPUs."""
    for index, state in zip(devices, states):
        from .. import cuda
        cuda.set_rng_state(state, index)
