"""The plain loop: model, loss, optimizer and data sets from one configuration, epochs from 1 to `epoch_max`.

A batch is a dictionary, the loss returns one with `loss` and any further terms. Each epoch writes a line and a row
with `lr`, `loss/train` and the other terms, `loss/val` after a validation, and `ckpt/epoch-last.pth`;
`epoch-<e>.pth` comes each `epoch_save` epochs, `epoch-best.pth` with the least `loss/val`, `step-last.pth` each
`step_save` steps. A checkpoint is `{model: spec + sd, optimizer: spec + sd, epoch, config}` and all that an exact
resume needs."""

from __future__ import annotations

import inspect
import math
import os
import shutil
import time
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .. import nn
from ..serialization import load
from ..serialization._atomic import replacing
from ..utils.data import DataLoader
from . import datasets, losses, models, schedules
from .callbacks import BaseLogger, ModelCheckpoint
from .module import Module
from .trainer import Trainer
from .utils import compute_num_params, time_text

__all__ = ["EpochCheckpoints", "EpochLines", "Plain", "newest", "read", "train"]

STEP, LAST, BEST = "step-last.pth", "epoch-last.pth", "epoch-best.pth"
TOLD = "batch_idx", "stage", "model"  # optional arguments of a loss beside the prediction and the batch


