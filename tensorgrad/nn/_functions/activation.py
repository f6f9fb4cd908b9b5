"""Activations. https://pytorch.org/docs/stable/nn.functional.html#non-linear-activation-functions"""
from __future__ import annotations

from math import inf
from typing import Any

from ... import api as tg
from ..._tensor import Tensor
from ...api._arguments import LEAST_LARGEST, converted, normalize_dim
from ...api._halves import once_rounded
from ...api._kinds import Dtype, Number
from ...api.activation import SELU_ALPHA, SELU_SCALE
from ...core.dispatch import SCALAR_TYPES, xp
from ...core.inplace import in_place
from ...dtype import contiguous_format
from ...messages.warn_once import warn

__all__ = ["celu", "celu_", "elu", "elu_", "gelu", "glu", "gumbel_softmax", "hardshrink", "hardsigmoid", "hardswish",
           "hardtanh", "hardtanh_", "leaky_relu", "leaky_relu_", "log_softmax", "logsigmoid", "mish", "prelu", "relu",
           "relu6", "relu_", "rrelu", "rrelu_", "selu", "selu_", "sigmoid", "silu", "softmax", "softmin", "softplus",
           "softshrink", "softsign", "tanh", "tanhshrink",
           "threshold", "threshold_"]


def run(function: Any, inplace: bool, input: Any, **params: Any) -> Any:
    """Return the function's result, or the input with the result copied into it if `inplace`."""
    return in_place(input, function, **params) if inplace else function(input, **params)


# ── lines with a bend ─────────────────────────────────────────────────────────────────────────────────────────────────


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0).

    Input: (*), real numbers
    Output: the input's shape and dtype; the input itself with `inplace`
    Errors: RuntimeError for bools; NotImplementedError for complex numbers
    https://pytorch.org/docs → torch.nn.functional.relu

    >>> import tensorgrad as torch
    >>> torch.nn.functional.relu(torch.tensor([-1., 2.]))
    tensor([0., 2.])
    """
    return in_place(input, tg.relu) if inplace else tg.relu(input)


def relu_(input: Tensor) -> Tensor:
    """relu, in place."""
    return in_place(input, tg.relu)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x, 0), 6).

    Input: (*), real numbers
    Output: the input's shape and dtype; the input itself with `inplace`
    Errors: RuntimeError for bools; NotImplementedError for complex numbers
    https://pytorch.org/docs → torch.nn.functional.relu6

    >>> import tensorgrad as torch
    >>> torch.nn.functional.relu6(torch.tensor([-1., 2., 9.]))
    tensor([0., 2., 6.])
    """
    return run(_hardtanh, inplace, input, low=0, high=6)


def _hardtanh(input: Any, low: float, high: float) -> Any:
    if input.array.dtype.kind == "b":
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if input.array.dtype.kind == "u" and (low < 0 or high < 0):
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    if input.array.dtype.kind in "iu":
        low, high = int(low), int(high)
    elif max(abs(low), abs(high)) > LEAST_LARGEST:
        low, high = (converted(bound, input.dtype) for bound in (low, high))
    return xp.hardtanh(input, low=low, high=high)


