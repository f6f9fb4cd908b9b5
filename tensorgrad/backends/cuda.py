"""torch.backends.cuda: switches of CUDA's libraries, and of the ways to compute attention.

https://pytorch.org/docs → torch.backends.cuda
"""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..runtime import settings

__all__ = ["can_use_cudnn_attention", "can_use_efficient_attention", "can_use_flash_attention", "cudnn_sdp_enabled",
           "cufft_plan_cache", "enable_cudnn_sdp", "enable_flash_sdp", "enable_math_sdp", "enable_mem_efficient_sdp",
           "flash_sdp_enabled", "is_built", "is_flash_attention_available", "math_sdp_enabled", "matmul",
           "mem_efficient_sdp_enabled",
           "preferred_blas_library",
           "preferred_linalg_library", "sdp_kernel"]


class _Matmul:
    """Switches of matrix products, without effect: products have full precision."""

    allow_fp16_reduced_precision_reduction = allow_bf16_reduced_precision_reduction = True
    allow_fp16_accumulation, fp32_precision = False, "none"

    @property
    def allow_tf32(self) -> bool:
        return settings.get_float32_matmul_precision() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, allowed: bool) -> None:
        settings.set_float32_matmul_precision("high" if allowed else "highest")


class _PlanCache:
    """cuFFT's plans: none are kept here."""

    size, max_size = 0, 4096

    def clear(self) -> None:
        """Do nothing: there is no cache of plans."""

    def __getitem__(self, device: Any) -> _PlanCache:
        return self


matmul, cufft_plan_cache = _Matmul(), _PlanCache()
_attention = dict.fromkeys(("flash", "mem_efficient", "math", "cudnn"), True)
_preferred = {"linalg": "default", "blas": "default"}


def is_built() -> bool:
    """Return True if CUDA devices are supported: with CuPy and a driver."""
    from .. import cuda
    return cuda.is_available()


def _switch(name: str) -> tuple[Any, Any]:
    def is_enabled() -> bool:
        return _attention[name]

    def enable(enabled: bool) -> None:
        _attention[name] = bool(enabled)
    is_enabled.__name__, enable.__name__ = f"{name}_sdp_enabled", f"enable_{name}_sdp"
    is_enabled.__doc__, enable.__doc__ = ("What was set.",
                                          "A way to compute attention; all of them come to the same here.")
    return is_enabled, enable


flash_sdp_enabled, enable_flash_sdp = _switch("flash")
mem_efficient_sdp_enabled, enable_mem_efficient_sdp = _switch("mem_efficient")
math_sdp_enabled, enable_math_sdp = _switch("math")
cudnn_sdp_enabled, enable_cudnn_sdp = _switch("cudnn")


@contextmanager
def sdp_kernel(enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True,
               enable_cudnn: bool = True) -> Iterator[dict[str, bool]]:
    """Allow some ways to compute attention, in a `with` block; they have no effect."""
    before = dict(_attention)
    _attention.update(flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn)
    try:
        yield {}
    finally:
        _attention.update(before)


def _unavailable(*args: Any, **kwargs: Any) -> bool:
    """Return False: there are no such kernels."""
    return False


is_flash_attention_available = can_use_flash_attention = _unavailable
can_use_efficient_attention = can_use_cudnn_attention = _unavailable


def preferred_linalg_library(backend: str | None = None) -> str:
    """Set and return the library for factorizations on CUDA devices. No effect: CuPy chooses."""
    _preferred["linalg"] = backend or _preferred["linalg"]
    return _preferred["linalg"]


def preferred_blas_library(backend: str | None = None) -> str:
    """Set and return the library for matrix products on CUDA devices. No effect: CuPy chooses."""
    _preferred["blas"] = backend or _preferred["blas"]
    return _preferred["blas"]
