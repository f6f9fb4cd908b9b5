"""Elementwise operators. https://onnx.ai/onnx/operators/"""
from __future__ import annotations

from functools import reduce
from typing import Any

from ... import api as torch
from ...nn import functional as F
from ._table import operator
from ._types import cast, dtype_of

# ── one operand ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _same(names: str) -> None:
    """Define operators that a function of the package computes; `ONNX=ours` where the names differ."""
    for word in names.split():
        name, _, ours = word.partition("=")
        operator(name)(getattr(torch, ours or name.lower()))


_same("Abs Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Erf Exp Floor Log Neg Reciprocal Sigmoid Sign Sin Sinh Sqrt "
      "Tan Tanh Not=logical_not IsNaN=isnan BitwiseNot=bitwise_not Relu=relu Round=round Det=det")


@operator("Identity")
def identity(x: Any) -> Any:
    return x


@operator("IsInf")
def is_inf(x: Any, *, detect_negative: int = 1, detect_positive: int = 1) -> Any:
    found = torch.isinf(x)
    if not detect_negative:
        found = found & (x > 0)
    return found if detect_positive else found & (x < 0)


@operator("Elu")
def elu(x: Any, *, alpha: float = 1.0) -> Any:
    return F.elu(x, alpha)


@operator("Celu")
def celu(x: Any, *, alpha: float = 1.0) -> Any:
    return F.celu(x, alpha)


@operator("Selu")
def selu(x: Any, *, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875) -> Any:
    return gamma * F.elu(x, alpha)


@operator("LeakyRelu")
def leaky_relu(x: Any, *, alpha: float = 0.01) -> Any:
    return F.leaky_relu(x, alpha)


@operator("ThresholdedRelu")
def thresholded_relu(x: Any, *, alpha: float = 1.0) -> Any:
    return torch.where(x > alpha, x, torch.zeros_like(x))


@operator("HardSigmoid")
def hard_sigmoid(x: Any, *, alpha: float = 0.2, beta: float = 0.5) -> Any:
    return torch.clamp(alpha * x + beta, 0, 1)


@operator("HardSwish")
def hard_swish(x: Any) -> Any:
    return F.hardswish(x)


@operator("Swish")
def swish(x: Any, *, alpha: float = 1.0) -> Any:
    return x * torch.sigmoid(alpha * x)


@operator("Softplus")
def softplus(x: Any) -> Any:
    return torch.logaddexp(x, torch.zeros_like(x))


@operator("Softsign")
def softsign(x: Any) -> Any:
    return F.softsign(x)


@operator("Mish")
def mish(x: Any) -> Any:
    return F.mish(x)


@operator("Gelu")
def gelu(x: Any, *, approximate: str = "none") -> Any:
    return F.gelu(x, approximate=approximate)


@operator("Shrink")
def shrink(x: Any, *, bias: float = 0.0, lambd: float = 0.5) -> Any:
    return torch.where(x < -lambd, x + bias, torch.where(x > lambd, x - bias, torch.zeros_like(x))).to(x.dtype)


@operator("PRelu")
def prelu(x: Any, slope: Any) -> Any:
    return torch.where(x < 0, x * slope, x)


@operator("Clip")
def clip_between(x: Any, *, max: float = 3.402823e38, min: float = -3.402823e38) -> Any:
    return torch.clamp(x, min, max)


@operator("Clip", since=11, fixed=(1, 2))
def clip(x: Any, low: Any = None, high: Any = None) -> Any:
    x = x if low is None else torch.maximum(x, torch.as_tensor(low, dtype=x.dtype))
    return x if high is None else torch.minimum(x, torch.as_tensor(high, dtype=x.dtype))


@operator("Cast")
def cast_to(x: Any, *, to: int, saturate: int = 1, round_mode: str = "up") -> Any:
    return cast(x, to, bool(saturate))


@operator("CastLike")
def cast_like(x: Any, like: Any, *, saturate: int = 1, round_mode: str = "up") -> Any:
    return x.to(like.dtype)


@operator("BitCast")
def bit_cast(x: Any, *, to: int) -> Any:
    return x.view(dtype_of(to))


# ── two and more ──────────────────────────────────────────────────────────────────────────────────────────────────────

