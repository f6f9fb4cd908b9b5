"""An array without elements: a shape, a dtype, and where its elements would lie.

Views are NumPy's own, of ghosts: arrays that claim the shape and the strides of a symbol, over memory that nobody reads.
"""
from __future__ import annotations

import operator
from itertools import count
from math import prod
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from ..storage.base import TWO_SIDED, NoValues, attach_operators
from ..storage.layout import slowest_first

_GROUND = np.zeros(16, np.uint8)                        # where ghosts claim to lie
_ADDRESS = _GROUND.__array_interface__["data"][0]
_blocks = count(1)                                      # each new symbol has addresses of its own, far from those of all others


class _Ghost:
    """What NumPy takes for an array that lies as a symbol says."""

    __slots__ = ("__array_interface__",)

    def __init__(self, x: Symbol) -> None:
        self.__array_interface__ = {"shape": x.shape, "strides": x.strides, "typestr": f"|V{x.itemsize}", "data": (_ADDRESS, False), "version": 3}


class Symbol:
    """An array that has `shape`, `dtype` and `strides`, and no elements. What is written to it is checked, and forgotten.

    >>> from tensorgrad.interpret.symbols import Symbol
    >>> x = Symbol((2, 1, 3), "float32")
    >>> (x.T[0] + Symbol((5, 1, 1), "float64")).shape
    (5, 1, 2)
    """

    __slots__ = ("shape", "dtype", "_strides", "base", "start")
    __array_priority__ = 3000
    __hash__ = None  # type: ignore[assignment]
    module: ClassVar[Any]           # functions on symbols under NumPy's names
    space: ClassVar[Any]            # the op table as symbols see it
    hollow: ClassVar[bool] = True

    @classmethod
    def served_by(cls, storage: Any) -> None:
        """Take the functions on symbols from their storage, which is made after them."""
        cls.module, cls.space = storage.module, storage.xp

    def __init__(self, shape: tuple[int, ...], dtype: Any, strides: tuple[int, ...] | None = None, base: Symbol | None = None,
                 start: int | None = None) -> None:
        self.shape, self.dtype, self.base = shape, np.dtype(dtype), base
        self._strides = None if strides is None or strides == row_strides(shape, self.dtype.itemsize) else strides
        self.start = next(_blocks) << 80 if start is None else start

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: prod(self.shape))
    itemsize = property(lambda self: self.dtype.itemsize)
    nbytes = property(lambda self: self.size * self.dtype.itemsize)
    T = property(lambda self: self.transpose())
    data = property(lambda self: SimpleNamespace(ptr=self.start))

    @property
    def strides(self) -> tuple[int, ...]:
        return row_strides(self.shape, self.dtype.itemsize) if self._strides is None else self._strides

    @property
    def flags(self) -> Any:
        rows = self._strides is None or in_rows(self.shape, self._strides, self.itemsize)
        return SimpleNamespace(c_contiguous=rows, f_contiguous=in_rows(self.shape[::-1], self.strides[::-1], self.itemsize), writeable=True,
                               owndata=self.base is None)

    @property
    def real(self) -> Any:
        return self._half(0)

    @property
    def imag(self) -> Any:
        return self._half(self.itemsize // 2)

    def _half(self, offset: int) -> Any:
        """The real or imaginary parts."""
        if self.dtype.kind != "c":
            return Symbol(self.shape, self.dtype) if offset else self
        return Symbol(self.shape, f"f{self.itemsize // 2}", self.strides, self.owner(), self.start + offset)

    def owner(self) -> Symbol:
        """The symbol whose memory this one sees."""
        return self if self.base is None else self.base

    def seen(self, look: Any) -> Symbol:
        """The view that a function of NumPy's gives."""
        found = look(np.asarray(_Ghost(self)))
        return Symbol(found.shape, self.dtype, found.strides, self.owner(), self.start + found.__array_interface__["data"][0] - _ADDRESS)

    # ── methods of arrays ─────────────────────────────────────────────────────────────────────────────────────────────

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(f"a symbol has no attribute {name!r}")
        function = getattr(Symbol.module, name)      # x.sum(…), x.cumsum(…), …
        return lambda *args, **params: function(self, *args, **params)

    def __repr__(self) -> str:
        return f"Symbol({self.shape}, {self.dtype})"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def astype(self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True) -> Any:
        dtype = np.dtype(dtype)
        return self if not copy and dtype == self.dtype else laid(self.shape, dtype, self)

    def copy(self, order: str = "C") -> Any:
        return laid(self.shape, self.dtype, self) if order == "K" else Symbol(self.shape, self.dtype)

    def view(self, dtype: Any = None) -> Any:
        """The same bytes as elements of another dtype: wider ones, or narrower ones, make the last axis shorter, or longer."""
        new, size = np.dtype(self.dtype if dtype is None else dtype), self.itemsize
        if new.itemsize == size:
            return Symbol(self.shape, new, self.strides, self.owner(), self.start)
        if not self.shape or self.strides[-1] != size and self.shape[-1] != 1:
            raise ValueError("To change to a dtype of a different size, the last axis must be contiguous")
        length, rest = divmod(self.shape[-1] * size, new.itemsize)
        if rest:
            raise ValueError("When changing to a larger dtype, its size must be a divisor of the total size in bytes of the last axis of the array.")
        return Symbol((*self.shape[:-1], length), new, (*self.strides[:-1], new.itemsize), self.owner(), self.start)

    def reshape(self, *shape: Any, order: str = "C", copy: Any = None) -> Any:
        return Symbol.module.reshape(self, shape[0] if len(shape) == 1 and not isinstance(shape[0], (int, np.integer)) else shape)

    def transpose(self, *axes: Any) -> Any:
        return Symbol.module.transpose(self, axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None)

    def fill(self, value: Any) -> None:
        self[...] = value

    # ── what checks of arguments ask for: the values are taken for valid ──────────────────────────────────────────────

    def min(self, axis: Any = None, **params: Any) -> Any:
        """Along an axis; of all elements, for checks of indices: 0."""
        return 0 if axis is None and not params else Symbol.module.min(self, axis, **params)

    def max(self, axis: Any = None, **params: Any) -> Any:
        """Along an axis; of all elements, for checks of indices: 0."""
        return 0 if axis is None and not params else Symbol.module.max(self, axis, **params)

    # ── what has no answer ────────────────────────────────────────────────────────────────────────────────────────────

    def __bool__(self) -> bool:
        raise NoValues("bool()")

    def __int__(self) -> int:
        raise NoValues("int()")

    def __float__(self) -> float:
        raise NoValues("float()")

    def __complex__(self) -> complex:
        raise NoValues("complex()")

    def __index__(self) -> int:
        raise NoValues("an index")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **params: Any) -> Any:
        """NumPy's arrays on the left defer to us; they do not take what has no values."""
        if method != "__call__" or out is not None:
            raise NoValues(f"numpy.{ufunc.__name__}")
        return getattr(Symbol.module, ufunc.__name__)(*inputs, **params)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise NoValues("a NumPy array")

    def item(self, *args: Any) -> Any:
        raise NoValues(".item()")

    def tolist(self) -> Any:
        raise NoValues(".tolist()")

    def nonzero(self) -> Any:
        raise NoValues("nonzero()")

    # ── indices ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def __getitem__(self, index: Any) -> Any:
        parts = index if isinstance(index, tuple) else (index,)
        if any(hasattr(part, "shape") or isinstance(part, list) for part in parts):
            return Symbol(indexed_shape(self, parts), self.dtype)
        found = self.seen(operator.itemgetter(index if ... in parts else (*parts, ...)))      # the dots keep a single element an array
        return found

    def __setitem__(self, index: Any, value: Any) -> None:
        parts = index if isinstance(index, tuple) else (index,)
        if any(type(part) is Symbol and part.dtype.kind == "b" for part in parts):
            if getattr(value, "size", 1) != 1:
                raise NoValues("a mask")
            return                                  # one value: it fits, however many places there are
        shape, given = (self.shape if parts[0] is Ellipsis and len(parts) == 1 else self[index].shape), getattr(value, "shape", None)
        given = np.shape(value) if given is None else given
        short = given[next((i for i, n in enumerate(given) if n != 1), len(given)):]
        if len(short) > len(shape) or any(n not in (1, m) for n, m in zip(short[::-1], shape[::-1], strict=False)):
            raise ValueError(f"could not broadcast input array from shape {given} into shape {shape}")


