"""Averages of weights over training (PyTorch: ``torch.optim.swa_utils``)."""
from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import TYPE_CHECKING, Any

from .. import api as tg
from ..nn import Module
from .lr_scheduler.base import LRScheduler, inside_step, per_group
from .optimizer import Optimizer
from .rule import check

if TYPE_CHECKING:
    from .._tensor import Tensor
    from ..api._kinds import Device

__all__ = [
    'AveragedModel', 'SWALR', 'get_ema_avg_fn', 'get_ema_multi_avg_fn', 'get_swa_avg_fn', 'get_swa_multi_avg_fn',
    'update_bn']


def get_ema_avg_fn(decay: float = 0.999) -> Callable:
    r"""For ``avg_fn``: an exponential moving average, :math:`\alpha a + (1 - \alpha) \theta`.

    ValueError unless ``decay`` :math:`\alpha` is in [0, 1].

    >>> import tensorgrad as torch
    >>> average = torch.optim.swa_utils.get_ema_avg_fn(0.75)
    >>> average(torch.tensor(4.0), torch.tensor(8.0), 1).item()
    5.0
    """
    check_decay(decay)

    @tg.no_grad()
    def ema_update(ema_param, current_param, num_averaged):
        return decay * ema_param + (1 - decay) * current_param
    return ema_update


def get_swa_avg_fn() -> Callable:
    r"""For ``avg_fn``: the mean of all, :math:`a + (\theta - a) / (n + 1)`.

    >>> import tensorgrad as torch
    >>> average = torch.optim.swa_utils.get_swa_avg_fn()
    >>> average(torch.tensor(4.0), torch.tensor(8.0), 3).item()
    5.0
    """
    @tg.no_grad()
    def swa_update(averaged_param, current_param, num_averaged):
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)
    return swa_update


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable:
    r"""For ``multi_avg_fn``: the exponential moving average of a list of tensors, in place.

    ValueError unless ``decay`` is in [0, 1].

    >>> import tensorgrad as torch
    >>> averages = [torch.tensor([4.0])]
    >>> torch.optim.swa_utils.get_ema_multi_avg_fn(0.75)(averages, [torch.tensor([8.0])], 1)
    >>> averages[0].item()
    5.0
    """
    check_decay(decay)

    @tg.no_grad()
    def ema_update(ema_param_list, current_param_list, _):
        for average, current in zip(ema_param_list, current_param_list, strict=True):
            if is_inexact(average):
                average.lerp_(current, 1 - decay)
            else:
                average.copy_(average * decay + current * (1 - decay))
    return ema_update


def get_swa_multi_avg_fn() -> Callable:
    r"""For ``multi_avg_fn``: the mean of all, of a list of tensors, in place.

    >>> import tensorgrad as torch
    >>> averages = [torch.tensor([4.0])]
    >>> torch.optim.swa_utils.get_swa_multi_avg_fn()(averages, [torch.tensor([8.0])], 3)
    >>> averages[0].item()
    5.0
    """
    @tg.no_grad()
    def swa_update(averaged_param_list, current_param_list, num_averaged):
        for average, current in zip(averaged_param_list, current_param_list, strict=True):
            if is_inexact(average):
                average.lerp_(current, 1 / (float(num_averaged) + 1))
            else:
                average.copy_(average + (current - average) / (num_averaged + 1))
    return swa_update


def check_decay(decay: float) -> None:
    check(not (decay < 0.0 or decay > 1.0),
          f'Invalid decay value {decay} provided. Please provide a value in [0,1] range.')


def is_inexact(x: Tensor) -> bool:
    return x.is_floating_point() or x.is_complex()


