"""Attention. A. Vaswani et al., Attention Is All You Need (2017)."""
from __future__ import annotations

from math import prod

from numpy import broadcast_shapes

from .base import Composite


class Attention(Composite):
    """softmax(Q Kᵀ · scale + mask) V.

    If causal, place i sees the places up to i alone; a place that sees nothing, its mask being all −∞, gets zeros
    """

    torch_name = "ScaledDotProductFlashAttentionForCpu"
    kernel_name = "flash_attention"
    kinds = "f"
    onnx = "definition"

    def infer(query, key, value, mask, **params):
        (*lead, rows, depth), (*_, seen, width) = query.shape, value.shape
        if key.shape[-1] != depth or key.shape[-2] != seen:
            raise ValueError(f"attention: sizes do not fit: {query.shape}, {key.shape} and {value.shape}")
        lead = broadcast_shapes(lead, key.shape[:-2], value.shape[:-2], *() if mask is None else (mask.shape[:-2],))
        return (shape := (*lead, rows, width)), query.dtype, side_by_side(shape, query, key, value)

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


def side_by_side(shape, query, key, value):
    """Return the strides of a result whose heads are side by side per token, as the kernels store it; else None."""
    inputs = query, key, value
    if (len(shape) != 4 or query.dtype.itemsize == 2
            or any(x.shape[:2] != query.shape[:2] or not prod(x.shape) for x in inputs)):
        return None
    _, heads, rows, width = shape
    step = query.dtype.itemsize
    return rows * heads * width * step, width * step, heads * width * step, step
