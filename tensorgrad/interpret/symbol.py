"""An array without elements: a shape, a dtype, strides and a start address.

RuntimeError for a size in bytes that 63 bits do not hold, as for other arrays.

NumPy computes the views, on ghosts: arrays with the shape and strides of a symbol, over memory that is never read.
"""
from __future__ import annotations

import operator
from functools import lru_cache
from itertools import count
from math import prod
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from ..ops.indexing import ARRAY, indexed_shape
from ..storage.base import TWO_SIDED, NoValues, attach_operators
from ..storage.layout import row_strides, slowest_first
from ..storage.out_of_memory import overflowed

_GROUND = np.zeros(16, np.uint8)                        # the memory that ghosts claim
_ADDRESS = _GROUND.__array_interface__["data"][0]
# numbers the address ranges of new symbols, which do not overlap
_blocks = count(1)


class _Ghost:
    """An object that NumPy takes for an array with a symbol's strides."""

    __slots__ = ("__array_interface__",)

    def __init__(self, x: Symbol) -> None:
        kind = x.dtype.str if x.dtype.kind != "V" else f"|V{x.itemsize}"
        self.__array_interface__ = {"shape": x.shape, "strides": x.strides, "typestr": kind, "data": (_ADDRESS, False),
                                    "version": 3}


