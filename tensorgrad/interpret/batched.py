"""Batches inside vmap: arrays with hidden leading axes, one per enclosing `vmap`, on which an op runs once for all
examples.

A Batched array shows the shape of one example. Its hidden axes have the length of the batch, or 1 if all examples are
equal: new arrays, and values that do not depend on the batch, are computed once. `_batched_ops.py` has the rules of ops
for hidden axes.
"""
from __future__ import annotations

import operator
from functools import cache
from math import prod
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from ..ops.base import HALVES
from ..runtime.small_floats import computed
from ..storage.base import Storage, attach_operators
from ._batched_ops import Lot, Makers, Whole, rule_of
from ._batched_subscripts import NO_ROOM, examples_of, indexed, written


def no_item(what: str = ".item()") -> RuntimeError:
    return RuntimeError(f"vmap: It looks like you're calling {what} on a Tensor. We don't support vmap over calling "
                         f"{what} on a Tensor, please try to rewrite what you're doing with other operations. If error "
                         "is occurring somewhere inside PyTorch internals, please file a bug report.")


def no_branch() -> RuntimeError:
    return RuntimeError("vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We "
                         "don't support that yet, please file an issue at https://github.com/pytorch/pytorch/issues .")


class Batched:
    """An array of `values` of shape (*hidden, *shape).

    Each number of hidden axes, `depth`, and each backend has a subclass.
    """

    __slots__ = ("values",)
    __array_ufunc__ = None          # NumPy's arrays on the left defer to us
    __array_priority__ = 2000
    depth: ClassVar[int]
    inner: ClassVar[Any]            # the backend of the values
    storage: ClassVar[Any]          # the backend of these arrays

    def __init__(self, values: Any) -> None:
        self.values = values

    hidden = property(lambda self: self.values.shape[:self.depth])
    shape = property(lambda self: self.values.shape[self.depth:])
    strides = property(lambda self: self.values.strides[self.depth:])
    dtype = property(lambda self: self.values.dtype)
    ndim = property(lambda self: self.values.ndim - self.depth)
    itemsize = property(lambda self: self.values.itemsize)
    size = property(lambda self: prod(self.shape))
    nbytes = property(lambda self: self.size * self.itemsize)
    base = property(lambda self: self.values.base)
    data = property(lambda self: self.values.data)
    T = property(lambda self: self.transpose())
    real = property(lambda self: type(self)(self.values.real))
    imag = property(lambda self: type(self)(self.values.imag))

    @property
    def __array_interface__(self) -> Any:
        return getattr(self.values, "values", self.values).__array_interface__

    @property
    def flags(self) -> Any:
        """The memory layout of one example."""
        one = self.values[(0,) * self.depth + (...,)] if all(self.hidden) else self.values
        flags = {name: getattr(one.flags, name) for name in ("c_contiguous", "f_contiguous")}
        return SimpleNamespace(**flags, owndata=self.values.base is None,
                               writeable=getattr(self.values.flags, "writeable", True))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(f"a batched array has no attribute {name!r}")
        function = getattr(type(self).storage.xp, name)      # x.sum(…), x.swapaxes(…), …
        return lambda *args, **params: function(self, *args, **params)

    def __repr__(self) -> str:
        return f"Batched(depth={self.depth}, values={self.values!r})"

    def __len__(self) -> int:
        return int(self.shape[0])

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        raise no_branch()

    def item(self) -> Any:
        raise no_item()

    __int__ = __float__ = __complex__ = __index__ = item

    def nonzero(self) -> Any:
        raise examples_of("nonzero")

    __hash__ = None  # type: ignore[assignment]

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        inner = type(self).storage.inner
        return type(self)((inner.xp.cast if copy else inner.cast)(self.values, dtype=dtype))

    def copy(self, order: str = "C") -> Any:
        repeated = any(step == 0 and n > 1 for step, n in zip(self.values.strides, self.hidden, strict=False))
        return type(self)(self.values.copy(order="C" if repeated else order))

    def view(self, dtype: Any) -> Any:
        return type(self)(self.values.view(dtype))

    def conj(self) -> Any:
        return type(self)(self.values.conj())

    def reshape(self, *shape: Any) -> Any:
        shape = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        if -1 in shape:
            known = prod(n for n in shape if n != -1)
            shape = tuple((self.size // known if known else 0) if n == -1 else n for n in shape)
        return type(self)(self.values.reshape(*self.hidden, *shape))

    def transpose(self, *axes: Any) -> Any:
        given: Any = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or range(self.ndim)[::-1]
        order = (a % self.ndim for a in given)
        return type(self)(self.values.transpose(*range(self.depth), *(a + self.depth for a in order)))

    def ravel(self, order: str = "C") -> Any:
        """Return all elements in one axis: in C order, or, for 'K', in memory order."""
        return (self if order == "C"
                else self.transpose(*sorted(range(self.ndim), key=lambda d: -self.strides[d]))).reshape(-1)

    def repeated(self, hidden: tuple[int, ...]) -> Any:
        """Repeat the values for batches of these lengths, without a copy."""
        return type(self)(type(self).storage.lot.full(self, hidden))

    def check_room(self, values: Any) -> None:
        """Raise RuntimeError if values differ between examples, but this array has memory for one."""
        if isinstance(values, Batched) and np.broadcast_shapes(self.hidden, values.hidden) != self.hidden:
            raise RuntimeError(NO_ROOM)

    def __getitem__(self, index: Any) -> Any:
        return indexed(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        written(self, index, value)

    put = written


def _attach_judged(name: str) -> None:
    def method(self: Batched, axis: Any = None, **params: Any) -> Any:
        """Reduce along an axis; without an axis, over all examples, for checks of arguments."""
        return (getattr(self.values, name)() if axis is None and not params
                else getattr(type(self).storage.xp, name)(self, axis=axis, **params))
    setattr(Batched, name, method)


for _name in ("min", "max", "any", "all"):
    _attach_judged(_name)


def _operate(function: Any, operands: Any, self: Batched) -> Any:
    storage = type(self).storage
    return (storage.xp.matmul(*operands) if function is operator.matmul
            else type(self)(function(*storage.lot.values(*operands))))


attach_operators(Batched, _operate)


class BatchedStorage(Storage):
    """A backend's memory as a batch.

    If other tensors use the memory without batch, `lender` is their storage, which has the dates of writes.
    """

    inner: ClassVar[Any] = None     # the backend of the values
    lot: ClassVar[Any]              # the helper of ops' rules
    writes = False
    lender: Any = None

    @classmethod
    def asarray(cls, data: Any, dtype: Any = None) -> Any:
        """Return an operand that all examples share, as an array of this backend."""
        array = lift(data if isinstance(data, Batched) else cls.inner.asarray(data, dtype), cls.rank, cls.inner)
        return array if dtype is None else cls.cast(array, dtype)

    @classmethod
    def cast(cls, array: Any, dtype: Any) -> Any:
        return type(array)(cls.inner.cast(array.values, dtype))

    @classmethod
    def host(cls, array: Any) -> Any:
        raise no_item()

    @classmethod
    def judge(cls) -> Any:
        return None if cls.inner.judge() is None else Whole(cls)

    @classmethod
    def seen(cls, array: Any) -> Any:
        return cls.inner.host(array.values)

    @classmethod
    def native(cls, op: Any) -> Any:
        return rule_of(op, cls)

    @classmethod
    def aliases(cls, a: Any, b: Any) -> bool:
        return bool(cls.inner.aliases(a.values, b.values))


def _dated(name: str) -> property:
    """Make the property of a date of writes: the lender's, if there is one."""
    default = getattr(Storage, name)

    def get(self: Any) -> Any:
        return self.__dict__.get(name, default) if self.lender is None else getattr(self.lender, name)

    def put(self: Any, value: Any) -> None:
        if self.lender is None:
            self.__dict__[name] = value
        else:
            setattr(self.lender, name, value)
    return property(get, put)


for _name in ("written", "rebased", "version", "dates"):
    setattr(BatchedStorage, _name, _dated(_name))


@cache
def batched_backend(inner: Any, depth: int) -> Any:
    """Return the backend of batches over backend `inner`, with `depth` hidden axes."""
    array = type(f"Batched{depth}", (Batched,), {"__slots__": (), "depth": depth, "inner": inner})
    made = type(f"Batched{inner.__name__}{depth}", (BatchedStorage,),
                {"inner": inner, "array_type": array, "rank": depth})
    array.storage = made  # type: ignore[attr-defined]
    made.module, made.lot = Makers(made), Lot(made)  # type: ignore[attr-defined]
    made.device, made.guard = inner.device, inner.guard  # type: ignore[attr-defined]
    return made


# ── levels ────────────────────────────────────────────────────────────────────────────────────────────────────────────
# In a backward with batched gradients an array may have more levels than its step. These come after the step's levels.


def layers(array: Any) -> tuple[Any, int, tuple[int, ...], Any]:
    """Return an array's values, the number of hidden axes, their lengths, and the shape."""
    if isinstance(array, Batched):
        return array.values, array.depth, array.hidden, array.shape
    return array, 0, (), array.shape


def built(values: Any, depth: int, inner: Any) -> Any:
    """Make a Batched array of values with `depth` hidden axes; the values themselves if there are none."""
    return batched_backend(inner, depth).array_type(values) if depth else values


def lift(array: Any, depth: int, inner: Any) -> Any:
    """Add the missing levels to an array, with length 1: all their examples share it."""
    values, own, hidden, shape = layers(array)
    return array if own >= depth else built(values.reshape(*hidden, *(1,) * (depth - own), *shape), depth, inner)


def hide(array: Any, axis: int, depth: int, inner: Any) -> Any:
    """Turn an axis into the batch of a level, as vmap does for its arguments."""
    array = lift(array, depth - 1, inner)
    values, own, *_ = layers(array)
    if own >= depth:
        values, own = values[(slice(None),) * (depth - 1) + (0,)], own - 1
    rest = [d for d in range(values.ndim) if d != own + axis]
    return built(values.transpose(*rest[:depth - 1], own + axis, *rest[depth - 1:]), own + 1, inner)


def show(array: Any, axis: int, depth: int, size: int, inner: Any) -> Any:
    """Turn the batch of a level, of length `size`, into an axis, as vmap does for results."""
    values, own, *_ = layers(array)
    place = depth - 1
    if values.shape[place] != size:
        values = inner.xp.broadcast_to(values, (*values.shape[:place], size, *values.shape[depth:]))
    rest = [d for d in range(values.ndim) if d != place]
    values = values.transpose(*rest[:own - 1 + axis], place, *rest[own - 1 + axis:])
    if own > depth:
        values = values.reshape(*values.shape[:place], 1, *values.shape[place:])
    return built(values, own - (own == depth), inner)


def total(array: Any, low: int, high: int, sizes: tuple[int, ...], inner: Any) -> Any:
    """Sum over levels low + 1 to high, with batches of these sizes: the adjoint of `lift`."""
    values, own, *_ = layers(array)
    count = 1
    for place in range(low, high):
        count *= sizes[place] if values.shape[place] == 1 else 1
    values = inner.xp.sum(inner.cast(values, computed(values.dtype)) if values.dtype.char in HALVES else values,
                          axis=tuple(range(low, high)), keepdims=own > high)
    values = inner.cast(values if count == 1 else values * count, array.dtype)
    return inner.asarray(values) if not low and own == high else built(values, own if own > high else low, inner)


def make_room(array: Any, low: int, high: int, by: int, inner: Any) -> Any:
    """Insert `by` new levels of length 1 after level `low`; levels low + 1 to high move back."""
    array = lift(array, high, inner)
    values, own, hidden, shape = layers(array)
    if own > high:      # deeper levels stay: the new levels trade places with levels low + 1 to high
        order = (*range(low), *range(high, high + by), *range(low, high), *range(high + by, values.ndim))
        return built(values.transpose(*order), own, inner)
    return built(values.reshape(*hidden[:low], *(1,) * by, *hidden[low:], *shape), own + by, inner)


def take_room(array: Any, low: int, high: int, by: int, inner: Any) -> Any:
    """Remove the levels that `make_room` inserted."""
    values, own, hidden, shape = layers(array)
    if own <= low:
        return array
    array = lift(array, high + by, inner)
    values, own, hidden, shape = layers(array)
    if own > high + by:
        order = (*range(low), *range(low + by, high + by), *range(low, low + by), *range(high + by, values.ndim))
        return built(values.transpose(*order), own, inner)
    return built(values.reshape(*hidden[:low], *hidden[low + by:], *shape), own - by, inner)
