"""Losses of classifiers."""

from __future__ import annotations

from typing import Any

from ... import api as tg
from ... import nn
from . import register


@register("mnist_ce")
@register("cross_entropy")
class CrossEntropy(nn.Module):
    """The mean cross entropy of scores (N, C, …) and the classes (N, …) in `batch[target]`, with the share of right
    answers as `accuracy`.

    Where targets are probabilities of classes, of the scores' shape, there is no accuracy.
    https://docs.pytorch.org/docs/2.13/generated/torch.nn.CrossEntropyLoss.html

    >>> import tensorgrad as torch
    >>> terms = CrossEntropy()(torch.zeros(1, 4), {"label": torch.tensor([2])})
    >>> round(terms["loss"].item(), 4)
    1.3863
    """

    def __init__(self, target: str = "label", label_smoothing: float = 0.0) -> None:
        super().__init__()
        self.target, self.label_smoothing = target, label_smoothing

    def forward(self, pred: Any, batch: Any, **kwargs: Any) -> dict[str, Any]:
        """Return {'loss', 'accuracy'}; other arguments (batch_idx, stage, model) are ignored."""
        target = batch[self.target]
        terms = {"loss": nn.functional.cross_entropy(pred, target, label_smoothing=self.label_smoothing)}
        if not target.is_floating_point():
            with tg.no_grad():
                terms["accuracy"] = (pred.argmax(1) == target).float().mean()
        return terms
