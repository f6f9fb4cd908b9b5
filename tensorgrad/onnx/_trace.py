"""What a model computes, written down while it computes it.

While a model is traced, the CPU's tensors lie on a backend of their own, whose arrays, `Traced`, are NumPy arrays that know which
value of the graph they hold. Each op of the table that runs on them becomes a `Step`; ops that are defined by others leave it to
those. Nothing of this is looked at while no model is traced.

Writes in place: an array and its views share a `Memory`. A write gives the array written to a new value, and its bases new values
that contain it; other views derive theirs anew when they are next read.
"""
from __future__ import annotations

import sys
import threading
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from ..interpret._batched_ops import runner
from ..ops.base import OPS
from ..ops.indexing import ARRAY
from ..storage.base import Storage
from ..storage.cpu import NumpyStorage

PACKAGE = str(Path(__file__).parents[1])
# Ops whose definitions are traced, since the table of the exporter does not have them.
DEFINED = set("""attention rms_norm native_batch_norm cross euclidean_distance mse_loss smooth_l1_loss huber_loss soft_margin_loss
    binary_cross_entropy binary_cross_entropy_with_logits nll_loss cross_entropy multi_margin_loss log_sigmoid softshrink hardshrink threshold
    rrelu_with_noise glu lerp rsub heaviside sinc logit entr xlog1py recurrence ndtr embedding_bag relu_gradient
    tanh_gradient sigmoid_gradient""".split())
UNROLLED = {"rnn_layer": 6, "lstm_layer": 7, "gru_layer": 6}         # step by step, where the sequences are packed or the state is projected
SAME = set("clone contiguous copied in_columns".split())             # what the graph need not know of
NAMES = {"concatenate": "concat", "take": "index_select", "transpose": "permute_dims", "true_divide": "divide", "abs": "absolute",
         "invert": "bitwise_not", "conjugate": "conj", "astype": "cast", "var": "variance", "std": "deviation", "clip": "clamp"}
clock = count(1)


class Value:
    """One array of the graph: what a step gives, an input, or a constant. `data` is what it holds if no input has a say in it."""

    __slots__ = ("step", "shape", "dtype", "data", "name")

    def __init__(self, array: Any, step: Any = None, known: bool = True, name: str | None = None) -> None:
        self.step, self.shape, self.dtype, self.name = step, array.shape, array.dtype, name
        self.data = array if known else None


class Step:
    """One application of an op: inputs are values, numbers and None."""

    __slots__ = ("op", "inputs", "params", "outputs", "scope", "where")

    def __init__(self, op: str, inputs: Any, params: dict[str, Any], scope: str) -> None:
        self.op, self.inputs, self.params, self.scope, self.where = op, inputs, params, scope, user_line()
        self.outputs: list[Value] = []


class Memory:
    """What an array and its views share: when it was last written to, and the constants that it holds."""

    __slots__ = ("written", "held", "owner")

    def __init__(self, owner: str | None = None) -> None:
        self.written, self.owner = 0, owner
        self.held: list[Value] = []

    def let_go(self) -> None:
        """Before a write: constants keep what they hold."""
        for value in self.held:
            value.data = value.data.copy()
        self.held.clear()