class AveragedModel(Module):
    """A copy of ``model`` whose parameters are averages (PyTorch: ``torch.optim.swa_utils.AveragedModel``).

    Call ``update_parameters(model)`` whenever the present parameters are to be added. The averages are means, unless
    ``avg_fn(average, parameter, number)`` gives others, or ``multi_avg_fn``, which changes lists of averages in place.
    Buffers are averaged too with ``use_buffers``, else copied. AssertionError if both functions are given.

    >>> import tensorgrad as torch
    >>> model = torch.nn.Linear(1, 1, bias=False)
    >>> averaged = torch.optim.swa_utils.AveragedModel(model)
    >>> for value in 1.0, 2.0, 6.0:
    ...     _ = model.weight.data.fill_(value)
    ...     averaged.update_parameters(model)
    >>> averaged.module.weight.item()
    3.0
    """

    def __init__(self, model: Module, device: int | Device | None = None, avg_fn: Callable | None = None,
                 multi_avg_fn: Callable | None = None, use_buffers: bool = False) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError('Only one of avg_fn and multi_avg_fn should be provided')
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer('n_averaged', tg.tensor(0, dtype=tg.int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        """The output of the averaged model."""
        return self.module(*args, **kwargs)

    @tg.no_grad()
    def update_parameters(self, model: Module) -> None:
        """Add the parameters of ``model`` to the averages."""
        pairs = [(mine, other.detach().to(mine.device))
                 for mine, other in zip(self._averaged(self.module), self._averaged(model), strict=False)]
        if self.n_averaged == 0:
            for mine, other in pairs:
                mine.copy_(other)
        elif self.avg_fn is not None:
            for mine, other in pairs:
                mine.copy_(self.avg_fn(mine.detach(), other, self.n_averaged.to(mine.device)))
        else:
            self._average_in_groups(pairs)
        if not self.use_buffers:
            for mine, other in zip(self.module.buffers(), model.buffers(), strict=True):
                mine.copy_(other.detach().to(mine.device))
        self.n_averaged += 1

    def _averaged(self, model: Module) -> Iterable:
        return chain(model.parameters(), model.buffers()) if self.use_buffers else model.parameters()

    def _average_in_groups(self, pairs: list[tuple]) -> None:
        """Call ``multi_avg_fn`` once for each device and dtype."""
        average = self.multi_avg_fn or get_swa_multi_avg_fn()
        groups = defaultdict(list)
        for mine, other in pairs:
            groups[str(mine.device), mine.dtype].append((mine.detach(), other))
        for group in groups.values():
            averages, currents = map(list, zip(*group, strict=True))
            average(averages, currents, self.n_averaged.to(averages[0].device))


@tg.no_grad()
def update_bn(loader: Iterable, model: Module, device: int | Device | None = None) -> None:
    """Recompute the running statistics of all batch norms of ``model`` from the inputs of ``loader``.

    Of batches that are lists or tuples, the first part is the input. (PyTorch: ``torch.optim.swa_utils.update_bn``.)

    >>> import tensorgrad as torch
    >>> model = torch.nn.BatchNorm1d(1)
    >>> torch.optim.swa_utils.update_bn([torch.tensor([[1.0], [3.0]])], model)
    >>> model.running_mean.item()
    2.0
    """
    from ..nn.modules.batchnorm import _BatchNorm
    momenta = {module: module.momentum for module in model.modules() if isinstance(module, _BatchNorm)}
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.reset_running_stats()
        module.momentum = None  # a plain mean over the batches
    for batch in loader:
        if isinstance(batch, (list, tuple)):
            batch = batch[0]
        model(batch if device is None else batch.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Anneal the rate to ``swa_lr``, then keep it (PyTorch: ``torch.optim.swa_utils.SWALR``).

    Annealing takes ``anneal_epochs``, along a cosine or a line (``anneal_strategy='cos'``, ``'linear'``).
    ValueError for another strategy or negative epochs.

    >>> import tensorgrad as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = torch.optim.swa_utils.SWALR(optimizer, swa_lr=0.5, anneal_epochs=2, anneal_strategy='linear')
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.75]
    """

    def __init__(self, optimizer: Optimizer, swa_lr: float, anneal_epochs: int = 10, anneal_strategy: str = 'cos',
                 last_epoch: int = -1) -> None:
        for lr, group in zip(per_group('swa_lr', optimizer, swa_lr), optimizer.param_groups, strict=True):
            group['swa_lr'] = lr
        check(anneal_strategy in ('cos', 'linear'),
              f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        check(isinstance(anneal_epochs, int) and anneal_epochs >= 0,
              f'anneal_epochs must be equal or greater than 0, got {anneal_epochs}')
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    @inside_step
    def get_lr(self) -> Any:
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._progress(step - 1), self._progress(step)
        rates = []
        for group in self.optimizer.param_groups:
            last, lr = group['swa_lr'], group['lr']
            start = last if before == 1 else (lr - before * last) / (1 - before)
            rates.append(last * now + start * (1 - now))
        return rates

    def _progress(self, step: int) -> float:
        """Return the progress of annealing after a step, from 0 to 1."""
        done = max(0, min(1, step / max(1, self.anneal_epochs)))
        return (1 - math.cos(math.pi * done)) / 2 if self._anneal_strategy == 'cos' else done
