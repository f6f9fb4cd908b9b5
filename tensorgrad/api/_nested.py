"""Nested sequences of numbers as PyTorch reads them: the first elements give the shape, all elements together the
dtype.
"""
from __future__ import annotations

from functools import reduce
from itertools import chain
from typing import Any

import numpy as np

from .. import dtype as dtypes
from ..core.tape import TensorBase
from ..dtype import FROM_NUMPY, promote_types
from ..messages.warn_once import warn
from ..runtime.numpy_state import compute
from ..runtime.small_floats import convert, known, widen

SEQUENCES = (list, tuple, range)
LISTS = frozenset((list, tuple))
PYTHON = frozenset(dtypes.PYTHON)
# {protocol: function that makes a tensor of an object with it}, which other modules register
READERS: dict[str, Any] = {}
DEEPEST = 1000       # axes: a list with more contains itself
OVERFLOW = "Overflow when unpacking long long"


def array_of(data: Any, wanted: Any) -> np.ndarray[Any, Any]:
    """Return a host array of `data` in the dtype `wanted`, or else in the common dtype of its elements."""
    try:
        sizes = _sizes(data)
        nested, inferred = _read(data, wanted)
    except RecursionError:
        raise TypeError("new(): self-referential lists are incompatible") from None
    target = inferred if wanted is None else wanted
    if 0 in sizes:
        return np.empty(sizes, target.numpy)
    try:
        array = np.array(nested)
    except ValueError:
        _explain(nested, sizes, target, 0)
        raise
    if array.dtype == object and target.numpy.kind not in "iu":      # integers of more than 64 bits
        array = array.astype(np.complex128 if target.is_complex else np.float64)
    if array.dtype == object or wanted is None and target is dtypes.int64 and array.dtype.kind in "uf":
        raise ValueError(OVERFLOW)
    if wanted is not None:
        _check_range(array, wanted)
    return compute(convert, array, target.numpy)  # type: ignore[no-any-return]


def _dtype_of(kind: type) -> Any:
    """The dtype of Python's numbers of a type."""
    return (dtypes.get_default_dtype() if kind is float else dtypes.default_complex() if kind is complex
            else dtypes.PYTHON[kind])


def _read(data: Any, wanted: Any) -> tuple[Any, Any]:
    """The data with numbers and arrays in place of tensors, and the dtype that all elements have in common."""
    if type(data) in PYTHON:
        return data, _dtype_of(type(data))
    if isinstance(data, SEQUENCES):
        if not data:
            return data, dtypes.get_default_dtype()
        level, kinds = data, set(map(type, data))
        while kinds <= LISTS and all(level):
            kinds = set(map(type, level := list(chain.from_iterable(level))))
        if kinds <= PYTHON:
            return data, _dtype_of(*kinds) if len(kinds) == 1 else reduce(promote_types, map(_dtype_of, kinds))
        arrays = isinstance(data[0], np.ndarray)
        pairs = [_read(np.asarray(part) if arrays and isinstance(part, TensorBase) else part, wanted) for part in data]
        if arrays:
            warn("Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting the "
                 "list to a single numpy.ndarray with numpy.array() before converting to a tensor.")
        common = reduce(promote_types, dict.fromkeys(kind for _, kind in pairs)) if wanted is None else wanted
        return (type(data)(part for part, _ in pairs) if type(data) in (list, tuple) else [part for part, _ in pairs],
                common)
    if isinstance(data, TensorBase):
        return _from_tensor(data, wanted)
    if isinstance(data, (np.ndarray, np.generic)):
        found = FROM_NUMPY[data.dtype]           # raises TypeError for dtypes that PyTorch lacks
        return data if found.numpy.kind != "V" else widen(known(np.asarray(data))), found
    return _from_object(data, wanted)


def _from_tensor(data: Any, wanted: Any) -> tuple[Any, Any]:
    """Return the only element as a number, which must be an integer to become one."""
    whole, size = data.array.dtype.kind in "biu", data.array.size
    if (not whole or size != 1) and (whole if wanted is None else wanted.numpy.kind in "biu"):
        raise TypeError("only integer tensors of a single element can be converted to an index")
    if size != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    host = type(data._storage).host(data.array)
    if host.dtype.kind == "V":
        host = widen(host)
    return host.item(), data.dtype