class Symbol:
    """An array that has `shape`, `dtype` and `strides`, but no elements. Writes to it are checked and dropped.

    >>> from tensorgrad.interpret.symbol_storage import Symbol
    >>> x = Symbol((2, 1, 3), "float32")
    >>> (x.T[0] + Symbol((5, 1, 1), "float64")).shape
    (5, 1, 2)
    """

    __slots__ = ("shape", "dtype", "_strides", "base", "start")
    __array_priority__ = 3000
    __hash__ = None  # type: ignore[assignment]
    module: ClassVar[Any]           # functions on symbols under NumPy's names
    storage: ClassVar[Any]          # the backend of symbols
    hollow: ClassVar[bool] = True

    @classmethod
    def served_by(cls, storage: Any) -> None:
        """Set the storage of symbols, and their functions from it: the storage class is made after this one."""
        cls.storage, cls.module = storage, storage.module

    def __init__(self, shape: tuple[int, ...], dtype: Any, strides: tuple[int, ...] | None = None,
                 base: Symbol | None = None,
                 start: int | None = None) -> None:
        self.shape, self.dtype, self.base = shape, np.dtype(dtype), base
        if base is None and prod(shape) * self.dtype.itemsize >= 1 << 63:
            raise overflowed(shape)
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
        if self._strides is None:
            in_rows, in_columns = True, 0 in self.shape or sum(n != 1 for n in self.shape) < 2
        else:
            own = np.asarray(_Ghost(self)).flags
            in_rows, in_columns = own.c_contiguous, own.f_contiguous
        return SimpleNamespace(c_contiguous=in_rows, f_contiguous=in_columns, writeable=True, owndata=self.base is None)

    @property
    def real(self) -> Any:
        return self.seen(lambda ghost: ghost.real) if self.dtype.kind == "c" else self

    @property
    def imag(self) -> Any:
        return self.seen(lambda ghost: ghost.imag) if self.dtype.kind == "c" else Symbol(self.shape, self.dtype)

    def owner(self) -> Symbol:
        """Return the symbol whose memory this one is a view of."""
        return self if self.base is None else self.base

    def seen(self, look: Any) -> Any:
        """Return the view, or views, that a function returns for a NumPy array of this layout."""
        found = look(np.asarray(_Ghost(self)))
        return tuple(map(self._from, found)) if isinstance(found, tuple) else self._from(found)

    def _from(self, view: Any) -> Symbol:
        # a ghost of records is of nameless bytes; a view as records has their names
        dtype = self.dtype if view.dtype.type is np.void and view.dtype.names is None else view.dtype
        return Symbol(view.shape, dtype, view.strides, self.owner(),
                      self.start + view.__array_interface__["data"][0] - _ADDRESS)

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

    def astype(self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True,
               copy: bool = True) -> Any:
        dtype = np.dtype(dtype)
        return self if not copy and dtype == self.dtype else laid(self.shape, dtype, self)

    def copy(self, order: str = "C") -> Any:
        return laid(self.shape, self.dtype, self) if order == "K" else Symbol(self.shape, self.dtype)

    def view(self, dtype: Any) -> Any:
        """View the bytes as elements of another dtype."""
        return self.seen(lambda ghost: ghost.view(dtype))

    def reshape(self, *sizes: Any, shape: Any = None, order: str = "C", copy: Any = None) -> Any:
        """Return a view if strides can reach the elements in order, else a copy."""
        given, size = shape if shape is not None else sizes[0] if len(sizes) == 1 else sizes, self.size
        wanted = tuple(map(operator.index, given if isinstance(given, (tuple, list)) else (given,)))
        if -1 in wanted and wanted.count(-1) == 1 and (known := -prod(wanted)) and not size % known:
            wanted = tuple(size // known if n == -1 else n for n in wanted)
        if prod(wanted) != size or -1 in wanted:
            raise ValueError(f"cannot reshape array of size {size} into shape {given}")
        strides = (row_strides(wanted, self.itemsize) if self._strides is None or not size
                   else steps_in_order(self, wanted))
        return (Symbol(wanted, self.dtype) if strides is None
                else Symbol(wanted, self.dtype, strides, self.owner(), self.start))

    def ravel(self, order: str = "C") -> Any:
        return self.reshape(-1) if self.size else Symbol((0,), self.dtype)

    def transpose(self, *axes: Any) -> Any:
        return self.seen(lambda ghost: ghost.transpose(*axes))

    def swapaxes(self, axis1: int, axis2: int) -> Any:
        return self.seen(lambda ghost: ghost.swapaxes(axis1, axis2))

    def fill(self, value: Any) -> None:
        self[...] = value

    # ── results for checks of arguments: values count as valid ────────────────────────────────────────────────────────

    def min(self, axis: Any = None, **params: Any) -> Any:
        """Along an axis; of all elements, for checks of indices: 0."""
        return 0 if axis is None and not params else Symbol.module.min(self, axis, **params)

    def max(self, axis: Any = None, **params: Any) -> Any:
        """Along an axis; of all elements, for checks of indices: 0."""
        return 0 if axis is None and not params else Symbol.module.max(self, axis, **params)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **params: Any) -> Any:
        """Handle NumPy's functions on arrays and symbols; raise NoValues if values are needed."""
        if method != "__call__" or out is not None:
            raise NoValues(f"numpy.{ufunc.__name__}")
        return getattr(Symbol.module, ufunc.__name__)(*inputs, **params)

    # ── indices ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def __getitem__(self, index: Any) -> Any:
        parts = index if isinstance(index, tuple) else (index,)
        if any(hasattr(part, "shape") or isinstance(part, list) for part in parts):
            return gathered(self, parts)
        # the dots keep a single element an array
        return self.seen(operator.itemgetter(index if ... in parts else (*parts, ...)))

    def __setitem__(self, index: Any, value: Any) -> None:
        parts = index if isinstance(index, tuple) else (index,)
        if any(type(part) is Symbol and part.dtype.kind == "b" for part in parts):
            if getattr(value, "size", 1) != 1:
                raise NoValues("a mask")
            return                                  # one value fits any number of places
        shape = self.shape if parts[0] is Ellipsis and len(parts) == 1 else self[index].shape
        given = np.shape(value) if (own := getattr(value, "shape", None)) is None else own
        short = given[next((i for i, n in enumerate(given) if n != 1), len(given)):]
        if len(short) > len(shape) or any(n not in (1, m) for n, m in zip(short[::-1], shape[::-1], strict=False)):
            raise ValueError(f"could not broadcast input array from shape {given} into shape {shape}")