class Trace:
    """The steps of one run."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.scopes: list[str] = [""]
        self.constants: dict[int, Value] = {}
        self.kept: list[Any] = []

    def constant(self, array: Any) -> Value:
        """The value of an array that nobody traced."""
        if id(array) not in self.constants:
            self.kept.append(array)
            self.constants[id(array)] = Value(array)
        return self.constants[id(array)]

    def record(self, op: str, inputs: Any, params: dict[str, Any], results: Any, known: bool) -> list[Value]:
        step = Step(op, tuple(inputs), params, self.scopes[-1])
        step.outputs = [Value(r, step, known) for r in results]
        self.steps.append(step)
        return step.outputs


class Here(threading.local):
    trace: Any = None


here = Here()


def user_line() -> str:
    """Where the program stands, outside this package."""
    frame: Any = sys._getframe(1)
    while frame is not None and (frame.f_code.co_filename.startswith((PACKAGE, "<frozen"))):
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def only_checked() -> bool:
    """Whether values are read by one of our own functions that checks its arguments, not by the program."""
    frame: Any = sys._getframe(2)
    while frame.f_code.co_filename.startswith(PACKAGE) and frame.f_code.co_filename.endswith(("_tensor.py", "_overriding.py", "_trace.py", "_keywords.py")):
        frame = frame.f_back
    return frame.f_code.co_filename.startswith(PACKAGE) and frame.f_code.co_name.lstrip("_").startswith(("check", "one_hot"))


# ── arrays ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Traced(np.ndarray):  # type: ignore[type-arg]
    """A NumPy array that knows its value in the graph. A view of another (`parent`) knows how it was made from that."""

    value: Any = None
    parent: Any = None
    made_by: Any = None
    memory: Any = None
    mask: Any = None           # whose true elements these places are
    made = 0

    def __array_finalize__(self, source: Any) -> None:
        pass

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **kwargs: Any) -> Any:
        if method != "__call__" or out is not None and len(out) > 1:
            return untraced(f"numpy.{ufunc.__name__}.{method}", getattr(ufunc, method), inputs, kwargs)
        found = call(ufunc.__name__, ufunc, inputs, kwargs)
        if out is None:
            return found
        out[0][...] = found
        return out[0]

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return call(function.__name__, function, args, kwargs)

    def __getitem__(self, index: Any) -> Any:
        parts = index if isinstance(index, tuple) else (index,)
        if not any(isinstance(p, (np.ndarray, list)) for p in parts):
            return applied("get_slice", self, index=parts)
        full, arrays = [], []
        for part in parts:
            if isinstance(part, (np.ndarray, list)):
                part = part if isinstance(part, np.ndarray) else np.asarray(part)
                if part.dtype.kind == "b":
                    return untraced("index by a mask", np.ndarray.__getitem__, (self, index), {})
                arrays.append(part)
                part = ARRAY
            full.append(part)
        return applied("index", self, *arrays, template=tuple(full))

    def __setitem__(self, index: Any, value: Any) -> None:
        write(self, index, value)

    def __reduce__(self) -> Any:
        return plain(self).__reduce__()

    T = property(lambda self: applied("permute_dims", self, axes=tuple(range(self.ndim))[::-1]))
    real = property(lambda self: self if self.dtype.kind != "c" else applied("real", self))
    imag = property(lambda self: applied("imag", self))

    def astype(self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True) -> Any:
        return self if self.dtype == dtype else applied("cast", self, dtype=np.dtype(dtype))

    def reshape(self, *shape: Any, order: str = "C") -> Any:
        return applied("reshape", self, shape=shape[0] if len(shape) == 1 else shape)

    def transpose(self, *axes: Any) -> Any:
        axes = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        return applied("permute_dims", self, axes=tuple(axes or range(self.ndim)[::-1]))

    def swapaxes(self, axis1: int, axis2: int) -> Any:
        return applied("swapaxes", self, axis1=axis1, axis2=axis2)

    def copy(self, order: str = "C") -> Any:
        return applied("clone" if order == "K" else "contiguous", self)

    def ravel(self, order: str = "C") -> Any:
        return self.reshape(-1)

    def flatten(self, order: str = "C") -> Any:
        return self.reshape(-1).copy()

    def view(self, *args: Any) -> Any:
        return np.ndarray.view(self, *args) if args and isinstance(args[0], type) and issubclass(args[0], np.ndarray) else \
            untraced("view of other dtype", np.ndarray.view, (self, *args), {})

    def conj(self) -> Any:
        return self if self.dtype.kind != "c" else applied("conj", self)

    def fill(self, value: Any) -> None:
        self[...] = value

    def nonzero(self) -> Any:
        places = untraced("a mask as an index", np.ndarray.nonzero, (self,), {})
        for part in places:
            part.mask = self
        return places


def _method(name: str) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return call(name, getattr(np, name), (self, *args), kwargs)
    return method


for _name in "sum mean prod max min any all argmax argmin cumsum cumprod squeeze repeat round clip take diagonal std var argsort trace dot".split():
    setattr(Traced, _name, _method(_name))


def plain(x: Any) -> Any:
    """The NumPy array, with the same memory."""
    return np.ndarray.view(x, np.ndarray) if type(x) is Traced else x


def current(x: Any) -> Value | None:
    """The value that an array holds now."""
    if type(x) is not Traced:
        return here.trace.constant(x) if isinstance(x, np.ndarray) else None  # type: ignore[no-any-return]
    if x.parent is not None and x.memory.written > x.made:
        op, params = x.made_by
        inside = current(x.parent)
        (x.value,) = here.trace.record(op, (inside,), params, [plain(x)], inside is not None and inside.data is not None)
        x.made = next(clock)
        hold(x)
    return x.value  # type: ignore[no-any-return]


def hold(x: Traced) -> None:
    if x.value.data is not None:
        x.memory.held.append(x.value)


def named(array: Any, value: Any, parent: Any = None, made_by: Any = None, memory: Any = None) -> Traced:
    """An array that holds a value."""
    out: Traced = np.asarray(array).view(Traced)
    out.value, out.parent, out.made_by, out.made = value, parent, made_by, next(clock)
    out.memory = memory if memory is not None else parent.memory if parent is not None else Memory()
    hold(out)
    return out


def owner(array: Any) -> Any:
    while isinstance(base := getattr(array, "base", None), np.ndarray):
        array = base
    return array


# ── steps ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def applied(name: str, *args: Any, **params: Any) -> Any:
    """An op of the table, of arrays."""
    return OPS[name].kernels[TracedStorage](*args, **params)


def run(op: Any, *args: Any, **params: Any) -> Any:
    """Compute an op, and write it down."""
    operands = tuple(args[0]) if op.sequence else args
    bare = [plain(a) for a in operands]
    results = runner(op, NumpyStorage)(bare, **params) if op.sequence else runner(op, NumpyStorage)(*bare, **params)
    return noted(op.opname, operands, params, tuple(results) if op.several else (results,), op.several)


def layer(op: Any, *args: Any, **params: Any) -> Any:
    """A recurrent layer: one step, if ONNX has it."""
    if params.get("sizes") is not None or any(a is not None for a in args[UNROLLED[op.opname]:]):
        return op.forward(TracedStorage.xp, *args, **params)
    return run(op, *args, **params)


def noted(name: str, operands: Any, params: dict[str, Any], results: Any, several: bool) -> Any:
    """The results of a step, as arrays that know their values."""
    results = [np.asarray(r) for r in results]
    if here.trace is None:
        outs = [r.view(Traced) for r in results]
        return outs if several else outs[0]
    inputs = [current(a) if isinstance(a, np.ndarray) else a for a in operands]
    lost = any(isinstance(a, Traced) and v is None for a, v in zip(operands, inputs, strict=True))
    known = not lost and all(not isinstance(v, Value) or v.data is not None for v in inputs)
    if lost:
        name = "NumPy's own functions"
    if name in SAME:
        values = [inputs[-1] if name == "copied" else inputs[0]]
    else:
        values = here.trace.record(name, inputs, params, results, known)
    source = operands[0] if operands and isinstance(operands[0], Traced) else None
    outs = []
    for k, (array, value) in enumerate(zip(results, values, strict=True)):
        seen = source is not None and array.size and owner(array) is owner(source) and not (several and name not in VIEWS)
        how = (name, params) if not several else ("part", {"of": (name, params), "place": k})
        outs.append(named(array, value, source, how) if seen else named(array, value))
    return outs if several else outs[0]


VIEWS = {name for name, op in OPS.items() if op.view}


def untraced(name: str, function: Any, args: Any, kwargs: Any) -> Any:
    """A function of arrays that is no op of the table: a constant of constants, else a step that cannot be expressed."""
    arrays: list[Any] = []

    def bare(a: Any) -> Any:
        if isinstance(a, (tuple, list)):
            return type(a)(map(bare, a))
        if type(a) is Traced:
            arrays.append(a)
        return plain(a)
    result = function(*bare(tuple(args)), **{k: bare(v) for k, v in kwargs.items()})
    parts = result if isinstance(result, (tuple, list)) else (result,)
    if not any(isinstance(p, (np.ndarray, np.generic)) for p in parts) or here.trace is None:
        return result
    values = [current(a) for a in arrays]
    if all(v is not None and v.data is not None for v in values):
        outs = [named(np.array(p), here.trace.constant(np.array(p))) for p in parts]
    else:
        outs = [named(p, v) for p, v in zip(parts, here.trace.record(name, values, {}, list(map(np.asarray, parts)), False), strict=True)]
    return outs[0] if parts[0] is result else type(result)(outs)


def call(name: str, function: Any, args: Any, kwargs: Any) -> Any:
    """One of NumPy's functions, as the op of the table that it is."""
    name = NAMES.get(name, name)
    kwargs = {k: v for k, v in kwargs.items() if v is not None and not (k == "keepdims" and v is np._NoValue)}  # type: ignore[attr-defined]
    if name in ("asarray", "array"):
        dtype = kwargs.get("dtype")
        return TracedStorage.asarray(args[0], dtype)
    if (dtype := kwargs.get("dtype")) is not None and name in ("sum", "prod", "cumsum", "cumprod"):
        args, kwargs = (args[0].astype(dtype), *args[1:]), {k: v for k, v in kwargs.items() if k != "dtype"}
    if name == "searchsorted":
        return applied("search_sorted", *args[:2], right=(*args, kwargs.get("side"))[2] == "right")
    if name == "repeat" and isinstance(args[1], int) and args[0].ndim == 1:
        column = applied("expand_dims", args[0], axis=1)
        return applied("broadcast_to", column, shape=(len(args[0]), args[1])).reshape(-1)
    op = OPS.get(name)
    if op is None or set(kwargs) - set(op.parameters):
        return untraced(f"numpy.{name}", function, args, kwargs)
    return getattr(TracedStorage.xp, name)(*args, **kwargs)


