"""Processes that run out of data at different times.

https://pytorch.org/docs/stable/distributed.algorithms.join.html
"""
from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from ... import api as tg
from ..processes import at_once, finish

__all__ = ["Join", "JoinHook", "Joinable"]

FAR_BEHIND = 1000       # steps without data of its own from which on a process warns


class JoinHook:
    """Collectives by which a process without more data answers the others.

    https://pytorch.org/docs → torch.distributed.algorithms.JoinHook
    """

    def main_hook(self) -> None:
        """Take part in what the others do together in one step; called again and again until all are done."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Called once when all are done; `is_last_joiner` in those that were busy in the last step."""


class Config(NamedTuple):
    """State of the `Join` block that a Joinable is in."""

    enable: bool
    throw_on_early_termination: bool
    is_first_joinable: bool

    def notify(self, joinable: Any) -> tuple[Any, Any] | None:
        """Tell the processes that are done that this one is not: the number of busy ones, and what to wait for."""
        if not self.is_first_joinable or not self.enable:
            return None
        group, device = joinable.join_process_group, joinable.join_device
        busy = tg.ones(1, device=device)
        work = group.allreduce(busy)
        if self.throw_on_early_termination:
            done = tg.zeros(1, device=device)
            at_once(group.allreduce, done)
            if done.item():
                raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        return busy, work


class Joinable(ABC):
    """Base class of objects that take part in `Join`.

    A subclass calls this `__init__`, and `Join.notify_join_context(self)` before it communicates in a step.

    https://pytorch.org/docs → torch.distributed.algorithms.Joinable
    """

    @abstractmethod
    def __init__(self) -> None:
        super().__init__()
        self._join_config = Config(False, False, False)

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return the JoinHook of this process; `kwargs` are those that Join was given."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """Where tensors have to be that are exchanged."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The processes that work together."""


class Join:
    """A block for processes with unlike numbers of batches: `with Join([model, optimizer]): …`.

    A process that leaves the block runs the hooks of all joinables again and again, until all processes have left it.
    https://pytorch.org/docs → torch.distributed.algorithms.Join

    Args:
        joinables: what communicates in each step; the first counts who is busy
        enable: whether the block does anything
        throw_on_early_termination: whether RuntimeError ends all processes once one is done
        kwargs: for the `join_hook` of each joinable
    Errors: ValueError without a joinable, or if their process groups are not one.

    >>> import tensorgrad as torch
    >>> import tensorgrad.distributed as dist
    >>> from tensorgrad.distributed.algorithms.join import Join
    >>> dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
    >>> with Join([model]):
    ...     for count in (3, 2, 4):
    ...         model(torch.ones(count, 2)).sum().backward()
    >>> model.module.bias.grad
    tensor([9.])
    >>> dist.destroy_process_group()
    """

    def __init__(self, joinables: list[Any], enable: bool = True, throw_on_early_termination: bool = False,
                 **kwargs: Any) -> None:
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        groups = [joinable.join_process_group for joinable in joinables]
        if any(group is not groups[0] for group in groups):
            raise ValueError("Using join context manager with multiple process groups")
        self._hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        self._enable, self._throws = enable, throw_on_early_termination
        self._group, self._device = groups[0], joinables[0].join_device
        for joinable in joinables:
            joinable._join_config = Config(enable, throw_on_early_termination, joinable is joinables[0])

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if not self._enable or kind is not None:
            return
        steps = 0
        while self._busy():
            if self._throws:
                at_once(self._group.allreduce, tg.ones(1, device=self._device))
                raise RuntimeError(f"Rank {self._group.rank()} exhausted all inputs.")
            for hook in self._hooks:
                hook.main_hook()
            steps += 1
            if steps == FAR_BEHIND + 1:
                warnings.warn(f"Detected uneven input skew of greater than {FAR_BEHIND}. This means that rank "
                              f"{self._group.rank()} has at least {FAR_BEHIND} fewer inputs than other "
                              "currently-active ranks. This level of skew could lead to performance degradation during "
                              "training.",
                              stacklevel=2)
        for hook in self._hooks:
            hook.post_hook(steps == 0)

    def _busy(self) -> int:
        """How many processes have data."""
        count = tg.zeros(1, device=self._device)
        finish(self._group.allreduce(count))        # begun as in `notify`, for MPI tells the two ways of waiting apart
        return int(count.item())

    @staticmethod
    def notify_join_context(joinable: Any) -> Any:
        """Tell the processes that are done that this one is not; what to wait for, if the joinable is the first of its
        block.

        Errors: RuntimeError if a process is done and the block ends all early; AssertionError if Joinable's `__init__`
            was not called.
        """
        if not hasattr(joinable, "_join_config"):
            raise AssertionError(f"Check that the {type(joinable)} constructor calls the ``Joinable`` constructor")
        told = joinable._join_config and joinable._join_config.notify(joinable)
        return told and told[1]
