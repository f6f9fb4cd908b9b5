"""Windows: weights for the pieces of a signal.

https://pytorch.org/docs/stable/torch.html#spectral-ops and https://pytorch.org/docs/stable/signal.html

Windows of the root package are periodic by default, for a signal that repeats; windows of `torch.signal.windows` are
symmetric.
"""
from __future__ import annotations

import re
from collections.abc import Callable
from math import pi, sqrt
from typing import Any

from .. import dtype as dtypes
from .._tensor import Tensor
from ..core.dispatch import SCALAR_TYPES, xp
from ._arguments import C_NAMES, in_dtype
from ._kinds import Device, Dtype, Layout
from ._register import public
from .creation import as_leaf, empty, ones
from .sequences import arange, linspace

WINDOWS: dict[str, Callable[..., Any]] = {}     # the names of `torch.signal.windows`


# ── windows of the root package ───────────────────────────────────────────────────────────────────────────────────────


def _root_window(shape: Any, length: Any, periodic: bool, name: str, dtype: Any, layout: Any, device: Any,
                 requires_grad: bool) -> Any:
    """`shape(steps, last)` of the places 0, 1, … `last`, of which a periodic window leaves the last out."""
    if not hasattr(length, "__index__") or isinstance(length, bool):
        raise TypeError(f"{name}(): argument 'window_length' (position 1) must be int, not {type(length).__name__}")
    target = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    _check_options(name, target, dtype, layout, device, requires_grad)
    if length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={length}")
    if length < 2:
        return ones(length, dtype=target, device=device, requires_grad=requires_grad)
    if target.is_complex:
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{SCALAR_TYPES[target.name]}'")
    last = length if periodic else length - 1
    steps = arange(last + 1, dtype=dtypes.float64 if target is dtypes.float64 else dtypes.float32, device=device)
    out = in_dtype(shape(steps, last), target)
    return as_leaf(xp.clone(out.narrow(0, 0, length)) if periodic else out, requires_grad)


def _check_options(name: str, target: Any, dtype: Any, layout: Any, device: Any, requires_grad: bool) -> None:
    def quoted(layout_name: str) -> str:
        shown = f"{C_NAMES[target.name]}{' (default)' if dtype is None else ''}"
        return (f"TensorOptions(dtype={shown}, device={'cpu' if device is None else device}, layout={layout_name}, "
                f"requires_grad={str(requires_grad).lower()} (default), pinned_memory=false, memory_format=(nullopt))")
    if layout is not None and str(layout) != "torch.strided":
        raise RuntimeError(f"{name} is not implemented for sparse types, got: {quoted('Sparse')}")
    if target.category < dtypes.FLOATING:
        raise RuntimeError(f"{name} expects floating point dtypes, got: {quoted('Strided (default)')}")


def _cosines(steps: Any, last: int, *weights: float) -> Any:
    """a₀ − a₁·cos t + a₂·cos 2t − … for t = 2π·step / last"""
    angle, out = xp.multiply(steps, 2 * pi / last), weights[0]
    for k, weight in enumerate(weights[1:], 1):
        wave = xp.multiply(xp.cos(angle if k == 1 else xp.multiply(angle, k)), -weight if k % 2 else weight)
        out = xp.add(wave, out)
    return out


@public(method=False)
def hamming_window(window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *,
                   dtype: Dtype | None = None, layout: Layout | None = None, device: Device | None = None,
                   pin_memory: bool | None = False, requires_grad: bool | None = False) -> Tensor:
    """alpha − beta·cos 2πn/N, where N is the length, less one unless periodic.

    Output: (window_length), floating point; 1 for a length of 1
    Errors: RuntimeError for a negative length or a dtype of integers; TypeError for a length that is no integer
    https://pytorch.org/docs → torch.hamming_window

    >>> import tensorgrad as torch
    >>> torch.hamming_window(4)
    tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """
    return _root_window(lambda n, last: _cosines(n, last, alpha, beta), window_length, periodic, "hamming_window",
                        dtype, layout, device,
                        requires_grad)


