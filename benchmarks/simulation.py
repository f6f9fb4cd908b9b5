"""`python -m benchmarks.distributed --simulate`: measures where the time of a step goes, simulates it for 2 to 4,096
ranks, and draws the picture.
"""
from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import tensorgrad
from tensorgrad.nn.parallel.buckets import assigned

from .report import amount, few_colours, table
from .scaling import Bucket, Fabric, Model, Simulated, Timeline, overtakes, simulate
from .training import Step, step_of

RANKS = [2 ** k for k in range(1, 13)]
# bytes of the first bucket and of the others, as DistributedDataParallel has them
LIMITS = (1 << 20, 25 << 20)
SHOWN = (2, 16, 128, 1024, 4096)            # numbers of ranks that the table has
SHARED_OUT = 4096                           # examples that all ranks share, where the batch does not grow with them
MODELS = {"char-GPT, 4 layers of 128": ("char-GPT, 4 layers of 128, 64 letters, batch 12, AdamW", (2, 12)),
          "ResNet-18 on 32 × 32": ("ResNet-18 on 32 × 32, batch 32, SGD with momentum", (4, 32))}
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")


# ── where the time goes ───────────────────────────────────────────────────────────────────────────────────────────────


def measured(name: str, batches: tuple[int, int], runs: int = 7, tiny: bool = False) -> Model:
    """A model's time lines with two sizes of the batch, medians of some steps, on one thread."""
    row, threads = MODELS[name][0], tensorgrad.get_num_threads()
    tensorgrad.set_num_threads(1)
    try:
        steps = [step_of(row, tensorgrad, tiny, batch) for batch in batches]
        parameters, order = watched(steps[0])
        split = assigned(parameters, order, LIMITS)
        small, large = (timeline(step, split, runs) for step in steps)
    finally:
        tensorgrad.set_num_threads(threads)
    return Model(name, batches, (small, large))


def watched(step: Step) -> tuple[list[Any], list[int]]:
    """The parameters of a step, and the order in which a backward completes their gradients."""
    parameters = [p for p in step.parameters() if p.requires_grad]
    _, _, _, arrived = one_step(step, parameters)
    return parameters, sorted(range(len(parameters)), key=arrived.__getitem__)


def timeline(step: Step, split: list[list[int]], runs: int) -> Timeline:
    """Medians of some steps: each part's seconds, and when each bucket is complete."""
    parameters = [p for p in step.parameters() if p.requires_grad]
    found = [one_step(step, parameters) for _ in range(runs)]
    forward, backward, update = (statistics.median(one[i] for one in found) for i in range(3))
    ready = [statistics.median(max(one[3][i] for i in indices) for one in found) for indices in split]
    return Timeline(forward, backward, update,
                    tuple(Bucket(at, sum(parameters[i].array.nbytes for i in indices))
                          for at, indices in zip(ready, split)))


def one_step(step: Step, parameters: list[Any]) -> tuple[float, float, float, list[float]]:
    """The seconds of forward, backward and update of one step, and when each gradient was complete, since the backward
    began.

    They are CPU time, which other programs do not lengthen: there is one thread.
    """
    [(model, optimizer)], (x, y), clock = step.trained.values(), step.inputs, time.process_time
    arrived, places = [0.0] * len(parameters), {id(p): i for i, p in enumerate(parameters)}

    def note(parameter: Any) -> None:
        arrived[places[id(parameter)]] = clock()
    hooks = [p.register_post_accumulate_grad_hook(note) for p in parameters]
    try:
        optimizer.zero_grad()
        start = clock()
        out = model(x)
        out = out[0] if isinstance(out, tuple) else out
        loss = tensorgrad.nn.functional.cross_entropy(out.reshape(-1, out.shape[-1]), y)
        middle = clock()
        loss.backward()
        end = clock()
        optimizer.step()
        return middle - start, end - middle, clock() - end, [at - middle for at in arrived]
    finally:
        for hook in hooks:
            hook.remove()


# ── what follows ──────────────────────────────────────────────────────────────────────────────────────────────────────


Scenario = tuple[str, Callable[[Model, int], Timeline]]


def scenarios(faster: float) -> list[Scenario]:
    """How the batch goes with the number of ranks, and how fast ranks are: as measured, or so many times as fast."""
    def grows(model: Model, n: int) -> Timeline:
        return model.timelines[1]

    def shared(model: Model, n: int) -> Timeline:
        return model.at(SHARED_OUT / n)

    def quick(model: Model, n: int) -> Timeline:
        return model.timelines[1].scaled(1 / faster)
    return [("batch per rank", grows), (f"{SHARED_OUT:,} examples shared out", shared),
            (f"batch per rank, ranks {faster:g} × as fast", quick)]


