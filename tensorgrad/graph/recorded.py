"""Recorded arrays, each of which holds a value of a graph.

A recorded array wraps a NumPy array if it does not depend on the inputs, else a symbol; or, where a program may read
values, an array computed from example inputs. Its operations are steps of the run that this thread records.
"""
from __future__ import annotations

import operator
from itertools import count
from math import prod
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..interpret.symbol import Symbol
from ..interpret.symbol_storage import SymbolStorage
from ..ops.base import OPS
from ..ops.indexing import ARRAY
from ..storage.base import TWO_SIDED, attach_operators
from .lines import CannotLower, user_line
from .recorder import here, running
from .symbolic_sizes import NUMBERS

clock = count(1)
NAMES = {"concatenate": "concat", "take": "index_select", "transpose": "permute_dims", "true_divide": "divide",
         "abs": "absolute",
         # NumPy's → the table's
         "invert": "bitwise_not", "conjugate": "conj", "astype": "cast", "var": "variance", "std": "deviation",
         "clip": "clamp"}


OPERATORS = {"sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide", "mod": "remainder",
             "pow": "power", "and_": "bitwise_and", "or_": "bitwise_or", "xor": "bitwise_xor", "lshift": "left_shift",
             "rshift": "right_shift", "lt": "less", "le": "less_equal", "eq": "equal", "ne": "not_equal",
             "gt": "greater", "ge": "greater_equal", "neg": "negative", "abs": "absolute", "inv": "bitwise_not",
             "invert": "bitwise_not"}


def applied(name: str, *args: Any, **params: Any) -> Any:
    """Apply an op of the table to recorded arrays."""
    return OPS[name].kernels[running().backend](*args, **params)


def call(name: str, function: Any, args: Any, params: Any) -> Any:
    """Call a function of NumPy on recorded arrays."""
    return running().backend.module.call(name, function, args, params)


def foreign(name: str, function: Any, *args: Any) -> Any:
    return running().backend.module.foreign(name, function, args, {})


class Memory:
    """The state that an array and its views share: the time of the last write, the `name` of the model's tensor,
    `fixed` if writes are refused."""

    __slots__ = ("written", "name", "fixed")

    def __init__(self, name: str | None = None, fixed: bool = False) -> None:
        self.written, self.name, self.fixed = 0, name, fixed


