"""Schedules that multiply the learning rates by a function of the epoch."""
from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ..optimizer import Optimizer
from ..rule import check
from .base import LRScheduler, inside_step, state_of

if TYPE_CHECKING:
    from ..._tensor import Tensor


class LambdaLR(LRScheduler):
    """``lr_lambda(epoch)`` times the initial rate (PyTorch: ``torch.optim.lr_scheduler.LambdaLR``).

    ``lr_lambda`` is a function or a list of functions, one for each group; ValueError for a list of another length.

    >>> import tensorgrad as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5 ** (epoch + 1)).get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable | list[Callable], last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        groups = len(optimizer.param_groups)
        if not isinstance(lr_lambda, (list, tuple)):
            lr_lambda = [lr_lambda] * groups
        check(len(lr_lambda) == groups, f'Expected {groups} lr_lambdas, but got {len(lr_lambda)}')
        self.lr_lambdas = list(lr_lambda)
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict:
        """Return the attributes without the optimizer; for the functions, the attributes of those that are objects."""
        state = {key: value for key, value in super().state_dict().items() if key != 'lr_lambdas'}
        return {**state, 'lr_lambdas': [state_of(function) for function in self.lr_lambdas]}

    def load_state_dict(self, state_dict: dict) -> None:
        super().load_state_dict({key: value for key, value in state_dict.items() if key != 'lr_lambdas'})
        for function, state in zip(self.lr_lambdas, state_dict['lr_lambdas'], strict=True):
            if state is not None:
                function.__dict__.update(state)

    @inside_step
    def get_lr(self) -> list[float | Tensor]:
        return [lr * factor(self.last_epoch) for factor, lr in zip(self.lr_lambdas, self.base_lrs, strict=True)]


class MultiplicativeLR(LambdaLR):
    """``lr_lambda(epoch)`` times the last rate (PyTorch: ``torch.optim.lr_scheduler.MultiplicativeLR``).

    TypeError for something that is no function.

    >>> import tensorgrad as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> torch.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5).get_last_lr()
    [1.0]
    """

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable | list[Callable], last_epoch: int = -1) -> None:
        for function in lr_lambda if isinstance(lr_lambda, (list, tuple)) else [lr_lambda]:
            if not callable(function):
                raise TypeError(f'lr_lambda should be a function, but got {type(function).__name__}')
        super().__init__(optimizer, lr_lambda, last_epoch)

    @inside_step
    def get_lr(self) -> list[float | Tensor]:
        if self._is_initial:
            return self._unchanged()
        return [group['lr'] * factor(self.last_epoch)
                for factor, group in zip(self.lr_lambdas, self.optimizer.param_groups, strict=True)]


class StepLR(LRScheduler):
    r"""Multiply by ``gamma`` every ``step_size`` epochs (PyTorch: ``torch.optim.lr_scheduler.StepLR``).

    .. math:: \eta_t = \eta_0 \gamma^{\lfloor t / s \rfloor}

    >>> import tensorgrad as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> torch.optim.lr_scheduler.StepLR(optimizer, step_size=30).get_last_lr()
    [1.0]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    @inside_step
    def get_lr(self) -> list[float | Tensor]:
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return self._unchanged()
        return self._times(self.gamma)

    def _get_closed_form_lr(self):
        return [lr * self.gamma ** (self.last_epoch // self.step_size) for lr in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Multiply by ``gamma`` at each of the ``milestones`` (PyTorch: ``torch.optim.lr_scheduler.MultiStepLR``).

    >>> import tensorgrad as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[30, 80]).get_last_lr()
    [1.0]
    """

    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1,
                 last_epoch: int = -1) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    @inside_step
    def get_lr(self) -> list[float | Tensor]:
        if self.last_epoch not in self.milestones:
            return self._unchanged()
        return self._times(self.gamma ** self.milestones[self.last_epoch])

    def _get_closed_form_lr(self):
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [lr * self.gamma ** passed for lr in self.base_lrs]


class ConstantLR(LRScheduler):
    """``factor`` times the rate for ``total_iters`` epochs (PyTorch: ``torch.optim.lr_scheduler.ConstantLR``).

    ValueError unless 0 <= ``factor`` <= 1.

    >>> import tensorgrad as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> torch.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5).get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5,
                 last_epoch: int = -1) -> None:
        check(not (factor > 1.0 or factor < 0), 'Constant multiplicative factor expected to be between 0 and 1.')
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    @inside_step
    def get_lr(self) -> list[float | Tensor]:
        if self.last_epoch == 0:
            return self._times(self.factor)
        if self.last_epoch != self.total_iters:
            return self._unchanged()
        return self._times(1.0 / self.factor)

    def _get_closed_form_lr(self):
        over = self.last_epoch >= self.total_iters
        return [lr * (self.factor + over * (1 - self.factor)) for lr in self.base_lrs]


class LinearLR(LRScheduler):
    r"""A factor that goes from ``start_factor`` to ``end_factor`` (PyTorch: ``torch.optim.lr_scheduler.LinearLR``).

    .. math:: \eta_t = \eta_0 \left(a + (b - a) \min(t, T) / T\right)

    with :math:`T` = ``total_iters``. ValueError unless 0 < a <= 1 and 0 <= b <= 1.

    >>> import tensorgrad as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.25).get_last_lr()
    [0.25]
    """

    def __init__(self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0,
                 total_iters: int = 5, last_epoch: int = -1) -> None:
        check(not (start_factor > 1.0 or start_factor <= 0),
              'Starting multiplicative factor expected to be greater than 0 and less or equal to 1.')
        check(not (end_factor > 1.0 or end_factor < 0),
              'Ending multiplicative factor expected to be between 0 and 1.')
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    @inside_step
    def get_lr(self) -> list[float | Tensor]:
        if self.last_epoch == 0:
            return self._times(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._unchanged()
        rise = self.end_factor - self.start_factor
        return self._times(1.0 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise))

    def _get_closed_form_lr(self):
        rise = self.end_factor - self.start_factor
        done = min(self.total_iters, self.last_epoch)
        return [lr * (self.start_factor + rise * done / self.total_iters) for lr in self.base_lrs]


class ExponentialLR(LRScheduler):
    r"""Multiply by ``gamma`` every epoch (PyTorch: ``torch.optim.lr_scheduler.ExponentialLR``).

    .. math:: \eta_t = \eta_0 \gamma^t

    >>> import tensorgrad as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9).get_last_lr()
    [1.0]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    @inside_step
    def get_lr(self) -> list[float | Tensor]:
        return self._unchanged() if self._is_initial else self._times(self.gamma)

    def _get_closed_form_lr(self):
        return [lr * self.gamma ** self.last_epoch for lr in self.base_lrs]


class PolynomialLR(LRScheduler):
    r"""Fall to zero like a power (PyTorch: ``torch.optim.lr_scheduler.PolynomialLR``).

    .. math:: \eta_t = \eta_0 \left(1 - \min(t, T) / T\right)^p

    with :math:`T` = ``total_iters`` and :math:`p` = ``power``.

    >>> import tensorgrad as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4).get_last_lr()
    [1.0]
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    @inside_step
    def get_lr(self) -> list[float | Tensor]:
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._unchanged()
        left, left_before = (1.0 - epoch / self.total_iters for epoch in (self.last_epoch, self.last_epoch - 1))
        return self._times((left / left_before) ** self.power)

    def _get_closed_form_lr(self):
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [lr * left ** self.power for lr in self.base_lrs]
