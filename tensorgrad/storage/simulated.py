"""Pretend CUDA devices on the CPU: arrays that refuse to mix, so that device bugs show on any machine.

`TENSORGRAD_SIMULATED_CUDA=2` asks for two of them. As with CuPy, an array belongs to one device, host arrays and arrays
of another device are refused in any computation, and only explicit transfers cross over; these are counted. So is the
memory that the arrays of a device hold.
"""
from __future__ import annotations

import operator
import threading
import weakref
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from .base import attach_operators
from .out_of_memory import OutOfMemoryError

transfers = {"to_device": 0, "to_host": 0, "between": 0}

# NumPy's attributes that CuPy's arrays and modules lack.
FLAGS = ("c_contiguous", "f_contiguous", "owndata")
WITHOUT = {"ctypes", "getfield", "resize", "setfield", "setflags", "to_device",
           "block", "errstate", "frompyfunc", "geomspace", "insert", "matvec", "nanpercentile", "nanquantile",
           "ndenumerate", "nditer", "spacing", "unstack", "vecdot", "vecmat",
           "linalg.diagonal", "linalg.matrix_norm", "linalg.multi_dot", "linalg.outer", "linalg.svdvals",
           "linalg.tensordot", "linalg.trace",
           "linalg.vecdot", "linalg.vector_norm"}


class Block(weakref.ref):  # type: ignore[type-arg]
    """A NumPy array that owns memory, for as long as it lives."""

    __slots__ = ("key", "size")
    key: int
    size: int


class Memory:
    """The memory that arrays of a simulated device hold. An array counts until the last view of its memory is freed."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.live: dict[int, Block] = {}
        self.current = self.peak = self.allocated = 0      # bytes: now, at the peak, and in total
        self.blocks = self.full = 0                        # the number of allocations, and of failed ones
        self.limit: int | None = None
        # a garbage collection may free an array while another is counted
        self.lock = threading.RLock()

    def hold(self, values: Any) -> None:
        """Count the memory of `values`, unless it is counted already."""
        while (base := getattr(values, "base", None)) is not None:
            values = base
        key, size = id(values), getattr(values, "nbytes", 0)
        if key in self.live or not size:
            return
        block = Block(values, self.release)
        block.key, block.size = key, size
        with self.lock:
            if self.limit is not None and self.current + size > self.limit:
                self.full += 1
                raise OutOfMemoryError.on(self.index, size, self.limit, max(self.limit - self.current, 0))
            self.live[key] = block
            self.current += size
            self.allocated += size
            self.blocks += 1
            if self.current > self.peak:
                self.peak = self.current

    def release(self, block: Block) -> None:
        with self.lock:
            del self.live[block.key]
            self.current -= block.size


@cache
def memory_of(index: int) -> Memory:
    return Memory(index)


class SimulatedArray:
    """An array that pretends to live on device `index`. The array works with numbers and its own kind only."""

    __slots__ = ("values", "index")
    __array_priority__ = 1000
    __array_ufunc__ = None  # a NumPy array on the left defers to us, and is refused

    def __init__(self, values: Any, index: int) -> None:
        self.values, self.index = values, index
        memory_of(index).hold(values)

    shape = property(lambda self: self.values.shape)
    dtype = property(lambda self: self.values.dtype)
    ndim = property(lambda self: self.values.ndim)
    size = property(lambda self: self.values.size)
    strides = property(lambda self: self.values.strides)
    itemsize = property(lambda self: self.values.itemsize)
    nbytes = property(lambda self: self.values.nbytes)
    flags = property(lambda self: SimpleNamespace(**{name: getattr(self.values.flags, name) for name in FLAGS}))
    base = property(lambda self: self.values.base)
    T = property(lambda self: SimulatedArray(self.values.T, self.index))
    real = property(lambda self: SimulatedArray(self.values.real, self.index))
    imag = property(lambda self: SimulatedArray(self.values.imag, self.index))

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.values, name)  # astype, reshape, sum, copy, …
        if not callable(method) or name.startswith("__") or name in WITHOUT:
            raise AttributeError(f"SimulatedArray has no attribute {name!r}")
        return lambda *args, **kwargs: on_device(self.index, method, args, kwargs)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed: this array is on a (simulated) CUDA "
                        "device.")

    def __getitem__(self, index: Any) -> Any:
        return on_device(self.index, operator.getitem, (self, index), {})

    def __setitem__(self, index: Any, value: Any) -> None:
        on_device(self.index, operator.setitem, (self, index, value), {})

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        return bool(self.item())

    def __index__(self) -> int:
        return operator.index(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def item(self) -> Any:
        transfers["to_host"] += 1
        return self.values.item()

    def __repr__(self) -> str:
        return f"SimulatedArray({self.values!r}, device={self.index})"


attach_operators(SimulatedArray, lambda function, operands, self: on_device(self.index, function, operands, {}))


def on_device(index: int, function: Any, args: Any, kwargs: Any) -> Any:
    """Call a NumPy function on the values of simulated arrays that all live on device `index`."""
    out = kwargs.get("out")
    result = function(*[bare(arg, index) for arg in args],
                      **{name: bare(value, index) for name, value in kwargs.items()})
    return out if out is not None else wrapped(result, index)


def bare(value: Any, index: int) -> Any:
    """Return the values of simulated arrays, also in lists and tuples; TypeError for arrays of another device."""
    if type(value) is SimulatedArray:
        if value.index != index:
            raise TypeError(f"arrays of the simulated devices {index} and {value.index} do not mix")
        return value.values
    if isinstance(value, (list, tuple)):
        parts = [bare(part, index) for part in value]
        return parts if isinstance(value, list) else tuple(parts)
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {type(value)}: host arrays do not mix with arrays on a device")
    return value


def wrapped(value: Any, index: int) -> Any:
    """A NumPy result as simulated arrays."""
    if isinstance(value, (np.ndarray, np.generic)):
        return SimulatedArray(np.asarray(value), index)
    if isinstance(value, (list, tuple)):
        parts = [wrapped(part, index) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


class SimulatedModule:
    """NumPy's functions for the arrays of one simulated device."""

    def __init__(self, index: int, module: Any = np) -> None:
        self._index, self._module = index, module

    def __getattr__(self, name: str) -> Any:
        if f"{self._module.__name__}.{name}".removeprefix("numpy.") in WITHOUT:
            raise AttributeError(f"CuPy has no {name}")
        found = getattr(self._module, name)
        if isinstance(found, type(np)):
            found = SimulatedModule(self._index, found)
        elif callable(found) and (found is np.broadcast or not isinstance(found, type)):
            found = simulated(found, self._index)
        setattr(self, name, found)
        return found


def simulated(function: Any, index: int) -> Any:
    """Make a NumPy function, with the `at` of ufuncs, for arrays of one simulated device."""
    def on_this_device(*args: Any, **kwargs: Any) -> Any:
        return on_device(index, function, args, kwargs)
    if isinstance(function, np.ufunc):
        on_this_device.at = simulated(function.at, index)  # type: ignore[attr-defined]
    return on_this_device


@cache
def module_of(index: int) -> SimulatedModule:
    return SimulatedModule(index)


def send(values: Any, index: int) -> SimulatedArray:
    """Copy host values to a device."""
    transfers["to_device"] += 1
    return SimulatedArray(np.array(values), index)


def fetch(array: SimulatedArray) -> np.ndarray[Any, Any]:
    """Copy an array to the host."""
    transfers["to_host"] += 1
    return array.values.copy()  # type: ignore[no-any-return]
