"""Module: a model with its loss, its optimizers and what it logs, for a `Trainer`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from .. import nn
from .datamodule import Loaders
from .hooks import DataHooks, ModuleHooks
from .hparams import HasHyperparameters

__all__ = ["LightningModule", "Module"]


class Module(nn.Module, ModuleHooks, DataHooks, Loaders, HasHyperparameters):
    """An `nn.Module` that says how it is trained: override `training_step` and `configure_optimizers`, and of the rest
    what you need.

    Set `automatic_optimization = False` to step optimizers yourself: `optimizers()`, `manual_backward(loss)`,
    `lr_schedulers()`.

    >>> import tensorgrad as torch
    >>> from tensorgrad.experiment import Module, Trainer
    >>> class Line(Module):
    ...     def __init__(self, lr=0.1):
    ...         super().__init__()
    ...         self.save_hyperparameters()
    ...         self.line = torch.nn.Linear(1, 1)
    ...     def training_step(self, batch, batch_idx):
    ...         x, y = batch
    ...         loss = (self.line(x) - y).square().mean()
    ...         self.log("loss", loss)
    ...         return loss
    ...     def configure_optimizers(self):
    ...         return torch.optim.SGD(self.parameters(), lr=self.hparams.lr)
    >>> x = torch.linspace(-1, 1, 8).reshape(-1, 1)
    >>> loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, 2 * x + 1), batch_size=4)
    >>> trainer = Trainer(max_epochs=40, enable_progress_bar=False)
    >>> trainer.fit(Line(), loader)
    >>> float(trainer.callback_metrics["loss"]) < 1e-3
    True
    """

    automatic_optimization = True
    automatic_schedules: bool | None = None  # True: the trainer steps schedulers; None: if it steps the optimizers

    # ── steps ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        """The loss of a batch: a tensor, a mapping with 'loss', or None, which skips the batch."""
        raise NotImplementedError(f"{type(self).__name__} has no training_step(batch, batch_idx), which fit needs")

    def training_step_end(self, outputs: Any) -> Any:
        """Return the output of `training_step`, joined if several devices computed it; override to change it."""
        return outputs

    def validation_step(self, batch: Any, batch_idx: int) -> Any:
        """Evaluate a batch of validation data; runs without gradients."""

    def test_step(self, batch: Any, batch_idx: int) -> Any:
        """Evaluate a batch of test data; runs without gradients."""

    def predict_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> Any:
        """Return the prediction for a batch: by default `self(batch)`."""
        return self(batch)

    def configure_optimizers(self) -> Any:
        """The optimizers and schedulers, in one of the forms that `optimization.configured` lists."""
        raise NotImplementedError(f"{type(self).__name__} has no configure_optimizers(), which fit needs")

    def configure_callbacks(self) -> Any:
        """Callbacks that the module brings along."""
        return []

    # ── logging ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def log(
        self,
        name: str,
        value: Any,
        prog_bar: bool = False,
        logger: bool = True,
        on_step: bool | None = None,
        on_epoch: bool | None = None,
        reduce_fx: Any = "mean",
        sync_dist: bool = False,
        batch_size: int | None = None,
        **ignored: Any,
    ) -> None:
        """Log a number or a tensor of one element.

        on_step: each `log_every_n_steps`-th value is a row's; on_epoch: an epoch's values are reduced by `reduce_fx`
        ("mean", "sum", "min", "max" or a function of a list), the mean weighted by `batch_size`, which is found in the
        batch. By default steps of training log by step, all else by epoch; with both the rows have `<name>_step` and
        `<name>_epoch`. prog_bar: show it; sync_dist: reduce over processes, too.
        """
        trainer = self.__dict__.get("_trainer")
        if trainer is None:
            return
        results = trainer.results
        if results is None:
            raise RuntimeError(
                f"log({name!r}, …): nothing can be logged at this moment; log in steps and hooks of batches "
                "and epochs"
            )
        results.log(name, value, prog_bar, logger, on_step, on_epoch, reduce_fx, sync_dist, batch_size)

    def log_dict(self, values: Mapping[str, Any], **options: Any) -> None:
        """Log several values alike; see `log`."""
        for name, value in values.items():
            self.log(name, value, **options)

    def print(self, *parts: Any) -> None:
        """Print a line: in the log of the run, if there is one, and in the first process only."""
        if (trainer := self.__dict__.get("_trainer")) is None:
            print(*parts)
        else:
            trainer.print(*parts)

    # ── where it is ───────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def trainer(self) -> Any:
        """The trainer at work on it."""
        if (trainer := self.__dict__.get("_trainer")) is None:
            raise RuntimeError(
                f"{type(self).__name__} is not attached to a Trainer: fit, validate, test and predict attach it"
            )
        return trainer

    @trainer.setter
    def trainer(self, trainer: Any) -> None:
        self.__dict__["_trainer"] = trainer

    @property
    def device(self) -> Any:
        """The device of its parameters or buffers."""
        from .. import device

        found = next(self.parameters(), None)
        found = next(self.buffers(), None) if found is None else found
        return device("cpu") if found is None else found.device

    @property
    def current_epoch(self) -> int:
        """The number of the epoch, from 0."""
        return self._trainer.current_epoch if self.__dict__.get("_trainer") is not None else 0

    @property
    def global_step(self) -> int:
        """How many steps the optimizers have done."""
        return self._trainer.global_step if self.__dict__.get("_trainer") is not None else 0

    @property
    def global_rank(self) -> int:
        """The number of this process."""
        return self._trainer.global_rank if self.__dict__.get("_trainer") is not None else 0

    @property
    def logger(self) -> Any:
        """The run, or None."""
        return self._trainer.run if self.__dict__.get("_trainer") is not None else None

    # ── optimization ──────────────────────────────────────────────────────────────────────────────────────────────────

    def optimizers(self, use_pl_optimizer: bool = True) -> Any:
        """The optimizer, or the list of them; `use_pl_optimizer=False`: themselves, whose steps the trainer does not
        count."""
        optimization = self.trainer.optimization
        found = optimization.handles if use_pl_optimizer else optimization.optimizers
        return found[0] if len(found) == 1 else list(found)

    def lr_schedulers(self) -> Any:
        """The scheduler, the list of them, or None."""
        found = [schedule.scheduler for schedule in self.trainer.optimization.schedules]
        return None if not found else found[0] if len(found) == 1 else found

    def manual_backward(self, loss: Any, *args: Any, **options: Any) -> None:
        """`loss.backward(…)` as the trainer's precision wants it."""
        self.trainer.optimization.backward(loss, *args, **options)

    def backward(self, loss: Any) -> None:
        """Compute the gradients of the loss; override to change how."""
        loss.backward()

    def optimizer_step(self, epoch: int, batch_idx: int, optimizer: Any, optimizer_closure: Any = None) -> None:
        """Step the optimizer; the closure computes the loss and the gradients."""
        optimizer.step(closure=optimizer_closure)

    def optimizer_zero_grad(self, epoch: int, batch_idx: int, optimizer: Any) -> None:
        """Drop the gradients."""
        optimizer.zero_grad()

    def lr_scheduler_step(self, scheduler: Any, metric: Any) -> None:
        """Step a scheduler, with the metric that it monitors or None."""
        if metric is None:
            scheduler.step()
        else:
            scheduler.step(metric)

    def configure_gradient_clipping(
        self, optimizer: Any, gradient_clip_val: float | None = None, gradient_clip_algorithm: str | None = None
    ) -> None:
        """Clip gradients before a step, as the trainer was told."""
        self.clip_gradients(optimizer, gradient_clip_val, gradient_clip_algorithm)

    def clip_gradients(
        self, optimizer: Any, gradient_clip_val: float | None = None, gradient_clip_algorithm: str | None = "norm"
    ) -> None:
        """Clip the gradients of an optimizer's parameters: their "norm", or each "value"."""
        self.trainer.optimization.clip(
            getattr(optimizer, "optimizer", optimizer), gradient_clip_val, gradient_clip_algorithm
        )

    def toggle_optimizer(self, optimizer: Any) -> None:
        """Let only the parameters of this optimizer require gradients, until `untoggle_optimizer`."""
        own = {id(p) for group in optimizer.param_groups for p in group["params"]}
        before = {}
        for one in self.trainer.optimization.optimizers:
            for parameter in (p for group in one.param_groups for p in group["params"]):
                if id(parameter) not in own and id(parameter) not in before:
                    before[id(parameter)] = parameter, parameter.requires_grad
                    parameter.requires_grad_(False)
        self.__dict__.setdefault("_toggled", []).append(before)

    def untoggle_optimizer(self, optimizer: Any = None) -> None:
        """Undo the last `toggle_optimizer`."""
        for parameter, required in (self.__dict__.get("_toggled") or [{}]).pop().values():
            parameter.requires_grad_(required)

    @contextmanager
    def toggled_optimizer(self, optimizer: Any) -> Iterator[None]:
        """`toggle_optimizer` for a block."""
        self.toggle_optimizer(optimizer)
        try:
            yield
        finally:
            self.untoggle_optimizer(optimizer)

    # ── its parameters ────────────────────────────────────────────────────────────────────────────────────────────────

    def freeze(self) -> None:
        """Let no parameter require a gradient, and switch to evaluation mode."""
        for parameter in self.parameters():
            parameter.requires_grad_(False)
        self.eval()

    def unfreeze(self) -> None:
        """Let all parameters require gradients, and switch to training mode."""
        for parameter in self.parameters():
            parameter.requires_grad_(True)
        self.train()

    @classmethod
    def load_from_checkpoint(
        cls, checkpoint_path: Any, map_location: Any = None, strict: bool = True, **arguments: Any
    ) -> Any:
        """Return a module with a checkpoint's hyper-parameters and parameters; `arguments` override the former.

        No code in the file runs.
        """
        from .resuming import arguments_for, read

        state = read(checkpoint_path, map_location)
        module = cls(**arguments_for(cls, state.get("hyper_parameters", {}), arguments))
        module.on_load_checkpoint(state)
        module.load_state_dict(state["state_dict"], strict=strict)
        return module

    def __getstate__(self) -> Any:
        state = super().__getstate__()  # type: ignore[misc]
        return (
            {name: value for name, value in state.items() if name not in ("_trainer", "_toggled")}
            if isinstance(state, dict)
            else state
        )


LightningModule = Module
