"""Trainer: fits, validates, tests and predicts with a Module."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import data, options, parallel
from .evaluation import step_of
from .precision import Precision
from .trainer_calls import Calls, TrainerState, listed

__all__ = ["Trainer", "TrainerState"]


class Trainer(Calls):
    """The loops around a `Module`: `fit`, `validate`, `test`, `predict`.

    max_epochs (1000 unless max_steps or max_time is given; -1: no end), min_epochs, max_steps, min_steps, max_time
    ("DD:HH:MM:SS"): when `fit` ends. run: a `Run`, which gets a row each log_every_n_steps optimizer steps and one per
    epoch; checkpoints go to its folder `ckpt`. callbacks: one or a list. accelerator ("auto", "cpu", "gpu"), devices,
    strategy ("dp", "ddp", "ddp_spawn"): where, and in how many processes. precision: "32", "64", "16-mixed",
    "bf16-mixed". accumulate_grad_batches, gradient_clip_val, gradient_clip_algorithm ("norm", "value").
    limit_{train,val,test,predict}_batches: how many (int), or which part (float). overfit_batches: train and validate
    on that many. fast_dev_run: so many batches of everything and no files. val_check_interval, check_val_every_n_epoch:
    when to validate; num_sanity_val_steps: batches tried before. logger=False: no rows. TypeError for an unknown option
    names the nearest.

    Ctrl-C lets `fit` finish its step, saves and returns with `interrupted` set; the next one raises KeyboardInterrupt.
    Example: see `Module`.
    """

    go_on = 'fit(…, ckpt_path="last"), or the same command with --resume.'  # what to do after an interrupt
    first_epoch = 0  # the number of the first epoch in rows

    @options.naming_nearest
    def __init__(
        self,
        *,
        max_epochs: int | None = None,
        min_epochs: int = 0,
        max_steps: int = -1,
        min_steps: int = 0,
        max_time: Any = None,
        run: Any = None,
        callbacks: Any = None,
        logger: Any = True,
        accelerator: str = "auto",
        devices: Any = "auto",
        strategy: str = "auto",
        process_group_backend: str | None = None,
        precision: str | int = "32",
        accumulate_grad_batches: int = 1,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
        log_every_n_steps: int = 50,
        check_val_every_n_epoch: int | None = 1,
        val_check_interval: int | float = 1.0,
        limit_train_batches: int | float = 1.0,
        limit_val_batches: int | float = 1.0,
        limit_test_batches: int | float = 1.0,
        limit_predict_batches: int | float = 1.0,
        overfit_batches: int | float = 0,
        fast_dev_run: int | bool = False,
        num_sanity_val_steps: int = 0,
        enable_progress_bar: bool = True,
        enable_checkpointing: bool = True,
        enable_model_summary: bool = False,
        deterministic: bool = False,
        inference_mode: bool = True,
        detect_anomaly: bool = False,
        use_distributed_sampler: bool = True,
        default_root_dir: Any = None,
    ) -> None:
        given = {name: value for name, value in locals().items() if name not in ("self", "callbacks", "run")}
        self._options = given
        self.state, self.run, self.logger_enabled = TrainerState(), run, logger is not False
        self.callbacks: list[Any] = listed(callbacks)
        for callback in self.callbacks:
            callback.on_init_start(self)
        self._set_ends(given)
        self._set_validations(given)
        self._set_steps(given)
        self._set_places(given)
        self.enable_checkpointing = enable_checkpointing and not self.fast_dev_run
        self.lightning_module: Any = None
        self._begin()
        self._add_callbacks(enable_progress_bar)
        for callback in self.callbacks:
            callback.on_init_end(self)

    def _set_ends(self, given: dict[str, Any]) -> None:
        """Set when a fit ends, and how much of the data it uses."""
        whole, limit = options.whole, options.limit
        self.min_epochs, self.min_steps = (whole(name, given[name] or 0) for name in ("min_epochs", "min_steps"))
        self.max_steps, self.max_time = whole("max_steps", given["max_steps"], -1), options.seconds(given["max_time"])
        unbounded = self.max_steps < 0 and self.max_time is None
        epochs = given["max_epochs"] if given["max_epochs"] is not None else 1000 if unbounded else -1
        self.max_epochs = whole("max_epochs", epochs, -1)
        self.overfit_batches = limit("overfit_batches", given["overfit_batches"])
        names = {kind: f"limit_{kind}_batches" for kind in data.METHODS}
        self._limits = {kind: limit(name, given[name]) for kind, name in names.items()}
        if self.overfit_batches:
            self._limits["train"] = self._limits["val"] = self.overfit_batches
        self.fast_dev_run = int(given["fast_dev_run"])
        if self.fast_dev_run:
            self._limits = dict.fromkeys(self._limits, self.fast_dev_run)
            self.max_epochs, self.max_steps, self.max_time = 1, self.fast_dev_run, None

    def _set_validations(self, given: dict[str, Any]) -> None:
        """Set when a fit validates."""
        every = given["check_val_every_n_epoch"]
        self.check_val_every_n_epoch = None if every is None else options.whole("check_val_every_n_epoch", every, 1)
        self.val_check_interval = options.limit("val_check_interval", given["val_check_interval"]) or 1.0
        sanity = options.whole("num_sanity_val_steps", given["num_sanity_val_steps"], -1)
        self.num_sanity_val_steps = 0 if self.fast_dev_run else sanity

    def _set_steps(self, given: dict[str, Any]) -> None:
        """Set the options of a step: accumulation, clipping, precision, logging."""
        for name in ("accumulate_grad_batches", "log_every_n_steps"):
            setattr(self, name, options.whole(name, given[name], 1))
        self.gradient_clip_val, how = given["gradient_clip_val"], given["gradient_clip_algorithm"] or "norm"
        self.gradient_clip_algorithm = options.choice("gradient_clip_algorithm", how, ("norm", "value"))
        self._precision = Precision.checked(given["precision"])
        self._deterministic, self._anomaly = given["deterministic"], given["detect_anomaly"]
        self.inference_mode = given["inference_mode"]

    def _set_places(self, given: dict[str, Any]) -> None:
        """Set the devices, and the directory of files."""
        self._strategy = options.choice("strategy", given["strategy"], parallel.NAMES)
        self._backend, self.use_distributed_sampler = given["process_group_backend"], given["use_distributed_sampler"]
        self._devices = options.devices_of(given["accelerator"], given["devices"])
        self.device, self.parallel = self._devices[0], parallel.Alone()
        self._summary = given["enable_model_summary"]
        self._root = None if given["default_root_dir"] is None else Path(given["default_root_dir"])

    def _begin(self) -> None:
        """Reset the state to that of a trainer that has done nothing."""
        self.should_stop = self.interrupted = self.sanity_checking = False
        self.known: dict[str, float] = {}  # metrics by name, as they are known so far
        self.logged: dict[str, float] = {}  # those that were written in rows
        self.shown: set[str] = set()  # the names of those for progress bars
        self.results: Any = None  # what `log` writes to, at the moment
        self.optimization: Any = None
        self.fit_loop: Any = None
        self.resuming: Any = None
        self.datamodule: Any = None
        self.num_training_batches: float = 0
        self.num_val_batches: list[float] = []
        self.ckpt_path: str | None = None

    def _add_callbacks(self, bar: bool) -> None:
        """Add the default callbacks: checkpoints and log lines if there is a directory, a progress bar on a
        terminal.
        """
        from .callbacks import progress
        from .callbacks.checkpoints import ModelCheckpoint
        from .callbacks.logger import BaseLogger

        def missing(kind: type) -> bool:
            return not any(isinstance(callback, kind) for callback in self.callbacks)

        if self.enable_checkpointing and self.directory is not None and missing(ModelCheckpoint):
            self.callbacks.append(ModelCheckpoint())
        if self.run is not None and not self.fast_dev_run and missing(BaseLogger):
            self.callbacks.append(BaseLogger())
        if bar and missing(progress.Bars) and progress.on_a_terminal():
            self.callbacks.append(progress.ProgressBar())

    # ── what users call ───────────────────────────────────────────────────────────────────────────────────────────────

    def fit(
        self,
        module: Any,
        train_dataloaders: Any = None,
        val_dataloaders: Any = None,
        datamodule: Any = None,
        ckpt_path: Any = None,
    ) -> None:
        """Train. ckpt_path: a checkpoint to go on from exactly where it was saved, or "last", the newest one if there
        is any."""
        self._call("fit", module, datamodule, ckpt_path, train=train_dataloaders, val=val_dataloaders)

    def validate(
        self,
        module: Any = None,
        dataloaders: Any = None,
        datamodule: Any = None,
        ckpt_path: Any = None,
        verbose: bool = False,
    ) -> list[dict[str, float]]:
        """Run `validation_step` over the data: the metrics for each loader, which the run's next row has, too."""
        return self._call("validate", module, datamodule, ckpt_path, verbose, val=dataloaders)  # type: ignore[no-any-return]

    def test(
        self,
        module: Any = None,
        dataloaders: Any = None,
        datamodule: Any = None,
        ckpt_path: Any = None,
        verbose: bool = False,
    ) -> list[dict[str, float]]:
        """Run `test_step` over the data: the metrics for each loader, which the run's next row has, too."""
        return self._call("test", module, datamodule, ckpt_path, verbose, test=dataloaders)  # type: ignore[no-any-return]

    def predict(
        self, module: Any = None, dataloaders: Any = None, datamodule: Any = None, ckpt_path: Any = None
    ) -> list[Any]:
        """Return the results of `predict_step`, a list with an item for each batch; with several loaders, a list of
        such lists."""
        return self._call("predict", module, datamodule, ckpt_path, predict=dataloaders)  # type: ignore[no-any-return]

    def save_checkpoint(self, path: Any, weights_only: bool = False) -> None:
        """Save a checkpoint, from which `fit(ckpt_path=…)` goes on; all processes call it, and the first one writes."""
        from ..serialization import save

        if self.lightning_module is None:
            raise RuntimeError("save_checkpoint: there is no module yet; fit, validate, test and predict bring one")
        state = self.resuming.state(weights_only)
        if self.is_global_zero:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            save(state, os.fspath(path))
        self.parallel.barrier()

    def print(self, *parts: Any) -> None:
        """Print a line in the first process: in the run's log, if there is one, and on the screen."""
        if self.is_global_zero:
            (print if self.run is None or self.run.status != "running" else self.run.print)(*parts)

    # ── what loops and modules call ───────────────────────────────────────────────────────────────────────────────────

    def log_row(self, values: Mapping[str, float]) -> None:
        """Write a row of metrics to the run, at the current step."""
        self.logged.update(values)
        if self.run is not None and self.logger_enabled and self.is_global_zero and not self.fast_dev_run:
            self.run.log(
                self.global_step, {"epoch": self.current_epoch + self.first_epoch * (self.state.fn == "fit"), **values}
            )

    def stepper(self, name: str) -> Any:
        """Return the module's step of this name, in this precision and over all devices."""
        return step_of(self, self.lightning_module, name)
