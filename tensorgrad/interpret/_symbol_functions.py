"""NumPy's functions on symbols, by family: what shape and dtype they give.

A function of which nothing is said here runs on an array of ones: right wherever the shape of the result does not depend on values, and slow.
"""
from __future__ import annotations

from functools import lru_cache, partial
from math import ceil, prod
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..storage.base import NoValues
from ._symbol import Symbol, laid, row_strides

normalize = np.lib.array_utils.normalize_axis_tuple
SUMS = set("sum prod nansum nanprod cumsum cumprod".split())           # of small integers: in int64
MEANS = set("mean var std".split())
EXTREMES = set("max min amax amin".split())
PLACES = set("argmax argmin count_nonzero".split())
RUNNING = set("cumsum cumprod".split())
SAME = set("sort roll tril triu nan_to_num round around copy".split())
PREDICATES = set("isclose isreal iscomplex".split())
VIEWS = set("swapaxes moveaxis expand_dims squeeze broadcast_to diagonal flip".split())
BY_VALUES = set("nonzero flatnonzero argwhere unique compress extract array_equal allclose".split())
GROUPS = {"linalg", "fft", "lib", "lib.stride_tricks"}


class Functions:
    """NumPy, as symbols see it."""

    def __init__(self, module: Any = np, prefix: str = "") -> None:
        self._module, self._prefix = module, prefix

    def __getattr__(self, name: str) -> Any:
        own, full = getattr(self._module, name), self._prefix + name
        if full in RULES:
            found: Any = RULES[full]
        elif isinstance(own, np.ufunc):
            found = Ufunc(own)
        elif full in GROUPS:
            found = Functions(own, f"{full}.")
        elif full in BY_VALUES:
            found = partial(refused, name)
        elif family := next((rule for names, rule in FAMILIES if full in names), None):
            found = partial(family, full)
        elif callable(own) and not isinstance(own, type):
            found = partial(tried, own)
        else:
            return own
        setattr(self, name, found)
        return found


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


# ── elementwise ───────────────────────────────────────────────────────────────────────────────────────────────────────


