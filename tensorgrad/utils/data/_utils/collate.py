"""Collate lists of samples into batches."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, MutableMapping, MutableSequence, Sequence
from copy import copy
from functools import partial
from importlib import import_module

import numpy as np

from .... import api as tg

np_str_obj_array_pattern = re.compile('[SaUO]')        # dtypes of strings and objects
default_collate_err_msg_format = (
    'default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}')


def like(container, parts):
    """Return a container of the type of `container` with other parts: a dict of them for a mapping, else an iterable.

    If the type cannot be constructed, a dict or a list.
    """
    if is_namedtuple(container):
        return type(container)(*parts)
    try:
        if isinstance(container, MutableMapping):
            clone = copy(container)
            clone.update(parts)
            return clone
        if isinstance(container, MutableSequence):
            clone = copy(container)
            for index, part in enumerate(parts):
                clone[index] = part
            return clone
        return type(container)(parts)
    except TypeError:
        return parts


def is_namedtuple(value) -> bool:
    return isinstance(value, tuple) and hasattr(value, '_fields')


def holds_no_numbers(array: np.ndarray) -> bool:
    return np_str_obj_array_pattern.search(array.dtype.str) is not None


def default_convert(data):
    """Convert NumPy arrays in nested containers to tensors (PyTorch: ``torch.utils.data.default_convert``).

    The default ``collate_fn`` of a ``DataLoader`` without batches. Numbers and strings pass through.

    >>> import numpy as np
    >>> from tensorgrad.utils.data import default_convert
    >>> default_convert({'x': np.array([1, 2]), 'y': (3, 'z')})
    {'x': tensor([1, 2]), 'y': [3, 'z']}
    """
    if isinstance(data, (tg.Tensor, str, bytes)):
        return data
    if isinstance(data, (np.ndarray, np.generic)):
        return data if holds_no_numbers(data) else tg.as_tensor(data)
    if isinstance(data, Mapping):
        return like(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, Sequence):
        parts = [default_convert(part) for part in data]
        return parts if isinstance(data, tuple) and not is_namedtuple(data) else like(data, parts)
    return data


def collate(batch: Sequence, *, collate_fn_map: Mapping | None = None):
    """Collate a list of samples into a batch, by the functions in ``collate_fn_map`` for their types.

    Mappings and sequences are collated part by part, as in ``default_collate``. A function in the map is called as
    ``f(batch, collate_fn_map=collate_fn_map)``; its key is a type or a tuple of types.
    """
    first = batch[0]
    function = find_function(collate_fn_map or {}, first)
    if function is not None:
        return function(batch, collate_fn_map=collate_fn_map)
    join = partial(collate, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        return like(first, {key: join([sample[key] for sample in batch]) for key in first})
    if is_namedtuple(first):
        return like(first, map(join, zip(*batch, strict=False)))
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError('each element in list of batch should be of equal size')
        parts = [join(part) for part in zip(*batch, strict=True)]
        return parts if isinstance(first, tuple) else like(first, parts)
    raise TypeError(default_collate_err_msg_format.format(type(first)))


def find_function(collate_fn_map: Mapping, sample) -> Callable | None:
    if type(sample) in collate_fn_map:
        return collate_fn_map[type(sample)]
    return next((function for kind, function in collate_fn_map.items() if isinstance(sample, kind)), None)


def collate_tensor_fn(batch: Sequence, *, collate_fn_map=None):
    # the public function: it asks subclasses, and their batch is of their class
    return import_module(__name__.partition(".")[0]).stack(batch, 0)


def collate_numpy_array_fn(batch: Sequence, *, collate_fn_map=None):
    first = batch[0]
    if holds_no_numbers(first):
        raise TypeError(default_collate_err_msg_format.format(first.dtype))
    if all(array.dtype == first.dtype and array.shape == first.shape for array in batch):
        return tg.as_tensor(np.stack(batch))
    return collate([tg.as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Sequence, *, collate_fn_map=None):
    return tg.as_tensor(np.asarray(batch))


def collate_float_fn(batch: Iterable[float], *, collate_fn_map=None):
    return tg.tensor(batch, dtype=tg.float64)


def collate_int_fn(batch: Iterable[int], *, collate_fn_map=None):
    return tg.tensor(batch)


def collate_str_fn(batch, *, collate_fn_map=None):
    return batch


default_collate_fn_map: dict[type | tuple[type, ...], Callable] = {
    tg.Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch: Sequence):
    """Collate a list of samples into a batch (PyTorch: ``torch.utils.data.default_collate``).

    Tensors and NumPy arrays are stacked along a new first dimension, numbers become a tensor (floats one of float64),
    strings remain a list. The parts of dicts, named tuples, tuples and lists are collated; tuples become lists.
    RuntimeError for sequences of unequal lengths, TypeError for other types.

    >>> from tensorgrad.utils.data import default_collate
    >>> default_collate([{'x': 1, 'y': 'a'}, {'x': 2, 'y': 'b'}])
    {'x': tensor([1, 2]), 'y': ['a', 'b']}
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)
