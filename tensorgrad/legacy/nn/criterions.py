"""The criterions of `legacy.nn`, a row each, and criterions that contain others."""
from __future__ import annotations

from typing import Any

from ... import api as tg
from ... import nn
from ...nn import functional as F
from .module import Criterion, Module
from .rows import Row, RowCriterion, classes
from .tape import Tape


def averaged(m: Any) -> str:
    return "mean" if m.sizeAverage else "sum"


def plain(function: Any, today: Any, says: str) -> Row:
    """Return the row of a loss that is a present function with a reduction."""
    return Row("sizeAverage=True", says, lambda m, x, y: function(x, y, reduction=averaged(m)),
               lambda m: today(reduction=averaged(m)))


def negative_log_likelihood(m: Any, x: Any, y: Any) -> Any:
    return F.nll_loss(x, y.long().reshape(y.shape), m.weights, reduction=averaged(m)) if x.dim() > 1 else F.nll_loss(
        x[None], tg.as_tensor(y).long().reshape(1), m.weights, reduction=averaged(m))


def margin(m: Any, x: Any, y: Any) -> Any:
    loss = (m.margin - x * y).clamp(min=0)
    return loss.mean() if m.sizeAverage else loss.sum()


def margin_ranking(m: Any, x: Any, y: Any) -> Any:
    y = y if isinstance(y, tg.Tensor) else tg.full_like(x[0], float(y))
    return F.margin_ranking_loss(x[0], x[1], y, m.margin, reduction=averaged(m))


def cosine_embedding(m: Any, x: Any, y: Any) -> Any:
    a, b = (t[None] if t.dim() == 1 else t for t in x)
    y = tg.as_tensor(y).to(a.dtype).reshape(-1)
    return F.cosine_embedding_loss(a, b, y.expand(a.shape[0]), m.margin, reduction=averaged(m))


def l1_hinge(m: Any, x: Any, y: Any) -> Any:
    """Σ |x₀ − x₁|, or max(0, margin − that) where y is −1."""
    distance = (x[0] - x[1]).abs().sum()
    return distance if float(y) == 1 else (m.margin - distance).clamp(min=0)


def multi_label_soft_margin(m: Any, x: Any, y: Any) -> Any:
    return F.binary_cross_entropy(x.sigmoid(), y.to(x.dtype), m.weights)


def multi_margin(m: Any, x: Any, y: Any) -> Any:
    x, y = (x, y) if x.dim() > 1 else (x[None], tg.as_tensor(y).reshape(1))
    return F.multi_margin_loss(x, y.long(), m.p, m.margin, m.weights, reduction=averaged(m))


def weighted_squares(m: Any, x: Any, y: Any) -> Any:
    found = m.weight * (x - y) ** 2
    return found.mean() if m.sizeAverage else found.sum()


def simplex(n: int) -> Any:
    """Return the corners of a regular simplex of n classes in n − 1 dimensions, at distance 1 from the centre, as
    rows; a last column of zeros."""
    corners = tg.zeros(n, n, dtype=tg.float64)
    for k in range(n - 1):
        corners[k, k] = (1 - corners[k, :k].dot(corners[k, :k])).clamp(min=0).sqrt() if k else 1.0
        rest = -1 / (n - 1)
        for i in range(k + 1, n):
            corners[i, k] = (rest - corners[i, :k].dot(corners[k, :k])) / corners[k, k]
    return corners.float()


def class_simplex(m: Any, x: Any, y: Any) -> Any:
    return F.mse_loss(x, m.simp.to(x.dtype)[y.long()])


def predicted(m: Any, x: Any) -> Any:
    """Return the class of the nearest corner, which has the greatest product with x."""
    return (x @ m.simp.to(x.dtype).t()).max(1)[1]


