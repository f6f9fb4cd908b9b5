"""Logged values: the latest of each name, and their reduction over an epoch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .. import api as tg

__all__ = ["Logged", "Results"]

REDUCE = ("mean", "sum", "min", "max")


@dataclass(slots=True)
class Logged:
    """A name that is logged: how, its latest value, and the epoch's values so far.

    The mean of an epoch is Σ value·n / Σ n, with the number n of samples of each batch; it is added up in double
    precision, on the value's device.
    """

    name: str
    prog_bar: bool
    logger: bool
    on_step: bool
    on_epoch: bool
    reduce: str | Callable[[list[float]], Any]
    sync_dist: bool
    value: Any = None
    total: Any = None
    weight: int = 0
    values: list[float] = field(default_factory=list)

    def add(self, value: Any, samples: int) -> None:
        """Record a value of `samples` samples; ValueError unless it has a single element."""
        if isinstance(value, tg.Tensor):
            value = value.detach()
            if value.ndim and value.numel() != 1:
                raise ValueError(
                    f"log({self.name!r}, …) takes a number or a tensor of one element, "
                    f"not one of shape {tuple(value.shape)}"
                )
        self.value = value
        if self.on_epoch:
            self._count(value, samples)

    def _count(self, value: Any, samples: int) -> None:
        if isinstance(value, tg.Tensor) and value.is_cuda:
            value = value.double().reshape(())
            if isinstance(self.total, tg.Tensor):
                value = value.to(self.total.device)  # of several GPUs
        else:
            value = float(value)
        if self.reduce == "mean":
            value = value * samples
            self.total = value if self.total is None else self.total + value
            self.weight += samples
        elif self.reduce == "sum":
            self.total = value if self.total is None else self.total + value
        elif callable(self.reduce):
            self.values.append(float(value))
        else:
            value = float(value)
            self.total = value if self.total is None else (min if self.reduce == "min" else max)(self.total, value)

    def latest(self, parallel: Any = None) -> float:
        """The latest value, as a mean over processes where `sync_dist` says so."""
        value = float(self.value)
        return parallel.mean(value) if self.sync_dist and parallel is not None else value

    def result(self, parallel: Any) -> float:
        """Return the epoch's values, reduced; NaN if there is none."""
        if callable(self.reduce):
            value = float(self.reduce(self.values)) if self.values else math.nan
            return parallel.mean(value) if self.sync_dist else value
        empty = self.total is None
        total, weight = 0.0 if empty else float(self.total), self.weight
        if self.sync_dist and self.reduce in ("mean", "sum"):
            total, weight = parallel.sum(total), parallel.sum(weight)
        elif self.sync_dist:
            return parallel.extreme(math.nan if empty else total, self.reduce)  # type: ignore[no-any-return]
        if self.reduce == "mean":
            return total / weight if weight else math.nan
        return math.nan if empty and not self.sync_dist else total

    def state(self) -> dict[str, Any]:
        """Return the epoch's values so far as plain data."""
        total = None if self.total is None else float(self.total)
        return {
            "flags": [self.prog_bar, self.logger, self.on_step, self.on_epoch, self.sync_dist],
            "reduce": None if callable(self.reduce) else self.reduce,
            "value": None if self.value is None else float(self.value),
            "total": total,
            "weight": self.weight,
            "values": list(self.values),
        }


