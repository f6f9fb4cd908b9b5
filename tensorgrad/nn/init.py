"""Initialize parameters. All functions work in place, record no gradients, and return the tensor.

Random numbers are drawn in PyTorch's order, so the same seed gives the same parameters. See PyTorch's `torch.nn.init`.

>>> import tensorgrad as torch
>>> torch.nn.init.constant_(torch.empty(2), 0.5)
tensor([0.5000, 0.5000])
"""
from __future__ import annotations

import functools
import math
import threading
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .. import api as tg
from .._tensor.torch_function import asked, overriding, state

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import ParamSpec

    from .._tensor import Tensor
    from ..generator import Generator

    P = ParamSpec("P")

__all__ = [
    "calculate_gain", "uniform_", "normal_", "trunc_normal_", "constant_", "ones_", "zeros_", "eye_", "dirac_",
    "xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_", "orthogonal_", "sparse_",
    "uniform", "normal", "constant", "eye", "dirac", "xavier_uniform", "xavier_normal", "kaiming_uniform",
    "kaiming_normal", "orthogonal", "sparse", "zeros", "ones", "uniform_fan_in"]


class _Mode(threading.local):
    is_skipping = False


_mode = _Mode()


@contextmanager
def skipped() -> Any:
    """A context manager in which the functions of this file do nothing, and draw no random numbers."""
    before, _mode.is_skipping = _mode.is_skipping, True
    try:
        yield
    finally:
        _mode.is_skipping = before


def _initializer(fill: Callable[P, Any]) -> Callable[P, Tensor]:
    """Run a function that fills its first argument without recording, and return that argument."""
    @functools.wraps(fill)
    def initialize(tensor, *args, **kwargs):
        if not _mode.is_skipping:
            with tg.no_grad():
                fill(tensor, *args, **kwargs)
        return tensor
    return initialize


def _overridable(function: Callable[P, Tensor]) -> Callable[P, Tensor]:
    """Let classes and modes override an initializer, as PyTorch does for four of them."""
    @functools.wraps(function)
    def ask(tensor, *args, **kwargs):
        found = overriding((tensor,)) if state.classes else []
        return (asked(ask, found, (tensor, *args), kwargs) if found or state.modes
                else function(tensor, *args, **kwargs))
    return ask


# ── simple fillings ───────────────────────────────────────────────────────────────────────────
@_overridable
@_initializer
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with draws from U(a, b)."""
    tensor.uniform_(a, b, generator=generator)


@_overridable
@_initializer
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with draws from N(mean, std²)."""
    tensor.normal_(mean, std, generator=generator)


@_overridable
@_initializer
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with one value."""
    tensor.fill_(val)


@_initializer
def ones_(tensor: Tensor) -> Tensor:
    """Fill with 1."""
    tensor.fill_(1.0)


@_initializer
def zeros_(tensor: Tensor) -> Tensor:
    """Fill with 0."""
    tensor.zero_()


@_initializer
def eye_(tensor: Tensor) -> Tensor:
    """Make a matrix the identity; ValueError unless there are 2 dimensions.

    >>> import tensorgrad as torch
    >>> torch.nn.init.eye_(torch.empty(2, 3)).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    _check_matrix(tensor)
    tensor.zero_().diagonal().fill_(1)


@_initializer
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Make the weight of a convolution one that returns its input: 1 at the kernel's centre, output i from input i."""
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    channels_out = tensor.shape[0]
    if channels_out % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    tensor.zero_()
    centre = tensor[(..., *(size // 2 for size in tensor.shape[2:]))]
    for group in centre.split(channels_out // groups):       # views of the tensor
        group.diagonal().fill_(1)


@_initializer
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Fill a matrix with draws from N(0, std²), then set the fraction `sparsity` of each column to 0, at random."""
    _check_matrix(tensor)
    rows, columns = tensor.shape
    count = math.ceil(sparsity * rows)
    tensor.normal_(0, std, generator=generator)
    chosen = [tg.randperm(rows)[:count] for _ in range(columns)]
    if chosen:
        tensor.scatter_(0, tg.stack(chosen, 1).to(tensor.device), 0)


def _check_matrix(tensor):
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")


# ── scaled to the width of a layer ────────────────────────────────────────────────────────────
def calculate_gain(nonlinearity: Any, param: int | float | None = None) -> float:
    """The factor that keeps the scale of activations through a nonlinearity; `param` is leaky_relu's slope.

    >>> import tensorgrad as torch
    >>> torch.nn.init.calculate_gain("tanh")
    1.6666666666666667
    """
    if nonlinearity in _LINEAR:
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


_LINEAR = ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
           "sigmoid")


@_initializer
def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with draws from U(-a, a), a = gain · √(6 / (fan_in + fan_out))."""
    bound = math.sqrt(3.0) * _xavier_std(tensor, gain)
    tensor.uniform_(-bound, bound, generator=generator)


@_initializer
def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with draws from N(0, std²), std = gain · √(2 / (fan_in + fan_out))."""
    tensor.normal_(0.0, _xavier_std(tensor, gain), generator=generator)


@_overridable
@_initializer
def kaiming_uniform_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
                     generator: Generator | None = None) -> Tensor:
    """Fill with draws from U(-b, b), b = gain · √(3 / fan); `a` is leaky_relu's slope."""
    if not _warn_if_empty(tensor):
        bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
        tensor.uniform_(-bound, bound, generator=generator)


@_initializer
def kaiming_normal_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
                    generator: Generator | None = None) -> Tensor:
    """Fill with draws from N(0, std²), std = gain / √fan; `a` is leaky_relu's slope."""
    if not _warn_if_empty(tensor):
        tensor.normal_(0, _kaiming_std(tensor, a, mode, nonlinearity), generator=generator)


@_initializer
def uniform_fan_in(tensor: Tensor, fan_in: Any = None) -> None:
    """Fill with draws from U(-√(1/fan_in), √(1/fan_in)).

    Unless given, fan_in is the number of inputs of one output: the length of a vector, the second size of a matrix
    (out, in), in · height · width of a convolution's weight. ValueError for other numbers of dimensions.

    >>> import tensorgrad as torch
    >>> bool((torch.nn.init.uniform_fan_in(torch.empty(8, 4)).abs() <= 0.5).all())
    True
    """
    if fan_in is None:
        if tensor.ndim not in (1, 2, 4):
            raise ValueError(f"Fan in can be computed for tensors with 1, 2 or 4 dimensions only, got {tensor.ndim}")
        fan_in = math.prod(tensor.shape[1:]) if tensor.ndim > 1 else len(tensor)
    bound = math.sqrt(1 / fan_in)
    tensor.uniform_(-bound, bound)


def _calculate_fan_in_and_fan_out(tensor):
    """Return (number of inputs of an output, number of outputs of an input) of a layer."""
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    channels_out, channels_in, *kernel = tensor.shape
    return channels_in * math.prod(kernel), channels_out * math.prod(kernel)


def _calculate_correct_fan(tensor, mode):
    modes = ["fan_in", "fan_out"]
    if mode.lower() not in modes:
        raise ValueError(f"Mode {mode.lower()} not supported, please use one of {modes}")
    return _calculate_fan_in_and_fan_out(tensor)[modes.index(mode.lower())]


def _xavier_std(tensor, gain):
    return gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor)))


