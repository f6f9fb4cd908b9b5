"""NumPy's functions on arrays with hidden axes, by family: what they do to each example, done to all at once."""
from __future__ import annotations

from functools import partial
from math import prod
from types import SimpleNamespace
from typing import Any

import numpy as np

ELEMENTWISE = set("where clip real imag conj angle nan_to_num isclose round around fix sinc i0 isreal iscomplex".split())
REDUCTIONS = set("sum prod max min amax amin mean any all std var argmax argmin count_nonzero nansum".split())
ALONG = set("sort argsort flip".split())
STACKS = set("linalg.inv linalg.det linalg.slogdet linalg.cholesky linalg.eig linalg.eigh linalg.eigvals linalg.eigvalsh linalg.svd linalg.qr "
             "tril triu".split())                                       # of matrices in the last two axes
MAKERS = set("arange eye array".split())
SHAPED_MAKERS = set("zeros ones full empty".split())
NO_AXIS: Any = object()
NO_ROOM = ("vmap: inplace arithmetic(self, *extra_args) is not possible: `self` has one memory for all examples, and its values are to differ between "
           "them. Please try to use out-of-place operators instead of inplace arithmetic.")


class Functions:
    """A backend's module of functions, as batches of its arrays see it."""

    def __init__(self, backend: Any, module: Any = None, prefix: str = "") -> None:
        self._backend, self._module, self._prefix = backend, backend.inner.module if module is None else module, prefix

    def __getattr__(self, name: str) -> Any:
        inner, full = getattr(self._module, name), self._prefix + name
        if isinstance(getattr(np, name, None) if not self._prefix else None, np.ufunc) and getattr(np, name).signature is None:
            found: Any = self.elementwise(inner)
            found.at = partial(added, self._backend, inner)
        elif full in RULES:
            found = partial(RULES[full], self._backend, inner)
        elif full in ELEMENTWISE:
            found = self.elementwise(inner)
        elif full in REDUCTIONS:
            found = partial(reduced, self._backend, inner, full in ("argmax", "argmin"))
        elif full in ALONG:
            found = partial(along, self._backend, inner, None if full == "flip" else -1)
        elif full in STACKS:
            found = partial(stacked, self._backend, inner)
        elif full in SHAPED_MAKERS:
            found = partial(shaped, self._backend, inner)
        elif full in MAKERS:
            found = partial(made, self._backend, inner)
        elif full in ("linalg", "fft", "lib", "lib.stride_tricks"):
            found = Functions(self._backend, inner, f"{full}.")
        elif callable(inner) and not isinstance(inner, type):
            found = partial(looped, self._backend, inner)
        else:
            return inner
        setattr(self, name, found)
        return found

    def elementwise(self, function: Any) -> Any:
        """A function of each element."""
        batched = self._backend.array_type

        def call(*args: Any, **params: Any) -> Any:
            values = aligned(batched, args)
            return function(*args, **params) if values is None else wrapped(batched, function(*values, **params))
        return call


