"""The processes that modules work together with."""
import inspect
from functools import cache
from typing import Any

default_group: Any = None       # the process group where a program names none: whoever starts communication sets it; None while this process works alone


def finish(work: Any) -> None:
    """Wait for what a process group has begun, if it gives anything to wait for."""
    if work is not None:
        work.wait()


def at_once(method: Any, *arguments: Any) -> None:
    """Call a method of a process group, and wait. Groups of `torch.distributed` are told, and need no other thread then."""
    finish(method(*arguments, later=False) if _takes_later(getattr(method, "__func__", method)) else method(*arguments))


@cache
def _takes_later(function: Any) -> bool:
    return "later" in inspect.signature(function).parameters
