"""Parts of ``DataLoader``: collating, fetching, workers."""
import sys
from importlib import import_module
from typing import Any

from . import collate, fetch, pin_memory, worker

__all__ = ['collate', 'fetch', 'pin_memory', 'worker']

IS_WINDOWS, HAS_NUMPY = sys.platform == 'win32', True
# seconds after which PyTorch looks whether a process that it waits for is alive; a pipe that closes says so here
MP_STATUS_CHECK_INTERVAL = 5.0


def __getattr__(name: str) -> Any:
    """Load the class of errors from workers when it is first used: it comes with all of `nn`."""
    if name == 'ExceptionWrapper':
        return import_module(f"{__name__.partition('.')[0]}.nn.parallel._errors").ExceptionWrapper
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
