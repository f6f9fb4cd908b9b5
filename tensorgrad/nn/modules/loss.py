"""Losses: functions of predictions and targets, reduced to their mean, to their sum, or not at all."""
from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

from .. import functional as F
from .._reduction import legacy_get_string
from .distance import PairwiseDistance
from .linear import Linear
from .module import Module
from .utils import Functional, named, settings

if TYPE_CHECKING:
    from ..._tensor import Tensor
    from ...api._kinds import Ints

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "GaussianNLLLoss",
    "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss", "LinearCrossEntropyLoss", "MSELoss", "MarginRankingLoss",
    "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss", "NLLLoss2d", "PoissonNLLLoss",
    "SmoothL1Loss", "SoftMarginLoss", "TripletMarginLoss", "TripletMarginWithDistanceLoss",
]  # fmt: skip


class _Loss(Functional):
    """A loss keeps its reduction, however it was asked for; weights are buffers, so that they move with the module."""

    __init__ = settings(size_average=None, reduce=None, reduction="mean")
    extra_repr = Module.extra_repr

    def _keep(self, size_average=None, reduce=None, **values):
        if size_average is not None or reduce is not None:
            values["reduction"] = legacy_get_string(size_average, reduce)
        for name in ("weight", "pos_weight"):
            if name in values:
                self.register_buffer(name, values.pop(name))
        super()._keep(**values)


class _WeightedLoss(_Loss):
    __init__ = settings(weight=None, size_average=None, reduce=None, reduction="mean")


