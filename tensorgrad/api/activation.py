"""Activations and dropout that PyTorch has at its root.

The others are in nn/_functions. https://pytorch.org/docs/stable/nn.functional.html
"""
from __future__ import annotations

from math import isfinite, sqrt
from typing import Any

from .._tensor import Tensor
from ..core.class_hooks import is_own
from ..core.dispatch import fresh, xp
from ..dtype import SCALAR_TYPES, as_dtype
from ..ops.shape import inverse
from ..runtime.small_floats import wide
from ._arguments import check_tensor, converted, in_dtype, normalize_dim, refuse
from ._kinds import Dtype, Generator, Number
from ._register import FUNCTIONS, in_place_form, public
from .creation import axes_in_memory, empty_like
from .random import generator_of, tensor_of

# ── lines with a bend ─────────────────────────────────────────────────────────────────────────────────────────────────


@public(inplace=True)
def relu(input: Tensor) -> Tensor:
    """max(x, 0), element by element.

    Input: (*), real numbers
    Output: the input's shape and dtype
    Errors: RuntimeError for bools; NotImplementedError for complex numbers
    https://pytorch.org/docs → torch.nn.functional.relu

    >>> import tensorgrad as torch
    >>> torch.relu(torch.tensor([-1., 0., 2.]))
    tensor([0., 0., 2.])
    """
    check_tensor(input, "relu", "input", 1)
    if input.array.dtype.kind == "b":
        raise RuntimeError("Boolean inputs not supported for relu")
    return xp.relu(input)


@public(method=False, out=True)
def threshold(input: Tensor, threshold: Number, value: Number) -> Tensor:
    """x where it is above the threshold, `value` elsewhere.

    Input: (*), real numbers
    Output: the input's shape and dtype
    Errors: NotImplementedError for bools and complex numbers; RuntimeError for numbers that the dtype cannot hold
    https://pytorch.org/docs → torch.nn.functional.threshold

    >>> import tensorgrad as torch
    >>> torch.threshold(torch.tensor([0.5, 2.]), 1, -7)
    tensor([-7.,  2.])
    """
    for number in (threshold, value):
        if not isinstance(number, int) or not -128 <= number < 128:
            converted(number, input.dtype)
    if isinstance(threshold, complex) or isinstance(value, complex):
        threshold, value = converted(threshold, input.dtype), converted(value, input.dtype)
    if input.array.dtype.kind in "iu" and isfinite(threshold):
        threshold = int(threshold)
    return xp.threshold(input, threshold=threshold, value=value)


@public(out=True)
def hardshrink(input: Tensor, lambd: Number = 0.5) -> Tensor:
    """x where |x| > λ, 0 elsewhere.

    Input: (*), floating point
    Output: the input's shape and dtype
    Errors: NotImplementedError for integers, bools and complex numbers
    https://pytorch.org/docs → torch.nn.functional.hardshrink

    >>> import tensorgrad as torch
    >>> torch.hardshrink(torch.tensor([-1., 0.3, 2.]))
    tensor([-1.,  0.,  2.])
    """
    return xp.hardshrink(input, lambd=converted(lambd, input.dtype) if input.array.dtype.kind in "fV" else lambd)


