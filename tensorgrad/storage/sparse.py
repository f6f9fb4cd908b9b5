"""Sparse arrays: values, and a pattern that tells their places.

A pattern never changes, and its index arrays cannot be written to: they are checked once, when it is made, and
whatever is derived from them (the order of the places, rows, the transpose) is kept with it. Arrays of one pattern
share it.

A sparse storage class belongs to a dense one, on whose arrays it computes. The class has no kernels of its own: an op
runs by its rule in `SparseStorage.rules`, which says what it does in terms of patterns and of ops on values. A rule
runs on arrays, for the backward sweep, and on Tensors, where the ops that it calls are recorded: so a rule needs no
gradient.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from math import prod
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from ..dtype import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr
from ..runtime.small_floats import computed
from .base import Storage, attach_operators

LARGEST = (1 << 63) - 1


def fixed(array: Any) -> Any:
    """Return an array that cannot be written to: itself, after it was made for this."""
    if isinstance(array, np.ndarray):
        array.flags.writeable = False
    return array


class Csr:
    """The places of a matrix's values, row by row: those of row i are `indices[indptr[i]:indptr[i + 1]]`.

    A row's columns are in no order, and may repeat; then their values add up. Both arrays are of one dtype, int32 or
    int64, contiguous, checked, and cannot be written to.
    """

    __slots__ = ("indptr", "indices", "shape", "module", "_rows", "_transposed")

    def __init__(self, indptr: Any, indices: Any, shape: tuple[int, int], module: Any = np) -> None:
        self.indptr, self.indices, self.shape, self.module = indptr, indices, shape, module
        self._rows: Any = None
        self._transposed: Any = None

    def __repr__(self) -> str:
        return f"Csr({self.shape}, {self.indices.size} values)"

    @property
    def rows(self) -> Any:
        """The row of each value."""
        if self._rows is None:
            self._rows = fixed(rows_of(self.module, self.indptr, self.indices))
        return self._rows

    @property
    def transposed(self) -> tuple[Csr, Any]:
        """The places in the transpose, and the order in which the values go there."""
        if self._transposed is None:
            order = fixed(order_of(self.module, self.indices, self.shape[1]))
            columns = self.indices[order]
            starts = starts_of(self.module, columns, self.shape[1]).astype(self.indices.dtype)
            flipped = Csr(fixed(starts), fixed(self.rows[order]), self.shape[::-1], self.module)
            self._transposed = flipped, order
        return self._transposed  # type: ignore[no-any-return]


def order_of(module: Any, indices: Any, most: int) -> Any:
    """The order of indices below `most`; equal ones keep theirs. NumPy sorts digits of 16 bits by counting."""
    if indices.size < 1 << 12 or most > 1 << 32:
        return module.argsort(indices, kind="stable")
    order = module.argsort((indices & 0xFFFF).astype("uint16"), kind="stable")
    if most <= 1 << 16:
        return order
    return order[module.argsort((indices[order] >> 16).astype("uint16"), kind="stable")]


def rows_of(module: Any, indptr: Any, indices: Any) -> Any:
    """Return the row of each value, given where rows start."""
    place = module.arange(indices.shape[0])
    return (module.searchsorted(indptr, place, side="right") - 1).astype(indices.dtype)


def starts_of(module: Any, rows: Any, count: int) -> Any:
    """Return where each of `count` rows starts, given the row of each value in ascending order."""
    return module.searchsorted(rows, module.arange(count + 1), side="left")


class Pattern:
    """The places of values: a layout, a shape, and index arrays. The last axes of values may be dense."""

    layout: Any
    shape: tuple[int, ...]
    backend: type[Storage]              # of the index arrays, and of the values
    dense_dim: int

    @property
    def sparse_dim(self) -> int:
        return len(self.shape) - self.dense_dim

    @property
    def dense_shape(self) -> tuple[int, ...]:
        return self.shape[self.sparse_dim:]

    @property
    def count(self) -> int:
        """The number of values."""
        return self.values_shape[0]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.layout.name}, {self.shape}, {self.count} values)"

    values_shape: tuple[int, ...]
    entries: Coo                        # the place of each number among the values, in their order


class Coo(Pattern):
    """A column of indices for each value. Coalesced: in order, and no place twice."""

    layout = sparse_coo

    def __init__(self, indices: Any, shape: tuple[int, ...], backend: type[Storage], coalesced: bool = False) -> None:
        self.indices, self.shape, self.backend = fixed(indices), shape, backend
        self.dense_dim = len(shape) - indices.shape[0]
        self.coalesced = coalesced or indices.shape[1] < 2
        self.values_shape = (indices.shape[1], *self.dense_shape)
        self._keys: Any = None
        self._ordered: Any = None
        self._csr: Any = None

    @property
    def entries(self) -> Coo:  # type: ignore[override]
        return self

    @property
    def keys(self) -> Any:
        """Return for each value the number of its place."""
        if self._keys is None:
            module, sizes = self.backend.module, self.shape[:self.sparse_dim]
            keys = module.zeros(self.count, dtype="int64")
            for index, size in zip(self.indices, sizes):
                keys = keys * size + index
            self._keys = fixed(keys)
        return self._keys

    @property
    def places(self) -> int:
        """Return the number of places in the tensor, with and without a value."""
        return prod(self.shape[:self.sparse_dim])

    @property
    def ordered(self) -> tuple[Coo, Any, Any]:
        """Return (the coalesced pattern, for each value its place there, for each place there one of its values)."""
        if self._ordered is None:
            module, count = self.backend.module, self.count
            if self.coalesced:
                own = fixed(module.arange(count))
                return self, own, own
            order = module.argsort(self.keys, kind="stable")
            keys = self.keys[order]
            new = module.ones(count, dtype=bool)
            new[1:] = keys[1:] != keys[:-1]
            slots = module.empty(count, dtype="int64")
            slots[order] = module.cumsum(new) - 1
            first = order[new]
            self._ordered = Coo(self.indices[:, first], self.shape, self.backend, True), fixed(slots), fixed(first)
        return self._ordered  # type: ignore[no-any-return]

    @property
    def csr(self) -> tuple[Csr, Any]:
        """The rows of a matrix, and the order in which the values go there; None where they are in order."""
        if self._csr is None:
            module, (rows, columns), order = self.backend.module, self.indices, None
            if not self.coalesced and bool((rows[1:] < rows[:-1]).any()):
                order = fixed(module.argsort(rows, kind="stable"))
                rows, columns = rows[order], columns[order]
            starts = fixed(starts_of(module, rows, self.shape[0]).astype("int64"))
            shape = self.shape[0], self.shape[1]
            self._csr = Csr(starts, fixed(module.ascontiguousarray(columns)), shape, module), order
        return self._csr  # type: ignore[no-any-return]


class Compressed(Pattern):
    """A matrix by rows or by columns, of elements or of blocks; there may be batch axes in front."""

    def __init__(self, layout: Any, compressed: Any, plain: Any, shape: tuple[int, ...], backend: type[Storage],
                 blocksize: tuple[int, int] = (1, 1), dense_dim: int = 0) -> None:
        self.layout, self.shape, self.backend, self.blocksize = layout, shape, backend, blocksize
        self.compressed, self.plain, self.dense_dim = fixed(compressed), fixed(plain), dense_dim
        blocks = blocksize if self.blocked else ()
        self.values_shape = (*plain.shape, *blocks, *self.dense_shape)
        self._entries: Any = None
        self._csr: Any = None

    @property
    def by_rows(self) -> bool:
        return self.layout in (sparse_csr, sparse_bsr)

    @property
    def blocked(self) -> bool:
        return self.layout in (sparse_bsr, sparse_bsc)

    @property
    def batch(self) -> tuple[int, ...]:
        return tuple(self.plain.shape[:-1])

    @property
    def count(self) -> int:
        return int(self.plain.shape[-1])

    @property
    def lines(self) -> int:
        """The number of rows (or columns) of blocks."""
        return int(self.compressed.shape[-1]) - 1

    @property
    def entries(self) -> Coo:  # type: ignore[override]
        if self._entries is None:
            module, count = self.backend.module, self.count
            batches = prod(self.batch)
            plain = self.plain.reshape(-1).astype("int64")
            which = module.repeat(module.arange(batches), count)
            starts = self.compressed.reshape(batches, self.lines + 1)[:, :-1].astype("int64")
            ends = (starts + which_start(module, batches, count)).reshape(-1)
            place = module.arange(batches * count)
            lines = (module.searchsorted(ends, place, side="right") - 1) - which * self.lines
            rows, columns = (lines, plain) if self.by_rows else (plain, lines)
            high, wide = self.blocksize
            if self.blocked:
                rows = (rows[:, None, None] * high + module.arange(high)[:, None] + module.zeros((1, wide), "int64"))
                columns = (columns[:, None, None] * wide + module.zeros((high, 1), "int64") + module.arange(wide))
                which = module.repeat(which, high * wide)
                rows, columns = rows.reshape(-1), columns.reshape(-1)
            indices, left = [columns, rows], which
            for size in reversed(self.batch):
                indices.append(left % size)
                left = left // size
            self._entries = Coo(module.stack(indices[::-1]), self.shape, self.backend)
            if self.layout is sparse_csr:           # rows are in order, and their columns are, too
                self._entries.coalesced = self._entries.coalesced or increasing(self._entries.keys)
        return self._entries  # type: ignore[no-any-return]

    @property
    def csr(self) -> tuple[Csr, Any]:
        """The rows of a matrix, and the order in which the values go there; None where they are in order."""
        if self.layout is not sparse_csr and self.layout is not sparse_csc:
            return self.entries.csr
        if self._csr is None:
            lines, rest = self.shape[:2] if self.by_rows else self.shape[1::-1]
            own = Csr(self.compressed, self.plain, (lines, rest), self.backend.module)
            self._csr = (own, None) if self.by_rows else own.transposed
        return self._csr  # type: ignore[no-any-return]


def increasing(keys: Any) -> bool:
    return bool((keys[1:] > keys[:-1]).all())


def which_start(module: Any, batches: int, count: int) -> Any:
    """Return the number of values before each batch, as a column."""
    return (module.arange(batches) * count).reshape(-1, 1)


class Unstrided(AttributeError, NotImplementedError):
    """The error of code that expects an array to be a block of memory."""


class NoStrides(AttributeError, RuntimeError):
    """The error of code that asks a compressed array for its steps in memory."""


class SparseArray:
    """Values at the places of a pattern, and zeros elsewhere."""

    __slots__ = ("pattern", "values")
    __array_priority__ = 2000

    def __init__(self, pattern: Pattern, values: Any) -> None:
        self.pattern, self.values = pattern, values

    shape = property(lambda self: self.pattern.shape)
    ndim = property(lambda self: len(self.pattern.shape))
    size = property(lambda self: prod(self.pattern.shape))
    dtype = property(lambda self: self.values.dtype)
    itemsize = property(lambda self: self.values.itemsize)
    layout = property(lambda self: self.pattern.layout)
    backend: Any = property(lambda self: sparse_of(self.pattern.backend))  # type: ignore[has-type]
    real = property(lambda self: SparseArray(self.pattern, self.values.real))

    flags = SimpleNamespace(c_contiguous=False, f_contiguous=False, writeable=True)

    @property
    def nbytes(self) -> int:
        raise RuntimeError("nbytes is not defined for sparse tensors.  If you want the size of the constituent "
                           "tensors, add the nbytes of the indices and values.  If you want the size of the  "
                           "equivalent dense tensor, multiply numel() by element_size()")

    def __getattr__(self, name: str) -> Any:
        layout = self.pattern.layout
        if name == "strides":
            self.check_strides(name, NoStrides)
        public = SparseStorage.hooks.get("public_name", str)(name)
        kind = "Sparse" if layout is sparse_coo else "SparseCsr"
        device = "CPU" if self.pattern.backend.device.type == "cpu" else "CUDA"
        raise Unstrided(f"Could not run 'aten::{public}' with arguments from the '{kind}{device}' backend: a tensor of "
                        f"the layout {layout} has no {name}")

    def check_strides(self, name: str, error: type[Exception] = RuntimeError) -> None:
        """Raise PyTorch's error for a property of memory that a compressed tensor does not have."""
        if (layout := self.pattern.layout) is not sparse_coo:
            raise error(f"Sparse {SHOWN[layout][-3:].upper()} tensors do not have {name}")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **params: Any) -> Any:
        """Compute `dense + sparse` and its like, and `dense += sparse`."""
        if method != "__call__" or params:
            return NotImplemented
        if out is not None and ufunc is np.add and out[0] is inputs[0]:
            add_into(inputs[0], self)
            return out[0]
        return NotImplemented if out is not None else getattr(self.backend.xp, ufunc.__name__)(*inputs)

    def astype(self, dtype: Any, copy: bool = True) -> SparseArray:
        values = self.pattern.backend.cast(self.values, dtype)
        return SparseArray(self.pattern, values.copy() if copy and values is self.values else values)

    def copy(self) -> SparseArray:
        return SparseArray(self.pattern, self.values.copy())

    def conj(self) -> SparseArray:
        return SparseArray(self.pattern, self.values.conj())

    def become(self, other: SparseArray) -> None:
        """Take the pattern of another array, and its values, cast to this dtype."""
        self.pattern, self.values = other.pattern, other.astype(self.dtype).values

    def __len__(self) -> int:
        return self.pattern.shape[0]

    def __repr__(self) -> str:
        return f"SparseArray({self.pattern.layout}, shape={self.shape}, values={self.values!r})"


