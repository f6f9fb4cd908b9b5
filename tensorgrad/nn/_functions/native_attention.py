"""Self-attention for inference, which attention modules and encoder layers use when nothing is recorded.

Results differ from those of training in three cases: `is_causal` is ignored, a mask of numbers counts where it is not
zero, and a query without keys gives NaN. Errors are worded differently.
"""
from __future__ import annotations

import math
from importlib import import_module
from typing import Any

from ... import api as tg
from ..._tensor import Tensor
from ..._tensor.torch_function import namespaced, overriding
from ...api.linear import linear
from ...core.dispatch import xp
from .activation import gelu, relu, softmax
from .normalization import layer_norm

__all__ = ["_native_multi_head_attention", "_transform_bias_rescale_qkv", "_transformer_encoder_layer_fwd"]

PACKAGE = __name__.partition(".")[0]
enabled = True          # torch.backends.mha.set_fastpath_enabled


def obstacle(attention: Any, query: Any, tensors: Any) -> str:
    """Return why a module cannot take this path for a query; "" if it can. `tensors` lists all tensors that it reads.
    """
    from ...amp.autocast_mode import is_autocast_enabled
    if not enabled:
        return "torch.backends.mha.get_fastpath_enabled() was not True"
    if query.dim() != 3:
        return f"input not batched; expected query.dim() of 3 but got {query.dim()}"
    if attention.in_proj_weight is None:
        return "in_proj_weight was None"
    if attention.in_proj_bias is None:
        return "self_attn was passed bias=False"
    if attention.num_heads % 2:
        return "self.num_heads is not even"
    if not attention.batch_first:
        return "batch_first was not True"
    if attention.bias_k is not None or attention.bias_v is not None:
        return "self.bias_k was not None"
    if attention.add_zero_attn:
        return "add_zero_attn was enabled"
    if is_autocast_enabled():
        return "autocast is enabled"
    others = [t for t in tensors if t is None or not _has_components(t)]
    if overriding(others) or not all(isinstance(t, Tensor) for t in tensors if t is not None):
        return "some Tensor argument has_torch_function"
    if any(t._storage.hollow for t in tensors if t is not None):
        return "some Tensor argument's device is neither one of cpu, cuda or privateuseone"
    if tg.is_grad_enabled() and any(t.requires_grad for t in tensors if t is not None):
        return ("grad is enabled and at least one of query or the input/output projection weights or biases "
                "requires_grad")
    return ""


def _has_components(x: Any) -> bool:
    """Return True for a nested tensor of the layout strided, the kind that these functions take."""
    return bool(x.is_nested and x.layout is tg.strided)


def _native_multi_head_attention(query: Tensor, key: Tensor, value: Tensor, embed_dim: int, num_head: int,
                                 qkv_weight: Tensor, qkv_bias: Tensor, proj_weight: Tensor, proj_bias: Tensor,
                                 mask: Tensor | None = None, need_weights: bool = True,
                                 average_attn_weights: bool = True,
                                 mask_type: int | None = None) -> tuple[Tensor, Tensor | None]:
    """Multi-head attention of (batch, length, width), without dropout.

    Input: query, key, value (N, L, E), or nested with N sequences of unequal lengths and without a mask; the stacked
        projections (3E, E) and (3E), the last one (E, E) and (E); mask, true or nonzero where attention is forbidden:
        (L, L) for mask_type 0, (N, L) for 1, (N, heads, L, L) for 2
    Output: (N, L, E), and the weights (N, L, L), or (N, heads, L, L) if they are not averaged, or None
    Errors: RuntimeError for other shapes

    >>> import tensorgrad as torch
    >>> x = torch.ones(1, 2, 4)
    >>> torch._native_multi_head_attention(x, x, x, 4, 2, torch.ones(12, 4), torch.zeros(12), torch.eye(4),
    ...                                    torch.zeros(4))[1]
    tensor([[[0.5000, 0.5000],
             [0.5000, 0.5000]]])
    """
    if query.is_nested:
        return _of_nested((query, key, value), mask, embed_dim, num_head, qkv_weight, qkv_bias, proj_weight, proj_bias,
                          need_weights=need_weights, average_attn_weights=average_attn_weights)
    _check(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias)
    batch, length, width = query.shape
    if query is key is value:
        packed = linear(query, qkv_weight)
    else:
        packed = tg.cat([linear(t, w) for t, w in zip((query, key, value), qkv_weight.split(width))], -1)
    q, k, v = _transform_bias_rescale_qkv(packed, qkv_bias, num_head)
    if mask is None and not need_weights:
        heads, weights = xp.attention(q, k, v, None, causal=False, scale=1.0), None
    else:
        scores = q @ k.transpose(-2, -1)
        if mask is not None:
            scores = scores.masked_fill(_of_heads(mask, mask_type, scores.shape), float("-inf"))
        weights = softmax(scores, -1)
        heads = weights @ v
    out = linear(heads.transpose(1, 2).reshape(batch, length, width), proj_weight, proj_bias)
    if not need_weights:
        return out, None
    return out, weights.mean(1) if average_attn_weights else weights


