"""Elementwise functions."""
from __future__ import annotations

from math import inf, log, pi, sqrt
from typing import Any

import numpy as np

from ._graph import BOOL, Refused
from ._table import RULES, rule


def _arithmetic(name: str, kind: str, logical: str) -> None:
    """Define a rule that uses an arithmetic operator for numbers, a logical one for bools."""
    RULES[name] = lambda g, a, b: g.node(logical if a.dtype == BOOL else kind, a, b)


for _name, _kind, _logical in (("add", "Add", "Or"), ("multiply", "Mul", "And"), ("maximum", "Max", "Or"),
                               ("minimum", "Min", "And"),
                               ("fmax", "Max", "Or"), ("fmin", "Min", "And"), ("subtract", "Sub", "Xor")):
    _arithmetic(_name, _kind, _logical)


@rule("fmax fmin")
def beyond_nan(g: Any, a: Any, b: Any) -> Any:
    kind = {"fmax": "Max", "fmin": "Min"}[g.op]
    if a.dtype.kind != "f":
        return RULES["maximum" if kind == "Max" else "minimum"](g, a, b)
    return g.Where(g.IsNaN(a), b, g.Where(g.IsNaN(b), a, g.node(kind, a, b)))


@rule("floor ceil trunc round")
def rounded(g: Any, x: Any, *, decimals: int = 0) -> Any:
    if x.dtype.kind != "f":
        return g.Identity(x)
    if g.op == "trunc":
        return g.Mul(g.Sign(x), g.Floor(g.Abs(x)))
    if g.op == "round" and decimals:
        ten = g.like(10.0 ** decimals, x)
        return g.Div(g.Round(g.Mul(x, ten)), ten)
    return g.node(g.op.capitalize(), x)


@rule("floor_divide")
def floor_divide(g: Any, a: Any, b: Any) -> Any:
    if a.dtype.kind == "f":
        return g.Floor(g.Div(a, b))
    quotient = g.Div(g.Sub(a, g.Mod(a, b)), b)       # Mod has the sign of the divisor: the difference divides evenly
    return quotient


@rule("trunc_divide")
def trunc_divide(g: Any, a: Any, b: Any) -> Any:
    if a.dtype.kind != "f":
        return g.Div(g.Sub(a, g.Mod(a, b, fmod=1)), b)
    quotient = g.Div(a, b)
    return g.Mul(g.Sign(quotient), g.Floor(g.Abs(quotient)))


@rule("remainder")
def remainder(g: Any, a: Any, b: Any) -> Any:
    if a.dtype.kind != "f":
        return g.Mod(a, b)
    rest = g.Mod(a, b, fmod=1)
    apart = g.And(g.Not(g.Equal(rest, g.like(0, a))), g.Xor(g.Less(rest, g.like(0, a)), g.Less(b, g.like(0, a))))
    return g.Where(apart, g.Add(rest, b), rest)


@rule("fmod")
def fmod(g: Any, a: Any, b: Any) -> Any:
    return g.Mod(a, b, fmod=1)


@rule("power")
def power(g: Any, a: Any, b: Any) -> Any:
    for number, rest in ((b, a),):
        if number.data is not None and not number.data.ndim and rest.dtype.kind == "f":
            if number.data == 2:
                return g.Mul(rest, rest)
            if number.data == 0.5:
                return g.Sqrt(rest)
            if number.data == -1:
                return g.Reciprocal(rest)
    return g.Pow(a, b)


@rule("clamp")
def clamp(g: Any, x: Any, low: Any, high: Any) -> Any:
    x = x if low is None else g.Max(x, low)
    return x if high is None else g.Min(x, high)


@rule("equal not_equal")
def equal(g: Any, a: Any, b: Any) -> Any:
    same = g.Equal(a, b)
    return same if g.op == "equal" else g.Not(same)


@rule("less less_equal greater greater_equal")
def ordered(g: Any, a: Any, b: Any) -> Any:
    if a.dtype == BOOL:
        a, b = g.cast(a, "int32"), g.cast(b, "int32")
    return g.node("".join(part.capitalize() for part in g.op.replace("_equal", "_or_equal").split("_")), a, b)


