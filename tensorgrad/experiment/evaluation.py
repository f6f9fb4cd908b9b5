"""The loop of a validation, a test or a prediction."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from .. import api as tg
from .data import batches_of, length
from .results import Results

__all__ = ["Evaluation", "step_of"]

HOOKS = {"validate": "validation", "test": "test", "predict": "predict"}


class Evaluation:
    """Runs a module over loaders without gradients. `limits`: the number of batches of each."""

    def __init__(self, trainer: Any, module: Any, stage: str, loaders: list[Any], limits: list[float]) -> None:
        self._trainer, self._module, self._stage, self._name = trainer, module, stage, HOOKS[stage]
        self._loaders, self._limits = loaders, limits
        self.predictions: list[Any] = [[] for _ in loaders]
        self.results = Results(False, trainer.parallel)

    def run(self, complete: Callable[[dict[str, float]], None]) -> bool:
        """Run all batches; False if an interrupt cut them short.

        `complete` is called with the values for a row when all metrics are complete, before callbacks that read or save
        them.
        """
        trainer, module, hooks, name = self._trainer, self._module, self._trainer.hooks, self._name
        modes = [(part, part.training) for part in module.modules()]
        before, stage_before = trainer.results, trainer.state.stage
        trainer.results, trainer.state.stage = self.results, "sanity_check" if trainer.sanity_checking else self._stage
        try:
            with tg.inference_mode() if trainer.inference_mode else tg.no_grad():
                getattr(module, f"on_{name}_model_eval")()
                hooks(f"on_{name}_start")
                hooks("on_epoch_start")
                hooks(f"on_{name}_epoch_start")
                if not self._batches():
                    return False
                hooks(f"on_{name}_epoch_end", late=False)
                hooks("on_epoch_end", late=False)
                row, metrics = self.results.epoch()
                if not trainer.sanity_checking:
                    trainer.known.update(metrics)
                    complete(row)
                hooks(f"on_{name}_epoch_end", late=True)
                hooks("on_epoch_end", late=True)
                hooks(f"on_{name}_end")
            return True
        finally:
            trainer.results, trainer.state.stage = before, stage_before
            for part, training in modes:
                part.training = training

    def _batches(self) -> bool:
        trainer, module, name, results = self._trainer, self._module, self._name, self.results
        start, end = (trainer.hooks.find(f"on_{name}_batch_{when}") for when in ("start", "end"))
        step, several = step_of(trainer, module, f"{name}_step"), len(self._loaders) > 1
        joins = f"{name}_epoch_end" if callable(getattr(module, f"{name}_epoch_end", None)) else None
        outputs: list[list[Any]] = [[] for _ in self._loaders]
        for i, (loader, limit) in enumerate(zip(self._loaders, self._limits)):
            results.dataloader, more = f"/dataloader_idx_{i}" * several, (i,) * several
            for batch_idx, batch in enumerate(loader if limit else ()):
                if batch_idx >= limit:
                    break
                if (
                    trainer.interrupted
                    and self._stage == "validate"
                    and trainer.state.fn == "fit"
                    and trainer.parallel.world == 1
                ):
                    return False
                results.per_batch = True
                results.batch = batch = batch if trainer.transfer is None else trainer.transfer(batch, i)
                for hook in start:
                    hook(batch, batch_idx, *more)
                output = step(batch, batch_idx, i)
                if joins is not None:
                    outputs[i].append(output)
                if self._stage == "predict":
                    self.predictions[i].append(output)
                for hook in end:
                    hook(output, batch, batch_idx, *more)
                results.per_batch = False
                if batch_idx + 1 >= limit < length(loader):
                    break
            results.batch, results.dataloader = None, ""
        if joins is not None:
            getattr(module, joins)(outputs if several else outputs[0])
        return True


def step_of(trainer: Any, module: Any, name: str) -> Callable[..., Any]:
    """Return a step as a function (batch, batch_idx, dataloader_idx), in the trainer's precision; the module's step may
    take fewer arguments."""
    step, count = getattr(module, name), arity(getattr(module, name))
    if name == "training_step":
        step = trainer.parallel.wrapped(module)(name)
        count = min(count, 2)
    if trainer.precision_plugin.mixed:
        inner, precision = step, trainer.precision_plugin

        def under_autocast(*args: Any) -> Any:
            with precision.forward():
                return inner(*args)

        step = under_autocast
    if name == "training_step":
        return step if count == 2 else lambda batch, batch_idx: step(batch)
    return lambda *args: step(*args[:count])


def arity(function: Callable[..., Any]) -> int:
    """Return the number of positional arguments of a step, 1 to 3."""
    kinds = [p.kind for p in inspect.signature(function).parameters.values()]
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        return 3
    return max(
        1, min(3, sum(k in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD) for k in kinds))
    )


def by_loader(metrics: dict[str, float], count: int) -> list[dict[str, float]]:
    """Return the metrics of each loader: those with its number, and those of all."""
    endings = [f"/dataloader_idx_{i}" for i in range(count)]
    return [
        {name: value for name, value in metrics.items() if name.endswith(ending) or not name.endswith(tuple(endings))}
        for ending in endings
    ]


def limited(loaders: list[Any], limit: int | float, name: str) -> list[float]:
    """Return the number of batches used of each loader."""
    return [batches_of(loader, limit, name) for loader in loaders]
