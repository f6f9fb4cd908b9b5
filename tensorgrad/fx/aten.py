"""The ops of the table as PyTorch's operators: what `make_fx` and `export` put in the place of a lowered node.

A rule calls `call(name, *args, **kwargs)`, which adds a node `torch.ops.aten.<name>`, and returns the last one. It
returns NotImplemented where no operator of PyTorch computes just this: the op of the table stays.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._ops import ops
from .._tensor import Tensor
from ..graph.node import Node
from ..ops.indexing import ARRAY

ALL = slice(None)
Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Return a decorator that makes a function the rule of these ops."""
    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function
    return register


def is_tensor(value: Any) -> bool:
    """Return True for a node, and for a tensor."""
    return isinstance(value, (Node, Tensor))


def shape_of(x: Any) -> Any:
    """Return the shape of a node's value, or of a tensor."""
    return x.meta["val"].shape if isinstance(x, Node) else x.shape


def listed(axes: Any) -> list[int]:
    """Return one axis, or several, as a list."""
    return list(axes) if isinstance(axes, (tuple, list)) else [axes]


def kept(option: bool) -> tuple[bool, ...]:
    """Return an option that is false by default as the last argument: nothing if it is false."""
    return (True,) if option else ()


# ── element by element ────────────────────────────────────────────────────────────────────────────────────────────────

RENAMED = {"absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh",
           "arctan": "atan", "arctanh": "atanh", "negative": "neg", "log_sigmoid": "log_sigmoid",
           "matrix_exponential": "linalg_matrix_exp"}
SAME = ("angle bitwise_not ceil clone contiguous cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 floor "
        "hardsigmoid hardswish i0 imag isfinite isinf isnan lgamma log log10 log1p log2 logical_not matmul mish prelu "
        "rad2deg real reciprocal relu rsqrt sgn sigmoid sign signbit silu sin sinc sinh sqrt square t tan tanh trunc "
        "view_as_complex view_as_real gelu fmax fmin hypot igamma igammac logaddexp logaddexp2 logical_and logical_or "
        "logical_xor maximum minimum nextafter gcd lcm heaviside linear conj")
SPECIAL = ("airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 entr erfcx i0e i1 i1e log_ndtr ndtr ndtri "
           "modified_bessel_k0 modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1 "
           "spherical_bessel_j0")
RENAMED |= {name: name for name in SAME.split()} | {name: f"special_{name}" for name in SPECIAL.split()}
# operators that take numbers as tensors; the others have an overload for a number as the second operand
ARITHMETIC = {"add": "add", "subtract": "sub", "multiply": "mul", "divide": "div"}
COMPARED = {"equal": ("eq", "equal"), "not_equal": ("ne", "not_equal"), "greater": ("gt", "less"),
            "greater_equal": ("ge", "less_equal"), "less": ("lt", "greater"), "less_equal": ("le", "greater_equal")}
OF_TENSORS = {"arctan2": "atan2.default", "floor_divide": "floor_divide.default", "remainder": "remainder.Tensor",
              "fmod": "fmod.Tensor", "copysign": "copysign.Tensor", "xlogy": "xlogy.Tensor",
              "xlog1py": "special_xlog1py.default", "zeta": "special_zeta.default"}
BITWISE = {"bitwise_and": "bitwise_and", "bitwise_or": "bitwise_or", "bitwise_xor": "bitwise_xor",
           "left_shift": "bitwise_left_shift", "right_shift": "bitwise_right_shift"}


def _plain(target: str) -> Rule:
    def of_tensors(call: Any, *args: Any) -> Any:
        return call(target, *args) if all(map(is_tensor, args)) else NotImplemented
    return of_tensors


def _arithmetic(name: str) -> Rule:
    def binary(call: Any, a: Any, b: Any) -> Any:
        if not is_tensor(a):
            if name in ("add", "mul"):
                a, b = b, a
            elif name == "sub" and not isinstance(a, complex):
                return call("rsub.Scalar", b, a)
        return call(f"{name}.Tensor", a, b)
    return binary


def _compared(name: str, mirrored: str) -> Rule:
    def binary(call: Any, a: Any, b: Any) -> Any:
        if not is_tensor(a):
            return RULES[mirrored](call, b, a)
        return call(f"{name}.{'Tensor' if is_tensor(b) else 'Scalar'}", a, b)
    return binary


