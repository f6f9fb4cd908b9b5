"""Losses of regressions."""

from __future__ import annotations

from typing import Any

from ... import nn
from . import register


class _Distance(nn.Module):
    """A mean distance between predictions and `batch[target]`."""

    def __init__(self, target: str = "target") -> None:
        super().__init__()
        self.target = target

    def forward(self, pred: Any, batch: Any, **kwargs: Any) -> dict[str, Any]:
        """Return {'loss'}; other arguments (batch_idx, stage, model) are ignored."""
        return {"loss": self.distance(pred, batch[self.target])}


@register("mse")
class MSE(_Distance):
    """The mean of squared differences from `batch[target]`.
    https://docs.pytorch.org/docs/2.13/generated/torch.nn.MSELoss.html

    >>> import tensorgrad as torch
    >>> MSE()(torch.tensor([1., 2.]), {"target": torch.tensor([1., 4.])})
    {'loss': tensor(2.)}
    """

    distance = staticmethod(nn.functional.mse_loss)


@register("l1")
class L1(_Distance):
    """The mean of absolute differences from `batch[target]`.
    https://docs.pytorch.org/docs/2.13/generated/torch.nn.L1Loss.html

    >>> import tensorgrad as torch
    >>> L1()(torch.tensor([1., 2.]), {"target": torch.tensor([1., 4.])})
    {'loss': tensor(1.)}
    """

    distance = staticmethod(nn.functional.l1_loss)
