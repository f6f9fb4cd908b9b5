"""Pipes made of several."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..datapipe import IterDataPipe, functional_datapipe

__all__ = ['ConcaterIterDataPipe', 'MultiplexerIterDataPipe', 'ZipperIterDataPipe']


def check_pipes(datapipes: tuple[Any, ...], message: str) -> None:
    """Raise unless there are pipes, and all are."""
    if not datapipes:
        raise ValueError('Expected at least one DataPipe, but got nothing')
    if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
        raise TypeError(message)


@functional_datapipe('concat')
class ConcaterIterDataPipe(IterDataPipe):
    """Several pipes, one after another."""

    def __init__(self, *datapipes: IterDataPipe) -> None:
        check_pipes(datapipes, 'Expected all inputs to be `IterDataPipe`')
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        for pipe in self.datapipes:
            yield from pipe

    def __len__(self) -> int:
        return self._length(*self.datapipes)


@functional_datapipe('zip')
class ZipperIterDataPipe(IterDataPipe):
    """Tuples of a sample of each pipe."""

    def __init__(self, *datapipes: IterDataPipe) -> None:
        if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
            raise TypeError('All inputs are required to be `IterDataPipe` for `ZipIterDataPipe`.')
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        yield from zip(*self.datapipes)

    def __len__(self) -> int:
        return min(self._length(pipe) for pipe in self.datapipes)


@functional_datapipe('mux')
class MultiplexerIterDataPipe(IterDataPipe):
    """A sample of each pipe in turn, until the shortest ends."""

    def __init__(self, *datapipes: IterDataPipe) -> None:
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        for samples in zip(*self.datapipes):
            yield from samples

    def __len__(self) -> int:
        return min(self._length(pipe) for pipe in self.datapipes) * len(self.datapipes)
