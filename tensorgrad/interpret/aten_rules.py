"""The ops of the table as PyTorch's operators.

A rule is a function `rule(call, *inputs, **params)` of an op's inputs and parameters. `call("sum.dim_IntList", x, [0])`
runs an operator, or adds a node of one to a graph; values are Tensors, or nodes with a tensor of their shape as
`meta["val"]`. A rule returns NotImplemented, before its first call, where no operator of PyTorch computes just this.

Two tables extend this one by operators that PyTorch composes of others: `aten_parts.py` has the parts, for classes with
`__torch_dispatch__`, and `fx/aten.py` the whole operators, for graphs.
"""
from __future__ import annotations

import re
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ..core.casting import number_array
from ..core.dispatch import fresh
from ..core.fast_path import PLAIN
from ..core.tape import TensorBase, node_of
from ..dtype import FROM_NUMPY
from ..ops.indexing import ARRAY

ALL = slice(None)
LAST = (1 << 63) - 1            # the end of a slice that is open
Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}


def rule(*names: str, table: dict[str, Rule] = RULES) -> Callable[[Rule], Rule]:
    """Return a decorator that makes a function the rule of these ops."""
    def register(function: Rule) -> Rule:
        table.update(dict.fromkeys(names, function))
        return function
    return register


def translated(table: dict[str, Rule], call: Any, op: Any, args: Any, params: Any) -> Any:
    """Compute an op by the rule of a table, of this module or of its own name; NotImplemented if no operator does."""
    found = table.get(op.opname) or RULES.get(op.opname)
    if found is not None:
        return found(call, *args, **params)
    if op.opname in WITHOUT or not (op.elementwise or op.opname in OF_ONE_NAME):
        return NotImplemented
    name = RENAMED.get(op.opname) or aten_name(op.torch_name)
    if op.elementwise and op.arity == 2:
        return of_two(call, name, *args)
    return call(name, *args, *params.values())


def is_tensor(value: Any) -> bool:
    """Return True for a tensor, and for a node of a graph."""
    return isinstance(value, TensorBase) or hasattr(value, "meta")


def shape_of(x: Any) -> Any:
    """Return the shape of a tensor, or of a node's value."""
    return x.shape if hasattr(x, "shape") else x.meta["val"].shape


def listed(axes: Any) -> list[int]:
    """Return one axis, or several, as a list."""
    return list(axes) if isinstance(axes, (tuple, list)) else [axes]


def kept(option: bool) -> tuple[bool, ...]:
    """Return an option as a tuple of last arguments: empty if it is false, the default."""
    return (True,) if option else ()


# ── names and arguments ───────────────────────────────────────────────────────────────────────────────────────────────


# last arguments that PyTorch leaves out where they are these
DEFAULTS: dict[str, tuple[Any, ...]] = {
    "cat": (0,), "stack": (0,), "split.Tensor": (0,), "split_with_sizes": (0,), "unbind.int": (0,),
    "linalg_vector_norm": (2.0, None, False), "sort": (-1, False), "argsort": (-1, False), "kthvalue": (-1, False),
    "topk": (-1, True, True), "amax": ([], False), "amin": ([], False), "diagonal": (0, 0, 1), "tril": (0,),
    "triu": (0,), "glu": (-1,), "index_put": (False,), "embedding": (-1, False), "celu": (1.0,), "elu": (1.0,),
    "leaky_relu": (0.01,), "softplus": (1, 20), "hardshrink": (0.5,), "softshrink": (0.5,),
    "nan_to_num": (0.0, None, None),
    "mse_loss": (1,), "soft_margin_loss": (1,), "huber_loss": (1, 1.0), "smooth_l1_loss": (1, 1.0),
    "binary_cross_entropy": (None, 1), "binary_cross_entropy_with_logits": (None, None, 1),
    "cross_entropy_loss": (None, 1, -100), "nll_loss_nd": (None, 1, -100)}