def write(x: Traced, index: Any, value: Any) -> None:
    """x[index] = value, in memory and in the graph."""
    if here.trace is None or x.memory is None:
        np.ndarray.__setitem__(x, index, plain(value))
        return
    if x.memory.owner is not None:
        from .errors import UnsupportedOperatorError
        raise UnsupportedOperatorError([(f"a write in place to {x.memory.owner}", user_line())])
    parts = index if isinstance(index, tuple) else (index,)
    if any(isinstance(p, (np.ndarray, list)) for p in parts):
        arrays = [p if isinstance(p, np.ndarray) else np.asarray(p) for p in parts if isinstance(p, (np.ndarray, list))]
        template = tuple(ARRAY if isinstance(p, (np.ndarray, list)) else p for p in parts)
        value = (value if isinstance(value, np.ndarray) else TracedStorage.asarray(value, x.dtype)).astype(x.dtype, copy=False)
        mask = getattr(arrays[0], "mask", None)
        if mask is not None and value.size == 1 and all(getattr(a, "mask", None) is mask for a in arrays):
            first = template.index(ARRAY)
            mask = mask.reshape((*mask.shape, *(1,) * (x.ndim - first - mask.ndim)))
            written(x, applied("masked_fill", x, value.reshape(()), mask))
        else:
            written(x, applied("index_put", x, value, *arrays, template=template))
        return
    target = x if all(p is Ellipsis for p in parts) else x[index]
    new = value if isinstance(value, np.ndarray) else TracedStorage.asarray(value, x.dtype)
    new = new.astype(x.dtype, copy=False)
    if new.shape != target.shape:
        if new.ndim > target.ndim:
            new = new.reshape(new.shape[new.ndim - target.ndim:])
        new = applied("broadcast_to", new, shape=target.shape) if new.shape != target.shape else new
    written(target, new)


