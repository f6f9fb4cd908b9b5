"""Fetch samples or batches by indices."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from .... import api as tg
from ..dataset import Subset, TensorDataset, getitems
from .collate import collate_tensor_fn, default_collate, default_collate_fn_map, default_convert


class _DatasetKind:
    """The kinds of datasets: indexed or iterated."""
    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(kind: int, dataset, auto_collation: bool, collate_fn: Callable,
                       drop_last: bool) -> _BaseDatasetFetcher:
        """Return the fetcher of a kind of datasets."""
        fetcher = _MapDatasetFetcher if kind == _DatasetKind.Map else _IterableDatasetFetcher
        return fetcher(dataset, auto_collation, collate_fn, drop_last)


class _BaseDatasetFetcher:
    """A fetcher as an object: ``fetch`` returns the sample or the batch of an index; StopIteration after the last."""

    kind = _DatasetKind.Map

    def __init__(self, dataset, auto_collation: bool, collate_fn: Callable, drop_last: bool) -> None:
        self.dataset, self.auto_collation, self.collate_fn, self.drop_last = (dataset, auto_collation, collate_fn,
                                                                              drop_last)
        self._fetch = make_fetcher(self.kind, dataset, auto_collation, collate_fn, drop_last)

    def fetch(self, possibly_batched_index):
        return self._fetch(possibly_batched_index)


class _MapDatasetFetcher(_BaseDatasetFetcher):
    """The fetcher of a dataset that is indexed."""


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    """The fetcher of a dataset that is iterated."""

    kind = _DatasetKind.Iterable


def make_fetcher(kind: int, dataset, auto_collation: bool, collate_fn: Callable, drop_last: bool) -> Callable:
    """Return a function of an index (with ``auto_collation``, of a list of indices) that returns a sample (a batch)."""
    if kind == _DatasetKind.Iterable:
        return Iterated(iter(dataset), auto_collation, collate_fn, drop_last)
    if not auto_collation:
        return lambda index: collate_fn(dataset[index])
    columns, position = whole_columns(dataset, collate_fn)
    if columns is None:
        return lambda indices: collate_fn(getitems(dataset, indices))
    return fetch_rows(dataset, columns, position)


class Iterated:
    """Fetches the next samples of an iterable dataset; only the number of indices matters."""

    def __init__(self, samples, auto_collation: bool, collate_fn: Callable, drop_last: bool) -> None:
        self.samples, self.auto_collation, self.collate_fn, self.drop_last = (samples, auto_collation, collate_fn,
                                                                              drop_last)
        self.ended = False  # True: the dataset is exhausted

    def __call__(self, indices: Sequence):
        batch, wanted = [], len(indices) if self.auto_collation else 1
        while not self.ended and len(batch) < wanted:
            try:
                batch.append(next(self.samples))
            except StopIteration:
                self.ended = True
        if not batch or (self.drop_last and len(batch) < wanted):
            raise StopIteration
        return self.collate_fn(batch if self.auto_collation else batch[0])


def whole_columns(dataset, collate_fn: Callable) -> tuple:
    """Return (tensors whose rows are the samples, a subset's indices or None) if indexing them gives the batches, else
    (None, None).

    Stacking samples and indexing the tensors are equivalent, provided that nobody has changed how samples and batches
    are made.
    """
    indices = None
    if type(dataset) is Subset:
        dataset, indices = dataset.dataset, dataset.indices
    plain = (type(dataset) is TensorDataset and collate_fn is default_collate
             and default_collate_fn_map.get(tg.Tensor) is collate_tensor_fn
             and all(type(tensor) is tg.Tensor for tensor in dataset.tensors))
    return (dataset.tensors, indices) if plain else (None, None)


def fetches_plainly(loader) -> bool:
    """Return True if samples and batches are known to be independent of random numbers."""
    dataset = loader.dataset
    while type(dataset) is Subset:
        dataset = dataset.dataset
    return (type(dataset) in (TensorDataset, list, tuple, range, str)
            and loader.collate_fn in (default_collate, default_convert))


def fetch_rows(dataset, columns: Sequence, position: Sequence | None) -> Callable:
    def fetch(indices: list):
        rows = indices if position is None else [position[index] for index in indices]
        if set(map(type, rows)) != {int}:  # empty, or another kind of index
            return default_collate(getitems(dataset, indices))
        rows = tg.tensor(rows, device='cpu')
        return [column[rows] for column in columns]
    return fetch
