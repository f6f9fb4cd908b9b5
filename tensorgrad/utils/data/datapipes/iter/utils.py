"""An iterable as a pipe."""
from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

from ..datapipe import IterDataPipe

__all__ = ['IterableWrapperIterDataPipe']


class IterableWrapperIterDataPipe(IterDataPipe):
    """The elements of an iterable; of a copy, so that each iteration begins anew, unless ``deepcopy=False``."""

    def __init__(self, iterable: Iterable[Any], deepcopy: bool = True) -> None:
        self.iterable, self.deepcopy = iterable, deepcopy

    def __iter__(self) -> Iterator[Any]:
        source = self.iterable
        if self.deepcopy:
            try:
                source = copy.deepcopy(source)
            except TypeError:
                warnings.warn('The input iterable can not be deepcopied, please be aware of in-place modification '
                              'would affect source data.', stacklevel=2)
        yield from source

    def __len__(self) -> int:
        return self._length(self.iterable)
