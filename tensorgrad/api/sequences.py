"""Sequences of numbers, identity matrices, and the places of triangles: `arange`, `linspace`, `eye`, `tril_indices`.
https://pytorch.org/docs/stable/torch.html#creation-ops"""
from __future__ import annotations

import math as _math
from typing import Any

import numpy as np

from .. import dtype as dtypes
from .._tensor import Tensor
from ..core.dispatch import fresh
from ..core.tape import TensorBase
from ..device import device as Device
from ..dtype import as_dtype
from ..messages.warn_once import warn
from ..runtime.numpy_state import Region, compute
from ..size import towards_zero, whole
from ..storage.base import backend_of
from ..storage.out_of_memory import check_room
from ._arguments import C_NAMES, check_long, converted, each_example, in_batch, integer
from ._kinds import Dtype, Index, Layout, Number
from ._register import public
from .creation import _placed, as_leaf


@public(method=False, out="given filled")
def arange(start: Number | None = None, end: Number | None = None, step: Number = 1, *, dtype: Dtype | None = None,
           layout: Layout | None = None, device: Device | None = None, requires_grad: bool | None = False,
           pin_memory: bool | None = False) -> Tensor:
    """start, start + step, … up to but not including end.

    Output: (⌈(end − start) / step⌉), of int64, or of the default dtype if one of the three is a float
    Errors: RuntimeError if step is 0 or leads away from end, or an end is not finite; NotImplementedError for bool and
        complex dtypes; TypeError for tensors with axes
    https://pytorch.org/docs → torch.arange

    >>> import tensorgrad as torch
    >>> torch.arange(1, 4), torch.arange(0., 1, 0.25)
    (tensor([1, 2, 3]), tensor([0.0000, 0.2500, 0.5000, 0.7500]))
    """
    if start is None and end is None:
        raise TypeError("arange() received an invalid combination of arguments - got (), but expected one of: (Number "
                        "end), (Number start, Number end)")
    start, end = (0, start) if end is None else (0 if start is None else start, end)
    if any(isinstance(v, TensorBase) and v.array.ndim for v in (start, end, step)):
        raise TypeError("arange() takes numbers and tensors of no dimensions")
    start, end, step = (v.item() if isinstance(v, TensorBase) else v for v in (start, end, step))
    if dtype is None:
        dtype = dtypes.get_default_dtype() if any(isinstance(v, float) for v in (start, end, step)) else dtypes.int64
    kind, backend = as_dtype(dtype), backend_of(device)
    if not all(-_math.inf < v < _math.inf for v in (start, end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if kind is dtypes.bool or kind.is_complex:
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{dtypes.SCALAR_TYPES[kind.name]}'")
    if step == 0 or step != step:
        raise RuntimeError("step must be nonzero")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if kind is dtypes.int64:
        start, end, step = towards_zero(start), towards_zero(end), towards_zero(step)
        if not step:
            raise ValueError("step must be nonzero")
    count = _math.ceil((end - start) / step)
    check_room((count,), kind.itemsize, "arange")
    out = fresh(compute(_steps, backend, start, step, count, kind.numpy), backend)
    return as_leaf(out, requires_grad)


def _steps(backend: Any, start: Any, step: Any, count: int, dtype: Any) -> Any:
    """Return `count` numbers from start on, `step` apart."""
    whole = dtype.kind in "iub"
    number = towards_zero if whole else float
    places = backend.xp.arange(count, dtype="int64" if whole else "float64")
    return backend.cast(places * number(step) + number(start), dtype)


@public("range", method=False, out="given filled", name="range")
def range_(start: Number, end: Number, step: Number = 1, *, dtype: Dtype | None = None, layout: Layout | None = None,
           device: Device | None = None, requires_grad: bool | None = False) -> Tensor:
    """arange with the end included (deprecated in PyTorch).

    Output: (⌊(end − start) / step⌋ + 1), of the default dtype
    Errors: RuntimeError if step is 0 or leads away from end, or an end is not finite
    https://pytorch.org/docs → torch.range

    >>> import tensorgrad as torch, warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     torch.range(1, 3)
    tensor([1., 2., 3.])
    """
    warn("torch.range is deprecated and will be removed in a future release because its behavior is "
         "inconsistent with Python's range builtin. Instead, use torch.arange, which produces values in "
         "[start, end).",
         again=True)
    if step == 0 or step != step:
        raise RuntimeError("step must be nonzero")
    if not (_math.isfinite(start) and _math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    count = _math.floor((end - start) / step) + 1
    out = arange(count, dtype=dtypes.float64) * step + start
    return out.to(dtype=dtypes.get_default_dtype() if dtype is None else as_dtype(dtype),
                  device=device).requires_grad_(requires_grad)


def _check_ends(function: str, start: Any, end: Any) -> None:
    for name, value in (("start", start), ("end", end)):
        if isinstance(value, TensorBase) and value.array.ndim:
            raise RuntimeError(f"{function} only supports 0-dimensional start and end tensors, but got {name} with "
                               f"{value.array.ndim} dimension(s).")


def _kind_between(name: str, start: Any, end: Any, dtype: Any) -> Any:
    """The dtype of a sequence between two numbers; RuntimeError for complex ends and a real dtype."""
    complex_ = isinstance(start, complex) or isinstance(end, complex)
    kind = (dtypes.default_complex() if complex_ else dtypes.get_default_dtype()) if dtype is None else as_dtype(dtype)
    if complex_ and not kind.is_complex:
        raise RuntimeError(f"torch.{name}(): inferred dtype {C_NAMES[dtypes.default_complex().name]} can't be safely "
                           f"cast to passed dtype {dtypes.SCALAR_TYPES[kind.name]}")
    return kind


@public(method=False, out="given filled")
def linspace(start: Tensor | Number, end: Tensor | Number, steps: int, *, dtype: Dtype | None = None,
             layout: Layout | None = None, device: Device | None = None, requires_grad: bool | None = False,
             pin_memory: bool | None = False) -> Tensor:
    """`steps` values from start to end, both included, evenly spaced.

    Output: (steps), of the default dtype
    Errors: RuntimeError if steps is negative or an end is a tensor with axes; TypeError if steps is not an integer;
        NotImplementedError for bool
    https://pytorch.org/docs → torch.linspace

    >>> import tensorgrad as torch
    >>> torch.linspace(0, 1, 3)
    tensor([0.0000, 0.5000, 1.0000])
    """
    if in_batch(start, end):
        return each_example(linspace, start, end, steps, dtype=dtype, device=device)
    _check_ends("linspace", start, end)
    start, end = (v.item() if isinstance(v, TensorBase) else v for v in (start, end))
    if not hasattr(steps, "__index__"):
        raise TypeError(f"linspace(): argument 'steps' must be int, not {type(steps).__name__}")
    steps = whole(steps)
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    check_room((steps,), 4, "linspace")
    kind = _kind_between("linspace", start, end, dtype)
    backend = backend_of(device)
    if kind is dtypes.bool or kind is dtypes.complex32 and steps > 1:
        raise NotImplementedError(f"\"linspace_cpu\" not implemented for '{dtypes.SCALAR_TYPES[kind.name]}'")
    if kind.numpy.kind in "iu":
        start, end = (int(converted(v, kind)) for v in (start, end))
    step = (end - start) / (steps - 1) if steps > 1 else 0.0
    with Region():
        values = _between(backend.xp, kind, start, end, step, steps)
        out = fresh(backend.cast(values, kind.numpy), backend)
    return as_leaf(out, requires_grad)


def _between(xp: Any, kind: Any, start: Any, end: Any, step: Any, steps: int) -> Any:
    """Return `steps` numbers, computed from both ends to the middle: both are met exactly, the values are symmetric."""
    if steps == 1:
        return xp.full(1, start)
    places = xp.arange(steps, dtype="float64")
    if kind is dtypes.float32:          # in float64, for PyTorch's product and sum are fused: rounded once
        start, end, step = (np.float32(v) for v in (start, end, step))
        start, end, step = float(start), float(end), float((end - start) / np.float32(steps - 1))
    elif kind is dtypes.complex64:
        start, end, step = (np.complex64(v) for v in (start, end, step))
        places = places.astype("float32")
    values = xp.where(places < steps // 2, start + step * places, end - step * (steps - 1 - places))
    return values.astype(kind.numpy if kind in (dtypes.float32, dtypes.complex64) else
                         "complex128" if kind.is_complex else "float64")


@public(method=False, out="given filled")
def logspace(start: Tensor | Number, end: Tensor | Number, steps: int, base: float = 10.0, *,
             dtype: Dtype | None = None, layout: Layout | None = None, device: Device | None = None,
             requires_grad: bool | None = False, pin_memory: bool | None = False) -> Tensor:
    """base to the powers linspace(start, end, steps).

    Output: (steps), of the default dtype
    Errors: RuntimeError if steps is negative, an end is a tensor with axes, or a complex end meets a real dtype;
        TypeError if steps is not an integer
    https://pytorch.org/docs → torch.logspace

    >>> import tensorgrad as torch
    >>> torch.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    if in_batch(start, end, base):
        return each_example(logspace, start, end, steps, base, dtype=dtype, device=device)
    _check_ends("logspace", start, end)
    base = base.item() if isinstance(base, TensorBase) else base
    start, end = (v.item() if isinstance(v, TensorBase) else v for v in (start, end))
    kind = _kind_between("logspace", start, end, dtype)
    if kind is dtypes.bool:
        raise NotImplementedError("\"logspace_cpu\" not implemented for 'Bool'")
    if kind.numpy.kind in "iu":
        start, end = (int(converted(v, kind)) for v in (start, end))
    powers = linspace(start, end, steps, dtype=dtypes.complex128 if kind.is_complex else dtypes.float64, device=device)
    with Region():
        out = fresh(type(powers._storage).cast(base ** powers.array, kind.numpy), type(powers._storage))
    return as_leaf(out, requires_grad)


@public(method=False, out="given")
def eye(n: Index, m: Index | None = None, *, dtype: Dtype | None = None, layout: Layout | None = None,
        device: Device | None = None, requires_grad: bool | None = False, pin_memory: bool | None = False) -> Tensor:
    """Ones on the diagonal of an n × m matrix, zeros elsewhere.

    Output: (n, m), or (n, n)
    Errors: RuntimeError if n or m is negative
    https://pytorch.org/docs → torch.eye

    >>> import tensorgrad as torch
    >>> torch.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    m = n if m is None else m
    for name, value in (("n", n), ("m", m)):
        if value < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {value}")
    backend, kind = backend_of(device), dtypes.get_default_dtype() if dtype is None else as_dtype(dtype)
    if kind is dtypes.complex32:
        raise NotImplementedError("\"eye\" not implemented for 'ComplexHalf'")
    out = fresh(backend.xp.eye(n, m, dtype=kind.numpy), backend)
    return as_leaf(out, requires_grad)


def _sides(row: Any, col: Any, dtype: Any, function: str) -> tuple[int, int]:
    row, col = integer(row, "row"), integer(col, "col")
    check_long(row, col)
    for name, n in (("row", row), ("col", col)):
        if n < 0:
            raise RuntimeError(f"{name} must be non-negative, got{n}")
    if (name := as_dtype(dtype).name) not in ("int32", "int64"):
        raise NotImplementedError(f"\"{function}\" not implemented for '{dtypes.SCALAR_TYPES[name]}'")
    return row, col


@public(method=False)
def tril_indices(row: int, col: int, offset: int = 0, *, dtype: Dtype | None = dtypes.int64,
                 device: Device | None = None, layout: Layout | None = None, pin_memory: bool | None = False,
                 requires_grad: bool | None = False) -> Tensor:
    """The places on and below a diagonal, as a 2 × n tensor.

    Output: (2, n): the rows and the columns, row by row
    Errors: RuntimeError if row or col is negative; NotImplementedError for dtypes but int32 and int64; TypeError if
        they are not integers
    https://pytorch.org/docs → torch.tril_indices

    >>> import tensorgrad as torch
    >>> torch.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    row, col = _sides(row, col, dtype, "tril_indices")
    col = min(col, max(row + offset, 0))            # diagonals further right are empty
    check_room((row, col), 1, "tril_indices")
    places = np.stack(np.tril_indices(row, offset, col)).astype(as_dtype(dtype).numpy)
    return as_leaf(_placed(places, device), requires_grad)


@public(method=False)
def triu_indices(row: int, col: int, offset: int = 0, *, dtype: Dtype | None = dtypes.int64,
                 device: Device | None = None, layout: Layout | None = None, pin_memory: bool | None = False,
                 requires_grad: bool | None = False) -> Tensor:
    """The places on and above a diagonal, as a 2 × n tensor.

    Output: (2, n): the rows and the columns, row by row
    Errors: RuntimeError if row or col is negative; NotImplementedError for dtypes but int32 and int64; TypeError if
        they are not integers
    https://pytorch.org/docs → torch.triu_indices

    >>> import tensorgrad as torch
    >>> torch.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    row, col = _sides(row, col, dtype, "triu_indices")
    row = min(row, max(col - offset, 0))            # diagonals further down are empty
    check_room((row, col), 1, "triu_indices")
    places = np.stack(np.triu_indices(row, offset, col)).astype(as_dtype(dtype).numpy)
    return as_leaf(_placed(places, device), requires_grad)
