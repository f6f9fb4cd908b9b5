"""Attention.

A. Vaswani et al., Attention Is All You Need (2017).
https://pytorch.org/docs/stable/nn.functional.html#attention-mechanisms
"""
from __future__ import annotations

import math
from math import prod
from typing import Any

from ... import api as tg
from ..._tensor import Tensor
from ...advice import misfit
from ...api._arguments import anywhere
from ...api.linear import linear
from ...core.dispatch import xp
from ...messages.warn_once import warn
from .activation import softmax
from .dropout import dropout
from .padding import pad

__all__ = ["multi_head_attention_forward", "scaled_dot_product_attention", "_canonical_mask", "_none_or_dtype"]

NOT_VIABLE = ("No viable backend for scaled_dot_product_attention was found. This is likely due to turning off both "
              "the math kernel and the fused kernels.")
viable = True          # False: `nn.attention.sdpa_kernel` allows no kernel that can run


def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
                                 dropout_p: float = 0.0, is_causal: bool = False, *, scale: float | None = None,
                                 enable_gqa: bool = False) -> Tensor:
    """softmax(Q Kᵀ · scale + mask) V.

    A boolean mask is true where attention is allowed, another is added; `is_causal` allows no later key. scale is 1/√E
    unless given. With `enable_gqa`, each head of key and value (axis −3) serves several of the query.

    Input: query (…, L, E), key (…, S, E), value (…, S, Eᵥ), of one floating point dtype; attn_mask, bool or floating
        point, that broadcasts to (…, L, S)
    Output: (…, L, Eᵥ), the query's dtype
    Errors: RuntimeError for less than 2 dimensions, dtypes that differ, another dtype of the mask, or a mask beside
        `is_causal`, which stacks (N, heads, L, E) of equal widths take without dropout if the mask needs no gradient
    https://pytorch.org/docs → torch.nn.functional.scaled_dot_product_attention

    >>> import tensorgrad as torch
    >>> q = torch.ones(1, 2, 4)
    >>> torch.nn.functional.scaled_dot_product_attention(q, q, q).shape
    torch.Size([1, 2, 4])
    """
    for t in (query, key, value):
        if t.array.ndim < 2:
            raise RuntimeError("Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: "
                               f"{query.dim()} key.dim: {key.dim()} and value.dim: {value.dim()} instead.")
    if not query.dtype == key.dtype == value.dtype:
        raise RuntimeError(f"Expected query, key, and value to have the same dtype, but got query.dtype: {_c(query)} "
                           f"key.dtype: {_c(key)} and value.dtype: {_c(value)} instead.")
    if attn_mask is not None and attn_mask.dtype not in (tg.bool, tg.float32, query.dtype):
        raise RuntimeError("Expected attn_mask dtype to be bool or float or to match query dtype, but got "
                           f"attn_mask.dtype: {_c(attn_mask)} and  query.dtype: {_c(query)} instead.")
    if is_causal and attn_mask is not None:
        if not _takes_both(query, key, value, attn_mask, dropout_p, enable_gqa):
            raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when "
                               "is_causal=True")
        allowed, is_causal = _causal(query, key), False
        attn_mask = (attn_mask & allowed if attn_mask.dtype is tg.bool
                     else attn_mask.masked_fill(~allowed, float("-inf")))
    if not viable:
        raise RuntimeError(NOT_VIABLE)
    if query.array.shape[-1] != key.array.shape[-1] or key.array.shape[-2] != value.array.shape[-2]:
        _check_widths(query, key, value)
    if enable_gqa:
        groups = query.size(-3) // key.size(-3)
        key, value = key.repeat_interleave(groups, -3), value.repeat_interleave(query.size(-3) // value.size(-3), -3)
    kind, wide = query.dtype, tg.promote_types(query.dtype, tg.float32)
    if kind is not wide:        # compute 16-bit dtypes in a wider one, and round once, at the end
        q, k, v, mask = (t if t is None or t.dtype is tg.bool else t.to(wide) for t in (query, key, value, attn_mask))
        return scaled_dot_product_attention(q, k, v, mask, dropout_p, is_causal, scale=scale).to(kind)
    if not dropout_p:
        return _attended(query, key, value, attn_mask, is_causal, scale)
    if is_causal:
        attn_mask = _causal(query, key)
    mask = attn_mask if attn_mask is None or attn_mask.dtype is tg.bool else attn_mask.to(wide)
    return _attend(query, key, value, mask, dropout_p, scale)[0]


def _takes_both(query: Any, key: Any, value: Any, mask: Any, dropout_p: float, grouped: bool) -> bool:
    """Return True where PyTorch's fused kernel runs, which takes a mask beside `is_causal`."""
    q, k, v = (t.array for t in (query, key, value))
    return (q.ndim == k.ndim == v.ndim == 4 and not dropout_p and not mask.requires_grad and mask.array.ndim in (2, 4)
            and q.shape[0] == k.shape[0] == v.shape[0] and q.shape[-1] == v.shape[-1]
            and (grouped or q.shape[1] == k.shape[1] == v.shape[1])
            and all(t.stride(-1) == 1 for t in (query, key, value)))


def _check_widths(query: Any, key: Any, value: Any) -> None:
    """Raise PyTorch's error for keys of another width than the queries, or another number of values than keys."""
    heads = prod(query.array.shape[:-2])
    wanted, got = ((query.size(-1), key.size(-1)) if query.size(-1) != key.size(-1) else
                   (key.size(-2), value.size(-2)))
    raise misfit(f"Expected size for first two dimensions of batch2 tensor to be: [{heads}, {wanted}] but got: "
                 f"[{heads}, {got}].")


def _causal(query: Any, key: Any) -> Any:
    return tg.ones(query.size(-2), key.size(-2), dtype=tg.bool, device=query.device).tril()


def _attended(query: Any, key: Any, value: Any, mask: Any, causal: bool, scale: float | None = None) -> Any:
    """Return attention · V without dropout and without keeping the attention weights."""
    if mask is not None:
        mask = (tg.zeros_like(mask, dtype=query.dtype).masked_fill(~mask, float("-inf")) if mask.dtype is tg.bool
                else mask.to(query.dtype))
    return xp.attention(query, key, value, mask, causal=causal, scale=_scale(query) if scale is None else scale)


def _scale(query: Any) -> float:
    width = query.array.shape[-1]
    return 1 / math.sqrt(width) if width else 1.0


def _c(t: Any) -> str:
    return {"float32": "float", "float64": "double", "float16": "c10::Half",
            "bfloat16": "c10::BFloat16"}.get(t.dtype.name, t.dtype.name)


def _attend(query: Any, key: Any, value: Any, mask: Any, dropout_p: float, scale: float | None = None) -> tuple[Any,
                                                                                                                Any]:
    """Return (attention · V, attention)."""
    scores = (query * (_scale(query) if scale is None else scale)) @ key.transpose(-2, -1)
    if mask is not None:
        if mask.dtype is tg.bool:
            attention = _masked_softmax(scores, mask)
        else:
            attention = softmax(scores + mask, -1)
    else:
        attention = softmax(scores, -1)
    if dropout_p:
        attention = dropout(attention, dropout_p)
    return attention @ value, attention


def _masked_softmax(scores: Any, allowed: Any) -> Any:
    """Softmax over the allowed positions; a row without any gives zeros."""
    masked = scores.masked_fill(~allowed, float("-inf"))
    some = allowed.any(-1, keepdim=True)
    if not anywhere(~some):
        return softmax(masked, -1)
    return softmax(masked.masked_fill(~some, 0.0), -1).masked_fill(~some, 0.0)


def _none_or_dtype(tensor: Any) -> Any:
    if tensor is None:
        return None
    if isinstance(tensor, tg.Tensor):
        return tensor.dtype
    raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")


def _canonical_mask(mask: Any, mask_name: str, other_type: Any, other_name: str, target_type: Any,
                    check_other: bool = True) -> Any:
    """Return a mask as numbers to add to scores: −∞ where a boolean mask is true."""
    if mask is None:
        return None
    if mask.dtype is not tg.bool and not mask.dtype.is_floating_point:
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype is not other_type:
        warn(f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both "
             "instead.", again=True)
    if mask.dtype is tg.bool:
        return tg.zeros_like(mask, dtype=target_type).masked_fill_(mask, float("-inf"))
    return mask


def _check_shapes(query: Any, key: Any, value: Any, key_padding_mask: Any, attn_mask: Any, num_heads: int) -> bool:
    """Return True if there is a batch axis. AssertionError if the shapes do not fit together."""
    if query.dim() not in (2, 3):
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D query "
                             f"tensor")
    kind = "batched (3-D)" if query.dim() == 3 else "unbatched (2-D)"
    if key.dim() != query.dim() or value.dim() != query.dim():
        raise AssertionError(f"For {kind} `query`, expected `key` and `value` to be {query.dim()}-D but found "
                             f"{key.dim()}-D and {value.dim()}-D tensors "
                             "respectively")
    if key_padding_mask is not None and key_padding_mask.dim() != query.dim() - 1:
        raise AssertionError(f"For {kind} `query`, expected `key_padding_mask` to be `None` or {query.dim() - 1}-D but "
                             f"found {key_padding_mask.dim()}-D "
                             "tensor instead")
    if attn_mask is not None:
        if attn_mask.dim() not in (2, 3):
            raise AssertionError(f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found "
                                 f"{attn_mask.dim()}-D tensor instead")
        if (query.dim() == 2 and attn_mask.dim() == 3 and tuple(attn_mask.shape)
                != (num_heads, query.shape[0], key.shape[0])):
            raise AssertionError(f"Expected `attn_mask` shape to be {(num_heads, query.shape[0], key.shape[0])} but "
                                 f"got {attn_mask.shape}")
    return query.dim() == 3