def trimmed(name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return an operator's arguments without the last ones that are its defaults, as PyTorch hands them on."""
    left = DEFAULTS.get(name, ())
    while left and not is_tensor(args[-1]) and args[-1] == left[-1]:
        args, left = args[:-1], left[:-1]
    while args[-1] is None:
        args = args[:-1]
    return args


# ops besides those of single elements whose inputs and parameters are those of PyTorch's operator
OF_ONE_NAME = frozenset(
    "angle clone conj cummax cummin cumprod cumsum determinant diagonal glu "
    "greatest_of_all isfinite kthvalue least_of_all logcumsumexp matrix_exponential median_of_all "
    "nanmedian_of_all real imag t topk tril triu unfold view_as_complex view_as_real".split())
WITHOUT = frozenset("dirichlet_grad rrelu_with_noise standard_gamma standard_gamma_grad".split())
POLYNOMIALS = [f"{start}chebyshev_polynomial_{kind}" for start in ("", "shifted_") for kind in "tuvw"] + [
    "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"]
RENAMED = {"modified_bessel_k0": "special_modified_bessel_k0", "make_complex": "complex", "greater": "gt",
           "greater_equal": "ge", "less": "lt", "less_equal": "le", "equal": "eq", "not_equal": "ne",
           "left_shift": "bitwise_left_shift", "right_shift": "bitwise_right_shift", "real": "real", "imag": "imag",
           **{name: f"special_{name}" for name in POLYNOMIALS}}


def aten_name(name: str) -> str:
    """Return the name of an operator, given that of its steps: `SpecialI0E` is of special_i0e."""
    return re.sub(r"(?<=[a-z])[A-Z]", r"_\g<0>", name).lower()


# ── two operands ──────────────────────────────────────────────────────────────────────────────────────────────────────

# overloads of operators: for two tensors, and for a number as the second operand. Arithmetic makes tensors of numbers
OVERLOADS = {
    **dict.fromkeys("remainder fmod eq ne lt le gt ge bitwise_and bitwise_or bitwise_xor rsub masked_fill fill "
                    "copysign".split(), (".Tensor", ".Scalar")),
    **dict.fromkeys("add sub mul div".split(), (".Tensor", ".Tensor")),
    **dict.fromkeys(["bitwise_left_shift", "bitwise_right_shift"], (".Tensor", ".Tensor_Scalar")),
    **dict.fromkeys(["special_zeta", "special_xlog1py"], ("", ".other_scalar")),
    "pow": (".Tensor_Tensor", ".Tensor_Scalar"), "xlogy": (".Tensor", ".Scalar_Other")}
# overloads for a number as the first operand
NUMBER_FIRST = {"pow": ".Scalar", "remainder": ".Scalar_Tensor", "special_xlog1py": ".self_scalar",
                "special_zeta": ".self_scalar", "xlogy": ".Scalar_Self"}
SWAPPED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne", "add": "add", "mul": "mul",
           "bitwise_and": "bitwise_and", "bitwise_or": "bitwise_or", "bitwise_xor": "bitwise_xor"}


def overload(name: str, *others: Any) -> str:
    """Return the overload for a second operand, with a dot in front; '' for the default overload."""
    return OVERLOADS.get(name, ("", ""))[not is_tensor(others[0])] if others else ""


def of_two(call: Any, name: str, a: Any, b: Any) -> Any:
    """Run an operator of two operands, one of which may be a number."""
    if is_tensor(a):
        if is_tensor(b) or name in OVERLOADS:
            return call(name + overload(name, b), a, b)
        return call(name, a, constant(b, a)) if isinstance(a, TensorBase) else NotImplemented
    if name in SWAPPED:
        return of_two(call, SWAPPED[name], b, a)
    if name == "sub":
        return call("rsub.Scalar", b, a)
    if name == "div":
        return call("mul.Tensor", call("reciprocal", b), a)
    if name in NUMBER_FIRST:
        return call(name + NUMBER_FIRST[name], a, b)
    return call(name + overload(name, b), constant(a, b), b) if isinstance(b, TensorBase) else NotImplemented


def constant(number: Any, beside: Any) -> Any:
    """Return a number as a plain tensor, of an operand's dtype and on its device."""
    backend = beside._storage.beside()
    return fresh(number_array(number, beside.array.dtype, backend), backend)


# ── single elements ───────────────────────────────────────────────────────────────────────────────────────────────────