# ── helpers ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def wrapped(batched: Any, result: Any) -> Any:
    """Results that are batched all."""
    if isinstance(result, (tuple, list)):
        parts = [wrapped(batched, part) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    return batched(result)


def aligned(batched: Any, args: Any) -> Any:
    """The values of operands that broadcast: with as many axes behind the hidden ones. None if there is no batch among them."""
    ndims = [a.ndim for a in args if type(a) is batched]
    if not ndims:
        return None
    if len(args) > 1:
        ndim = max(*ndims, *(len(a.shape) for a in args if hasattr(a, "shape")))
        return [spread(a, ndim) if type(a) is batched else a for a in args]
    return [args[0].values]


def spread(x: Any, ndim: int) -> Any:
    """The values with axes of length 1 behind the hidden ones, so that the shape has `ndim` axes."""
    missing = ndim - x.ndim
    return x.values if missing <= 0 else x.values.reshape(*x.hidden, *(1,) * missing, *x.shape)


def hidden_of(backend: Any, args: Any) -> tuple[int, ...]:
    """The hidden axes that operands have together."""
    return np.broadcast_shapes(*(a.hidden for a in args if type(a) is backend.array_type))


def full(backend: Any, x: Any, hidden: tuple[int, ...]) -> Any:
    """The values of an operand, with these hidden axes: repeated in place, not copied."""
    if type(x) is not backend.array_type:
        x = backend.asarray(x)
    return x.values if x.hidden == hidden else backend.inner.xp.broadcast_to(x.values, (*hidden, *x.shape))


def all_full(backend: Any, *args: Any) -> Any:
    hidden = hidden_of(backend, args)
    return [full(backend, a, hidden) for a in args]


def is_shared(x: Any) -> bool:
    """Whether all examples are the same."""
    return all(n == 1 for n in x.hidden)


def shared_values(x: Any) -> Any:
    """The values that all examples share."""
    return x.values.reshape(x.shape)


def pushed(backend: Any, x: Any, axis: Any) -> Any:
    """An axis, or several, counted from the front of the values."""
    if axis is None:
        return tuple(range(backend.rank, x.values.ndim))
    if isinstance(axis, (tuple, list)):
        return tuple(pushed(backend, x, a) for a in axis)
    return axis % max(x.ndim, 1) + backend.rank


def looped(backend: Any, function: Any, *args: Any, **params: Any) -> Any:
    """A function, run for one example after the other: right for all that gives results of one shape."""
    batched = backend.array_type
    flat = [part for a in (*args, *params.values()) for part in (a if isinstance(a, (tuple, list)) else (a,))]
    if not any(type(a) is batched for a in flat):
        return function(*args, **params)
    hidden = hidden_of(backend, flat)

    def at(place: Any, a: Any) -> Any:
        if type(a) is batched:
            return a.values[(*(i if n > 1 else 0 for i, n in zip(place, a.hidden, strict=True)), ...)]
        return type(a)(at(place, part) for part in a) if type(a) in (tuple, list) else a
    places = list(np.ndindex(*hidden))
    if not places:      # of no examples at all, the shape is that of an example of zeros
        hidden, empty = tuple(n or 1 for n in hidden), hidden
        args = tuple(batched(backend.inner.xp.zeros((*hidden, *a.shape), dtype=a.dtype)) if type(a) is batched else a for a in args)
        result = looped(backend, function, *args, **params)
        cut = tuple(map(slice, empty))
        return wrapped(batched, tuple(r.values[cut] for r in result) if isinstance(result, tuple) else result.values[cut])
    results = [function(*(at(p, a) for a in args), **{name: at(p, a) for name, a in params.items()}) for p in places]
    several = isinstance(results[0], (tuple, list))
    columns = list(zip(*results, strict=True)) if several else [results]
    stacked_ = [backend.inner.xp.stack([backend.inner.asarray(r) for r in column], axis=0) for column in columns]
    parts = tuple(batched(s.reshape(*hidden, *s.shape[1:])) for s in stacked_)
    return parts if several else parts[0]


# ── families ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def reduced(backend: Any, function: Any, single: bool, x: Any, axis: Any = None, *args: Any, **params: Any) -> Any:
    """Many elements become one; `single`: along one axis or all, not several."""
    if type(x) is not backend.array_type:
        return function(x, axis, *args, **params)
    values = x.values
    if not x.ndim or (axis is None and single):
        keep, params = params.get("keepdims", False), {k: v for k, v in params.items() if k != "keepdims"}
        flat = function(values.reshape(*x.hidden, x.size), backend.rank, *args, **params)
        return backend.array_type(flat.reshape(*x.hidden, *(1,) * (x.ndim if keep else 0)))
    return backend.array_type(function(values, pushed(backend, x, axis), *args, **params))


def along(backend: Any, function: Any, otherwise: Any, x: Any, axis: Any = NO_AXIS, **params: Any) -> Any:
    """What happens along an axis, that stays."""
    if type(x) is not backend.array_type:
        return function(x, **({} if axis is NO_AXIS else {"axis": axis}), **params)
    axis = otherwise if axis is NO_AXIS else axis
    return backend.array_type(function(x.values, axis=pushed(backend, x, axis), **params))


def flattened(backend: Any, function: Any, x: Any, axis: Any = None, **params: Any) -> Any:
    """The same, along all elements in a line where no axis is named."""
    return along(backend, function, 0, x.reshape(-1) if axis is None else x, 0 if axis is None else axis, **params)


def stacked(backend: Any, function: Any, x: Any, *args: Any, **params: Any) -> Any:
    return wrapped(backend.array_type, function(x.values, *args, **params)) if type(x) is backend.array_type else function(x, *args, **params)


def made(backend: Any, function: Any, *args: Any, **params: Any) -> Any:
    return backend.asarray(function(*args, **params))


def shaped(backend: Any, function: Any, shape: Any, *args: Any, **params: Any) -> Any:
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    return backend.array_type(function((1,) * backend.rank + shape, *args, **params))


def like(backend: Any, function: Any, x: Any, *args: Any, **params: Any) -> Any:
    return backend.array_type(function(x.values, *args, **params)) if type(x) is backend.array_type else function(x, *args, **params)


def reshape(backend: Any, function: Any, x: Any, shape: Any) -> Any:
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if -1 in shape:
        known = prod(n for n in shape if n != -1)
        shape = tuple((x.size // known if known else 0) if n == -1 else n for n in shape)
    return backend.array_type(x.values.reshape(*x.hidden, *shape))


def ravel(backend: Any, function: Any, x: Any, order: str = "C") -> Any:
    if order == "K":
        return x.transpose(*sorted(range(x.ndim), key=lambda d: -x.strides[d])).reshape(-1)
    return x.reshape(-1)


def transpose(backend: Any, function: Any, x: Any, axes: Any = None) -> Any:
    axes = tuple(reversed(range(x.ndim))) if axes is None else axes
    return backend.array_type(x.values.transpose(*range(backend.rank), *pushed(backend, x, tuple(axes))))


def swapaxes(backend: Any, function: Any, x: Any, axis1: int, axis2: int) -> Any:
    return backend.array_type(x.values.swapaxes(pushed(backend, x, axis1), pushed(backend, x, axis2)))


def moveaxis(backend: Any, function: Any, x: Any, source: Any, destination: Any) -> Any:
    return backend.array_type(function(x.values, pushed(backend, x, source), pushed(backend, x, destination)))


def expand_dims(backend: Any, function: Any, x: Any, axis: Any) -> Any:
    axes = axis if isinstance(axis, tuple) else (axis,)
    ndim = x.ndim + len(axes)
    return backend.array_type(function(x.values, tuple(a % ndim + backend.rank for a in axes)))


def squeeze(backend: Any, function: Any, x: Any, axis: Any = None) -> Any:
    axes = tuple(d for d, n in enumerate(x.shape) if n == 1) if axis is None else axis
    return backend.array_type(function(x.values, pushed(backend, x, axes) if x.ndim else ()))


def broadcast_to(backend: Any, function: Any, x: Any, shape: Any) -> Any:
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    x = x if type(x) is backend.array_type else backend.asarray(x)
    return backend.array_type(function(spread(x, len(shape)), (*x.hidden, *shape)))


def broadcast(backend: Any, function: Any, *args: Any) -> Any:
    return SimpleNamespace(shape=np.broadcast_shapes(*(a.shape for a in args)))


def concatenate(backend: Any, function: Any, arrays: Any, axis: int = 0) -> Any:
    parts = all_full(backend, *arrays)
    return backend.array_type(function(parts, axis=axis + backend.rank if axis >= 0 else axis))


def diagonal(backend: Any, function: Any, x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    return backend.array_type(function(x.values, offset, pushed(backend, x, axis1), pushed(backend, x, axis2)))


def roll(backend: Any, function: Any, x: Any, shift: Any, axis: Any = None) -> Any:
    if axis is None:
        return backend.array_type(function(x.reshape(-1).values, shift, -1).reshape(x.values.shape))
    return backend.array_type(function(x.values, shift, pushed(backend, x, axis)))


def take(backend: Any, function: Any, x: Any, index: Any, axis: Any = None) -> Any:
    if axis is None:
        x, axis = x.reshape(-1), 0
    return x[(slice(None),) * (axis % x.ndim) + (index,)]


def take_along_axis(backend: Any, function: Any, x: Any, index: Any, axis: int = -1) -> Any:
    values, places = all_full(backend, x, index)
    return backend.array_type(function(values, places, axis + backend.rank if axis >= 0 else axis))


def as_strided(backend: Any, function: Any, x: Any, shape: Any, strides: Any) -> Any:
    lead = x.values.strides[:backend.rank]
    return backend.array_type(function(x.values, (*x.hidden, *shape), (*lead, *strides)))


def result_type(backend: Any, function: Any, *args: Any) -> Any:
    return function(*(a.values if type(a) is backend.array_type else a for a in args))


def asarray(backend: Any, function: Any, x: Any, dtype: Any = None) -> Any:
    return backend.asarray(x, dtype)


def matmul(backend: Any, function: Any, a: Any, b: Any) -> Any:
    """Products of vectors, matrices and stacks. Matrices that all examples share go through one product of tall matrices."""
    a, b = (x if type(x) is backend.array_type else backend.asarray(x) for x in (a, b))
    if not (a.ndim and b.ndim) or a.shape[-1] != b.shape[-2 if b.ndim > 1 else 0]:
        raise ValueError("matmul: shapes do not fit")
    if b.ndim == 2 and is_shared(b):
        tall = a.values.reshape(prod(a.values.shape[:-1]), a.shape[-1])
        return backend.array_type(function(tall, shared_values(b)).reshape(*a.values.shape[:-1], b.shape[1]))
    if b.ndim == 1 and a.ndim == 2 and is_shared(a):
        return matmul(backend, function, b, a.T)
    row, column = a.ndim == 1, b.ndim == 1
    left, right = (a[None] if row else a), (b[:, None] if column else b)
    ndim = max(left.ndim, right.ndim)
    out = function(spread(left, ndim), spread(right, ndim))
    out = out[..., 0] if column else out
    return backend.array_type(out[..., 0] if row and column else out[..., 0, :] if row else out)


def solve(backend: Any, function: Any, a: Any, b: Any) -> Any:
    if b.ndim < 2:
        return looped(backend, function, a, b)
    ndim = max(a.ndim, b.ndim)
    return backend.array_type(function(spread(a, ndim), spread(b, ndim)))


def transform(backend: Any, function: Any, x: Any, n: Any = None, axis: int = -1, **params: Any) -> Any:
    return backend.array_type(function(x.values, n, pushed(backend, x, axis), **params))


def transform_all(backend: Any, function: Any, x: Any, s: Any = None, axes: Any = None, **params: Any) -> Any:
    return backend.array_type(function(x.values, s, pushed(backend, x, axes), **params))


RULES: dict[str, Any] = {
    "reshape": reshape, "ravel": ravel, "transpose": transpose, "permute_dims": transpose, "swapaxes": swapaxes, "moveaxis": moveaxis,
    "expand_dims": expand_dims, "squeeze": squeeze, "broadcast_to": broadcast_to, "broadcast": broadcast, "concatenate": concatenate,
    "concat": concatenate, "stack": concatenate, "diagonal": diagonal, "roll": roll, "take": take, "take_along_axis": take_along_axis,
    "lib.stride_tricks.as_strided": as_strided, "result_type": result_type, "asarray": asarray, "matmul": matmul, "linalg.solve": solve,
    "cumsum": flattened, "cumprod": flattened, "zeros_like": like, "ones_like": like, "full_like": like, "empty_like": like,
    **{f"fft.{name}": transform for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")},
    **{f"fft.{name}": transform_all for name in ("fftn", "ifftn", "rfftn", "irfftn")},
}


# ── indexing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def is_array(part: Any) -> bool:
    return hasattr(part, "shape")


def spelled_out(x: Any, index: Any) -> tuple[Any, ...]:
    """An index with an entry for each axis, and masks as the places where they are true."""
    parts: list[Any] = []
    for part in index if isinstance(index, tuple) else (index,):
        if is_array(part) and part.dtype.kind == "b":
            if hasattr(part, "hidden"):
                if not is_shared(part):
                    raise RuntimeError("vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over indexing "
                                       "with a boolean mask.")
                part = shared_values(part)
            parts += part.nonzero()
        else:
            parts.append(part)
    if not any(part is Ellipsis for part in parts):
        parts.append(Ellipsis)
    dots = next(i for i, part in enumerate(parts) if part is Ellipsis)
    missing = x.ndim - sum(part is not None and part is not Ellipsis for part in parts)
    return (*parts[:dots], *(slice(None),) * missing, *parts[dots + 1:])


def indexed(x: Any, index: Any) -> Any:
    """x[index] of each example, where index arrays may differ from example to example."""
    batched, depth = type(x), x.depth
    if index is Ellipsis or not any(is_array(part) for part in (index if isinstance(index, tuple) else (index,))):
        parts = index if isinstance(index, tuple) else (index,)
        return batched(x.values[(*(slice(None),) * depth, *parts, *(() if Ellipsis in parts else (...,)))])
    parts = spelled_out(x, index)
    arrays = [p for p in parts if is_array(p)]
    ndim = max(len(p.shape) for p in arrays)
    advanced = [i for i, p in enumerate(parts) if is_array(p) or isinstance(p, (int, np.integer))]
    adjacent = advanced == list(range(advanced[0], advanced[-1] + 1))
    lead = advanced[0] if adjacent else 0
    differ = [p for p in arrays if type(p) is batched and not is_shared(p)]
    if not differ:
        plain = tuple(shared_values(p) if type(p) is batched else p for p in parts)
        out = x.values[(*(slice(None),) * depth, *plain)]
        if not adjacent:             # NumPy puts the axes of index arrays that stand apart in front of all others
            out = out.transpose(*range(ndim, ndim + depth), *range(ndim), *range(ndim + depth, out.ndim))
        return batched(out)
    xp = batched.inner.xp
    hidden = np.broadcast_shapes(x.hidden, *(p.hidden for p in differ))
    examples = [xp.arange(n).reshape(n, *(1,) * (depth - d - 1 + ndim)) if x.hidden[d] > 1 else xp.zeros((1,) * (depth - d + ndim), dtype="int64")
                for d, n in enumerate(hidden)]
    inner = tuple(spread(p, ndim) if type(p) is batched else p for p in parts)
    out = x.values[(*examples, *inner)]
    if advanced[0] or not adjacent:  # there, the hidden axes are among those in front
        out = out.transpose(*range(depth), *range(depth + ndim, depth + ndim + lead), *range(depth, depth + ndim), *range(depth + ndim + lead, out.ndim))
    if out.shape[:depth] != hidden:
        out = xp.broadcast_to(out, (*hidden, *out.shape[depth:]))
    return batched(out)


def grow(x: Any, hidden: tuple[int, ...]) -> None:
    """Give an array that is about to be written to memory for each example."""
    if x.hidden != hidden:
        if x.values.base is not None:
            raise RuntimeError(NO_ROOM)
        x.values = type(x).inner.xp.broadcast_to(x.values, (*hidden, *x.shape)).copy()


def written(x: Any, index: Any, value: Any) -> None:
    """x[index] = value, in each example."""
    batched, depth = type(x), x.depth
    parts = index if isinstance(index, tuple) else (index,)
    values = [p for p in (value, *parts) if type(p) is batched]
    if values:
        grow(x, np.broadcast_shapes(x.hidden, *(p.hidden for p in values)))
    if any(is_array(part) for part in parts):
        return put_at(x, index, value, lambda target, places, given: target.__setitem__(places, given))
    index = (*(slice(None),) * depth, *parts, *(() if Ellipsis in parts else (...,)))
    if type(value) is batched:
        ndim = x.values[index].ndim - depth
        surplus = value.ndim - ndim
        value = spread(value, ndim) if surplus <= 0 else value.values.reshape(*value.hidden, *value.shape[surplus:])
    x.values[index] = value


def put_at(x: Any, index: Any, value: Any, put: Any) -> None:
    """Write at index arrays: put(elements in a line, their places, values)."""
    batched, inner = type(x), type(x).inner
    index = tuple(index) if isinstance(index, (tuple, list)) else (index,)
    numbers = batched(inner.xp.arange(x.size).reshape((1,) * x.depth + x.shape))
    places = indexed(numbers, index)
    hidden, count = x.hidden, prod(x.hidden)
    starts = inner.xp.arange(count).reshape(*hidden, *(1,) * places.ndim) * x.size
    line = x.values.reshape(count * x.size)
    if type(value) is batched:
        surplus = value.ndim - places.ndim
        value = spread(value, places.ndim) if surplus <= 0 else value.values.reshape(*value.hidden, *value.shape[surplus:])
    spots = places.values + starts
    value = value if not is_array(value) else inner.xp.broadcast_to(value, spots.shape).reshape(-1)
    put(line, spots.reshape(-1), value)
    if not inner.aliases(line, x.values):
        x.values[...] = line.reshape(x.values.shape)


def added(backend: Any, ufunc: Any, x: Any, index: Any, value: Any) -> None:
    """ufunc.at(x, index, value), in each example."""
    if type(x) is not backend.array_type:
        ufunc.at(x, index, value)
        return
    parts = index if isinstance(index, tuple) else (index,)
    grow(x, hidden_of(backend, (x, value, *parts)))
    put_at(x, index, value, ufunc.at)
