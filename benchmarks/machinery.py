"""What recording and pulling cost apart from the numbers, how time grows, how long a start takes, and memory."""
from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from . import memory, startup
from .timing import Budget, Case, Measurement, alternate, summary
from .training import STEPS
from .workloads import Workload


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
    """A step of an MLP: its time should be proportional to the batch, the depth, and the width of the first hidden layer."""
    nn = engine.nn
    engine.manual_seed(0)
    widths = [256, width] + [64] * depth
    model, x = nn.Sequential(*(layer for a, b in zip(widths, widths[1:]) for layer in (nn.Linear(a, b), nn.ReLU()))), engine.randn(batch, 256)
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

    def measure(self, engines: Sequence[Any], budget: Budget) -> Measurement:
        found = [alternate([self.make(engine, False, **{self.argument: n}) for engine in engines], budget) for n in self.sizes]
        exponents = [exponent(self.sizes, [statistics.median(times) for times in column]) for column in zip(*found)]
        last = found[-1]
        return summary(last[0], last[1] if len(last) > 1 else None,
                       note="time grows with exponent " + ", PyTorch's ".join(f"{value:.2f}" for value in exponents))


def exponent(sizes: Sequence[float], times: Sequence[float]) -> float:
    """The slope of log time over log size, by least squares: 1 is linear."""
    return statistics.linear_regression([math.log(n) for n in sizes], [math.log(t) for t in times]).slope


# ── processes of their own ────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Start(Workload):
    """CPU time from the start of a process to the end of a program."""

    program: str = ""

    def measure(self, engines: Sequence[Any], budget: Budget) -> Measurement:
        programs = [startup.spelt(self.program, engine.__name__) for engine in engines]
        rounds = [[startup.cpu_time(program) for program in programs] for _ in range(min(budget.rounds, 5) + 1)][1:]    # the first may compile
        ours, *theirs = map(list, zip(*rounds))
        return summary(ours, theirs[0] if theirs else None)


@dataclass(frozen=True)
class Peak(Workload):
    """How far a process grows in a training step."""

    step: str = ""

    def measure(self, engines: Sequence[Any], budget: Budget) -> Measurement:
        rounds = [[float(memory.grown(engine.__name__, self.step)) for engine in engines] for _ in range(3)]        # PyTorch's differ by a fifth
        ours, *theirs = map(list, zip(*rounds))
        return summary(ours, theirs[0] if theirs else None, unit="B")


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
    *(Start(name, nothing, "CPU time of a fresh process", program=program) for name, program in startup.PROGRAMS.items()),
    *(Peak(name, nothing, "Growth of memory in a first training step", step=name) for name in STEPS),
]