def pattern_of(x: Any) -> Pattern | None:
    """Return the pattern of a sparse array, or of a Tensor that has one; None for all others."""
    x = getattr(x, "array", x)
    return x.pattern if type(x) is SparseArray else None


def values_at(x: SparseArray, pattern: Pattern) -> Any:
    """Return the values at the places of a pattern, in its order; zeros where there is no value."""
    if x.pattern is pattern:
        return x.values
    module, own, wanted = pattern.backend.module, x.pattern.entries, pattern.entries
    values = x.values.reshape(own.values_shape)
    if own.dense_dim != wanted.dense_dim:
        raise RuntimeError(f"sparse_mask(): the mask has {wanted.dense_dim} dense dimensions, and the tensor "
                           f"{own.dense_dim}")
    unique, slots, _ = own.ordered
    if unique is not own:
        values = added(pattern.backend, values, slots, unique.count)
    if not unique.count:
        return module.zeros(pattern.values_shape, dtype=values.dtype)
    place = module.minimum(module.searchsorted(unique.keys, wanted.keys), unique.count - 1)
    found = values[place]
    found[unique.keys[place] != wanted.keys] = module.zeros((), dtype=values.dtype)
    return found.reshape(pattern.values_shape)


def joined(a: SparseArray, b: SparseArray) -> SparseArray:
    """Return the sum of two arrays: by place if both are coalesced, else their values, one after the other."""
    one, two = a.pattern, b.pattern
    if (not isinstance(one, Coo) or not isinstance(two, Coo) or one.coalesced and two.coalesced
            or one.sparse_dim != two.sparse_dim):
        return a + b  # type: ignore[operator, no-any-return]
    module = one.backend.module
    return SparseArray(Coo(module.concatenate([one.indices, two.indices], axis=1), one.shape, one.backend),
                       module.concatenate([a.values, b.values]))


