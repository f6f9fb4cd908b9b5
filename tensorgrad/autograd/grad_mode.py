"""Modes that record gradients or not, under the name of PyTorch's module, and switches that are seldom needed."""
from __future__ import annotations

import threading
from typing import Any

from ..core.mode import Switch, enable_grad, inference_mode, no_grad, set_grad_enabled
from ..core.tape import TensorBase


class Multithreading(threading.local):
    """The notes of set_multithreading_enabled, of each thread."""

    enabled = True


multithreading = Multithreading()


class set_multithreading_enabled(Switch):
    """Accept a setting for backward in several threads and ignore it: backward uses one.

    https://pytorch.org/docs → torch.autograd.grad_mode
    """

    def __init__(self, mode: bool) -> None:
        self.before, self.on = multithreading.enabled, mode
        multithreading.enabled = mode

    def clone(self) -> Any:
        return set_multithreading_enabled(self.on)

    def __enter__(self) -> None:
        multithreading.enabled = self.on

    def __exit__(self, *exception: object) -> None:
        multithreading.enabled = self.before


def is_multithreading_enabled() -> bool:
    """Return the setting of `set_multithreading_enabled`."""
    return multithreading.enabled


class _unsafe_preserve_version_counter(Switch):
    """Writes to these tensors inside the block go unnoticed."""

    def __init__(self, tensors: Any) -> None:
        self.tensors = (tensors,) if isinstance(tensors, TensorBase) else tuple(tensors)

    def clone(self) -> Any:
        return _unsafe_preserve_version_counter(self.tensors)

    def __enter__(self) -> None:
        self.before = [(t._storage, t._storage.version, t._storage.written, t._storage.dates) for t in self.tensors]

    def __exit__(self, *exception: object) -> None:
        for storage, version, written, dates in self.before:
            storage.version, storage.written, storage.dates = version, written, dates


__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled", "set_multithreading_enabled"]
