"""The op table and NumPy's functions, for symbols.

An op's `infer`, or else its family, defines the result. NumPy computes views; elementwise ops broadcast, and NumPy
finds their dtype for one element; all others run from their definition. Functions that are no ops are defined here if
programs need them, such as new arrays; other functions run on arrays of ones, which is slow, and right if the result's
shape does not depend on values.
"""
from __future__ import annotations

from functools import partial
from math import ceil
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..ops.base import OPS
from ..storage.base import NoValues
from ..storage.cpu import NumpyStorage
from ._batched_ops import runner
from .symbol import Symbol, elementwise, laid, together

BY_VALUES = set("nonzero flatnonzero argwhere unique compress extract array_equal allclose".split())
GROUPS = {"linalg", "fft", "lib", "lib.stride_tricks"}


# ── the ops of the table ──────────────────────────────────────────────────────────────────────────────────────────────


def rule_of(op: Any) -> Any:
    """Return the kernel of an op on symbols, by its attributes; None to run its definition."""
    if op.opname in RULES:
        return RULES[op.opname]
    if op.view == "always":
        return partial(viewed, runner(op, NumpyStorage))
    if op.infer is not None:
        return partial(inferred, op)
    if op.elementwise:
        return partial(elementwise, runner(op, NumpyStorage), op.row_major)
    return partial(refused, op.by_values.strip("_").rstrip("2")) if op.by_values else None


def viewed(kernel: Any, x: Any, **params: Any) -> Any:
    return x.seen(lambda ghost: kernel(ghost, **params))


def inferred(op: Any, *args: Any, **params: Any) -> Any:
    """Make the symbols that the op's `infer` describes."""
    found, order = op.infer(*args, **params), args[:1] if op.in_order else ()

    def one(shape: Any, dtype: Any, strides: Any = None) -> Any:
        return laid(shape, dtype, *order) if strides is None else Symbol(shape, dtype, strides)
    return tuple(one(*said) for said in found) if op.several else one(*found)


def as_strided(x: Any, *, size: Any, stride: Any, offset: int, memory: Any = None, **layout: Any) -> Any:
    whole = x if memory is None else memory
    return Symbol(tuple(size), whole.dtype, tuple(s * whole.itemsize for s in stride), whole.owner(),
                  whole.start + offset * whole.itemsize)


RULES: dict[str, Any] = {"reshape": Symbol.reshape, "as_strided": as_strided}       # views, or copies, by the strides


# ── NumPy's functions ─────────────────────────────────────────────────────────────────────────────────────────────────


class Functions:
    """NumPy's functions for symbols. The name of an op means the op."""

    def __init__(self, module: Any = np, prefix: str = "") -> None:
        self._module, self._prefix = module, prefix

    def __getattr__(self, name: str) -> Any:
        full = self._prefix + name
        own = getattr(self._module, name, None)
        if full in FUNCTIONS:
            found: Any = FUNCTIONS[full]
        elif full in OPS and is_known(OPS[full]):
            found = Called(OPS[full])
        elif own is None:
            raise AttributeError(f"NumPy has no {full!r}")
        elif full in GROUPS:
            found = Functions(own, f"{full}.")
        elif full in BY_VALUES:
            found = partial(refused, name)
        elif isinstance(own, np.ufunc) and own.signature is None:
            found = partial(elementwise, own, False)
        elif callable(own) and not isinstance(own, type):
            found = partial(tried, own)
        else:
            return own
        setattr(self, name, found)
        return found


def is_known(op: Any) -> bool:
    """Return True if an op is more than the NumPy function of its name."""
    return rule_of(op) is not None or op.kernels.in_arrays is not None or not op.kernels.primitive


class Called:
    """An op as NumPy calls its functions: parameters may follow the inputs, and there may be a dtype."""

    def __init__(self, op: Any) -> None:
        self.kernel, self.names = op.kernels[Symbol.storage], tuple(op.parameters)
        self.count = len(op.inputs) if op.sequence or op.arity is not None else None        # None: any number of inputs

    def __call__(self, *args: Any, **params: Any) -> Any:
        dtype = None if "dtype" in self.names else params.pop("dtype", None)
        found = self.kernel(*args[:self.count],
                            **dict(zip(self.names, args[self.count:] if self.count else (), strict=False)), **params)
        return found if dtype is None else Symbol(found.shape, dtype)

    def at(self, x: Any, index: Any, value: Any = 0) -> None:
        """Check an in-place update at index arrays."""
        x[index] = value