def add_into(array: Any, x: SparseArray, scale: Any = 1) -> None:
    """array += scale · x, at the places of x alone."""
    entries = x.pattern.entries
    unique, slots, _ = entries.ordered
    values, cast = x.values.reshape(entries.values_shape), entries.backend.cast
    if unique is not entries:
        values = added(entries.backend, values, slots, unique.count)
    if not unique.count:
        return
    place = tuple(unique.indices)
    if values.dtype.kind == "V":                # only stored: added up with more bits
        wide = computed(values.dtype)
        array[place] = cast(cast(array[place], wide) + cast(values, wide) * scale, array.dtype)
    else:
        array[place] += values if scale == 1 else (values * scale).astype(values.dtype, copy=False)


def added(backend: Any, values: Any, slots: Any, count: int) -> Any:
    """Return the sums of the values that go to each of `count` slots."""
    module, narrow = backend.module, values.dtype.kind == "V"
    wide = backend.cast(values, computed(values.dtype)) if narrow else values
    out = module.zeros((count, *values.shape[1:]), dtype=wide.dtype)
    module.add.at(out, slots, wide)
    return backend.cast(out, values.dtype) if narrow else out


OPERATORS = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "pow": "power",
             "neg": "negative", "matmul": "matmul", "abs": "absolute", "pos": "positive"}