RULES |= {
    "cast": lambda call, x, *, dtype: call("_to_copy", x, dtype=FROM_NUMPY.get(dtype, dtype)),
    "floor_divide": lambda call, a, b: call("floor_divide", a, b),
    "gelu_tanh": lambda call, x: call("gelu", x, approximate="tanh"),
    "polygamma": lambda call, x, *, n: call("polygamma", n, x),
    "relu_gradient": lambda call, slope, y: call("threshold_backward", slope, y, 0),
    "round": lambda call, x, *, decimals: call("round.decimals", x, decimals=decimals) if decimals else call("round",
                                                                                                             x),
    "square": lambda call, x: call("pow.Tensor_Scalar", x, 2),
    "trunc_divide": lambda call, a, b: call("div.Tensor_mode", a, b, rounding_mode="trunc"),
}


@rule("clamp")
def _(call: Any, x: Any, lo: Any, hi: Any) -> Any:
    ends = {is_tensor(end) for end in (lo, hi) if end is not None}
    return call("clamp.Tensor" if ends == {True} else "clamp", x, lo, hi) if len(ends) == 1 else NotImplemented


@rule("lerp")
def _(call: Any, a: Any, b: Any, t: Any) -> Any:
    if not is_tensor(a) or not is_tensor(b):
        return NotImplemented
    return call("lerp.Tensor" if is_tensor(t) else "lerp.Scalar", a, b, t)


@rule("masked_fill")
def _(call: Any, x: Any, value: Any, mask: Any) -> Any:
    if type(value) in PLAIN and value._storage.rank == 0 and node_of(value) is None:
        value = value.item()            # a number was given
    return call("masked_fill" + overload("masked_fill", value), x, mask, value)


# ── reductions, and along axes ────────────────────────────────────────────────────────────────────────────────────────


def reducing(name: str, several: str, one: str = "") -> Rule:
    """Return the rule of a reduction over all elements, or along axes, with an overload for several and for one."""
    def reduced(call: Any, x: Any, *, axis: Any, keepdims: bool) -> Any:
        if axis is None and not keepdims:
            return call(name, x)
        axes = list(range(len(shape_of(x)))) if axis is None else listed(axis)
        if one and len(axes) == 1:
            return call(f"{name}.{one}", x, axes[0], *kept(keepdims))
        return call(f"{name}.{several}", x, axes, *kept(keepdims)) if several else NotImplemented
    return reduced


def extreme(name: str, of_all: str) -> Rule:
    """Return the rule of a reduction to the largest or smallest elements."""
    def reduced(call: Any, x: Any, *, axis: Any, keepdims: bool) -> Any:
        if axis is None and not keepdims:
            return call(of_all, x)
        return call(name, x, [] if axis is None else listed(axis), keepdims)
    return reduced


def along(name: str) -> Rule:
    """Return the rule of an op that keeps one axis, or reduces it."""
    return lambda call, x, *, axis, keepdims=False: call(name, x, axis, *kept(keepdims))


def spread(name: str) -> Rule:
    """Return the rule of a variance or a standard deviation."""
    def reduced(call: Any, x: Any, *, axis: Any, correction: Any, keepdims: bool) -> Any:
        options = {"correction": correction} if axis is not None or correction != 1 else {}
        options |= {"keepdim": True} if keepdims else {}
        return call(f"{name}.correction", x, *([] if axis is None else [listed(axis)]), **options)
    return reduced


RULES |= {
    "sum": reducing("sum", "dim_IntList"), "mean": reducing("mean", "dim"), "prod": reducing("prod", "", "dim_int"),
    "all": reducing("all", "dims", "dim"), "any": reducing("any", "dims", "dim"),
    "max": extreme("amax", "max"), "min": extreme("amin", "min"), "amax": extreme("amax", "amax"),
    "amin": extreme("amin", "amin"), "variance": spread("var"), "deviation": spread("std"),
    "argmax": along("argmax"), "argmin": along("argmin"), "max_dim": along("max.dim"), "min_dim": along("min.dim"),
    "median_dim": along("median.dim"), "nanmedian_dim": along("nanmedian.dim"), "mode": along("mode"),
    "logsumexp": lambda call, x, *, axis, keepdims: NotImplemented if axis is None else call(
        "logsumexp", x, listed(axis), *kept(keepdims)),
    "vector_norm": lambda call, x, *, ord, axis, keepdims: call(
        "linalg_vector_norm", x, ord, None if axis is None else listed(axis), keepdims),
    "sort_dim": lambda call, x, *, axis, descending: call("sort", x, axis, descending),
    "order": lambda call, x, *, axis, descending: call("argsort", x, axis, descending),
}

