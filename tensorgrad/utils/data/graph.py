"""The graph of pipes: which pipe holds which others."""
from __future__ import annotations

import io
import pickle
import warnings
from typing import Any

from .datapipes.datapipe import IterDataPipe, MapDataPipe

__all__ = ['traverse', 'traverse_dps']

PIPES = IterDataPipe, MapDataPipe


class _Finder(pickle.Pickler):
    """Pickles a pipe to nowhere, and notes the pipes that it meets on the way."""

    def __init__(self, pipe: Any) -> None:
        super().__init__(io.BytesIO(), 2)
        self.pipe = pipe
        self.found: dict[int, Any] = {}

    def persistent_id(self, obj: Any) -> Any:
        if not isinstance(obj, PIPES) or obj is self.pipe:
            return None
        self.found[id(obj)] = obj
        return str(id(obj))

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, PIPES):
            return list, (), vars(obj)
        if obj is list:
            return NotImplemented
        try:
            reduced = obj.__reduce_ex__(2)
            if not isinstance(obj, type) and not callable(obj):
                return reduced
        except Exception:           # it cannot be pickled, and so holds no pipe
            pass
        return list, ()


def traverse_dps(datapipe: Any) -> dict[int, Any]:
    """Return {id of a pipe: (the pipe, the graphs of the pipes that it holds)}.

    >>> from tensorgrad.utils.data.datapipes.iter import IterableWrapper
    >>> source = IterableWrapper([1, 2])
    >>> (pipe, held), = traverse_dps(source.map(str)).values()
    >>> pipe, held[id(source)]
    (MapperIterDataPipe, (IterableWrapperIterDataPipe, {}))
    """
    if not isinstance(datapipe, PIPES):
        raise RuntimeError(f'Expected `IterDataPipe` or `MapDataPipe`, but {type(datapipe)} is found')
    return _graph(datapipe, frozenset())


def _graph(datapipe: Any, above: frozenset[int]) -> dict[int, Any]:
    if id(datapipe) in above:
        return {}
    finder = _Finder(datapipe)
    finder.dump(datapipe)
    held: dict[int, Any] = {}
    for pipe in finder.found.values():
        held.update(_graph(pipe, above | {id(datapipe)}))
    return {id(datapipe): (datapipe, held)}


def traverse(datapipe: Any, only_datapipe: bool | None = None) -> dict[int, Any]:
    """Return what `traverse_dps` returns, by an older name."""
    warnings.warn('`traverse` function and only_datapipe argument will be removed after 1.13, please use '
                  '`traverse_dps` instead.', FutureWarning, stacklevel=2)
    return traverse_dps(datapipe)