def steps_in_order(x: Any, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the strides of a view in another shape with the elements in order; None if there is no such view."""
    lines: list[tuple[int, int]] = []                  # (length, step): axes that one step runs through
    for n, step in zip(x.shape, x.strides, strict=True):
        if n == 1:
            continue
        if lines and lines[-1][1] == n * step:
            lines[-1] = lines[-1][0] * n, step
        else:
            lines.append((n, step))
    rest, step, strides = 1, x.itemsize, []
    for n in reversed(shape):
        if n != 1 and rest == 1:
            rest, step = lines.pop()
        if rest % n:
            return None
        strides.append(step)
        rest, step = rest // n, step * n
    return tuple(reversed(strides))


def laid(shape: tuple[int, ...], dtype: Any, *operands: Any) -> Symbol:
    """Make a symbol whose axes have the memory order of results of these operands."""
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


def gathered(x: Symbol, parts: tuple[Any, ...]) -> Symbol:
    """Return x[parts] for an index with arrays, among which its integers count."""
    spelled: list[Any] = []
    for part in parts:
        part = np.asarray(part) if isinstance(part, list) else part
        spelled += part.nonzero() if hasattr(part, "shape") and part.dtype.kind == "b" else [part]
    taken = sum(part is not None and part is not Ellipsis for part in spelled)
    if taken > x.ndim:
        raise IndexError(f"too many indices for array: array is {x.ndim}-dimensional, but {taken} were indexed")
    dots = next((i for i, part in enumerate(spelled) if part is Ellipsis), len(spelled))
    spelled[dots:dots + 1] = [slice(None)] * (x.ndim - taken)
    arrays = [getattr(part, "shape", ()) for part in spelled if part is not None and not isinstance(part, slice)]
    template = [part if part is None or isinstance(part, slice) else ARRAY for part in spelled]
    view = x.seen(operator.itemgetter(tuple(slice(None) if part is ARRAY else part for part in template)))
    try:
        together = np.broadcast_shapes(*arrays)
    except ValueError:
        raise IndexError(f"shape mismatch: indexing arrays could not be broadcast together with shapes "
                         f"{' '.join(map(str, arrays))}") from None
    return Symbol(indexed_shape(view.shape, template, together), x.dtype)


# ── functions of each element, and operators ──────────────────────────────────────────────────────────────────────────


def elementwise(kernel: Any, row_major: bool, *args: Any, **params: Any) -> Any:
    """Return the symbol of an elementwise function's result; operands broadcast."""
    arrays = [a for a in args if hasattr(a, "shape")]
    dtype = dtype_of(kernel, tuple(map(kind_of, args)), tuple(params.items()))
    shape, operands = together(*(a.shape for a in arrays)), () if row_major else arrays
    return (tuple(laid(shape, kind, *operands) for kind in dtype) if type(dtype) is tuple
            else laid(shape, dtype, *operands))


@lru_cache(4096)
def dtype_of(kernel: Any, kinds: tuple[Any, ...], params: tuple[Any, ...]) -> Any:
    """The dtype of a result: that which NumPy gives for a single element."""
    ones = [None if k is None else np.ones(1, k) if isinstance(k, np.dtype) else k(1) for k in kinds]
    with np.errstate(all="ignore"):
        found = kernel(*ones, **dict(params))
    return tuple(one.dtype for one in found) if isinstance(found, tuple) else found.dtype


def kind_of(a: Any) -> Any:
    """Return an operand's dtype for promotion; for a Python number, which is weaker, its type."""
    return (a.dtype if hasattr(a, "dtype") else None if a is None else type(a)
            if isinstance(a, (bool, int, float, complex)) else np.asarray(a).dtype)


def together(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that several broadcast to."""
    longest = max(shapes, key=len)
    if all(not s or s == longest for s in shapes):
        return longest
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError as error:
        if "too large" in str(error):
            raise overflowed() from None
        raise


def _operate(function: Any, operands: Any, self: Symbol) -> Any:
    return Symbol.module.matmul(*operands) if function is operator.matmul else elementwise(function, False, *operands)


def _refusing(what: str) -> Any:
    def method(self: Symbol, *args: Any, **params: Any) -> Any:
        raise NoValues(what)
    return method


attach_operators(Symbol, _operate)
for _name, _what in {"__bool__": "bool()", "__int__": "int()", "__float__": "float()", "__complex__": "complex()",
                     "__index__": "an index",
                     "__array__": "a NumPy array", "item": ".item()", "tolist": ".tolist()",
                     "nonzero": "nonzero()"}.items():
    setattr(Symbol, _name, _refusing(_what))


def _attach_in_place(name: str) -> None:
    def method(self: Symbol, other: Any) -> Symbol:
        found = _operate(getattr(operator, f"__{name}__"), (self, other), self)
        if found.shape != self.shape:
            raise ValueError(f"non-broadcastable output operand with shape {self.shape} doesn't match the broadcast "
                             f"shape {found.shape}")
        if not np.can_cast(found.dtype, self.dtype, "same_kind"):
            raise TypeError(f"cannot cast {found.dtype} to {self.dtype} in place")
        return self
    setattr(Symbol, f"__i{name}__", method)


for _name in TWO_SIDED:
    _attach_in_place(_name)
