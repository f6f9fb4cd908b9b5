"""Losses. https://onnx.ai/onnx/operators/"""
from __future__ import annotations

from typing import Any

from ...nn import functional as F
from ._table import operator

NONE = -(1 << 40)       # no class has this number


@operator("NegativeLogLikelihoodLoss", fixed=(2,))
def negative_log_likelihood_loss(x: Any, target: Any, weight: Any = None, *, ignore_index: int | None = None,
                                 reduction: str = "mean") -> Any:
    return F.nll_loss(x, target.long(), weight, ignore_index=NONE if ignore_index is None else ignore_index,
                      reduction=reduction)


@operator("SoftmaxCrossEntropyLoss", fixed=(2,), outputs=True)
def softmax_cross_entropy_loss(x: Any, target: Any, weight: Any = None, *, ignore_index: int | None = None,
                               reduction: str = "mean", outputs: int) -> Any:
    logs = F.log_softmax(x, 1)
    loss = negative_log_likelihood_loss(logs, target, weight, ignore_index=ignore_index, reduction=reduction)
    return (loss, logs) if outputs > 1 else loss
