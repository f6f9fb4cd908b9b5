"""Activations: the nonlinear functions between layers, element by element, and softmax."""
from __future__ import annotations

from math import pi, sqrt

from .base import AlongAxis, Elementwise


class Activation(Elementwise):
    """Elementwise functions that NumPy does not have."""

    __slots__ = ()
    native = False
    casts = None
    kinds = "f"


def positive(xp, x):
    """max(x, 0)"""
    return xp.maximum(x, xp.zeros_like(x))


def negative(xp, x):
    """min(x, 0)"""
    return xp.minimum(x, xp.zeros_like(x))


def log1p_exp(xp, x):
    """log(1 + eˣ), without overflow"""
    return positive(xp, x) + xp.log1p(xp.exp(-xp.absolute(x)))


# ── lines with a bend ─────────────────────────────────────────────────────────────────────────────────────────────────


class Bent(Activation):
    """Piecewise linear activations."""

    __slots__ = ()
    flat = True


class Relu(Bent):
    """max(x, 0)"""

    kernel_name = "clamp_min_scalar_cpu"
    kinds = "fiu"
    onnx = "Relu"
    lands = True
    zeros = "kept"

    def forward(xp, x):        return positive(xp, x)
    def grad_x(xp, g, out):    return xp.relu_gradient(g, out)


class ReluGradient(Bent):
    """g where y > 0 or NaN, 0 elsewhere"""

    torch_name = "ThresholdBackward"
    kinds = "fiu"
    onnx = "definition"

    def forward(xp, slope, y):    return xp.where(y <= 0, 0, slope)
    def grad_slope(xp, g, y):     return xp.relu_gradient(g, y)


class LeakyRelu(Bent):
    """x for x > 0, slope · x elsewhere"""

    kernel_name = "leaky_relu_cpu"

    def forward(xp, x, *, slope):    return xp.where(x > 0, x, x * slope)
    def grad_x(xp, g, x, slope):     return xp.where(x > 0, g, g * slope)


class Prelu(Bent):
    """x for x > 0, w · x elsewhere, with w learnt"""

    torch_name = "PreluKernel"

    def forward(xp, x, w):      return xp.where(x > 0, x, x * w)
    def grad_x(xp, g, x, w):    return xp.where(x > 0, g, g * w)
    def grad_w(xp, g, x):       return xp.where(x > 0, 0, g * x)


class RreluWithNoise(Bent):
    """x for x > 0, r · x elsewhere, with r drawn at random"""

    row_major = True
    kernel_name = "rrelu_with_noise_out_cpu"
    onnx = "definition"

    def forward(xp, x, r):      return xp.where(x > 0, x, x * r)
    def grad_x(xp, g, x, r):    return xp.where(x > 0, g, g * r)


def bound(x, number):
    """A Python number that compares with elements of x in their dtype."""
    return number if x.dtype.kind == "f" else int(number)


class Hardtanh(Bent):
    """x, kept within [low, high]"""

    kernel_name = "clamp_scalar_cpu"
    kinds = "fiu"
    lands = True

    def forward(xp, x, *, low, high):     return xp.clamp(x, bound(x, low), bound(x, high))
    def grad_x(xp, g, x, low, high):      return xp.where((x > low) & (x < high), g, 0)


class Hardsigmoid(Bent):
    """x/6 + 1/2, kept within [0, 1]"""

    kernel_name = "hardsigmoid_cpu"

    def forward(xp, x):      return xp.clamp(x + 3, 0, 6) / 6
    def grad_x(xp, g, x):    return xp.where((x > -3) & (x < 3), g / 6, 0)


class Hardswish(Activation):
    """x · hardsigmoid(x)"""

    kernel_name = "hardswish_cpu"

    def forward(xp, x):      return x * xp.clamp(x + 3, 0, 6) / 6
    def grad_x(xp, g, x):    return g * xp.where(x <= -3, 0, xp.where(x >= 3, 1, x / 3 + 0.5))


class Hardshrink(Bent):
    """x where |x| > λ, 0 elsewhere"""

    kernel_name = "hardshrink_cpu"
    onnx = "definition"

    def forward(xp, x, *, lambd):    return xp.where((x >= -lambd) & (x <= lambd), 0, x)
    def grad_x(xp, g, x, lambd):     return xp.where((x < -lambd) | (x > lambd), g, 0)


class Softshrink(Bent):
    """x − λ above λ, x + λ below −λ, 0 between"""

    kernel_name = "softshrink_check"
    onnx = "definition"

    def forward(xp, x, *, lambd):    return xp.where(x > lambd, x - lambd, xp.where(x < -lambd, x + lambd, x * 0))
    def grad_x(xp, g, x, lambd):     return xp.where((x < -lambd) | (x > lambd), g, 0)


class Threshold(Bent):
    """x where x > threshold, value elsewhere"""

    kinds = "fiu"
    onnx = "definition"

    def forward(xp, x, *, threshold, value):    return xp.where(x <= threshold, bound(x, value), x)
    def grad_x(xp, g, x, threshold):            return xp.where(x <= threshold, 0, g)


# ── smooth curves ─────────────────────────────────────────────────────────────────────────────────────────────────────


def elu(xp, x, alpha, scale, rate):
    return positive(xp, x) * scale + xp.expm1(negative(xp, x) * rate) * (alpha * scale)


def elu_slope(xp, x, alpha, scale, rate):
    return xp.where(x > 0, scale, xp.exp(xp.where(x >= 0, 0, x) * rate) * (alpha * scale * rate))


