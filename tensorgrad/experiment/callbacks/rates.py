"""LearningRateMonitor: log learning rates."""

from __future__ import annotations

from collections import Counter
from typing import Any

from . import register
from .base import Callback

__all__ = ["LearningRateMonitor"]


@register("learning-rate-monitor")
class LearningRateMonitor(Callback):
    """Logs the learning rate of each optimizer: `lr-Adam`, and `lr-Adam/pg1`, … for several groups of parameters.

    logging_interval: "step" (each row of steps), "epoch" (each epoch's row), or None for both. log_momentum,
    log_weight_decay: those, too.
    """

    def __init__(
        self, logging_interval: str | None = None, log_momentum: bool = False, log_weight_decay: bool = False
    ) -> None:
        if logging_interval not in (None, "step", "epoch"):
            raise ValueError(
                f"LearningRateMonitor(logging_interval=…) is 'step', 'epoch' or None, not {logging_interval!r}"
            )
        self.logging_interval, self.log_momentum, self.log_weight_decay = (
            logging_interval,
            log_momentum,
            log_weight_decay,
        )

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if (
            self.logging_interval != "epoch"
            and trainer.optimization.stepped
            and trainer.global_step % trainer.log_every_n_steps == 0
        ):
            for name, value in self._values(trainer).items():
                module.log(name, value, on_step=True, on_epoch=False)

    def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
        if self.logging_interval != "step":
            trainer.fit_loop.row.update(self._values(trainer))

    def _values(self, trainer: Any) -> dict[str, float]:
        """Return {name: value}, in the optimizers' order."""
        values: dict[str, float] = {}
        seen: Counter[str] = Counter()
        for optimizer in trainer.optimizers:
            kind = type(optimizer).__name__
            name = f"{kind}-{seen[kind]}" if seen[kind] else kind
            seen[kind] += 1
            groups = optimizer.param_groups
            for i, group in enumerate(groups):
                ending = f"/pg{i + 1}" if len(groups) > 1 else ""
                values[f"lr-{name}{ending}"] = float(group["lr"])
                if self.log_momentum and ("momentum" in group or "betas" in group):
                    values[f"lr-{name}-momentum{ending}"] = float(
                        group["momentum"] if "momentum" in group else group["betas"][0]
                    )
                if self.log_weight_decay and "weight_decay" in group:
                    values[f"lr-{name}-weight_decay{ending}"] = float(group["weight_decay"])
        return values
