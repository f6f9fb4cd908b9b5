"""Ops of the table as the operators that remain of them below autograd: what classes with `__torch_dispatch__` see.

PyTorch composes the operators of these ops from others, which are called here. Rules are as in `aten_rules.py`; values
are Tensors.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .aten_rules import Rule, by_axes, indexed, places, rule

PARTS: dict[str, Rule] = {}


def part(*names: str) -> Callable[[Rule], Rule]:
    """Return a decorator that makes a function the rule of these ops, for classes."""
    return rule(*names, table=PARTS)


def defined(op: Any) -> bool:
    """Return True if an op is defined by other ops, and not by the backend's or the host's functions."""
    return not (op.elementwise or op.native or op.host or op.opname in op.forward.__code__.co_names)


PARTS |= {
    **dict.fromkeys(["contiguous", "in_columns"], lambda call, x: call("clone", x)),
    **dict.fromkeys(["gather_sparse", "take_along_axis"],
                    lambda call, x, index, *, axis: call("gather", x, axis, index)),
    "bincount": lambda call, x, weights, *, minlength: call("bincount", x, weights, minlength),
    "copied": lambda call, x, src: call("clone", src),
    "filled": lambda call, x, *, value: call("full_like", x, value),
    "histc": lambda call, x, *, bins, low, high: call("histc", x, bins, low, high),
    "linear": lambda call, x, w, b: call("addmm", b, x, call("t", w)) if x.ndim == 2 else call("linear", x, w, b),
    "linear_without_bias": lambda call, x, w: call("mm", x, call("t", w)) if x.ndim == 2 else call("linear", x, w),
    "prelu": lambda call, x, w: call("where.self", call("gt.Scalar", x, 0), x, call("mul.Tensor", w, x)),
    "softmax": lambda call, x, *, axis: call("_softmax", x, axis, False),
    "log_softmax": lambda call, x, *, axis: call("_log_softmax", x, axis, False),
    "take_axis": lambda call, x, index, *, axis: call("index_select", x, axis, index),
    "where": lambda call, condition, a, b: call("where.self", condition, a, b),
}


@part("matmul")
def _(call: Any, a: Any, b: Any) -> Any:
    name = {(1, 1): "dot", (2, 1): "mv", (2, 2): "mm"}.get((a.ndim, b.ndim), "matmul")
    return call("bmm" if a.ndim == b.ndim == 3 and a.shape[0] == b.shape[0] else name, a, b)


@part("reshape")
def _(call: Any, x: Any, *, shape: Any) -> Any:
    if x.is_contiguous():
        return call("view", x, list(shape))
    return call("_unsafe_view", call("clone", x), list(shape))


@part("as_strided")
def _(call: Any, x: Any, *, size: Any, stride: Any, offset: Any, **unused: Any) -> Any:
    return call("as_strided", x, list(size), list(stride), offset)


@part("window_max")
def _(call: Any, x: Any, *, kernel: Any, stride: Any, widths: Any, dilation: Any) -> Any:
    if len(kernel) != 2 or any(before != after for before, after in widths):
        return NotImplemented
    return call("max_pool2d_with_indices", x, list(kernel), list(stride), [before for before, _ in widths],
                list(dilation))


@part("svd_factor")
def _(call: Any, a: Any, *, full: bool) -> Any:
    return call("_linalg_svd", a, full)


# ── Fourier transforms ────────────────────────────────────────────────────────


# what `aten` calls the division by √n and by n, forward and back
DIVISIONS = {"backward": (0, 2), "ortho": (1, 1), "forward": (2, 0)}


@part("fourier_transform")
def _(call: Any, x: Any, *, axes: Any, inverse: bool, norm: str, last: Any) -> Any:
    if not x.is_complex():
        x = call("_to_copy", x, dtype=x.dtype.to_complex())
    return call("_fft_c2c", x, list(axes), DIVISIONS[norm][inverse], not inverse)


@part("half_spectrum")
def _(call: Any, x: Any, *, axis: int, norm: str, doubled: bool) -> Any:
    return NotImplemented if doubled else call("_fft_r2c", x, [axis], DIVISIONS[norm][0], True)


@part("from_half_spectrum")
def _(call: Any, x: Any, *, n: int, axis: int, norm: str, halved: bool) -> Any:
    return NotImplemented if halved else call("_fft_c2r", x, [axis], DIVISIONS[norm][1], n)


# ── gradients of views and indexing ───────────────────────────────────────────────────────────────────────────────────


@part("place_slice")
def _(call: Any, x: Any, *, shape: Any, index: Any) -> Any:
    target = call("new_zeros", x, list(shape))
    view = indexed(call, target, index=index)
    if view is NotImplemented:
        return view
    call("copy_", view, x)
    return target


@part("diagonal_place")
def _(call: Any, x: Any, *, shape: Any, offset: int, axis1: int, axis2: int) -> Any:
    target = call("new_zeros", x, list(shape))
    call("copy_", call("diagonal", target, offset, axis1, axis2), x)
    return target


@part("place_along_axis")
def _(call: Any, x: Any, index: Any, *, shape: Any, axis: int) -> Any:
    return call("scatter.src", call("new_zeros", x, list(shape)), axis, index, x)


@part("add_axis")
def _(call: Any, x: Any, index: Any, *, size: int, axis: int) -> Any:
    shape = [size if i == axis else n for i, n in enumerate(x.shape)]
    return call("index_add", call("new_zeros", x, shape), axis, index, x)


@part("index_add_into")
def _(call: Any, x: Any, *indices: Any, shape: Any, template: Any) -> Any:
    found = places(template, indices)
    return NotImplemented if found is None else call("index_put", call("new_zeros", x, list(shape)), found, x, True)


@part("embedding_add")
def _(call: Any, x: Any, index: Any, *, rows: int) -> Any:
    return call("index_put", call("new_zeros", x, [rows, *x.shape[index.ndim:]]), [index], x, True)


@part("scatter_extreme")
def _(call: Any, x: Any, value: Any, index: Any, *, axis: int, reduce: str, include_self: bool, **ties: Any) -> Any:
    return call("scatter_reduce.two", x, axis, index, value, reduce, include_self=include_self)


@part("one_zero")
def _(call: Any, x: Any, zeros: Any, *, strict: bool = False) -> Any:
    return call("clone", x)             # as PyTorch, which checks products of plain tensors only


@part("convolution_weight")
def _(call: Any, y: Any, x: Any, *, size: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    axes = y.ndim - 2
    weight = call("new_empty", x, [y.shape[1], x.shape[1] // groups, *size])        # only its shape matters
    return call("convolution_backward", y, x, weight, None, *by_axes(axes, stride, padding, dilation), False,
                [0] * axes, groups, [False, True, False])[1]
