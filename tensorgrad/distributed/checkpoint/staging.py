"""Copies of state dicts that training does not change, for saves that go on behind it."""
from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from ... import api as tg

__all__ = ["AsyncStager", "BlockingAsyncStager", "DefaultStager", "StagingOptions", "staged"]


@runtime_checkable
class AsyncStager(Protocol):
    """Anything that copies a state dict for `async_save`.

    https://pytorch.org/docs → torch.distributed.checkpoint.staging.AsyncStager
    """

    def stage(self, state_dict: dict[str, Any]) -> Any:
        """Return the copy, or a future of it."""

    def close(self) -> None:
        """End; the program calls this after the last save."""


@dataclass
class StagingOptions:
    """How PyTorch's `DefaultStager` copies from a GPU.

    Here `use_async_staging` alone changes something: `stage` gives a future, `async_save` a pair.
    """

    use_pinned_memory: bool = True
    use_shared_memory: bool = True
    use_async_staging: bool = True
    use_non_blocking_copy: bool = True


class DefaultStager:
    """Copies state dicts to the CPU. https://pytorch.org/docs → torch.distributed.checkpoint.staging.DefaultStager"""

    def __init__(self, config: StagingOptions | None = None) -> None:
        self.config = StagingOptions() if config is None else config

    def stage(self, state_dict: dict[str, Any]) -> Any:
        """Return the copy, or a future of it that has ended: training may change tensors at once."""
        copy = staged(state_dict)
        if not self.config.use_async_staging:
            return copy
        future: Future[Any] = Future()
        future.set_result(copy)
        return future

    def close(self) -> None:
        """Do nothing: nothing is kept between saves."""


class BlockingAsyncStager(DefaultStager):
    """Copies state dicts to the CPU.

    https://pytorch.org/docs → torch.distributed.checkpoint.staging.BlockingAsyncStager
    """

    def __init__(self, cache_staged_state_dict: bool = False, type_check: bool = False) -> None:
        super().__init__(StagingOptions(use_async_staging=False))


def staged(value: Any) -> Any:
    """Return a copy of nested dicts, lists and tuples, their tensors on the CPU. Tensors that are one tensor stay one.

    >>> import tensorgrad as torch
    >>> x = torch.ones(2)
    >>> copy = staged({"x": x})
    >>> x.zero_(), copy
    (tensor([0., 0.]), {'x': tensor([1., 1.])})
    """
    return _staged(value, {})


def _staged(value: Any, known: dict[int, Any]) -> Any:
    if isinstance(value, tg.Tensor):
        if id(value) not in known:
            known[id(value)] = value.detach().to("cpu", copy=True)
        return known[id(value)]
    if isinstance(value, Mapping):
        return {key: _staged(item, known) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)([_staged(item, known) for item in value])
    return deepcopy(value)
