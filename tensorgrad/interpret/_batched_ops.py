"""The ops of the table on arrays with hidden axes: `Op.batch` names a family of ops, or is a rule.

A rule is a function (lot, kernel, *inputs, **params). `kernel` computes on whole arrays, hidden axes included; `lot`
describes these axes.
"""
from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

import numpy as np

from ..ops.indexing import ARRAY
from ._batched_subscripts import examples_of, indexed, spread


def rule_of(op: Any, backend: Any) -> Any:
    """Return the kernel of an op on a backend of batches; None to run its definition, made of ops on batches."""
    if op.by_values:
        return partial(dynamic, op.by_values)
    lot, kernel = backend.lot, runner(op, backend.inner)
    return FAMILIES[op.batch](op, lot, kernel) if isinstance(op.batch, str) else partial(op.batch, lot, kernel)


def runner(op: Any, backend: Any) -> Any:
    """The kernel for whole arrays, without a shortcut back."""
    kernel = op.kernels[backend]
    if not hasattr(kernel, "backward"):
        return kernel

    def run(*args: Any, **params: Any) -> Any:
        served = kernel.forward(*args, **params)
        return op.kernels.from_definition(backend)(*args, **params) if served is NotImplemented else served[0]
    return run


class Lot:
    """The batches of one backend, for rules: their values have `rank` leading hidden axes, of the batch's length, or of
    1 if all examples share the values."""

    def __init__(self, backend: Any) -> None:
        self.backend, self.array, self.rank = backend, backend.array_type, backend.rank

    @property
    def xp(self) -> Any:
        """The op table on batches."""
        return self.backend.xp

    def batch(self, x: Any) -> Any:
        """An array as a batch."""
        return x if type(x) is self.array else self.backend.asarray(x)

    def whole(self, values: Any) -> Any:
        """Results on whole arrays, as batches."""
        return tuple(map(self.array, values)) if isinstance(values, (tuple, list)) else self.array(values)

    def values(self, *args: Any) -> Any:
        """Return the values of operands that broadcast, with equal numbers of axes after the hidden ones; unchanged
        without a batch.
        """
        array = self.array
        ndims = [a.ndim for a in args if type(a) is array]
        if len(args) == 1 or not ndims:
            return [a.values if type(a) is array else a for a in args]
        ndim = max(*ndims, *(len(a.shape) for a in args if hasattr(a, "shape")))
        return [spread(a, ndim) if type(a) is array else a for a in args]

    def hidden(self, *args: Any) -> tuple[int, ...]:
        """Return the broadcast hidden axes of operands."""
        return np.broadcast_shapes(*(a.hidden for a in args if type(a) is self.array))

    def full(self, x: Any, hidden: tuple[int, ...]) -> Any:
        """Return an operand's values, broadcast to these hidden axes."""
        x = self.batch(x)
        return x.values if x.hidden == hidden else self.backend.inner.xp.broadcast_to(x.values, (*hidden, *x.shape))

    def all_full(self, *args: Any) -> list[Any]:
        hidden = self.hidden(*args)
        return [self.full(a, hidden) for a in args]

    def shared(self, *args: Any) -> bool:
        """Return True if all examples share the operands; None is an operand that was not given."""
        return all(type(a) is not self.array or set(a.hidden) <= {1} for a in args)

    def common(self, x: Any) -> Any:
        """The values that all examples share."""
        return x.values.reshape(x.shape) if type(x) is self.array else x

    def axes(self, axis: Any, ndim: int) -> Any:
        """Return one axis or several, counted from the front of the values; None means all."""
        if axis is None:
            return tuple(range(self.rank, self.rank + ndim))
        return (tuple(a % max(ndim, 1) + self.rank for a in axis) if isinstance(axis, (tuple, list))
                else axis % max(ndim, 1) + self.rank)

    def every(self, *parts: Any) -> tuple[Any, ...]:
        """An index, or a template, of each example."""
        return (*(slice(None),) * self.rank, *parts)

    def line(self, x: Any) -> Any:
        """The values, with all elements of an example in a line."""
        return x.values.reshape(*x.hidden, x.size)

    def strided(self, values: Any, shape: Any, strides: Any) -> Any:
        """Return a view of memory, with strides in bytes."""
        return self.backend.inner.module.lib.stride_tricks.as_strided(values, shape, strides)

    def definition(self, op: Any) -> Any:
        """An op's definition, on batches."""
        return op.kernels.from_definition(self.backend)

    def folded(self, function: Any, x: Any) -> Any:
        """Apply a function of independent samples, along the first axis, to the samples of all examples at once."""
        out = function(x.values.reshape(prod(x.hidden) * x.shape[0], *x.shape[1:]))
        return self.whole(out.reshape(*x.hidden, x.shape[0], *out.shape[1:]))

    def one_by_one(self, function: Any, *args: Any, **params: Any) -> Any:
        """Run a function for one example after the other. All its results must have one shape."""
        flat = [part for a in (*args, *params.values()) for part in (a if isinstance(a, (tuple, list)) else (a,))]
        if not any(type(a) is self.array for a in flat):
            return function(*args, **params)
        hidden = self.hidden(*flat)

        def at(place: Any, a: Any) -> Any:
            if type(a) is self.array:
                return a.values[(*(i if n > 1 else 0 for i, n in zip(place, a.hidden, strict=True)), ...)]
            return type(a)(at(place, part) for part in a) if type(a) in (tuple, list) else a
        places = list(np.ndindex(*hidden))
        if not places:      # without examples, take the shape from an example of zeros
            zeros = self.backend.inner.xp.zeros
            filled = (self.array(zeros((*(n or 1 for n in hidden), *a.shape), dtype=a.dtype)) if type(a) is self.array
                      else a for a in args)
            result, cut = self.one_by_one(function, *filled, **params), tuple(map(slice, hidden))
            return self.whole(tuple(r.values[cut] for r in result) if isinstance(result, tuple) else result.values[cut])
        results = [function(*(at(p, a) for a in args), **{name: at(p, a) for name, a in params.items()})
                   for p in places]
        several, inner = isinstance(results[0], (tuple, list)), self.backend.inner
        columns = zip(*results, strict=True) if several else [results]
        parts = [inner.xp.stack([inner.asarray(r) for r in column], axis=0) for column in columns]
        found = self.whole([part.reshape(*hidden, *part.shape[1:]) for part in parts])
        return found if several else found[0]

    def places(self, shape: Any, indices: Any, template: Any, hidden: tuple[int, ...]) -> tuple[Any, Any, int]:
        """Convert index arrays to row numbers in one table of all examples' rows.

        Return the numbers, the shape of the places per example, and how many axes of `shape` they count along; the
        others belong to a row.
        """
        axes = len(shape)
        plain = all(i.dtype.kind != "b" for i in indices) and Ellipsis not in template and None not in template
        while plain and axes > 1 and (axes > len(template) or template[axes - 1] == slice(None)):
            axes -= 1
        xp, count, rows = self.backend.inner.xp, prod(hidden), prod(shape[:axes])
        if axes == 1 and template[0] is ARRAY and plain:
            found = self.batch(indices[0])
            values = found.values % max(rows, 1)
        else:
            arrays, numbers = iter(indices), self.batch(xp.arange(rows).reshape(shape[:axes]))
            found = indexed(numbers, tuple(next(arrays) if part is ARRAY else part
                                           for part in template[:axes if plain else None]))
            values = found.values
        starts = xp.arange(0, count * rows, rows or 1).reshape(*hidden, *(1,) * found.ndim) if rows else 0
        return (values + starts).reshape(-1), found.shape, axes

    def rows(self, x: Any, lead: Any, tail: Any, hidden: tuple[int, ...]) -> Any:
        """Return an operand as one table of rows of shape `tail`, repeated for all examples and all places."""
        shape = (*lead, *tail)
        x = self.batch(x)
        surplus = max(x.ndim - len(shape), 0)
        values = spread(x, len(shape)) if not surplus else x.values.reshape(*x.hidden, *x.shape[surplus:])
        return self.backend.inner.xp.broadcast_to(values, (*hidden, *shape)).reshape(prod(hidden) * prod(lead), *tail)