# ── regression ────────────────────────────────────────────────────────────────────────────────
class L1Loss(_Loss):
    """Absolute error: `|x - y|` (torch.nn.L1Loss).

    Parameters:
        size_average, reduce: bool: None, deprecated
        reduction: 'mean', 'sum' or 'none': 'mean'
    Input: (*), (*)
    Output: (), or (*) for 'none'
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.L1Loss()(torch.tensor([1.0, 5.0]), torch.tensor([1.0, 1.0]))
    tensor(2.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_Loss):
    """Squared error: `(x - y) ** 2` (torch.nn.MSELoss).

    Parameters:
        size_average, reduce: bool: None, deprecated
        reduction: 'mean', 'sum' or 'none': 'mean'
    Input: (*), (*)
    Output: (), or (*) for 'none'
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.MSELoss(reduction="sum")(torch.tensor([1.0, 2.0]), torch.zeros(2))
    tensor(5.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """`d**2 / (2*beta)` where `d = |x - y| < beta`, `d - beta/2` elsewhere (torch.nn.SmoothL1Loss).

    Parameters:
        size_average, reduce: bool: None, deprecated
        reduction: 'mean', 'sum' or 'none': 'mean'
        beta: float: 1.0, not negative
    Input: (*), (*)
    Output: (), or (*) for 'none'
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.SmoothL1Loss(reduction="none")(torch.tensor([1.0, 3.0]), torch.zeros(2))
    tensor([0.5000, 2.5000])
    """

    __init__ = settings(size_average=None, reduce=None, reduction="mean", beta=1.0)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """`d**2 / 2` where `d = |x - y| < delta`, `delta * (d - delta/2)` elsewhere (torch.nn.HuberLoss).

    Parameters:
        reduction: 'mean', 'sum' or 'none': 'mean'
        delta: float: 1.0, positive
    Input: (*), (*)
    Output: (), or (*) for 'none'
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.HuberLoss(reduction="none", delta=2.0)(torch.tensor([1.0, 3.0]), torch.zeros(2))
    tensor([0.5000, 4.0000])
    """

    __init__ = settings(reduction="mean", delta=1.0)

    def _keep(self, reduction, delta):
        if not isinstance(delta, (float, int)):
            raise TypeError(f"delta must be a float or int, got: {type(delta)}")
        super()._keep(reduction=reduction, delta=delta)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


# ── likelihoods ───────────────────────────────────────────────────────────────────────────────
class CrossEntropyLoss(_WeightedLoss):
    """Negative log-likelihood of classes under a softmax: `-log_softmax(x)[y]` (torch.nn.CrossEntropyLoss).

    Targets are class indices, or a probability for each class.

    Parameters:
        weight: Tensor: None, (C), a factor per class
        size_average, reduce: bool: None, deprecated
        ignore_index: int: -100, a target that counts for nothing
        reduction: 'mean', 'sum' or 'none': 'mean', by the weights where these are given
        label_smoothing: float: 0.0, share of the uniform distribution that is mixed into the target
    Input: (C), (N, C) or (N, C, *); targets () , (N) or (N, *), or as the input
    Output: (), or as the targets' indices for 'none'
    Weights: buffer weight (C), if given

    >>> import tensorgrad as torch
    >>> torch.nn.CrossEntropyLoss()(torch.zeros(3, 4), torch.tensor([1, 0, 3]))
    tensor(1.3863)
    """

    __init__ = settings(weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean",
                        label_smoothing=0.0)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(input, target, weight=self.weight, ignore_index=self.ignore_index,
                               reduction=self.reduction, label_smoothing=self.label_smoothing)


class LinearCrossEntropyLoss(_WeightedLoss):
    """Cross entropy of a linear layer's output, in one step (torch.nn.LinearCrossEntropyLoss).

    `cross_entropy(linear(x), y)`; several predictions per sample where out_features are given.

    Parameters:
        in_features: int: required
        num_classes: int: required, C
        out_features: tuple: (), the shape of the predictions per sample
        bias: bool: False, of the linear layer
        device, dtype: None: the device and dtype of the weights
        reduction: 'mean', 'sum' or 'none': 'mean'
        weight: Tensor: None, (C), a factor per class
        ignore_index: int: None, a target that counts for nothing
        label_smoothing: float: 0.0
        options: LinearCrossEntropyOptions: None, how to work in chunks
    Input: (N, in_features) or (in_features); targets (N, *out_features) or (), or (N, C, *out_features)
    Output: (), or (N, *out_features) for 'none'
    Weights: linear.weight (C * out_features, in_features), linear.bias (C * out_features); buffer weight (C)

    >>> import tensorgrad as torch
    >>> torch.nn.LinearCrossEntropyLoss(5, 4)(torch.zeros(3, 5), torch.tensor([1, 0, 3])).detach()
    tensor(1.3863)
    """

    __constants__ = ["num_classes", "out_features", "reduction", "ignore_index", "label_smoothing"]
    __init__ = settings("in_features", "num_classes", "*", out_features=(), bias=False, device=None, dtype=None,
                        reduction="mean", weight=None, ignore_index=None, label_smoothing=0.0, options=None)

    def _keep(self, in_features, num_classes, out_features, bias, device, dtype, weight, label_smoothing, **others):
        if weight is not None and weight.shape != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if label_smoothing < 0 or label_smoothing > 1.0:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super()._keep(num_classes=num_classes, out_features=out_features, weight=weight,
                      label_smoothing=label_smoothing, **others)
        outputs = math.prod(out_features, start=num_classes)
        self.linear = Linear(in_features, outputs, bias=bias, device=device, dtype=dtype)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        shape = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input, self.linear.weight.reshape(*shape, self.linear.in_features), target,
            linear_bias=None if bias is None else bias.reshape(shape), weight=self.weight, reduction=self.reduction,
            ignore_index=self.ignore_index, label_smoothing=self.label_smoothing, options=self.options,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return (f"in_features={self.linear.in_features}, {named(self, 'num_classes', 'out_features')}, "
                f"bias={self.linear.bias is not None}, "
                f"{named(self, 'reduction', 'ignore_index', 'label_smoothing', 'options')}")


class NLLLoss(_WeightedLoss):
    """Negative log-likelihood of classes, given log-probabilities: `-x[y]` (torch.nn.NLLLoss).

    Parameters:
        weight: Tensor: None, (C), a factor per class
        size_average, reduce: bool: None, deprecated
        ignore_index: int: -100, a target that counts for nothing
        reduction: 'mean', 'sum' or 'none': 'mean', by the weights where these are given
    Input: (C), (N, C) or (N, C, *); targets (), (N) or (N, *)
    Output: (), or as the targets for 'none'
    Weights: buffer weight (C), if given

    >>> import tensorgrad as torch
    >>> torch.nn.NLLLoss()(torch.tensor([[-1.0, -2.0], [-3.0, -4.0]]), torch.tensor([0, 1]))
    tensor(2.5000)
    """

    __init__ = settings(weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean")

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class NLLLoss2d(NLLLoss):
    """The old name of NLLLoss for images (torch.nn.NLLLoss2d): deprecated.

    Parameters:
        weight, size_average, ignore_index, reduce, reduction: as in NLLLoss: the same
    Input: (N, C, H, W), targets (N, H, W)
    Output: (), or (N, H, W) for 'none'
    Weights: buffer weight (C), if given

    >>> import tensorgrad as torch
    >>> torch.nn.NLLLoss(reduction="sum")(-torch.ones(1, 2, 3, 3), torch.ones(1, 3, 3, dtype=torch.int64))
    tensor(9.)
    """

    def __init__(self, weight: Tensor | None = None, size_average: Any = None, ignore_index: int = -100,
                 reduce: Any = None, reduction: str = "mean") -> None:
        warnings.warn("`NLLLoss2d` has been deprecated. Please use `NLLLoss` instead as a drop-in replacement and see "
                      "https://pytorch.org/docs/main/nn.html#torch.nn.NLLLoss for more details.", FutureWarning,
                      stacklevel=2)
        super().__init__(weight, size_average, ignore_index, reduce, reduction)


class BCELoss(_WeightedLoss):
    """Binary cross entropy of probabilities: `-(y*log(p) + (1-y)*log(1-p))`, logs at least -100 (torch.nn.BCELoss).

    Parameters:
        weight: Tensor: None, factors, of a shape that expands to the input's
        size_average, reduce: bool: None, deprecated
        reduction: 'mean', 'sum' or 'none': 'mean'
    Input: (*) within 0 and 1, (*)
    Output: (), or (*) for 'none'
    Weights: buffer weight, if given

    >>> import tensorgrad as torch
    >>> torch.nn.BCELoss()(torch.tensor([0.5]), torch.tensor([1.0]))
    tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """Binary cross entropy of `sigmoid(x)`, computed without overflow (torch.nn.BCEWithLogitsLoss).

    `-(pos_weight * y * log(sigmoid(x)) + (1 - y) * log(1 - sigmoid(x)))`.

    Parameters:
        weight: Tensor: None, factors, of a shape that expands to the input's
        size_average, reduce: bool: None, deprecated
        reduction: 'mean', 'sum' or 'none': 'mean'
        pos_weight: Tensor: None, factors of positive targets, of a shape that expands to the input's
    Input: (*), (*)
    Output: (), or (*) for 'none'
    Weights: buffers weight and pos_weight, if given

    >>> import tensorgrad as torch
    >>> torch.nn.BCEWithLogitsLoss()(torch.tensor([0.0]), torch.tensor([1.0]))
    tensor(0.6931)
    """

    __init__ = settings(weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(input, target, self.weight, pos_weight=self.pos_weight,
                                                  reduction=self.reduction)


class PoissonNLLLoss(_Loss):
    """Negative log-likelihood of counts under a Poisson distribution (torch.nn.PoissonNLLLoss).

    `exp(x) - y*x`, or `x - y*log(x + eps)` where x is no logarithm.

    Parameters:
        log_input: bool: True, the input is the logarithm of the mean
        full: bool: False, add Stirling's term for the factorial
        size_average, reduce: bool: None, deprecated
        eps: float: 1e-08
        reduction: 'mean', 'sum' or 'none': 'mean'
    Input: (*), (*)
    Output: (), or (*) for 'none'
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.PoissonNLLLoss()(torch.tensor([0.0]), torch.tensor([3.0]))
    tensor(1.)
    """

    __init__ = settings(log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean")

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(log_input, target, log_input=self.log_input, full=self.full, eps=self.eps,
                                  reduction=self.reduction)


class GaussianNLLLoss(_Loss):
    """Negative log-likelihood under a normal distribution of given mean and variance (torch.nn.GaussianNLLLoss).

    `(log(max(var, eps)) + (x - y)**2 / max(var, eps)) / 2`.

    Parameters:
        full: bool: False, add the constant term
        eps: float: 1e-06
        reduction: 'mean', 'sum' or 'none': 'mean'
    Input: means (N, *), targets (N, *), variances (N, *), (N, 1), (N) or a number
    Output: (), or (N, *) for 'none'
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.GaussianNLLLoss()(torch.zeros(2), torch.tensor([1.0, 3.0]), torch.ones(2))
    tensor(2.5000)
    """

    __init__ = settings("*", full=False, eps=1e-6, reduction="mean")

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class KLDivLoss(_Loss):
    """Kullback-Leibler divergence, given log-probabilities: `y * (log(y) - x)` (torch.nn.KLDivLoss).

    Parameters:
        size_average, reduce: bool: None, deprecated
        reduction: 'batchmean', 'mean', 'sum' or 'none': 'mean', 'batchmean' for the divergence proper
        log_target: bool: False, targets are logarithms, too
    Input: (*), (*)
    Output: (), or (*) for 'none'
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.KLDivLoss(reduction="batchmean")(torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[1.0, 0.0]]))
    tensor(0.6931)
    """

    __init__ = settings(size_average=None, reduce=None, reduction="mean", log_target=False)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class CTCLoss(_Loss):
    """Negative log-likelihood of label sequences, summed over all their alignments (torch.nn.CTCLoss).

    Connectionist temporal classification: an alignment repeats labels, and puts blanks between (Graves et al., 2006).

    Parameters:
        blank: int: 0, the class that is no label
        reduction: 'mean', 'sum' or 'none': 'mean', of losses over target lengths
        zero_infinity: bool: False, 0 where targets are too long to be aligned
    Input: log-probabilities (T, N, C) or (T, C), targets (N, S) or concatenated, input lengths (N), target lengths (N)
    Output: (), or (N) for 'none'
    Weights: none

    >>> import tensorgrad as torch
    >>> log_probs = torch.tensor([[[0.5, 0.5]], [[0.5, 0.5]]]).log()
    >>> torch.nn.CTCLoss()(log_probs, torch.tensor([[1]]), torch.tensor([2]), torch.tensor([1]))
    tensor(0.2877)
    """

    __init__ = settings(blank=0, reduction="mean", zero_infinity=False)

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Tensor | Ints,
                target_lengths: Tensor | Ints) -> Tensor:
        return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction,
                          self.zero_infinity)


# ── margins ───────────────────────────────────────────────────────────────────────────────────
class HingeEmbeddingLoss(_Loss):
    """`x` where `y = 1`, `max(0, margin - x)` where `y = -1` (torch.nn.HingeEmbeddingLoss).

    Parameters:
        margin: float: 1.0
        size_average, reduce: bool: None, deprecated
        reduction: 'mean', 'sum' or 'none': 'mean'
    Input: distances (*), targets (*) of 1 and -1
    Output: (), or (*) for 'none'
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.HingeEmbeddingLoss(reduction="none")(torch.tensor([2.0, 0.5]), torch.tensor([1.0, -1.0]))
    tensor([2.0000, 0.5000])
    """

    __init__ = settings(margin=1.0, size_average=None, reduce=None, reduction="mean")

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class SoftMarginLoss(_Loss):
    """`log(1 + exp(-y * x))` (torch.nn.SoftMarginLoss).

    Parameters:
        size_average, reduce: bool: None, deprecated
        reduction: 'mean', 'sum' or 'none': 'mean'
    Input: (*), targets (*) of 1 and -1
    Output: (), or (*) for 'none'
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.SoftMarginLoss()(torch.tensor([0.0]), torch.tensor([-1.0]))
    tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class MultiMarginLoss(_WeightedLoss):
    """`sum over i != y of max(0, margin - x[y] + x[i]) ** p / C` (torch.nn.MultiMarginLoss).

    Parameters:
        p: int: 1, or 2
        margin: float: 1.0
        weight: Tensor: None, (C), a factor per class
        size_average, reduce: bool: None, deprecated
        reduction: 'mean', 'sum' or 'none': 'mean'
    Input: (N, C) or (C), targets (N) or ()
    Output: (), or as the targets for 'none'
    Weights: buffer weight (C), if given

    >>> import tensorgrad as torch
    >>> torch.nn.MultiMarginLoss()(torch.tensor([[0.5, 0.25]]), torch.tensor([0]))
    tensor(0.3750)
    """

    __init__ = settings(p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean")

    def _keep(self, p, weight, **others):
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.dim()}D instead")
        super()._keep(p=p, weight=weight, **others)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(input, target, p=self.p, margin=self.margin, weight=self.weight,
                                   reduction=self.reduction)


