"""TrainingPage: a fit as a live page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import register
from .base import Callback

__all__ = ["TrainingPage"]


@register("training-page")
class TrainingPage(Callback):
    """Writes a page of `fit` that refreshes itself while it runs: loss, learning rates, gradients, weights and updates
    of each layer, dead units. See `viz.monitor`, which has every, refresh, boundary and title.

    path: the page; `training.html` in the trainer's directory, or, where there is none, in the working directory.
    optimizer: which of several. Validation is left out. Only the first process writes, and nothing is written with
    fast_dev_run. A batch whose `training_step` returns no loss is a gap.
    """

    def __init__(
        self,
        path: Any = None,
        *,
        every: int = 10,
        refresh: float = 2.0,
        boundary: Any = None,
        title: str = "Training",
        optimizer: int = 0,
    ) -> None:
        self.path, self.optimizer = None if path is None else Path(path), optimizer
        self.options = {"every": every, "refresh": refresh, "boundary": boundary, "title": title}
        self._seen: Any = None

    def on_train_start(self, trainer: Any, module: Any) -> None:
        if not trainer.is_global_zero or trainer.fast_dev_run:
            return
        from ...viz.monitor import monitor

        if not -len(trainer.optimizers) <= self.optimizer < len(trainer.optimizers):
            raise ValueError(f"TrainingPage(optimizer={self.optimizer}): the module has {len(trainer.optimizers)}")
        path = self.path or (trainer.directory or Path()) / "training.html"
        self._seen = monitor(module, trainer.optimizers[self.optimizer], path, **self.options)
        self._seen.__enter__()

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if self._seen is not None:
            loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
            self._seen.step(math.nan if loss is None else loss)

    def on_validation_start(self, trainer: Any, module: Any) -> None:
        if self._seen is not None:
            self._seen.record.paused = True

    def on_validation_end(self, trainer: Any, module: Any) -> None:
        if self._seen is not None:
            self._seen.record.paused = False

    def on_train_end(self, trainer: Any, module: Any) -> None:
        self._close(None)

    def teardown(self, trainer: Any, module: Any, stage: str) -> None:
        self._close(None)

    def on_exception(self, trainer: Any, module: Any, exception: BaseException) -> None:
        self._close(exception)

    def _close(self, error: BaseException | None) -> None:
        """Write the page for the last time."""
        seen, self._seen = self._seen, None
        if seen is not None:
            seen.__exit__(None if error is None else type(error), error, None)
