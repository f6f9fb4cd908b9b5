"""The base class of schedules."""
from __future__ import annotations

import types
import warnings
import weakref
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

from ... import api as tg
from ..optimizer import Optimizer
from ..rule import check

if TYPE_CHECKING:
    from ..._tensor import Tensor

EPOCH_DEPRECATION_WARNING = (
    'The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use '
    '`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed '
    'form is used instead of the new chainable form, where available. Please open an issue if you are unable to '
    'replicate your use case: https://github.com/pytorch/pytorch/issues/new/choose.')
ORDER = ' See more details at https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate'


# learning rates are numbers, or tensors that are changed in place

def get_values(optimizer: Optimizer, key: str) -> list:
    """Return the values of an option, a list with one for each parameter group."""
    return [copied(group[key]) for group in optimizer.param_groups]


def copied(value: Tensor) -> Any:
    return value.clone() if isinstance(value, tg.Tensor) else value


def set_value(group: dict, key: str, value: Tensor) -> None:
    if isinstance(group[key], tg.Tensor):
        group[key].fill_(value.squeeze() if isinstance(value, tg.Tensor) else value)
    else:
        group[key] = value


def per_group(name: str, optimizer: Optimizer, value: Tensor) -> list:
    """Return a list with a value for each parameter group, from such a list or from a single value."""
    groups = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [copied(value) for _ in range(groups)]
    check(len(value) == groups, f'{name} must have the same length as optimizer.param_groups. {name} has {len(value)} '
                                f'values, param_groups has {groups}.')
    return [copied(part) for part in value]


def check_optimizer(optimizer: Optimizer) -> None:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f'{type(optimizer).__name__} is not an Optimizer')


def inside_step(get_lr: Callable) -> Callable:
    """Decorate ``get_lr`` of a schedule to warn if it is called outside of ``step``."""
    @wraps(get_lr)
    def checked(self):
        if not self._get_lr_called_within_step:
            warnings.warn('To get the last learning rate computed by the scheduler, please use `get_last_lr()`.',
                          UserWarning, stacklevel=2)
        return get_lr(self)
    return checked


def state_of(function: Any) -> dict | None:
    """Return the state to save for a user's function: the attributes of an object, None for a def or a lambda."""
    return None if isinstance(function, types.FunctionType) else function.__dict__.copy()


class LRScheduler:
    """Base class of schedules (PyTorch: ``torch.optim.lr_scheduler.LRScheduler``).

    A subclass defines ``get_lr``, the list of new learning rates, from ``self.last_epoch``, ``self.base_lrs`` (the
    rates at the start) and ``self.optimizer.param_groups``. ``last_epoch`` is the number of the last epoch when a
    training is resumed; the groups must have an ``initial_lr`` then, else KeyError is raised.

    >>> import tensorgrad as torch
    >>> class HarmonicLR(torch.optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [lr / (1 + self.last_epoch) for lr in self.base_lrs]
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = HarmonicLR(optimizer)
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for number, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault('initial_lr', copied(group['lr']))
            elif 'initial_lr' not in group:
                raise KeyError(f"param 'initial_lr' is not specified in param_groups[{number}] when resuming scheduler "
                               'with last_epoch >= 0.\nThe state of the optimizer is to be loaded first.')
        self.base_lrs = get_values(optimizer, 'initial_lr')
        self.last_epoch = last_epoch
        watch_steps(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        with self._marked('_is_initial'):
            self.step()

    @contextmanager
    def _marked(self, flag: str):
        setattr(self, flag, True)
        try:
            yield
        finally:
            setattr(self, flag, False)

    def state_dict(self) -> dict:
        """Return the schedule's attributes, without the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != 'optimizer'}

    def load_state_dict(self, state_dict: dict) -> None:
        """Load a state from ``state_dict``. Load the optimizer's state as well."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list:
        """The present learning rates of the groups."""
        return self._last_lr

    def get_lr(self) -> list:
        """The learning rates of the epoch ``self.last_epoch``; called by ``step``."""
        raise NotImplementedError(f'{type(self).__name__} does not define get_lr')

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch (or, deprecated, to a given one) and set the learning rates."""
        if self._step_count == 1:
            self._warn_of_order()
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _warn_of_order(self) -> None:
        if not hasattr(self.optimizer.step, '_wrapped_by_lr_sched'):
            warnings.warn('Seems like `optimizer.step()` has been overridden after learning rate scheduler '
                          'initialization. Please, make sure to call `optimizer.step()` before '
                          f'`lr_scheduler.step()`.{ORDER}', UserWarning, stacklevel=3)
        elif not getattr(self.optimizer, '_opt_called', False):
            warnings.warn('Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and '
                          'later, you should call them in the opposite order: `optimizer.step()` before '
                          '`lr_scheduler.step()`.  Failure to do this will result in PyTorch skipping the first '
                          f'value of the learning rate schedule.{ORDER}', UserWarning, stacklevel=3)

    def _update_lr(self, epoch: int | None = None) -> None:
        with self._marked('_get_lr_called_within_step'):
            self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
            closed_form = None if epoch is None else getattr(self, '_get_closed_form_lr', None)
            rates = self.get_lr() if closed_form is None else closed_form()
        self._set_lr(rates)

    def _set_lr(self, rates: Iterable) -> None:
        for group, lr in zip(self.optimizer.param_groups, rates, strict=True):
            set_value(group, 'lr', lr)
        self._last_lr = get_values(self.optimizer, 'lr')

    def _unchanged(self) -> list:
        return get_values(self.optimizer, 'lr')

    def _times(self, factor: float) -> list:
        return [group['lr'] * factor for group in self.optimizer.param_groups]


def watch_steps(optimizer: Optimizer) -> None:
    """Let ``optimizer.step`` note that it has been called."""
    if hasattr(optimizer.step, '_wrapped_by_lr_sched'):
        return
    step, reference = optimizer.step.__func__, weakref.ref(optimizer)  # weak: no reference cycle

    @wraps(step)
    def watched(*args, **kwargs):
        owner = reference()
        owner._opt_called = True
        return step(owner, *args, **kwargs)

    watched._wrapped_by_lr_sched = True
    optimizer.step = watched
