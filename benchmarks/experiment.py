"""Time `tensorgrad.experiment.Trainer` against a hand-written loop: `python -m benchmarks.experiment [--rounds N]`.

Both train a module of the same class on the same batches, and log the loss of each 50th step to a run. Blocks of both
take turns; the ratios are of blocks of the same round.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import tensorgrad as tg
from tensorgrad import nn
from tensorgrad.experiment import Module, Run, Trainer

from .timing import Budget, Case, alternate, quartiles

EVERY = 50


class Tiny(Module):
    """A module of one parameter, whose step measures the overhead of the loop alone."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(tg.ones(1))

    def loss(self, batch: Any) -> Any:
        return (self.weight * batch[0]).sum()

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        loss = self.loss(batch)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self) -> Any:
        return tg.optim.SGD(self.parameters(), lr=1e-6)


class Digits(Tiny):
    """A convolutional net for images of MNIST's size."""

    def __init__(self) -> None:
        Module.__init__(self)
        self.net = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(32 * 7 * 7, 128),
            nn.ReLU(),
            nn.Linear(128, 10),
        )

    def loss(self, batch: Any) -> Any:
        return nn.functional.cross_entropy(self.net(batch[0]), batch[1])


class Row(NamedTuple):
    """A module, its batches, and what is asked of the trainer."""

    name: str
    module: Callable[[], Any]
    batches: list[Any]


def rows() -> list[Row]:
    tg.manual_seed(0)
    images = [(tg.randn(32, 1, 28, 28), tg.randint(0, 10, (32,))) for _ in range(8)]
    return [Row("MNIST's CNN, batch 32", Digits, images * 25), Row("a model of no size", Tiny, [(tg.ones(1),)] * 4000)]


def by_hand(module: Any, batches: list[Any], run: Any) -> None:
    """The loop that a person writes."""
    optimizer = module.configure_optimizers()
    for step, batch in enumerate(batches, 1):
        loss = module.loss(batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % EVERY == 0:
            run.log(step, loss=loss.item())


def trained(module: Any, batches: list[Any], run: Any) -> None:
    """Train the module with `Trainer`."""
    Trainer(
        max_epochs=1,
        run=run,
        log_every_n_steps=EVERY,
        accelerator="cpu",
        enable_progress_bar=False,
        enable_checkpointing=False,
    ).fit(module, batches)


def measured(row: Row, rounds: int) -> str:
    """Microseconds of a step by hand and with the trainer, and quartiles of ratios and differences."""
    with tempfile.TemporaryDirectory() as save:
        runs = [Run(Path(save) / name, events=False, quiet=True) for name in ("hand", "trainer")]
        hand, ours = (
            Case(lambda loop=loop, run=run: loop(row.module(), row.batches, run), lambda: None)
            for loop, run in zip((by_hand, trained), runs)
        )
        theirs, mine = alternate([hand, ours], Budget(rounds=rounds, seconds=0.0, limit=60.0))
        for run in runs:
            run.finish()
    steps = len(row.batches)
    low, middle, high = quartiles([a / b for a, b in zip(mine, theirs)])
    more = statistics.median(a - b for a, b in zip(mine, theirs)) / steps * 1e6
    return (
        f"{row.name:24} by hand {statistics.median(theirs) / steps * 1e6:8.1f} µs a step, "
        f"trainer {statistics.median(mine) / steps * 1e6:8.1f} µs, "
        f"ratio {middle:.4f} ({low:.4f} to {high:.4f}), {more:+.1f} µs a step"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="blocks of each")
    for row in rows():
        print(measured(row, parser.parse_args().rounds), flush=True)


if __name__ == "__main__":
    main()