def hardtanh(input: Tensor, min_val: Number = -1.0, max_val: Number = 1.0, inplace: bool = False) -> Tensor:
    """x, kept within [min_val, max_val].

    Input: (*), real numbers
    Output: the input's shape and dtype
    Errors: ValueError if min_val > max_val; RuntimeError for bools; NotImplementedError for complex numbers
    https://pytorch.org/docs → torch.nn.functional.hardtanh

    >>> import tensorgrad as torch
    >>> torch.nn.functional.hardtanh(torch.tensor([-3., 0.5, 3.]))
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return run(_hardtanh, inplace, input, low=min_val, high=max_val)


def hardtanh_(input: Tensor, min_val: Number = -1.0, max_val: Number = 1.0) -> Tensor:
    """hardtanh, in place."""
    return (in_place(input, tg.clamp, min_val, max_val) if min_val > max_val
            else hardtanh(input, min_val, max_val, inplace=True))


def _check_single(input: Any, number: Any) -> None:
    """Raise RuntimeError for a number beyond float32, in which float32 and shorter dtypes are computed."""
    if isinstance(number, (int, float, complex)) and input.array.dtype.kind in "fV" and input.array.dtype.itemsize <= 4:
        converted(number, tg.float32)


def leaky_relu(input: Tensor, negative_slope: Number = 0.01, inplace: bool = False) -> Tensor:
    """x for x > 0, slope · x elsewhere.

    Input: (*), floating point
    Output: the input's shape and dtype
    Errors: NotImplementedError for integers, bools and complex numbers
    https://pytorch.org/docs → torch.nn.functional.leaky_relu

    >>> import tensorgrad as torch
    >>> torch.nn.functional.leaky_relu(torch.tensor([-2., 3.]), 0.5)
    tensor([-1.,  3.])
    """
    if type(negative_slope) is complex or not -LEAST_LARGEST <= negative_slope <= LEAST_LARGEST:
        _check_single(input, negative_slope)
    return run(xp.leaky_relu, inplace, input, slope=negative_slope)


def leaky_relu_(input: Tensor, negative_slope: Number = 0.01) -> Tensor:
    """leaky_relu, in place."""
    return leaky_relu(input, negative_slope, inplace=True)


prelu = tg.prelu


def rrelu(input: Tensor, lower: Number = 1 / 8, upper: Number = 1 / 3, training: bool = False,
          inplace: bool = False) -> Tensor:
    """x for x > 0, r · x elsewhere, with r at random while training.

    Input: (*), floating point
    Output: the input's shape and dtype
    Errors: RuntimeError if lower > upper, or if one of them is not finite; NotImplementedError for integers, bools and
        complex numbers
    https://pytorch.org/docs → torch.nn.functional.rrelu

    >>> import tensorgrad as torch
    >>> torch.nn.functional.rrelu(torch.tensor([-8., 3.]), 0.25, 0.75)
    tensor([-4.,  3.])
    """
    return run(tg.rrelu, inplace, input, lower=lower, upper=upper, training=training)


def rrelu_(input: Tensor, lower: Number = 1 / 8, upper: Number = 1 / 3, training: bool = False) -> Tensor:
    """rrelu, in place."""
    return rrelu(input, lower, upper, training, inplace=True)


def threshold(input: Tensor, threshold: Number, value: Number, inplace: bool = False) -> Tensor:
    """x where it is above the threshold, `value` elsewhere.

    Input: (*), real numbers
    Output: the input's shape and dtype
    Errors: NotImplementedError for bools and complex numbers
    https://pytorch.org/docs → torch.nn.functional.threshold

    >>> import tensorgrad as torch
    >>> torch.nn.functional.threshold(torch.tensor([0.5, 2.]), 1, -7)
    tensor([-7.,  2.])
    """
    return run(tg.threshold, inplace, input, threshold=threshold, value=value)


def threshold_(input: Tensor, threshold: Number, value: Number) -> Tensor:
    """threshold, in place."""
    return in_place(input, tg.threshold, threshold, value)


hardshrink = tg.hardshrink


def softshrink(input: Tensor, lambd: Number = 0.5) -> Tensor:
    """x − λ above λ, x + λ below −λ, 0 between.

    Input: (*), floating point
    Output: the input's shape and dtype
    Errors: RuntimeError if lambd < 0; NotImplementedError for integers, bools and complex numbers
    https://pytorch.org/docs → torch.nn.functional.softshrink

    >>> import tensorgrad as torch
    >>> torch.nn.functional.softshrink(torch.tensor([-2., 0.3, 2.]))
    tensor([-1.5000,  0.0000,  1.5000])
    """
    if isinstance(lambd, complex):
        lambd = converted(lambd, tg.float64)
    most = tg.finfo(input.dtype).max if input.is_floating_point() else inf
    if not 0 <= lambd <= most:
        raise RuntimeError(f"lambda must be in range [0, {most:g}] for input dtype {SCALAR_TYPES[input.dtype.name]}, "
                           f"but found {lambd:g}")
    return xp.softshrink(input, lambd=lambd)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """x/6 + 1/2, kept within [0, 1].

    Input: (*), floating point
    Output: the input's shape and dtype
    Errors: NotImplementedError for integers, bools and complex numbers
    https://pytorch.org/docs → torch.nn.functional.hardsigmoid

    >>> import tensorgrad as torch
    >>> torch.nn.functional.hardsigmoid(torch.tensor([-4., 0., 3.]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    return run(xp.hardsigmoid, inplace, input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x · hardsigmoid(x).

    Input: (*), floating point
    Output: the input's shape and dtype
    Errors: NotImplementedError for integers, bools and complex numbers
    https://pytorch.org/docs → torch.nn.functional.hardswish

    >>> import tensorgrad as torch
    >>> torch.nn.functional.hardswish(torch.tensor([-4., 3.]))
    tensor([-0.,  3.])
    """
    return run(xp.hardswish, inplace, input)


# ── smooth curves ─────────────────────────────────────────────────────────────────────────────────────────────────────

sigmoid, tanh = tg.sigmoid.bare, tg.tanh.bare         # without `out=`


def elu(input: Tensor, alpha: Number = 1.0, inplace: bool = False) -> Tensor:
    """x for x > 0, α (exp(x) − 1) elsewhere.

    Input: (*), floating point
    Output: the input's shape and dtype
    Errors: NotImplementedError for integers, bools and complex numbers
    https://pytorch.org/docs → torch.nn.functional.elu

    >>> import tensorgrad as torch
    >>> torch.nn.functional.elu(torch.tensor([-1., 2.]))
    tensor([-0.6321,  2.0000])
    """
    if type(alpha) is complex or not -LEAST_LARGEST <= alpha <= LEAST_LARGEST:
        _check_single(input, alpha)
    return run(xp.elu, inplace, input, alpha=alpha)


@once_rounded
def _scaled_elu(x: Any, alpha: float, scale: float, input_scale: float) -> Any:
    if x.array.dtype.kind in "biu":
        raise NotImplementedError(f"\"elu_cpu\" not implemented for '{SCALAR_TYPES[x.dtype.name]}'")
    below = x.clamp(max=0)              # x · input_scale may be positive there
    return tg.where(x > 0, x, (below * input_scale).expm1() * alpha) * scale


def elu_(input: Tensor, alpha: Number = 1.0, scale: Number = 1.0, input_scale: Number = 1.0) -> Tensor:
    """elu, in place."""
    if scale == 1 and input_scale == 1:
        return elu(input, alpha, inplace=True)
    return in_place(input, _scaled_elu, float(alpha), float(scale), float(input_scale))


def celu(input: Tensor, alpha: Number = 1.0, inplace: bool = False) -> Tensor:
    """x for x > 0, α (exp(x / α) − 1) elsewhere.

    Input: (*), floating point
    Output: the input's shape and dtype
    Errors: NotImplementedError for integers, bools and complex numbers; RuntimeError if alpha is 0
    https://pytorch.org/docs → torch.nn.functional.celu

    >>> import tensorgrad as torch
    >>> torch.nn.functional.celu(torch.tensor([-1., 1.]), alpha=2)
    tensor([-0.7869,  1.0000])
    """
    return run(tg.celu, inplace, input, alpha=alpha)


def celu_(input: Tensor, alpha: Number = 1.0) -> Tensor:
    """celu, in place."""
    return celu(input, alpha, inplace=True)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """λ x for x > 0, λ α (exp(x) − 1) elsewhere.

    Input: (*), floating point
    Output: the input's shape and dtype
    Errors: NotImplementedError for integers, bools and complex numbers
    https://pytorch.org/docs → torch.nn.functional.selu

    >>> import tensorgrad as torch
    >>> torch.nn.functional.selu(torch.tensor([-1., 1.]))
    tensor([-1.1113,  1.0507])
    """
    return run(xp.elu, inplace, input, alpha=SELU_ALPHA, scale=SELU_SCALE)


def selu_(input: Tensor) -> Tensor:
    """selu, in place."""
    return selu(input, inplace=True)


def gelu(input: Tensor, *, approximate: str = "none") -> Tensor:
    """x · Φ(x), Φ being the normal distribution function or its approximation by 'tanh'.

    Input: (*), floating point
    Output: the input's shape and dtype
    Errors: RuntimeError unless approximate is 'none' or 'tanh'; NotImplementedError for integers, bools and complex
        numbers
    https://pytorch.org/docs → torch.nn.functional.gelu

    >>> import tensorgrad as torch
    >>> x = torch.tensor([-1., 1.])
    >>> torch.nn.functional.gelu(x), torch.nn.functional.gelu(x, approximate='tanh')
    (tensor([-0.1587,  0.8413]), tensor([-0.1588,  0.8412]))
    """
    if approximate == "none":
        return xp.gelu(input)
    if approximate == "tanh":
        return xp.gelu_tanh(input)
    raise RuntimeError("approximate argument must be either none or tanh.")


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x · σ(x).

    Input: (*), floating point or complex
    Output: the input's shape and dtype
    Errors: NotImplementedError for integers and bools
    https://pytorch.org/docs → torch.nn.functional.silu

    >>> import tensorgrad as torch
    >>> torch.nn.functional.silu(torch.tensor([-1., 1.]))
    tensor([-0.2689,  0.7311])
    """
    return run(xp.silu, inplace, input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x · tanh(log(1 + eˣ)).

    Input: (*), floating point
    Output: the input's shape and dtype
    Errors: NotImplementedError for integers, bools and complex numbers
    https://pytorch.org/docs → torch.nn.functional.mish

    >>> import tensorgrad as torch
    >>> torch.nn.functional.mish(torch.tensor([-1., 1.]))
    tensor([-0.3034,  0.8651])
    """
    return run(xp.mish, inplace, input)


def softplus(input: Tensor, beta: Number = 1, threshold: Number = 20) -> Tensor:
    """log(1 + exp(β x)) / β, x itself where β x is above the threshold.

    Input: (*), floating point
    Output: the input's shape and dtype
    Errors: NotImplementedError for integers, bools and complex numbers
    https://pytorch.org/docs → torch.nn.functional.softplus

    >>> import tensorgrad as torch
    >>> torch.nn.functional.softplus(torch.tensor([0., 100.]))
    tensor([  0.6931, 100.0000])
    """
    for number in (beta, threshold):
        if type(number) is complex or not -LEAST_LARGEST <= number <= LEAST_LARGEST:
            _check_single(input, number)
    return xp.softplus(input, beta=beta, threshold=threshold)


def logsigmoid(input: Tensor) -> Tensor:
    """log σ(x).

    Input: (*), floating point
    Output: the input's shape and dtype
    Errors: NotImplementedError for integers, bools and complex numbers
    https://pytorch.org/docs → torch.nn.functional.logsigmoid

    >>> import tensorgrad as torch
    >>> torch.nn.functional.logsigmoid(torch.tensor([0., -1000.]))
    tensor([-6.9315e-01, -1.0000e+03])
    """
    return xp.log_sigmoid(input)


def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|).

    Input: (*), any dtype but bool
    Output: the input's shape; integers give the default floating point dtype
    Errors: NotImplementedError for bools
    https://pytorch.org/docs → torch.nn.functional.softsign

    >>> import tensorgrad as torch
    >>> torch.nn.functional.softsign(torch.tensor([-1., 3.]))
    tensor([-0.5000,  0.7500])
    """
    return input / (input.abs() + 1)


def tanhshrink(input: Tensor) -> Tensor:
    """x − tanh x.

    Input: (*), any dtype but bool
    Output: the input's shape; integers give the default floating point dtype
    Errors: RuntimeError for bools
    https://pytorch.org/docs → torch.nn.functional.tanhshrink

    >>> import tensorgrad as torch
    >>> torch.nn.functional.tanhshrink(torch.tensor([0., 1.]))
    tensor([0.0000, 0.2384])
    """
    return input - input.tanh()


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """a · σ(b), with a and b the halves of x along an axis.

    Input: (…, 2 n, …), floating point
    Output: (…, n, …)
    Errors: RuntimeError if the size along dim is odd, or without dimensions; IndexError if dim is out of range;
        NotImplementedError for integers, bools and complex numbers
    https://pytorch.org/docs → torch.nn.functional.glu

    >>> import tensorgrad as torch
    >>> torch.nn.functional.glu(torch.tensor([1., 2., 0., 0.]))
    tensor([0.5000, 1.0000])
    """
    if not input.ndim:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    axis = normalize_dim(dim, input.ndim)
    if input.shape[axis] % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {axis} is size {input.shape[axis]}")
    return xp.glu(input, axis=axis)


# ── along an axis ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _implicit_axis(name: str, ndim: int) -> int:
    warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an "
         f"argument.",
         again=True)
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Dtype | None = None) -> Tensor:
    """exp(x) / Σ exp(x) along an axis.

    Input: (*), floating point, or any dtype with `dtype`, to which it is converted first
    Output: the input's shape
    Errors: IndexError if dim is out of range; NotImplementedError for integers, bools and complex numbers without
        `dtype`; UserWarning without dim
    https://pytorch.org/docs → torch.nn.functional.softmax

    >>> import tensorgrad as torch
    >>> torch.nn.functional.softmax(torch.tensor([0., 0., 1000.]), dim=0)
    tensor([0., 0., 1.])
    """
    return tg.softmax(input, _implicit_axis("softmax", input.ndim) if dim is None else dim, dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Dtype | None = None) -> Tensor:
    """exp(−x) / Σ exp(−x) along an axis.

    Input: (*), floating point, or integers with `dtype`, to which they are converted
    Output: the input's shape
    Errors: IndexError if dim is out of range; RuntimeError for bools; NotImplementedError for integers without `dtype`
        and for complex numbers; UserWarning without dim
    https://pytorch.org/docs → torch.nn.functional.softmin

    >>> import tensorgrad as torch
    >>> torch.nn.functional.softmin(torch.tensor([0., 0., 1000.]), dim=0)
    tensor([0.5000, 0.5000, 0.0000])
    """
    return (-input).softmax(_implicit_axis("softmin", input.ndim) if dim is None else dim, dtype=dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Dtype | None = None) -> Tensor:
    """x − log Σ exp(x) along an axis.

    Input: (*), floating point, or any dtype with `dtype`, to which it is converted first
    Output: the input's shape
    Errors: IndexError if dim is out of range; NotImplementedError for integers, bools and complex numbers without
        `dtype`; UserWarning without dim
    https://pytorch.org/docs → torch.nn.functional.log_softmax

    >>> import tensorgrad as torch
    >>> torch.nn.functional.log_softmax(torch.tensor([0., 0.]), dim=0)
    tensor([-0.6931, -0.6931])
    """
    return tg.log_softmax(input, _implicit_axis("log_softmax", input.ndim) if dim is None else dim, dtype)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """softmax((x + noise) / τ): a sample of a class, soft, or hard with the gradient of the soft one. E. Jang, S. Gu,
    B. Poole (2016).

    Input: logits (*), floating point
    Output: the input's shape; sums along dim are 1
    Errors: RuntimeError for other dtypes; IndexError if dim is out of range
    https://pytorch.org/docs → torch.nn.functional.gumbel_softmax

    >>> import tensorgrad as torch
    >>> torch.nn.functional.gumbel_softmax(torch.tensor([0., 1000.]), hard=True)
    tensor([0., 1.])
    """
    if eps != 1e-10:
        warn("`eps` parameter is deprecated and has no effect.", again=True)
    noise = -tg.empty_like(logits, memory_format=contiguous_format).exponential_().log()
    soft = tg.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    one_hot = tg.zeros_like(soft.detach()).scatter_(dim, soft.detach().max(dim, keepdim=True)[1], 1.0)
    return one_hot - soft.detach() + soft