def _with_number(tensor: str, number: str | None) -> Rule:
    def binary(call: Any, a: Any, b: Any) -> Any:
        if not is_tensor(a) or number is None and not is_tensor(b):
            return NotImplemented
        return call(tensor if is_tensor(b) else number, a, b)
    return binary


RULES |= {op: _plain(f"{name}.default") for op, name in RENAMED.items()}
RULES |= {op: _arithmetic(name) for op, name in ARITHMETIC.items()}
RULES |= {op: _compared(*names) for op, names in COMPARED.items()}
RULES |= {op: _with_number(name, None if name.endswith("default") else name.replace("Tensor", "Scalar"))
          for op, name in OF_TENSORS.items() if op not in ("copysign", "xlogy")}
RULES |= {op: _with_number(f"{name}.Tensor", f"{name}.{'Tensor_Scalar' if 'shift' in name else 'Scalar'}")
          for op, name in BITWISE.items()}
RULES |= {"copysign": _with_number("copysign.Tensor", "copysign.Scalar"),
          "xlogy": _with_number("xlogy.Tensor", "xlogy.Scalar_Other"),
          "linear_without_bias": _plain("linear.default")}


@rule("power")
def _(call: Any, a: Any, b: Any) -> Any:
    if is_tensor(a):
        return call("pow.Tensor_Tensor" if is_tensor(b) else "pow.Tensor_Scalar", a, b)
    return call("pow.Scalar", a, b)


@rule("rsub")
def _(call: Any, a: Any, b: Any) -> Any:
    return call(f"rsub.{'Tensor' if is_tensor(b) else 'Scalar'}", a, b) if is_tensor(a) else NotImplemented


@rule("trunc_divide")
def _(call: Any, a: Any, b: Any) -> Any:
    return call("div.Tensor_mode", a, b, rounding_mode="trunc") if is_tensor(a) and is_tensor(b) else NotImplemented


@rule("where")
def _(call: Any, condition: Any, a: Any, b: Any) -> Any:
    overload = {(True, True): "self", (True, False): "ScalarOther", (False, True): "ScalarSelf",
                (False, False): "Scalar"}[is_tensor(a), is_tensor(b)]
    return call(f"where.{overload}", condition, a, b)


@rule("masked_fill")
def _(call: Any, x: Any, value: Any, mask: Any) -> Any:
    return call(f"masked_fill.{'Tensor' if is_tensor(value) else 'Scalar'}", x, mask, value)


@rule("clamp")
def _(call: Any, x: Any, lo: Any, hi: Any) -> Any:
    ends = [is_tensor(end) for end in (lo, hi) if end is not None]
    if not ends or len(set(ends)) > 1:
        return NotImplemented
    return call("clamp.Tensor" if ends[0] else "clamp.default", x, lo, hi)


@rule("lerp")
def _(call: Any, a: Any, b: Any, t: Any) -> Any:
    return call(f"lerp.{'Tensor' if is_tensor(t) else 'Scalar'}", a, b, t) if is_tensor(a) and is_tensor(b) else (
        NotImplemented)


RULES |= {
    "cast": lambda call, x, *, dtype: call("_to_copy.default", x, dtype=dtype),
    "celu": lambda call, x, *, alpha: call("celu.default", x, alpha),
    "elu": lambda call, x, *, alpha, scale: call("elu.default", x, alpha, scale),
    "gelu_tanh": lambda call, x: call("gelu.default", x, approximate="tanh"),
    "glu": lambda call, x, *, axis: call("glu.default", x, axis),
    "hardshrink": lambda call, x, *, lambd: call("hardshrink.default", x, lambd),
    "hardtanh": lambda call, x, *, low, high: call("hardtanh.default", x, low, high),
    "leaky_relu": lambda call, x, *, slope: call("leaky_relu.default", x, slope),
    "logit": lambda call, x, *, eps: call("logit.default", x, eps),
    "make_complex": _plain("complex.default"),
    "nan_to_num": lambda call, x, *, nan, posinf, neginf: call("nan_to_num.default", x, nan, posinf, neginf),
    "polygamma": lambda call, x, *, n: call("polygamma.default", n, x),
    "round": lambda call, x, *, decimals: call("round.decimals", x, decimals=decimals) if decimals else call(
        "round.default", x),
    "softplus": lambda call, x, *, beta, threshold: call("softplus.default", x, beta, threshold),
    "softshrink": lambda call, x, *, lambd: call("softshrink.default", x, lambd),
    "threshold": lambda call, x, *, threshold, value: call("threshold.default", x, threshold, value),
}

