"""A softmax over many classes, most of them rare."""
from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from ... import api as tg
from ...api._arguments import anywhere
from .. import functional as F
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

if TYPE_CHECKING:
    from ..._tensor import Tensor
    from ...api._kinds import Device, Dtype

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class _ASMoutput(NamedTuple):
    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """A softmax in two steps: frequent classes and clusters first, then within a cluster (Grave et al., 2017).

    Classes are numbered from the most frequent on. The head tells the first cutoffs[0] classes and the clusters
    apart; cluster i is told apart by a map through in_features / div_value**(i + 1) features.
    See torch.nn.AdaptiveLogSoftmaxWithLoss.

    Parameters:
        in_features: int: required
        n_classes: int: required
        cutoffs: sequence of int: required, where clusters begin, increasing, within 1 and n_classes - 1
        div_value: float: 4.0
        head_bias: bool: False, add a bias in the head
        device, dtype: None: the device and dtype of the weights
    Input: (N, in_features) or (in_features), targets (N) or ()
    Output: named tuple of the targets' log-probabilities (N) or (), and the loss ()
    Weights: head.weight and head.bias; tail.i.0.weight and tail.i.1.weight for cluster i

    >>> import tensorgrad as torch
    >>> softmax = torch.nn.AdaptiveLogSoftmaxWithLoss(16, 20, cutoffs=[5, 10])
    >>> softmax(torch.ones(3, 16), torch.tensor([0, 7, 19])).output.shape
    torch.Size([3])
    >>> softmax.log_prob(torch.ones(3, 16)).shape, softmax.predict(torch.ones(3, 16)).shape
    (torch.Size([3, 20]), torch.Size([3]))
    """

    def __init__(self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0,
                 head_bias: bool = False, device: Device | None = None, dtype: Dtype | None = None) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        increasing = cutoffs == sorted(set(cutoffs)) and all(int(c) == c for c in cutoffs)
        if not increasing or cutoffs[0] <= 0 or cutoffs[-1] > n_classes - 1:
            raise ValueError("cutoffs should be a sequence of unique, positive integers sorted in an increasing order, "
                             "where each value is between 1 and n_classes-1")
        self.in_features, self.n_classes, self.cutoffs = in_features, n_classes, [*cutoffs, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size, self.n_clusters = cutoffs[0], len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, device=device, dtype=dtype)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(pairwise(self.cutoffs)):
            width = int(in_features // div_value ** (i + 1))
            self.tail.append(Sequential(
                Linear(in_features, width, bias=False, device=device, dtype=dtype),
                Linear(width, high - low, bias=False, device=device, dtype=dtype),
            ))  # fmt: skip

    def reset_parameters(self) -> None:
        for linear in (self.head, *(linear for cluster in self.tail for linear in cluster)):
            linear.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        self._check(input_, target_)
        single = target_.dim() == 0
        input, target = (input_.unsqueeze(0), target_.unsqueeze(0)) if single else (input_, target_)
        column, within = target, input.new_zeros(target.size(0))  # the place in the head, the log-probability beyond
        for i, (low, high) in enumerate(pairwise(self.cutoffs)):
            rows = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if rows.numel():
                log_prob = F.log_softmax(self.tail[i](input.index_select(0, rows)), dim=1)
                place = target.index_select(0, rows) - low
                within = within.index_copy(0, rows, log_prob.gather(1, place.unsqueeze(1)).squeeze(1))
                column = column.index_fill(0, rows, self.shortlist_size + i)
        head = F.log_softmax(self.head(input), dim=1)
        output = within + head.gather(1, column.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output.squeeze(0) if single else output, loss)

    def _check(self, input, target):
        if target.dim() > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if target.dim() == 1 and input.size(0) != target.size(0):
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if input.dim() != target.dim() + 1:
            raise RuntimeError(f"{target.dim()}D target tensor expects {target.dim() + 1}D input tensors, "
                               f"but found inputs with size {input.size()}")
        if anywhere((target < 0) | (target >= self.n_classes)):
            raise RuntimeError(f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                               f"[{target.min().item()}, {target.max().item()}] were found. ")

    def _get_full_log_prob(self, input, head_output):
        head = F.log_softmax(head_output, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            of_cluster = head[:, self.shortlist_size + i].unsqueeze(1)
            parts.append(of_cluster + F.log_softmax(cluster(input), dim=1))
        return tg.cat(parts, dim=1)

    def log_prob(self, input: Tensor) -> Tensor:
        """Log-probabilities of all classes, (N, n_classes)."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """The most likely class of each sample, (N); clusters are only looked into where one wins in the head."""
        head = self.head(input)
        best = head.argmax(dim=1)
        rows = (best >= self.shortlist_size).nonzero().squeeze(1)
        if not rows.numel():
            return best
        log_prob = self._get_full_log_prob(input.index_select(0, rows), head.index_select(0, rows))
        return best.index_copy(0, rows, log_prob.argmax(dim=1))