# ── shapes ────────────────────────────────────────────────────────────────────────────────────────────────────────────

RULES |= {
    "broadcast_to": lambda call, x, *, shape: call("expand", x, list(shape)),
    "concat": lambda call, xs, *, axis: call("cat", list(xs), axis),
    "stack": lambda call, xs, *, axis: call("stack", list(xs), axis),
    "flip": lambda call, x, *, axis: call("flip", x, listed(axis)),
    "pad_constant": lambda call, x, *, widths, value: call(
        "constant_pad_nd", x, [n for pair in reversed(widths) for n in pair], value),
    "permute_dims": lambda call, x, *, axes: call("permute", x, list(axes)),
    "roll": lambda call, x, *, shift, axis: call("roll", x, listed(shift), listed(axis)),
    "split_with_sizes": lambda call, x, *, sizes, axis: call("split_with_sizes", x, list(sizes), axis),
    "swapaxes": lambda call, x, *, axis1, axis2: call("transpose.int", x, axis1, axis2),
    "unbind": lambda call, x, *, axis: call("unbind.int", x, axis),
}


@rule("split_sizes")
def _(call: Any, x: Any, *, sizes: Any, axis: int) -> Any:
    first, *others = sizes
    if all(n == first for n in others[:-1]) and (not others or others[-1] <= first):
        return call("split.Tensor", x, first, axis)
    return call("split_with_sizes", x, list(sizes), axis)


@rule("expand_dims")
def _(call: Any, x: Any, *, axis: Any) -> Any:
    if isinstance(axis, int):
        return call("unsqueeze", x, axis)
    rank = len(shape_of(x)) + len(axis)
    for place in sorted(n % rank for n in axis):
        x = call("unsqueeze", x, place)
    return x


@rule("squeeze")
def _(call: Any, x: Any, *, axis: Any) -> Any:
    shape, axes = shape_of(x), [] if axis is None else listed(axis)
    if axis is None or prod(n for i, n in enumerate(shape) if i not in axes) == prod(shape) \
            and len(axes) == sum(n == 1 for n in shape) != 1:
        return call("squeeze", x)
    return call("squeeze.dim", x, axes[0]) if len(axes) == 1 else call("squeeze.dims", x, axes)


@rule("get_item", "get_slice")
def indexed(call: Any, x: Any, *, index: Any) -> Any:
    """Index by numbers, slices and None: an operator for each."""
    index = index if isinstance(index, tuple) else (index,)
    if any(isinstance(part, bool) or not (part is None or part is ... or isinstance(part, (int, np.integer))
                                          or isinstance(part, slice) and (part.step or 1) > 0) for part in index):
        return NotImplemented
    shape, alone = shape_of(x), len(index) == 1
    if ... in index:
        place, missing = index.index(...), len(shape) - sum(part is not None and part is not ... for part in index)
        index = (*index[:place], *[ALL] * missing, *index[place + 1:])
    axis, source, out = 0, 0, x
    for part in index:
        if part is None:
            out = call("unsqueeze", out, axis)
        elif not isinstance(part, slice):
            out = call("select.int", out, axis, int(part))
            axis, source = axis - 1, source + 1
        else:
            n, step = shape[source], part.step or 1
            if alone or part.indices(n) != (0, n, 1):       # PyTorch leaves out a whole axis among several
                # an open end stays open for other sizes
                out = call("slice.Tensor", out, axis, part.start or 0, LAST if part.stop is None else part.stop,
                           *([] if step == 1 else [step]))
            source += 1
        axis += 1
    return call("alias", x) if out is x else out