class Elu(Activation):
    """scale · x for x > 0, scale · α (exp(x) − 1) elsewhere. D.-A. Clevert, T. Unterthiner, S. Hochreiter (2015)"""

    kernel_name = "elu_cpu"

    def forward(xp, x, *, alpha, scale=1.0):          return elu(xp, x, alpha, scale, 1)
    def grad_x(xp, g, x, alpha, scale=1.0):           return g * elu_slope(xp, x, alpha, scale, 1)


class Celu(Activation):
    """x for x > 0, α (exp(x / α) − 1) elsewhere. J. T. Barron (2017)"""

    kernel_name = "elu_cpu"

    def forward(xp, x, *, alpha):    return elu(xp, x, alpha, 1, 1 / alpha)
    def grad_x(xp, g, x, alpha):     return g * elu_slope(xp, x, alpha, 1, 1 / alpha)


class Silu(Activation):
    """x · σ(x)"""

    kinds = "fc"
    kernel_name = "silu_cpu"

    def forward(xp, x):
        return x * xp.sigmoid(x)

    def grad_x(xp, g, x):
        s = xp.sigmoid(x)
        return g * (s * (x * (1 - s) + 1))


class Mish(Activation):
    """x · tanh(log(1 + eˣ)). D. Misra (2019)"""

    kernel_name = "mish_cpu"

    def forward(xp, x):
        return x * xp.tanh(log1p_exp(xp, x))

    def grad_x(xp, g, x):
        t = xp.tanh(log1p_exp(xp, x))
        return g * (t + x * xp.sigmoid(x) * (1 - t * t))


class Softplus(Activation):
    """log(1 + exp(β x)) / β; x itself where β x is above the threshold"""

    kernel_name = "softplus_cpu"

    def forward(xp, x, *, beta, threshold):
        return xp.where(x * beta > threshold, x, log1p_exp(xp, x * beta) / beta)
    def grad_x(xp, g, x, beta, threshold):       return xp.where(x * beta > threshold, g, g * xp.sigmoid(x * beta))


class LogSigmoid(Activation):
    """log σ(x) = min(x, 0) − log(1 + exp(−|x|))"""

    row_major = True
    kernel_name = "log_sigmoid_cpu"
    onnx = "definition"

    def forward(xp, x):      return negative(xp, x) - xp.log1p(xp.exp(-xp.absolute(x)))
    def grad_x(xp, g, x):    return g * xp.sigmoid(-x)


class Gelu(Activation):
    """x · Φ(x), with Φ the normal distribution function: Φ(x) = (1 + erf(x / √2)) / 2.

    D. Hendrycks, K. Gimpel (2016)
    """

    kernel_name = "GeluKernelImpl"

    def forward(xp, x):
        return x * 0.5 * (xp.erf(x * sqrt(0.5)) + 1)

    def grad_x(xp, g, x):
        return g * ((xp.erf(x * sqrt(0.5)) + 1) * 0.5 + x * xp.exp(x * x * -0.5) * (1 / sqrt(2 * pi)))


class GeluTanh(Activation):
    """x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³)))"""

    torch_name = "Gelu"
    kernel_name = "GeluKernelImpl"

    def forward(xp, x):
        return x * 0.5 * (xp.tanh((x + x * x * x * 0.044715) * sqrt(2 / pi)) + 1)

    def grad_x(xp, g, x):
        t = xp.tanh((x + x * x * x * 0.044715) * sqrt(2 / pi))
        return g * ((t + 1) * 0.5 + x * 0.5 * (1 - t * t) * (x * x * (3 * 0.044715) + 1) * sqrt(2 / pi))


# ── along an axis ─────────────────────────────────────────────────────────────────────────────────────────────────────


def halves(xp, x, axis):
    """The first and the second half along an axis."""
    half = x.shape[axis] // 2
    lead = (slice(None),) * axis
    return xp.get_slice(x, index=(*lead, slice(0, half))), xp.get_slice(x, index=(*lead, slice(half, 2 * half)))


class Glu(AlongAxis):
    """a · σ(b), with a and b the halves of x along an axis. Y. N. Dauphin et al. (2017)"""

    kinds = "f"
    kernel_name = "glu_cpu"
    onnx = "definition"

    def forward(xp, x, *, axis):
        a, b = halves(xp, x, axis)
        return a * xp.sigmoid(b)

    def grad_x(xp, g, x, axis):
        a, b = halves(xp, x, axis)
        s = xp.sigmoid(b)
        return xp.concat([g * s, g * a * (s * (1 - s))], axis=axis)


class Softmax(AlongAxis):
    """exp(x) / Σ exp(x) along an axis, computed from x − max x"""

    row_major = True
    kinds = "f"
    kernel_name = "softmax_kernel_impl"

    def forward(xp, x, *, axis):
        if not x.shape[axis]:
            return xp.exp(x)
        e = xp.exp(x - xp.amax(x, axis=axis, keepdims=True))
        return e / xp.sum(e, axis=axis, keepdims=True)

    def grad_x(xp, g, out, axis):
        return out * (g - xp.sum(g * out, axis=axis, keepdims=True))


class LogSoftmax(AlongAxis):
    """x − log Σ exp(x) along an axis, computed from x − max x"""

    row_major = True
    kinds = "f"
    kernel_name = "log_softmax_kernel_impl"

    def forward(xp, x, *, axis):
        if not x.shape[axis]:
            return xp.exp(x)
        shifted = x - xp.amax(x, axis=axis, keepdims=True)
        return shifted - xp.log(xp.sum(xp.exp(shifted), axis=axis, keepdims=True))

    def grad_x(xp, g, out, axis):
        return g - xp.exp(out) * xp.sum(g, axis=axis, keepdims=True)
