"""A pipe that leaves samples out."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..datapipe import IterDataPipe, check_function, functional_datapipe
from ..utils.common import column, validate_input_col

__all__ = ['FilterIterDataPipe']


@functional_datapipe('filter')
class FilterIterDataPipe(IterDataPipe):
    """The samples for which a function, of the sample or of some columns of it, is true."""

    def __init__(self, datapipe: Any, filter_fn: Callable[..., Any], input_col: Any = None) -> None:
        check_function(filter_fn)
        self.datapipe, self.filter_fn, self.input_col = datapipe, filter_fn, input_col
        validate_input_col(filter_fn, input_col)

    def __iter__(self) -> Iterator[Any]:
        return filter(self._keeps, self.datapipe)

    def _keeps(self, data: Any) -> bool:
        columns = self.input_col
        if columns is None:
            answer = self.filter_fn(data)
        elif isinstance(columns, (list, tuple)):
            answer = self.filter_fn(*(column(data, one) for one in columns))
        else:
            answer = self.filter_fn(column(data, columns))
        if not isinstance(answer, bool):
            raise ValueError(f'Boolean output is required for `filter_fn` of FilterIterDataPipe, got {type(answer)}')
        return answer