def _from_object(data: Any, wanted: Any) -> tuple[Any, Any]:
    """Read a number of another class, a sequence, or an object that NumPy can read."""
    if isinstance(data, (int, float, complex)):
        return data, _dtype_of(next(kind for kind in (int, float, complex) if isinstance(data, kind)))
    if hasattr(data, "__array_interface__") or hasattr(data, "__array__"):
        return _read(np.asarray(data), wanted)
    for protocol, read in READERS.items():
        if hasattr(data, protocol):
            return _read(read(data), wanted)
    if _is_sequence(data):
        return _read([data[i] for i in range(len(data))], wanted)
    if hasattr(data, "__index__"):
        return data.__index__(), dtypes.int64
    if hasattr(data, "__float__"):
        return float(data), dtypes.get_default_dtype()
    if wanted is not None:
        raise _no_number(data, wanted)
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")


def _is_sequence(data: Any) -> bool:
    return isinstance(data, SEQUENCES) or (hasattr(data, "__len__") and hasattr(data, "__getitem__")
                                           and not isinstance(data,
                                                              (str, bytes, dict, TensorBase, np.ndarray, np.generic)))


def _sizes(data: Any) -> tuple[int, ...]:
    """The shape that the first elements have."""
    sizes = []
    while _is_sequence(data):
        sizes.append(len(data))
        if not sizes[-1]:
            break
        try:
            data = data[0]
        except (TypeError, IndexError, KeyError):
            raise ValueError(f"could not determine the shape of object type '{type(data).__name__}'") from None
        if len(sizes) > DEEPEST:
            raise TypeError("new(): self-referential lists are incompatible")
    if sizes and isinstance(data, str):
        raise ValueError("too many dimensions 'str'")
    if isinstance(data, TensorBase):
        return tuple(sizes)
    return (*sizes, *data.shape) if isinstance(data, np.ndarray) else tuple(sizes)


def _explain(nested: Any, sizes: tuple[int, ...], wanted: Any, depth: int) -> None:
    """Raise PyTorch's error for data of another shape than its first elements."""
    if depth == len(sizes):
        if isinstance(nested, np.ndarray):
            raise ValueError("only one element tensors can be converted to Python scalars")
        if isinstance(nested, SEQUENCES):
            raise _no_number(nested, wanted)
        return
    if not isinstance(nested, (*SEQUENCES, np.ndarray)):
        raise TypeError("not a sequence")
    if len(nested) != sizes[depth]:
        raise ValueError(f"expected sequence of length {sizes[depth]} at dim {depth} (got {len(nested)})")
    for part in nested:
        _explain(part, sizes, wanted, depth + 1)


def _no_number(data: Any, wanted: Any) -> TypeError:
    kind = type(data).__name__
    return TypeError(f"'{kind}' object cannot be interpreted as an integer" if wanted.numpy.kind in "biu"
                     else f"must be real number, not {kind}")


def _check_range(array: Any, wanted: Any) -> None:
    """Raise PyTorch's error for numbers that a dtype does not hold. Negative integers wrap around in unsigned ones."""
    kind, target = array.dtype.kind, wanted.numpy.kind
    if kind == "c" and target != "b" and not wanted.is_complex:
        raise TypeError("must be real number, not complex" if target in "fV"
                        else "'complex' object cannot be interpreted as an integer")
    if target not in "iu" or not array.size or kind == "b":
        return
    if wanted is dtypes.uint64:
        if kind == "f":
            raise TypeError("an integer is required")
        if array.min() < 0:
            raise OverflowError("can't convert negative int to unsigned")
        return
    if kind == "u" and array.max() > np.iinfo(np.int64).max:
        raise ValueError(OVERFLOW)
    limits = np.iinfo(wanted.numpy)
    least = limits.min if target == "i" or kind == "f" else -limits.max
    if not least <= array.min() <= array.max() <= limits.max:
        raise RuntimeError(f"value cannot be converted to type {wanted.name} without overflow")