class Recorded:
    """An array of the program that is recorded.

    `inner` is the wrapped array or symbol, `known` is True if it does not depend on the inputs, `node` is its value in
    the graph: None for a constant that no step needs yet. A view has its `parent`, and the (op, parameters) that made
    it (`made_by`).
    """

    __slots__ = ("shape", "dtype", "_inner", "_node", "_known", "parent", "made_by", "memory", "made", "__weakref__")
    __array_priority__ = 3000
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, inner: Any, node: Any = None, known: bool = True, parent: Any = None, made_by: Any = None,
                 memory: Any = None) -> None:
        self.shape, self.dtype = tuple(inner.shape), inner.dtype
        self._inner, self._node, self._known = inner, node, known
        self.parent, self.made_by, self.made = parent, made_by, next(clock)
        self.memory = memory if memory is not None else parent.memory if parent is not None else Memory()

    # ── what it holds now ─────────────────────────────────────────────────────────────────────────────────────────────

    def settled(self) -> Recorded:
        """Return the array; a view whose memory was written to recomputes its value first."""
        if self.parent is not None and self.memory.written > self.made:
            self.made = next(clock)
            op, params = self.made_by
            found = op.kernels[running().backend](self.parent, **params)
            self._inner, self._node, self._known = found._inner, found._node, found._known
        return self

    inner = property(lambda self: self.settled()._inner)
    node = property(lambda self: self.settled()._node)
    known = property(lambda self: self.settled()._known)
    unknown = property(lambda self: not self.known)

    def take(self, other: Recorded) -> None:
        """Take another array's value, and keep this array's layout."""
        inner, own = other.inner, self._inner
        if type(inner) is Symbol:
            inner = own if type(own) is Symbol else SymbolStorage.asarray(own)
        elif type(own) is Symbol:
            inner = inner.copy()
        else:
            inner, values = np.empty_like(own), inner
            inner[...] = values
        self._inner, self._node, self._known = inner, other.node, other.known

    # ── what arrays tell ──────────────────────────────────────────────────────────────────────────────────────────────

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: prod(self.shape))
    itemsize = property(lambda self: self.dtype.itemsize)
    nbytes = property(lambda self: self.size * self.dtype.itemsize)
    base = property(lambda self: self.parent)

    @property
    def strides(self) -> Any:
        steps = self.inner.strides
        if (node := laid_as(self.shape)) is None:
            return steps
        return tuple(running().sizes.of(node, "strides", axis, step) for axis, step in enumerate(steps))

    @property
    def flags(self) -> Any:
        flags = self.inner.flags
        if (node := laid_as(self.shape)) is not None:
            flags = SimpleNamespace(**{name: bool(running().sizes.of(node, name, None, getattr(flags, name)))
                                       for name in ("c_contiguous", "f_contiguous")})
        return SimpleNamespace(c_contiguous=flags.c_contiguous, f_contiguous=flags.f_contiguous, writeable=True,
                               owndata=self.parent is None)

    @property
    def data(self) -> Any:
        inner = self.inner
        return inner.data if type(inner) is Symbol else SimpleNamespace(ptr=inner.__array_interface__["data"][0])

    def __repr__(self) -> str:
        return f"Recorded({self.shape}, {self.dtype}, {'known' if self.known else self.node})"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def read(self, what: str = "a tensor that depends on the inputs is read") -> Any:
        """Return the values, for a program that reads them.

        ReadsValues if they depend on the inputs and cannot be read.
        """
        if not self.known:
            recorder = running()
            if recorder.scalars is not None and self.size == 1 and self.dtype.kind in "iu":
                return recorder.scalars.read(self)
            recorder.read(what)
        elif here.recorder is not None:
            here.recorder.rely([self])
        return self.inner

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.read(), dtype)

    __bool__ = lambda self: bool(self.read())              # noqa: E731
    __int__ = lambda self: int(self.read())                # noqa: E731
    __float__ = lambda self: float(self.read())            # noqa: E731
    __complex__ = lambda self: complex(self.read())        # noqa: E731
    __index__ = lambda self: operator.index(self.read())   # noqa: E731

    def item(self, *args: Any) -> Any:
        return self.read().item(*args)

    def tolist(self) -> Any:
        return self.read().tolist()

    def _checked(self, name: str, *args: Any, **params: Any) -> Any:
        """Reduce along an axis as a step.

        A reduction of all elements checks arguments: it runs on `inner`, where symbols pass as valid.
        """
        return call(name, getattr(np, name), (self, *args), params) if args or params else getattr(self.inner, name)()

    def min(self, *args: Any, **params: Any) -> Any:    return self._checked("min", *args, **params)
    def max(self, *args: Any, **params: Any) -> Any:    return self._checked("max", *args, **params)
    def any(self, *args: Any, **params: Any) -> Any:    return self._checked("any", *args, **params)
    def all(self, *args: Any, **params: Any) -> Any:    return self._checked("all", *args, **params)

    # ── what arrays do ────────────────────────────────────────────────────────────────────────────────────────────────

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **params: Any) -> Any:
        if method != "__call__" or out is not None:
            raise CannotLower(f"numpy.{ufunc.__name__}.{method} into an array", user_line())
        return call(ufunc.__name__, ufunc, inputs, params)

    def __array_function__(self, function: Any, types: Any, args: Any, params: Any) -> Any:
        return call(function.__name__, function, args, params)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(np.ndarray, name) or not hasattr(np, name):
            raise AttributeError(f"a recorded array has no attribute {name!r}")
        return lambda *args, **params: call(name, getattr(np, name), (self, *args), params)

    def __getitem__(self, index: Any) -> Any:
        parts = without_masks(index if isinstance(index, tuple) else (index,))
        if not any(map(is_array, parts)):
            return applied("get_slice", self, index=parts)
        return applied("index", self, *filter(is_array, parts), template=template_of(parts))

    def __setitem__(self, index: Any, value: Any) -> None:
        running().backend.put(self, index, value)

    T = property(lambda self: applied("permute_dims", self, axes=tuple(range(self.ndim))[::-1]))
    real = property(lambda self: self if self.dtype.kind != "c" else applied("real", self))
    imag = property(lambda self: applied("imag", self))

    def astype(self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True,
               copy: bool = True) -> Any:
        return ((applied("clone", self) if copy else self) if self.dtype == dtype
                else applied("cast", self, dtype=np.dtype(dtype)))

    def reshape(self, *shape: Any, order: str = "C") -> Any:
        return applied("reshape", self, shape=shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list))
                       else shape)

    def transpose(self, *axes: Any) -> Any:
        axes = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        return applied("permute_dims", self, axes=tuple(axes or range(self.ndim)[::-1]))

    def swapaxes(self, axis1: int, axis2: int) -> Any:
        return applied("swapaxes", self, axis1=axis1, axis2=axis2)

    def copy(self, order: str = "C") -> Any:
        return applied("clone" if order == "K" or self.flags.c_contiguous else "contiguous", self)

    def ravel(self, order: str = "C") -> Any:
        return self.reshape(-1)

    def flatten(self, order: str = "C") -> Any:
        return self.reshape(-1).copy()

    def view(self, dtype: Any = None) -> Any:
        return foreign("view of other dtype", lambda x: x.view(dtype), self)

    def conj(self) -> Any:
        return self if self.dtype.kind != "c" else applied("conj", self)

    def fill(self, value: Any) -> None:
        self[...] = value

    def nonzero(self) -> Any:
        return foreign("a mask as an index", lambda x: x.nonzero(), self)


def _operate(function: Any, operands: Any, self: Any) -> Any:
    return self if function is operator.pos else applied(OPERATORS.get(function.__name__, function.__name__), *operands)


attach_operators(Recorded, _operate)


def _attach_in_place(name: str) -> None:
    def method(self: Recorded, other: Any) -> Recorded:
        self[...] = _operate(getattr(operator, f"__{name}__"), (self, other), self)
        return self
    setattr(Recorded, f"__i{name}__", method)


for _name in TWO_SIDED:
    _attach_in_place(_name)


def laid_as(shape: Any) -> Any:
    """Return the node that a symbolic shape is that of: arrays keep its layout; None for other shapes."""
    return next((n.args[0] for n in shape if type(n) in NUMBERS), None)


# ── indices ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def is_array(part: Any) -> bool:
    return isinstance(part, (Recorded, np.ndarray, list))


def template_of(parts: Any) -> tuple[Any, ...]:
    return tuple(ARRAY if is_array(p) else p for p in parts)


def without_masks(parts: Any) -> tuple[Any, ...]:
    """Return an index with its masks replaced by the indices at which they are true."""
    found: list[Any] = []
    for part in parts:
        part = np.asarray(part) if isinstance(part, list) else part
        found += part.nonzero() if is_array(part) and part.dtype.kind == "b" else [part]
    return tuple(found)
