"""A learning rate that decreases linearly, then remains constant."""
from __future__ import annotations

from ..optim import Optimizer
from ..optim.lr_scheduler import LRScheduler

__all__ = ["LinearWithMinLR"]


class LinearWithMinLR(LRScheduler):
    """Decreases the learning rate linearly from η₀ to `min_lr` in `num_steps` steps.

    The rate is updated each `update_freq` steps, and constant at the end.

    η(t) = η₀ − (η₀ − min_lr)·min(t, num_steps) / num_steps, where t is the last multiple of `update_freq`; with
    `update_freq` below 1 nothing is changed.
    A rate below `min_lr` is not changed. Errors: ValueError unless `num_steps` is positive.

    >>> import tensorgrad as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler, rates = LinearWithMinLR(optimizer, num_steps=4, min_lr=0.2), []
    >>> for _ in range(6):
    ...     optimizer.step()
    ...     scheduler.step()
    ...     rates.append(round(scheduler.get_last_lr()[0], 6))
    >>> rates
    [0.8, 0.6, 0.4, 0.2, 0.2, 0.2]
    """

    def __init__(self, optimizer: Optimizer, num_steps: int, update_freq: int = 1, min_lr: float = 1e-5,
                 last_epoch: int = -1) -> None:
        if num_steps <= 0:
            raise ValueError(f"num_steps must be positive, got {num_steps}")
        self.num_steps, self.update_freq, self.min_lr = num_steps, update_freq, min_lr
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list:
        if self.update_freq < 1:
            return self._unchanged()
        t = self.last_epoch
        done = 1.0 if t >= self.num_steps else (t - t % self.update_freq) / self.num_steps
        return [lr - (lr - min(lr, self.min_lr)) * done for lr in self.base_lrs]
