"""Tensor: an array, its storage, and its history; with printing, copies and pickles."""
from .tensor import ABOVE, Tensor

__all__ = ["ABOVE", "Tensor"]


def __getattr__(name: str) -> object:
    """Return the function that pickles of PyTorch's tensors name in this module."""
    if name == "_rebuild_from_type_v2":
        return ABOVE[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
