"""Arrays that know which value of a graph they hold, and the storage whose tensors they are: what records a program.

A recorded array wraps one of NumPy's, if the inputs have no say in it, else a symbol; or, where a program may read values, an array computed from
example inputs. The ops of the table run on what is wrapped, and each application becomes a step of the graph.

Graphs are functional: a write in place gives the array written to a new value, and its bases new values that contain it (`set_view`). An array and
its views share a `Memory`, which dates the writes; other views derive their values anew when they are next asked for them.
"""
from __future__ import annotations

import operator
from functools import cache, partial
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..interpret._batched_ops import runner as _runner
from ..interpret._symbol import Symbol
from ..interpret.symbols import SymbolStorage
from ..ops.base import OPS
from ..ops.indexing import ARRAY
from ..storage.base import TWO_SIDED, UFUNCS, NoValues, Storage, attach_operators
from ..storage.cpu import NumpyStorage
from .lines import CannotLower, ReadsValues, user_line
from .recorder import Recorder, here
from .steps import Draw, Piece

clock = count(1)
runner = cache(_runner)
CLONE, COPIED, SET_VIEW = OPS["clone"], OPS["copied"], OPS["set_view"]


class Memory:
    """What an array and its views share: when it was last written to. `name` is that of the model's tensor, `fixed` whether no write is let through."""

    __slots__ = ("written", "name", "fixed")

    def __init__(self, name: str | None = None, fixed: bool = False) -> None:
        self.written, self.name, self.fixed = 0, name, fixed


class Recorded:
    """An array of the program that is recorded.

    `inner` is what it wraps, `known` whether that holds whatever the inputs are, `node` its value in the graph: None for a constant that no step
    needs yet. A view knows its `parent`, and by which chain of (op, parameters) it was made from that (`made_by`).
    """

    __slots__ = ("shape", "dtype", "_inner", "_node", "_known", "parent", "made_by", "memory", "made", "__weakref__")
    __array_priority__ = 3000
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, inner: Any, node: Any = None, known: bool = True, parent: Any = None, made_by: Any = None, memory: Any = None) -> None:
        self.shape, self.dtype = tuple(inner.shape), inner.dtype
        self._inner, self._node, self._known = inner, node, known
        self.parent, self.made_by, self.made = parent, made_by, next(clock)
        self.memory = memory if memory is not None else parent.memory if parent is not None else Memory()

    # ── what it holds now ─────────────────────────────────────────────────────────────────────────────────────────────

    def settled(self) -> Recorded:
        """Itself; a view whose memory has been written to finds its value anew."""
        if self.parent is not None and self.memory.written > self.made:
            self.made = next(clock)
            found = self.parent
            for op, params in self.made_by:
                found = found[params["number"]] if op is Piece else run(op, found, **params)
            self._inner, self._node, self._known = found._inner, found._node, found._known
        return self

    inner = property(lambda self: self.settled()._inner)
    node = property(lambda self: self.settled()._node)
    known = property(lambda self: self.settled()._known)
    unknown = property(lambda self: not self.known)

    def take(self, other: Recorded) -> None:
        """Hold what another array does, laid as this one is."""
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
    size = property(lambda self: self._inner.size)
    itemsize = property(lambda self: self.dtype.itemsize)
    nbytes = property(lambda self: self._inner.size * self.dtype.itemsize)
    strides = property(lambda self: self.inner.strides)
    base = property(lambda self: self.parent)

    @property
    def flags(self) -> Any:
        flags = self.inner.flags
        return SimpleNamespace(c_contiguous=flags.c_contiguous, f_contiguous=flags.f_contiguous, writeable=True, owndata=self.parent is None)

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
        """The values, for a program that looks at them."""
        if not self.known:
            if here.recorder is None:
                raise ReadsValues("a tensor is used after its program was recorded", user_line())
            here.recorder.read(what)
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
        """Along an axis, a step; of all elements, the answer to a check of arguments: values that depend on the inputs are taken for valid."""
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
        parts = _without_masks(index if isinstance(index, tuple) else (index,))
        if not any(map(_is_array, parts)):
            return applied("get_slice", self, index=parts)
        return applied("index", self, *filter(_is_array, parts), template=_template(parts))

    def __setitem__(self, index: Any, value: Any) -> None:
        write(self, index, value)

    T = property(lambda self: applied("permute_dims", self, axes=tuple(range(self.ndim))[::-1]))
    real = property(lambda self: self if self.dtype.kind != "c" else applied("real", self))
    imag = property(lambda self: applied("imag", self))

    def astype(self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True) -> Any:
        return (applied("clone", self) if copy else self) if self.dtype == dtype else applied("cast", self, dtype=np.dtype(dtype))

    def reshape(self, *shape: Any, order: str = "C") -> Any:
        return applied("reshape", self, shape=shape[0] if len(shape) == 1 else shape)

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
        return foreign("view of other dtype", lambda x: x.view(dtype), (self,), {})

    def conj(self) -> Any:
        return self if self.dtype.kind != "c" else applied("conj", self)

    def fill(self, value: Any) -> None:
        self[...] = value

    def nonzero(self) -> Any:
        return foreign("a mask as an index", lambda x: x.nonzero(), (self,), {})