def _of_nested(inputs: tuple[Any, Any, Any], mask: Any, *args: Any, **options: Any) -> tuple[Any, Any]:
    """Attend inside of each sequence of a nested tensor: pad, forbid attention to the padding, and cut it off."""
    if mask is not None:
        raise RuntimeError("NestedTensor with mask is not supported yet")
    padded = {id(t): _padded(t) for t in inputs}
    query, key, value = (padded[id(t)][0] for t in inputs)
    lengths, beyond = padded[id(inputs[0])][1], padded[id(inputs[1])][2]
    attend: Any = _native_multi_head_attention
    out, weights = attend(query, key, value, *args, beyond, mask_type=1, **options)
    return _cut(out, lengths), weights


def _padded(x: Any) -> tuple[Any, list[int], Any]:
    """Return a nested tensor as a padded batch, with the lengths of its components, and the mask of the padding."""
    batch, lengths = x.to_padded_tensor(0.0), [len(row) for row in x.unbind()]
    beyond = tg.arange(batch.shape[1]) >= tg.tensor(lengths).unsqueeze(1)
    return batch, lengths, beyond.to(batch.device)


def _cut(batch: Any, lengths: list[int]) -> Any:
    """Return a padded batch as a nested tensor."""
    rows = [row[:n] for row, n in zip(batch, lengths, strict=True)]
    return import_module(f"{PACKAGE}.nested").as_nested_tensor(rows)


def _check(query: Any, key: Any, value: Any, embed_dim: int, heads: int, weight: Any, bias: Any) -> None:
    """Raise RuntimeError for shapes that do not fit together."""
    if query.dim() != 3:
        raise RuntimeError(f"expected 3-D `query`, got {query.dim()}-D tensor")
    width = query.shape[2]
    if embed_dim != width:
        raise RuntimeError(f"passed-in embed_dim {embed_dim} didn't match last dim of query {width}")
    for name, other in (("key", key), ("value", value)):
        if other.dim() != 3:
            raise RuntimeError(f"expected 3-D `{name}`, got {other.dim()}-D tensor")
    if not query.shape == key.shape == value.shape:
        raise RuntimeError("expected `query`/`key`/`value` shapes to match")
    if weight.dim() != 2:
        raise RuntimeError(f"expected 2-D `qkv_weight`, got {weight.dim()}-D tensor")
    if weight.shape[0] != 3 * width:
        raise RuntimeError("expected `qkv_weight` first dim to be 3x embed_dim")
    if weight.shape[1] != width:
        raise RuntimeError("expected `qkv_weight` second dim to be embed_Dim")
    if bias.dim() != 1:
        raise RuntimeError(f"expected 1-D `qkv_bias`, got {bias.dim()}-D tensor")
    if bias.shape[0] != 3 * width:
        raise RuntimeError("expected `qkv_bias` first dim and first dim of query to be equal")
    if width % heads:
        raise RuntimeError("`embed_dim` must divide evenly by `num_heads`")