def _projected(query: Any, key: Any, value: Any, weights: Any, biases: Any) -> Any:
    """Project query, key and value; with a single product if they are one tensor and share one matrix."""
    packed, separate = weights
    if packed is not None:
        width = query.size(-1)
        if query is key and key is value:
            out = linear(query, packed, biases)
            return out.split(width, -1)
        w, b = packed.split(width, 0), (None,) * 3 if biases is None else biases.split(width, 0)
        if key is value:
            kv = linear(key, packed[width:], None if biases is None else biases[width:])
            return (linear(query, w[0], b[0]), *kv.split(width, -1))
        return tuple(linear(t, w[i], b[i]) for i, t in enumerate((query, key, value)))
    b = (None,) * 3 if biases is None else biases.split(query.size(-1), 0)
    return tuple(linear(t, separate[i], b[i]) for i, t in enumerate((query, key, value)))


def _in_projection_packed(q: Any, k: Any, v: Any, w: Any, b: Any = None) -> Any:
    """`_projected` with one matrix for all three, under PyTorch's name, which copies of its attention call."""
    return list(_projected(q, k, v, (w, None), b))


def _in_projection(q: Any, k: Any, v: Any, w_q: Any, w_k: Any, w_v: Any, b_q: Any = None, b_k: Any = None,
                   b_v: Any = None) -> Any:
    """Project q, k and v by a matrix each, under PyTorch's name."""
    return linear(q, w_q, b_q), linear(k, w_k, b_k), linear(v, w_v, b_v)