@rule("isfinite")
def isfinite(g: Any, x: Any) -> Any:
    if x.dtype.kind != "f":
        return g.Not(g.cast(g.Sub(x, x), BOOL))
    return g.Not(g.Or(g.IsNaN(x), g.IsInf(x)))


@rule("isnan isinf")
def special_numbers(g: Any, x: Any) -> Any:
    if x.dtype.kind != "f":
        return g.cast(g.Sub(x, x), BOOL)
    return g.node("IsNaN" if g.op == "isnan" else "IsInf", x)


@rule("logical_not logical_and logical_or logical_xor")
def logic(g: Any, *inputs: Any) -> Any:
    return g.node(g.op.removeprefix("logical_").capitalize(), *[g.cast(x, BOOL) for x in inputs])


@rule("bitwise_not bitwise_and bitwise_or bitwise_xor")
def bits(g: Any, *inputs: Any) -> Any:
    kind = g.op.removeprefix("bitwise_").capitalize()
    return g.node(kind if inputs[0].dtype == BOOL else f"Bitwise{kind}", *inputs)


@rule("left_shift right_shift")
def shifts(g: Any, a: Any, b: Any) -> Any:
    if a.dtype.kind == "u":
        return g.BitShift(a, b, direction=g.op.removesuffix("_shift").upper())
    two = g.Pow(g.like(2, a), b)
    return g.Mul(a, two) if g.op == "left_shift" else g.Div(g.Sub(a, g.Mod(a, two)), two)


@rule("cast")
def cast(g: Any, x: Any, *, dtype: Any) -> Any:
    if x.dtype.kind == "c" or np.dtype(dtype).kind == "c":
        raise Refused("complex numbers")
    return g.Identity(x) if x.dtype == dtype else g.cast(x, dtype)


@rule("masked_fill")
def masked_fill(g: Any, x: Any, value: Any, mask: Any) -> Any:
    return g.Where(mask, g.cast(value, x.dtype), x)