def _computed(function: Any, operands: Any, self: SparseArray) -> Any:
    name = function.__name__.strip("_")
    if name == "add" and type(operands[1]) is not SparseArray:      # in the order that has a rule
        operands = operands[::-1]
    run = getattr(self.backend.xp, OPERATORS.get(name, name))
    if self.dtype.kind != "V":
        return run(*operands)
    cast, wide = self.pattern.backend.cast, computed(self.dtype)        # only stored: computed with more bits
    found = run(*[o.astype(wide) if type(o) is SparseArray else cast(o, wide) if hasattr(o, "dtype") else o
                  for o in operands])
    return found.astype(self.dtype) if type(found) is SparseArray else cast(found, self.dtype)


attach_operators(SparseArray, _computed)


class Functions:
    """Functions on sparse arrays, by the rules; and on dense arrays among them."""

    def __init__(self, backend: type[SparseStorage]) -> None:
        self.backend = backend

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        backend = self.backend
        dense, rule = getattr(backend.dense.xp, name), backend.rules.get(name)

        def call(*args: Any, **params: Any) -> Any:
            if rule is None or not any(type(a) is SparseArray for a in (*args, *_inside(args))):
                return dense(*args, **params)
            return rule(backend.dense.xp, *args, **params)
        return call


def _inside(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the members of a sequence of arrays, which is the first argument."""
    return tuple(args[0]) if args and isinstance(args[0], (list, tuple)) else ()


class SparseStorage(Storage):
    """The storage of sparse arrays whose index and value arrays are `dense`'s. `sparse_of` makes a class of each."""

    dense: ClassVar[Any] = None
    array_type = SparseArray
    writes = False
    # rule(xp, *inputs, **params) of each op that takes sparse inputs: xp is that of the dense backend
    rules: ClassVar[dict[str, Callable[..., Any]]] = {}
    # what the module of the rules gives: "kernel" of an op by its rule, "refuse", which raises an error, …
    hooks: ClassVar[dict[str, Callable[..., Any]]] = {}

    @classmethod
    def asarray(cls, data: Any, dtype: Any = None) -> Any:
        if type(data) is SparseArray:
            return data if dtype is None else data.astype(dtype, copy=False)
        return cls.dense.asarray(data, dtype)

    @classmethod
    def host(cls, array: Any) -> Any:
        raise TypeError(f"can't convert {SHOWN[array.layout]} layout tensor to numpy. Use Tensor.to_dense() first.")

    @classmethod
    def one(cls, array: Any) -> Any:
        """The sum of the values at the only place, on the host."""
        if not isinstance(array.pattern, Coo):
            cls.hooks["refuse"]("_local_scalar_dense", array)
        values = array.values.reshape(-1)
        return cls.dense.host(added(cls.dense, values, cls.dense.module.zeros(values.shape, dtype="int64"), 1))

    @staticmethod
    def assign(array: Any, values: Any) -> None:
        array.become(values)

    @staticmethod
    def cast(array: Any, dtype: Any) -> Any:
        """Return the array itself: operands come to one dtype in the ops on values that a rule calls."""
        return array

    @classmethod
    def native(cls, op: Any) -> Any:
        if op.crosses:
            return partial(op.forward, cls.dense.xp)
        return cls.hooks["kernel"](op, cls)

    @classmethod
    def aliases(cls, a: Any, b: Any) -> bool:
        return a is b


SHOWN = {sparse_coo: "Sparse", sparse_csr: "SparseCsr", sparse_csc: "SparseCsc", sparse_bsr: "SparseBsr",
         sparse_bsc: "SparseBsc"}


@cache
def sparse_of(dense: type[Storage]) -> type[SparseStorage]:
    """Return the storage class of sparse arrays on the device of a dense backend."""
    made: Any = type(f"Sparse{dense.__name__}", (SparseStorage,), {"dense": dense})
    made.device = dense.device
    made.module = Functions(made)
    return made  # type: ignore[no-any-return]


Storage.layouts[SparseArray] = sparse_of
