"""EarlyStopping: end training when a metric stops improving."""

from __future__ import annotations

import math
from typing import Any

from . import register
from .base import Callback

__all__ = ["EarlyStopping"]


@register("early-stopping")
class EarlyStopping(Callback):
    """Stops when `monitor` has not improved by more than `min_delta` for `patience` checks in a row.

    mode: "min" or "max" is better. strict: a metric that is not logged is an error. check_finite: NaN or infinity
    stops. stopping_threshold: good enough to stop; divergence_threshold: bad enough. The callback checks after each
    epoch, or, where validations come within epochs, after each of those.
    """

    order = 1

    def __init__(
        self,
        monitor: str,
        min_delta: float = 0.0,
        patience: int = 3,
        verbose: bool = False,
        mode: str = "min",
        strict: bool = True,
        check_finite: bool = True,
        stopping_threshold: float | None = None,
        divergence_threshold: float | None = None,
        check_on_train_epoch_end: bool | None = None,
    ) -> None:
        if mode not in ("min", "max"):
            raise ValueError(f"EarlyStopping(mode=…) is 'min' or 'max', not {mode!r}")
        self.monitor, self.min_delta, self.patience, self.verbose, self.mode, self.strict = (
            monitor,
            abs(min_delta),
            patience,
            verbose,
            mode,
            strict,
        )
        self.check_finite, self.check_on_train_epoch_end = check_finite, check_on_train_epoch_end
        self.stopping_threshold, self.divergence_threshold = stopping_threshold, divergence_threshold
        self.wait_count, self.stopped_epoch, self.best_score = 0, 0, math.inf if mode == "min" else -math.inf

    @property
    def state_key(self) -> str:
        return f"EarlyStopping({self.monitor}, {self.mode})"

    def state_dict(self) -> dict[str, Any]:
        return {"wait_count": self.wait_count, "stopped_epoch": self.stopped_epoch, "best_score": self.best_score}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.wait_count, self.stopped_epoch, self.best_score = (
            state_dict[name] for name in ("wait_count", "stopped_epoch", "best_score")
        )

    def setup(self, trainer: Any, module: Any, stage: str) -> None:
        if stage == "fit":
            self.wait_count, self.stopped_epoch, self.best_score = 0, 0, math.inf if self.mode == "min" else -math.inf

    def _at_epochs(self, trainer: Any) -> bool:
        if self.check_on_train_epoch_end is None:
            return (
                trainer.val_check_interval == 1.0
                and trainer.check_val_every_n_epoch == 1
                or not any(trainer.num_val_batches)
            )
        return self.check_on_train_epoch_end

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        if self._at_epochs(trainer):
            self._check(trainer)

    def on_validation_end(self, trainer: Any, module: Any) -> None:
        if trainer.state.fn == "fit" and not trainer.sanity_checking and not self._at_epochs(trainer):
            self._check(trainer)

    def _check(self, trainer: Any) -> None:
        known = trainer.metrics()
        if trainer.fast_dev_run:
            return
        value = trainer.parallel.first(known.get(self.monitor))
        if value is None:
            if self.strict:
                from ..registry import alternatives

                raise RuntimeError(
                    f"EarlyStopping(monitor={self.monitor!r}): no such metric is logged; "
                    f"{alternatives(self.monitor, known, 'logged')}"
                )
            return
        reason = self._reason(float(value))
        if reason:
            trainer.should_stop, self.stopped_epoch = True, trainer.current_epoch
            if self.verbose:
                trainer.print(f"Stopping: {self.monitor} {reason}")

    def _reason(self, value: float) -> str:
        """Return the reason to stop, or ""."""
        sign = 1.0 if self.mode == "min" else -1.0
        if self.check_finite and not math.isfinite(value):
            return f"is {value}"
        if self.stopping_threshold is not None and sign * value < sign * self.stopping_threshold:
            return f"= {value:.6g} has reached {self.stopping_threshold:.6g}"
        if self.divergence_threshold is not None and sign * value > sign * self.divergence_threshold:
            return f"= {value:.6g} is past {self.divergence_threshold:.6g}"
        if sign * value < sign * self.best_score - self.min_delta:
            self.best_score, self.wait_count = value, 0
            return ""
        self.wait_count += 1
        if self.wait_count >= self.patience:
            return f"has not been better than {self.best_score:.6g} for {self.wait_count} checks"
        return ""