@public(method=False)
def hann_window(window_length: int, periodic: bool = True, *, dtype: Dtype | None = None, layout: Layout | None = None,
                device: Device | None = None, pin_memory: bool | None = False,
                requires_grad: bool | None = False) -> Tensor:
    """(1 − cos 2πn/N) / 2, where N is the length, less one unless periodic.

    Output: (window_length), floating point; 1 for a length of 1
    Errors: RuntimeError for a negative length or a dtype of integers; TypeError for a length that is no integer
    https://pytorch.org/docs → torch.hann_window

    >>> import tensorgrad as torch
    >>> torch.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _root_window(lambda n, last: _cosines(n, last, 0.5, 0.5), window_length, periodic, "hann_window", dtype,
                        layout, device, requires_grad)


@public(method=False)
def blackman_window(window_length: int, periodic: bool = True, *, dtype: Dtype | None = None,
                    layout: Layout | None = None, device: Device | None = None, pin_memory: bool | None = False,
                    requires_grad: bool | None = False) -> Tensor:
    """0.42 − 0.5·cos 2πn/N + 0.08·cos 4πn/N.

    Output: (window_length), floating point; 1 for a length of 1
    Errors: RuntimeError for a negative length or a dtype of integers; TypeError for a length that is no integer
    https://pytorch.org/docs → torch.blackman_window

    >>> import tensorgrad as torch
    >>> torch.blackman_window(3, periodic=False).round(decimals=4)
    tensor([-0.,  1., -0.])
    """
    return _root_window(lambda n, last: _cosines(n, last, 0.42, 0.5, 0.08), window_length, periodic, "blackman_window",
                        dtype, layout, device,
                        requires_grad)


def _triangle(steps: Any, last: int) -> Any:
    return xp.subtract(1, xp.absolute(xp.subtract(xp.multiply(steps, 2 / last), 1)))


@public(method=False)
def bartlett_window(window_length: int, periodic: bool = True, *, dtype: Dtype | None = None,
                    layout: Layout | None = None, device: Device | None = None, pin_memory: bool | None = False,
                    requires_grad: bool | None = False) -> Tensor:
    """1 − |2n/N − 1|: a triangle.

    Output: (window_length), floating point; 1 for a length of 1
    Errors: RuntimeError for a negative length or a dtype of integers; TypeError for a length that is no integer
    https://pytorch.org/docs → torch.bartlett_window

    >>> import tensorgrad as torch
    >>> torch.bartlett_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _root_window(_triangle, window_length, periodic, "bartlett_window", dtype, layout, device, requires_grad)


@public(method=False)
def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: Dtype | None = None,
                  layout: Layout | None = None, device: Device | None = None, pin_memory: bool | None = False,
                  requires_grad: bool | None = False) -> Tensor:
    """I₀(β·√(1 − (2n/N − 1)²)) / I₀(β), for the modified Bessel function I₀.

    Output: (window_length), floating point; 1 for a length of 1
    Errors: RuntimeError for a negative length or a dtype of integers; TypeError for a length that is no integer
    https://pytorch.org/docs → torch.kaiser_window

    >>> import tensorgrad as torch
    >>> torch.kaiser_window(4, periodic=False, beta=0.)
    tensor([1., 1., 1., 1.])
    """
    def shape(steps: Any, last: int) -> Any:
        return _kaiser(xp.subtract(xp.multiply(steps, 2 / last), 1), beta)
    return _root_window(shape, window_length, periodic, "kaiser_window", dtype, layout, device, requires_grad)


def _kaiser(ratio: Any, beta: float) -> Any:
    """I₀(β·√(1 − r²)) / I₀(β)"""
    edge = xp.sqrt(xp.maximum(xp.subtract(1, xp.square(ratio)), 0.0))
    return xp.divide(xp.i0(xp.multiply(edge, beta)), xp.i0(ratio.new_tensor(float(beta))))


# ── windows of torch.signal.windows ───────────────────────────────────────────────────────────────────────────────────


