"""Hooks for communication between the processes of a module."""
import inspect
from functools import cache
from typing import Any

default_group: Any = None       # the default process group, set when communication starts; None in a single process


def finish(work: Any) -> None:
    """Wait for a process group's work, if the call returned any."""
    if work is not None:
        work.wait()


def at_once(method: Any, *arguments: Any) -> None:
    """Call a method of a process group, and wait.

    Groups of `torch.distributed` are told to block, which needs no other thread.
    """
    finish(method(*arguments, later=False) if _takes_later(getattr(method, "__func__", method)) else method(*arguments))


@cache
def _takes_later(function: Any) -> bool:
    return "later" in inspect.signature(function).parameters