class Results:
    """The values that a stage logs.

    `per_batch`: True while a batch is processed; training then logs with `on_step` by default.

    A name that is logged with both `on_step` and `on_epoch` gets the endings `_step` and `_epoch`; `metrics` has it
    under its plain name, too.
    """

    def __init__(self, training: bool, parallel: Any) -> None:
        self.training, self.per_batch, self.batch, self.dataloader = training, False, None, ""
        self._parallel, self._logged = parallel, {}  # type: ignore[var-annotated]
        self._turn = parallel.turn()
        self._restored: dict[str, Any] = {}
        self._samples: tuple[Any, int] = (None, 1)

    def log(
        self,
        name: str,
        value: Any,
        prog_bar: bool,
        logger: bool,
        on_step: bool | None,
        on_epoch: bool | None,
        reduce: Any,
        sync_dist: bool,
        samples: int | None,
    ) -> None:
        """Log a value."""
        if self.dataloader:
            name += self.dataloader
        with self._turn:
            known = self._logged.get(name)
            if known is None:
                known = self._new(name, prog_bar, logger, on_step, on_epoch, reduce, sync_dist)
            known.add(value, self.samples() if samples is None and known.on_epoch else samples or 1)

    def samples(self) -> int:
        """Return the number of samples of the current batch, counted once per batch."""
        from .batches import size

        if self.batch is None:
            return 1
        if self._samples[0] is not self.batch:
            self._samples = self.batch, size(self.batch)
        return self._samples[1]

    def _new(
        self,
        name: str,
        prog_bar: bool,
        logger: bool,
        on_step: bool | None,
        on_epoch: bool | None,
        reduce: Any,
        sync_dist: bool,
    ) -> Logged:
        if not isinstance(name, str):
            raise TypeError(f"the name of a logged value is a string, not {name!r}")
        reduce = getattr(reduce, "__name__", "") if getattr(reduce, "__name__", "") in REDUCE else reduce
        if reduce not in REDUCE and not callable(reduce):
            raise ValueError(
                f"reduce_fx is one of {', '.join(map(repr, REDUCE))} or a function of a list of numbers, not {reduce!r}"
            )
        per_step = self.training and self.per_batch
        on_step = per_step if on_step is None else on_step
        on_epoch = not per_step if on_epoch is None else on_epoch
        if not (on_step or on_epoch):
            raise ValueError(f"log({name!r}, …, on_step=False, on_epoch=False) logs nothing")
        if on_step and not self.per_batch:
            raise ValueError(
                f"log({name!r}, …, on_step=True) has its place where a batch is at work, not in hooks of epochs"
            )
        known = Logged(name, prog_bar, logger, on_step, on_epoch, reduce, sync_dist)
        if name in self._restored:
            state = self._restored.pop(name)
            known.value, known.total, known.weight, known.values = (
                state["value"],
                state["total"],
                state["weight"],
                list(state["values"]),
            )
        self._logged[name] = known
        return known

    def reset(self) -> None:
        """Forget everything: a new epoch begins."""
        self._logged.clear()
        self._restored.clear()

    def step(self) -> dict[str, float]:
        """The latest values of those logged by step, for a row."""
        return {
            _named(one, "_step"): one.latest(self._parallel)
            for one in self._logged.values()
            if one.on_step and one.logger
        }

    def epoch(self) -> tuple[dict[str, float], dict[str, float]]:
        """(values for the epoch's row, values for `callback_metrics`)."""
        row, metrics = {}, {}
        for one in self._logged.values():
            if one.on_epoch:
                value = one.result(self._parallel)
                metrics[one.name] = metrics[_named(one, "_epoch")] = value
                if one.logger:
                    row[_named(one, "_epoch")] = value
        return row, metrics

    def latest(self, shown: bool = False) -> Mapping[str, float]:
        """The latest values by name, or only those for the progress bar."""
        found = {}
        for one in self._logged.values():
            if one.value is not None and (one.prog_bar or not shown):
                found[one.name] = one.latest()
                if one.on_step and one.on_epoch and not shown:
                    found[one.name + "_step"] = found[one.name]
        return found

    def shown(self) -> set[str]:
        """The names for the progress bar."""
        return {one.name for one in self._logged.values() if one.prog_bar}

    def state_dict(self) -> dict[str, Any]:
        """Return the epoch's values so far as plain data."""
        return self._restored | {name: one.state() for name, one in self._logged.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume in the middle of an epoch. A reducing function is known again once its name is logged."""
        self.reset()
        for name, saved in state.items():
            self._restored[name] = saved
            if saved["reduce"] is not None:
                prog_bar, logger, on_step, on_epoch, sync_dist = saved["flags"]
                self.per_batch, before = True, self.per_batch
                self._new(name, prog_bar, logger, on_step, on_epoch, saved["reduce"], sync_dist)
                self.per_batch = before


def _named(one: Logged, ending: str) -> str:
    return one.name + ending if one.on_step and one.on_epoch else one.name