def _of_heads(mask: Any, kind: int | None, shape: Any) -> Any:
    """Return the mask, true where attention is forbidden, in a form that broadcasts to (N, heads, L, L)."""
    batch, heads, length, sources = shape
    mask = mask if mask.dtype is tg.bool else mask != 0
    if kind is None:
        raise RuntimeError("Mask Type should be defined")
    if mask.dim() != 2 or kind == 2:
        if tuple(mask.shape) != tuple(shape):
            raise RuntimeError("For mask_type == 2 mask shape should match input shape")
        return mask
    if kind not in (0, 1):
        raise RuntimeError("Mask Type should be 0 (src_mask) or 1 (src_key_padding_mask), or 2 (default_mask)")
    if kind == 0 and tuple(mask.shape) != (length, sources):
        raise RuntimeError("For mask_type == 0 mask shape should be (L, L)")
    if kind == 1 and tuple(mask.shape) != (batch, sources):
        raise RuntimeError("For mask_type == 1 mask shape should be (B, L)")
    return mask if kind == 0 else mask.reshape(batch, 1, 1, sources)


def _transform_bias_rescale_qkv(qkv: Tensor, qkv_bias: Tensor, num_heads: int) -> tuple[Tensor, Tensor, Tensor]:
    """Add the bias to (N, L, 3E) and cut it into query, scaled by 1/√(E/heads), key and value (N, heads, L, E/heads).

    >>> import tensorgrad as torch
    >>> [part.shape for part in torch._transform_bias_rescale_qkv(torch.ones(1, 5, 12), torch.ones(12), 2)]
    [torch.Size([1, 2, 5, 2]), torch.Size([1, 2, 5, 2]), torch.Size([1, 2, 5, 2])]
    """
    batch, length, packed = qkv.shape[0], qkv.shape[1], qkv.size(2)
    if packed % 3 or packed // 3 % num_heads:
        raise RuntimeError("Expected D % num_head == 0 to be true, but got false.  (Could this error message be "
                           "improved?  If so, please report an enhancement request to PyTorch.)")
    parts = (qkv + qkv_bias).reshape(batch, length, 3, num_heads, -1).permute(2, 0, 3, 1, 4)
    q, k, v = parts.unbind(0)
    return q * (1 / math.sqrt(q.shape[-1] or 1)), k, v


def _transformer_encoder_layer_fwd(src: Tensor, embed_dim: int, num_heads: int, qkv_weight: Tensor, qkv_bias: Tensor,
                                   proj_weight: Tensor, proj_bias: Tensor, use_gelu: bool, norm_first: bool, eps: float,
                                   norm_weight_1: Tensor, norm_bias_1: Tensor, norm_weight_2: Tensor,
                                   norm_bias_2: Tensor, ffn_weight_1: Tensor, ffn_bias_1: Tensor, ffn_weight_2: Tensor,
                                   ffn_bias_2: Tensor, mask: Tensor | None = None,
                                   mask_type: int | None = None) -> Tensor:
    """An encoder layer, from its weights: attention and the hidden layer, each in a residual block with a norm."""
    if src.is_nested:
        if mask is not None:
            raise RuntimeError("NestedTensor with mask is not supported yet")
        padded, lengths, beyond = _padded(src)
        layer: Any = _transformer_encoder_layer_fwd
        out = layer(padded, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, use_gelu, norm_first,
                    eps, norm_weight_1, norm_bias_1, norm_weight_2, norm_bias_2, ffn_weight_1, ffn_bias_1,
                    ffn_weight_2, ffn_bias_2, beyond, 1)
        return _cut(out, lengths)

    def attended(x: Any) -> Any:
        return _native_multi_head_attention(x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias,
                                            mask, False, True, mask_type)[0]

    def hidden(x: Any) -> Any:
        return linear((gelu if use_gelu else relu)(linear(x, ffn_weight_1, ffn_bias_1)), ffn_weight_2, ffn_bias_2)

    x = src
    for block, weight, bias in ((attended, norm_weight_1, norm_bias_1), (hidden, norm_weight_2, norm_bias_2)):
        if norm_first:
            x = x + block(layer_norm(x, [embed_dim], weight, bias, eps))
        else:
            x = layer_norm(x + block(x), [embed_dim], weight, bias, eps)
    return x


globals().update(namespaced({_name: globals()[_name] for _name in __all__}, __name__.partition(".")[0]))