class MultiLabelMarginLoss(_Loss):
    """`sum over labels y and others i of max(0, 1 - x[y] + x[i]) / C` (torch.nn.MultiLabelMarginLoss).

    Parameters:
        size_average, reduce: bool: None, deprecated
        reduction: 'mean', 'sum' or 'none': 'mean'
    Input: (N, C) or (C), targets of the same shape: labels, then -1
    Output: (), or (N) for 'none'
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.MultiLabelMarginLoss()(torch.tensor([[0.5, 0.25]]), torch.tensor([[0, -1]]))
    tensor(0.3750)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """Mean over classes of the binary cross entropy of `sigmoid(x)` (torch.nn.MultiLabelSoftMarginLoss).

    Parameters:
        weight: Tensor: None, (C), a factor per class
        size_average, reduce: bool: None, deprecated
        reduction: 'mean', 'sum' or 'none': 'mean'
    Input: (N, C), targets (N, C) of 0 and 1
    Output: (), or (N) for 'none'
    Weights: buffer weight (C), if given

    >>> import tensorgrad as torch
    >>> torch.nn.MultiLabelSoftMarginLoss()(torch.zeros(1, 3), torch.ones(1, 3))
    tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, weight=self.weight, reduction=self.reduction)


class CosineEmbeddingLoss(_Loss):
    """`1 - cos(x1, x2)` where `y = 1`, `max(0, cos(x1, x2) - margin)` where `y = -1` (torch.nn.CosineEmbeddingLoss).

    Parameters:
        margin: float: 0.0
        size_average, reduce: bool: None, deprecated
        reduction: 'mean', 'sum' or 'none': 'mean'
    Input: (N, D), (N, D), targets (N) of 1 and -1, or all without N
    Output: (), or (N) for 'none'
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.CosineEmbeddingLoss()(torch.eye(2), torch.tensor([[0.0, 1.0], [0.0, 1.0]]), torch.ones(2))
    tensor(0.5000)
    """

    __init__ = settings(margin=0.0, size_average=None, reduce=None, reduction="mean")

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class MarginRankingLoss(_Loss):
    """`max(0, -y * (x1 - x2) + margin)`: y = 1 wants x1 to rank higher, -1 lower (torch.nn.MarginRankingLoss).

    Parameters:
        margin: float: 0.0
        size_average, reduce: bool: None, deprecated
        reduction: 'mean', 'sum' or 'none': 'mean'
    Input: (N), (N), targets (N) of 1 and -1
    Output: (), or (N) for 'none'
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.MarginRankingLoss()(torch.tensor([1.0]), torch.tensor([3.0]), torch.tensor([1.0]))
    tensor(2.)
    """

    __init__ = settings(margin=0.0, size_average=None, reduce=None, reduction="mean")

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


