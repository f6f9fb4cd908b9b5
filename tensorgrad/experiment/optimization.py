"""Optimizers and schedules of a fit: normalize the result of `configure_optimizers`, and step them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import nn
from ..optim import Optimizer
from ..optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

__all__ = ["Handle", "Optimization", "Schedule", "configured"]

KEYS = ("scheduler", "interval", "frequency", "monitor", "strict", "name")


@dataclass
class Schedule:
    """A scheduler and when it steps: each `frequency`-th epoch or step, by the metric `monitor` if it needs one."""

    scheduler: Any
    interval: str = "epoch"
    frequency: int = 1
    monitor: str | None = None
    strict: bool = True
    name: str | None = None

    @property
    def needs_metric(self) -> bool:
        """True if the scheduler's `step` takes a metric."""
        return isinstance(self.scheduler, ReduceLROnPlateau)


def configured(returned: Any) -> tuple[list[Any], list[Schedule]]:
    """(optimizers, schedules) from any form that `configure_optimizers` may return.

    None; an optimizer; a list of them; ([optimizers], [schedulers]); {"optimizer": …, "lr_scheduler": scheduler or
    {"scheduler": …, "interval": "epoch" or "step", "frequency": …, "monitor": …}}; a list of such mappings. TypeError
    or ValueError for others.

    >>> import tensorgrad as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)
    >>> schedule = {"scheduler": torch.optim.lr_scheduler.ConstantLR(optimizer), "interval": "step"}
    >>> configured({"optimizer": optimizer, "lr_scheduler": schedule})[1][0].interval
    'step'
    """
    if returned is None:
        return [], []
    if isinstance(returned, Optimizer):
        return [returned], []
    if isinstance(returned, Mapping):
        return _described([returned])
    if isinstance(returned, Sequence) and not isinstance(returned, str):
        if len(returned) == 2 and all(isinstance(part, (list, tuple)) for part in returned):
            return _optimizers(returned[0]), [_schedule(one) for one in returned[1]]
        if returned and all(isinstance(one, Mapping) for one in returned):
            return _described(returned)
        return _optimizers(returned), []
    raise TypeError(
        "configure_optimizers returns None, an optimizer, a list of optimizers, ([optimizers], [schedulers]), a "
        f"mapping with 'optimizer' and 'lr_scheduler', or a list of such, not {type(returned).__name__}"
    )


def _optimizers(given: Any) -> list[Any]:
    for one in given:
        if not isinstance(one, Optimizer):
            raise TypeError(f"configure_optimizers: {type(one).__name__} is no optimizer")
    return list(given)


def _described(given: Sequence[Mapping[str, Any]]) -> tuple[list[Any], list[Schedule]]:
    schedules = []
    for one in given:
        if "optimizer" not in one:
            raise ValueError(
                "configure_optimizers: a mapping has the key 'optimizer', and 'lr_scheduler' where there is one; "
                f"this one has {', '.join(map(repr, one)) or 'none'}"
            )
        if one.get("lr_scheduler") is not None:
            schedules.append(_schedule(one["lr_scheduler"], one.get("monitor")))
    return _optimizers([one["optimizer"] for one in given]), schedules


def _schedule(given: Any, monitor: str | None = None) -> Schedule:
    values = dict(given) if isinstance(given, Mapping) else {"scheduler": given}
    unknown = [key for key in values if key not in KEYS and key != "reduce_on_plateau"]
    if unknown or "scheduler" not in values:
        raise ValueError(
            f"configure_optimizers: an 'lr_scheduler' has the keys {', '.join(KEYS)}, "
            f"not {', '.join(map(str, unknown)) or 'those alone'}"
        )
    values.pop("reduce_on_plateau", None)
    schedule = Schedule(**{"monitor": monitor} | values)
    if not isinstance(schedule.scheduler, (LRScheduler, ReduceLROnPlateau)) and not hasattr(schedule.scheduler, "step"):
        raise TypeError(f"configure_optimizers: {type(schedule.scheduler).__name__} is no scheduler")
    if schedule.interval not in ("epoch", "step"):
        raise ValueError(f"configure_optimizers: interval is 'epoch' or 'step', not {schedule.interval!r}")
    if schedule.needs_metric and schedule.monitor is None:
        raise ValueError(
            "configure_optimizers: ReduceLROnPlateau needs the name of a logged metric: "
            "{'scheduler': …, 'monitor': 'val_loss'}"
        )
    return schedule


