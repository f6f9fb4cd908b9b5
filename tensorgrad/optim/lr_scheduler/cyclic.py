"""Schedules that go up and down, and move the momentum against the learning rate."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..optimizer import Optimizer
from ..rule import check
from .base import LRScheduler, check_optimizer, inside_step, per_group, set_value, state_of

if TYPE_CHECKING:
    from ..._tensor import Tensor


class _Cyclic(LRScheduler):
    """A schedule that moves the momentum against the learning rate, if asked to."""

    def _start_momentum(self, lowest, highest, last_epoch: int) -> tuple[list, list]:
        """Set the momentum to ``highest``; return both limits as lists with an entry for each group."""
        check('momentum' in self.optimizer.defaults or 'betas' in self.optimizer.defaults,
              'optimizer must support momentum or beta1 with `cycle_momentum` option enabled')
        self.use_beta1 = 'betas' in self.optimizer.defaults
        lowest = per_group('base_momentum', self.optimizer, lowest)
        highest = per_group('max_momentum', self.optimizer, highest)
        if last_epoch == -1:
            for low, high, group in zip(lowest, highest, self.optimizer.param_groups, strict=True):
                self._set_momentum(group, high)
                group['max_momentum'], group['base_momentum'] = high, low
        return lowest, highest

    def _set_momentum(self, group: dict, momentum: float) -> None:
        if self.use_beta1:
            group['betas'] = (momentum, *group['betas'][1:])
        else:
            group['momentum'] = momentum


class CyclicLR(_Cyclic):
    r"""Go up and down between two rates (PyTorch: ``torch.optim.lr_scheduler.CyclicLR``).

    From ``base_lr`` to ``max_lr`` in ``step_size_up`` batches and back in ``step_size_down``. The height is halved with
    each cycle for ``mode='triangular2'`` and multiplied by ``gamma`` with each batch for ``'exp_range'``; or multiplied
    by ``scale_fn(x)``, where x is the number of the cycle or of the batch (``scale_mode='cycle'``, ``'iterations'``).
    With ``cycle_momentum`` the momentum goes from ``max_momentum`` to ``base_momentum`` and back.
    ValueError for an unknown mode, and for an optimizer without momentum.

    >>> import tensorgrad as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> scheduler = torch.optim.lr_scheduler.CyclicLR(optimizer, base_lr=0.0, max_lr=1.0, step_size_up=4)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    def __init__(self, optimizer: Optimizer, base_lr: float | list[float], max_lr: float | list[float],
                 step_size_up: int = 2000, step_size_down: int | None = None, mode: str = 'triangular',
                 gamma: float = 1.0, scale_fn: Callable[[float], float] | None = None, scale_mode: str = 'cycle',
                 cycle_momentum: bool = True, base_momentum: float = 0.8, max_momentum: float = 0.9,
                 last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = per_group('base_lr', optimizer, base_lr)
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups, strict=True):
                set_value(group, 'lr', lr)
        self.max_lrs = per_group('max_lr', optimizer, max_lr)
        up = float(step_size_up)
        down = up if step_size_down is None else float(step_size_down)
        self.total_size = up + down
        self.step_ratio = up / self.total_size
        check(mode in ('triangular', 'triangular2', 'exp_range') or scale_fn is not None,
              'mode is invalid and scale_fn is None')
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = 'iterations' if mode == 'exp_range' else 'cycle'
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            limits = self._start_momentum(base_momentum, max_momentum, last_epoch)
            self.base_momentums, self.max_momentums = limits
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """Return the factor for the height of the x-th cycle, or of the x-th batch."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == 'triangular2':
            return 0.5 ** (x - 1)
        return self.gamma ** x if self.mode == 'exp_range' else 1.0

    _scale_fn_ref = property(lambda self: self.scale_fn, doc="PyTorch's name of `scale_fn`.")

    @inside_step
    def get_lr(self) -> list[float | Tensor]:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        place = 1.0 + self.last_epoch / self.total_size - cycle
        height = place / self.step_ratio if place <= self.step_ratio else (place - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == 'cycle' else self.last_epoch)
        if self.cycle_momentum:
            for low, high, group in zip(self.base_momentums, self.max_momentums, self.optimizer.param_groups,
                                        strict=True):
                self._set_momentum(group, high - (high - low) * height * scale)
        return [low + (high - low) * height * scale for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict:
        """Return the attributes without the optimizer; for ``scale_fn``, the attributes if it is an object."""
        state, function = super().state_dict(), self._scale_fn_custom
        del state['_scale_fn_custom']
        return {**state, '_scale_fn_custom': None if function is None else state_of(function)}

    def load_state_dict(self, state_dict: dict) -> None:
        super().load_state_dict({key: value for key, value in state_dict.items() if key != '_scale_fn_custom'})
        if state_dict['_scale_fn_custom'] is not None:
            self._scale_fn_custom.__dict__.update(state_dict['_scale_fn_custom'])


def anneal_cosine(start: float, end: float, done: float) -> float:
    return end + (start - end) / 2.0 * (math.cos(math.pi * done) + 1)


def anneal_linearly(start: float, end: float, done: float) -> float:
    return (end - start) * done + start


class OneCycleLR(_Cyclic):
    """Up to ``max_lr`` and down again, once (PyTorch: ``torch.optim.lr_scheduler.OneCycleLR``).

    From ``max_lr / div_factor`` to ``max_lr`` in the first ``pct_start`` of the batches, then down to
    ``max_lr / div_factor / final_div_factor``; with ``three_phase`` first back in as many batches, and down in the
    rest. There are ``total_steps`` batches, or ``epochs * steps_per_epoch``. ``anneal_strategy`` is ``'cos'`` or
    ``'linear'``. With ``cycle_momentum`` the momentum goes from ``max_momentum`` to ``base_momentum`` and back.
    ValueError for options out of range, for an optimizer without momentum, and for a step too many.

    >>> import tensorgrad as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=10, div_factor=4).get_last_lr()
    [0.25]
    """

    def __init__(self, optimizer: Optimizer, max_lr: float | list[float], total_steps: int | None = None,
                 epochs: int | None = None, steps_per_epoch: int | None = None, pct_start: float = 0.3,
                 anneal_strategy: str = 'cos', cycle_momentum: bool = True, base_momentum: float | list[float] = 0.85,
                 max_momentum: float | list[float] = 0.95, div_factor: float = 25.0, final_div_factor: float = 1e4,
                 three_phase: bool = False, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = count_steps(total_steps, epochs, steps_per_epoch)
        check(isinstance(pct_start, float) and 0 <= pct_start <= 1,
              f'Expected float between 0 and 1 pct_start, but got {pct_start}')
        check(anneal_strategy in ('cos', 'linear'),
              f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._schedule_phases = one_cycle_phases(self.total_steps, pct_start, three_phase)
        self._anneal_func_type = anneal_strategy
        max_lrs = per_group('max_lr', optimizer, max_lr)
        if last_epoch == -1:
            for group, highest in zip(optimizer.param_groups, max_lrs, strict=True):
                group['initial_lr'] = highest / div_factor
                group['max_lr'] = highest
                group['min_lr'] = group['initial_lr'] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._start_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    _annealing_cos, _annealing_linear = staticmethod(anneal_cosine), staticmethod(anneal_linearly)

    @property
    def _anneal_func(self) -> Callable[[float, float, float], float]:
        """The function of start, end and share done; old files keep it as `anneal_func`."""
        if '_anneal_func_type' not in self.__dict__:
            return self.anneal_func  # type: ignore[attr-defined, no-any-return]
        return anneal_cosine if self._anneal_func_type == 'cos' else anneal_linearly

    @inside_step
    def get_lr(self) -> list[float | Tensor]:
        batch = self.last_epoch
        check(batch <= self.total_steps,
              f'Tried to step {batch} times. The specified number of total steps is {self.total_steps}')
        start, phases = 0.0, iter(self._schedule_phases)
        phase = next(phases)
        while batch > phase['end_step'] and phase is not self._schedule_phases[-1]:
            start, phase = phase['end_step'], next(phases)
        done = (batch - start) / (phase['end_step'] - start)
        anneal = self._anneal_func
        if self.cycle_momentum:
            for group in self.optimizer.param_groups:
                self._set_momentum(group, anneal(group[phase['start_momentum']], group[phase['end_momentum']], done))
        return [anneal(group[phase['start_lr']], group[phase['end_lr']], done)
                for group in self.optimizer.param_groups]


def count_steps(total_steps: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
    def positive(name: str, value) -> int:
        check(isinstance(value, int) and value > 0, f'Expected positive integer {name}, but got {value}')
        return value

    if total_steps is not None:
        return positive('total_steps', total_steps)
    check(epochs is not None and steps_per_epoch is not None,
          'You must define either total_steps OR (epochs AND steps_per_epoch)')
    return positive('epochs', epochs) * positive('steps_per_epoch', steps_per_epoch)


def one_cycle_phases(steps: int, first: float, three_phase: bool) -> list[dict]:
    """Return, for each phase, its end and the options of a group between which it moves."""
    points = [('initial_lr', 'max_momentum', 0.0), ('max_lr', 'base_momentum', float(first * steps) - 1)]
    if three_phase:
        points.append(('initial_lr', 'max_momentum', float(2 * first * steps) - 2))
    points.append(('min_lr', 'max_momentum', steps - 1))
    return [{'end_step': end, 'start_lr': lr, 'end_lr': next_lr, 'start_momentum': momentum,
             'end_momentum': next_momentum}
            for (lr, momentum, _), (next_lr, next_momentum, end) in zip(points, points[1:], strict=False)]
