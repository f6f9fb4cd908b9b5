"""Select the kernels of attention, and biases for it (PyTorch: ``torch.nn.attention``)."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from enum import Enum
from typing import Any

from .._functions import attention as _attention

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(Enum):
    """The kernels of `scaled_dot_product_attention`; those that can run are all the same here.
    https://pytorch.org/docs → torch.nn.attention.SDPBackend
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __int__(self) -> int:
        return self.value

    __index__ = __int__


_LISTED = (SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH,
           SDPBackend.OVERRIDEABLE)
_order = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH, SDPBackend.CUDNN_ATTENTION,
          SDPBackend.OVERRIDEABLE]
_enabled = set(_LISTED)


def _cur_sdpa_kernel_backends(with_priority: bool = False) -> list[SDPBackend]:
    return [backend for backend in (_order if with_priority else _LISTED) if backend in _enabled]


def _allow(backends: list[SDPBackend], set_priority: bool) -> None:
    _enabled.clear()
    _enabled.update(backends)
    if set_priority:
        _order[:] = [*backends, *(backend for backend in _order if backend not in backends)]
    # the kernels of PyTorch's CPU
    _attention.viable = not _enabled.isdisjoint((SDPBackend.MATH, SDPBackend.FLASH_ATTENTION))


@contextlib.contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[dict[str, Any]]:
    """A context manager in which attention may only use these backends.

    https://pytorch.org/docs → torch.nn.attention.sdpa_kernel

    >>> import tensorgrad as torch
    >>> from tensorgrad.nn.attention import SDPBackend, sdpa_kernel
    >>> q = torch.ones(1, 2, 4)
    >>> with sdpa_kernel(SDPBackend.MATH):
    ...     torch.nn.functional.scaled_dot_product_attention(q, q, q).shape
    torch.Size([1, 2, 4])
    """
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError("Backend must be an instance of SDPBackend or a list of SDPBackend instances, got "
                             f"{type(backends).__name__}")
    before = _cur_sdpa_kernel_backends(set_priority)
    _allow(list(dict.fromkeys([backends] if isinstance(backends, SDPBackend) else backends)), set_priority)
    try:
        yield {}
    finally:
        _allow(before, set_priority)


def _fused_sdp_choice(query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
                      is_causal: bool = False, *, scale: float | None = None, enable_gqa: bool = False) -> int:
    """Return the number of the backend that PyTorch's CPU would choose; here it makes no difference.

    RuntimeError if `sdpa_kernel` allows none that can run.
    """
    tensors = (query, key, value)
    fits = (all(t.dim() == 4 and t.dtype.is_floating_point and t.shape[2] and t.stride(-1) == 1 for t in tensors)
            and len({t.shape[0] for t in tensors}) == len({t.shape[3] for t in tensors}) == 1
            and (enable_gqa or len({t.shape[1] for t in tensors}) == 1)
            and not dropout_p and not (attn_mask is not None and attn_mask.requires_grad))
    for backend in ([SDPBackend.FLASH_ATTENTION] if fits else []) + [SDPBackend.MATH]:
        if backend in _enabled:
            return backend.value
    raise RuntimeError(_attention.NOT_VIABLE)
