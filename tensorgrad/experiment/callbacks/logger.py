"""BaseLogger: a line for each epoch in a log file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from . import register
from .base import Callback

__all__ = ["BaseLogger"]


@register("base-logger")
class BaseLogger(Callback):
    """Writes `Epoch 3/10 loss=0.1234, val_loss=0.2345 12.3s 37.1s/2.1m` for each epoch: its metrics, its time, the time
    so far and an estimate of all.

    The line goes to the log of the trainer's run; without a run to `log.txt` in `save_path`, and to the screen.
    `config` is written to `config.yaml` beside it, unless there is one. Only the first process writes.
    """

    order = 1

    def __init__(self, save_path: Any = None, config: Any = None) -> None:
        self.save_path, self.config = None if save_path is None else Path(save_path), config
        self._before, self._start, self._epoch_start, self._first_epoch = 0.0, 0.0, 0.0, 0

    def state_dict(self) -> dict[str, Any]:
        return {"elapsed": self._before + time.monotonic() - self._start if self._start else self._before}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._before = state_dict["elapsed"]

    def setup(self, trainer: Any, module: Any, stage: str) -> None:
        if stage == "fit":
            self._before, self._start = 0.0, 0.0
            if trainer.is_global_zero and not trainer.fast_dev_run:
                self._write_config(trainer)

    def _write_config(self, trainer: Any) -> None:
        directory = trainer.run.path if trainer.run is not None else self.save_path
        if (
            directory is None
            or self.config is None
            or any((directory / f"config.{ending}").exists() for ending in ("yaml", "json"))
        ):
            return
        from ..config import dump

        directory.mkdir(parents=True, exist_ok=True)
        (directory / "config.yaml").write_text(dump(self.config), encoding="utf-8")

    def on_train_start(self, trainer: Any, module: Any) -> None:
        self._start, self._first_epoch = time.monotonic(), trainer.current_epoch

    def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
        self._epoch_start = time.monotonic()

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        if not trainer.is_global_zero or trainer.fast_dev_run:
            return
        from ..utils import time_text

        now, epoch, last = time.monotonic(), trainer.current_epoch + 1, trainer.max_epochs
        session, done = now - self._start, epoch - self._first_epoch
        left = max(0, last - epoch) * session / done if last != -1 else 0.0
        elapsed = self._before + session
        total = f"/{time_text(elapsed + left)}" if last != -1 else ""
        metrics = ", ".join(f"{name}={value:.4f}" for name, value in self._metrics(trainer).items())
        self._print(
            trainer,
            f"Epoch {epoch}{'' if last == -1 else f'/{last}'} {metrics}{' ' * bool(metrics)}"
            f"{time_text(now - self._epoch_start)} {time_text(elapsed)}{total}",
        )

    @staticmethod
    def _metrics(trainer: Any) -> dict[str, float]:
        """Return each metric once, under its plain name."""
        known = trainer.metrics()
        return {
            name: value
            for name, value in known.items()
            if not any(name.endswith(ending) and name.removesuffix(ending) in known for ending in ("_step", "_epoch"))
        }

    def _print(self, trainer: Any, line: str) -> None:
        if trainer.run is not None or self.save_path is None:
            trainer.print(line)
            return
        from ...messages.escaping import escaped

        self.save_path.mkdir(parents=True, exist_ok=True)
        with open(self.save_path / "log.txt", "a", encoding="utf-8") as file:
            file.write(escaped(line) + "\n")
        print(escaped(line))
