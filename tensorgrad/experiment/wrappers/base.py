"""BaseWrapper: a model, its loss, its optimizer and its schedule, each from a spec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..module import Module
from . import register

__all__ = ["BaseWrapper", "scheduled"]


@register("base")
class BaseWrapper(Module):
    """Trains the model of a spec: `model(batch)` returns a prediction, `loss(prediction, batch)` a mapping with 'loss'
    and any other terms, all logged.

    Terms are logged by their names in training, with `val_` before them in validation and `test_` in a test.
    scheduler_spec may have `interval`, `frequency` and `monitor` beside `name` and `args`; ReduceLROnPlateau monitors
    `val_loss`, or `loss` where there is no validation.

    >>> import tensorgrad as torch
    >>> from tensorgrad.experiment import models, wrappers
    >>> @models.register("line", replace=True)
    ... class Line(torch.nn.Linear):
    ...     def forward(self, batch):
    ...         return super().forward(batch["img"].flatten(1))
    >>> spec = {"name": "line", "args": {"in_features": 4, "out_features": 10}}
    >>> wrapper = wrappers.make({"name": "base", "args": {"model_spec": spec, "loss_spec": {"name": "mnist_ce"},
    ...                                                   "optim_spec": {"name": "SGD", "args": {"lr": 0.1}}}})
    >>> sorted(wrapper.training_step({"img": torch.ones(2, 1, 2, 2), "label": torch.tensor([0, 1])}, 0))
    ['accuracy', 'loss']
    """

    def __init__(
        self,
        model_spec: Mapping[str, Any],
        loss_spec: Mapping[str, Any],
        optim_spec: Mapping[str, Any],
        scheduler_spec: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        from .. import losses, models

        self.save_hyperparameters()
        self.model, self.loss = models.make(model_spec), losses.make(loss_spec)

    def forward(self, batch: Any) -> Any:
        """Return the model's prediction."""
        return self.model(batch)

    def _terms(self, batch: Any, batch_idx: int, stage: str) -> dict[str, Any]:
        """Return the loss's terms, by name."""
        terms = self.loss(self.model(batch), batch, batch_idx=batch_idx, stage=stage, model=self.model)
        return dict(terms) if isinstance(terms, Mapping) else {"loss": terms}

    def training_step(self, batch: Any, batch_idx: int) -> dict[str, Any]:
        """Return the loss's terms."""
        return self._terms(batch, batch_idx, "train")

    def training_step_end(self, outputs: dict[str, Any]) -> dict[str, Any]:
        """Average the terms over devices, and log them by step and by epoch."""
        terms = {name: term.mean() if getattr(term, "ndim", 0) else term for name, term in outputs.items()}
        self.log_dict(terms, prog_bar=True, on_step=True, on_epoch=True, sync_dist=True)
        return terms

    def _evaluated(self, batch: Any, batch_idx: int, stage: str) -> None:
        terms = self._terms(batch, batch_idx, stage)
        self.log_dict({f"{stage}_{name}": term for name, term in terms.items()}, prog_bar=True, sync_dist=True)

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        """Log the terms with `val_` before their names."""
        self._evaluated(batch, batch_idx, "val")

    def test_step(self, batch: Any, batch_idx: int) -> None:
        """Log the terms with `test_` before their names."""
        self._evaluated(batch, batch_idx, "test")

    def configure_optimizers(self) -> Any:
        """Return the optimizer and the schedule of the specs."""
        from ..schedules import make_optimizer

        optimizer = make_optimizer(self.parameters(), self.hparams.optim_spec)
        monitor = "val_loss" if any(self.trainer.num_val_batches) else "loss"
        return scheduled(optimizer, self.hparams.scheduler_spec, monitor)


def scheduled(optimizer: Any, spec: Mapping[str, Any] | None, monitor: str | None = None) -> dict[str, Any]:
    """Return an optimizer with the schedule of a spec, in a form that `configure_optimizers` may return."""
    from ..schedules import make_lr_scheduler

    if spec is None:
        return {"optimizer": optimizer}
    when = {name: spec[name] for name in ("interval", "frequency", "monitor") if name in spec}
    scheduler = make_lr_scheduler(optimizer, {name: value for name, value in spec.items() if name not in when})
    return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "monitor": monitor, **when}}
