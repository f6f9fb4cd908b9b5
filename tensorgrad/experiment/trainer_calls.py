"""How `fit`, `validate`, `test` and `predict` go: processes, data, devices, checkpoints, loops."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import api as tg
from .. import nn
from ..utils._summary import summary
from . import data, parallel, streams
from .evaluation import Evaluation, by_loader, limited
from .hooks import Hooks
from .hparams import kept
from .interrupting import interruptible
from .loops import FitLoop
from .module import Module
from .optimization import Optimization
from .precision import Precision
from .resuming import Resuming, newest, read
from .trainer_properties import Facts

__all__ = ["Calls", "TrainerState", "listed"]


@dataclass
class TrainerState:
    """The state of a trainer: `fn` is "fit", "validate", "test", "predict" or None; `stage`, `status`."""

    fn: str | None = None
    stage: str | None = None
    status: str = "initializing"

    @property
    def finished(self) -> bool:
        """True if the last call ended without an error or interrupt."""
        return self.status == "finished"


class Calls(Facts):
    """Base of `Trainer`: implements its calls."""

    def _call(
        self, fn: str, module: Any, datamodule: Any, ckpt_path: Any, verbose: bool = False, **loaders: Any
    ) -> Any:
        module = self._checked(fn, module)
        for kind, given in loaders.items():
            if isinstance(given, data.DataModule):
                datamodule, loaders = given, loaders | {kind: None}
        arguments = fn, module, datamodule, ckpt_path, verbose, loaders
        with ExitStack() as stack:
            several = len(self._devices) > 1 and self._strategy != "dp"
            if parallel.launched():
                self.parallel = stack.enter_context(parallel.joined(self._backend, self._devices[0]))
                self.device = self._devices[parallel.place()[1] % len(self._devices)]
            elif several and fn == "fit":
                root = None if self.directory is None else str(self.directory)
                child = self._options | {"default_root_dir": root, "enable_progress_bar": False}
                store = stack.enter_context(
                    parallel.spawned(len(self._devices), _in_process, (child, self.callbacks, arguments))
                )
                self.parallel = stack.enter_context(
                    parallel.joined(self._backend, self._devices[0], 0, len(self._devices), store)
                )
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
        kind = type(module).__name__
        said = "None" if module is None else f"{kind}, a plain nn.Module" if isinstance(module, nn.Module) else kind
        raise TypeError(
            f"Trainer.{fn}() takes a tensorgrad.experiment.Module, which says with training_step and "
            f"configure_optimizers how it is trained, not {said}"
        )

    def _run(
        self, fn: str, module: Any, datamodule: Any, ckpt_path: Any, verbose: bool, loaders: dict[str, Any]
    ) -> Any:
        loop, same = self.fit_loop, module is self.lightning_module
        rest = (self.optimization, self.resuming) if same else (None, None)
        self._begin()
        if fn != "fit":  # rows of an evaluation go to where the fit is
            self.fit_loop, (self.optimization, self.resuming) = loop, rest
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
            self.hooks("on_exception", error)
            if datamodule is not None:
                datamodule.on_exception(error)
            raise
        finally:
            self.state.stage = self.results = None

    @contextmanager
    def _settings(self) -> Iterator[None]:
        """Apply the options' process-wide settings (anomaly mode, determinism, default dtype) until the block ends."""
        from ..autograd import set_detect_anomaly
        from ..runtime.settings import are_deterministic_algorithms_enabled, use_deterministic_algorithms

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
        """Set up the data, move the module to its device and precision."""
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
            raise ValueError(
                "Trainer.fit() has no data: give train_dataloaders or a datamodule, or let the module have "
                "train_dataloader()"
            )
        self.num_training_batches = data.batches_of(train, self._limits["train"], "limit_train_batches")
        self.num_val_batches = limited(validation, self._limits["val"], "limit_val_batches")
        self._add_from(module)
        self.fit_loop, self.optimization = FitLoop(self, module), Optimization(self, module)
        self.resuming.prepare()
        state = self._restored(ckpt_path)
        self._log_hyperparameters(module)
        if self._summary:
            self.print(summary(module, row_settings=("var_names",), verbose=0))
        with interruptible(self):
            self.hooks("on_fit_start")
            if self.num_sanity_val_steps and state is None:
                self._check_sanity(module)
            self.fit_loop.run(state)
            if self.interrupted:
                self._leave()
            self.hooks("on_fit_end")

    def _log_hyperparameters(self, module: Any) -> None:
        """Write hparams.yaml, in the run's directory."""
        plain = {name: value for name, value in kept(module.hparams).items() if not isinstance(value, tg.Tensor)}
        wanted = plain and module.__dict__.get("_log_hparams", True) and not self.fast_dev_run
        if wanted and self.run is not None and self.is_global_zero:
            self.run.log_hyperparams(plain)

    def _add_from(self, module: Any) -> None:
        """Add the module's own callbacks; each replaces the trainer's callbacks of its class."""
        brought = listed(module.configure_callbacks())
        if brought:
            kinds = {type(callback) for callback in brought}
            self.callbacks = [callback for callback in self.callbacks if type(callback) not in kinds] + brought
            self.hooks = Hooks(self, module)
            for callback in brought:
                callback.setup(self, module, "fit")

    def _restored(self, ckpt_path: Any) -> dict[str, Any] | None:
        """Restore the checkpoint to resume from, and return its state; None if there is none."""
        path = self._found(ckpt_path)
        if path is None:
            # a run that ended before its first checkpoint begins anew
            if ckpt_path is not None and self.run is not None and self.run.resumed:
                self.run.load_state_dict({"columns": ["step", "time"], "rows": 0})
            return None
        self.ckpt_path = str(path)
        state = read(path)
        if "loop" not in state.get("parts", {}):
            name = type(self.lightning_module).__name__
            raise ValueError(
                f"{path} holds weights only: fit cannot continue from it; load it with {name}.load_from_checkpoint"
            )
        self.hooks("on_load_checkpoint", state)
        self.resuming.load(state)
        return state

    def _found(self, ckpt_path: Any) -> Path | None:
        if ckpt_path is None:
            return None
        if ckpt_path == "last":
            return None if self.checkpoint_directory is None else self.parallel.first(newest(self.checkpoint_directory))
        if ckpt_path == "best":
            best = next(
                (callback.best_model_path for callback in self.checkpoint_callbacks if callback.best_model_path), None
            )
            if best is None:
                raise ValueError("ckpt_path='best': no ModelCheckpoint has saved a best one")
            return Path(best)
        return Path(ckpt_path)

    def _check_sanity(self, module: Any) -> None:
        """Validate a few batches and discard their results."""
        loaders, before = self.source.loaders("val"), streams.state()
        limits = [
            n if self.num_sanity_val_steps == -1 else min(n, self.num_sanity_val_steps) for n in self.num_val_batches
        ]
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
        """Save a checkpoint after an interrupt, if there is a directory for it, and print how to resume."""
        directory, step = self.checkpoint_directory, self.global_step
        if directory is not None and self.enable_checkpointing and self.optimization.fresh:
            path = directory / getattr(self.checkpoint_callback, "last_name", "last.ckpt")
            self.save_checkpoint(path)
            self.print(f"Interrupted after step {step}, which is saved in {path}. To go on: {self.go_on}")
        else:
            self.print(
                f"Interrupted after step {step}. Nothing is saved: the trainer has no directory for checkpoints."
            )
        if self.run is not None and self.is_global_zero:
            self.run.finish("interrupted")

    def _evaluate(self, fn: str, module: Any, ckpt_path: Any, verbose: bool) -> Any:
        kind = {"validate": "val"}.get(fn, fn)
        loaders = self.source.loaders(kind)
        if not loaders:
            raise ValueError(
                f"Trainer.{fn}() has no data: give dataloaders or a datamodule, or let the module have "
                f"{data.METHODS[kind]}()"
            )
        if (path := self._found(ckpt_path)) is not None:
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


def _in_process(
    rank: int, world: int, port: int, child: dict[str, Any], callbacks: list[Any], arguments: tuple[Any, ...]
) -> None:
    """Run a fit in a process other than the first."""
    from ..distributed import TCPStore
    from .trainer import Trainer

    store = TCPStore("127.0.0.1", port, world, False, wait_for_workers=False)
    trainer = Trainer(**child, callbacks=callbacks)
    with parallel.joined(child["process_group_backend"], trainer._devices[0], rank, world, store) as group:
        trainer.parallel, trainer.device = group, trainer._devices[rank]
        trainer._run(*arguments)


def listed(callbacks: Any) -> list[Any]:
    from .callbacks.base import Callback

    found = [] if callbacks is None else list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks]
    for callback in found:
        if not isinstance(callback, Callback):
            raise TypeError(f"callbacks are objects of tensorgrad.experiment.Callback, not {type(callback).__name__}")
    return found
