"""The ops of the table as PyTorch's operators, for classes that run operators themselves.

A row is a function `row(call, *inputs, **params)` of the op's inputs and parameters. `call("sum.dim_IntList", x, [0])`
runs an operator.
"""
from __future__ import annotations

import re
from collections.abc import Callable
from math import prod
from typing import Any

from ..core.dispatch import fresh, number_array
from ..core.fast_path import PLAIN
from ..core.tape import TensorBase, node_of
from ..dtype import FROM_NUMPY

ROWS: dict[str, Callable[..., Any]] = {}


def row(*names: str) -> Callable[[Any], Any]:
    """Decorate the row of some ops."""
    def register(function: Any) -> Any:
        for name in names:
            ROWS[name] = function
        return function
    return register


# last arguments that PyTorch leaves out where they are these
DEFAULTS: dict[str, tuple[Any, ...]] = {
    "cat": (0,), "stack": (0,), "split.Tensor": (0,), "split_with_sizes": (0,), "unbind.int": (0,),
    "linalg_vector_norm": (2.0, None, False), "sort": (-1, False), "argsort": (-1, False), "argmax": (None,)}


# ── ops without a row ─────────────────────────────────────────────────────────────────────────────────────────────────


def defined(op: Any) -> bool:
    """Return True if an op is defined by other ops, and not by the backend's or the host's functions."""
    return not (op.elementwise or op.native or op.host or op.opname in OF_ONE_NAME
                or op.opname in op.forward.__code__.co_names)


def generic(call: Any, op: Any, args: Any, params: Any) -> Any:
    """Run an op as the operator of PyTorch's name for it, with its parameters by position."""
    if not op.elementwise and op.opname not in OF_ONE_NAME:
        raise NotImplementedError(f"the op {op.opname!r} has no operator of PyTorch here, for classes that define "
                                  "__torch_dispatch__")
    name = RENAMED.get(op.opname) or aten_name(op.torch_name)
    if op.elementwise and op.arity == 2:
        return of_two(call, name, *args)
    return call(name, *args, *params.values())


# ops whose inputs and parameters are those of PyTorch's operator
OF_ONE_NAME = frozenset("cummax cummin cumprod cumsum logcumsumexp tril triu glu diagonal topk kthvalue determinant "
                        "matrix_exponential bincount histc angle conj unfold argmax argmin view_as_real "
                        "view_as_complex nanmedian_of_all square isfinite".split())


def aten_name(name: str) -> str:
    """Return the name of an operator, given that of its steps: `SpecialI0E` is of special_i0e."""
    return re.sub(r"(?<=[a-z])[A-Z]", r"_\g<0>", name).lower()


RENAMED = {"modified_bessel_k0": "special_modified_bessel_k0", "make_complex": "complex", "greater": "gt",
           "greater_equal": "ge", "less": "lt", "less_equal": "le", "equal": "eq", "not_equal": "ne",
           "left_shift": "bitwise_left_shift", "right_shift": "bitwise_right_shift"}
RENAMED |= {name: f"special_{name}" for name in (
    "chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w "
    "shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v "
    "shifted_chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l "
    "legendre_polynomial_p").split()}

# ── two operands ──────────────────────────────────────────────────────────────────────────────────────────────────────

# operators with the overloads Tensor and Scalar; arithmetic makes tensors of numbers
OF_TENSOR_OR_NUMBER = frozenset("remainder fmod eq ne lt le gt ge bitwise_and bitwise_or bitwise_xor rsub "
                                "masked_fill fill".split())
OF_TENSOR = frozenset("add sub mul div copysign xlogy bitwise_left_shift bitwise_right_shift".split())
SWAPPED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne", "add": "add", "mul": "mul",
           "bitwise_and": "bitwise_and", "bitwise_or": "bitwise_or", "bitwise_xor": "bitwise_xor"}


def overload(name: str, first: Any, *others: Any) -> str:
    """Return the ending of an operator's name that its second operand calls for, with a dot; '' for the default."""
    if not others:
        return ""
    tensor = isinstance(others[0], TensorBase)
    if name == "pow":
        return ".Tensor_Tensor" if tensor else ".Tensor_Scalar" if first is not None else ".Scalar"
    if name in OF_TENSOR_OR_NUMBER:
        return ".Tensor" if tensor else ".Scalar"
    return ".Tensor" if name in OF_TENSOR else ""


