"""ModelCheckpoint: when a trainer saves, under which names, and which files it keeps."""

from __future__ import annotations

import math
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from . import register
from .base import Callback

__all__ = ["ModelCheckpoint"]

FIELD = re.compile(r"\{([^{}]+)\}")
FORMAT = re.compile(r"[-+ #0-9.,]*[bdeEfFgGnoxX%]?")
UNSAFE = re.compile(r"[^\w.,=+@-]+")


@register("model-checkpoint")
class ModelCheckpoint(Callback):
    """Saves checkpoints that a fit goes on from exactly: the `save_top_k` best by a metric, and `last.ckpt`.

    dirpath: by default the folder `ckpt` of the run. filename: with fields of metrics, "{epoch}-{step}-{val_loss:.2f}";
    each brings its name along unless auto_insert_metric_name=False. monitor, mode ("min", "max"): the metric by which
    files are compared; without one the latest is kept. save_top_k: how many, -1 for all, 0 for none.
    every_n_train_steps, every_n_epochs: when; at the end of each epoch if neither is given.
    save_on_train_epoch_end=False: after validations instead, which is the default where they come within epochs.

    `best_model_path`, `best_model_score`, `best_k_models` and `last_model_path` say what was saved.
    """

    order = 2

    def __init__(
        self,
        dirpath: Any = None,
        filename: str | None = None,
        monitor: str | None = None,
        mode: str = "min",
        save_top_k: int = 1,
        save_last: bool = True,
        every_n_train_steps: int | None = None,
        every_n_epochs: int | None = None,
        save_on_train_epoch_end: bool | None = None,
        save_weights_only: bool = False,
        auto_insert_metric_name: bool = True,
        verbose: bool = False,
    ) -> None:
        if mode not in ("min", "max"):
            raise ValueError(f"ModelCheckpoint(mode=…) is 'min' or 'max', not {mode!r}")
        if save_top_k < -1:
            raise ValueError(
                f"ModelCheckpoint(save_top_k=…) is -1 (all), 0 (none) or a number of files, not {save_top_k}"
            )
        for name, value in (("every_n_train_steps", every_n_train_steps), ("every_n_epochs", every_n_epochs)):
            if value is not None and value < 0:
                raise ValueError(f"ModelCheckpoint({name}=…) is at least 0, not {value}")
        self.dirpath = None if dirpath is None else os.fspath(dirpath)
        self.filename, self.monitor, self.mode, self.save_top_k, self.save_last = (
            filename,
            monitor,
            mode,
            save_top_k,
            save_last,
        )
        self.every_n_train_steps = every_n_train_steps or 0
        self.every_n_epochs = every_n_epochs if every_n_epochs is not None else 0 if self.every_n_train_steps else 1
        self.save_on_train_epoch_end, self.save_weights_only = save_on_train_epoch_end, save_weights_only
        self.auto_insert_metric_name, self.verbose = auto_insert_metric_name, verbose
        self._kept: dict[str, float] = {}  # file names and scores, those of a fit from its beginning
        self._last, self._directory, self._saved_at, self._resumed = "", Path("."), -1, False

    @property
    def state_key(self) -> str:
        return f"ModelCheckpoint({self.monitor}, {self.mode}, {self.every_n_train_steps}, {self.every_n_epochs})"

    # ── what was saved ────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def best_k_models(self) -> dict[str, float]:
        """Paths of the files that are kept, with their scores."""
        return {str(self._directory / name): score for name, score in self._kept.items()}

    @property
    def best_model_path(self) -> str:
        """The path of the best file, or "" before there is one."""
        return str(self._directory / self._best()) if self._kept else ""

    @property
    def best_model_score(self) -> float | None:
        """The best value of the metric that was saved."""
        return self._kept[self._best()] if self._kept and self.monitor is not None else None

    @property
    def last_model_path(self) -> str:
        """The path of `last.ckpt`, or "" before there is one."""
        return str(self._directory / self._last) if self._last else ""

    def _best(self) -> str:
        return (
            max(self._kept, key=lambda name: self._rank(self._kept[name]))
            if self.monitor is not None
            else next(reversed(self._kept))
        )

    def _rank(self, score: float) -> float:
        """The higher the better; NaN is the worst."""
        return -math.inf if math.isnan(score) else score if self.mode == "max" else -score

    def state_dict(self) -> dict[str, Any]:
        return {"kept": dict(self._kept), "last": self._last, "saved_at": self._saved_at}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._kept, self._last, self._saved_at = dict(state_dict["kept"]), state_dict["last"], state_dict["saved_at"]
        self._resumed = True

    # ── when ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def setup(self, trainer: Any, module: Any, stage: str) -> None:
        if stage != "fit":
            return
        self._kept, self._last, self._saved_at, self._resumed = {}, "", -1, False
        directory = trainer.checkpoint_directory if self.dirpath is None else Path(self.dirpath)
        self._directory = Path(".") if directory is None else directory

    def _saves(self, trainer: Any) -> bool:
        return (
            trainer.enable_checkpointing
            and not trainer.sanity_checking
            and (self.dirpath is not None or trainer.checkpoint_directory is not None)
        )

    def _at_epochs(self, trainer: Any) -> bool:
        """Return True to save at the end of training epochs, False to save after validations."""
        if self.save_on_train_epoch_end is None:
            whole = trainer.val_check_interval == 1.0 or trainer.val_check_interval == trainer.num_training_batches
            return whole and trainer.check_val_every_n_epoch is not None or not any(trainer.num_val_batches)
        return self.save_on_train_epoch_end

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        every = self.every_n_train_steps
        if every and trainer.optimization.stepped and trainer.global_step % every == 0 and self._saves(trainer):
            self._save(trainer)

    def on_validation_end(self, trainer: Any, module: Any) -> None:
        if trainer.state.fn == "fit" and self._saves(trainer) and self._due(trainer) and not self._at_epochs(trainer):
            self._save(trainer)

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        if (
            self._saves(trainer)
            and self._at_epochs(trainer)
            and (self._due(trainer) or not trainer.fit_loop.ended and self.every_n_epochs)
        ):
            self._save(trainer)

    def on_train_end(self, trainer: Any, module: Any) -> None:
        """Let `last.ckpt` hold the end, where that falls between two saves."""
        if (
            self.save_last
            and self._saves(trainer)
            and not trainer.interrupted
            and self._last
            and self._saved_at != trainer.global_step
        ):
            self._saved_at = trainer.global_step
            trainer.save_checkpoint(self._directory / "last.ckpt", self.save_weights_only)

    def _due(self, trainer: Any) -> bool:
        return bool(self.every_n_epochs) and (trainer.current_epoch + 1) % self.every_n_epochs == 0

    # ── saving ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _save(self, trainer: Any) -> None:
        """Save a checkpoint, which includes the table of kept files; then delete the files that dropped out of it."""
        score = self._score(trainer)
        name, dropped = None, list[str]()
        if self.save_top_k and score is not None:
            name = trainer.parallel.first(self._name(trainer))
            dropped = self._enter(name, score)
            name = None if name in dropped else name
        self._saved_at = trainer.global_step
        if self.save_last:
            self._last = "last.ckpt"
        if name is not None:
            trainer.save_checkpoint(self._directory / name, self.save_weights_only)
        if self.save_last:
            self._save_last(trainer, name)
        if trainer.is_global_zero:
            for old in dropped:
                if old != name:
                    with suppress(FileNotFoundError):
                        os.unlink(self._directory / old)
        if self.verbose and name is not None:
            trainer.print(f"step {trainer.global_step}: saved {name}")

    def _score(self, trainer: Any) -> float | None:
        """Return the metric's value, equal in all processes; None if it has no value yet.

        ValueError for a name that nobody logs.
        """
        if self.monitor is None:
            return 0.0
        known = trainer.metrics()
        value = trainer.parallel.first(known.get(self.monitor))
        if (
            value is None
            and trainer.fit_loop.ended
            and trainer.current_epoch + 1 >= (trainer.check_val_every_n_epoch or 1)
        ):
            from ..registry import alternatives

            raise ValueError(
                f"ModelCheckpoint(monitor={self.monitor!r}): no such metric is logged; "
                f"{alternatives(self.monitor, known, 'logged')}"
            )
        return None if value is None else float(value)

    def _enter(self, name: str, score: float) -> list[str]:
        """Enter a file into the table, and return the names that dropped out, which may include `name`."""
        self._kept.pop(name, None)
        self._kept[name] = score
        if self.save_top_k == -1 or len(self._kept) <= self.save_top_k:
            return []
        if self.monitor is None:
            worst = next(iter(self._kept))
        else:
            worst = min(reversed(self._kept), key=lambda one: self._rank(self._kept[one]))
        del self._kept[worst]
        return [worst]

    def _save_last(self, trainer: Any, name: str | None) -> None:
        """Link `last.ckpt` to the file just saved; save a separate file if there is none or links are unsupported."""
        target = self._directory / "last.ckpt"
        linked = False
        if name is not None and trainer.is_global_zero:
            beside = self._directory / f".last.{os.getpid()}.link"
            with suppress(OSError):
                beside.unlink(missing_ok=True)
                os.link(self._directory / name, beside)
                os.replace(beside, target)
                linked = True
        if not trainer.parallel.first(linked):
            trainer.save_checkpoint(target, self.save_weights_only)

    def _name(self, trainer: Any) -> str:
        values = {**trainer.metrics(), "epoch": trainer.current_epoch, "step": trainer.global_step}
        default = "{epoch}-{step}" + (f"-{{{self.monitor}:.4f}}" if self.monitor is not None else "")
        name = self.format_checkpoint_name(values, self.filename or default)
        if not self._resumed and name not in self._kept and (self._directory / f"{name}.ckpt").exists():
            version = next(v for v in range(1, 10**9) if not (self._directory / f"{name}-v{v}.ckpt").exists())
            name = f"{name}-v{version}"
        return f"{name}.ckpt"

    def format_checkpoint_name(self, metrics: dict[str, Any], filename: str) -> str:
        """A file name from one with fields; characters that are no part of a plain name become "_".

        >>> from tensorgrad.experiment.callbacks import ModelCheckpoint
        >>> ModelCheckpoint().format_checkpoint_name({"epoch": 2, "val/loss": 0.126}, "{epoch}-{val/loss:.2f}")
        'epoch=2-val_loss=0.13'
        """

        def value(field: re.Match[str]) -> str:
            name, how = field[1], ""
            if name not in metrics and FORMAT.fullmatch(name.rpartition(":")[2]):
                name, how = (name.rpartition(":")[0], name.rpartition(":")[2]) if ":" in name else (name, "")
            found = metrics.get(name, math.nan)
            text = format(float(found) if how[-1:] in ("e", "E", "f", "F", "g", "G", "%") else found, how)
            return f"{name}={text}" if self.auto_insert_metric_name else text

        return UNSAFE.sub("_", FIELD.sub(value, filename)).lstrip(".")[:200] or "checkpoint"
