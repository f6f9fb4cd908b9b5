"""Causal masks as a subclass of Tensor (PyTorch: ``torch.nn.attention.bias``)."""
from __future__ import annotations

import warnings
from enum import IntEnum
from typing import Any

from ... import api as tg
from ..._tensor import torch_function
from .. import functional as F

__all__ = ["causal_upper_left", "causal_lower_right", "CausalVariant", "CausalBias"]


class CausalVariant(IntEnum):
    """The corner at which the triangle of a non-square causal mask is aligned.
    https://pytorch.org/docs → torch.nn.attention.bias.CausalVariant
    """

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(tg.Tensor):
    """A causal mask, true where a query may attend to a key: no later than itself, counted from the start or from the
    end.

    https://pytorch.org/docs → torch.nn.attention.bias.CausalBias
    """

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> Any:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        self = tg.Tensor._make_subclass(cls, _mask(variant, seq_len_q, seq_len_kv, None))
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv
        return self

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        if seq_len_q > seq_len_kv and variant is CausalVariant.LOWER_RIGHT:
            warnings.warn("Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv!",
                          stacklevel=2)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is F.scaled_dot_product_attention:
            return cls._dispatch(*args, **kwargs or {})
        return torch_function.disabled(func, types, args, kwargs)       # results computed from it are plain Tensors

    @staticmethod
    def _dispatch(query: Any, key: Any, value: Any, attn_mask: CausalBias, dropout_p: float = 0.0,
                  is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False) -> Any:
        """Attention with this bias; ValueError beside `is_causal`."""
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        from_start = attn_mask.variant is CausalVariant.UPPER_LEFT or attn_mask.seq_len_q == attn_mask.seq_len_kv
        mask = None if from_start else attn_mask._materialize(query.device)
        return F.scaled_dot_product_attention(query, key, value, mask, dropout_p, from_start, scale=scale,
                                            enable_gqa=enable_gqa)

    def _materialize(self, device: Any = None) -> Any:
        """Return the mask as a plain tensor on a device, the CPU unless named."""
        return _mask(self.variant, self.seq_len_q, self.seq_len_kv, device)

    def __repr__(self, **settings: Any) -> str:
        return self.as_subclass(tg.Tensor).__repr__(**settings)


def _mask(variant: CausalVariant, seq_len_q: int, seq_len_kv: int, device: Any) -> Any:
    offset = 0 if variant is CausalVariant.UPPER_LEFT else seq_len_kv - seq_len_q
    return tg.ones(seq_len_q, seq_len_kv, dtype=tg.bool, device="cpu" if device is None else device).tril(offset)


def causal_upper_left(*size: int) -> CausalBias:
    """The mask (L, S) in which query i sees the keys up to i.

    https://pytorch.org/docs → torch.nn.attention.bias.causal_upper_left

    >>> from tensorgrad.nn.attention.bias import causal_upper_left
    >>> causal_upper_left(2, 3)
    tensor([[ True, False, False],
            [ True,  True, False]])
    """
    return _bias(CausalVariant.UPPER_LEFT, "causal_upper_left", size)


def causal_lower_right(*size: int) -> CausalBias:
    """The mask (L, S) in which the last query sees all keys.

    https://pytorch.org/docs → torch.nn.attention.bias.causal_lower_right

    >>> from tensorgrad.nn.attention.bias import causal_lower_right
    >>> causal_lower_right(2, 3)
    tensor([[ True,  True, False],
            [ True,  True,  True]])
    """
    return _bias(CausalVariant.LOWER_RIGHT, "causal_lower_right", size)


def _bias(variant: CausalVariant, name: str, size: tuple[int, ...]) -> CausalBias:
    if len(size) != 2:
        raise AssertionError(f"{name} only supports 2D tensors")
    return CausalBias(variant, *size)