def rows(model: Model, of: Callable[[Model, int], Timeline], fabric: Fabric, ranks: Iterable[int] = RANKS,
         **options: Any) -> list[Simulated]:
    return [simulate(of(model, n), n, fabric, **options) for n in ranks]


def report(models: Sequence[Model], fabrics: Sequence[Fabric], faster: float, ranks: Sequence[int] = RANKS,
           **options: Any) -> list[str]:
    """Markdown: the time lines, and a line for each model, scenario and network: the step at some numbers of ranks, its
    efficiency, its algorithm.
    """
    lines, shown = [], [n for n in ranks if n in SHOWN]
    for model in models:
        last = model.timelines[1]
        buckets = ", ".join(f"{b.nbytes / 1e6:.2f} MB after {amount(b.ready, 's')}" for b in last.buckets)
        lines += [f"{model.name}, batch {model.batches[1]}, one thread: forward {amount(last.forward, 's')}, backward "
                  f"{amount(last.backward, 's')}, update {amount(last.update, 's')}; buckets: {buckets}.", ""]
    body = [[f"{model.name}; {title}; {fabric.name}", *line(model, of, fabric, ranks, shown, **options)]
            for model in models for title, of in scenarios(faster) for fabric in fabrics]
    return [*lines,
            *table(["step (efficiency; all-reduce)", *(f"{n:,} ranks" for n in shown), "communication overtakes at"],
                   body)]


def line(model: Model, of: Callable[[Model, int], Timeline], fabric: Fabric, ranks: Sequence[int], shown: Sequence[int],
         **options: Any) -> list[str]:
    """The cells of a line."""
    found, alone = rows(model, of, fabric, ranks, **options), [of(model, n).alone for n in ranks]
    cells = [f"{amount(row.step, 's')} ({own / row.step:.0%}; {row.algorithm})"
             for row, own in zip(found, alone) if row.ranks in shown]
    return [*cells, f"{at:,} ranks" if (at := overtakes(found, alone)) else "–"]


def draw(models: Sequence[Model], fabrics: Sequence[Fabric], faster: float, path: Path, ranks: Sequence[int] = RANKS,
         **options: Any) -> None:
    """The picture: in each panel what a rank computes, and for each fabric the all-reduces by themselves (dashed) and
    the step (solid).
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    cases = scenarios(faster)
    figure = Figure(figsize=(4.2 * len(cases), 3.3 * len(models) + 0.6), dpi=80, layout="constrained")
    FigureCanvasAgg(figure)
    for line, model in zip(figure.subplots(len(models), len(cases), squeeze=False, sharex=True), models):
        for axes, (title, of) in zip(line, cases):
            panel(axes, model, of, fabrics, ranks, **options)
            axes.set_title(f"{model.name}\n{title}", fontsize=9)
    for axes in figure.axes[-len(cases):]:
        axes.set_xlabel(f"ranks, {fabrics[0].per_node} on each node")
    for axes in figure.axes[::len(cases)]:
        axes.set_ylabel("ms")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), fontsize=8.5, loc="outside lower center", ncols=5,
                  frameon=False)
    figure.suptitle("A training step, simulated (dotted: its all-reduces alone; circles: where they overtake "
                    "computing)", fontsize=11)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    few_colours(path, 32)


def panel(axes: Any, model: Model, of: Callable[[Model, int], Timeline], fabrics: Sequence[Fabric],
          ranks: Sequence[int], **options: Any) -> None:
    alone = [of(model, n).alone for n in ranks]
    axes.plot(ranks, [1e3 * own for own in alone], color="black", linewidth=2.4, label="computing alone")
    for fabric, colour in zip(fabrics, COLOURS):
        found = rows(model, of, fabric, ranks, **options)
        axes.plot(ranks, [1e3 * row.step for row in found], color=colour, linewidth=1.7, label=fabric.name)
        axes.plot(ranks, [1e3 * row.communication for row in found], ":", color=colour, linewidth=1.7)
        if at := overtakes(found, alone):
            height = 1e3 * found[list(ranks).index(at)].communication
            axes.plot([at], [height], "o", color=colour, markersize=9, fillstyle="none", markeredgewidth=2)
            axes.annotate(f"{at:,}", (at, height), textcoords="offset points", xytext=(6, -13), fontsize=8.5,
                          color=colour)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    ticks = [n for n in ranks if n in (2, 8, 32, 128, 512, 2048)]
    axes.set_xticks(ticks, [f"{n:,}" for n in ticks])
    axes.grid(color="#dddddd", linewidth=0.5)
    axes.spines[["top", "right"]].set_visible(False)
