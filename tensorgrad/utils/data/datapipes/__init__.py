"""Pipes: datasets that take their samples from others, and can be written as chains of calls.

https://pytorch.org/data/0.9/ → DataPipe Tutorial. PyTorch keeps them for programs that have them.
"""
from importlib import import_module
from typing import Any

__all__ = ['iter', 'map']


def __getattr__(name: str) -> Any:
    """Load the pipes when they are first used."""
    if name in __all__:
        return import_module(f'{__name__}.{name}')
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
