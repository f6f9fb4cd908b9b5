"""Read-only attributes of a trainer: its position, its metrics, its directories."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from .. import api as tg

__all__ = ["Facts"]


class Facts:
    """Base of `Trainer`: attributes that are computed on access."""

    fit_loop: Any
    optimization: Any
    parallel: Any
    results: Any
    run: Any
    source: Any
    state: Any
    callbacks: list[Any]
    known: dict[str, float]
    logged: dict[str, float]
    shown: set[str]
    max_epochs: int
    max_steps: int
    accumulate_grad_batches: int
    num_training_batches: float
    logger_enabled: bool
    _devices: list[Any]
    _root: Path | None

    @property
    def current_epoch(self) -> int:
        """The number of the epoch, from 0; after a fit the number of epochs done."""
        return self.fit_loop.epoch if self.fit_loop is not None else 0

    @property
    def global_step(self) -> int:
        """The number of batches that ended with a step of the optimizers."""
        return self.fit_loop.global_step if self.fit_loop is not None else 0

    def metrics(self) -> dict[str, float]:
        """All metrics by name, as plain numbers: those of the last epoch and validation, and the latest of steps."""
        latest = {} if self.results is None or not self.results.per_batch else self.results.latest()
        return self.known | dict(latest)

    @property
    def callback_metrics(self) -> dict[str, Any]:
        """All metrics by name, as tensors."""
        return {name: tg.tensor(value) for name, value in self.metrics().items()}

    @property
    def logged_metrics(self) -> dict[str, Any]:
        """The metrics that were written in rows, each as it was last, as tensors."""
        return {name: tg.tensor(value) for name, value in self.logged.items()}

    @property
    def progress_bar_metrics(self) -> dict[str, float]:
        """The metrics logged with `prog_bar=True`."""
        latest = {} if self.results is None else self.results.latest(True)
        return {name: value for name, value in self.known.items() if name in self.shown} | dict(latest)

    @property
    def is_global_zero(self) -> bool:
        """True in the first process, which writes files."""
        return self.parallel.rank == 0

    global_rank = property(lambda self: self.parallel.rank)
    world_size = property(lambda self: self.parallel.world)
    num_devices = property(lambda self: len(self._devices))
    optimizers = property(lambda self: [] if self.optimization is None else self.optimization.optimizers)
    lr_schedulers = property(
        lambda self: (
            [] if self.optimization is None else [schedule.scheduler for schedule in self.optimization.schedules]
        )
    )
    lr_scheduler_configs = property(lambda self: [] if self.optimization is None else self.optimization.schedules)
    logger = property(lambda self: self.run if self.logger_enabled else None)
    training = property(lambda self: self.state.stage == "train")
    validating = property(lambda self: self.state.stage == "validate")
    testing = property(lambda self: self.state.stage == "test")
    predicting = property(lambda self: self.state.stage == "predict")
    evaluating = property(lambda self: self.state.stage in ("validate", "test"))
    train_dataloader = property(lambda self: next(iter(self.source.loaders("train")), None))
    val_dataloaders = property(lambda self: self.source.loaders("val"))

    @property
    def estimated_stepping_batches(self) -> float:
        """How many optimizer steps the fit will have, infinity if it has no end; `configure_optimizers` may ask."""
        if self.max_epochs == -1:
            return self.max_steps if self.max_steps >= 0 else math.inf
        steps = (
            math.inf
            if self.num_training_batches == math.inf
            else math.ceil(self.num_training_batches / self.accumulate_grad_batches) * self.max_epochs
        )
        return min(steps, self.max_steps) if self.max_steps >= 0 else steps

    @property
    def checkpoint_callbacks(self) -> list[Any]:
        """The ModelCheckpoints."""
        from .callbacks.checkpoints import ModelCheckpoint

        return [callback for callback in self.callbacks if isinstance(callback, ModelCheckpoint)]

    checkpoint_callback = property(lambda self: next(iter(self.checkpoint_callbacks), None))

    @property
    def directory(self) -> Path | None:
        """Where files go: the run's directory, or `default_root_dir`, or nowhere."""
        return self.run.path if self.run is not None else self._root

    @property
    def checkpoint_directory(self) -> Path | None:
        """Where checkpoints go: the first ModelCheckpoint's `dirpath`, or the folder `ckpt` of the directory, or
        nowhere."""
        for callback in self.checkpoint_callbacks:
            if callback.dirpath is not None:
                return Path(callback.dirpath)
        return None if self.directory is None else self.directory / "ckpt"
