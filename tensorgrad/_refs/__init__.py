"""torch._refs: PyTorch's second definitions of its functions, in Python. Here these are the functions themselves.

Programs compare a function with its reference, or call the reference by its path.

>>> import tensorgrad as torch
>>> torch._refs.sum(torch.tensor([1., 2.]), dim=0)
tensor(3.)
"""
from __future__ import annotations

from importlib import import_module
from typing import Any

from ..api import FUNCTIONS, Tensor
from ..messages.missing_names import MissingName

_MODULES = ("_conversions", "fft", "linalg", "nn", "special")


def __getattr__(name: str) -> Any:
    """A function of the root package; an in-place method of Tensor under its name."""
    if name == "__all__":
        return sorted(FUNCTIONS)
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name in FUNCTIONS:
        return getattr(import_module(__package__.rpartition(".")[0]), name)
    if name.startswith("_") or not callable(found := getattr(Tensor, name, None)):
        raise MissingName(__name__, name)
    return found
