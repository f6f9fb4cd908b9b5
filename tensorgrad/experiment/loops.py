"""The loop of a fit: epochs of batches, with validations between them, from any place where a checkpoint was saved."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from typing import Any

from . import data, streams
from .batches import mapped
from .evaluation import Evaluation
from .results import Results

__all__ = ["FitLoop"]


class FitLoop:
    """The loop of a fit and its position.

    `epoch` and `batch` count what is done, `validated` says whether the validation due after that batch is, `ended`
    whether the epoch is. A checkpoint of it at any of these places lets the loop go on there; an epoch that an option
    cut short is `closed` when its end has had its hooks and its row. Checkpoints are saved where no gradients wait for
    their step.
    """

    def __init__(self, trainer: Any, module: Any) -> None:
        self._trainer, self._module = trainer, module
        self.epoch = self.batch = self.batches = self.global_step = 0
        self.validated = self.ended = self.closed = False
        self.results = Results(True, trainer.parallel)
        self.row: dict[str, float] = {}  # more values for the epoch's row, a validation's at its end
        self._outputs: list[Any] = []
        self._joins = callable(getattr(module, "training_epoch_end", None))
        self._skipped = self._exhausted = False
        self._end = math.inf  # the time at which to stop
        self._restored: dict[str, Any] | None = None
        self._began: dict[str, Any] | None = (
            None  # random streams at the epoch's start, for loaders that do not know their place
        )

    # ── epochs ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def run(self, restored: dict[str, Any] | None = None) -> None:
        """Train until an option, a callback or an interrupt ends it; `restored`: the checkpoint from which it goes
        on."""
        trainer = self._trainer
        self._restored = restored
        if trainer.max_time is not None:
            self._end = time.monotonic() + trainer.max_time
        trainer.optimization.prepare(trainer.hooks)
        trainer.hooks("on_train_start")
        while self.batch and not self.closed or not self._done():
            if not self._epoch():
                break
        trainer.hooks("on_train_end")

    def _done(self) -> bool:
        trainer = self._trainer
        return trainer.max_epochs != -1 and self.epoch >= trainer.max_epochs or self._stops()

    def _stops(self) -> bool:
        """Return True if training ends here, between two steps; all processes agree on the answer."""
        trainer = self._trainer
        if time.monotonic() >= self._end:
            trainer.should_stop = True
        if trainer.parallel.world > 1:
            agreed = trainer.parallel.extreme(2 * trainer.interrupted + trainer.should_stop, "max")
            trainer.interrupted, trainer.should_stop = agreed >= 2, agreed % 2 == 1
        if trainer.interrupted or 0 <= trainer.max_steps <= self.global_step:
            return True
        return trainer.should_stop and self.epoch >= trainer.min_epochs and self.global_step >= trainer.min_steps

    def _restore(self) -> None:
        """Load the checkpoint once more, to undo what start hooks have changed."""
        if self._restored is not None:
            state, self._restored = self._restored, None
            self._trainer.resuming.load(state)

    def _epoch(self) -> bool:
        """Run an epoch, or the rest of a resumed one; False if training ended within it."""
        trainer, hooks, results = self._trainer, self._trainer.hooks, self.results
        trainer.results, results.per_batch = results, False
        if not self.batch:
            self._restore()
            results.reset()
            self._outputs, self.row = [], {}
        self.ended = self.closed = self._skipped = self._exhausted = False
        try:
            hooks("on_epoch_start")
            hooks("on_train_epoch_start")
            self._restore()
            self._batches(self._iterator())
            if trainer.interrupted:
                return False
            self._finish_epoch()
        finally:
            trainer.results = None
        if not self.ended:
            return False
        self.epoch, self.batch, self.validated, self.ended = self.epoch + 1, 0, False, False
        return True

    def _iterator(self) -> Iterator[Any]:
        """Return an iterator over the remaining batches of the epoch."""
        (loader,) = self._trainer.source.loaders("train")
        data.new_epoch(loader, self.epoch)
        if self._trainer.resuming.knows_its_place(loader):
            return iter(loader)
        before = streams.state()
        if not self.batch:
            self._began = before
            return iter(loader)
        streams.restore(self._began)
        batches = iter(loader)
        for _ in itertools.islice(batches, self.batch):
            pass
        streams.restore(before)
        return batches

    def _finish_epoch(self) -> None:
        trainer, hooks, optimization = self._trainer, self._trainer.hooks, self._trainer.optimization
        results = self.results
        results.per_batch, results.batch = False, None
        self.ended = self._exhausted or self._skipped or self.batch >= trainer.num_training_batches
        if not optimization.fresh:
            optimization.step()
            self._stepped()
        if not self.validated and self._validates():
            self._validate()
            if trainer.interrupted and not self.validated:
                self.ended = False
                return
        if self._joins:
            self._module.training_epoch_end(self._outputs)
        hooks("on_train_epoch_end", late=False)
        hooks("on_epoch_end", late=False)
        row, metrics = results.epoch()
        own = dict(results.latest()) | metrics
        trainer.known = own | {name: value for name, value in trainer.known.items() if name not in own}
        trainer.shown |= results.shown()
        if self.ended:
            optimization.step_schedules("epoch", self.epoch + 1)
        trainer.log_row(row | self.row)
        self.closed = True
        hooks("on_train_epoch_end", late=True)
        hooks("on_epoch_end", late=True)

    # ── batches ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _batches(self, batches: Iterator[Any]) -> None:
        trainer, module, optimization, results = self._trainer, self._module, self._trainer.optimization, self.results
        find, transfer = trainer.hooks.find, trainer.transfer
        start, end, late = (
            find("on_train_batch_start"),
            find("on_train_batch_end", False),
            find("on_train_batch_end", True),
        )
        step = optimization.automatic if module.automatic_optimization else optimization.manual
        count, accumulate, every = (
            trainer.num_training_batches,
            trainer.accumulate_grad_batches,
            trainer.log_every_n_steps,
        )
        outputs = bool(start or end or late or self._joins)
        whole = count >= data.length(trainer.train_dataloader)  # then the loader is to come to its end, and to know it
        due = self._next_validation()
        results.per_batch = True
        while True:
            if self.batch >= due:
                if not self._validate():
                    return
                due = self._next_validation()
            if optimization.fresh and self._stops():
                return
            if self.batch >= count and not whole:
                return
            try:
                batch = next(batches)
            except StopIteration:
                self._exhausted = True
                return
            index = self.batch
            results.batch = batch = batch if transfer is None else transfer(batch, 0)
            if start and -1 in [hook(batch, index) for hook in start]:
                self._skipped = True
                return
            output = step(batch, index, accumulate == 1 or (index + 1) % accumulate == 0 or index + 1 == count)
            self.batch, self.validated = index + 1, False
            self.batches += 1
            if optimization.stepped:
                self._stepped()
            if outputs:
                output = mapped(_detached, output)
                if self._joins:
                    self._outputs.append(output)
                for hook in end:
                    hook(output, batch, index)
            if optimization.stepped and self.global_step % every == 0:
                values = results.step()
                if values:
                    trainer.log_row(values)
            for hook in late:
                hook(output, batch, index)

    def _stepped(self) -> None:
        self.global_step += 1
        if self._trainer.optimization.schedules:
            self._trainer.optimization.step_schedules("step", self.global_step)

    # ── validations ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _validates(self) -> bool:
        """Return True if a validation is due at the end of this epoch."""
        trainer = self._trainer
        if not any(trainer.num_val_batches):
            return False
        every = trainer.check_val_every_n_epoch
        return (
            every is not None
            and (self.epoch + 1) % every == 0
            and (not self.ended or self._interval() >= trainer.num_training_batches)
        )

    def _interval(self) -> float:
        """The number of batches from one validation to the next."""
        trainer = self._trainer
        interval, count = trainer.val_check_interval, trainer.num_training_batches
        if isinstance(interval, int):
            return interval
        if interval == 1.0:
            return count  # type: ignore[no-any-return]
        if count == math.inf:
            raise ValueError(
                f"Trainer(val_check_interval={interval}): a part of a loader that has no length; give a number of "
                "batches"
            )
        return max(1, int(count * interval))

    def _next_validation(self) -> float:
        """The number of batches of this epoch after which the next validation is due; one that is overdue counts."""
        trainer = self._trainer
        every = trainer.check_val_every_n_epoch
        if not any(trainer.num_val_batches) or every is not None and (self.epoch + 1) % every:
            return math.inf
        interval, before = self._interval(), self.batches - self.batch if every is None else 0
        if interval in (0, math.inf):
            return math.inf
        group, count = trainer.accumulate_grad_batches, trainer.num_training_batches
        for k in itertools.count(max(1, (before + self.batch - group) // interval)):
            due = k * interval - before
            if due <= count:
                due = min(-(-due // group) * group, count)  # where accumulated gradients have had their step
            if due > self.batch or due == self.batch and self.batch and not self.validated:
                return due  # type: ignore[no-any-return]
        raise AssertionError

    def _validate(self) -> bool:
        """Validate within the fit; False if an interrupt cut it short, which leaves the state as it was before."""
        trainer, results = self._trainer, self.results
        before = streams.state()
        trainer.shown |= results.shown()

        def complete(row: dict[str, float]) -> None:
            self.validated = True
            if self.ended or self._exhausted or self.batch >= trainer.num_training_batches:
                self.row |= row
            elif row:
                trainer.log_row(row)

        loop = Evaluation(trainer, self._module, "validate", trainer.source.loaders("val"), trainer.num_val_batches)
        if loop.run(complete):
            trainer.shown |= loop.results.shown()
            return True
        streams.restore(before)
        return False

    # ── where it is ───────────────────────────────────────────────────────────────────────────────────────────────────

    def state_dict(self) -> dict[str, Any]:
        """Return the position of the loop and the epoch's metrics so far."""
        trainer = self._trainer
        return {
            "epoch": self.epoch,
            "batch": self.batch,
            "batches": self.batches,
            "global_step": self.global_step,
            "validated": self.validated,
            "ended": self.ended,
            "closed": self.closed,
            "results": self.results.state_dict(),
            "began": self._began,
            "row": dict(self.row),
            "outputs": list(self._outputs),
            "known": dict(trainer.known),
            "logged": dict(trainer.logged),
            "shown": sorted(trainer.shown),
            "should_stop": trainer.should_stop,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the position of the loop and the epoch's metrics."""
        trainer = self._trainer
        ended = state["ended"]
        self.epoch, self.batch = (state["epoch"] + 1, 0) if ended else (state["epoch"], state["batch"])
        self.batches, self.global_step, self.validated, self.ended = (
            state["batches"],
            state["global_step"],
            state["validated"] and not ended,
            False,
        )
        self.results.load_state_dict({} if ended else state["results"])
        self.closed = state["closed"]
        self._began, self.row, self._outputs = state["began"], dict(state["row"]), list(state["outputs"])
        trainer.known, trainer.logged, trainer.shown = dict(state["known"]), dict(state["logged"]), set(state["shown"])
        trainer.should_stop = state["should_stop"]


def _detached(value: Any) -> Any:
    return value.detach() if callable(getattr(value, "detach", None)) else value