def window(function: Any) -> Any:
    """Attach a name of `torch.signal.windows`."""
    WINDOWS[function.__name__] = function
    return function


def _ready(name: str, M: Any, dtype: Any, layout: Any, device: Any, requires_grad: bool) -> tuple[Any, Any]:
    """Return the dtype, and the window itself if it has at most one element."""
    target = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not None and str(layout) != "torch.strided":
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if target not in (dtypes.float32, dtypes.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {target}")
    if M == 0:
        return target, empty((0,), dtype=target, device=device, requires_grad=requires_grad)
    return target, ones((1,), dtype=target, device=device, requires_grad=requires_grad) if M == 1 else None


@window
def general_cosine(M: int, *, a: Any, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
                   requires_grad: bool = False) -> Any:
    """Σ (−1)ᵏ·aₖ·cos(2πkn / N), where N is M − 1, or M unless symmetric.

    Output: (M), float32 or float64
    Errors: ValueError for a negative M, another dtype or layout, or no coefficients; TypeError for coefficients that
        are no sequence
    https://pytorch.org/docs → torch.signal.windows.general_cosine

    >>> import tensorgrad as torch
    >>> torch.signal.windows.general_cosine(3, a=[0.5, 0.5])
    tensor([0., 1., 0.])
    """
    target, done = _ready("general_cosine", M, dtype, layout, device, requires_grad)
    if done is not None:
        return done
    if not hasattr(a, "__iter__"):
        raise TypeError("Coefficients must be a list/tuple")
    weights = list(a)
    if not weights:
        raise ValueError("Coefficients cannot be empty")
    angle = linspace(0, 2 * pi * (M - 1) / (M - 1 if sym else M), M, dtype=target, device=device)
    out = xp.multiply(xp.ones_like(angle), weights[0])
    for k, weight in enumerate(weights[1:], 1):
        out = xp.add(out, xp.multiply(xp.cos(xp.multiply(angle, k)), -weight if k % 2 else weight))
    return as_leaf(out, requires_grad)


@window
def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, dtype: Any = None, layout: Any = None,
                    device: Any = None,
                    requires_grad: bool = False) -> Any:
    """alpha − (1 − alpha)·cos 2πn/N.

    Output: (M), float32 or float64
    Errors: ValueError for a negative M, another dtype or layout
    https://pytorch.org/docs → torch.signal.windows.general_hamming

    >>> import tensorgrad as torch
    >>> torch.signal.windows.general_hamming(3, alpha=0.75)
    tensor([0.5000, 1.0000, 0.5000])
    """
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, layout=layout, device=device,
                          requires_grad=requires_grad)


COSINES = """
hamming   0.54 0.46                                0.54 − 0.46·cos 2πn/N
hann      0.5 0.5                                  (1 − cos 2πn/N) / 2
blackman  0.42 0.5 0.08                            0.42 − 0.5·cos 2πn/N + 0.08·cos 4πn/N
nuttall   0.3635819 0.4891775 0.1365995 0.0106411  Nuttall's sum of four cosines, whose side lobes are least
"""


def _cosine_window(name: str, weights: list[float], maths: str) -> None:
    def function(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
                 requires_grad: bool = False) -> Any:
        return general_cosine(M, a=weights, sym=sym, dtype=dtype, layout=layout, device=device,
                              requires_grad=requires_grad)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = (f"{maths}.\n\nOutput: (M), float32 or float64\nErrors: ValueError for a negative M, another "
                        f"dtype or layout\nhttps://pytorch.org/docs → torch.signal.windows.{name}\n\n>>> import "
                        f"tensorgrad as torch\n>>> torch.signal.windows.{name}(3)[1].round(decimals=4)\ntensor(1.)\n")
    globals()[name] = window(function)


for _row in COSINES.strip().splitlines():
    _name, _weights, _maths = re.split(r"\s{2,}", _row)
    _cosine_window(_name, list(map(float, _weights.split())), _maths)


