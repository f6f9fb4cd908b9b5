"""Causal masks as a subclass of Tensor (PyTorch: ``torch.nn.attention.bias``)."""
from __future__ import annotations

import warnings
from enum import IntEnum
from typing import Any

from ... import api as tg
from ..._tensor import torch_function

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

    __torch_function__ = torch_function.disabled            # results computed from it are plain Tensors

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> Any:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        offset = 0 if variant is CausalVariant.UPPER_LEFT else seq_len_kv - seq_len_q
        self = tg.Tensor._make_subclass(cls, tg.ones(seq_len_q, seq_len_kv, dtype=tg.bool).tril(offset))
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv
        return self

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        if seq_len_q > seq_len_kv and variant is CausalVariant.LOWER_RIGHT:
            warnings.warn("Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv!",
                          stacklevel=2)

    def __repr__(self, **settings: Any) -> str:
        return self.as_subclass(tg.Tensor).__repr__(**settings)


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
