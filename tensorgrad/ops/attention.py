"""Attention. A. Vaswani et al., Attention Is All You Need (2017)."""
from __future__ import annotations

from .base import Composite


class Attention(Composite):
    """softmax(Q Kᵀ · scale + mask) V. If causal, place i sees the places up to i alone; a place that sees nothing, its mask being all −∞, gets zeros"""

    torch_name = "ScaledDotProductFlashAttentionForCpu"
    kernel_name = "flash_attention"
    kinds = "f"

    def forward(xp, query, key, value, mask, *, causal, scale):
        scores = xp.matmul(query * scale, xp.swapaxes(key, -1, -2))
        if causal:
            seen = xp.expand_dims(xp.arange(query.shape[-2]), 1) >= xp.arange(key.shape[-2])
            scores = xp.where(seen, scores, float("-inf"))
        if mask is None:
            return xp.matmul(xp.softmax(scores, axis=-1), value)
        scores = scores + mask
        some = xp.max(scores, axis=-1, keepdims=True) != float("-inf")
        weights = xp.softmax(xp.where(some, scores, 0.0), axis=-1)
        return xp.matmul(xp.where(some, weights, 0.0), value)
