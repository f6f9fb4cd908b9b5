"""Tables of vectors, looked up by index, one by one or in bags."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import api as tg
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module
from .utils import changed

if TYPE_CHECKING:
    from ..._tensor import Tensor
    from ...api._kinds import Device, Dtype

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Module):
    """A weight with a row per index; the row `padding_idx` stays zero, and gets no gradient."""

    def _make_table(self, rows, width, padding_idx, weight, trained, device, dtype):
        self.num_embeddings, self.embedding_dim = rows, width
        if padding_idx is not None:
            if not -rows <= padding_idx < rows and padding_idx != 0:
                raise AssertionError(f"{self._padding_name} must be within num_embeddings")
            padding_idx %= max(rows, 1)
        self.padding_idx = padding_idx
        if weight is not None and list(weight.shape) != [rows, width]:
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        table = tg.empty((rows, width), device=device, dtype=dtype) if weight is None else weight
        self.weight = Parameter(table, requires_grad=trained)
        if weight is None:
            self.reset_parameters()

    def reset_parameters(self) -> None:
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self):
        if self.padding_idx is not None:
            with tg.no_grad():
                self.weight[self.padding_idx].fill_(0)

    @staticmethod
    def _check_pretrained(embeddings):
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")


class Embedding(_Table):
    """A vector for each index (torch.nn.Embedding).

    `weight[index]`, drawn from N(0, 1).

    Parameters:
        num_embeddings: int: required
        embedding_dim: int: required
        padding_idx: int: None, an index whose vector is zero at first and gets no gradient
        max_norm: float: None, shorten vectors that are longer, in place, when they are looked up
        norm_type: float: 2.0, the norm that max_norm speaks of
        scale_grad_by_freq: bool: False, divide gradients by the number of times that an index occurs
        sparse: bool: False, gradients as sparse tensors
        device, dtype: None: the device and dtype of the weights
    Input: (*), integers
    Output: (*, embedding_dim)
    Weights: weight (num_embeddings, embedding_dim)

    >>> import tensorgrad as torch
    >>> torch.nn.Embedding(10, 3)(torch.tensor([[1, 2, 4, 5], [4, 3, 2, 9]])).shape
    torch.Size([2, 4, 3])
    """

    __constants__ = ["num_embeddings", "embedding_dim", "padding_idx", "max_norm", "norm_type", "scale_grad_by_freq",
                     "sparse"]  # fmt: skip
    _padding_name = "Padding_idx"

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None,
                 max_norm: float | None = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
                 sparse: bool = False, _weight: Tensor | None = None, _freeze: bool = False,
                 device: Device | None = None, dtype: Dtype | None = None) -> None:
        super().__init__()
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        self._make_table(num_embeddings, embedding_dim, padding_idx, _weight, not _freeze, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type,
                           self.scale_grad_by_freq, self.sparse)

    def extra_repr(self) -> str:
        options = changed(self, padding_idx=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, sparse=False)
        return f"{self.num_embeddings}, {self.embedding_dim}{options}"

    @classmethod
    def from_pretrained(cls, embeddings: Any, freeze: bool = True, padding_idx: Any = None, max_norm: Any = None,
                        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False) -> Any:
        """An Embedding whose weight is `embeddings` (rows, width), fixed unless `freeze=False`."""
        cls._check_pretrained(embeddings)
        return cls(*embeddings.shape, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse,
                   _weight=embeddings, _freeze=freeze)


class EmbeddingBag(_Table):
    """Sum, mean or maximum of the vectors of each bag of indices (torch.nn.EmbeddingBag).

    Parameters:
        num_embeddings: int: required
        embedding_dim: int: required
        max_norm: float: None, shorten vectors that are longer, in place, when they are looked up
        norm_type: float: 2.0, the norm that max_norm speaks of
        scale_grad_by_freq: bool: False, divide gradients by the number of times that an index occurs
        mode: 'sum', 'mean' or 'max': 'mean'
        sparse: bool: False, gradients as sparse tensors
        include_last_offset: bool: False, offsets end with the end of the last bag
        padding_idx: int: None, an index that is left out of the bags
        device, dtype: None: the device and dtype of the weights
    Input: (B, N) integers, a bag per row, or (N) and offsets (B), where bags begin; then per_sample_weights for 'sum'
    Output: (B, embedding_dim)
    Weights: weight (num_embeddings, embedding_dim), drawn from N(0, 1)

    >>> import tensorgrad as torch
    >>> bags = torch.nn.EmbeddingBag(10, 3, mode="sum")
    >>> bags(torch.tensor([1, 2, 4, 5, 4, 3]), offsets=torch.tensor([0, 4])).shape
    torch.Size([2, 3])
    """

    __constants__ = ["num_embeddings", "embedding_dim", "max_norm", "norm_type", "scale_grad_by_freq", "mode", "sparse",
                     "include_last_offset", "padding_idx"]  # fmt: skip
    _padding_name = "padding_idx"

    def __init__(self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
                 scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
                 _weight: Tensor | None = None, include_last_offset: bool = False, padding_idx: int | None = None,
                 device: Device | None = None, dtype: Dtype | None = None) -> None:
        super().__init__()
        self.max_norm, self.norm_type, self.mode = max_norm, norm_type, mode
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        self.include_last_offset = include_last_offset
        self._make_table(num_embeddings, embedding_dim, padding_idx, _weight, True, device, dtype)

    def forward(self, input: Tensor, offsets: Tensor | None = None,
                per_sample_weights: Tensor | None = None) -> Tensor:
        return F.embedding_bag(input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq,
                               self.mode, self.sparse, per_sample_weights, self.include_last_offset, self.padding_idx)

    def extra_repr(self) -> str:
        options = changed(self, max_norm=None, norm_type=2, scale_grad_by_freq=False)
        padding = changed(self, padding_idx=None)
        return f"{self.num_embeddings}, {self.embedding_dim}{options}, mode={self.mode!r}{padding}"

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, max_norm: float | None = None,
                        norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean",
                        sparse: bool = False, include_last_offset: bool = False,
                        padding_idx: int | None = None) -> Any:
        """An EmbeddingBag whose weight is `embeddings` (rows, width), fixed unless `freeze=False`."""
        cls._check_pretrained(embeddings)
        bags = cls(*embeddings.shape, max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings,
                   include_last_offset, padding_idx)
        bags.weight.requires_grad = not freeze
        return bags