# ── families ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def elementwise(op: Any, lot: Lot, kernel: Any) -> Any:
    """Ops whose operands broadcast."""
    def run(*args: Any, **params: Any) -> Any:
        return lot.whole(kernel(*lot.values(*args), **params))
    return run


def trailing(op: Any, lot: Lot, kernel: Any) -> Any:
    """Ops on the last axes, or on single elements, whose kernels accept any leading axes."""
    def run(x: Any, *rest: Any, **params: Any) -> Any:
        return lot.whole(kernel(x.values, *rest, **params))
    return run


def along(op: Any, lot: Lot, kernel: Any, one: bool = False) -> Any:
    """Ops whose parameters name axes, with operands of equal rank; `one`: one axis, or None for all elements."""
    def run(*args: Any, **params: Any) -> Any:
        x = args[0]
        if one and params.get("axis") is None:
            keep = (1,) * x.ndim if params.get("keepdims") else ()
            return lot.array(kernel(lot.line(x), axis=lot.rank).reshape(*x.hidden, *keep))
        arrays = [x.values] if len(args) == 1 else lot.all_full(*args)
        if x.ndim:
            for name in op.axes:
                params[name] = lot.axes(params.get(name, op.parameters[name]), x.ndim)
            return lot.whole(kernel(*arrays, **params))
        # a 0-d operand counts as having an axis
        out = kernel(*(a.reshape(*a.shape, 1) for a in arrays), **params | dict.fromkeys(op.axes, lot.rank))
        found = lot.whole([o.reshape(o.shape[:lot.rank]) for o in (out if op.several else [out])])
        return found if op.several else found[0]
    return run


