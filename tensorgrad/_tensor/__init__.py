"""Tensor: an array, its storage, and its history; with printing, copies and pickles."""
from .tensor import ABOVE, Tensor

__all__ = ["ABOVE", "Tensor"]
