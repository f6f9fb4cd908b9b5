"""Attention, and the blocks of a transformer, which infer the width of their input."""
from __future__ import annotations

from typing import Any

from .. import nn
from .native import Native

__all__ = ["MultiheadAttention", "TransformerDecoderLayer", "TransformerEncoderLayer"]


class _Attentive(Native, abstract=True):
    """Base of attention layers, batch first by default; otherwise the sizes of the first two axes are not checked."""

    def _begin(self, arguments: dict[str, Any]) -> None:
        super()._begin({"batch_first": True, **arguments})
        self.__dict__["_free_axes"] = (0,) if self._native_arguments["batch_first"] else (0, 1)

    def _sizes(self, query: Any) -> dict[str, Any]:
        return {self._inferred[0]: self._size(query, -1, self._inferred[0])}


class MultiheadAttention(_Attentive, nn.MultiheadAttention):
    """Multi-head attention: of a query over keys and values, or of an input over itself.

    `nn.MultiheadAttention` as a layer, with embed_dim read off the query, and batch_first=True by default.

    >>> import tensorgrad as torch
    >>> output, weights = torch.layers.MultiheadAttention(2)(torch.ones(3, 5, 8))
    >>> output.shape, weights.shape
    (torch.Size([3, 5, 8]), torch.Size([3, 5, 5]))
    """

    _inferred = ("embed_dim",)

    def _least(self, arguments: dict[str, Any]) -> dict[str, Any]:
        heads = arguments["num_heads"]
        given = {arguments.get("kdim"), arguments.get("vdim")}
        # not the keys' size: they get their own projection
        return {"embed_dim": next(heads * n for n in (1, 2, 3) if heads * n not in given)}

    def _plain(self) -> Any:
        return None                                 # the plain module needs keys and values

    def native_module(self) -> Any:
        return super()._plain()

    def forward(self, query: Any, key: Any = None, value: Any = None, key_padding_mask: Any = None,
                need_weights: bool = True, attn_mask: Any = None,
                average_attn_weights: bool = True, is_causal: bool = False) -> Any:
        key = query if key is None else key
        return self._twin.forward(self, query, key, key if value is None else value, key_padding_mask, need_weights,
                                  attn_mask, average_attn_weights, is_causal)


class TransformerEncoderLayer(_Attentive, nn.TransformerEncoderLayer):
    """Self-attention and a small network of two linear maps, each added to its input and normalized.

    `nn.TransformerEncoderLayer` as a layer, with d_model read off the first input, and batch_first=True by default.

    >>> import tensorgrad as torch
    >>> torch.layers.TransformerEncoderLayer(2, 16)(torch.ones(3, 5, 8)).shape
    torch.Size([3, 5, 8])
    """

    _inferred = ("d_model",)

    def _least(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"d_model": arguments["nhead"]}


class TransformerDecoderLayer(_Attentive, nn.TransformerDecoderLayer):
    """Self-attention, attention over the memory of an encoder, and a small network, each added to its input and
    normalized.

    `nn.TransformerDecoderLayer` as a layer, with d_model read off the first input, and batch_first=True by default.

    >>> import tensorgrad as torch
    >>> torch.layers.TransformerDecoderLayer(2, 16)(torch.ones(3, 5, 8), torch.ones(3, 7, 8)).shape
    torch.Size([3, 5, 8])
    """

    _inferred = ("d_model",)

    def _least(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"d_model": arguments["nhead"]}