def shaped(op: Any, lot: Lot, kernel: Any) -> Any:
    """Ops that put values into zeros of a shape."""
    def run(*args: Any, shape: Any, **params: Any) -> Any:
        arrays = lot.all_full(*args)
        for name in op.axes:
            params[name] = lot.axes(params.get(name, op.parameters[name]), len(shape))
        if "index" in params:
            params["index"] = lot.every(*params["index"])
        return lot.whole(kernel(*arrays, shape=(*arrays[0].shape[:lot.rank], *shape), **params))
    return run


def stacked(op: Any, lot: Lot, kernel: Any) -> Any:
    """Functions of stacks of matrices and vectors."""
    def run(*args: Any, **params: Any) -> Any:
        hidden = lot.hidden(*args)
        lead = max(a.ndim - n for a, n in zip(args, op.core, strict=True) if type(a) is lot.array)
        return lot.whole(kernel(*(
            lot.full(a, hidden).reshape(*hidden, *(1,) * (lead + n - a.ndim), *a.shape) if type(a) is lot.array else a
            for a, n in zip(args, op.core, strict=True)), **params))
    return run


def joined(op: Any, lot: Lot, kernel: Any) -> Any:
    """Operands side by side along an axis."""
    def run(xs: Any, *, axis: int = 0) -> Any:
        return lot.whole(kernel(lot.all_full(*xs), axis=axis + lot.rank if axis >= 0 else axis))
    return run


def dynamic(name: str, *args: Any, **params: Any) -> Any:
    """Raise the error of ops whose results have a shape that depends on values."""
    raise examples_of(name)


FAMILIES: dict[str, Any] = {
    "": lambda op, lot, kernel: partial(lot.one_by_one, kernel), "elementwise": elementwise, "trailing": trailing,
    "along": along,
    "along one": partial(along, one=True), "shaped": shaped, "stacked": stacked, "joined": joined,
    "defined": lambda op, lot, kernel: None,
}


# ── new arrays, and checks of values ──────────────────────────────────────────────────────────────────────────────────


class Makers:
    """The functions of `xp` for batches that are no ops: new arrays, which all examples share, and constants."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend

    def __getattr__(self, name: str) -> Any:
        backend = self._backend
        if name not in MADE:
            raise AttributeError(name)
        inner: Any = getattr(backend.inner.xp, name)

        def make(first: Any, *args: Any, **params: Any) -> Any:
            if name.endswith("_like"):
                return backend.array_type(inner(backend.lot.batch(first).values, *args, **params))
            if name in ("arange", "eye"):
                return backend.asarray(inner(first, *args, **params))
            shape = (first,) if isinstance(first, int) else first
            return backend.array_type(inner((1,) * backend.rank + tuple(shape), *args, **params))
        setattr(self, name, make)
        return make

    def asarray(self, x: Any) -> Any:
        return self._backend.asarray(x)


MADE = {"zeros", "ones", "full", "empty", "zeros_like", "ones_like", "full_like", "empty_like", "arange", "eye"}


class Whole:
    """The `xp` of batches for checks of values: `any` and `all` reduce over all examples to a bool."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend.xp, name)

    def any(self, x: Any) -> Any:
        return x.any()

    def all(self, x: Any) -> Any:
        return x.all()