@public()
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x for x > 0, w · x elsewhere, with one w or one per channel (axis 1).

    Input: (*) or (N, C, *), floating point; weight w () or (1), or (C)
    Output: the input's shape and dtype
    Errors: RuntimeError for a weight of another dtype, more dimensions, or neither 1 nor C elements
    https://pytorch.org/docs → torch.nn.functional.prelu

    >>> import tensorgrad as torch
    >>> torch.prelu(torch.tensor([-2., 3.]), torch.tensor(0.25))
    tensor([-0.5000,  3.0000])
    """
    if input.dtype is not weight.dtype:
        names = {"float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16"}
        raise RuntimeError("prelu: Type promoting not supported. Got "
                           + " and ".join(names.get(t.dtype.name, t.dtype.name) for t in (input, weight)))
    if weight.ndim > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}")
    count = weight.numel()
    if count != 1:
        if not input.ndim:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = input.shape[1] if input.ndim > 1 else 1
        if channels != count:
            raise RuntimeError(f"Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                               f"{count} and channel size = {channels}.")
    return xp.prelu(input, weight.reshape((1, count, *(1,) * (input.ndim - 2)) if input.ndim > 1
                                          else (count,) * min(input.ndim, 1)))


@public(method=False)
def rrelu(input: Tensor, lower: Number = 1 / 8, upper: Number = 1 / 3, training: bool = False,
          generator: Generator | None = None) -> Tensor:
    """x for x > 0, r · x elsewhere: r is uniform on [lower, upper) while training, else the middle.

    Input: (*), floating point
    Output: the input's shape and dtype
    Errors: RuntimeError if lower > upper, or if one of them is not finite; NotImplementedError for integers, bools and
        complex numbers
    https://pytorch.org/docs → torch.rrelu

    >>> import tensorgrad as torch
    >>> torch.rrelu(torch.tensor([-8., 3.]), 0.25, 0.75)
    tensor([-4.,  3.])
    """
    for value, name in ((lower, "lower"), (upper, "upper")):
        if not isfinite(value):
            raise RuntimeError(f"rrelu: {name} bound must be finite, got {value}")
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if not training:
        return xp.rrelu_with_noise(input, (lower + upper) / 2)
    backend = type(input._storage)
    if backend.hollow:
        return xp.rrelu_with_noise(input, upper)
    values = wide(backend.host(input.array).reshape(-1))
    # a uniform number for each element that is not above 0, in order
    below, noise = values <= 0, values.copy()
    noise[below] = generator_of(backend, generator).uniform(int(below.sum()), lower, upper, "float64")
    noise = backend.cast(backend.asarray(noise.reshape(input.array.shape)), input.array.dtype)
    return xp.rrelu_with_noise(input, fresh(noise, backend))


# ── exponential curves ────────────────────────────────────────────────────────────────────────────────────────────────

SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


@public(method=False)
def selu(input: Tensor) -> Tensor:
    """λ x for x > 0, λ α (exp(x) − 1) elsewhere: G. Klambauer et al. (2017).

    Input: (*), floating point
    Output: the input's shape and dtype
    Errors: NotImplementedError for integers, bools and complex numbers
    https://pytorch.org/docs → torch.nn.functional.selu

    >>> import tensorgrad as torch
    >>> torch.selu(torch.tensor([-1., 1.]))
    tensor([-1.1113,  1.0507])
    """
    return xp.elu(input, alpha=SELU_ALPHA, scale=SELU_SCALE)


@public(method=False)
def celu(input: Tensor, alpha: Number = 1.0) -> Tensor:
    """x for x > 0, α (exp(x / α) − 1) elsewhere.

    Input: (*), floating point
    Output: the input's shape and dtype
    Errors: NotImplementedError for integers, bools and complex numbers; RuntimeError if alpha is 0
    https://pytorch.org/docs → torch.nn.functional.celu

    >>> import tensorgrad as torch
    >>> torch.celu(torch.tensor([-1., 1.]), alpha=2)
    tensor([-0.7869,  1.0000])
    """
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return xp.celu(input, alpha=alpha)


def along_axis(run: Any, input: Any, dim: Any, dtype: Any) -> Any:
    """Run an op along one axis, in a dtype. A tensor without axes counts as having one."""
    if dtype is not None:
        input = in_dtype(input, as_dtype(dtype))
    axis = normalize_dim(dim, input.array.ndim)
    return run(input, axis=axis) if input.array.ndim else run(input.reshape(1), axis=0).reshape(())


@public(out="same")
def softmax(input: Tensor, dim: int, dtype: Dtype | None = None) -> Tensor:
    """exp(x) / Σ exp(x) along an axis.

    Input: (*), floating point, or any dtype with `dtype`, to which it is converted first
    Output: the input's shape
    Errors: IndexError if dim is out of range; NotImplementedError for integers, bools and complex numbers without
        `dtype`
    https://pytorch.org/docs → torch.nn.functional.softmax

    >>> import tensorgrad as torch
    >>> torch.softmax(torch.tensor([0., 0., 1000.]), dim=0)
    tensor([0., 0., 1.])
    """
    return along_axis(xp.softmax, input, dim, dtype)


@public(out="same")
def log_softmax(input: Tensor, dim: int, dtype: Dtype | None = None) -> Tensor:
    """x − log Σ exp(x) along an axis.

    Input: (*), floating point, or any dtype with `dtype`, to which it is converted first
    Output: the input's shape
    Errors: IndexError if dim is out of range; NotImplementedError for integers, bools and complex numbers without
        `dtype`
    https://pytorch.org/docs → torch.nn.functional.log_softmax

    >>> import tensorgrad as torch
    >>> torch.log_softmax(torch.tensor([0., 0.]), dim=0)
    tensor([-0.6931, -0.6931])
    """
    return along_axis(xp.log_softmax, input, dim, dtype)


# ── dropout ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def noise_for(input: Any, draw: Any) -> Any:
    """A tensor of numbers like `input`, drawn in the order of its memory."""
    array, backend = input.array, type(input._storage)
    if array.flags.c_contiguous:
        return tensor_of(draw(array.shape), backend)
    axes = axes_in_memory(array)
    return tensor_of(draw(tuple(array.shape[axis] for axis in axes)).transpose(inverse(axes)), backend)


def check_floating(input: Any) -> None:
    """RuntimeError for integers and bools, which cannot hold scaled elements."""
    if input.array.dtype.kind in "biu":
        raise RuntimeError(f"result type Float can't be cast to the desired output type "
                           f"{SCALAR_TYPES[input.dtype.name]}")


def _check_probability(p: float) -> None:
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")


def _drop(input: Any, p: float, train: bool, noise: Any, combine: Any) -> Any:
    """Return the input for p = 0, zeros for p = 1, else `combine` of the input and the noise."""
    check_tensor(input, "dropout", "input", 1)
    _check_probability(p)
    if p == 0 or not train or not input.array.size:
        return input
    if p == 1:
        return input * input.new_zeros(())
    check_floating(input)
    refuse(input, "c", "bernoulli_scalar_cpu_")
    return combine(input, noise())


def _generator(input: Any) -> Any:
    return generator_of(type(input._storage), None)


@public(method=False)
def dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Each element is 0 with probability p, else x / (1 − p).

    Input: (*), floating point
    Output: the input's shape; the input itself unless `train`
    Errors: RuntimeError unless 0 ≤ p ≤ 1, or for integers and bools while training
    https://pytorch.org/docs → torch.nn.functional.dropout

    >>> import tensorgrad as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.dropout(torch.ones(6), 0.5, True)
    tensor([0., 0., 2., 0., 0., 0.])
    """
    def noise() -> Any:
        if is_own(input):
            return empty_like(input).bernoulli_(1 - p).div_(1 - p)
        return noise_for(input, lambda shape: _generator(input).dropout(shape, p, input.array.dtype))
    return _drop(input, p, train, noise, xp.multiply)