class Handle:
    """An optimizer in manual optimization: `step` tells the trainer of it, calls hooks and unscales gradients in mixed
    precision."""

    def __init__(self, optimizer: Any, optimization: Optimization) -> None:
        self.optimizer, self._optimization = optimizer, optimization

    def step(self, closure: Callable[[], Any] | None = None, **options: Any) -> Any:
        """The optimizer's step."""
        optimization = self._optimization
        optimization.stepped = True
        for hook in optimization.before_step:
            hook(self.optimizer)
        if optimization.scaler is not None:
            return optimization.scaler.step(self.optimizer, **options)
        return self.optimizer.step(**options) if closure is None else self.optimizer.step(closure, **options)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients."""
        self.optimizer.zero_grad(set_to_none=set_to_none)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.optimizer, name)


class Optimization:
    """The optimizers and schedules of a fit. `stepped`: True if the current batch ended with a step."""

    def __init__(self, trainer: Any, module: Any) -> None:
        self.optimizers, self.schedules = configured(module.configure_optimizers())
        self.stepped, self.fresh = False, True  # fresh: no gradient of an earlier batch waits for its step
        self._trainer, self._module, self.scaler = trainer, module, trainer.precision_plugin.scaler
        self.handles = [Handle(optimizer, self) for optimizer in self.optimizers]
        self.before_step: list[Callable[..., Any]] = []

    def prepare(self, hooks: Any) -> None:
        """Look up, before the first step, the hooks and overrides that a step has to call."""
        from .module import Module

        module, trainer = self._module, self._trainer
        overridden = {
            name: getattr(type(module), name) is not getattr(Module, name) or name in vars(module)
            for name in (
                "optimizer_step",
                "optimizer_zero_grad",
                "configure_gradient_clipping",
                "backward",
                "training_step_end",
            )
        }
        self.before_step = hooks.find("on_before_optimizer_step")
        self._before_zero, self._before_backward = hooks.find("on_before_zero_grad"), hooks.find("on_before_backward")
        self._after_backward = hooks.find("on_after_backward")
        self._zero_grad = module.optimizer_zero_grad if overridden["optimizer_zero_grad"] else None
        self._backward = module.backward if overridden["backward"] else None
        self._step_end = module.training_step_end if overridden["training_step_end"] else None
        self._clips = overridden["configure_gradient_clipping"] or trainer.gradient_clip_val is not None
        self._training_step, self._parallel = trainer.stepper("training_step"), trainer.parallel
        self._accumulate = trainer.accumulate_grad_batches
        closures = any(_needs_closure(optimizer) for optimizer in self.optimizers)
        self._through_module = overridden["optimizer_step"] or closures
        if closures and self.scaler is not None:
            raise ValueError(
                "precision='16-mixed' does not go with an optimizer whose step needs a closure, such as LBFGS"
            )
        if "optimizer_idx" in inspect.signature(module.training_step).parameters:
            raise TypeError(
                "training_step(…, optimizer_idx) belongs to older trainers: with several optimizers set "
                "self.automatic_optimization = False, and use self.optimizers() and self.manual_backward(loss) in "
                "training_step(batch, batch_idx)"
            )

    # ── automatic optimization ────────────────────────────────────────────────────────────────────────────────────────

    def automatic(self, batch: Any, batch_idx: int, steps: bool) -> Any:
        """Process a batch, and step the optimizers if `steps` (a group of accumulated batches ends); return the
        output of `training_step`."""
        self.stepped = False
        if not steps:
            with self._parallel.no_sync():
                return self._gradients(batch, batch_idx)[0]
        if self._through_module:
            return self._with_closures(batch, batch_idx)
        output = self._gradients(batch, batch_idx)[0]
        if not self.fresh:
            self.step()
        return output

    def step(self) -> None:
        """Let all optimizers use the gradients."""
        scaler = self.scaler
        for optimizer in self.optimizers:
            if self.before_step or self._clips:
                self._before(optimizer)
            if scaler is None:
                optimizer.step()
            else:
                scaler.step(optimizer)
                called(optimizer)  # even if the scaler skipped the step
        if scaler is not None:
            scaler.update()
        self.stepped = self.fresh = True

    def _before(self, optimizer: Any) -> None:
        """Run the hooks before a step, and clip the gradients."""
        for hook in self.before_step:
            hook(optimizer)
        if self._clips:
            if self.scaler is not None:
                self.scaler.unscale_(optimizer)
            trainer = self._trainer
            self._module.configure_gradient_clipping(
                optimizer, trainer.gradient_clip_val, trainer.gradient_clip_algorithm
            )

    def _gradients(self, batch: Any, batch_idx: int) -> tuple[Any, Any]:
        """Compute the gradients, unless there is no loss; return (the output of `training_step`, its loss)."""
        output = self._training_step(batch, batch_idx)
        if self._step_end is not None:
            output = self._step_end(output)
        loss = loss_of(output)
        if loss is None:
            return output, None
        if loss.ndim:
            loss = loss.mean()  # of several devices
        if self.fresh:
            self.zero_grad()
            self.fresh = False
        scaled = loss if self._accumulate == 1 else loss / self._accumulate
        for hook in self._before_backward:
            hook(scaled)
        self.backward(scaled)
        for hook in self._after_backward:
            hook()
        return output, loss

    def zero_grad(self) -> None:
        """Drop the gradients of all optimizers."""
        for optimizer in self.optimizers:
            for hook in self._before_zero:
                hook(optimizer)
            if self._zero_grad is None:
                optimizer.zero_grad()
            else:
                self._zero_grad(self._trainer.current_epoch, self._trainer.fit_loop.batch, optimizer)

    def backward(self, loss: Any, *args: Any, **options: Any) -> None:
        """Run the backward pass of a loss, scaled in mixed precision."""
        if self.scaler is not None:
            loss = self.scaler.scale(loss)
        if self._backward is None or args or options:
            loss.backward(*args, **options)
        else:
            self._backward(loss)

    def _with_closures(self, batch: Any, batch_idx: int) -> Any:
        """Step by closures that compute the loss: for an overridden `optimizer_step`, or optimizers such as LBFGS."""
        held: list[Any] = [None, None]
        module, trainer = self._module, self._trainer

        def compute(optimizer: Any) -> Any:
            held[:] = self._gradients(batch, batch_idx)
            if held[1] is not None:
                self.fresh = True  # a further call of the closure begins with no gradients
                self._before(optimizer)
            return held[1]

        for i, optimizer in enumerate(self.optimizers):
            if i == 0:
                closure: Callable[[], Any] = lambda optimizer=optimizer: compute(optimizer)  # noqa: E731
            elif held[1] is None:
                break
            else:
                self._before(optimizer)
                closure = lambda: held[1]  # noqa: E731
            module.optimizer_step(
                trainer.current_epoch,
                batch_idx,
                _Scaled(optimizer, self, held) if self.scaler is not None else optimizer,
                closure,
            )
        if held[1] is not None:
            self.stepped = True
            if self.scaler is not None:
                self.scaler.update()
        return held[0]

    def manual(self, batch: Any, batch_idx: int, steps: bool) -> Any:
        """Process a batch of a module that steps its optimizers itself."""
        self.stepped = False
        output = self._training_step(batch, batch_idx)
        if self._step_end is not None:
            output = self._step_end(output)
        if self.stepped and self.scaler is not None:
            self.scaler.update()
        return output

    def clip(self, optimizer: Any, value: float | None, algorithm: str | None) -> None:
        """Clip the gradients of an optimizer's parameters by their norm or by value."""
        if value is None:
            return
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        (nn.utils.clip_grad_value_ if algorithm == "value" else nn.utils.clip_grad_norm_)(parameters, value)

    # ── schedules ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def step_schedules(self, interval: str, count: int) -> None:
        """Step those of an interval, after `count` of them."""
        module = self._module
        if not (module.automatic_optimization if module.automatic_schedules is None else module.automatic_schedules):
            return
        for schedule in self.schedules:
            if schedule.interval == interval and count % schedule.frequency == 0:
                if not schedule.needs_metric:
                    self._module.lr_scheduler_step(schedule.scheduler, None)
                elif (value := self._monitored(schedule)) is not None:
                    self._module.lr_scheduler_step(schedule.scheduler, value)

    def _monitored(self, schedule: Schedule) -> float | None:
        values = self._trainer.metrics()
        if schedule.monitor in values:
            return self._parallel.first(values[schedule.monitor])  # type: ignore[no-any-return]
        if schedule.strict:
            raise RuntimeError(
                f"ReduceLROnPlateau monitors {schedule.monitor!r}, which is not logged; "
                f"logged are: {', '.join(values) or 'none'}"
            )
        return None