# ── along axes ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _reduced(name: str, overload: str = "dim") -> Rule:
    def reduced(call: Any, x: Any, *, axis: Any, keepdims: bool) -> Any:
        if axis is None:
            return NotImplemented if keepdims else call(f"{name}.default", x)
        axes = listed(axis)
        if overload == "dim_int" or overload == "dims" and len(axes) == 1:
            if len(axes) > 1:
                return NotImplemented
            return call(f"{name}.{'dim' if overload == 'dims' else overload}", x, axes[0], *kept(keepdims))
        return call(f"{name}.{overload}", x, axes, *kept(keepdims))
    return reduced


def _along(target: str, needed: bool = True) -> Rule:
    """The rule of an op that keeps an axis, or reduces one."""
    def along(call: Any, x: Any, *, axis: Any, keepdims: bool = False) -> Any:
        if needed and axis is None:
            return NotImplemented
        return call(target, x, axis, *kept(keepdims)) if axis is not None or keepdims else call(target, x)
    return along


def _spread(name: str) -> Rule:
    def spread(call: Any, x: Any, *, axis: Any, correction: Any, keepdims: bool) -> Any:
        return call(f"{name}.correction", x, None if axis is None else listed(axis), correction=correction,
                    keepdim=keepdims)
    return spread


RULES |= {
    "sum": _reduced("sum", "dim_IntList"), "mean": _reduced("mean"), "prod": _reduced("prod", "dim_int"),
    "all": _reduced("all", "dims"), "any": _reduced("any", "dims"), "variance": _spread("var"),
    "deviation": _spread("std"),
    **{name: lambda call, x, *, axis, keepdims, name=name: call(
        f"{name}.default", x, [] if axis is None else listed(axis), *kept(keepdims)) for name in ("amax", "amin")},
    **{op: lambda call, x, *, axis, keepdims, op=op: call(f"{op}.default", x) if axis is None and not keepdims else (
        NotImplemented if axis is None else call(f"a{op}.default", x, listed(axis), keepdims))
       for op in ("max", "min")},
    "argmax": _along("argmax.default", False), "argmin": _along("argmin.default", False),
    "cummax": _along("cummax.default"), "cummin": _along("cummin.default"), "cumprod": _along("cumprod.default"),
    "cumsum": _along("cumsum.default"), "logcumsumexp": _along("logcumsumexp.default"),
    "log_softmax": _along("log_softmax.int"), "softmax": _along("softmax.int"), "max_dim": _along("max.dim"),
    "min_dim": _along("min.dim"), "median_dim": _along("median.dim"), "mode": _along("mode.default"),
    "nanmedian_dim": _along("nanmedian.dim"), "median_of_all": _plain("median.default"),
    "nanmedian_of_all": _plain("nanmedian.default"),
    "kthvalue": lambda call, x, *, k, axis, keepdims: call("kthvalue.default", x, k, axis, *kept(keepdims)),
    "logsumexp": lambda call, x, *, axis, keepdims: NotImplemented if axis is None else call(
        "logsumexp.default", x, listed(axis), keepdims),
    "sort_dim": lambda call, x, *, axis, descending: call("sort.default", x, axis, *kept(descending)),
    "topk": lambda call, x, *, k, axis, largest, sorted: call("topk.default", x, k, axis, largest, sorted),
    "vector_norm": lambda call, x, *, ord, axis, keepdims: call(
        "linalg_vector_norm.default", x, ord, None if axis is None else listed(axis), keepdims),
}

# ── shapes ────────────────────────────────────────────────────────────────────────────────────────────────────────────

