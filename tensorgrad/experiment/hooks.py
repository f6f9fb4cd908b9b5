"""Hooks: methods of a `Module`, a `DataModule` and callbacks that are called at fixed moments of training.

Overridden hooks are looked up once, when a loop begins; the others cost nothing afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

__all__ = ["DataHooks", "Hooks", "ModuleHooks", "overrides"]


class ModuleHooks:
    """Hooks that a `Module` may override.

    A callback has hooks of these names, which take the trainer and the module first.
    """

    def setup(self, stage: str) -> None:
        """Before anything else of `fit`, `validate`, `test` or `predict`, the name of which is `stage`."""

    def teardown(self, stage: str) -> None:
        """After everything else."""

    def on_fit_start(self) -> None:
        """When `fit` begins: the module is on its device, a checkpoint is restored."""

    def on_fit_end(self) -> None:
        """When `fit` ends."""

    def on_sanity_check_start(self) -> None:
        """Before the batches of validation that are tried before training."""

    def on_sanity_check_end(self) -> None:
        """After them."""

    def on_train_start(self) -> None:
        """Before the first epoch."""

    def on_train_end(self) -> None:
        """After the last epoch."""

    def on_epoch_start(self) -> None:
        """At the start of an epoch of any stage."""

    def on_epoch_end(self) -> None:
        """At the end of an epoch of any stage."""

    def on_train_epoch_start(self) -> None:
        """At the start of an epoch of training; once more where one is resumed."""

    def on_train_epoch_end(self) -> None:
        """At the end of an epoch of training, after its validation: what is logged here is part of the epoch's
        metrics."""

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> int | None:
        """Before a batch; -1 skips the rest of the epoch."""

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        """After a batch, with what `training_step` returned."""

    def on_validation_start(self) -> None:
        """Before a validation."""

    def on_validation_end(self) -> None:
        """After a validation, when its metrics are complete."""

    def on_validation_model_eval(self) -> None:
        """Put the module into evaluation mode."""
        self.eval()  # type: ignore[attr-defined]

    def on_test_model_eval(self) -> None:
        """Put the module into evaluation mode."""
        self.eval()  # type: ignore[attr-defined]

    def on_predict_model_eval(self) -> None:
        """Put the module into evaluation mode."""
        self.eval()  # type: ignore[attr-defined]

    def on_validation_epoch_start(self) -> None:
        """Before the batches of a validation."""

    def on_validation_epoch_end(self) -> None:
        """After the batches of a validation: what is logged here is part of its metrics."""

    def on_validation_batch_start(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
        """Before a batch of a validation."""

    def on_validation_batch_end(self, outputs: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
        """After it."""

    def on_test_start(self) -> None:
        """Before a test."""

    def on_test_end(self) -> None:
        """After a test, when its metrics are complete."""

    def on_test_epoch_start(self) -> None:
        """Before the batches of a test."""

    def on_test_epoch_end(self) -> None:
        """After the batches of a test: what is logged here is part of its metrics."""

    def on_test_batch_start(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
        """Before a batch of a test."""

    def on_test_batch_end(self, outputs: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
        """After it."""

    def on_predict_start(self) -> None:
        """Before a prediction."""

    def on_predict_end(self) -> None:
        """After it."""

    def on_predict_epoch_start(self) -> None:
        """Before the batches of a prediction."""

    def on_predict_epoch_end(self) -> None:
        """After them."""

    def on_predict_batch_start(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
        """Before a batch of a prediction."""

    def on_predict_batch_end(self, outputs: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
        """After it."""

    def on_before_zero_grad(self, optimizer: Any) -> None:
        """Before gradients are dropped."""

    def on_before_backward(self, loss: Any) -> None:
        """Before the backward pass of the loss."""

    def on_after_backward(self) -> None:
        """After the gradients are computed; in mixed precision they are still scaled."""

    def on_before_optimizer_step(self, optimizer: Any) -> None:
        """Before gradients are clipped and used."""

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Before a checkpoint is written: add plain values or tensors."""

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Before a checkpoint is restored."""


class DataHooks:
    """Hooks that move a batch to the device; a `DataModule` or a `Module` may override them."""

    def on_before_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        """The batch, changed before it goes to the device."""
        return batch

    def transfer_batch_to_device(self, batch: Any, device: Any, dataloader_idx: int) -> Any:
        """The batch on the device: tensors in dicts, lists and tuples, and whatever has `to`."""
        from .batches import moved

        return moved(batch, device)

    def on_after_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        """The batch, changed on the device."""
        return batch


def overrides(thing: Any, name: str, *bases: type) -> bool:
    """Return True if an object has a method of this name that is not inherited unchanged from `bases`."""
    if name in getattr(thing, "__dict__", ()):
        return True
    method = getattr(type(thing), name, None)
    return method is not None and all(method is not getattr(base, name, None) for base in bases)


class Hooks:
    """The overridden hooks in call order: callbacks, the module, callbacks whose `order` is above zero."""

    def __init__(self, trainer: Any, module: Any) -> None:
        self._trainer, self._module = trainer, module
        self._callbacks = sorted(trainer.callbacks, key=lambda callback: callback.order)
        self._found: dict[tuple[str, bool | None], list[Callable[..., Any]]] = {}

    def find(self, name: str, late: bool | None = None) -> list[Callable[..., Any]]:
        """Return the methods of a hook; `late` True: only callbacks' after the module, False: only the others."""
        key = name, late
        if key not in self._found:
            self._found[key] = self._early(name) * (late is not True) + self._late(name) * (late is not False)
        return self._found[key]

    def _early(self, name: str) -> list[Callable[..., Any]]:
        module = self._module
        own = [getattr(module, name)] if module is not None and overrides(module, name, ModuleHooks) else []
        return self._of_callbacks(name, lambda order: order <= 0) + own

    def _late(self, name: str) -> list[Callable[..., Any]]:
        return self._of_callbacks(name, lambda order: order > 0)

    def _of_callbacks(self, name: str, chosen: Callable[[int], bool]) -> list[Callable[..., Any]]:
        from .callbacks.base import Callback

        return [
            partial(getattr(callback, name), self._trainer, self._module)
            for callback in self._callbacks
            if chosen(callback.order) and overrides(callback, name, Callback)
        ]

    def __call__(self, name: str, *args: Any, late: bool | None = None) -> None:
        """Call the methods of a hook in order."""
        for hook in self.find(name, late):
            hook(*args)