def _attended_itself(x: Any, weight: Any, bias: Any, out_weight: Any, out_bias: Any, heads: int, causal: bool,
                     need_weights: bool) -> tuple[Any, Any]:
    """Self-attention of x (L, N, E), with one matrix for query, key and value; also returns the weights (N, heads,
    L, L) if `need_weights`.

    Heads are views of the product, whose rows follow the memory order of x. The result is contiguous as (L, N, E) in
    any case, as in PyTorch: a later dropout draws its numbers in memory order."""
    length, batch, _ = x.shape
    batch_first = not x.is_contiguous() and (bias is None or bias.dtype is weight.dtype)
    packed = linear(x.transpose(0, 1) if batch_first else x, weight, bias)
    width = packed.shape[2] // 3
    packed = packed.reshape(*packed.shape[:2], 3, heads, width // heads)
    query, key, value = packed.permute(*((2, 0, 3, 1, 4) if batch_first else (2, 1, 3, 0, 4))).unbind(0)
    out = linear(_attended(query, key, value, None, causal).permute(2, 0, 1, 3).reshape(length, batch, width),
                 out_weight, out_bias)
    return out, softmax((query * _scale(query)) @ key.transpose(-2, -1), -1) if need_weights else None


def _in_batch(query: Any, key: Any, value: Any, padding: Any) -> tuple[Any, Any, Any, Any]:
    """Return the tensors of one example as a batch of one; tensors that are one object stay one."""
    same_key, same_value = query is key, key is value
    query = query.unsqueeze(1)
    key = query if same_key else key.unsqueeze(1)
    value = key if same_value else value.unsqueeze(1)
    return query, key, value, None if padding is None else padding.unsqueeze(0)


def _head_width(width: int, expected: int, heads: int) -> int:
    if width != expected:
        raise AssertionError(f"was expecting embedding dimension of {expected}, but got {width}")
    if width // heads * heads != width:
        raise AssertionError(f"embed_dim {width} not divisible by num_heads {heads}")
    return width // heads


def _check_sources(key: Any, value: Any, separate: tuple[Any, Any, Any] | None) -> None:
    """Check the shapes of keys and values; `separate` has the weights of separate projections, all of which must be
    given.
    """
    if separate is None:
        if key.shape != value.shape:
            raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
        return
    if tuple(key.shape[:2]) != tuple(value.shape[:2]):
        raise AssertionError(f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}")
    for weight, name in zip(separate, ("q_proj_weight", "k_proj_weight", "v_proj_weight")):
        if weight is None:
            raise AssertionError(f"use_separate_proj_weight is True but {name} is None")


def _mask_of_heads(mask: Any, length: int, sources: int, heads: int) -> Any:
    """Return the mask with a first axis for heads; None for None."""
    if mask is None:
        return None
    expected = (length, sources) if mask.dim() == 2 else (heads, length, sources)
    if tuple(mask.shape) != expected:
        raise RuntimeError(f"The shape of the {mask.dim()}D attn_mask is {mask.shape}, but should be {expected}.")
    return mask.unsqueeze(0) if mask.dim() == 2 else mask


def _padding_of_heads(mask: Any, batch: int, sources: int, heads: int) -> Any:
    """Return a mask (batch, sources) of padded keys for all heads: (batch · heads, 1, sources)."""
    for axis, expected in enumerate((batch, sources)):
        if mask.shape[axis] != expected:
            raise AssertionError(f"Expected key_padded_mask.shape[{axis}] to be {expected}, but got {mask.shape[axis]}")
    return mask.reshape(batch, 1, 1, sources).expand(-1, heads, -1, -1).reshape(batch * heads, 1, sources)


def _one_longer(mask: Any) -> Any:
    """Return the mask with a further key that may be attended to; None for None."""
    return None if mask is None else pad(mask, (0, 1))


def _check_hint(is_causal: bool, mask: Any) -> None:
    if is_causal and mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
                           "`generate_square_subsequent_mask` to create this mask.")