def refused(name: str, *args: Any, **params: Any) -> Any:
    raise NoValues(f"{name}()")


def tried(function: Any, *args: Any, **params: Any) -> Any:
    """The function's own result for arrays of ones."""
    def bare(a: Any) -> Any:
        if isinstance(a, (tuple, list)):
            return type(a)(map(bare, a)) if not hasattr(a, "_fields") else type(a)(*map(bare, a))
        return np.ones(a.shape, a.dtype) if type(a) is Symbol else a

    def without_values(found: Any) -> Any:
        if isinstance(found, (tuple, list)):
            return tuple(map(without_values, found))
        return Symbol(np.shape(found), found.dtype) if hasattr(found, "dtype") else found
    return without_values(function(*map(bare, args), **{k: bare(v) for k, v in params.items()}))


def asked(name: str, x: Any, axis: Any = None, keepdims: Any = None) -> Any:
    """Run `any` or `all`: return a symbol if an axis or `keepdims` is given, else the bool that counts values as
    valid.
    """
    return (name == "all" if axis is None and keepdims is None
            else inferred(OPS[name], x, axis=axis, keepdims=keepdims is True))


def repeat(x: Any, repeats: Any) -> Any:
    """The elements of a line, each so many times."""
    if type(repeats) is Symbol and repeats.size:
        raise NoValues("repeat()")
    return Symbol((0 if type(repeats) is Symbol else int(np.broadcast_to(repeats, x.shape).sum()),), x.dtype)


# ── new arrays ────────────────────────────────────────────────────────────────────────────────────────────────────────


def as_symbol(x: Any, dtype: Any = None) -> Any:
    """Return a symbol with the shape and dtype of an array, or of nested lists of numbers."""
    if not hasattr(x, "shape") or not hasattr(x, "dtype"):
        x = np.asarray(x, dtype)
    if type(x) is Symbol:
        return x if dtype is None or x.dtype == dtype else x.astype(dtype)
    return Symbol(tuple(x.shape), x.dtype if dtype is None else dtype, x.strides if dtype is None else None)


def sizes_of(shape: Any) -> tuple[int, ...]:
    return tuple(int(n) for n in shape) if isinstance(shape, (tuple, list)) else (int(shape),)


def made(shape: Any, dtype: Any = float, **params: Any) -> Any:
    return Symbol(sizes_of(shape), float if dtype is None else dtype)


def full(shape: Any, value: Any, dtype: Any = None) -> Any:
    return Symbol(sizes_of(shape), as_symbol(value).dtype if dtype is None else dtype)


def like(x: Any, *args: Any, dtype: Any = None) -> Any:
    x = as_symbol(x)
    return laid(x.shape, x.dtype if dtype is None else dtype, x)


def arange(*args: Any, dtype: Any = None) -> Any:
    start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
    return Symbol((max(ceil((stop - start) / step), 0),), np.result_type(*args, np.int64(0)) if dtype is None
                  else dtype)


def eye(n: int, m: Any = None, k: int = 0, dtype: Any = float) -> Any:
    return Symbol((n, n if m is None else m), dtype)


FUNCTIONS: dict[str, Any] = {
    "any": partial(asked, "any"), "all": partial(asked, "all"), "real": lambda x: x.real, "imag": lambda x: x.imag,
    "transpose": Symbol.transpose, "reshape": Symbol.reshape, "swapaxes": Symbol.swapaxes,
    "concatenate": lambda xs, axis=0: inferred(OPS["concat"], list(map(as_symbol, xs)), axis=axis), "repeat": repeat,
    "searchsorted": lambda a, v, side="left": Symbol(v.shape, np.intp),
    "broadcast": lambda *args: SimpleNamespace(shape=together(*(a.shape for a in args))),
    "lib.stride_tricks.as_strided": lambda x, shape, strides: Symbol(tuple(shape), x.dtype, tuple(strides), x.owner(),
                                                                     x.start),
    "asarray": as_symbol, "array": as_symbol, "ascontiguousarray": lambda x: x.copy(), "zeros": made, "ones": made,
    "empty": made, "full": full,
    "zeros_like": like, "ones_like": like, "empty_like": like, "full_like": like, "arange": arange, "eye": eye,
    "result_type": lambda *args: np.result_type(*(getattr(a, "dtype", a) for a in args)),
}