def _check_margin(name, margin):
    if margin <= 0:
        raise ValueError(f"{name}: expected margin to be greater than 0, got {margin} instead")


class TripletMarginLoss(_Loss):
    """`max(0, d(anchor, positive) - d(anchor, negative) + margin)`, d being a p-norm (torch.nn.TripletMarginLoss).

    Parameters:
        margin: float: 1.0, positive
        p: float: 2.0
        eps: float: 1e-06
        swap: bool: False, take d(positive, negative) where that is the smaller one
        size_average, reduce: bool: None, deprecated
        reduction: 'mean', 'sum' or 'none': 'mean'
    Input: (N, D) or (D), three times
    Output: (), or (N) for 'none'
    Weights: none

    >>> import tensorgrad as torch
    >>> torch.nn.TripletMarginLoss()(torch.zeros(1, 2), torch.zeros(1, 2), torch.zeros(1, 2))
    tensor(1.)
    """

    __init__ = settings(margin=1.0, p=2.0, eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean")

    def _keep(self, margin, **others):
        _check_margin("TripletMarginLoss", margin)
        super()._keep(margin=margin, **others)

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(anchor, positive, negative, margin=self.margin, p=self.p, eps=self.eps,
                                     swap=self.swap, reduction=self.reduction)


class TripletMarginWithDistanceLoss(_Loss):
    """TripletMarginLoss with a distance of your own (torch.nn.TripletMarginWithDistanceLoss).

    Parameters:
        distance_function: callable: None, PairwiseDistance()
        margin: float: 1.0, positive
        swap: bool: False, take d(positive, negative) where that is the smaller one
        reduction: 'mean', 'sum' or 'none': 'mean'
    Input: whatever the distance takes, three times
    Output: (), or as the distances for 'none'
    Weights: those of the distance, if it is a module

    >>> import tensorgrad as torch
    >>> loss = torch.nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: (a - b).abs().amax(-1))
    >>> loss(torch.zeros(1, 2), torch.zeros(1, 2), torch.tensor([[0.5, 0.0]]))
    tensor(0.5000)
    """

    __init__ = settings("*", distance_function=None, margin=1.0, swap=False, reduction="mean")

    def _keep(self, distance_function, margin, **others):
        _check_margin("TripletMarginWithDistanceLoss", margin)
        distance = PairwiseDistance() if distance_function is None else distance_function
        super()._keep(distance_function=distance, margin=margin, **others)

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor, positive, negative, distance_function=self.distance_function, margin=self.margin, swap=self.swap,
            reduction=self.reduction,
        )  # fmt: skip
