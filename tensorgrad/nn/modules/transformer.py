"""The transformer: stacks of attention and feed-forward blocks."""
from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ... import api as tg
from ...api._arguments import is_unknown
from .. import functional as F
from .. import init
from .._functions import native_attention
from .activation import GELU, MultiheadAttention, ReLU
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module, _global_forward_hooks, _global_forward_pre_hooks
from .normalization import LayerNorm

if TYPE_CHECKING:
    from ..._tensor import Tensor
    from ...api._kinds import Device, Dtype

__all__ = ["Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
           "TransformerEncoderLayer"]  # fmt: skip


# ── masks ─────────────────────────────────────────────────────────────────────────────────────
def _generate_square_subsequent_mask(sz, device=None, dtype=None):
    return tg.full((sz, sz), float("-inf"), dtype=dtype, device=device).triu(diagonal=1)


def _canonical_masks(padding_mask, padding_name, mask, name, dtype):
    """Return both masks as numbers to add to scores; a boolean one becomes minus infinity where it is true, else 0."""
    padding_mask = F._canonical_mask(padding_mask, padding_name, F._none_or_dtype(mask), name, dtype)
    return padding_mask, F._canonical_mask(mask, name, None, "", dtype, check_other=False)


def _is_causal(mask, is_causal, src, batch_first):
    """Return `is_causal`, or if that is None, True if `mask` equals the causal mask."""
    if is_causal is not None or mask is None or is_unknown(mask):
        return is_causal is True
    length = src.size(0) if src.dim() == 2 else src.size(1 if batch_first else 0)
    causal = _generate_square_subsequent_mask(length, mask.device, mask.dtype)
    return mask.size() == causal.size() and bool((mask == causal).all())


# ── layers ────────────────────────────────────────────────────────────────────────────────────
ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu}


def _get_activation_fn(activation):
    """Return the function of a name; programs that copy PyTorch's layers call it."""
    if activation not in ACTIVATIONS:
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return ACTIVATIONS[activation]


def _get_clones(module, N):
    """Copies of a layer."""
    return ModuleList([copy.deepcopy(module) for _ in range(N)])


