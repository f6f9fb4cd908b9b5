"""A schedule that follows a metric."""
from __future__ import annotations

import math
import warnings
from typing import Any

from ..optimizer import Optimizer
from ..rule import check
from .base import EPOCH_DEPRECATION_WARNING, LRScheduler, check_optimizer, set_value


class ReduceLROnPlateau(LRScheduler):
    """Multiply by ``factor`` when a metric stops improving (PyTorch: ``torch.optim.lr_scheduler.ReduceLROnPlateau``).

    The metric is to fall (``mode='min'``) or to rise (``'max'``); it has improved if it beats the best by
    ``threshold``, relative (``threshold_mode='rel'``) or absolute (``'abs'``). After more than ``patience`` epochs
    without that, the rates are reduced, not below ``min_lr`` and not by less than ``eps``, and bad epochs are not
    counted for ``cooldown`` epochs. ValueError for ``factor`` >= 1 and unknown modes.

    >>> import tensorgrad as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
    >>> for loss in 3.0, 2.0, 2.0:
    ...     scheduler.step(loss)
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, mode: str = 'min', factor: float = 0.1, patience: int = 10,
                 threshold: float = 1e-4, threshold_mode: str = 'rel', cooldown: int = 0,
                 min_lr: float | list[float] = 0, eps: float = 1e-8) -> None:
        check(not factor >= 1.0, 'Factor should be < 1.0.')
        check_optimizer(optimizer)
        self.factor = factor
        self.optimizer = optimizer
        groups = len(optimizer.param_groups)
        if isinstance(min_lr, (list, tuple)):
            check(len(min_lr) == groups, f'expected {groups} min_lrs, got {len(min_lr)}')
            self.default_min_lr = None
            self.min_lrs = list(min_lr)
        else:
            self.default_min_lr = min_lr
            self.min_lrs = [min_lr] * groups
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = self._unchanged()
        check(mode in ('min', 'max'), f'mode {mode} is unknown!')
        check(threshold_mode in ('rel', 'abs'), f'threshold mode {threshold_mode} is unknown!')
        self.mode_worse = math.inf if mode == 'min' else -math.inf
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self._reset()

    def _reset(self) -> None:
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:
        """Record the metric of an epoch, and reduce the rates if it has not improved for ``patience`` epochs."""
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        current = float(metrics)
        if self._is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr(self.last_epoch)
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = self._unchanged()

    def _reduce_lr(self, epoch: int) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f'The number of param groups in the `optimizer` ({len(groups)}) differs from when '
                    f'`ReduceLROnPlateau` was initialized ({len(self.min_lrs)}), usually due to a new param group '
                    'being added to the optimizer. Please modify the `min_lrs` field to match the length of the '
                    '`optimizer` param groups.')
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            old = float(group['lr'])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                set_value(group, 'lr', new)

    @property
    def in_cooldown(self) -> bool:
        return self.cooldown_counter > 0

    def _is_better(self, metric: float, best: float) -> bool:
        sign = 1 if self.mode == 'max' else -1
        bound = best * (1.0 + sign * self.threshold) if self.threshold_mode == 'rel' else best + sign * self.threshold
        return metric > bound if self.mode == 'max' else metric < bound