@window
def bartlett(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
             requires_grad: bool = False) -> Any:
    """1 − |2n/N − 1|: a triangle.

    Output: (M), float32 or float64
    Errors: ValueError for a negative M, another dtype or layout
    https://pytorch.org/docs → torch.signal.windows.bartlett

    >>> import tensorgrad as torch
    >>> torch.signal.windows.bartlett(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    target, done = _ready("bartlett", M, dtype, layout, device, requires_grad)
    if done is not None:
        return done
    place = linspace(-1, -1 + 2 * (M - 1) / (M - 1 if sym else M), M, dtype=target, device=device)
    return as_leaf(xp.subtract(1, xp.absolute(place)), requires_grad)


@window
def cosine(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
           requires_grad: bool = False) -> Any:
    """sin π(n + ½)/(N + 1): the half of a wave.

    Output: (M), float32 or float64
    Errors: ValueError for a negative M, another dtype or layout
    https://pytorch.org/docs → torch.signal.windows.cosine

    >>> import tensorgrad as torch
    >>> torch.signal.windows.cosine(3)
    tensor([0.5000, 1.0000, 0.5000])
    """
    target, done = _ready("cosine", M, dtype, layout, device, requires_grad)
    if done is not None:
        return done
    step = pi / (M if sym else M + 1)
    return as_leaf(xp.sin(linspace(0.5 * step, (M - 0.5) * step, M, dtype=target, device=device)), requires_grad)


@window
def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, dtype: Any = None,
                layout: Any = None, device: Any = None,
                requires_grad: bool = False) -> Any:
    """exp(−|n − center| / tau).

    Output: (M), float32 or float64
    Errors: ValueError for a negative M, another dtype or layout, tau ≤ 0, or a center for a symmetric window
    https://pytorch.org/docs → torch.signal.windows.exponential

    >>> import tensorgrad as torch
    >>> torch.signal.windows.exponential(3)
    tensor([0.3679, 1.0000, 0.3679])
    """
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    target, done = _ready("exponential", M, dtype, layout, device, requires_grad)
    if done is not None:
        return done
    middle = (M - 1 if sym else M) / 2 if center is None else center
    away = linspace(-middle / tau, (M - 1 - middle) / tau, M, dtype=target, device=device)
    return as_leaf(xp.exp(xp.negative(xp.absolute(away))), requires_grad)


@window
def gaussian(M: int, *, std: float = 1.0, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
             requires_grad: bool = False) -> Any:
    """exp(−((n − N/2) / std)² / 2).

    Output: (M), float32 or float64
    Errors: ValueError for a negative M, another dtype or layout, or std ≤ 0
    https://pytorch.org/docs → torch.signal.windows.gaussian

    >>> import tensorgrad as torch
    >>> torch.signal.windows.gaussian(3)
    tensor([0.6065, 1.0000, 0.6065])
    """
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    target, done = _ready("gaussian", M, dtype, layout, device, requires_grad)
    if done is not None:
        return done
    middle, scale = (M - 1 if sym else M) / 2, std * sqrt(2)
    away = linspace(-middle / scale, (M - 1 - middle) / scale, M, dtype=target, device=device)
    return as_leaf(xp.exp(xp.negative(xp.square(away))), requires_grad)


@window
def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
           requires_grad: bool = False) -> Any:
    """I₀(β·√(1 − (2n/N − 1)²)) / I₀(β), for the modified Bessel function I₀.

    Output: (M), float32 or float64
    Errors: ValueError for a negative M, another dtype or layout, or beta < 0
    https://pytorch.org/docs → torch.signal.windows.kaiser

    >>> import tensorgrad as torch
    >>> torch.signal.windows.kaiser(3, beta=0.)
    tensor([1., 1., 1.])
    """
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    target, done = _ready("kaiser", M, dtype, layout, device, requires_grad)
    if done is not None:
        return done
    ratio = linspace(-1, -1 + 2 * (M - 1) / (M - 1 if sym else M), M, dtype=target, device=device)
    return as_leaf(_kaiser(ratio, beta), requires_grad)