def _binary(names: str, function: Any = None) -> None:
    """Define operators of two operands: `ONNX=ours`. Before version 7, b's first axis may be any `axis` of a."""
    for word in names.split():
        name, _, ours = word.partition("=")
        compute = function or getattr(torch, ours)
        operator(name, since=7)(compute)

        @operator(name)
        def before(a: Any, b: Any, *, broadcast: int = 0, axis: int | None = None, consumed_inputs: Any = None,
                   compute: Any = compute) -> Any:
            if broadcast and axis is not None and b.ndim:
                b = b.reshape(*b.shape, *[1] * (a.ndim - axis % a.ndim - b.ndim))
            return compute(a, b)


def _divided(a: Any, b: Any) -> Any:
    """a / b; of integers, rounded toward zero."""
    return torch.div(a, b) if a.is_floating_point() else torch.div(a, b, rounding_mode="trunc")


def _power(a: Any, b: Any) -> Any:
    """a ** b in the type of a."""
    if a.is_floating_point() or not b.is_floating_point():
        return torch.pow(a, b.to(a.dtype))
    return torch.pow(a.to(b.dtype), b).to(a.dtype)


_same("GreaterOrEqual=ge LessOrEqual=le BitwiseAnd=bitwise_and BitwiseOr=bitwise_or BitwiseXor=bitwise_xor")
_binary("Add=add Sub=sub Mul=mul Equal=eq Greater=gt Less=lt And=logical_and Or=logical_or Xor=logical_xor")
_binary("Div", _divided)
_binary("Pow", _power)


@operator("Mod")
def mod(a: Any, b: Any, *, fmod: int = 0) -> Any:
    return torch.fmod(a, b) if fmod else torch.remainder(a, b)


@operator("BitShift")
def bit_shift(a: Any, b: Any, *, direction: str) -> Any:
    return torch.bitwise_left_shift(a, b) if direction == "LEFT" else torch.bitwise_right_shift(a, b)


@operator("Where")
def where(condition: Any, a: Any, b: Any) -> Any:
    return torch.where(condition, a, b)


@operator("Max")
def maximum(*values: Any) -> Any:
    return reduce(torch.maximum, values)


@operator("Min")
def minimum(*values: Any) -> Any:
    return reduce(torch.minimum, values)


@operator("Sum")
def total(*values: Any) -> Any:
    return reduce(torch.add, values)


@operator("Mean")
def mean(*values: Any) -> Any:
    return reduce(torch.add, values) / len(values)


# ── numbers of 8 bits ─────────────────────────────────────────────────────────────────────────────────────────────────


def _along(scale: Any, x: Any, axis: int, block: int) -> Any:
    """Return scales, one for all, for each index of an axis or for each block of it, so that they broadcast with x."""
    if scale.ndim == 0 or scale.numel() == 1 and scale.ndim == 1 and x.ndim != 1:
        return scale.reshape(())
    if block:
        return torch.repeat_interleave(scale, block, dim=axis).narrow(axis, 0, x.shape[axis])
    return scale.reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])


@operator("QuantizeLinear", fixed=(1, 2))
def quantize_linear(x: Any, scale: Any, zero: Any = None, *, axis: int = 1, saturate: int = 1, block_size: int = 0,
                    output_dtype: int = 0, precision: int = 0) -> Any:
    """y = saturate(round(x / scale) + zero)"""
    target = zero.dtype if zero is not None else dtype_of(output_dtype or 2)
    y = x.float() / _along(scale, x, axis, block_size).float()
    if target.is_floating_point:
        return y.to(target)
    y = torch.round(y)
    y = y if zero is None else y + _along(zero, x, axis, block_size).float()
    limits = torch.iinfo(target)
    return torch.clamp(y, limits.min, limits.max).to(target)


@operator("DequantizeLinear", fixed=(1, 2))
def dequantize_linear(x: Any, scale: Any, zero: Any = None, *, axis: int = 1, block_size: int = 0,
                      output_dtype: int = 0) -> Any:
    """y = (x − zero) · scale"""
    found = x.float() if zero is None else x.float() - _along(zero, x, axis, block_size).float()
    found = found * _along(scale, x, axis, block_size).float()
    return found.to(dtype_of(output_dtype) if output_dtype else scale.dtype)


@operator("DynamicQuantizeLinear")
def dynamic_quantize_linear(x: Any) -> Any:
    """Scale such that 0 … 255 spans x and 0: y = saturate(round(x / scale) + zero)"""
    low, high = torch.clamp(x.min(), max=0), torch.clamp(x.max(), min=0)
    scale = (high - low) / 255
    zero = torch.clamp(torch.round(-low / scale), 0, 255)
    y = torch.clamp(torch.round(x / scale) + zero, 0, 255)
    return y.to(torch.uint8), scale, zero.to(torch.uint8)
