"""Callback: code that runs at fixed moments of training, kept apart from the module."""

from __future__ import annotations

from typing import Any

__all__ = ["Callback"]


class Callback:
    """Base of callbacks: override the hooks that you need; each has the trainer and the module before its arguments.

    `order` says when: 0 before the module's own hook, 1 after it, when the metrics of an epoch are complete, 2 last,
    for what saves. `state_dict` and `load_state_dict` make a checkpoint keep what a callback remembers: plain values
    and tensors.

    >>> from tensorgrad.experiment import Callback
    >>> class Counter(Callback):
    ...     batches = 0
    ...     def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
    ...         self.batches += 1
    """

    order = 0

    @property
    def state_key(self) -> str:
        """The key of the callback's state in a checkpoint."""
        return type(self).__qualname__

    def state_dict(self) -> dict[str, Any]:
        """Return the state that a checkpoint saves for this callback: plain values and tensors."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the state from a checkpoint."""

    def on_init_start(self, trainer: Any) -> None:
        """Called while the trainer is being constructed."""

    def on_init_end(self, trainer: Any) -> None:
        """Called when the trainer is constructed."""

    def setup(self, trainer: Any, module: Any, stage: str) -> None:
        """Called before anything else in `fit`, `validate`, `test` or `predict`."""

    def teardown(self, trainer: Any, module: Any, stage: str) -> None:
        """Called after everything else."""

    def on_exception(self, trainer: Any, module: Any, exception: BaseException) -> None:
        """Called when an exception ends a run; the exception is raised again afterwards."""

    def on_fit_start(self, trainer: Any, module: Any) -> None:
        """See `ModuleHooks.on_fit_start`."""

    def on_fit_end(self, trainer: Any, module: Any) -> None:
        """See `ModuleHooks.on_fit_end`."""

    def on_sanity_check_start(self, trainer: Any, module: Any) -> None:
        """See `ModuleHooks.on_sanity_check_start`."""

    def on_sanity_check_end(self, trainer: Any, module: Any) -> None:
        """See `ModuleHooks.on_sanity_check_end`."""

    def on_train_start(self, trainer: Any, module: Any) -> None:
        """See `ModuleHooks.on_train_start`."""

    def on_train_end(self, trainer: Any, module: Any) -> None:
        """See `ModuleHooks.on_train_end`."""

    def on_epoch_start(self, trainer: Any, module: Any) -> None:
        """See `ModuleHooks.on_epoch_start`."""

    def on_epoch_end(self, trainer: Any, module: Any) -> None:
        """See `ModuleHooks.on_epoch_end`."""

    def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
        """See `ModuleHooks.on_train_epoch_start`."""

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        """See `ModuleHooks.on_train_epoch_end`."""

    def on_train_batch_start(self, trainer: Any, module: Any, batch: Any, batch_idx: int) -> int | None:
        """See `ModuleHooks.on_train_batch_start`."""

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """See `ModuleHooks.on_train_batch_end`."""

    def on_validation_start(self, trainer: Any, module: Any) -> None:
        """See `ModuleHooks.on_validation_start`."""

    def on_validation_end(self, trainer: Any, module: Any) -> None:
        """See `ModuleHooks.on_validation_end`."""

    def on_validation_epoch_start(self, trainer: Any, module: Any) -> None:
        """See `ModuleHooks.on_validation_epoch_start`."""

    def on_validation_epoch_end(self, trainer: Any, module: Any) -> None:
        """See `ModuleHooks.on_validation_epoch_end`."""

    def on_validation_batch_start(
        self, trainer: Any, module: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """See `ModuleHooks.on_validation_batch_start`."""

    def on_validation_batch_end(
        self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """See `ModuleHooks.on_validation_batch_end`."""

    def on_test_start(self, trainer: Any, module: Any) -> None:
        """See `ModuleHooks.on_test_start`."""

    def on_test_end(self, trainer: Any, module: Any) -> None:
        """See `ModuleHooks.on_test_end`."""

    def on_test_epoch_start(self, trainer: Any, module: Any) -> None:
        """See `ModuleHooks.on_test_epoch_start`."""

    def on_test_epoch_end(self, trainer: Any, module: Any) -> None:
        """See `ModuleHooks.on_test_epoch_end`."""

    def on_test_batch_start(
        self, trainer: Any, module: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """See `ModuleHooks.on_test_batch_start`."""

    def on_test_batch_end(
        self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """See `ModuleHooks.on_test_batch_end`."""

    def on_predict_start(self, trainer: Any, module: Any) -> None:
        """See `ModuleHooks.on_predict_start`."""

    def on_predict_end(self, trainer: Any, module: Any) -> None:
        """See `ModuleHooks.on_predict_end`."""

    def on_predict_epoch_start(self, trainer: Any, module: Any) -> None:
        """See `ModuleHooks.on_predict_epoch_start`."""

    def on_predict_epoch_end(self, trainer: Any, module: Any) -> None:
        """See `ModuleHooks.on_predict_epoch_end`."""

    def on_predict_batch_start(
        self, trainer: Any, module: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """See `ModuleHooks.on_predict_batch_start`."""

    def on_predict_batch_end(
        self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """See `ModuleHooks.on_predict_batch_end`."""

    def on_before_zero_grad(self, trainer: Any, module: Any, optimizer: Any) -> None:
        """See `ModuleHooks.on_before_zero_grad`."""

    def on_before_backward(self, trainer: Any, module: Any, loss: Any) -> None:
        """See `ModuleHooks.on_before_backward`."""

    def on_after_backward(self, trainer: Any, module: Any) -> None:
        """See `ModuleHooks.on_after_backward`."""

    def on_before_optimizer_step(self, trainer: Any, module: Any, optimizer: Any) -> None:
        """See `ModuleHooks.on_before_optimizer_step`."""

    def on_save_checkpoint(self, trainer: Any, module: Any, checkpoint: dict[str, Any]) -> None:
        """See `ModuleHooks.on_save_checkpoint`."""

    def on_load_checkpoint(self, trainer: Any, module: Any, checkpoint: dict[str, Any]) -> None:
        """See `ModuleHooks.on_load_checkpoint`."""