def written(x: Traced, new: Any) -> None:
    """Let an array hold what another holds, and everything that it is a view of, too."""
    values = plain(new).copy()
    chain = [x]
    while chain[-1].parent is not None:
        chain.append(chain[-1].parent)
    before = [current(a) for a in chain]
    latest = current(new)
    x.memory.let_go()
    plain(x)[...] = values
    for view, base, old in zip(chain, chain[1:], before[1:], strict=False):
        view.value = latest
        known = latest is not None and latest.data is not None and old is not None and old.data is not None
        (latest,) = here.trace.record("place", (old, latest), {"view": view.made_by}, [plain(base).copy() if known else plain(base)], known)
    chain[-1].value = latest
    x.memory.written = now = next(clock)
    for a in chain:
        a.made = now


# ── the backend ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Add:
    """NumPy's `add`, with the additions at places in place."""

    def __call__(self, a: Any, b: Any) -> Any:
        return applied("add", a, b)

    def at(self, x: Any, index: Any, value: Any) -> None:
        parts = index if isinstance(index, tuple) else (index,)
        arrays = [p for p in parts if isinstance(p, np.ndarray)]
        template = tuple(ARRAY if isinstance(p, np.ndarray) else p for p in parts)
        written(x, applied("index_put", x, value, *arrays, template=template, accumulate=True))