CRITERIONS: dict[str, Row] = {
    "AbsCriterion": plain(F.l1_loss, nn.L1Loss, "the mean of |x − y|"),
    "BCECriterion": Row("weights=None sizeAverage=True", "the mean of −y log x − (1 − y) log(1 − x)",
                        lambda m, x, y: F.binary_cross_entropy(x, y, m.weights, reduction=averaged(m)),
                        lambda m: nn.BCELoss(m.weights, reduction=averaged(m))),
    "ClassNLLCriterion": Row("weights=None sizeAverage=True", "the mean of −x at the class y", negative_log_likelihood,
                             lambda m: nn.NLLLoss(m.weights, reduction=averaged(m))),
    "ClassSimplexCriterion": Row("nClasses", "squares of the distance to the class's corner of a simplex",
                                 class_simplex,
                                 state={"simp": lambda m: simplex(m.nClasses)}, methods={"getPredictions": predicted}),
    "CosineEmbeddingCriterion": Row("margin=0 sizeAverage=True",
                                    "1 − cos(x₀, x₁), or where y is −1 what it exceeds the margin by", cosine_embedding,
                                    lambda m: nn.CosineEmbeddingLoss(m.margin, reduction=averaged(m))),
    "CrossEntropyCriterion": Row("weights=None", "the mean of −log softmax(x) at the class y",
                                 lambda m, x, y: F.cross_entropy(x.reshape(x.shape[:2]) if x.dim() > 1 else x[None],
                                                                 tg.as_tensor(y).long().reshape(-1),
                                                                 m.weights),
                                 lambda m: nn.CrossEntropyLoss(m.weights)),
    "DistKLDivCriterion": Row("sizeAverage=True", "the mean of y (log y − x)",
                              lambda m, x, y: F.kl_div(x, y, reduction="sum") / (x.numel() if m.sizeAverage else 1),
                              lambda m: nn.KLDivLoss(reduction=averaged(m))),
    "HingeEmbeddingCriterion": Row("margin=1 sizeAverage=True", "x, or where y is −1 what it lacks of the margin",
                                   lambda m, x, y: F.hinge_embedding_loss(x, tg.as_tensor(y).to(x.dtype), m.margin,
                                                                          reduction=averaged(m)),
                                   lambda m: nn.HingeEmbeddingLoss(m.margin, reduction=averaged(m))),
    "L1Cost": Row("", "Σ |x|", lambda m, x, y=None: x.abs().sum()),
    "L1HingeEmbeddingCriterion": Row("margin=1", "Σ |x₀ − x₁|, or where y is −1 what it lacks of the margin", l1_hinge),
    "MSECriterion": plain(F.mse_loss, nn.MSELoss, "the mean of (x − y)²"),
    "MarginCriterion": Row("margin=1 sizeAverage=True", "the mean of max(0, margin − xy)", margin),
    "MarginRankingCriterion": Row("margin=1 sizeAverage=True", "the mean of max(0, margin − y (x₀ − x₁))",
                                  margin_ranking,
                                  lambda m: nn.MarginRankingLoss(m.margin, reduction=averaged(m))),
    "MultiLabelMarginCriterion": Row("sizeAverage=True", "max(0, 1 − (x at y − x elsewhere)), over several classes y",
                                     lambda m, x, y: F.multilabel_margin_loss(x, y.long(), reduction=averaged(m)),
                                     lambda m: nn.MultiLabelMarginLoss(reduction=averaged(m))),
    "MultiLabelSoftMarginCriterion": Row("weights=None", "binary cross-entropy of sigmoid(x)", multi_label_soft_margin,
                                         lambda m: nn.MultiLabelSoftMarginLoss(m.weights)),
    "MultiMarginCriterion": Row("p=1 weights=None margin=1 sizeAverage=True", "max(0, margin − x at y + x elsewhere)ᵖ",
                                multi_margin,
                                lambda m: nn.MultiMarginLoss(m.p, m.margin, m.weights, reduction=averaged(m))),
    "SmoothL1Criterion": plain(F.smooth_l1_loss, nn.SmoothL1Loss, "the mean of ½(x − y)², or |x − y| − ½ beyond 1"),
    "SoftMarginCriterion": plain(F.soft_margin_loss, nn.SoftMarginLoss, "the mean of log(1 + e^(−xy))"),
    "SpatialClassNLLCriterion": Row("weights=None sizeAverage=True", "the mean of −x at the class y of each pixel",
                                    lambda m, x, y: F.nll_loss(x, y.long(), m.weights, reduction=averaged(m)),
                                    lambda m: nn.NLLLoss(m.weights, reduction=averaged(m))),
    "WeightedMSECriterion": Row("weight sizeAverage=True", "the mean of w (x − y)²", weighted_squares),
}


# ── criterions of criterions ──────────────────────────────────────────────────────────────────────────────────────────


class MultiCriterion(Criterion):
    """The weighted sum of several criterions of an input and a target. `add(criterion, weight=1)` adds one."""

    def __init__(self) -> None:
        super().__init__()
        self.criterions: list[Any] = []
        self.weights: list[float] = []

    def children(self) -> list[Module]:
        return self.criterions

    def add(self, criterion: Any, weight: float = 1) -> Any:
        """Add a criterion with a weight to the sum; return this criterion."""
        self.criterions.append(criterion)
        self.weights.append(weight)
        return self

    def compute(self, tape: Tape, input: Any, target: Any) -> Any:          # type: ignore[override]
        return sum(w * c.record(tape, x, y) for w, (c, x, y) in zip(self.weights, self._pairs(input, target)))

    def _pairs(self, input: Any, target: Any) -> list[Any]:
        return [(c, input, target) for c in self.criterions]

    def _arguments(self) -> str:
        return "(" + ", ".join(f"{w} * {c}" for w, c in zip(self.weights, self.criterions)) + ")"


class ParallelCriterion(MultiCriterion):
    """The weighted sum of criterions, each on its entry of the tables of inputs and targets; with `repeatTarget`,
    all on one target."""

    def __init__(self, repeatTarget: bool = False) -> None:
        super().__init__()
        self.repeatTarget = repeatTarget

    def _pairs(self, input: Any, target: Any) -> list[Any]:
        return [(c, x, target if self.repeatTarget else target[i])
                for i, (c, x) in enumerate(zip(self.criterions, input))]


class CriterionTable(Module):
    """A criterion as a module that takes the table of its input and target."""

    def __init__(self, criterion: Any) -> None:
        super().__init__()
        self.criterion = criterion

    def children(self) -> list[Module]:
        return [self.criterion]

    def compute(self, tape: Tape, input: Any) -> Any:
        return self.criterion.record(tape, *input)


__all__ = ["CriterionTable", "MultiCriterion", "ParallelCriterion", *classes(CRITERIONS, RowCriterion, globals())]
