"""Trainer: fits, validates, tests and predicts with a Module."""
from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import api as tg
from . import data, options, parallel
from .evaluation import Evaluation, by_loader, limited, step_of
from .hooks import Hooks
from .interrupting import interruptible
from .loops import FitLoop
from .module import Module
from .optimization import Optimization
from .precision import Precision

__all__ = ["Trainer", "TrainerState"]


@dataclass
class TrainerState:
    """What a trainer does: `fn` "fit", "validate", "test", "predict" or None, `stage`, `status`."""

    fn: str | None = None
    stage: str | None = None
    status: str = "initializing"

    @property
    def finished(self) -> bool:
        """Whether the last call ended well."""
        return self.status == "finished"


class Trainer:
    """The loops around a `Module`: `fit`, `validate`, `test`, `predict`.

    max_epochs (1000 unless max_steps or max_time is given; -1: no end), min_epochs, max_steps, min_steps, max_time ("DD:HH:MM:SS"): when `fit` ends.
    run: a `Run`, which gets a row each log_every_n_steps optimizer steps and one per epoch; checkpoints go to its folder `ckpt`.
    callbacks: one or a list. accelerator ("auto", "cpu", "gpu"), devices, strategy ("dp", "ddp", "ddp_spawn"): where, and in how many processes.
    precision: "32", "64", "16-mixed", "bf16-mixed". accumulate_grad_batches, gradient_clip_val, gradient_clip_algorithm ("norm", "value").
    limit_{train,val,test,predict}_batches: how many (int), or which part (float). overfit_batches: train and validate on that many. fast_dev_run: so many
    batches of everything and no files. val_check_interval, check_val_every_n_epoch: when to validate; num_sanity_val_steps: batches tried before.
    logger=False: no rows. TypeError for an unknown option names the nearest.

    Ctrl-C lets `fit` finish its step, saves and returns with `interrupted` set; the next one raises KeyboardInterrupt. Example: see `Module`.
    """

    go_on = 'fit(…, ckpt_path="last"), or the same command with --resume.'     # what to do after an interrupt
    first_epoch = 0         # the number of the first epoch in rows

    @options.naming_nearest
    def __init__(self, *, max_epochs: int | None = None, min_epochs: int = 0, max_steps: int = -1, min_steps: int = 0, max_time: Any = None,
                 run: Any = None, callbacks: Any = None, logger: Any = True, accelerator: str = "auto", devices: Any = "auto", strategy: str = "auto",
                 process_group_backend: str | None = None, precision: str | int = "32", accumulate_grad_batches: int = 1,
                 gradient_clip_val: float | None = None, gradient_clip_algorithm: str | None = None, log_every_n_steps: int = 50,
                 check_val_every_n_epoch: int | None = 1, val_check_interval: int | float = 1.0, limit_train_batches: int | float = 1.0,
                 limit_val_batches: int | float = 1.0, limit_test_batches: int | float = 1.0, limit_predict_batches: int | float = 1.0,
                 overfit_batches: int | float = 0, fast_dev_run: int | bool = False, num_sanity_val_steps: int = 0, enable_progress_bar: bool = True,
                 enable_checkpointing: bool = True, enable_model_summary: bool = False, deterministic: bool = False, inference_mode: bool = True,
                 detect_anomaly: bool = False, use_distributed_sampler: bool = True, default_root_dir: Any = None) -> None:
        given = {name: value for name, value in locals().items() if name not in ("self", "callbacks", "run")}
        self._options = given
        self.state, self.run, self.logger_enabled = TrainerState(), run, logger is not False
        self.callbacks: list[Any] = _listed(callbacks)
        for callback in self.callbacks:
            callback.on_init_start(self)
        self.min_epochs, self.min_steps = options.whole("min_epochs", min_epochs or 0), options.whole("min_steps", min_steps or 0)
        self.max_steps, self.max_time = options.whole("max_steps", max_steps, -1), options.seconds(max_time)
        bounded = self.max_steps >= 0 or self.max_time is not None
        self.max_epochs = options.whole("max_epochs", max_epochs, -1) if max_epochs is not None else -1 if bounded else 1000
        self.accumulate_grad_batches = options.whole("accumulate_grad_batches", accumulate_grad_batches, 1)
        self.log_every_n_steps = options.whole("log_every_n_steps", log_every_n_steps, 1)
        self.gradient_clip_val = gradient_clip_val
        self.gradient_clip_algorithm = options.choice("gradient_clip_algorithm", gradient_clip_algorithm or "norm", ("norm", "value"))
        self.check_val_every_n_epoch = None if check_val_every_n_epoch is None else options.whole("check_val_every_n_epoch", check_val_every_n_epoch, 1)
        self.val_check_interval = options.limit("val_check_interval", val_check_interval) or 1.0
        self.overfit_batches = options.limit("overfit_batches", overfit_batches)
        self._limits = {kind: options.limit(f"limit_{kind}_batches", given[f"limit_{kind}_batches"]) for kind in data.METHODS}
        if self.overfit_batches:
            self._limits["train"] = self._limits["val"] = self.overfit_batches
        self.num_sanity_val_steps = options.whole("num_sanity_val_steps", num_sanity_val_steps, -1)
        self.fast_dev_run = int(fast_dev_run)
        if self.fast_dev_run:
            self._limits = dict.fromkeys(self._limits, self.fast_dev_run)
            self.max_epochs, self.max_steps, self.max_time, self.num_sanity_val_steps = 1, self.fast_dev_run, None, 0
        self.inference_mode, self.use_distributed_sampler = inference_mode, use_distributed_sampler
        self._precision, self._deterministic, self._anomaly = Precision.checked(precision), deterministic, detect_anomaly
        self._strategy, self._backend = options.choice("strategy", strategy, parallel.NAMES), process_group_backend
        self._devices, self._summary = options.devices_of(accelerator, devices), enable_model_summary
        self._root = None if default_root_dir is None else Path(default_root_dir)
        self._progress_bar, self.enable_checkpointing = enable_progress_bar, enable_checkpointing and not self.fast_dev_run
        self.device, self.parallel = self._devices[0], parallel.Alone()
        self.lightning_module: Any = None
        self._begin()
        self._add_callbacks()
        for callback in self.callbacks:
            callback.on_init_end(self)

    def _begin(self) -> None:
        """Nothing is done yet."""
        self.should_stop = self.interrupted = self.sanity_checking = False
        self.known: dict[str, float] = {}                       # metrics by name, as they are known so far
        self.logged: dict[str, float] = {}                      # those that were written in rows
        self.shown: set[str] = set()                            # the names of those for progress bars
        self.results: Any = None                                # what `log` writes to, at the moment
        self.optimization: Any = None
        self.fit_loop: Any = None
        self.resuming: Any = None
        self.datamodule: Any = None
        self.num_training_batches: float = 0
        self.num_val_batches: list[float] = []
        self.ckpt_path: str | None = None

    def _add_callbacks(self) -> None:
        """Those that come by themselves: checkpoints and lines in the log for what is kept in a directory, a progress bar on a terminal."""
        from .callbacks import progress
        from .callbacks.checkpoints import ModelCheckpoint
        from .callbacks.logger import BaseLogger
        kinds = tuple(type(callback) for callback in self.callbacks)
        if self.enable_checkpointing and self.directory is not None and not any(issubclass(kind, ModelCheckpoint) for kind in kinds):
            self.callbacks.append(ModelCheckpoint())
        if self.run is not None and not self.fast_dev_run and not any(issubclass(kind, BaseLogger) for kind in kinds):
            self.callbacks.append(BaseLogger())
        if self._progress_bar and not any(issubclass(kind, progress.Bars) for kind in kinds) and progress.on_a_terminal():
            self.callbacks.append(progress.ProgressBar())

    # ── what users call ───────────────────────────────────────────────────────────────────────────────────────────────

    def fit(self, module: Any, train_dataloaders: Any = None, val_dataloaders: Any = None, datamodule: Any = None, ckpt_path: Any = None) -> None:
        """Train. ckpt_path: a checkpoint to go on from exactly where it was saved, or "last", the newest one if there is any."""
        self._call("fit", module, datamodule, ckpt_path, train=train_dataloaders, val=val_dataloaders)

    def validate(self, module: Any = None, dataloaders: Any = None, datamodule: Any = None, ckpt_path: Any = None,
                 verbose: bool = False) -> list[dict[str, float]]:
        """Run `validation_step` over the data: the metrics for each loader, which the run's next row has, too."""
        return self._call("validate", module, datamodule, ckpt_path, verbose, val=dataloaders)  # type: ignore[no-any-return]

    def test(self, module: Any = None, dataloaders: Any = None, datamodule: Any = None, ckpt_path: Any = None,
             verbose: bool = False) -> list[dict[str, float]]:
        """Run `test_step` over the data: the metrics for each loader, which the run's next row has, too."""
        return self._call("test", module, datamodule, ckpt_path, verbose, test=dataloaders)     # type: ignore[no-any-return]

    def predict(self, module: Any = None, dataloaders: Any = None, datamodule: Any = None, ckpt_path: Any = None) -> list[Any]:
        """What `predict_step` returns for each batch; a list for each loader where there are several."""
        return self._call("predict", module, datamodule, ckpt_path, predict=dataloaders)        # type: ignore[no-any-return]

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

    # ── what is known ─────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def current_epoch(self) -> int:
        """The number of the epoch, from 0; after a fit the number of epochs done."""
        return self.fit_loop.epoch if self.fit_loop is not None else 0

    @property
    def global_step(self) -> int:
        """How many batches have brought a step of the optimizers."""
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
        """Whether this is the first process, which writes files."""
        return self.parallel.rank == 0

    global_rank = property(lambda self: self.parallel.rank)
    world_size = property(lambda self: self.parallel.world)
    num_devices = property(lambda self: len(self._devices))
    optimizers = property(lambda self: [] if self.optimization is None else self.optimization.optimizers)
    lr_schedulers = property(lambda self: [] if self.optimization is None else [schedule.scheduler for schedule in self.optimization.schedules])
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
        steps = math.inf if self.num_training_batches == math.inf else math.ceil(self.num_training_batches / self.accumulate_grad_batches) * self.max_epochs
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
        """Where checkpoints go: the first ModelCheckpoint's `dirpath`, or the folder `ckpt` of the directory, or nowhere."""
        for callback in self.checkpoint_callbacks:
            if callback.dirpath is not None:
                return Path(callback.dirpath)
        return None if self.directory is None else self.directory / "ckpt"

    # ── what loops and modules call ───────────────────────────────────────────────────────────────────────────────────

    def log_row(self, values: Mapping[str, float]) -> None:
        """A row of the run, at the step that it is at."""
        self.logged.update(values)
        if self.run is not None and self.logger_enabled and self.is_global_zero and not self.fast_dev_run:
            self.run.log(self.global_step, {"epoch": self.current_epoch + self.first_epoch * (self.state.fn == "fit"), **values})

    def stepper(self, name: str) -> Any:
        """The module's step of a name, in this precision, of all devices."""
        return step_of(self, self.lightning_module, name)

    # ── how a call goes ───────────────────────────────────────────────────────────────────────────────────────────────

    def _call(self, fn: str, module: Any, datamodule: Any, ckpt_path: Any, verbose: bool = False, **loaders: Any) -> Any:
        module = self._checked(fn, module)
        for kind, given in loaders.items():
            if isinstance(given, data.DataModule):
                datamodule, loaders = given, loaders | {kind: None}
        arguments = fn, module, datamodule, ckpt_path, verbose, loaders
        with ExitStack() as stack:
            several = len(self._devices) > 1 and self._strategy != "dp"
            if parallel.launched():
                self.parallel = stack.enter_context(parallel.joined(self._backend, self._devices[0]))
                self.device = self._devices[self.parallel.rank % len(self._devices)]
            elif several and fn == "fit":
                root = None if self.directory is None else str(self.directory)
                child = self._options | {"default_root_dir": root, "enable_progress_bar": False}
                store = stack.enter_context(parallel.spawned(len(self._devices), _in_process, (child, self.callbacks, arguments)))
                self.parallel = stack.enter_context(parallel.joined(self._backend, self._devices[0], 0, len(self._devices), store))
            elif len(self._devices) > 1 and self._strategy == "dp" and self.device.type == "cuda":
                self.parallel = parallel.Replicas([device.index for device in self._devices])
            try:
                return self._run(*arguments)
            finally:
                self.parallel = parallel.Alone()

    def _checked(self, fn: str, module: Any) -> Any:
        module = self.lightning_module if module is None else module
        if isinstance(module, Module):
            return module
        said = "no module" if module is None else f"{type(module).__name__}, a plain nn.Module" if isinstance(module, Module.__mro__[1]) else repr(type(module))
        raise TypeError(f"Trainer.{fn}() takes a tensorgrad.experiment.Module, which says with training_step and configure_optimizers how it is trained, "
                        f"not {said}")

    def _run(self, fn: str, module: Any, datamodule: Any, ckpt_path: Any, verbose: bool, loaders: dict[str, Any]) -> Any:
        loop, rest = self.fit_loop, (self.optimization, self.resuming) if module is self.lightning_module else (None, None)
        self._begin()
        if fn != "fit":
            self.fit_loop, (self.optimization, self.resuming) = loop, rest      # rows of an evaluation go to where the fit is
        self.state = TrainerState(fn, "train" if fn == "fit" else fn, "running")
        self.lightning_module, module.trainer, self.datamodule = module, self, datamodule
        if datamodule is not None:
            datamodule.trainer = self
        self.hooks = Hooks(self, module)
        try:
            with self._settings():
                self._prepare(fn, module, datamodule, loaders)
                found = self._fit(module, ckpt_path) if fn == "fit" else self._evaluate(fn, module, ckpt_path, verbose)
                self.hooks("teardown", fn)
                if datamodule is not None:
                    datamodule.teardown(fn)
            self.state.status = "interrupted" if self.interrupted else "finished"
            return found
        except BaseException as error:
            self.state.status = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
            for hook in [*self.hooks.find("on_exception"), *([datamodule.on_exception] if datamodule is not None else [])]:
                hook(error)
            raise
        finally:
            self.state.stage = self.results = None

    @contextmanager
    def _settings(self) -> Iterator[None]:
        """Settings of the process that the options ask for, until the block ends."""
        from .. import are_deterministic_algorithms_enabled, use_deterministic_algorithms
        from ..autograd import set_detect_anomaly
        before = are_deterministic_algorithms_enabled(), tg.get_default_dtype()
        with ExitStack() as stack:
            if self._anomaly:
                stack.enter_context(set_detect_anomaly(True))
            stack.enter_context(tg.enable_grad())
            try:
                if self._deterministic:
                    use_deterministic_algorithms(True)
                if self._precision == "64":
                    tg.set_default_dtype(tg.float64)
                yield
            finally:
                use_deterministic_algorithms(before[0])
                tg.set_default_dtype(before[1])

    def _prepare(self, fn: str, module: Any, datamodule: Any, loaders: dict[str, Any]) -> None:
        """Data, devices, precision."""
        from .resuming import Resuming
        if datamodule is not None:
            if self.is_global_zero:
                datamodule.prepare_data()
            self.parallel.barrier()
            datamodule.setup(fn)
        self.hooks("setup", fn)
        self.precision_plugin = Precision(self._precision, self.device)
        self.precision_plugin.converted(module)
        if self.device.type != "cpu" or any(p.device.type != "cpu" for p in module.parameters()):
            module.to(self.device)
        self.source = data.Source(self, module, datamodule, **loaders)
        self.transfer = data.transfer(self, module, datamodule)
        self.resuming = self.resuming or Resuming(self, module, datamodule)

    def _fit(self, module: Any, ckpt_path: Any) -> None:
        (train, *_), validation = self.source.loaders("train") or [None], self.source.loaders("val")
        if train is None:
            raise ValueError("Trainer.fit() has no data: give train_dataloaders or a datamodule, or let the module have train_dataloader()")
        self.num_training_batches = data.batches_of(train, self._limits["train"], "limit_train_batches")
        self.num_val_batches = limited(validation, self._limits["val"], "limit_val_batches")
        self._add_from(module)
        self.fit_loop, self.optimization = FitLoop(self, module), Optimization(self, module)
        self.resuming.prepare()
        state = self._restored(ckpt_path)
        if self.run is not None and self.is_global_zero and module.hparams and module.__dict__.get("_log_hparams", True) and not self.fast_dev_run:
            from .hparams import kept
            self.run.log_hyperparams({name: value for name, value in kept(module.hparams).items() if not isinstance(value, tg.Tensor)})
        if self._summary:
            self.print(f"{module}\n{sum(p.numel() for p in module.parameters()):,} parameters")
        with interruptible(self):
            self.hooks("on_fit_start")
            if self.num_sanity_val_steps and state is None:
                self._check_sanity(module)
            self.fit_loop.run(state)
            if self.interrupted:
                self._leave()
            self.hooks("on_fit_end")

    def _add_from(self, module: Any) -> None:
        """Callbacks that the module brings: each takes the place of others of its class."""
        brought = _listed(module.configure_callbacks())
        if brought:
            kinds = {type(callback) for callback in brought}
            self.callbacks = [callback for callback in self.callbacks if type(callback) not in kinds] + brought
            self.hooks = Hooks(self, module)
            for callback in brought:
                callback.setup(self, module, "fit")

    def _restored(self, ckpt_path: Any) -> dict[str, Any] | None:
        """The checkpoint to go on from, restored; None if there is none."""
        from .resuming import read
        path = self._found(ckpt_path)
        if path is None:
            if ckpt_path is not None and self.run is not None and self.run.resumed:     # a run that ended before its first checkpoint begins anew
                self.run.load_state_dict({"columns": ["step", "time"], "rows": 0})
            return None
        self.ckpt_path = str(path)
        state = read(path)
        if "loop" not in state["parts"]:
            raise ValueError(f"{path} holds weights only: fit cannot go on from it; load it with {type(self.lightning_module).__name__}.load_from_checkpoint")
        self.hooks("on_load_checkpoint", state)
        self.resuming.load(state)
        return state

    def _found(self, ckpt_path: Any) -> Path | None:
        from .resuming import newest
        if ckpt_path is None:
            return None
        if ckpt_path == "last":
            return None if self.checkpoint_directory is None else self.parallel.first(newest(self.checkpoint_directory))
        if ckpt_path == "best":
            best = next((callback.best_model_path for callback in self.checkpoint_callbacks if callback.best_model_path), None)
            if best is None:
                raise ValueError("ckpt_path='best': no ModelCheckpoint has saved a best one")
            return Path(best)
        return Path(ckpt_path)

    def _check_sanity(self, module: Any) -> None:
        """A few batches of validation, of which nothing is kept."""
        from . import streams
        loaders, before = self.source.loaders("val"), streams.state()
        limits = [n if self.num_sanity_val_steps == -1 else min(n, self.num_sanity_val_steps) for n in self.num_val_batches]
        if any(limits):
            self.sanity_checking = True
            try:
                self.hooks("on_sanity_check_start")
                Evaluation(self, module, "validate", loaders, limits).run(lambda row: None)
                self.hooks("on_sanity_check_end")
            finally:
                self.sanity_checking = False
                streams.restore(before)

    def _leave(self) -> None:
        """After an interrupt: save, and say how to go on."""
        directory, step = self.checkpoint_directory, self.global_step
        if directory is not None and self.enable_checkpointing and self.optimization.fresh:
            path = directory / getattr(self.checkpoint_callback, "last_name", "last.ckpt")
            self.save_checkpoint(path)
            self.print(f"Interrupted after step {step}, which is saved in {path}. To go on: {self.go_on}")
        else:
            self.print(f"Interrupted after step {step}. Nothing is saved: the trainer has no directory for checkpoints.")
        if self.run is not None and self.is_global_zero:
            self.run.finish("interrupted")

    def _evaluate(self, fn: str, module: Any, ckpt_path: Any, verbose: bool) -> Any:
        kind = {"validate": "val"}.get(fn, fn)
        loaders = self.source.loaders(kind)
        if not loaders:
            raise ValueError(f"Trainer.{fn}() has no data: give dataloaders or a datamodule, or let the module have {data.METHODS[kind]}()")
        if (path := self._found(ckpt_path)) is not None:
            from .resuming import read
            state = read(path)
            self.hooks("on_load_checkpoint", state)
            module.load_state_dict(state["state_dict"])
            self.ckpt_path = str(path)
        loop = Evaluation(self, module, fn, loaders, limited(loaders, self._limits[kind], f"limit_{kind}_batches"))
        loop.run(lambda row: self.log_row(row) if row and fn != "predict" else None)
        if fn == "predict":
            return loop.predictions if len(loaders) > 1 else loop.predictions[0]
        metrics = by_loader(self.known, len(loaders))
        if verbose:
            self.print(f"{fn}: " + ", ".join(f"{name}={value:.6g}" for name, value in self.known.items()))
        return metrics


def _in_process(rank: int, world: int, port: int, child: dict[str, Any], callbacks: list[Any], arguments: tuple[Any, ...]) -> None:
    """What another process than the first does for a fit."""
    from ..distributed import TCPStore
    store = TCPStore("127.0.0.1", port, world, False, wait_for_workers=False)
    trainer = Trainer(**child, callbacks=callbacks)
    with parallel.joined(child["process_group_backend"], trainer._devices[0], rank, world, store) as group:
        trainer.parallel, trainer.device = group, trainer._devices[rank]
        trainer._run(*arguments)


def _listed(callbacks: Any) -> list[Any]:
    from .callbacks.base import Callback
    found = [] if callbacks is None else list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks]
    for callback in found:
        if not isinstance(callback, Callback):
            raise TypeError(f"callbacks are objects of tensorgrad.experiment.Callback, not {type(callback).__name__}")
    return found
