"""torch.multiprocessing: the standard library's multiprocessing, with tensors in shared memory.
https://pytorch.org/docs/stable/multiprocessing.html

A tensor that is sent to a process, as an argument, through a queue or a pipe, moves to shared memory: each process sees
the other's writes. Under Windows it is copied.
"""
import multiprocessing as _multiprocessing
from multiprocessing import *  # noqa: F403

from . import reductions
from ._thread_names import _get_thread_name, _set_thread_name
from .spawn import (
    ENV_VAR_PARALLEL_START,
    ProcessContext,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = [*_multiprocessing.__all__, "ENV_VAR_PARALLEL_START", "ProcessContext", "ProcessExitedException",
           "ProcessRaisedException", "SpawnContext", "get_all_sharing_strategies", "get_sharing_strategy",
           "set_sharing_strategy", "spawn", "start_processes", "_get_thread_name", "_set_thread_name"]

reductions.init_reductions()
_STRATEGIES = {"file_descriptor", "file_system"}
_strategy = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """Return the names of PyTorch's sharing strategies."""
    return set(_STRATEGIES)


def get_sharing_strategy() -> str:
    """Return the name that was set."""
    return _strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Set the name, which has no effect: there is a single strategy here."""
    global _strategy
    if new_strategy not in _STRATEGIES:
        raise AssertionError(f"invalid sharing strategy {new_strategy!r}, expected one of {_STRATEGIES}")
    _strategy = new_strategy