def _kaiming_std(tensor, a, mode, nonlinearity):
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def _warn_if_empty(tensor):
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=4)
        return True
    return False


# ── constrained draws ─────────────────────────────────────────────────────────────────────────
@_initializer
def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Make a matrix (all but the first dimension flattened) `gain` times one with orthonormal rows or columns."""
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return
    rows = tensor.shape[0]
    columns = tensor.numel() // rows
    draws = tensor.new_empty((rows, columns)).normal_(0, 1, generator=generator)
    q, r = tg.linalg.qr(draws if rows >= columns else draws.t())
    q = q * tg.diagonal(r).sign()                   # without this, q would not be uniform over all such matrices
    tensor.copy_((q if rows >= columns else q.t()).reshape(tensor.shape))
    tensor.mul_(gain)


@_initializer
def trunc_normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0,
                  generator: Generator | None = None) -> Tensor:
    """Fill with draws from N(mean, std²), truncated to [a, b] by redrawing."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn("mean is more than 2 std from [a, b] in nn.init.trunc_normal_. "
                      "The distribution of values may be incorrect.", stacklevel=3)
    if tensor.is_meta:              # there are no values to redraw
        tensor.normal_(mean, std, generator=generator)
    elif _normal_cdf((b - mean) / std) - _normal_cdf((a - mean) / std) > 0.3:
        _redraw_normal(tensor, mean, std, a, b, generator)
    else:
        _reject_uniform(tensor, mean, std, a, b, generator)


def _normal_cdf(x):
    return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0


def _redraw_normal(tensor, mean, std, a, b, generator):
    """Draw from the normal distribution; while any value is outside, redraw all and replace those."""
    low, high = tensor.new_tensor(a).item(), tensor.new_tensor(b).item()         # rounded to the dtype
    tensor.normal_(mean, std, generator=generator)
    while (outside := (tensor < low) | (tensor > high)).any():
        tensor.copy_(tg.where(outside, tg.empty_like(tensor).normal_(mean, std, generator=generator), tensor))


def _reject_uniform(tensor, mean, std, a, b, generator):
    """Draw from U(a, b) by rejection sampling, for narrow or far intervals."""
    mode = max(a, min(mean, b))
    log_peak = -0.5 * ((mode - mean) / std) ** 2
    draw, chance = tg.empty_like(tensor), tg.empty_like(tensor)
    pending = tg.ones_like(tensor, dtype=tg.bool)
    while pending.any():
        draw.uniform_(a, b, generator=generator)
        tensor.copy_(tg.where(pending, draw, tensor))
        log_density = draw.sub_(mean).div_(std).pow_(2).mul_(-0.5).sub_(log_peak)
        pending &= chance.uniform_(generator=generator).log_().gt(log_density)


# ── other names ───────────────────────────────────────────────────────────────────────────────
def zeros(tensor: Tensor) -> Any:
    """Fill with 0: `zeros_` under a shorter name."""
    return zeros_(tensor)


def ones(tensor: Tensor) -> Any:
    """Fill with 1: `ones_` under a shorter name."""
    return ones_(tensor)


def _deprecated(function):
    """Return the deprecated function without underscore, which warns."""
    old, new = function.__name__[:-1], function.__name__

    def renamed(*args, **kwargs):
        warnings.warn(f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new}`.", FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    renamed.__name__ = renamed.__qualname__ = old
    renamed.__doc__ = f"Deprecated: use `{new}`."
    return renamed


uniform, normal, constant, eye, dirac = map(_deprecated, (uniform_, normal_, constant_, eye_, dirac_))
xavier_uniform, xavier_normal = map(_deprecated, (xavier_uniform_, xavier_normal_))
kaiming_uniform, kaiming_normal = map(_deprecated, (kaiming_uniform_, kaiming_normal_))
orthogonal, sparse = map(_deprecated, (orthogonal_, sparse_))

# PyTorch's names of functions that fill without recording, which copies of its initializers call.
_no_grad_uniform_, _no_grad_normal_, _no_grad_fill_ = uniform_, normal_, constant_
_no_grad_trunc_normal_, _no_grad_zero_ = trunc_normal_, zeros_
