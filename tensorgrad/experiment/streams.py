"""Save and restore the global random streams of a process: Python's `random`, NumPy's global generator, this package's
default generators.

>>> import random
>>> import tensorgrad as torch
>>> from tensorgrad.experiment import streams
>>> before = streams.state()
>>> drawn = random.random(), torch.rand(2).tolist()
>>> streams.restore(before)
>>> drawn == (random.random(), torch.rand(2).tolist())
True
"""
from __future__ import annotations

from typing import Any

from ..utils.data._utils.rng_states import global_streams, go_to, marks, marks_of, packed

__all__ = ["restore", "state"]

NEEDED = "python", "numpy", "tensorgrad"


def state() -> dict[str, Any]:
    """Return the states of the streams, as numbers, strings and tensors of bytes that `load(..., weights_only=True)`
    reads: under the names `python`, `numpy`, `tensorgrad` and, for each CUDA device that has drawn, `cuda:0` and so on.

    >>> from tensorgrad.experiment import streams
    >>> sorted(streams.state())[-3:]
    ['numpy', 'python', 'tensorgrad']
    """
    return packed(marks(global_streams()))


def restore(state: dict[str, Any]) -> None:
    """Restore the streams to a `state()`. Missing devices are ignored.

    ValueError for anything else than such a state, and for a stream of another kind (NumPy's with another bit
    generator); then nothing has changed.

    >>> from tensorgrad.experiment import streams
    >>> streams.restore({"python": 1})
    Traceback (most recent call last):
        ...
    ValueError: the state has no random stream 'numpy'
    """
    streams, found = checked(state)
    go_to(streams, found)


def checked(state: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return (streams, their new states). ValueError if the state is invalid."""
    if not isinstance(state, dict):
        raise ValueError(f"the state of the random streams is a dict, but got {type(state).__name__}")
    for name in NEEDED:
        if name not in state:
            raise ValueError(f"the state has no random stream {name!r}")
    streams = global_streams([name for name in state if isinstance(name, str)])
    return streams, marks_of(streams, state)