def _for_channels(input: Any, draw: Any) -> Any:
    """Draw a number per channel of each sample: shape (N, C, 1, …)."""
    if input.array.ndim < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    backend = type(input._storage)
    return tensor_of(draw((*input.array.shape[:2], *(1,) * (input.array.ndim - 2))), backend)


@public(method=False)
def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Dropout of whole channels (axis 1).

    Input: (N, C, *), floating point
    Output: the input's shape; the input itself unless `train`
    Errors: RuntimeError unless 0 ≤ p ≤ 1, or for integers and bools while training; or for less than 2 dimensions
    https://pytorch.org/docs → torch.nn.functional.dropout2d
    """
    def noise() -> Any:
        return _for_channels(input, lambda shape: _generator(input).dropout(shape, p, input.array.dtype))
    return _drop(input, p, train, noise, xp.multiply)


ALPHA = 1.7580993408473766       # −λ α of selu: the value of dropped elements


def _alpha(p: float) -> Any:
    """Return the affine map that restores the mean and variance of selu's output after dropout."""
    a = 1 / sqrt((ALPHA * ALPHA * p + 1) * (1 - p))
    return lambda input, kept: xp.add(xp.multiply(input, kept * a), (kept - 1) * (ALPHA * a) + ALPHA * a * p)


@public(method=False)
def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Dropout that keeps the mean and variance of selu's output.

    Input: (*), floating point
    Output: the input's shape; the input itself unless `train`
    Errors: RuntimeError unless 0 ≤ p ≤ 1, or for integers and bools while training
    https://pytorch.org/docs → torch.nn.functional.alpha_dropout
    """
    def noise() -> Any:
        return noise_for(input, lambda shape: _generator(input).bernoulli(1 - p, shape, input.array.dtype))
    return _drop(input, p, train, noise, _alpha(p) if 0 <= p < 1 else None)


@public(method=False)
def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Alpha dropout of whole channels (axis 1).

    Input: (N, C, *), floating point
    Output: the input's shape; the input itself unless `train`
    Errors: RuntimeError unless 0 ≤ p ≤ 1, or for integers and bools while training; or for less than 2 dimensions
    https://pytorch.org/docs → torch.nn.functional.feature_alpha_dropout
    """
    def noise() -> Any:
        return _for_channels(input, lambda shape: _generator(input).bernoulli(1 - p, shape, input.array.dtype))
    return _drop(input, p, train, noise, _alpha(p) if 0 <= p < 1 else None)


for _f in (relu, threshold, rrelu, selu, celu, dropout, feature_dropout, alpha_dropout, feature_alpha_dropout):
    FUNCTIONS[f"{_f.__name__}_"] = in_place_form(_f, _f.__name__)
