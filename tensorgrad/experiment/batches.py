"""Batches of any shape: move them to a device, change their precision, count their samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .. import api as tg

__all__ = ["mapped", "moved", "size"]


def mapped(change: Callable[[Any], Any], batch: Any) -> Any:
    """Return a batch with `change(x)` in place of each value x in its dicts, lists and (named) tuples."""
    if isinstance(batch, Mapping):
        changed = {key: mapped(change, value) for key, value in batch.items()}
        return changed if type(batch) is dict else type(batch)(changed)  # type: ignore[call-arg]
    if isinstance(batch, (list, tuple)):
        values = [mapped(change, value) for value in batch]
        return type(batch)(*values) if hasattr(batch, "_fields") else type(batch)(values)
    return change(batch)


def moved(batch: Any, device: Any) -> Any:
    """Move a batch to a device: its tensors, and other values that have a method `to`.

    >>> import tensorgrad as torch
    >>> moved({"img": torch.ones(2), "name": "a"}, "cpu")
    {'img': tensor([1., 1.]), 'name': 'a'}
    """
    return mapped(lambda value: value.to(device) if callable(getattr(value, "to", None)) else value, batch)


def size(batch: Any) -> int:
    """Return the number of samples of a batch: the length of the first dimension of its first tensor, or 1.

    >>> import tensorgrad as torch
    >>> size({"name": "a", "img": torch.zeros(3, 1, 8, 8)})
    3
    """
    for value in _tensors(batch):
        return len(value) if value.ndim else 1
    return 1


def _tensors(batch: Any) -> Any:
    if isinstance(batch, tg.Tensor):
        yield batch
    elif isinstance(batch, (Mapping, list, tuple)):
        for value in batch.values() if isinstance(batch, Mapping) else batch:
            yield from _tensors(value)
