"""Activations by compiled code, native/activations.inc: one pass forward, one backward, saving the input or the output
alone.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .compiled import native, register
from .elementwise_compiled import mapped, pulled


def pair(op: str, numbers: Callable[..., tuple[float, ...]] = lambda: (), kernel: str = "") -> None:
    """Register an op of one input; `numbers` converts the op's parameters to the kernel's."""
    there, way_back = (getattr(native, f"{way}_{kernel or op}") for way in ("map", "pull"))

    @register(op)
    class Activation:
        @staticmethod
        def forward(x: Any, **params: Any) -> Any:
            p = numbers(**params)
            out = mapped(there, x, *p)
            return out if out is NotImplemented else (out, (x, p))

        @staticmethod
        def backward(g: Any, residual: Any, needs: Any) -> Any:
            x, p = residual
            return [pulled(way_back, g, x, *p)]


for _op in ("gelu", "gelu_tanh", "silu", "mish", "hardswish", "hardsigmoid", "log_sigmoid"):
    pair(_op)
pair("leaky_relu", lambda slope: (slope,))
pair("hardtanh", lambda low, high: (low, high))
pair("elu", lambda alpha, scale=1.0: (alpha * scale, scale, 1.0))
pair("celu", lambda alpha: (alpha, 1.0, 1 / alpha), kernel="elu")
pair("softplus", lambda beta, threshold: (beta, threshold, 1 / beta if beta else float("inf")))


# ── those that small networks call often: plain kernels, with an op for their gradient ────────────────────────────────

SMALL = 1 << 11          # elements: up to here NumPy is done as soon


def gradient(op: str) -> None:
    kernel = getattr(native, f"pull_{op}")

    @register(f"{op}_gradient")
    def pull(g: Any, y: Any) -> Any:
        if (g.size < SMALL or g.shape != y.shape or g.dtype is not y.dtype or not y.flags.c_contiguous
                or y.dtype.char not in "fd"):
            return NotImplemented
        return pulled(kernel, g, y)


for _op in ("relu", "tanh", "sigmoid"):
    gradient(_op)
