"""Data sets and data modules by name: `@register(name)` enters a class, `make(spec)` builds what a spec `{name, args}`
describes.

>>> from tensorgrad.experiment import datasets
>>> for line in datasets.described(datasets.make({"name": "mnist-ds", "args": {"train": False}}), "val"):
...     print(line)
val dataset: size=200
  img: shape=(1, 28, 28), dtype=float32
  label: int
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...messages.escaping import escaped
from ..registry import Registry

registry = Registry("dataset", f"{__name__}.mnist")
register, make, names = registry.register, registry.make, registry.names

__all__ = ["described", "make", "names", "register", "registry"]


def described(dataset: Any, name: str = "") -> list[str]:
    """Return lines that describe a data set: its size, then for each key of its first item the shape and dtype of an
    array, or the type of another value.

    name: the name in the first line, such as `train`. Items of a data set without indices are not read.
    """
    try:
        size: Any = len(dataset)
    except TypeError:
        size = "unknown"
    lines = [f"{name} dataset: size={size}".lstrip()]
    if size in (0, "unknown"):
        return lines
    item = dataset[0]
    if isinstance(item, Mapping):
        parts = [(str(key), value) for key, value in item.items()]
    elif isinstance(item, (list, tuple)):
        parts = [(f"[{index}]", value) for index, value in enumerate(item)]
    else:
        parts = [("item", item)]
    return lines + [f"  {escaped(key)}: {_kind(value)}" for key, value in parts]


def _kind(value: Any) -> str:
    """Return an array's shape and dtype, or the type of anything else."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"shape={tuple(value.shape)}, dtype={str(value.dtype).removeprefix('torch.')}"
    return type(value).__name__
