"""Progress on the screen: one line for a fit, with the time that is left."""

from __future__ import annotations

import math
import sys
import time
from typing import Any

from . import register
from .base import Callback

__all__ = ["Bars", "GlobalProgressBar", "ProgressBar", "on_a_terminal"]


def on_a_terminal() -> bool:
    """Return True if stderr is a terminal."""
    return bool(getattr(sys.stderr, "isatty", lambda: False)())


def _bar(**options: Any) -> Any:
    """Return a tqdm progress bar, or None if tqdm is not installed."""
    try:
        from tqdm import tqdm  # type: ignore[import-untyped]
    except ImportError:
        return None
    return tqdm(dynamic_ncols=True, file=sys.stderr, **options)


class Bars(Callback):
    """Base of progress bars: `enable` and `disable` them, pickle them; only the first process shows one."""

    order = 1

    def __init__(self, process_position: int = 0) -> None:
        self.process_position, self.enabled = process_position, True
        self._shown: Any = None

    def enable(self) -> None:
        """Show the bar."""
        self.enabled = True

    def disable(self) -> None:
        """Hide the bar."""
        self.enabled = False
        self._close()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_shown": None}

    def _close(self) -> None:
        if self._shown is not None:
            self._shown.close()
            self._shown = None

    def on_train_end(self, trainer: Any, module: Any) -> None:
        self._close()

    def on_exception(self, trainer: Any, module: Any, exception: BaseException) -> None:
        self._close()


@register("progress-bar")
class ProgressBar(Bars):
    """A single bar over all batches of a fit, with its metrics of `prog_bar=True` and the time that is left.

    tqdm draws it (extra `experiment`); without tqdm there is a plain line for each epoch. refresh_rate: batches from
    one update to the next.
    """

    def __init__(self, refresh_rate: int = 1, process_position: int = 0) -> None:
        super().__init__(process_position)
        self.refresh_rate = max(1, refresh_rate)
        self._waiting, self._start, self._first = 0, 0.0, 0

    def on_train_start(self, trainer: Any, module: Any) -> None:
        self._start, self._first, self._waiting = time.monotonic(), trainer.fit_loop.batches, 0
        if self.enabled and trainer.is_global_zero:
            total = self._total(trainer)
            self._shown = _bar(
                total=None if total == math.inf else int(total),
                initial=self._first,
                position=self.process_position,
                unit="batch",
                desc=self._epoch(trainer),
            )

    @staticmethod
    def _total(trainer: Any) -> float:
        """The number of batches of the fit."""
        if trainer.max_epochs != -1 and trainer.max_steps < 0:
            return trainer.num_training_batches * trainer.max_epochs  # type: ignore[no-any-return]
        return trainer.estimated_stepping_batches * trainer.accumulate_grad_batches  # type: ignore[no-any-return]

    @staticmethod
    def _epoch(trainer: Any) -> str:
        number = trainer.current_epoch + (trainer.max_epochs == -1 or trainer.current_epoch < trainer.max_epochs)
        return f"Epoch {number}" + (f"/{trainer.max_epochs}" if trainer.max_epochs != -1 else "")

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if self._shown is not None:
            self._waiting += 1
            if self._waiting >= self.refresh_rate:
                self._update(trainer)

    def _update(self, trainer: Any) -> None:
        self._shown.set_description(self._epoch(trainer), refresh=False)
        if trainer.fit_loop.batches % 10 == 0 or self._waiting > 1:
            self._shown.set_postfix(
                {name: f"{value:.6f}" for name, value in trainer.progress_bar_metrics.items()}, refresh=False
            )
        self._shown.update(self._waiting)
        self._waiting = 0

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        if self._shown is not None:
            self._shown.set_postfix(
                {name: f"{value:.6f}" for name, value in trainer.progress_bar_metrics.items()}, refresh=False
            )
            self._update(trainer)
        elif self.enabled and trainer.is_global_zero and trainer.run is None:
            from ..utils import time_text

            done, total = trainer.fit_loop.batches - self._first, self._total(trainer) - self._first
            taken = time.monotonic() - self._start
            ending = f" {time_text(taken)}" + (
                f"/{time_text(taken * total / done)}" if done and total != math.inf else ""
            )
            print(
                f"{self._epoch(trainer)}",
                *(f"{name}={value:.6f}" for name, value in trainer.progress_bar_metrics.items()),
                ending,
                file=sys.stderr,
            )


@register("global-progress-bar")
class GlobalProgressBar(Bars):
    """A single bar over the epochs of a fit; a resumed fit starts at its current epoch.

    Without tqdm it prints lines `epochs: 3/10`.
    """

    def on_train_start(self, trainer: Any, module: Any) -> None:
        if self.enabled and trainer.is_global_zero:
            self._shown = _bar(
                total=None if trainer.max_epochs == -1 else trainer.max_epochs,
                initial=trainer.current_epoch,
                position=self.process_position,
                unit="epoch",
                desc="epochs",
            )

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        if self._shown is not None:
            self._shown.set_postfix(
                {name: f"{value:.6f}" for name, value in trainer.progress_bar_metrics.items()}, refresh=False
            )
            self._shown.update(1)
        elif self.enabled and trainer.is_global_zero:
            print(
                f"epochs: {trainer.current_epoch + 1}" + ("" if trainer.max_epochs == -1 else f"/{trainer.max_epochs}"),
                file=sys.stderr,
            )