def of_two(call: Any, name: str, a: Any, b: Any) -> Any:
    """Run an operator of two operands, the first of which may be a number."""
    if isinstance(a, TensorBase):
        found = overload(name, a, b)
        return call(name + found, a, b if found or isinstance(b, TensorBase) else constant(b, a))
    if name in SWAPPED:
        return of_two(call, SWAPPED[name], b, a)
    if name == "sub":
        return call("rsub.Scalar", b, a)
    if name == "div":
        return call("mul.Tensor", call("reciprocal", b), a)
    if name == "pow":
        return call("pow.Scalar", a, b)
    return call(name + overload(name, b, b), constant(a, b), b)


def constant(number: Any, beside: Any) -> Any:
    """Return a number as a plain tensor, of an operand's dtype and on its device."""
    backend = beside._storage.beside()
    return fresh(number_array(number, beside.array.dtype, backend), backend)


@row("floor_divide")
def _floor_divide(call: Any, a: Any, b: Any) -> Any:
    return call("floor_divide", a if isinstance(a, TensorBase) else constant(a, b), b)


@row("trunc_divide")
def _trunc_divide(call: Any, a: Any, b: Any) -> Any:
    return call("div.Tensor_mode", a, b, rounding_mode="trunc")


@row("square")
def _square(call: Any, x: Any) -> Any:
    return call("pow.Tensor_Scalar", x, 2)


@row("relu_gradient")
def _relu_gradient(call: Any, slope: Any, y: Any) -> Any:
    return call("threshold_backward", slope, y, 0)


@row("sigmoid_gradient")
def _sigmoid_gradient(call: Any, slope: Any, y: Any) -> Any:
    return call("sigmoid_backward", slope, y)


@row("tanh_gradient")
def _tanh_gradient(call: Any, slope: Any, y: Any) -> Any:
    return call("tanh_backward", slope, y)


# ── single elements ───────────────────────────────────────────────────────────────────────────────────────────────────


@row("polygamma")
def _polygamma(call: Any, x: Any, n: Any) -> Any:
    return call("polygamma", n, x)


@row("round")
def _round(call: Any, x: Any, decimals: Any) -> Any:
    return call("round.decimals", x, decimals=decimals) if decimals else call("round", x)


@row("gelu")
def _gelu(call: Any, x: Any) -> Any:
    return call("gelu", x)


@row("gelu_tanh")
def _gelu_tanh(call: Any, x: Any) -> Any:
    return call("gelu", x, approximate="tanh")


@row("clamp")
def _clamp(call: Any, x: Any, lo: Any, hi: Any) -> Any:
    tensors = isinstance(lo, TensorBase) or isinstance(hi, TensorBase)
    return call("clamp.Tensor" if tensors else "clamp", x, lo, hi)


@row("lerp")
def _lerp(call: Any, a: Any, b: Any, t: Any) -> Any:
    return call("lerp.Tensor" if isinstance(t, TensorBase) else "lerp.Scalar", a, b, t)


@row("where")
def _where(call: Any, condition: Any, a: Any, b: Any) -> Any:
    return call("where.self", condition, a, b)


@row("masked_fill")
def _masked_fill(call: Any, x: Any, value: Any, mask: Any) -> Any:
    if type(value) in PLAIN and value._storage.rank == 0 and node_of(value) is None:
        value = value.item()            # a number was given
    return call("masked_fill" + overload("masked_fill", x, value), x, mask, value)


@row("cast")
def _cast(call: Any, x: Any, dtype: Any) -> Any:
    return call("_to_copy", x, dtype=FROM_NUMPY.get(dtype, dtype))


@row("clone", "contiguous", "in_columns")
def _clone(call: Any, x: Any) -> Any:
    return call("clone", x)


@row("copied")
def _copied(call: Any, x: Any, src: Any) -> Any:
    return call("clone", src)


@row("filled")
def _filled(call: Any, x: Any, value: Any) -> Any:
    return call("full_like", x, value)


@row("real", "imag")
def _real(call: Any, x: Any) -> Any:
    return call("real", x)


@row("imag")
def _imag(call: Any, x: Any) -> Any:
    return call("imag", x)


# ── reductions and scans ──────────────────────────────────────────────────────────────────────────────────────────────


def dims(axis: Any) -> list[int]:
    return [axis] if isinstance(axis, int) else list(axis)