def _check_biases(bias_k: Any, bias_v: Any, static_k: Any, static_v: Any) -> None:
    if (bias_k is None) != (bias_v is None):
        raise AssertionError("bias_k and bias_v must be given together")
    if bias_k is not None and (static_k is not None or static_v is not None):
        raise AssertionError(f"bias cannot be added to static {'value' if static_k is None else 'key'}.")


def _attended_heads(q: Any, k: Any, v: Any, mask: Any, causal: bool, heads: int) -> Any:
    """Attention of (batch · heads, length, width), without weights: (length, batch, heads, width)."""
    parts = [t.reshape(len(q) // heads, heads, *t.shape[1:]) for t in (q, k, v)]
    mask = None if mask is None else mask.reshape(-1, heads if len(mask) > 1 else 1, *mask.shape[1:])
    return _attended(*parts, mask, causal).permute(2, 0, 1, 3)


def _by_head(projected: Any, static: Any, name: str, heads: int, width: int) -> Any:
    """Return (heads, length, width) of a projection (length, batch, …), or the static tensor of this shape instead."""
    if static is None:
        return projected.reshape(projected.shape[0], heads, width).transpose(0, 1)
    for axis, expected in ((0, heads), (2, width)):
        if static.shape[axis] != expected:
            raise AssertionError(f"expecting {name}.size({axis}) of {expected}, but got {static.shape[axis]}")
    return static


def multi_head_attention_forward(query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int,
                                 in_proj_weight: Tensor | None, in_proj_bias: Tensor | None, bias_k: Tensor | None,
                                 bias_v: Tensor | None, add_zero_attn: bool, dropout_p: float, out_proj_weight: Tensor,
                                 out_proj_bias: Tensor | None, training: bool = True,
                                 key_padding_mask: Tensor | None = None, need_weights: bool = True,
                                 attn_mask: Tensor | None = None, use_separate_proj_weight: bool = False,
                                 q_proj_weight: Tensor | None = None, k_proj_weight: Tensor | None = None,
                                 v_proj_weight: Tensor | None = None, static_k: Tensor | None = None,
                                 static_v: Tensor | None = None, average_attn_weights: bool = True,
                                 is_causal: bool = False) -> tuple[Tensor, Tensor | None]:
    """Multi-head attention. https://pytorch.org/docs → torch.nn.functional.multi_head_attention_forward

    Output: (L, N, E) for query (L, N, E), key and value (S, N, E), and the weights (N, L, S) if they are needed
    Errors: AssertionError for other shapes or widths; RuntimeError for an attn_mask of another size"""
    batched = _check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value, key_padding_mask = _in_batch(query, key, value, key_padding_mask)
    length, batch, width = query.shape
    sources = key.shape[0]
    key_padding_mask = _canonical_mask(key_padding_mask, "key_padding_mask", _none_or_dtype(attn_mask), "attn_mask",
                                       query.dtype)
    _check_hint(is_causal, attn_mask)
    causal = is_causal and key_padding_mask is None and not need_weights      # then is_causal replaces the mask
    attn_mask = None if causal else _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, check_other=False)
    head = _head_width(width, embed_dim_to_check, num_heads)
    separate = (q_proj_weight, k_proj_weight, v_proj_weight)
    _check_sources(key, value, separate if use_separate_proj_weight else None)
    dropout_p = dropout_p if training else 0.0
    if (query is key is value and attn_mask is bias_k is bias_v is static_k is static_v is key_padding_mask is None
            and not (dropout_p or use_separate_proj_weight or add_zero_attn)):
        out, weights = _attended_itself(query, in_proj_weight, in_proj_bias, out_proj_weight, out_proj_bias, num_heads,
                                        causal, need_weights)
        weights = weights.mean(1) if need_weights and average_attn_weights else weights
        return (out, weights) if batched else (out.squeeze(1), weights.squeeze(0) if need_weights else None)
    q, k, v = _projected(query, key, value, (None if use_separate_proj_weight else in_proj_weight, separate),
                         in_proj_bias)
    attn_mask = _mask_of_heads(attn_mask, length, sources, batch * num_heads)
    _check_biases(bias_k, bias_v, static_k, static_v)
    if bias_k is not None:
        k, v = tg.cat([k, bias_k.repeat(1, batch, 1)]), tg.cat([v, bias_v.repeat(1, batch, 1)])
        attn_mask, key_padding_mask = _one_longer(attn_mask), _one_longer(key_padding_mask)
    q = _by_head(q, None, "", batch * num_heads, head)
    k, v = (_by_head(k, static_k, "static_k", batch * num_heads, head),
            _by_head(v, static_v, "static_v", batch * num_heads, head))
    if add_zero_attn:
        zeros = k.new_zeros(batch * num_heads, 1, head)
        k, v = tg.cat([k, zeros], 1), tg.cat([v, zeros], 1)
        attn_mask, key_padding_mask = _one_longer(attn_mask), _one_longer(key_padding_mask)
    sources = k.shape[1]
    if key_padding_mask is not None:
        padding = _padding_of_heads(key_padding_mask, batch, sources, num_heads)
        attn_mask = padding if attn_mask is None else attn_mask + padding
    if need_weights or dropout_p:
        out, weights = _attend(q, k, v, _causal(q, k) if causal else attn_mask, dropout_p)
        out = out.transpose(0, 1).reshape(length * batch, width)
    else:
        out = _attended_heads(q, k, v, attn_mask, causal, num_heads).reshape(length * batch, width)
    out = linear(out, out_proj_weight, out_proj_bias).reshape(length, batch, len(out_proj_weight))
    weights = (_weights_of_heads(weights.reshape(batch, num_heads, length, sources), average_attn_weights, batched)
               if need_weights else None)
    return out if batched else out.squeeze(1), weights


def _weights_of_heads(weights: Any, average: bool, batched: bool) -> Any:
    """The weights (N, heads, L, S) as they are returned: averaged over the heads, without the batch."""
    weights = weights.mean(1) if average else weights
    return weights if batched else weights.squeeze(0)