def _operate(function: Any, operands: Any, self: Any) -> Any:
    return applied(NAMES.get(name := UFUNCS.get(function.__name__, function.__name__), name), *operands)


attach_operators(Recorded, _operate)


def _attach_in_place(name: str) -> None:
    def method(self: Recorded, other: Any) -> Recorded:
        self[...] = _operate(getattr(operator, f"__{name}__"), (self, other), self)
        return self
    setattr(Recorded, f"__i{name}__", method)


for _name in TWO_SIDED:
    _attach_in_place(_name)


# ── steps ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def applied(name: str, *args: Any, **params: Any) -> Any:
    """An op of the table, of arrays."""
    return run(OPS[name], *args, **params)


def run(op: Any, *args: Any, **params: Any) -> Any:
    """Compute an op on what its operands wrap, and write down the step, or those of its definition."""
    recorder: Recorder = here.recorder
    operands = tuple(args[0]) if op.sequence else args
    if recorder is None:
        raise ReadsValues("a tensor is used after its program was recorded", user_line())
    if recorder.whole is not None and not recorder.whole(op, operands, params):
        return op.forward(Definitions(), *args, **params)
    if type(params.get("memory")) is Recorded:
        operands, params = _of_memory(**params)
    operands = tuple(Recorded(a) if isinstance(a, np.ndarray) else a for a in operands)
    results, known = compute(op, operands, params)
    arrays = [a for a in operands if type(a) is Recorded]
    if op is CLONE or op is COPIED:
        nodes = [argument(operands[-1]) if operands[-1].node is not None or not known else None]
    elif known and recorder.fold and all(a.node is None for a in arrays):
        nodes = [None] * len(results)
    else:
        given = list(map(argument, operands))
        nodes = recorder.step(op, [given] if op.sequence else given, params, results, known, op.several)
    source = arrays[0] if arrays and arrays[0] is operands[0] and (op.view or not op.several) else None
    memory = None if source is None else owner(source.inner)
    outs = []
    for k, (inner, node) in enumerate(zip(results, nodes, strict=True)):
        if source is not None and inner.size and owner(inner) is memory:
            chain = ((op, params), (Piece, {"number": k})) if op.several else ((op, params),)
            outs.append(Recorded(inner, node, known, source, chain))
        else:
            outs.append(Recorded(inner, node, known))
    return outs if op.several else outs[0]


