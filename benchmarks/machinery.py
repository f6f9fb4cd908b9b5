"""Measure the overhead of recording and pulling, the growth of time, the time of a start, and memory."""
from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from . import memory, startup
from .timing import Budget, Case, Measurement, alternate, summary
from .training import STEPS
from .workloads import PYTORCH, Workload

if TYPE_CHECKING:
    from .processes import Process


def scalars(engine: Any) -> tuple[Any, Any]:
    return engine.tensor([0.5], requires_grad=True), engine.tensor([0.9999], requires_grad=True)


def recorded(engine: Any, tiny: bool) -> Case:
    a, b = scalars(engine)
    run = lambda: a + b
    return Case(run, lambda: [run()])


def small_graph(engine: Any, tiny: bool) -> Case:
    x, _ = scalars(engine)

    def run() -> Any:
        x.grad = None
        (x * x + x).backward()
        return x.grad
    return Case(run, lambda: [run()])


def small_layer(engine: Any, tiny: bool) -> Case:
    engine.manual_seed(0)
    layer, x = engine.nn.Linear(8, 8), engine.randn(1, 8)
    return Case(partial(layer, x), lambda: [layer(x)])


def chain(engine: Any, tiny: bool, backward: bool = False) -> Case:
    a, b = scalars(engine)

    def forward() -> Any:
        a.grad = b.grad = None
        x = a
        for _ in range(1000):
            x = x * b
        return x

    def results() -> list[Any]:
        out = forward()
        out.backward()
        return [out, a.grad, b.grad]
    return Case(lambda out: out.backward(), results, forward) if backward else Case(forward, results)


# ── how time grows ────────────────────────────────────────────────────────────────────────────


def layers(engine: Any, tiny: bool, batch: int = 64, depth: int = 1, width: int = 64) -> Case:
    """A step of an MLP: its time should be proportional to the batch, the depth, and the width of the first hidden
    layer.
    """
    nn = engine.nn
    engine.manual_seed(0)
    widths = [256, width] + [64] * depth
    model, x = (nn.Sequential(*(layer for a, b in zip(widths, widths[1:]) for layer in (nn.Linear(a, b), nn.ReLU()))),
                engine.randn(batch, 256))
    optimizer = engine.optim.SGD(model.parameters(), 0.1)

    def run() -> Any:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss
    return Case(run, lambda: [run(), run()])


@dataclass(frozen=True)
class Growth(Workload):
    """The ratio at the largest size, and the exponent of time over all sizes."""

    sizes: tuple[int, ...] = ()
    argument: str = ""

    def compare(self, columns: Mapping[str, Process], group: str, budget: Budget) -> dict[str, Measurement]:
        rounds = []
        for n in self.sizes:
            self.agree(columns, group, **{self.argument: n})
            rounds.append(alternate(list(columns.values()), budget))
        times = {name: [column[i] for column in rounds] for i, name in enumerate(columns)}
        grows = {name: f"{exponent(self.sizes, [*map(statistics.median, found)]):.2f}" for name, found in times.items()}
        theirs, reference = (times[PYTORCH][-1], f", PyTorch's {grows[PYTORCH]}") if PYTORCH in times else (None, "")
        return {name: summary(times[name][-1], theirs, note=f"time grows with exponent {grows[name]}{reference}")
                for name in columns if name != PYTORCH}


def exponent(sizes: Sequence[float], times: Sequence[float]) -> float:
    """The slope of log time over log size, by least squares: 1 is linear."""
    return statistics.linear_regression([math.log(n) for n in sizes], [math.log(t) for t in times]).slope


# ── processes of their own ────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Fresh(Workload):
    """A row that needs fresh processes: `measured` for each column, after `first` rounds that do not count."""

    measured: Callable[[Process], float] = field(kw_only=True)
    unit: str = "s"
    rounds: int = 5
    first: int = 0

    def compare(self, columns: Mapping[str, Process], group: str, budget: Budget) -> dict[str, Measurement]:
        rounds = [[self.measured(process) for process in columns.values()]
                  for _ in range(self.first + min(budget.rounds, self.rounds))][self.first:]
        times = dict(zip(columns, map(list, zip(*rounds))))
        return {name: summary(times[name], times.get(PYTORCH), unit=self.unit) for name in columns if name != PYTORCH}


def nothing(engine: Any, tiny: bool) -> Case:
    return Case(lambda: None, lambda: [])


CALLS: dict[str, tuple[Callable[..., Case], int]] = {
    "a + b, recorded (1 element)": (recorded, 1),
    "x * x + x, forward and backward (1 element)": (small_graph, 1),
    "nn.Linear(8, 8), recorded (1 row)": (small_layer, 1),
    "chain of 1,000 products, forward, a node": (chain, 1000),
    "chain of 1,000 products, backward, a node": (partial(chain, backward=True), 1000),
}
ROWS = [
    *(Workload(name, make, "Calls", per) for name, (make, per) in CALLS.items()),
    Growth("MLP step, batch 256 to 8192", layers, "Growth", sizes=(256, 512, 1024, 2048, 4096, 8192), argument="batch"),
    Growth("MLP step, 4 to 256 layers", layers, "Growth", sizes=(4, 16, 64, 256), argument="depth"),
    Growth("MLP step, width 512 to 8192", layers, "Growth", sizes=(512, 1024, 2048, 4096, 8192), argument="width"),
    # which may compile
    *(Fresh(name, nothing, "CPU time of a fresh process", measured=partial(startup.cpu_time, program), first=1)
      for name, program in startup.PROGRAMS.items()),
    *(Fresh(name, nothing, "Growth of memory in a first training step", measured=partial(memory.grown, name), unit="B",
            rounds=3) for name in STEPS),
]
