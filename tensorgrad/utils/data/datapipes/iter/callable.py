"""Pipes that apply a function."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..._utils.collate import default_collate
from ..datapipe import IterDataPipe, check_function, functional_datapipe
from ..utils.common import column, validate_input_col

__all__ = ['CollatorIterDataPipe', 'MapperIterDataPipe']


@functional_datapipe('map')
class MapperIterDataPipe(IterDataPipe):
    """A function of each sample, or of some columns of it, whose result replaces the sample or goes to a column.

    ``input_col``: an index or a key, or a list of them for as many arguments. ``output_col``: where the result goes,
    by default in place of the first input; −1 appends it.
    """

    def __init__(self, datapipe: Any, fn: Callable[..., Any], input_col: Any = None, output_col: Any = None) -> None:
        check_function(fn)
        self.datapipe, self.fn, self.input_col = datapipe, fn, input_col
        if input_col is None and output_col is not None:
            raise ValueError('`output_col` must be None when `input_col` is None.')
        if isinstance(output_col, (list, tuple)):
            if len(output_col) > 1:
                raise ValueError('`output_col` must be a single-element list or tuple')
            output_col = output_col[0]
        self.output_col = output_col
        validate_input_col(fn, input_col)

    def _apply_fn(self, data: Any) -> Any:
        if self.input_col is None:
            return self.fn(data)
        several = isinstance(self.input_col, (list, tuple))
        columns = list(self.input_col) if several else [self.input_col]
        result = self.fn(*(column(data, one) for one in columns))
        was_tuple = isinstance(data, tuple)
        changed = list(data) if was_tuple else data.copy()
        if self.output_col == -1:
            changed.append(result)
        elif self.output_col is not None:
            changed[self.output_col] = result
        else:
            changed[columns[0]] = result
            if isinstance(changed, list):
                for one in sorted(columns[1:], reverse=True):
                    del changed[one]
            else:
                for one in columns[1:]:
                    del changed[one]
        return tuple(changed) if was_tuple else changed

    def __iter__(self) -> Iterator[Any]:
        for data in self.datapipe:
            yield self._apply_fn(data)

    def __len__(self) -> int:
        return self._length(self.datapipe)


@functional_datapipe('collate')
class CollatorIterDataPipe(MapperIterDataPipe):
    """Batches of lists of samples, by ``default_collate`` or a function."""

    def __init__(self, datapipe: Any, conversion: Any = default_collate,
                 collate_fn: Callable[..., Any] | None = None) -> None:
        function = conversion if collate_fn is None else collate_fn
        if not callable(function):
            raise TypeError(f'collate takes a function here, not {type(function)}')
        super().__init__(datapipe, fn=function)