def _of_memory(*, memory: Recorded, **params: Any) -> tuple[tuple[Recorded], dict[str, Any]]:
    """A view by steps in memory (`as_strided`), as one of the array that spans the memory."""
    strides = tuple(step // memory.itemsize for step in memory.strides)
    return (memory,), {**params, "layout": (memory.shape, strides, 0)}


class Definitions:
    """`xp` for definitions: checks of values, which are any() and all() of all elements, take those for valid that depend on the inputs."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(RecordingStorage.xp, name)
        if name not in ("any", "all"):
            return found
        return lambda x, **params: found(x, **params) if params or x.known else name == "all"


def argument(a: Any) -> Any:
    """What stands for an operand in a step."""
    if type(a) is not Recorded:
        return a
    if a.node is not None:
        return a.node
    return here.recorder.constant(a.inner)


def compute(op: Any, operands: Any, params: Any) -> tuple[tuple[Any, ...], bool]:
    """The results of an op, and whether they hold whatever the inputs are."""
    known = all(a.known for a in operands if type(a) is Recorded)
    bare = [a.inner if type(a) is Recorded else a for a in operands]
    if known or here.recorder.reading is not None:
        return results_of(op, NumpyStorage, bare, params), known
    try:
        return symbols_of(op, [SymbolStorage.asarray(a) if isinstance(a, np.ndarray) else a for a in bare], params), False
    except NoValues as error:
        what = str(error)
    try:                                              # what is known may say more
        return results_of(op, SymbolStorage, bare, params), False
    except (NoValues, TypeError, AttributeError):
        raise ReadsValues(f"{op.opname}: {what.partition(' needs values')[0]}", user_line()) from None


def results_of(op: Any, backend: Any, operands: Any, params: Any) -> tuple[Any, ...]:
    found = runner(op, backend)(operands, **params) if op.sequence else runner(op, backend)(*operands, **params)
    return tuple(x if type(x) is Symbol else np.asarray(x) for x in (found if op.several else (found,)))


inferred: dict[Any, Any] = {}        # (op, operands, parameters) → (shape, dtype, strides) of each result: models have many layers that are alike
MOST = 4096


def symbols_of(op: Any, operands: Any, params: Any) -> tuple[Any, ...]:
    """The results of an op on symbols; those that are no views, and take long to work out, are remembered."""
    if op.view:
        return results_of(op, SymbolStorage, operands, params)
    key = (op, *((a.shape, a.dtype, a._strides) if type(a) is Symbol else (type(a), a) for a in operands),
           *((name, type(value), value) for name, value in params.items()))
    try:
        known = inferred.get(key)
    except TypeError:                                  # a parameter that has no hash
        return results_of(op, SymbolStorage, operands, params)
    if known is None:
        found = results_of(op, SymbolStorage, operands, params)
        if len(inferred) >= MOST:
            inferred.clear()
        if all(x.base is None for x in found):
            inferred[key] = tuple((x.shape, x.dtype, x._strides) for x in found)
        return found
    return tuple(Symbol(*one) for one in known)


def owner(array: Any) -> Any:
    """The array whose memory another one sees."""
    if type(array) is Symbol:
        return array.owner()
    while isinstance(base := getattr(array, "base", None), np.ndarray):
        array = base
    return array


# ── writes in place ───────────────────────────────────────────────────────────────────────────────────────────────────


def _is_array(part: Any) -> bool:
    return isinstance(part, (Recorded, np.ndarray, list))


def _template(parts: Any) -> tuple[Any, ...]:
    return tuple(ARRAY if _is_array(p) else p for p in parts)


def _without_masks(parts: Any) -> tuple[Any, ...]:
    """An index whose masks are replaced by the places where they are true."""
    found: list[Any] = []
    for part in parts:
        part = np.asarray(part) if isinstance(part, list) else part
        found += part.nonzero() if _is_array(part) and part.dtype.kind == "b" else [part]
    return tuple(found)


def write(x: Recorded, index: Any, value: Any) -> None:
    """x[index] = value."""
    parts = _without_masks(index if isinstance(index, tuple) else (index,))
    value = RecordingStorage.asarray(value, x.dtype)
    if any(map(_is_array, parts)):
        written(x, applied("index_put", x, value, *filter(_is_array, parts), template=_template(parts)))
        return
    target = x if all(p is Ellipsis for p in parts) else x[parts]
    if value.shape != target.shape:
        if value.ndim > target.ndim:
            value = value.reshape(value.shape[value.ndim - target.ndim:])
        value = applied("broadcast_to", value, shape=target.shape) if value.shape != target.shape else value
    written(target, value)


def written(x: Recorded, new: Recorded) -> None:
    """Let an array hold what another holds, and everything that it is a view of, too."""
    memory = x.memory
    if memory.fixed:
        raise CannotLower(f"a write in place to {memory.name}", user_line())
    if memory.name is not None and memory.name not in here.recorder.written:
        here.recorder.written.append(memory.name)
    x.settled()
    chain = [x]
    while chain[-1].parent is not None:
        chain.append(chain[-1].parent)
    for view, base in zip(chain, chain[1:], strict=False):
        old = Recorded(base.inner, base.node, base.known)
        view.take(new)
        new = run(SET_VIEW, old, new, view=view.made_by, order=_order(old))
    chain[-1].take(new)
    memory.written = now = next(clock)
    for array in chain:
        array.made = now


def _order(x: Recorded) -> tuple[int, ...] | None:
    """The axes, the slowest in memory first; None if they lie in their own order."""
    return None if x.flags.c_contiguous else tuple(sorted(range(x.ndim), key=lambda axis: -abs(x.strides[axis])))


# ── the backend ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Draws:
    """A generator whose numbers are drawn anew each time that the graph runs."""

    def __init__(self, generator: Any) -> None:
        self.generator = generator

    def __getattr__(self, name: str) -> Any:
        generator = self.generator if here.recorder.reading is not None else SymbolStorage.draws(self.generator)
        symbols = generator is not self.generator

        def bare(a: Any) -> Any:
            return a if type(a) is not Recorded else SymbolStorage.asarray(a.inner) if symbols else a.inner

        def draw(*args: Any, **params: Any) -> Any:
            values = getattr(generator, name)(*map(bare, args), **params)
            values = values if symbols else np.asarray(values)
            return Recorded(values, here.recorder.step(Draw(name), map(argument, args), params, [values], False)[0], False)
        return draw


class RecordingStorage(Storage):
    """Main memory, while a program is recorded."""

    array_type = Recorded
    leads = True
    writes = False
    draws = Draws

    @classmethod
    def asarray(cls, data: Any, dtype: Any = None) -> Any:
        if type(data) is Recorded:
            return data if dtype is None or data.dtype == dtype else data.astype(dtype)
        return Recorded(np.asarray(data, dtype))

    @classmethod
    def host(cls, array: Any) -> Any:
        return array.read() if type(array) is Recorded else array

    @classmethod
    def seen(cls, array: Any) -> Any:
        return np.empty(0) if type(array.inner) is Symbol else array.inner

    @classmethod
    def native(cls, op: Any) -> Any:
        return partial(run, op)

    @classmethod
    def aliases(cls, a: Any, b: Any) -> bool:
        return a is b or a.parent is b


from .functions import NAMES, Functions, call, foreign  # noqa: E402

RecordingStorage.device, RecordingStorage.module = NumpyStorage.device, Functions()