def together(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that several broadcast to."""
    longest = max(shapes, key=len)
    return longest if all(not s or s == longest for s in shapes) else np.broadcast_shapes(*shapes)


def shape_of(a: Any) -> tuple[int, ...]:
    return getattr(a, "shape", ())


def kind_of(a: Any) -> Any:
    """What stands for an operand where dtypes are resolved: its dtype, or for a Python number, which yields to those, its type."""
    if hasattr(a, "dtype"):
        return a.dtype
    return next(t for t in (np.bool_, int, float, complex) if isinstance(a, bool if t is np.bool_ else t)) if isinstance(a, (int, float, complex)) \
        else np.asarray(a).dtype


@lru_cache(4096)
def resolved(ufunc: np.ufunc, kinds: tuple[Any, ...]) -> tuple[Any, ...]:
    """The dtypes of the results."""
    kinds = tuple(np.dtype(bool) if k is np.bool_ else k for k in kinds)
    if all(k in (int, float, complex) for k in kinds):          # numbers alone
        kinds = tuple(map(np.dtype, kinds))
    return ufunc.resolve_dtypes((*kinds, *(None,) * ufunc.nout))[ufunc.nin:]


class Ufunc:
    """One of NumPy's ufuncs: operands broadcast, or, with a signature, those axes do that are in front of its own."""

    def __init__(self, ufunc: Any) -> None:
        self.ufunc = ufunc

    def __call__(self, *args: Any, dtype: Any = None, out: Any = None, **params: Any) -> Any:
        if not any(type(a) is Symbol for a in args):
            return Symbol.module.asarray(self.ufunc(*args))
        dtypes = resolved(self.ufunc, tuple(map(kind_of, args)))
        if dtype is not None:
            dtypes = (np.dtype(dtype),) * len(dtypes)
        if self.ufunc.signature is not None:
            return signed(self.ufunc.signature, *zip(args, map(shape_of, args), strict=True), dtypes=dtypes)
        shape = together(*map(shape_of, args))
        found = tuple(laid(shape, d, *args) for d in dtypes)
        return found[0] if len(found) == 1 else found

    def at(self, x: Any, index: Any, value: Any = 0) -> None:
        """In place, at index arrays: checked, and forgotten."""
        x[index] = value


def same(name: str, x: Any, *args: Any, **params: Any) -> Any:
    return Symbol(x.shape, x.dtype)


def truth(name: str, *args: Any, **params: Any) -> Any:
    return Symbol(together(*map(shape_of, args)), bool)


def mixed(*values: Any) -> Any:
    """The dtype that operands have together; Python numbers yield."""
    return np.result_type(*(np.empty(0, a.dtype) if hasattr(a, "dtype") else a for a in values))


def where(condition: Any, a: Any = None, b: Any = None) -> Any:
    if a is None:
        raise NoValues("where()")
    return laid(together(shape_of(condition), shape_of(a), shape_of(b)), mixed(a, b), condition, a, b)


def clip(x: Any, low: Any = None, high: Any = None, **params: Any) -> Any:
    bounds = [b for b in (low, high) if b is not None]
    return laid(together(x.shape, *map(shape_of, bounds)), mixed(x, *bounds), x)


def angle(x: Any, deg: bool = False) -> Any:
    return laid(x.shape, real_dtype(x.dtype) if x.dtype.kind in "fc" else "float64", x)


def real_dtype(dtype: Any) -> Any:
    """That of the parts of complex numbers."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


# ── reductions ────────────────────────────────────────────────────────────────────────────────────────────────────────


def left(shape: tuple[int, ...], axis: Any, keepdims: bool) -> tuple[int, ...]:
    """What a reduction leaves of a shape."""
    axes: Any = range(len(shape)) if axis is None else normalize(axis, len(shape)) if shape or axis not in (0, -1) else ()
    return tuple(1 if d in axes else n for d, n in enumerate(shape) if keepdims or d not in axes)


def reduced(name: str, x: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, **params: Any) -> Any:
    """Many elements become one."""
    shape = left(x.shape, axis, keepdims is True)
    if name in EXTREMES | PLACES and name != "count_nonzero" and not x.size and 0 not in shape:
        raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
    return Symbol(shape, reduced_dtype(name, x.dtype) if dtype is None else dtype)


def reduced_dtype(name: str, dtype: Any) -> Any:
    if name in PLACES:
        return np.dtype(np.intp)
    if name in SUMS:
        return np.dtype(np.int64) if dtype.kind in "bi" else np.dtype(np.uint64) if dtype.kind == "u" else dtype
    if name in MEANS:
        dtype = np.dtype(np.float64) if dtype.kind in "biu" else dtype
        return real_dtype(dtype) if name in ("var", "std") else dtype
    return dtype


def asked(name: str, x: Any, axis: Any = None, out: Any = None, keepdims: Any = None) -> Any:
    """any and all: a result if an axis or `keepdims` is given, else the answer to a check of values, which are taken for valid."""
    if axis is None and keepdims is None:
        return name == "all"
    return Symbol(left(x.shape, axis, keepdims is True), bool)


def running(name: str, x: Any, axis: Any = None, dtype: Any = None, **params: Any) -> Any:
    """Results on the way, along an axis, or along all elements in a line."""
    if axis is not None and x.ndim:
        normalize(axis, x.ndim)
    return Symbol((x.size,) if axis is None else x.shape, reduced_dtype(name, x.dtype) if dtype is None else dtype)


def argsort(x: Any, axis: Any = -1, **params: Any) -> Any:
    return Symbol((x.size,) if axis is None else x.shape, np.intp)


def lexsort(keys: Any, axis: int = -1) -> Any:
    return Symbol(shape_of(keys)[1:] if hasattr(keys, "shape") else keys[0].shape, np.intp)


def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    return Symbol(shape_of(v), np.intp)


def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    if x.size:
        raise NoValues("bincount()")
    return Symbol((minlength,), np.intp if weights is None else np.float64)


# ── shapes ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def sizes_of(shape: Any) -> tuple[int, ...]:
    return tuple(int(n) for n in shape) if isinstance(shape, (tuple, list)) else (int(shape),)


def reshape(x: Any, shape: Any, order: str = "C", **params: Any) -> Any:
    """A view where steps in memory reach the elements in order, else a copy."""
    wanted, size = sizes_of(shape), x.size
    if -1 in wanted:
        known = prod(n for n in wanted if n != -1)
        if wanted.count(-1) > 1 or not known or size % known:
            raise ValueError(f"cannot reshape array of size {size} into shape {wanted}")
        wanted = tuple(size // known if n == -1 else n for n in wanted)
    if prod(wanted) != size:
        raise ValueError(f"cannot reshape array of size {size} into shape {wanted}")
    strides = row_strides(wanted, x.itemsize) if x._strides is None or not size else steps_in_order(x, wanted)
    return Symbol(wanted, x.dtype) if strides is None else Symbol(wanted, x.dtype, strides, x.owner(), x.start)


def steps_in_order(x: Any, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """The strides by which another shape sees the elements in order, if there are any."""
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


def ravel(x: Any, order: str = "C") -> Any:
    if order == "K":
        x = x.transpose(sorted(range(x.ndim), key=lambda d: -abs(x.strides[d])))
    return reshape(x, (-1,)) if x.size else Symbol((0,), x.dtype)


def transpose(x: Any, axes: Any = None) -> Any:
    return x.seen(lambda ghost: ghost.transpose(axes))


def viewed(name: str, x: Any, *args: Any, **params: Any) -> Any:
    """Functions whose result is a view."""
    function = getattr(np, name)
    return as_symbol(x).seen(lambda ghost: function(ghost, *args, **params))


def as_strided(x: Any, shape: Any = None, strides: Any = None, **params: Any) -> Any:
    return Symbol(x.shape if shape is None else tuple(shape), x.dtype, x.strides if strides is None else tuple(strides), x.owner(), x.start)


def broadcast(*args: Any) -> Any:
    return SimpleNamespace(shape=np.broadcast_shapes(*map(shape_of, args)))


def broadcast_arrays(*args: Any) -> Any:
    shape = np.broadcast_shapes(*map(shape_of, args))
    return tuple(viewed("broadcast_to", a, shape) for a in args)


def concatenate(arrays: Any, axis: Any = 0, dtype: Any = None, **params: Any) -> Any:
    arrays = list(map(as_symbol, arrays))
    if not arrays:
        raise ValueError("need at least one array to concatenate")
    if axis is None:
        arrays, axis = [a.reshape(-1) for a in arrays], 0
    first = arrays[0]
    (axis,) = normalize(axis, first.ndim)
    for a in arrays[1:]:
        if a.ndim != first.ndim or any(d != axis and n != m for d, (n, m) in enumerate(zip(a.shape, first.shape, strict=True))):
            raise ValueError(f"all the input array dimensions except for the concatenation axis must match exactly: {first.shape} and {a.shape}")
    shape = (*first.shape[:axis], sum(a.shape[axis] for a in arrays), *first.shape[axis + 1:])
    return Symbol(shape, mixed(*arrays) if dtype is None else dtype)


def stack(arrays: Any, axis: int = 0, **params: Any) -> Any:
    arrays = list(map(as_symbol, arrays))
    if len({a.shape for a in arrays}) > 1:
        raise ValueError("all input arrays must have the same shape")
    return concatenate([viewed("expand_dims", a, axis) for a in arrays], normalize(axis, arrays[0].ndim + 1)[0])


def repeat(x: Any, repeats: Any, axis: Any = None) -> Any:
    x, axis = (x.reshape(-1), 0) if axis is None else (x, normalize(axis, x.ndim)[0])
    if type(repeats) is Symbol and repeats.size:
        raise NoValues("repeat()")
    counts = np.broadcast_to(np.asarray(repeats), (x.shape[axis],)) if np.ndim(repeats) else None
    length = x.shape[axis] * int(repeats) if counts is None else int(counts.sum())
    return Symbol((*x.shape[:axis], length, *x.shape[axis + 1:]), x.dtype)


def tile(x: Any, reps: Any) -> Any:
    reps = sizes_of(reps)
    ndim = max(x.ndim, len(reps))
    shape = zip((1,) * (ndim - x.ndim) + x.shape, (1,) * (ndim - len(reps)) + reps, strict=True)
    return Symbol(tuple(n * r for n, r in shape), x.dtype)


def take(x: Any, index: Any, axis: Any = None, **params: Any) -> Any:
    x, axis = (x.reshape(-1), 0) if axis is None else (x, normalize(axis, x.ndim)[0])
    return Symbol((*x.shape[:axis], *as_symbol(index).shape, *x.shape[axis + 1:]), x.dtype)


def take_along_axis(x: Any, index: Any, axis: Any = -1) -> Any:
    if axis is None:
        return Symbol(index.shape, x.dtype)
    (axis,) = normalize(axis, x.ndim)
    if index.ndim != x.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    rest = together((*x.shape[:axis], 1, *x.shape[axis + 1:]), (*index.shape[:axis], 1, *index.shape[axis + 1:]))
    return Symbol((*rest[:axis], index.shape[axis], *rest[axis + 1:]), x.dtype)


# ── new arrays ────────────────────────────────────────────────────────────────────────────────────────────────────────


def as_symbol(x: Any, dtype: Any = None) -> Any:
    """What has a shape and a dtype, or numbers in lists, less its values."""
    if not hasattr(x, "shape") or not hasattr(x, "dtype"):
        x = np.asarray(x, dtype)
    if type(x) is Symbol:
        return x if dtype is None or x.dtype == dtype else x.astype(dtype)
    return Symbol(tuple(x.shape), x.dtype if dtype is None else dtype, x.strides if dtype is None else None)


def made(shape: Any, dtype: Any = float, order: str = "C") -> Any:
    return Symbol(sizes_of(shape), float if dtype is None else dtype)


def full(shape: Any, value: Any, dtype: Any = None, **params: Any) -> Any:
    return Symbol(sizes_of(shape), as_symbol(value).dtype if dtype is None else dtype)


def like(x: Any, *args: Any, dtype: Any = None, shape: Any = None, **params: Any) -> Any:
    x, dtype = as_symbol(x), x.dtype if dtype is None else dtype
    return laid(x.shape, dtype, x) if shape is None else Symbol(sizes_of(shape), dtype)


def arange(*args: Any, dtype: Any = None) -> Any:
    start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
    return Symbol((max(ceil((stop - start) / step), 0),), mixed(*args, np.int64(0)) if dtype is None else dtype)


def eye(n: int, m: Any = None, k: int = 0, dtype: Any = float, **params: Any) -> Any:
    return Symbol((n, n if m is None else m), dtype)


def result_type(*args: Any) -> Any:
    return mixed(*args)


# ── products, matrices, spectra ───────────────────────────────────────────────────────────────────────────────────────


def signed(signature: str, *operands: Any, dtypes: Any) -> Any:
    """A function of stacks, by a signature such as (m?,n),(n,p?)->(m?,p?): k is the lesser of m and n. `operands` are (array, shape)."""
    inputs, outputs = ([part.strip("()").split(",") if part != "()" else [] for part in side.replace("),(", ")|(").split("|")]
                       for side in signature.replace(" ", "").split("->"))
    sizes: dict[str, Any] = {}
    leads = []
    for axes, (_, shape) in zip(inputs, operands, strict=True):
        missing = len(axes) - len(shape)
        if missing > 0:
            optional = [name for name in axes if name.endswith("?")]
            if len(optional) < missing:
                raise ValueError(f"Input operand does not have enough dimensions (has {len(shape)}, gufunc core with signature {signature} requires "
                                 f"{len(axes)})")
            sizes |= dict.fromkeys(optional, None)
            axes = [name for name in axes if name not in optional]
        core = shape[len(shape) - len(axes):]
        leads.append(shape[:len(shape) - len(axes)])
        for name, n in zip(axes, core, strict=True):
            if sizes.setdefault(name, n) != n:
                raise ValueError(f"Input operand has a mismatch in its core dimension, with signature {signature} (size {n} is different from "
                                 f"{sizes[name]})")
    lead = np.broadcast_shapes(*leads)
    if "m" in sizes and "n" in sizes:
        sizes["k"] = min(sizes["m"], sizes["n"])
    found = tuple(Symbol((*lead, *(sizes[name] for name in axes if sizes[name] is not None)), d) for axes, d in zip(outputs, dtypes, strict=True))
    return found[0] if len(found) == 1 else found


def of_matrices(signature: str, kinds: str, *arrays: Any) -> Any:
    """`signed`, for results whose dtypes are: that of the inputs (x), the real one of these (r), the complex one (c), int32 (i), int64 (l)."""
    dtype = mixed(*arrays)
    dtype = np.dtype(np.float64) if dtype.kind in "biu" else dtype
    known = {"x": dtype, "r": real_dtype(dtype), "c": np.result_type(dtype, np.complex64), "i": np.dtype(np.int32), "l": np.dtype(np.int64)}
    return signed(signature, *((a, a.shape) for a in arrays), dtypes=[known[kind] for kind in kinds])


def solve(a: Any, b: Any) -> Any:
    return of_matrices("(n,n),(n)->(n)" if b.ndim == 1 else "(n,n),(n,p)->(n,p)", "x", a, b)


def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    if not compute_uv:
        return of_matrices("(m,n)->(k)", "r", a)
    return of_matrices("(m,n)->(m,m),(k),(n,n)" if full_matrices else "(m,n)->(m,k),(k),(k,n)", "xrx", a)


QR = {"reduced": ("(m,n)->(m,k),(k,n)", "xx"), "complete": ("(m,n)->(m,m),(m,n)", "xx"), "r": ("(m,n)->(k,n)", "x"), "raw": ("(m,n)->(n,m),(k)", "xx")}


def qr(a: Any, mode: str = "reduced") -> Any:
    return of_matrices(*QR[mode], a)


MATRICES = {"linalg.inv": ("(n,n)->(n,n)", "x"), "linalg.det": ("(n,n)->()", "x"), "linalg.slogdet": ("(n,n)->(),()", "xr"),
            "linalg.cholesky": ("(n,n)->(n,n)", "x"), "linalg.eigh": ("(n,n)->(n),(n,n)", "rx"), "linalg.eigvalsh": ("(n,n)->(n)", "r"),
            "linalg.eig": ("(n,n)->(n),(n,n)", "cc"), "linalg.eigvals": ("(n,n)->(n)", "c")}


def matrices(name: str, a: Any, *args: Any, **params: Any) -> Any:
    return of_matrices(*MATRICES[name], a)


def dot(a: Any, b: Any) -> Any:
    if not a.ndim or not b.ndim:
        return Symbol.module.multiply(a, b)
    if a.ndim <= 2 and b.ndim <= 2:
        return Symbol.module.matmul(a, b)
    return tensordot(a, b, ([-1], [-2 if b.ndim > 1 else -1]))


def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    one, two = (range(a.ndim - axes, a.ndim), range(axes)) if isinstance(axes, int) else axes
    one, two = normalize(one, a.ndim), normalize(two, b.ndim)
    if any(a.shape[i] != b.shape[j] for i, j in zip(one, two, strict=True)):
        raise ValueError("shape-mismatch for sum")
    return Symbol((*(n for d, n in enumerate(a.shape) if d not in one), *(n for d, n in enumerate(b.shape) if d not in two)), mixed(a, b))


def spectrum(name: str, x: Any, n: Any = None, axis: int = -1, norm: Any = None, **params: Any) -> Any:
    """fft, rfft and so on, along one axis; the halves of a real one's spectrum are alike."""
    return spectra(name, x, None if n is None else (n,), (axis,))


def spectra(name: str, x: Any, s: Any = None, axes: Any = None, norm: Any = None, **params: Any) -> Any:
    name = name.removeprefix("fft.")
    axes = tuple(range(-len(s) if s is not None else -x.ndim, 0)) if axes is None else axes
    shape = list(x.shape)
    from_real, to_real = name.startswith(("rfft", "ihfft")), name.startswith(("irfft", "hfft"))
    for i, axis in enumerate(axes):
        last = i == len(axes) - 1
        n = (shape[axis] - 1) * 2 if to_real and last else shape[axis]
        n = n if s is None or s[i] in (None, -1) else s[i]
        if n < 1:
            raise ValueError(f"Invalid number of FFT data points ({n}) specified.")
        shape[axis] = n // 2 + 1 if from_real and last else n
    half = x.dtype.kind == "f" and x.dtype.itemsize <= 4 or x.dtype == np.complex64
    return Symbol(tuple(shape), ("float32" if half else "float64") if to_real else "complex64" if half else "complex128")


SPECTRUM = {f"fft.{name}" for name in "fft ifft rfft irfft hfft ihfft".split()}
SPECTRA = {f"fft.{name}n" for name in "fft ifft rfft irfft".split()} | {f"fft.{name}2" for name in "fft ifft rfft irfft".split()}
FAMILIES: list[Any] = [
    ({"any", "all"}, asked), (RUNNING, running), (SUMS | MEANS | EXTREMES | PLACES, reduced), (SAME, same), (PREDICATES, truth),
    (VIEWS, viewed), (set(MATRICES), matrices), (SPECTRUM, spectrum), (SPECTRA, spectra)]
RULES: dict[str, Any] = {
    "where": where, "clip": clip, "angle": angle, "real": lambda x: x.real, "imag": lambda x: x.imag, "argsort": argsort, "lexsort": lexsort,
    "searchsorted": searchsorted, "bincount": bincount, "reshape": reshape, "ravel": ravel, "transpose": transpose, "permute_dims": transpose,
    "broadcast": broadcast, "broadcast_arrays": broadcast_arrays, "concatenate": concatenate, "concat": concatenate, "stack": stack, "repeat": repeat,
    "tile": tile, "take": take, "take_along_axis": take_along_axis, "lib.stride_tricks.as_strided": as_strided, "asarray": as_symbol,
    "array": as_symbol, "ascontiguousarray": lambda x: x.copy(), "zeros": made, "ones": made, "empty": made, "full": full, "zeros_like": like,
    "ones_like": like, "empty_like": like, "full_like": like, "arange": arange, "eye": eye, "identity": eye, "result_type": result_type,
    "linalg.solve": solve, "linalg.svd": svd, "linalg.qr": qr, "dot": dot, "tensordot": tensordot, "shape": shape_of,
}
