"""When parameters are averaged over processes.

https://pytorch.org/docs/stable/distributed.optim.html → PostLocalSGDOptimizer
"""
from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from ....nn import processes
from .utils import average_parameters_or_parameter_groups

__all__ = ["ModelAverager", "PeriodicModelAverager"]


class ModelAverager(ABC):
    """Base class of averagers: `average_parameters` averages, `step` counts the calls."""

    def __init__(self, process_group: Any = None) -> None:
        self.process_group = processes.default_group if process_group is None else process_group
        self.step = 0

    @abstractmethod
    def average_parameters(self, params: Iterable[Any]) -> None:
        """Average parameters, if it is their turn."""


class PeriodicModelAverager(ModelAverager):
    """Averages parameters at each `period`-th step from the step `warmup_steps` on.

    https://pytorch.org/docs → PeriodicModelAverager

    Errors: ValueError for a period below 1 or a negative number of steps. With a period of 1 gradients might be
        averaged as well: UserWarning.
    """

    def __init__(self, period: int, warmup_steps: int = 0, process_group: Any = None) -> None:
        super().__init__(process_group)
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        if period < 1:
            raise ValueError("Arg ``period`` must be a positive value.")
        if period == 1:
            warnings.warn("When period is 1, no need to use model averaging because the communication cost of "
                          "all-reducing parameters will be no less than the cost of all-reducing gradients by "
                          "DistributedDataParallel in the backward pass. Therefore, only DistributedDataParallel "
                          "should be used for this case.", stacklevel=2)
        self.period, self.warmup_steps = period, warmup_steps

    def average_parameters(self, params: Iterable[Any]) -> None:
        """Average parameters or those of an optimizer's groups that have gradients, if it is their turn; count the
        step.
        """
        if self.step >= self.warmup_steps and (self.step - self.warmup_steps) % self.period == 0:
            average_parameters_or_parameter_groups(params, self.process_group)
        self.step += 1
