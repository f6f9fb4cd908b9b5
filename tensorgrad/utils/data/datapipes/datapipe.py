"""The two kinds of pipes, the registry of their functional forms, and the rule of one iterator per pipe."""
from __future__ import annotations

import functools
import inspect
import pickle
import warnings
from collections.abc import Callable, Iterable, Iterator, Sized
from importlib import import_module
from typing import Any, ClassVar, TypeVar

from ....core.mode import mode, timed
from ..dataset import Dataset, IterableDataset
from ._hook_iterator import _SnapshotState

__all__ = ['DFIterDataPipe', 'DataChunk', 'IterDataPipe', 'MapDataPipe']

T_co = TypeVar('T_co', covariant=True)
INVALIDATED = (
    'This iterator has been invalidated because another iterator has been created from the same IterDataPipe: {}\n'
    'This may be caused multiple references to the same IterDataPipe. We recommend using `.fork()` if that is '
    'necessary.')


class Functional:
    """The base of both kinds: functional forms as methods, hooks for pickling, and short texts."""

    functions: ClassVar[dict[str, Callable[..., Any]]]
    reduce_ex_hook: Callable[..., Any] | None = None
    getstate_hook: Callable[..., Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if not name.startswith('_') and name not in self.functions:
            load_pipes()
        if name in self.functions:
            return functools.wraps(self.functions[name])(functools.partial(self.functions[name], self))
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    @classmethod
    def register_function(cls, function_name: str, function: Callable[..., Any]) -> None:
        """Make a function of a pipe, and further arguments, a method of all pipes of this kind."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(cls, function_name: str, cls_to_register: Any,
                                      enable_df_api_tracing: bool = False) -> None:
        """Make a class, whose first argument is a pipe, a method of all pipes of this kind."""
        if function_name in cls.functions:
            raise Exception(f'Unable to add DataPipe function name {function_name} as it is already taken')

        def construct(source: Any, *args: Any, **kwargs: Any) -> Any:
            return cls_to_register(source, *args, **kwargs)
        construct.__doc__ = cls_to_register.__doc__
        cls.functions[function_name] = construct

    def __getstate__(self) -> Any:
        state = {name: value for name, value in vars(self).items() if name != '_fast_forward_iterator'}
        return self.getstate_hook(state) if type(self).getstate_hook is not None else state

    def __reduce_ex__(self, protocol: Any) -> Any:
        if type(self).reduce_ex_hook is not None:
            try:
                return type(self).reduce_ex_hook(self)
            except NotImplementedError:
                pass
        return super().__reduce_ex__(protocol)

    @classmethod
    def set_getstate_hook(cls, hook_fn: Callable[..., Any] | None) -> None:
        """Let a function of the state replace it in pickles; None: no longer."""
        _set_hook(cls, 'getstate_hook', hook_fn)

    @classmethod
    def set_reduce_ex_hook(cls, hook_fn: Callable[..., Any] | None) -> None:
        """Let a function of the pipe say how it is pickled; None: no longer."""
        _set_hook(cls, 'reduce_ex_hook', hook_fn)

    def __str__(self) -> str:
        return type(self).__qualname__

    def __repr__(self) -> str:
        return type(self).__qualname__


def _set_hook(cls: Any, name: str, hook: Callable[..., Any] | None) -> None:
    if hook is not None and getattr(cls, name) is not None:
        raise RuntimeError(f'Attempt to override existing {name}')
    setattr(cls, name, None if hook is None else staticmethod(hook))


class MapDataPipe(Functional, Dataset[T_co]):
    """A pipe whose samples are indexed. https://pytorch.org/data/0.9/ → torchdata.datapipes.map.

    >>> from tensorgrad.utils.data.datapipes.map import SequenceWrapper
    >>> list(SequenceWrapper([1, -2, 3]).map(abs).batch(2))
    [[1, 2], [3]]
    """

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}


class IterDataPipe(Functional, IterableDataset[T_co]):
    """A pipe whose samples are iterated. https://pytorch.org/data/0.9/ → torchdata.datapipes.iter.

    A pipe has one iterator at a time: a new one calls ``reset``, and the older raises RuntimeError. ``+`` appends
    another pipe.

    >>> from tensorgrad.utils.data.datapipes.iter import IterableWrapper
    >>> list(IterableWrapper([3, 0, -5]).filter(bool).map(abs))
    [3, 5]
    """

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}
    _valid_iterator_id = 0
    _number_of_samples_yielded = 0
    _snapshot_state = _SnapshotState.NotStarted
    _fast_forward_iterator: Iterator[Any] | None = None         # of a pipe that was restored

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if '__iter__' in vars(cls):
            cls.__iter__ = _single(vars(cls)['__iter__'])           # type: ignore[method-assign]

    def __iter__(self) -> Iterator[T_co]:
        return self                                                 # type: ignore[return-value]

    def __add__(self, other: Any) -> Any:
        return self.concat(other)

    def _length(self, *pipes: Any) -> int:
        """Return the length of all of these pipes together; TypeError if one has none."""
        if not all(isinstance(pipe, Sized) for pipe in pipes):
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return sum(map(len, pipes))

    def reset(self) -> None:
        """Return to the start; called when a new iterator is made."""


def _single(make: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Iterator[Any]]:
    """Let the iterators that a class makes end when a newer one is made."""
    @functools.wraps(make)
    def __iter__(self: Any) -> Iterator[Any]:
        held, self._fast_forward_iterator = self._fast_forward_iterator, None
        restored = self._snapshot_state is _SnapshotState.Restored
        vars(self)['_snapshot_state'] = _SnapshotState.Iterating
        if restored and held is not None:
            return held
        vars(self)['_valid_iterator_id'] = number = self._valid_iterator_id + 1
        if not restored:
            vars(self)['_number_of_samples_yielded'] = 0
            self.reset()
        return _checked(self, number, make(self))
    return __iter__


def _checked(pipe: Any, number: int, samples: Iterator[Any]) -> Iterator[Any]:
    while True:
        if pipe._valid_iterator_id != number:
            raise RuntimeError(INVALIDATED.format(pipe))
        try:
            sample = next(samples) if mode.watching.timing is None else _timed_next(pipe, samples)
        except StopIteration:
            return
        vars(pipe)['_number_of_samples_yielded'] += 1
        yield sample


def _timed_next(pipe: Any, samples: Iterator[Any]) -> Any:
    with timed('enumerate(DataPipe)#{}', pipe):
        return next(samples)


class DFIterDataPipe(IterDataPipe):
    """A pipe of tables."""


class DataChunk(list):
    """The batch of a pipe: a list that can be iterated down to its samples."""

    def __init__(self, items: Iterable[Any]) -> None:
        items = list(items)
        super().__init__(items)
        self.items = items

    def as_str(self, indent: str = '') -> str:
        return indent + '[' + ', '.join(map(str, self)) + ']'

    def raw_iterator(self) -> Iterator[Any]:
        """Iterate over the samples."""
        yield from self.items


def functional_datapipe(name: str, enable_df_api_tracing: bool = False) -> Callable[[Any], Any]:
    """Decorate a class of pipes: its functional form is a method `name` of all pipes of its kind.

    >>> from tensorgrad.utils.data.datapipes.datapipe import IterDataPipe, functional_datapipe
    >>> from tensorgrad.utils.data.datapipes.iter import IterableWrapper
    >>> @functional_datapipe("doubled_twice")
    ... class Doubled(IterDataPipe):
    ...     def __init__(self, source):
    ...         self.source = source
    ...     def __iter__(self):
    ...         return (4 * sample for sample in self.source)
    >>> list(IterableWrapper([1, 2]).doubled_twice())
    [4, 8]
    """
    def attach(cls: Any) -> Any:
        if not (isinstance(cls, type) and issubclass(cls, (IterDataPipe, MapDataPipe))):
            raise TypeError('Can only decorate a class that is a subclass of IterDataPipe or MapDataPipe')
        if not cls.__module__.startswith(__package__):
            load_pipes()            # so that a name of theirs is refused
        kind = IterDataPipe if issubclass(cls, IterDataPipe) else MapDataPipe
        kind.register_datapipe_as_function(name, cls, enable_df_api_tracing)
        return cls
    return attach


def is_pipe(dataset: Any) -> bool:
    return isinstance(dataset, Functional)


def load_pipes() -> None:
    """Load the pipes of this package, which register their functional forms."""
    for name in ('iter', 'map'):
        import_module(f'{__package__}.{name}')


def check_function(function: Any) -> None:
    """Raise TypeError unless it can be called; warn if it cannot be pickled, which worker processes need."""
    if not callable(function):
        raise TypeError(f'A callable function is expected, but {type(function)} is provided.')
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isfunction(function) and (function.__name__ == '<lambda>' or '<locals>' in function.__qualname__):
        try:
            pickle.dumps(function)
        except Exception:
            kind = 'Lambda' if function.__name__ == '<lambda>' else 'Local'
            warnings.warn(f'{kind} function is not supported by pickle, please use regular python function or '
                          'functools.partial instead.', stacklevel=5)