def row_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """The steps of an array whose elements lie in the order of their indices."""
    strides, step = [], itemsize
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def in_rows(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    """Whether elements lie in the order of their indices."""
    if 0 in shape:
        return True
    step = itemsize
    for n, s in zip(reversed(shape), reversed(strides), strict=True):
        if n != 1:
            if s != step:
                return False
            step *= n
    return True


def laid(shape: tuple[int, ...], dtype: Any, *operands: Any) -> Symbol:
    """A new symbol, whose axes lie in memory in the order that results of these operands have."""
    out = Symbol(shape, dtype)
    whole = [a for a in operands if type(a) is Symbol]
    if all(a._strides is None for a in whole):
        return out
    axes = slowest_first(shape, whole)
    packed = row_strides(tuple(shape[d] for d in axes), out.itemsize)
    return Symbol(shape, dtype, tuple(packed[axes.index(d)] for d in range(len(shape))), start=out.start)


def in_columns(x: Symbol) -> Symbol:
    """Matrices column by column."""
    if 1 in x.shape[-2:] and x.flags.c_contiguous:
        return x
    *lead, m, n = row_strides((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.itemsize)
    return Symbol(x.shape, x.dtype, (*lead, n, m))


def indexed_shape(x: Symbol, parts: tuple[Any, ...]) -> tuple[int, ...]:
    """The shape of x[parts], where arrays are among the parts: their axes come where they stand, or first if they stand apart."""
    spelled: list[Any] = []
    for part in parts:
        part = np.asarray(part) if isinstance(part, list) else part
        spelled += part.nonzero() if hasattr(part, "shape") and part.dtype.kind == "b" else [part]
    taken = sum(part is not None and part is not Ellipsis for part in spelled)
    if taken > x.ndim:
        raise IndexError(f"too many indices for array: array is {x.ndim}-dimensional, but {taken} were indexed")
    dots = next((i for i, part in enumerate(spelled) if part is Ellipsis), len(spelled))
    spelled = [*spelled[:dots], *[slice(None)] * (x.ndim - taken), *spelled[dots + 1:]]
    shape: list[int] = []
    places: list[int] = []             # of the parts that are arrays, or count as such
    at, shapes, sizes = 0, [], iter(x.shape)
    for i, part in enumerate(spelled):
        if part is None:
            shape.append(1)
        elif isinstance(part, slice):
            shape.append(len(range(*part.indices(next(sizes)))))
        else:
            next(sizes)
            at = at if places else len(shape)
            places.append(i)
            shapes.append(getattr(part, "shape", ()))
    if places[-1] - places[0] >= len(places):
        at = 0
    try:
        together = np.broadcast_shapes(*shapes)
    except ValueError:
        raise IndexError(f"shape mismatch: indexing arrays could not be broadcast together with shapes {' '.join(map(str, shapes))}") from None
    return (*shape[:at], *together, *shape[at:])


UFUNCS = {"sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide", "mod": "remainder", "pow": "power", "and_": "bitwise_and",
          "or_": "bitwise_or", "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift", "lt": "less", "le": "less_equal", "eq": "equal",
          "ne": "not_equal", "gt": "greater", "ge": "greater_equal", "neg": "negative", "pos": "positive", "abs": "absolute"}


def _operate(function: Any, operands: Any, self: Symbol) -> Any:
    return getattr(Symbol.module, UFUNCS.get(function.__name__, function.__name__))(*operands)


attach_operators(Symbol, _operate)


def _attach_in_place(name: str) -> None:
    def method(self: Symbol, other: Any) -> Symbol:
        found = _operate(getattr(operator, f"__{name}__"), (self, other), self)
        if found.shape != self.shape:
            raise ValueError(f"non-broadcastable output operand with shape {self.shape} doesn't match the broadcast shape {found.shape}")
        if not np.can_cast(found.dtype, self.dtype, "same_kind"):
            raise TypeError(f"cannot cast {found.dtype} to {self.dtype} in place")
        return self
    setattr(Symbol, f"__i{name}__", method)


for _name in TWO_SIDED:
    _attach_in_place(_name)
