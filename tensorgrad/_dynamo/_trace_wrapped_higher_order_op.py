"""A context manager that packages put around `vmap` of functions that index with 0-d tensors; it does nothing here."""
from contextlib import nullcontext

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex(nullcontext):
    """A context manager that does nothing."""