class Plain(Module):
    """The model of a plain configuration with its loss and optimizer; `start`: a checkpoint whose specs and weights it
    begins with, or None.

    From a checkpoint, `load_optimizer` restores the optimizer's state, and `run_step` the epoch and the learning rate's
    schedule; both are true by default, and always for the `same` run.
    """

    def __init__(self, config: Mapping[str, Any], start: Any = None, same: bool = False) -> None:
        super().__init__()
        self.config, self.start, source = config, start, config if start is None else start
        self.goes_on = start is not None and (same or config.get("run_step", True))
        self.loads = start is not None and (same or config.get("load_optimizer", True))
        # True: the run resumes exactly.
        self.exactly = self.goes_on and self.loads and "parts" in start
        self.specs = {
            part: {key: source[part][key] for key in ("name", "args") if key in source[part]}
            for part in ("model", "optimizer")
        }
        self.model = models.make(source["model"], load_sd=start is not None)
        self.loss = losses.make(config["loss"])
        parameters = inspect.signature(self.loss.forward if isinstance(self.loss, nn.Module) else self.loss).parameters
        takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        self.told = [name for name in TOLD if takes_all or name in parameters]

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        """Return the loss terms of a batch, each of which is logged as `<term>/train`."""
        return self._terms(batch, batch_idx, "train")

    def validation_step(self, batch: Any, batch_idx: int) -> Any:
        """Return the loss terms of a batch, each of which is logged as `<term>/val`."""
        return self._terms(batch, batch_idx, "val")

    def _terms(self, batch: Any, batch_idx: int, stage: str) -> Mapping[str, Any]:
        known = {"batch_idx": batch_idx, "stage": stage, "model": self.model}
        terms = self.loss(self.model(batch), batch, **{name: known[name] for name in self.told})
        if not isinstance(terms, Mapping):
            terms = {"loss": terms}
        for name, value in terms.items():
            self.log(f"{name}/{stage}", value, prog_bar=stage == "train", on_step=False, on_epoch=True, sync_dist=True)
        return terms

    def on_train_epoch_end(self) -> None:
        """Log the learning rate of the epoch."""
        self.log("lr", self.trainer.optimizers[0].param_groups[0]["lr"])

    # ── where it begins ───────────────────────────────────────────────────────────────────────────────────────────────

    def configure_optimizers(self) -> Any:
        spec = self.start["optimizer"] if self.loads else self.specs["optimizer"]
        optimizer = schedules.make_optimizer(self.parameters(), spec, load_sd=self.loads)
        spec = self.config.get("scheduler")
        if self.loads and (spec is not None or not self.goes_on):  # a schedule starts from the first rates
            for group in optimizer.param_groups:
                group["lr"] = group.get("initial_lr", group["lr"])
        if spec is None:
            return optimizer
        scheduler = schedules.make_lr_scheduler(optimizer, spec)
        if self.goes_on:
            self._forward(optimizer, scheduler)
        validates = self.config.get("val_dataset") and self.config.get("epoch_val") in (None, 1)
        how = {key: spec[key] for key in ("interval", "frequency", "monitor") if key in spec}
        monitor = "loss/val" if validates else "loss/train"
        return {"optimizer": optimizer, "lr_scheduler": {"monitor": monitor, **how, "scheduler": scheduler}}

    def _forward(self, optimizer: Any, scheduler: Any) -> None:
        """Advance a schedule to its state after the checkpoint's epochs."""
        states = self.start.get("parts", {}).get("schedulers")
        if states:
            scheduler.load_state_dict(states[0])
            for group, rate in zip(optimizer.param_groups, scheduler.get_last_lr()):
                group["lr"] = rate
        elif not isinstance(scheduler, schedules.schedulers["ReduceLROnPlateau"]):
            with warnings.catch_warnings(action="ignore"):  # no optimizer step comes before
                for _ in range(self.start["epoch"]):
                    scheduler.step()

    def on_train_start(self) -> None:
        """Begin after the checkpoint's epochs, unless the trainer restores its place itself."""
        if self.goes_on and not self.exactly:
            loop, start = self.trainer.fit_loop, self.start
            loop.epoch, loop.global_step = start["epoch"], start.get("step", 0)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Add the parts that make a checkpoint self-contained: specs with their states, the number of epochs done, the
        configuration."""
        loop, optimization = self.trainer.fit_loop, self.trainer.optimization
        checkpoint["model"] = {**self.specs["model"], "sd": self.model.state_dict()}
        if optimization is not None:
            checkpoint["optimizer"] = {**self.specs["optimizer"], "sd": optimization.optimizers[0].state_dict()}
            checkpoint["epoch"] = loop.epoch + loop.ended
        checkpoint["config"] = dict(self.config)


# ── callbacks ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class EpochLines(BaseLogger):
    """A line for each epoch, `epoch 3/10, train: loss=0.1234, 1.2s 3.6s/12.0s`: its time, the time so far and an
    estimate of all; one for a validation."""

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        now, epoch, last, known = time.monotonic(), trainer.current_epoch + 1, trainer.max_epochs, trainer.metrics()
        session = now - self._start
        elapsed = self._before + session
        total = elapsed + (last - epoch) * session / (epoch - self._first_epoch)
        trainer.print(
            f"epoch {epoch}/{last}, train: loss={known.get('loss/train', math.nan):.4f}, "
            f"{time_text(now - self._epoch_start)} {time_text(elapsed)}/{time_text(total)}"
        )
        if (epoch % (trainer.check_val_every_n_epoch or 1)) == 0 and any(trainer.num_val_batches):
            trainer.print(validation_line(known))


def validation_line(known: Mapping[str, float]) -> str:
    """Return the metrics of a validation as a line."""
    terms = [f"{name.removesuffix('/val')}={value:.4f}" for name, value in known.items() if name.endswith("/val")]
    return f"  val: {', '.join(terms) or 'no metrics'}"


class EpochCheckpoints(ModelCheckpoint):
    """Saves `epoch-last.pth` after each epoch, `epoch-<e>.pth` each `epoch_save` epochs, `epoch-best.pth` with the
    least `loss/val`, and `step-last.pth` each `step_save` steps."""

    last_name, state_key = STEP, "EpochCheckpoints"

    def __init__(self, epoch_save: int | None = None, step_save: int | None = None) -> None:
        super().__init__(every_n_train_steps=step_save)
        self.epoch_save, self.best, self._validated = epoch_save, math.inf, False

    def state_dict(self) -> dict[str, Any]:
        return {"best": self.best, "validated": self._validated}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.best, self._validated = state_dict["best"], state_dict["validated"]

    def setup(self, trainer: Any, module: Any, stage: str) -> None:
        if stage == "fit":
            self.best, self._validated, self._directory = math.inf, False, trainer.checkpoint_directory

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        every = self.every_n_train_steps
        if every and trainer.optimization.stepped and trainer.global_step % every == 0:
            trainer.save_checkpoint(self._directory / STEP)

    def on_validation_end(self, trainer: Any, module: Any) -> None:
        self._validated = trainer.state.fn == "fit"

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        names, epoch, loss = [], trainer.current_epoch + 1, trainer.metrics().get("loss/val", math.nan)
        if self._validated and loss < self.best:
            self.best = loss
            names.append(BEST)
        self._validated = False
        if self.epoch_save and epoch % self.epoch_save == 0:
            names.append(f"epoch-{epoch}.pth")
        trainer.save_checkpoint(self._directory / LAST)
        if trainer.is_global_zero:
            for name in names:
                _also(self._directory / LAST, self._directory / name)

    def on_train_end(self, trainer: Any, module: Any) -> None:
        """Do nothing: the last epoch has saved everything."""


def _also(path: Path, name: Path) -> None:
    """Replace `name` by a hard link to `path`, or by a copy where there are no links."""
    beside = name.with_name(f".{name.name}.{os.getpid()}.link")
    try:
        beside.unlink(missing_ok=True)
        os.link(path, beside)
        os.replace(beside, name)
    except OSError:
        with open(path, "rb") as source, replacing(name) as file:
            shutil.copyfileobj(source, file)


# ── checkpoints ───────────────────────────────────────────────────────────────────────────────────────────────────────


def read(path: Any) -> dict[str, Any]:
    """Read a checkpoint without running code from it. ValueError if it is another file."""
    state = load(os.fspath(path), weights_only=True)
    parts = [state.get(part) for part in ("model", "optimizer")] if isinstance(state, dict) else []
    if (
        not parts
        or not all(isinstance(part, Mapping) and {"name", "sd"} <= part.keys() for part in parts)
        or not isinstance(state.get("epoch"), int)
    ):
        raise ValueError(
            f"{path} is no checkpoint of a plain run: model and optimizer as specs with states, and epoch"
        )
    return state


def newest(directory: Any) -> Path | None:
    """Return the newest checkpoint of a folder; a damaged one is skipped with a warning."""
    for path in sorted(Path(directory).glob("*.pth"), key=lambda path: path.stat().st_mtime_ns, reverse=True):
        try:
            read(path)
            return path
        except Exception as error:
            warnings.warn(f"{path} cannot be read ({error}); the one before it is taken", UserWarning, stacklevel=2)
    return None


# ── training ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def loader(section: Mapping[str, Any]) -> DataLoader:
    """Return the loader of a section `{dataset, batch_size, shuffle, …}`."""
    return DataLoader(
        datasets.make(section["dataset"]), **{key: value for key, value in section.items() if key != "dataset"}
    )


def train(
    config: Mapping[str, Any],
    run: Any,
    resume: Any = None,
    *,
    same: bool = False,
    accelerator: str = "auto",
    devices: Any = "auto",
    callbacks: Iterable[Any] = (),
    go_on: str | None = None,
    root: Any = None,
) -> Trainer:
    """Train by a plain configuration, write to a run, and return the trainer.

    resume: a checkpoint to begin from, whose specs of model and optimizer are then used; `same`: resume exactly,
    regardless of `run_step` and `load_optimizer`. A resumed run loses the rows after its checkpoint. Several GPUs share
    each batch. go_on: the command to print after Ctrl-C. run: None in processes that do not write,
    with the run's directory as `root`.
    """

    def tell(line: str) -> None:
        if run is not None:
            run.print(line)

    start = None if resume is None else read(resume)
    module = Plain(config, start, same)
    sections = [(name, config.get(f"{name}_dataset")) for name in ("train", "val")]
    loaders = {name: loader(section) for name, section in sections if section}
    for name, batches in loaders.items():
        for line in datasets.described(batches.dataset, name):
            tell(line)
    tell(f"model: {module.specs['model']['name']}, {compute_num_params(module.model, text=True)} parameters")
    for part, spec in module.specs.items():
        if start is not None and spec != {key: value for key, value in config[part].items() if key in spec}:
            tell(f"{part}: {spec} of the checkpoint, in place of the configuration's")
    several = isinstance(devices, list) and len(devices) > 1
    own = [EpochLines(), EpochCheckpoints(config.get("epoch_save"), config.get("step_save"))]
    trainer = Trainer(
        run=run,
        max_epochs=config["epoch_max"],
        check_val_every_n_epoch=config.get("epoch_val") or 1,
        accelerator=accelerator,
        devices=devices,
        strategy="dp" if several else "auto",
        callbacks=[*own, *callbacks],
        default_root_dir=root,
    )
    trainer.go_on, trainer.first_epoch = go_on or trainer.go_on, 1
    if start is None and "val" in loaders:
        trainer.validate(module, loaders["val"])
        tell(validation_line(trainer.metrics()) + " before training")
    if module.goes_on and start["epoch"] >= config["epoch_max"]:
        tell(
            f"{start['epoch']} of {config['epoch_max']} epochs are done: nothing is left to do. "
            "A larger epoch_max trains on."
        )
    trainer.fit(module, loaders["train"], loaders.get("val"), ckpt_path=resume if module.exactly else None)
    return trainer