class _Layer(Module):
    """Base of encoder and decoder layers: residual blocks of attention and of a network with one hidden layer."""

    __constants__ = ["norm_first"]

    def _build(self, attentions, d_model, nhead, dim_feedforward, dropout, activation, eps, batch_first, norm_first,
               bias, device, dtype):
        like = {"bias": bias, "device": device, "dtype": dtype}
        for name in attentions:
            attention = MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, **like)
            setattr(self, name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, **like)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **like)
        self.norm_first = norm_first
        blocks = range(1, len(attentions) + 2)
        for i in blocks:
            setattr(self, f"norm{i}", LayerNorm(d_model, eps=eps, **like))
        for i in blocks:
            setattr(self, f"dropout{i}", Dropout(dropout))
        if isinstance(activation, str):
            activation = _get_activation_fn(activation)
        self.activation = activation

    def _residual(self, x, norm, block, *args):
        return x + block(norm(x), *args) if self.norm_first else norm(x + block(x, *args))

    def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
        x = self.self_attn(x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask, need_weights=False,
                           is_causal=is_causal)[0]
        return self.dropout1(x)

    def _feed_forward(self, x):
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Layer):
    """Self-attention, then a network (torch.nn.TransformerEncoderLayer).

    `x = norm1(x + attention(x))`, `x = norm2(x + linear2(activation(linear1(x))))`; with norm_first,
    `x + attention(norm1(x))` and so on.

    Parameters:
        d_model: int: required, a multiple of nhead
        nhead: int: required
        dim_feedforward: int: 2048
        dropout: float: 0.1
        activation: 'relu', 'gelu' or callable: F.relu
        layer_norm_eps: float: 1e-05
        batch_first: bool: False, (N, L, d_model) for (L, N, d_model)
        norm_first: bool: False
        bias: bool: True, in all linear maps and norms
        device, dtype: None: the device and dtype of the weights
    Input: (L, N, d_model) or (L, d_model); then src_mask (L, L), src_key_padding_mask (N, L), is_causal
    Output: the input's shape
    Weights: self_attn, linear1, linear2, norm1, norm2

    >>> import tensorgrad as torch
    >>> torch.nn.TransformerEncoderLayer(d_model=8, nhead=2)(torch.ones(10, 3, 8)).shape
    torch.Size([10, 3, 8])
    """

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation: str | Callable[[Tensor], Tensor] = F.relu, layer_norm_eps: float = 1e-5,
                 batch_first: bool = False, norm_first: bool = False, bias: bool = True, device: Device | None = None,
                 dtype: Dtype | None = None) -> None:
        super().__init__()
        self._build(["self_attn"], d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
                    norm_first, bias, device, dtype)
        relu = self.activation is F.relu or isinstance(self.activation, ReLU)
        gelu = self.activation is F.gelu or isinstance(self.activation, GELU)
        self.activation_relu_or_gelu = 1 if relu else 2 if gelu else 0

    def forward(self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
                is_causal: bool = False) -> Tensor:
        src_key_padding_mask, src_mask = _canonical_masks(
            src_key_padding_mask, "src_key_padding_mask", src_mask, "src_mask", src.dtype)
        if not self.training and not self._has_hooks() and not self._obstacle(src):
            return self._inferred(src, src_mask, src_key_padding_mask)
        x = self._residual(src, self.norm1, self._sa_block, src_mask, src_key_padding_mask, is_causal)
        return self._residual(x, self.norm2, self._ff_block)

    def _ff_block(self, x):
        return self.dropout2(self._feed_forward(x))

    def _has_hooks(self):
        return bool(_global_forward_hooks or _global_forward_pre_hooks      # of all modules: `summary` has some
                    or any(module._forward_hooks or module._forward_pre_hooks for module in self.modules()))

    def _weights(self):
        """Return the weights of both blocks, in the order of `_transformer_encoder_layer_fwd`."""
        parts = (self.self_attn.out_proj, self.norm1, self.norm2, self.linear1, self.linear2)
        return (self.self_attn.in_proj_weight, self.self_attn.in_proj_bias,
                *(weight for part in parts for weight in (part.weight, part.bias)))

    def _obstacle(self, src):
        """Return why evaluation does not take the path of inference; "" if it does."""
        if not self.activation_relu_or_gelu:
            return "activation_relu_or_gelu was not True"
        if self.norm1.eps != self.norm2.eps:
            return "norm1.eps is not equal to norm2.eps"
        return native_attention.obstacle(self.self_attn, src, (src, *self._weights()))

    def _inferred(self, src, mask, padding_mask):
        mask, kind = self.self_attn.merge_masks(mask, padding_mask, src)
        weights = self._weights()
        return native_attention._transformer_encoder_layer_fwd(
            src, self.self_attn.embed_dim, self.self_attn.num_heads, *weights[:4],
            self.activation_relu_or_gelu == 2, self.norm_first, self.norm1.eps, *weights[4:], mask, kind)


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to a memory, then a network (torch.nn.TransformerDecoderLayer).

    Three residual blocks, each normalized after (or, with norm_first, before) the sum.

    Parameters:
        d_model: int: required, a multiple of nhead
        nhead: int: required
        dim_feedforward: int: 2048
        dropout: float: 0.1
        activation: 'relu', 'gelu' or callable: F.relu
        layer_norm_eps: float: 1e-05
        batch_first: bool: False, (N, T, d_model) for (T, N, d_model)
        norm_first: bool: False
        bias: bool: True, in all linear maps and norms
        device, dtype: None: the device and dtype of the weights
    Input: tgt (T, N, d_model), memory (S, N, d_model); then tgt_mask (T, T), memory_mask (T, S),
        tgt_key_padding_mask (N, T), memory_key_padding_mask (N, S), tgt_is_causal, memory_is_causal
    Output: (T, N, d_model)
    Weights: self_attn, multihead_attn, linear1, linear2, norm1, norm2, norm3

    >>> import tensorgrad as torch
    >>> torch.nn.TransformerDecoderLayer(d_model=8, nhead=2)(torch.ones(5, 3, 8), torch.ones(10, 3, 8)).shape
    torch.Size([5, 3, 8])
    """

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation: str | Callable[[Tensor], Tensor] = F.relu, layer_norm_eps: float = 1e-5,
                 batch_first: bool = False, norm_first: bool = False, bias: bool = True, device: Device | None = None,
                 dtype: Dtype | None = None) -> None:
        super().__init__()
        self._build(["self_attn", "multihead_attn"], d_model, nhead, dim_feedforward, dropout, activation,
                    layer_norm_eps, batch_first, norm_first, bias, device, dtype)

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
                tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
                tgt_is_causal: bool = False, memory_is_causal: bool = False) -> Tensor:
        x = self._residual(tgt, self.norm1, self._sa_block, tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        x = self._residual(x, self.norm2, self._mha_block, memory, memory_mask, memory_key_padding_mask,
                           memory_is_causal)
        return self._residual(x, self.norm3, self._ff_block)

    def _mha_block(self, x, mem, attn_mask, key_padding_mask, is_causal=False):
        x = self.multihead_attn(x, mem, mem, attn_mask=attn_mask, key_padding_mask=key_padding_mask,
                                need_weights=False, is_causal=is_causal)[0]
        return self.dropout2(x)

    def _ff_block(self, x):
        return self.dropout3(self._feed_forward(x))


# ── stacks ────────────────────────────────────────────────────────────────────────────────────
class _Stack(Module):
    """Copies of a layer, and a norm at the end, if any."""

    __constants__ = ["norm"]

    def __init__(self, layer: Any, num_layers: Any, norm: Any) -> None:
        super().__init__()
        self.layers = _get_clones(layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def _batch_first(self):
        return self.layers[0].self_attn.batch_first


class TransformerEncoder(_Stack):
    """A stack of encoder layers (torch.nn.TransformerEncoder).

    Parameters:
        encoder_layer: TransformerEncoderLayer: required, copied, weights and all
        num_layers: int: required
        norm: Module: None, applied at the end
        enable_nested_tensor: bool: True, let evaluation without gradients set padding to zero
        mask_check: bool: True, but only where padding is at the end
    Input: (L, N, d_model) or as the layers take it; then mask (L, L), src_key_padding_mask (N, L), is_causal
    Output: the input's shape
    Weights: layers.i as in the layer, norm

    >>> import tensorgrad as torch
    >>> layer = torch.nn.TransformerEncoderLayer(d_model=8, nhead=2, batch_first=True)
    >>> torch.nn.TransformerEncoder(layer, num_layers=2)(torch.ones(3, 10, 8)).shape
    torch.Size([3, 10, 8])
    """

    def __init__(self, encoder_layer: Any, num_layers: int, norm: Module | None = None,
                 enable_nested_tensor: bool = True, mask_check: bool = True) -> None:
        super().__init__(encoder_layer, num_layers, norm)
        self.enable_nested_tensor = self.use_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check
        if enable_nested_tensor and (obstacle := _obstacle(encoder_layer)):
            warnings.warn("enable_nested_tensor is True, but self.use_nested_tensor is False because "
                          f"encoder_layer{obstacle}", stacklevel=2)
            self.use_nested_tensor = False

    def forward(self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
                is_causal: bool | None = None) -> Tensor:
        src_key_padding_mask, mask = _canonical_masks(
            src_key_padding_mask, "src_key_padding_mask", mask, "mask", src.dtype)
        is_causal = _is_causal(mask, is_causal, src, self._batch_first())
        output = src
        for layer in self.layers:
            output = layer(output, src_mask=mask, is_causal=is_causal, src_key_padding_mask=src_key_padding_mask)
        if (skipped := self._skipped(src, mask, src_key_padding_mask)) is not None:
            output = output.masked_fill(skipped.unsqueeze(-1), 0.0)
        return output if self.norm is None else self.norm(output)

    def _skipped(self, src, mask, padding_mask):
        """Return the mask of padding whose result is zero, as PyTorch drops it with nested tensors; None without any.

        PyTorch does so if padding is at the ends of rows; no value is read here, so that graphs can hold the function.
        """
        layer = self.layers[0]
        if not self.use_nested_tensor or layer.training or src.dim() != 3 or padding_mask is None or mask is not None:
            return None
        if tg.is_grad_enabled() and (src.requires_grad or any(p.requires_grad for p in layer.parameters())):
            return None
        padded = padding_mask.bool()
        return padded & ~(padded[:, :-1] & ~padded[:, 1:]).any() if self.mask_check else padded


def _obstacle(layer):
    """Return the reason why PyTorch would not run this encoder layer on nested tensors, or None."""
    if not isinstance(layer, TransformerEncoderLayer):
        return " was not TransformerEncoderLayer"
    attention = layer.self_attn
    reasons = {
        ".norm_first was True": layer.norm_first,
        ".self_attn.batch_first was not True(use batch_first for better inference performance)":
            not attention.batch_first,
        ".self_attn._qkv_same_embed_dim was not True": not attention._qkv_same_embed_dim,
        ".self_attn was passed bias=False": attention.in_proj_bias is None,
        ".activation_relu_or_gelu was not True": not layer.activation_relu_or_gelu,
        ".norm1.eps was not equal to encoder_layer.norm2.eps": layer.norm1.eps != layer.norm2.eps,
        ".self_attn.num_heads is odd": attention.num_heads % 2 == 1,
    }  # fmt: skip
    return next((reason for reason, holds in reasons.items() if holds), None)


class TransformerDecoder(_Stack):
    """A stack of decoder layers (torch.nn.TransformerDecoder).

    Parameters:
        decoder_layer: TransformerDecoderLayer: required, copied, weights and all
        num_layers: int: required
        norm: Module: None, applied at the end
    Input: tgt (T, N, d_model), memory (S, N, d_model); then the masks of the layer; tgt_is_causal None to look
    Output: (T, N, d_model)
    Weights: layers.i as in the layer, norm

    >>> import tensorgrad as torch
    >>> layer = torch.nn.TransformerDecoderLayer(d_model=8, nhead=2)
    >>> torch.nn.TransformerDecoder(layer, num_layers=2)(torch.ones(5, 3, 8), torch.ones(10, 3, 8)).shape
    torch.Size([5, 3, 8])
    """

    def __init__(self, decoder_layer: Any, num_layers: int, norm: Module | None = None) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
                tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
                tgt_is_causal: bool | None = None, memory_is_causal: bool = False) -> Tensor:
        tgt_is_causal = _is_causal(tgt_mask, tgt_is_causal, tgt, self._batch_first())
        output = tgt
        for layer in self.layers:
            output = layer(
                output, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
                memory_is_causal=memory_is_causal,
            )  # fmt: skip
        return output if self.norm is None else self.norm(output)


class Transformer(Module):
    """Encoder and decoder (torch.nn.Transformer; Vaswani et al., 2017).

    Matrices are drawn by Xavier's rule.

    Parameters:
        d_model: int: 512, a multiple of nhead
        nhead: int: 8
        num_encoder_layers: int: 6
        num_decoder_layers: int: 6
        dim_feedforward: int: 2048
        dropout: float: 0.1
        activation: 'relu', 'gelu' or callable: F.relu
        custom_encoder, custom_decoder: Module: None, to take their places
        layer_norm_eps: float: 1e-05
        batch_first: bool: False, (N, L, d_model) for (L, N, d_model)
        norm_first: bool: False
        bias: bool: True, in all linear maps and norms
        device, dtype: None: the device and dtype of the weights
    Input: src (S, N, d_model), tgt (T, N, d_model); then src_mask, tgt_mask, memory_mask, src_key_padding_mask,
        tgt_key_padding_mask, memory_key_padding_mask, src_is_causal, tgt_is_causal, memory_is_causal
    Output: (T, N, d_model)
    Weights: encoder and decoder

    >>> import tensorgrad as torch
    >>> model = torch.nn.Transformer(8, 2, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=16, batch_first=True)
    >>> model(torch.ones(3, 10, 8), torch.ones(3, 5, 8)).shape
    torch.Size([3, 5, 8])
    >>> model.generate_square_subsequent_mask(2)
    tensor([[0., -inf],
            [0., 0.]])
    """  # noqa: E501

    def __init__(self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
                 dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation: str | Callable[[Tensor], Tensor] = F.relu, custom_encoder: Any | None = None,
                 custom_decoder: Any | None = None, layer_norm_eps: float = 1e-5, batch_first: bool = False,
                 norm_first: bool = False, bias: bool = True, device: Device | None = None,
                 dtype: Dtype | None = None) -> None:
        super().__init__()
        layer = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias,
                 device, dtype)  # fmt: skip
        norm = {"eps": layer_norm_eps, "bias": bias, "device": device, "dtype": dtype}
        if custom_encoder is None:
            encoder_layer = TransformerEncoderLayer(*layer)
            custom_encoder = TransformerEncoder(encoder_layer, num_encoder_layers, LayerNorm(d_model, **norm))
        self.encoder = custom_encoder
        if custom_decoder is None:
            decoder_layer = TransformerDecoderLayer(*layer)
            custom_decoder = TransformerDecoder(decoder_layer, num_decoder_layers, LayerNorm(d_model, **norm))
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def _reset_parameters(self):
        for parameter in self.parameters():
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)

    def forward(self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None, tgt_mask: Tensor | None = None,
                memory_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
                tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
                src_is_causal: bool | None = None, tgt_is_causal: bool | None = None,
                memory_is_causal: bool = False) -> Tensor:
        batch_axis = 0 if self.batch_first else 1
        if src.dim() == 3 and src.size(batch_axis) != tgt.size(batch_axis):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Device | None = None, dtype: Dtype | None = None) -> Tensor:
        """A mask that hides the future: minus infinity above the diagonal, zero elsewhere."""
        return _generate_square_subsequent_mask(sz, device, dtype)
