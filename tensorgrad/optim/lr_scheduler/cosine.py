"""Schedules along a cosine."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..optimizer import Optimizer
from ..rule import check
from .base import LRScheduler, inside_step

if TYPE_CHECKING:
    from ..._tensor import Tensor


class CosineAnnealingLR(LRScheduler):
    r"""Swing between the initial rate and ``eta_min`` (PyTorch: ``torch.optim.lr_scheduler.CosineAnnealingLR``).

    .. math:: \eta_t = \eta_{min} + \tfrac12 (\eta_0 - \eta_{min}) \left(1 + \cos(\pi t / T_{max})\right)

    >>> import tensorgrad as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10).get_last_lr()
    [1.0]
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    @inside_step
    def get_lr(self) -> list[float | Tensor]:
        if self._is_initial:
            return self._unchanged()
        if self._step_count == 1 and self.last_epoch > 0:
            return self._get_closed_form_lr()
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # one past the minimum: the ratio is undefined
            return [group['lr'] + (lr - self.eta_min) * (1 - math.cos(math.pi / self.T_max)) / 2
                    for lr, group in zip(self.base_lrs, self.optimizer.param_groups, strict=True)]
        ratio = self._height(self.last_epoch) / self._height(self.last_epoch - 1)
        return [ratio * (group['lr'] - self.eta_min) + self.eta_min for group in self.optimizer.param_groups]

    def _get_closed_form_lr(self):
        return [self.eta_min + (lr - self.eta_min) * self._height(self.last_epoch) / 2 for lr in self.base_lrs]

    def _height(self, epoch: int) -> float:
        return 1 + math.cos(math.pi * epoch / self.T_max)


class CosineAnnealingWarmRestarts(LRScheduler):
    r"""Fall from the initial rate to ``eta_min``, over and over
    (PyTorch: ``torch.optim.lr_scheduler.CosineAnnealingWarmRestarts``).

    .. math:: \eta_t = \eta_{min} + \tfrac12 (\eta_0 - \eta_{min}) \left(1 + \cos(\pi T_{cur} / T_i)\right)

    :math:`T_{cur}` counts the epochs since the last restart; the first cycle has the length ``T_0``, and each is
    ``T_mult`` times as long as the one before. ``step`` also takes fractions of epochs.
    ValueError unless ``T_0`` and ``T_mult`` are positive integers.

    >>> import tensorgrad as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=4)
    >>> scheduler.step(2.0)
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0,
                 last_epoch: int = -1) -> None:
        check(T_0 > 0 and isinstance(T_0, int), f'Expected positive integer T_0, but got {T_0}')
        check(T_mult >= 1 and isinstance(T_mult, int), f'Expected integer T_mult >= 1, but got {T_mult}')
        check(isinstance(eta_min, (float, int)),
              f'Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}')
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur = last_epoch
        super().__init__(optimizer, last_epoch)

    @inside_step
    def get_lr(self) -> list[float | Tensor]:
        height = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return [self.eta_min + (lr - self.eta_min) * height / 2 for lr in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            check(epoch >= 0, f'Expected non-negative epoch, but got {epoch}')
            self._enter_cycle(epoch)
        self.last_epoch = math.floor(epoch)
        with self._marked('_get_lr_called_within_step'):
            rates = self.get_lr()
        self._set_lr(rates)

    def _enter_cycle(self, epoch: float) -> None:
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:  # the first n cycles last T_0 (T_multⁿ - 1) / (T_mult - 1) epochs
            cycles = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult ** cycles - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult ** cycles