@rule("nan_to_num")
def nan_to_num(g: Any, x: Any, *, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    if x.dtype.kind != "f":
        return g.Identity(x)
    limit = np.finfo(x.dtype)
    x, dtype = g.Where(g.IsNaN(x), g.like(nan, x), x), x.dtype
    for at, value in ((inf, limit.max if posinf is None else posinf), (-inf, limit.min if neginf is None else neginf)):
        x = g.Where(g.Equal(x, g.constant(at, dtype)), g.constant(value, dtype), x)
    return x


# ── short compositions: a number stands for a constant of the dtype of x ──────────────────────────────────────────────


def composed(name: str, formula: Any) -> None:
    """Define a rule by a formula of `n`, a `Numbers`."""
    RULES[name] = lambda g, *inputs, **params: formula(Numbers(g, inputs[0].dtype), *inputs, **params)


class Numbers:
    """A graph in which numbers are constants of a fixed dtype."""

    def __init__(self, g: Any, dtype: Any) -> None:
        self.g, self.dtype = g, dtype

    def __getattr__(self, kind: str) -> Any:
        return lambda *inputs, **attributes: self.g.node(
            kind, *[self.g.constant(x, self.dtype) if isinstance(x, (int, float)) else x for x in inputs], **attributes)

    def log1p_exp(self, x: Any) -> Any:
        """log(1 + eˣ), without overflow"""
        return self.Add(self.Relu(x), self.Log(self.Add(self.Exp(self.Neg(self.Abs(x))), 1)))

    def clip(self, x: Any, low: Any, high: Any) -> Any:
        return self.Min(self.Max(x, low), high)


composed("square", lambda n, x: n.Mul(x, x))
composed("rsqrt", lambda n, x: n.Reciprocal(n.Sqrt(x)))
composed("exp2", lambda n, x: n.Pow(2, x))
# tanh(x/2) (eˣ + 1), exact near 0
composed("expm1", lambda n, x: n.Mul(n.Mul(n.Tanh(n.Div(x, 2)), n.Add(n.Exp(x), 1)), 1))
composed("log2", lambda n, x: n.Div(n.Log(x), log(2)))
composed("log10", lambda n, x: n.Div(n.Log(x), log(10)))
composed("log1p", lambda n, x: n.Log(n.Add(x, 1)))
composed("logaddexp", lambda n, a, b: n.Add(n.Max(a, b), n.Log(n.Add(n.Exp(n.Neg(n.Abs(n.Sub(a, b)))), 1))))
composed("logaddexp2", lambda n, a, b: n.Add(n.Max(a, b),
                                             n.Div(n.Log(n.Add(n.Pow(2, n.Neg(n.Abs(n.Sub(a, b)))), 1)), log(2))))
composed("xlogy", lambda n, a, b: n.Where(n.And(n.Equal(a, 0), n.Not(n.IsNaN(b))), 0, n.Mul(a, n.Log(b))))
composed("deg2rad", lambda n, x: n.Mul(x, pi / 180))
composed("rad2deg", lambda n, x: n.Mul(x, 180 / pi))
composed("hypot", lambda n, a, b: n.Sqrt(n.Add(n.Mul(a, a), n.Mul(b, b))))
composed("erfc", lambda n, x: n.Sub(1, n.Erf(x)))
composed("arctan2", lambda n, a, b: n.Where(
    n.Greater(b, 0), n.Atan(n.Div(a, b)),
    n.Where(n.Less(b, 0), n.Add(n.Atan(n.Div(a, b)), n.Where(n.Less(a, 0), -pi, pi)), n.Mul(n.Sign(a), pi / 2))))
composed("signbit", lambda n, x: n.Or(n.Less(x, 0), n.Equal(n.Div(1, x), -inf)))
composed("copysign", lambda n, a, b: n.Where(n.Or(n.Less(b, 0), n.Equal(n.Div(1, b), -inf)), n.Neg(n.Abs(a)), n.Abs(a)))
composed("angle", lambda n, x: n.Where(n.IsNaN(x), x, n.Where(n.Less(x, 0), pi, 0)))

# ── activations ───────────────────────────────────────────────────────────────────────────────────────────────────────

composed("leaky_relu", lambda n, x, slope: n.LeakyRelu(x, alpha=slope))
composed("prelu", lambda n, x, w: n.Where(n.Greater(x, 0), x, n.Mul(x, w)))
composed("hardtanh", lambda n, x, low, high: n.clip(x, low, high))
composed("hardsigmoid", lambda n, x: n.HardSigmoid(x, alpha=1 / 6, beta=0.5))
composed("hardswish", lambda n, x: n.Mul(x, n.HardSigmoid(x, alpha=1 / 6, beta=0.5)))
composed("elu", lambda n, x, alpha, scale=1.0: n.Elu(x, alpha=alpha) if scale == 1
         else n.Selu(x, alpha=alpha, gamma=scale))
composed("celu", lambda n, x, alpha: n.Celu(x, alpha=alpha))
composed("silu", lambda n, x: n.Mul(x, n.Sigmoid(x)))
composed("mish", lambda n, x: n.Mul(x, n.Tanh(n.log1p_exp(x))))
composed("softplus", lambda n, x, beta, threshold: n.Where(
    n.Greater(n.Mul(x, beta), threshold), x, n.Div(n.log1p_exp(n.Mul(x, beta)), beta)))


@rule("gelu gelu_tanh")
def gelu(g: Any, x: Any) -> Any:
    """x Φ(x), a single operator since opset 20."""
    if g.opset >= 20:
        return g.Gelu(x, approximate="tanh" if g.op == "gelu_tanh" else "none")
    n = Numbers(g, x.dtype)
    if g.op == "gelu":
        return n.Mul(n.Mul(x, n.Add(n.Erf(n.Div(x, sqrt(2))), 1)), 0.5)
    cube = n.Mul(n.Mul(n.Mul(x, x), x), 0.044715)
    return n.Mul(n.Mul(x, n.Add(n.Tanh(n.Mul(n.Add(x, cube), sqrt(2 / pi))), 1)), 0.5)


