"""Schedules composed of schedules."""
from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from ..optimizer import Optimizer
from ..rule import check
from .base import LRScheduler, set_value
from .plateau import ReduceLROnPlateau


class _Composite(LRScheduler):
    """Base of schedules composed of schedules of a single optimizer."""

    def _check_parts(self, schedulers: Sequence, optimizer: Optimizer) -> None:
        name = type(self).__name__
        for number, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, 'optimizer'):
                raise TypeError(f'{name} at index {number} should have `optimizer` as its attribute.')
            check(not isinstance(scheduler, ReduceLROnPlateau),
                  f'{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be '
                  f'specified when calling `step`, but got one at index {number} in the given schedulers sequence.')
            check(optimizer == scheduler.optimizer,
                  f'{name} expects all schedulers to belong to the same optimizer, but got scheduler '
                  f'{type(scheduler).__name__} at index {number} has {scheduler.optimizer}, which is different from '
                  f'{type(optimizer).__name__}.')

    def state_dict(self) -> dict:
        """Return the attributes without the optimizer, and the states of the parts."""
        state = {key: value for key, value in super().state_dict().items() if key != '_schedulers'}
        return {**state, '_schedulers': [scheduler.state_dict() for scheduler in self._schedulers]}

    def load_state_dict(self, state_dict: dict) -> None:
        super().load_state_dict({key: value for key, value in state_dict.items() if key != '_schedulers'})
        for scheduler, state in zip(self._schedulers, state_dict['_schedulers'], strict=True):
            scheduler.load_state_dict(state)


class SequentialLR(_Composite):
    """Schedules in sequence (PyTorch: ``torch.optim.lr_scheduler.SequentialLR``).

    The first runs until the first of the ``milestones``, and so on; each starts with its epoch 0.
    ValueError unless there is one milestone fewer than schedules, all of ``optimizer``.

    >>> import tensorgrad as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> S = torch.optim.lr_scheduler
    >>> parts = [S.ConstantLR(optimizer, factor=0.5, total_iters=2), S.ExponentialLR(optimizer, gamma=0.5)]
    >>> scheduler = S.SequentialLR(optimizer, parts, milestones=[2])
    >>> rates = []
    >>> for _ in range(4):
    ...     rates += scheduler.get_last_lr()
    ...     optimizer.step()
    ...     scheduler.step()
    >>> rates
    [0.5, 0.5, 1.0, 0.5]
    """

    def __init__(self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int],
                 last_epoch: int = -1) -> None:
        check(len(schedulers) >= 1,
              f'{type(self).__name__} expects at least one scheduler, but got no scheduler.')
        self._check_parts(schedulers, optimizer)
        check(len(milestones) == len(schedulers) - 1,
              'Sequential Schedulers expects number of schedulers provided to be one more than the number of milestone '
              f'points, but got number of schedulers {len(schedulers)} and the number of milestones to be equal to '
              f'{len(milestones)}')
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        for group in optimizer.param_groups:  # undo the first steps of all schedules but the first
            set_value(group, 'lr', group['initial_lr'])
        self.recursive_undo()
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def recursive_undo(self, sched: LRScheduler | None = None) -> None:
        """Set this schedule, or another, and its parts back by one epoch."""
        scheduler = self if sched is None else sched
        if hasattr(scheduler, '_schedulers'):
            for part in scheduler._schedulers:
                self.recursive_undo(part)
        elif hasattr(scheduler, 'last_epoch'):
            scheduler.last_epoch -= 1

    def step(self) -> None:
        self.last_epoch += 1
        index = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[index]
        if index > 0 and self._milestones[index - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Composite):
    """Schedules that all step at once (PyTorch: ``torch.optim.lr_scheduler.ChainedScheduler``).

    ValueError for no schedules and for schedules of different optimizers.

    >>> import tensorgrad as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> S = torch.optim.lr_scheduler
    >>> S.ChainedScheduler([S.ConstantLR(optimizer, 0.5), S.ExponentialLR(optimizer, 0.9)]).get_last_lr()
    [0.5]
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        check(len(schedulers) >= 1,
              f'{type(self).__name__} expects at least one scheduler to be chained, but got no scheduler.')
        optimizer = optimizer or schedulers[0].optimizer
        self._check_parts(schedulers, optimizer)
        self._schedulers = schedulers
        self.optimizer = optimizer
        self._last_lr = self._unchanged()

    def step(self) -> None:
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._unchanged()