# ── indices ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def places(template: Any, indices: Any) -> list[Any] | None:
    """Return the index tensors of an indexing, None for whole axes; None for an index that mixes in other parts."""
    given = iter(indices)
    if any(part is not ARRAY and part != ALL for part in template):
        return None
    return [next(given) if part is ARRAY else None for part in template]


@rule("index")
def _(call: Any, x: Any, *indices: Any, template: Any) -> Any:
    found = places(template, indices)
    return NotImplemented if found is None else call("index.Tensor", x, found)


@rule("index_put")
def _(call: Any, x: Any, value: Any, *indices: Any, template: Any, accumulate: bool) -> Any:
    found = places(template, indices)
    return NotImplemented if found is None or not is_tensor(value) else call("index_put", x, found, value, accumulate)


@rule("embedding")
def _(call: Any, x: Any, index: Any, *, padding: Any, by_frequency: bool) -> Any:
    shape = shape_of(x)
    if len(shape) == 2:
        return call("embedding", x, index, -1 if padding is None else padding, by_frequency)
    rows = call("index_select", x, 0, call("view", index, [-1]))
    return call("view", rows, [*shape_of(index), *shape[1:]])


RULES |= {
    "gather": lambda call, x, index, *, axis: call("gather", x, axis, index),
    "index_select": lambda call, x, index, *, axis: call("index_select", x, axis, index),
    "scatter": lambda call, x, value, index, *, axis: call(f"scatter.{'src' if is_tensor(value) else 'value'}", x,
                                                           axis, index, value),
    "scatter_add": lambda call, x, value, index, *, axis: call("scatter_add", x, axis, index, value),
    "search_sorted": lambda call, sequence, values, *, right: call("searchsorted.Tensor", sequence, values,
                                                                  **({"right": True} if right else {})),
}

# ── products ──────────────────────────────────────────────────────────────────────────────────────────────────────────

RULES["cross"] = lambda call, a, b, *, axis: call("linalg_cross", a, b, dim=axis)


def by_axes(count: int, *values: Any) -> list[list[Any]]:
    """Return each value of a window as a list with one for each axis."""
    return [[n] * count if isinstance(n, int) else list(n) for n in values]


def window(w: Any, stride: Any, padding: Any, dilation: Any) -> list[list[int]] | None:
    """Return the strides, widths and dilations of a convolution by axis; None if the widths of two ends differ."""
    stride, padding, dilation = by_axes(len(shape_of(w)) - 2, stride, padding, dilation)
    ends = [listed(n) for n in padding]
    return None if any(n[0] != n[-1] for n in ends) else [stride, [n[0] for n in ends], dilation]


@rule("convolution")
def _(call: Any, x: Any, w: Any, b: Any, *, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    sizes = window(w, stride, padding, dilation)
    if sizes is None:
        return NotImplemented
    return call("convolution", x, w, b, *sizes, False, [0] * len(sizes[0]), groups)


@rule("convolution_input")
def _(call: Any, y: Any, w: Any, b: Any, *, size: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    sizes = window(w, stride, padding, dilation)
    if sizes is None:
        return NotImplemented
    more = [n - ((m - 1) * step - 2 * pad + gap * (k - 1) + 1)
            for n, m, k, step, pad, gap in zip(size, shape_of(y)[2:], shape_of(w)[2:], *sizes, strict=True)]
    return call("convolution", y, w, b, *sizes, True, more, groups)


# ── losses ────────────────────────────────────────────────────────────────────────────────────────────────────────────

REDUCTIONS = ("none", "mean", "sum")


def loss(name: str, *options: str) -> Rule:
    """Return the rule of a loss with these parameters behind the reduction."""
    return lambda call, *inputs, reduction, **given: call(
        name, *inputs, REDUCTIONS.index(reduction), *(given[option] for option in options))


RULES |= {name: loss(name) for name in ("binary_cross_entropy", "binary_cross_entropy_with_logits", "mse_loss",
                                        "soft_margin_loss")}
RULES |= {"huber_loss": loss("huber_loss", "delta"), "smooth_l1_loss": loss("smooth_l1_loss", "beta")}