RULES |= {
    "broadcast_to": lambda call, x, *, shape: call("expand.default", x, list(shape)),
    "concat": lambda call, xs, *, axis: call("cat.default", list(xs), axis),
    "stack": lambda call, xs, *, axis: call("stack.default", list(xs), axis),
    "diagonal": lambda call, x, *, offset, axis1, axis2: call("diagonal.default", x, offset, axis1, axis2),
    "expand_dims": lambda call, x, *, axis: call("unsqueeze.default", x, axis) if isinstance(axis, int) else (
        NotImplemented),
    "flip": lambda call, x, *, axis: call("flip.default", x, listed(axis)),
    "permute_dims": lambda call, x, *, axes: call("permute.default", x, list(axes)),
    "reshape": lambda call, x, *, shape: call("reshape.default", x, list(shape)),
    "roll": lambda call, x, *, shift, axis: call("roll.default", x, listed(shift), listed(axis)),
    "split_sizes": lambda call, x, *, sizes, axis: call("split_with_sizes.default", x, list(sizes), axis),
    "split_with_sizes": lambda call, x, *, sizes, axis: call("split_with_sizes.default", x, list(sizes), axis),
    "squeeze": lambda call, x, *, axis: call("squeeze.dims", x, listed(axis)),
    "swapaxes": lambda call, x, *, axis1, axis2: call("transpose.int", x, axis1, axis2),
    "tril": lambda call, x, *, k: call("tril.default", x, k), "triu": lambda call, x, *, k: call("triu.default", x, k),
    "unbind": lambda call, x, *, axis: call("unbind.int", x, axis),
    "unfold": lambda call, x, *, axis, size, step: call("unfold.default", x, axis, size, step),
    "pad_constant": lambda call, x, *, widths, value: call(
        "constant_pad_nd.default", x, [n for pair in reversed(widths) for n in pair], value),
}


@rule("get_item", "get_slice")
def _(call: Any, x: Any, *, index: Any) -> Any:
    index = index if isinstance(index, tuple) else (index,)
    if any(not isinstance(part, (int, slice, type(None), type(...))) or isinstance(part, bool) for part in index):
        return NotImplemented
    shape = shape_of(x)
    if any(isinstance(part, slice) and (part.step or 1) < 0 for part in index):
        return NotImplemented
    missing = len(shape) - sum(part is not None and part is not ... for part in index)
    if ... in index:
        place = index.index(...)
        index = (*index[:place], *(ALL,) * missing, *index[place + 1:])
    axis, source, out = 0, 0, x
    for part in index:
        if part is None:
            out = call("unsqueeze.default", out, axis)
            axis += 1
        elif isinstance(part, int):
            out = call("select.int", out, axis, part)
            source += 1
        else:
            start, stop, step = part.indices(shape[source])
            if (start, stop, step) != (0, shape[source], 1):
                # an open end stays open for other sizes
                end = 9223372036854775807 if part.stop is None else stop
                out = call("slice.Tensor", out, axis, start, end, *(() if step == 1 else (step,)))
            axis, source = axis + 1, source + 1
    return call("alias.default", x) if out is x else out


def _places(template: Any, indices: Any) -> list[Any] | None:
    """Return the indices of aten.index: None for an axis that is kept. None if a part is of another kind."""
    given, found = iter(indices), list[Any]()
    for part in template:
        if part is ARRAY:
            found.append(next(given))
        elif part == ALL:
            found.append(None)
        else:
            return None
    return found


@rule("index")
def _(call: Any, x: Any, *indices: Any, template: Any) -> Any:
    places = _places(template, indices)
    return NotImplemented if places is None else call("index.Tensor", x, places)


@rule("index_put")
def _(call: Any, x: Any, value: Any, *indices: Any, template: Any, accumulate: bool) -> Any:
    places = _places(template, indices)
    if places is None or not is_tensor(value):
        return NotImplemented
    return call("index_put.default", x, places, value, *((True,) if accumulate else ()))


RULES |= {
    "gather": lambda call, x, index, *, axis: call("gather.default", x, axis, index),
    "index_select": lambda call, x, index, *, axis: call("index_select.default", x, axis, index),
    "scatter": lambda call, x, value, index, *, axis: call(f"scatter.{'src' if is_tensor(value) else 'value'}", x,
                                                           axis, index, value),
    "scatter_add": lambda call, x, value, index, *, axis: call("scatter_add.default", x, axis, index, value),
    "embedding": lambda call, x, index, *, padding, by_frequency: call(
        "embedding.default", x, index, *(() if padding is None and not by_frequency
                                         else (-1 if padding is None else padding, by_frequency))),
    "search_sorted": lambda call, sequence, values, *, right: call("searchsorted.Tensor", sequence, values,
                                                                  right=right),
}

# ── layers ────────────────────────────────────────────────────────────────────────────────────────────────────────────

REDUCTIONS = ("none", "mean", "sum")


