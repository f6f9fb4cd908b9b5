"""torch.multiprocessing: the standard library's, with tensors whose memory processes share. https://pytorch.org/docs/stable/multiprocessing.html

A tensor that is sent to a process, as an argument, through a queue or a pipe, moves to shared memory: both see what either writes. Under Windows it is
copied.
"""
import multiprocessing as _multiprocessing
from multiprocessing import *  # noqa: F403

from . import reductions
from .spawn import ProcessContext, ProcessExitedException, ProcessRaisedException, SpawnContext, spawn, start_processes

__all__ = [*_multiprocessing.__all__, "ProcessContext", "ProcessExitedException", "ProcessRaisedException", "SpawnContext", "get_all_sharing_strategies",
           "get_sharing_strategy", "set_sharing_strategy", "spawn", "start_processes"]

reductions.init_reductions()
_STRATEGIES = {"file_descriptor", "file_system"}
_strategy = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """The names of PyTorch's ways to share memory."""
    return set(_STRATEGIES)


def get_sharing_strategy() -> str:
    """The name that was set."""
    return _strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Choose a name; there is one way to share memory here."""
    global _strategy
    if new_strategy not in _STRATEGIES:
        raise AssertionError(f"invalid sharing strategy {new_strategy!r}, expected one of {_STRATEGIES}")
    _strategy = new_strategy
