"""Loaders of other classes: packages call the iterators of `DataLoader` with loaders of their own."""
from __future__ import annotations

from typing import Any

from .fetch import _DatasetKind


class ForeignLoader:
    """A loader that has the attributes of PyTorch's `DataLoader`, with those that our iterators read besides."""

    sampler = batch_sampler = pin_memory_device = _resumed = None       # defaults of what few such loaders have
    in_order, _followed = True, False

    def __init__(self, loader: Any) -> None:
        vars(self).update({name: getattr(loader, name) for name in ('sampler', 'batch_sampler', 'pin_memory_device',
                                                                   'in_order') if hasattr(loader, name)})
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    @property
    def _iterable(self) -> bool:
        return self._dataset_kind == _DatasetKind.Iterable

    @property
    def _how_to_fetch(self) -> tuple:
        return self._dataset_kind, self.dataset, self._auto_collation, self.collate_fn, self.drop_last


def with_our_attributes(loader: Any) -> Any:
    """Return the loader, or a view of it if it is of a class that lacks what our iterators read.

    >>> class Loader:
    ...     _dataset_kind = _DatasetKind.Iterable
    >>> with_our_attributes(Loader())._iterable
    True
    """
    return loader if hasattr(loader, '_how_to_fetch') else ForeignLoader(loader)