class Functions:
    """What formulas find in `xp` beside the ops: new arrays, which may depend on sizes, and NumPy's constants and other functions."""

    def __getattr__(self, name: str) -> Any:
        if name == "add":
            return Add()
        if name in OPS or name in NAMES:
            if NAMES.get(name, name) in OPS and name in NAMES:
                return lambda *args, **kwargs: call(name, getattr(np, name), args, kwargs)
            raise AttributeError(name)
        found = getattr(np, name)
        if isinstance(found, type) or not callable(found):
            return found
        return partial(_made, name) if name in MAKERS else lambda *args, **kwargs: call(name, found, args, kwargs)


MAKERS = set("zeros ones empty full arange eye zeros_like ones_like empty_like full_like".split())


def _made(name: str, *args: Any, dtype: Any = None, **kwargs: Any) -> Any:
    """A new array: a constant, unless its shape depends on dynamic axes."""
    if name.endswith("_like"):
        like, *rest = args
        name, args, dtype = name.removesuffix("_like"), (like.shape, *rest), like.dtype if dtype is None else dtype
    args = tuple(a.item() if isinstance(a, np.generic) or isinstance(a, np.ndarray) and not a.ndim else a for a in args)
    name = "zeros" if name == "empty" else name
    array = getattr(np, name)(*args, dtype=dtype, **kwargs)
    if here.trace is None:
        return array.view(Traced)
    return named(array, here.trace.record(f"make_{name}", (), {"args": args}, [array], True)[0])


class Draws:
    """A generator whose numbers are drawn anew each time that the exported model runs."""

    def __init__(self, generator: Any) -> None:
        self.generator = generator

    def __getattr__(self, name: str) -> Any:
        def draw(*args: Any, **kwargs: Any) -> Any:
            values = np.asarray(getattr(self.generator, name)(*map(plain, args), **kwargs))
            if here.trace is None:
                return values
            operands = [current(a) if type(a) is Traced else a for a in args]
            arrays = [a for a in operands if isinstance(a, Value)]
            params = {"args": tuple(None if isinstance(a, Value) else a for a in operands), **kwargs}
            return named(values, here.trace.record(f"draw_{name}", arrays, params, [values], False)[0])
        return draw


class TracedStorage(Storage):
    """Main memory, while a model is traced."""

    array_type = Traced
    leads = True
    writes = False
    draws = Draws

    @classmethod
    def asarray(cls, data: Any, dtype: Any = None) -> Any:
        if type(data) is Traced:
            return data if dtype is None or data.dtype == dtype else data.astype(dtype)
        array = np.asarray(data, dtype)
        return array.view(Traced) if here.trace is None else named(array, here.trace.constant(array))

    @classmethod
    def host(cls, array: Any) -> Any:
        value = current(array) if here.trace is not None else None
        if value is not None and value.data is None and not only_checked():
            import warnings

            from .errors import OnnxExporterWarning
            warnings.warn(f"{user_line()}: the values of a tensor that depends on the inputs are read, and are constants in the exported model. What it "
                          "does with other inputs may differ.", OnnxExporterWarning, stacklevel=2)
        return plain(array)

    @classmethod
    def seen(cls, array: Any) -> Any:
        return plain(array)

    @classmethod
    def native(cls, op: Any) -> Any:
        if op.opname in DEFINED:
            return None
        return partial(layer, op) if op.opname in UNROLLED else partial(run, op)

    @classmethod
    def aliases(cls, a: Any, b: Any) -> bool:
        return a is b or a.parent is b


TracedStorage.device, TracedStorage.module = NumpyStorage.device, Functions()