class _Scaled:
    """An optimizer for `optimizer_step` in mixed precision: its step takes the closure's scaled gradients."""

    def __init__(self, optimizer: Any, optimization: Optimization, held: list[Any]) -> None:
        self._optimizer, self._optimization, self._held = optimizer, optimization, held

    def step(self, closure: Callable[[], Any] | None = None, **options: Any) -> Any:
        """Step, unless there is no loss or a gradient is not finite."""
        loss = closure() if closure is not None else self._held[1]
        if loss is not None:
            self._optimization.scaler.step(self._optimizer, **options)
        return loss

    def __getattr__(self, name: str) -> Any:
        return getattr(self._optimizer, name)


def called(optimizer: Any) -> None:
    """Mark an optimizer as stepped, because schedulers warn when they step before it."""
    optimizer._opt_called = True


def _needs_closure(optimizer: Any) -> bool:
    """Return True if the optimizer's `step` requires a closure."""
    closure = inspect.signature(optimizer.step).parameters.get("closure")
    return closure is not None and closure.default is closure.empty


def loss_of(output: Any) -> Any:
    """The loss in what `training_step` returned: a tensor, a mapping with 'loss', or None, which skips the batch."""
    if output is None or hasattr(output, "backward"):
        return output
    if isinstance(output, Mapping):
        if "loss" not in output:
            raise KeyError(
                f"training_step returned a mapping without 'loss'; it has {', '.join(map(repr, output)) or 'nothing'}"
            )
        return output["loss"]
    raise TypeError(f"training_step returns a tensor, a mapping with 'loss', or None, not {type(output).__name__}")