@rule("convolution")
def _(call: Any, x: Any, w: Any, b: Any = None, *, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    if any(not isinstance(n, int) and n[0] != n[-1] for n in padding):
        return NotImplemented
    pads = [n if isinstance(n, int) else n[0] for n in padding]
    return call("convolution.default", x, w, b, list(stride), pads, list(dilation), False, [0] * len(pads), groups)


@rule("convolution_input")
def _(call: Any, y: Any, w: Any, b: Any = None, *, size: Any, stride: Any, padding: Any, dilation: Any,
      groups: int) -> Any:
    if any(not isinstance(n, int) and n[0] != n[-1] for n in padding):
        return NotImplemented
    pads = [n if isinstance(n, int) else n[0] for n in padding]
    more = [n - ((m - 1) * step - 2 * pad + gap * (k - 1) + 1) for n, m, step, pad, gap, k in zip(
        size, shape_of(y)[2:], stride, pads, dilation, shape_of(w)[2:], strict=True)]
    return call("convolution.default", y, w, b, list(stride), pads, list(dilation), True, more, groups)


@rule("max_pool")
def _(call: Any, x: Any, *, kernel: Any, stride: Any, widths: Any, dilation: Any) -> Any:
    if any(first != last for first, last in widths) or not 1 <= len(kernel) <= 3:
        return NotImplemented
    return call(f"max_pool{len(kernel)}d.default", x, list(kernel), list(stride), [first for first, _ in widths],
                list(dilation))


@rule("native_layer_norm")
def _(call: Any, x: Any, w: Any, b: Any, *, ndim: int, eps: float) -> Any:
    return call("layer_norm.default", x, list(shape_of(x)[-ndim:]), w, b, eps)


@rule("rms_norm")
def _(call: Any, x: Any, w: Any, *, ndim: int, eps: float) -> Any:
    return call("rms_norm.default", x, list(shape_of(x)[-ndim:]), w, eps)


@rule("affine_by_channel")
def _(call: Any, x: Any, w: Any, b: Any, mean: Any, variance: Any, *, eps: float) -> Any:
    return call("batch_norm.default", x, w, b, mean, variance, False, 0.1, eps, True)


@rule("attention")
def _(call: Any, query: Any, key: Any, value: Any, mask: Any, *, causal: bool, scale: float | None) -> Any:
    if mask is not None and causal:
        return NotImplemented
    return call("scaled_dot_product_attention.default", query, key, value, mask, 0.0, causal, scale=scale)


def _loss(target: str, *options: str) -> Rule:
    def loss(call: Any, x: Any, y: Any, *weights: Any, reduction: str, **given: Any) -> Any:
        return call(target, x, y, *weights, REDUCTIONS.index(reduction), *(given[name] for name in options))
    return loss


RULES |= {
    "binary_cross_entropy": _loss("binary_cross_entropy.default"), "huber_loss": _loss("huber_loss.default", "delta"),
    "binary_cross_entropy_with_logits": _loss("binary_cross_entropy_with_logits.default"),
    "cross_entropy": _loss("cross_entropy_loss.default", "ignore_index"), "mse_loss": _loss("mse_loss.default"),
    "nll_loss": _loss("nll_loss_nd.default", "ignore_index"),
    "smooth_l1_loss": _loss("smooth_l1_loss.default", "beta"),
    "soft_margin_loss": _loss("soft_margin_loss.default"),
}


def translated(op: Any, graph: Any, args: tuple[Any, ...], params: dict[str, Any], meta: dict[str, Any]) -> Any:
    """Add the operators that compute an op to a graph, and return the last node; NotImplemented if there are none."""
    found = RULES.get(op.opname)
    if found is None:
        return NotImplemented

    def call(name: str, *args: Any, **kwargs: Any) -> Node:
        packet, _, overload = name.partition(".")
        while args[-1] is None:
            args = args[:-1]
        node: Node = graph.create_node("call_function", getattr(getattr(ops.aten, packet), overload), args, kwargs,
                                       packet)
        node.meta = dict(meta)
        if packet in STEPS:         # which may be followed by another
            node.meta["val"] = node.target(*(arg.meta["val"] if isinstance(arg, Node) else arg for arg in args))
        return node
    return found(call, *args, **{**op.parameters, **params})


STEPS = frozenset(("select", "slice", "unsqueeze"))