def reducing(name: str, along: str) -> None:
    """Make the row of a reduction over all elements, or along axes."""
    def reduce(call: Any, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        if axis is None and not keepdims:
            return call(name, x)
        axes = list(range(x.ndim)) if axis is None else dims(axis)
        return call(f"{name}.{along}", x, axes[0] if along in ("dim_int", "int") else axes, *[True] * bool(keepdims))
    ROWS[name] = reduce


for _name, _along in {"sum": "dim_IntList", "mean": "dim", "prod": "dim_int", "all": "dims", "any": "dims"}.items():
    reducing(_name, _along)


@row("max", "amax")
def _max(call: Any, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return call("max", x) if axis is None and not keepdims else call("amax", x, dims(axis or ()), keepdims)


@row("min", "amin")
def _min(call: Any, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return call("min", x) if axis is None and not keepdims else call("amin", x, dims(axis or ()), keepdims)


@row("greatest_of_all")
def _greatest(call: Any, x: Any) -> Any:
    return call("max", x)


@row("least_of_all")
def _least(call: Any, x: Any) -> Any:
    return call("min", x)


def along_one(opname: str, name: str) -> None:
    """Make the row of an op with the parameters (axis, keepdims)."""
    ROWS[opname] = lambda call, x, axis, keepdims=False: call(name, x, axis, *[True] * bool(keepdims))


for _name, _along in {"max_dim": "max.dim", "min_dim": "min.dim", "median_dim": "median.dim", "mode": "mode",
                      "nanmedian_dim": "nanmedian.dim", "argmax": "argmax", "argmin": "argmin"}.items():
    along_one(_name, _along)


@row("logsumexp")
def _logsumexp(call: Any, x: Any, axis: Any, keepdims: bool = False) -> Any:
    return call("logsumexp", x, dims(axis), *[True] * bool(keepdims))


def spread(name: str) -> Callable[..., Any]:
    def reduce(call: Any, x: Any, axis: Any = None, correction: Any = 1, keepdims: bool = False) -> Any:
        options = {"correction": correction} if axis is not None or correction != 1 else {}
        options |= {"keepdim": True} if keepdims else {}
        return call(f"{name}.correction", x, *([] if axis is None else [dims(axis)]), **options)
    return reduce


ROWS |= {"variance": spread("var"), "deviation": spread("std")}


@row("vector_norm")
def _vector_norm(call: Any, x: Any, ord: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return call("linalg_vector_norm", x, ord, None if axis is None else dims(axis), keepdims)


@row("median_of_all")
def _median(call: Any, x: Any) -> Any:
    return call("median", x)


@row("softmax")
def _softmax(call: Any, x: Any, axis: int) -> Any:
    return call("_softmax", x, axis, False)


@row("log_softmax")
def _log_softmax(call: Any, x: Any, axis: int) -> Any:
    return call("_log_softmax", x, axis, False)


@row("sort_dim")
def _sort(call: Any, x: Any, axis: int, descending: bool) -> Any:
    return call("sort", x, axis, descending)


@row("order")
def _order(call: Any, x: Any, axis: int, descending: bool) -> Any:
    return call("argsort", x, axis, descending)


# ── views ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@row("permute_dims")
def _permute(call: Any, x: Any, axes: Any) -> Any:
    return call("permute", x, list(axes))


@row("swapaxes")
def _transpose(call: Any, x: Any, axis1: int, axis2: int) -> Any:
    return call("transpose.int", x, axis1, axis2)


@row("t")
def _t(call: Any, x: Any) -> Any:
    return call("t", x)


@row("expand_dims")
def _unsqueeze(call: Any, x: Any, axis: Any) -> Any:
    for place in sorted(dims(axis)):
        x = call("unsqueeze", x, place)
    return x


@row("squeeze")
def _squeeze(call: Any, x: Any, axis: Any) -> Any:
    if axis is None or prod(n for i, n in enumerate(x.shape) if i not in dims(axis)) == prod(x.shape) \
            and len(dims(axis)) == sum(n == 1 for n in x.shape) != 1:
        return call("squeeze", x)
    return call("squeeze.dim", x, dims(axis)[0]) if len(dims(axis)) == 1 else call("squeeze.dims", x, dims(axis))


@row("broadcast_to")
def _expand(call: Any, x: Any, shape: Any) -> Any:
    return call("expand", x, list(shape))


@row("reshape")
def _reshape(call: Any, x: Any, shape: Any) -> Any:
    if x.is_contiguous():
        return call("view", x, list(shape))
    return call("_unsafe_view", call("clone", x), list(shape))


@row("get_item", "get_slice")
def _indexed(call: Any, x: Any, index: Any) -> Any:
    index = index if isinstance(index, tuple) else (index,)
    if Ellipsis in index:
        place = index.index(Ellipsis)
        missing = x.ndim - sum(part is not None and part is not Ellipsis for part in index)
        index = (*index[:place], *[slice(None)] * missing, *index[place + 1:])
    axis, taken = 0, x
    for part in index:
        if part is None:
            taken, axis = call("unsqueeze", taken, axis), axis + 1
        elif isinstance(part, slice):
            if part != slice(None):
                taken = _sliced(call, taken, axis, part)
            axis += 1
        else:
            taken = call("select.int", taken, axis, int(part))
    return call("alias", x) if taken is x else taken


def _sliced(call: Any, x: Any, axis: int, part: slice) -> Any:
    start, stop, step = part.indices(x.shape[axis])
    last = stop if part.stop is not None else (1 << 63) - 1
    return call("slice.Tensor", x, axis, start, last, *([step] if step != 1 else []))


@row("place_slice")
def _place_slice(call: Any, x: Any, shape: Any, index: Any) -> Any:
    target = call("new_zeros", x, list(shape))
    call("copy_", _indexed(call, target, index), x)
    return target


@row("diagonal_place")
def _diagonal_place(call: Any, x: Any, shape: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    target = call("new_zeros", x, list(shape))
    call("copy_", call("diagonal", target, offset, axis1, axis2), x)
    return target


@row("place_along_axis")
def _place_along_axis(call: Any, x: Any, index: Any, shape: Any, axis: int) -> Any:
    return call("scatter.src", call("new_zeros", x, list(shape)), axis, index, x)


@row("as_strided")
def _as_strided(call: Any, x: Any, size: Any, stride: Any, offset: Any = None, **unused: Any) -> Any:
    return call("as_strided", x, list(size), list(stride), offset)


@row("split_sizes", "split_with_sizes")
def _split(call: Any, x: Any, sizes: Any, axis: int) -> Any:
    first, *others = sizes
    if all(n == first for n in others[:-1]) and (not others or others[-1] <= first):
        return call("split.Tensor", x, first, axis)
    return call("split_with_sizes", x, list(sizes), axis)


@row("unbind")
def _unbind(call: Any, x: Any, axis: int) -> Any:
    return call("unbind.int", x, axis)


# ── movements ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@row("concat")
def _cat(call: Any, xs: Any, axis: int) -> Any:
    return call("cat", list(xs), axis)


@row("stack")
def _stack(call: Any, xs: Any, axis: int) -> Any:
    return call("stack", list(xs), axis)


@row("flip")
def _flip(call: Any, x: Any, axis: Any) -> Any:
    return call("flip", x, dims(axis))


@row("roll")
def _roll(call: Any, x: Any, shift: Any, axis: Any) -> Any:
    return call("roll", x, dims(shift), dims(axis))


@row("pad_constant")
def _pad(call: Any, x: Any, widths: Any, value: Any = 0) -> Any:
    return call("constant_pad_nd", x, [n for pair in reversed(widths) for n in pair], value)


@row("take_along_axis", "gather", "gather_sparse")
def _gather(call: Any, x: Any, index: Any, axis: int) -> Any:
    return call("gather", x, axis, index)


@row("scatter")
def _scatter(call: Any, x: Any, value: Any, index: Any, axis: int) -> Any:
    return call("scatter.src" if isinstance(value, TensorBase) else "scatter.value", x, axis, index, value)


@row("scatter_add")
def _scatter_add(call: Any, x: Any, value: Any, index: Any, axis: int) -> Any:
    return call("scatter_add", x, axis, index, value)


@row("index_select", "take_axis")
def _index_select(call: Any, x: Any, index: Any, axis: int) -> Any:
    return call("index_select", x, axis, index)


@row("add_axis")
def _index_add(call: Any, x: Any, index: Any, size: int, axis: int) -> Any:
    shape = [size if i == axis else n for i, n in enumerate(x.shape)]
    return call("index_add", call("new_zeros", x, shape), axis, index, x)


def indices_of(template: Any, indices: Any) -> list[Any]:
    """Return the index tensors of an indexing, None for whole axes. Raises for an index that mixes in others."""
    given = iter(indices)
    found = [None if part == slice(None) else next(given) if not isinstance(part, (int, slice)) and part is not None
             and part is not Ellipsis else NotImplemented for part in template]
    if NotImplemented in found:
        raise NotImplementedError("an index of tensors and numbers has no operator of its own here")
    return found


@row("index")
def _index(call: Any, x: Any, *indices: Any, template: Any) -> Any:
    return call("index.Tensor", x, indices_of(template, indices))


@row("index_put")
def _index_put(call: Any, x: Any, value: Any, *indices: Any, template: Any, accumulate: bool = False) -> Any:
    return call("index_put", x, indices_of(template, indices), value, accumulate)


@row("index_add_into")
def _index_add_into(call: Any, x: Any, *indices: Any, shape: Any, template: Any) -> Any:
    return call("index_put", call("new_zeros", x, list(shape)), indices_of(template, indices), x, True)


@row("scatter_extreme")
def _scatter_reduce(call: Any, x: Any, value: Any, index: Any, axis: int, reduce: str,
                    include_self: bool = True, **ties: Any) -> Any:
    return call("scatter_reduce.two", x, axis, index, value, reduce, include_self=include_self)


@row("embedding")
def _embedding(call: Any, x: Any, index: Any, padding: Any = None, by_frequency: bool = False) -> Any:
    if x.ndim == 2:
        return call("embedding", x, index)
    return call("view", call("index_select", x, 0, call("view", index, [-1])), [*index.shape, *x.shape[1:]])


@row("embedding_add")
def _embedding_add(call: Any, x: Any, index: Any, rows: int) -> Any:
    return call("index_put", call("new_zeros", x, [rows, *x.shape[index.ndim:]]), [index], x, True)


@row("prelu")
def _prelu(call: Any, x: Any, w: Any) -> Any:
    return call("where.self", call("gt.Scalar", x, 0), x, call("mul.Tensor", w, x))


# ── products ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@row("cross")
def _cross(call: Any, a: Any, b: Any, axis: int) -> Any:
    return call("linalg_cross", a, b, dim=axis)


@row("matmul")
def _matmul(call: Any, a: Any, b: Any) -> Any:
    name = {(1, 1): "dot", (2, 1): "mv", (2, 2): "mm"}.get((a.ndim, b.ndim), "matmul")
    return call("bmm" if a.ndim == b.ndim == 3 and a.shape[0] == b.shape[0] else name, a, b)


@row("linear")
def _linear(call: Any, x: Any, w: Any, b: Any) -> Any:
    return call("addmm", b, x, call("t", w)) if x.ndim == 2 else call("linear", x, w, b)


@row("linear_without_bias")
def _linear_without_bias(call: Any, x: Any, w: Any) -> Any:
    return call("mm", x, call("t", w)) if x.ndim == 2 else call("linear", x, w)


def by_axes(count: int, *values: Any) -> list[list[int]]:
    return [[n] * count if isinstance(n, int) else list(n) for n in values]


@row("convolution")
def _convolution(call: Any, x: Any, w: Any, b: Any, stride: Any, padding: Any, dilation: Any, groups: int = 1) -> Any:
    axes = w.ndim - 2
    return call("convolution", x, w, b, *by_axes(axes, stride, padding, dilation), False, [0] * axes, groups)


@row("convolution_input")
def _convolution_input(call: Any, y: Any, w: Any, b: Any, size: Any, stride: Any, padding: Any, dilation: Any,
                       groups: int = 1) -> Any:
    stride, padding, dilation = by_axes(w.ndim - 2, stride, padding, dilation)
    reached = [(n - 1) * s - 2 * p + d * (k - 1) + 1
               for n, s, p, d, k in zip(y.shape[2:], stride, padding, dilation, w.shape[2:])]
    return call("convolution", y, w, b, stride, padding, dilation, True, [n - m for n, m in zip(size, reached)], groups)


@row("convolution_weight")
def _convolution_weight(call: Any, y: Any, x: Any, size: Any, stride: Any, padding: Any, dilation: Any,
                        groups: int = 1) -> Any:
    axes = y.ndim - 2
    weight = call("new_empty", x, [y.shape[1], x.shape[1] // groups, *size])        # only its shape matters
    return call("convolution_backward", y, x, weight, None, *by_axes(axes, stride, padding, dilation), False,
                [0] * axes, groups, [False, True, False])[1]
