"""Two ranks of one machine, and thousands by simulation: `python -m benchmarks.distributed [--quick] [--simulate]
[--write FILE]`.

Measured: all-reduce and messages between two ranks, with mpi4py on NumPy's arrays, tensorgrad over MPI and over its
    gloo, and PyTorch's gloo, in turn, block by
block; training on two ranks with averaged gradients, beside two processes that train by themselves. Simulated: the step
of 2 to 4,096 ranks.
"""
from __future__ import annotations

import argparse
import datetime
import os
import re
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .pairs import Case, Pair
from .ranks import KINDS, TRAINED
from .report import amount, processor, table
from .timing import Budget, alternate, quartiles
from .workloads import ROOT, Problem

SIZES = {"4 KB": 4096, "64 KB": 65536, "4 MB": 4 << 20, "100 MB": 100_000_000}
NAMES = {"mpi4py": "mpi4py", "mpi": "tensorgrad, mpi", "gloo": "tensorgrad, gloo", "torch": "PyTorch, gloo"}
PARTS = ("all_reduce", "messages", "training", "losses")
HEADING = "## Several processes"
BY_HAND = "## Other runs and machines"
STEPS = 5                   # of training, whose losses are compared


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0],
                                  formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    out.add_argument("--only", choices=PARTS, action="append", help="this part; may be given more than once")
    out.add_argument("--kinds", choices=KINDS, nargs="+", default=list(KINDS), help="who takes part")
    out.add_argument("--quick", action="store_true", help="fewer rounds")
    out.add_argument("--busy", action="store_true",
                     help="for a machine with other work: many short blocks, the least times in place of medians, and "
                     "each rank held to a processor")
    out.add_argument("--simulate", action="store_true",
                     help="simulate the step of 2 to 4,096 ranks in place of measuring two")
    out.add_argument("--latency", type=float, metavar="SECONDS", help="of a network of your own, for --simulate")
    out.add_argument("--bandwidth", type=float, metavar="BYTES",
                     help="a second, of a network of your own, for --simulate")
    out.add_argument("--per-node", type=int, default=16, metavar="N", help="ranks on each node, for --simulate")
    out.add_argument("--faster", type=float, default=50.0, metavar="TIMES",
                     help="how many times as fast the ranks of the third scenario compute")
    out.add_argument("--spread", type=float, default=0.0, metavar="PART",
                     help="standard deviation of the ranks' computing, for --simulate")
    out.add_argument("--picture", type=Path, default=ROOT / "docs" / "scaling.png", metavar="FILE",
                     help="of --simulate, where there is Matplotlib")
    out.add_argument("--write", type=Path, metavar="FILE",
                     help=f"put the tables into the section {HEADING!r} of this file, such as BENCHMARK.md")
    return out


# ── two ranks ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Bench:
    """The pairs that are measured, and what was found: lines of Markdown, part by part."""

    def __init__(self, kinds: Sequence[str], budget: Budget, busy: bool = False) -> None:
        self.budget, self.busy, self.pairs, self.lines = budget, busy, dict[str, Pair](), list[str]()
        for kind in kinds:
            try:
                self.pairs[kind] = Pair(kind)
            except Problem as problem:
                print(f"{NAMES[kind]}: {problem}", file=sys.stderr)

    def in_turn(self, request: str, nbytes: int, expected: Sequence[float]) -> dict[str, list[float]]:
        """The times of a request's case, block by block, for each kind that does it right: its ranks give what is
        expected.
        """
        cases = {}
        for kind, pair in self.pairs.items():
            try:
                if (answers := pair.ask(request, request, nbytes)) != expected:
                    raise Problem(f"differs: {answers}", kind)
                cases[kind] = Case(pair, request)
            except Problem as problem:
                print(f"{NAMES[kind]}, {request} of {nbytes:,} bytes: {problem}", file=sys.stderr)
        times = self.timed(cases, self.budget)
        for kind in cases:
            self.pairs[kind].ask("drop", request)
        return times

    def timed(self, cases: Mapping[Any, Case], budget: Budget) -> dict[Any, list[float]]:
        """The times of blocks, round by round; on a busy machine the least of each."""
        times = dict(zip(cases, alternate(list(cases.values()), budget))) if cases else {}
        return {key: [min(found)] for key, found in times.items()} if self.busy else times

    def all_reduce(self) -> None:
        """The sum of both ranks' arrays, in place."""
        rows = []
        for label, nbytes in SIZES.items():
            times = self.in_turn("all_reduce", nbytes, [3.0, 3.0])
            rows.append([f"all-reduce, {label}", *self.cells(times), ratio(times, "mpi", "mpi4py"),
                         ratio(times, "gloo", "torch")])
            print(" | ".join(rows[-1]), flush=True)
        self.lines += ["### All-reduce and messages of two ranks", "",
                       *table(["float32, in place", *self.heads(), "mpi / mpi4py", "gloo / PyTorch's"], rows)]

    def messages(self) -> None:
        """Half the time of a message there and back: latency at 4 bytes, bandwidth at 4 MB."""
        rows = []
        for label, nbytes in {"4 B": 4, "64 KB": 65536, "4 MB": 4 << 20}.items():
            times = self.in_turn("ping_pong", nbytes, [0.0, 0.0])
            halves = {kind: [one / 2 for one in found] for kind, found in times.items()}
            rows.append([f"one way, {label}", *self.cells(halves, nbytes), ratio(times, "mpi", "mpi4py"),
                         ratio(times, "gloo", "torch")])
            print(" | ".join(rows[-1]), flush=True)
        self.lines += table(["send and recv", *self.heads(), "mpi / mpi4py", "gloo / PyTorch's"], rows)

    def training(self) -> None:
        """Steps with averaged gradients beside steps of two processes that know nothing of each other, all in turn."""
        rows = []
        for row, (_, _, batch) in TRAINED.items():
            cases: dict[tuple[str, bool], Case] = {}
            for kind, together in [("gloo", False), ("gloo", True), ("mpi", True), ("torch", False), ("torch", True)]:
                if kind in self.pairs:
                    try:
                        self.pairs[kind].ask("train", f"train {together}", row, together)
                        cases[kind, together] = Case(self.pairs[kind], f"train {together}")
                    except Problem as problem:
                        print(f"{NAMES[kind]}, {row}: {problem}", file=sys.stderr)
            times = self.timed(cases, Budget(rounds=self.budget.rounds, seconds=0.1 if self.busy else 0.5, limit=8.0))
            rows += training_rows(row, 2 * batch, times)
            for kind, together in cases:
                self.pairs[kind].ask("drop", f"train {together}")
            print("\n".join(" | ".join(line) for line in rows[-5:]), flush=True)
        self.lines += ["### Training on two ranks, one thread each", "",
                       *table(["", "a step", "examples a second", "of two alone", "of PyTorch's DDP"], rows)]

    def losses(self) -> None:
        """The losses of two ranks with half the batch each, beside those of one process with all of it."""
        rows = []
        for row in TRAINED:
            for dtype in ("float32", "float64"):
                for kind in [kind for kind in ("gloo", "mpi", "torch") if kind in self.pairs]:
                    try:
                        halves = self.pairs[kind].ask("losses", row, True, STEPS, dtype)
                        whole = self.pairs[kind].ask("losses", row, False, STEPS, dtype)[0]
                    except Problem as problem:
                        print(f"{NAMES[kind]}, {row}: {problem}", file=sys.stderr)
                        continue
                    off = [abs((a + b) / 2 - c) / abs(c) for a, b, c in zip(*halves, whole)]
                    rows.append([f"{row} a rank; {NAMES[kind]}; {dtype}", f"{whole[0]:.6f}", f"{whole[-1]:.6f}",
                                 f"{off[0]:.1e}", f"{max(off):.1e}"])
                    print(" | ".join(rows[-1]), flush=True)
        self.lines += ["### Losses of two ranks and of one process with the whole batch", "",
                       *table([f"{STEPS} steps (ResNet: SyncBatchNorm)", "first loss", "last",
                               "difference of the first, relative", "largest"], rows)]

    def heads(self) -> list[str]:
        return [NAMES[kind] for kind in self.pairs]

    def cells(self, times: dict[str, list[float]], nbytes: int = 0) -> list[str]:
        """Medians, with the rate of large messages."""
        def cell(found: list[float] | None) -> str:
            if not found:
                return "–"
            middle = statistics.median(found)
            return amount(middle, "s") + (f" ({nbytes / middle / 1e9:.1f} GB/s)" if nbytes > 4096 else "")
        return [cell(times.get(kind)) for kind in self.pairs]

    def stop(self) -> None:
        for pair in self.pairs.values():
            pair.stop()


def ratio(times: dict[str, list[float]], one: str, other: str) -> str:
    """The median of the ratios of blocks of the same round, and how much longer the one takes."""
    if not (times.get(one) and times.get(other)):
        return "–"
    more = statistics.median(a - b for a, b in zip(times[one], times[other]))
    return f"{quartiles([a / b for a, b in zip(times[one], times[other])])[1]:.2f} ({more * 1e6:+,.1f} µs)"


def training_rows(row: str, examples: int, times: dict[tuple[str, bool], list[float]]) -> list[list[str]]:
    """A line for each way to train: the step, the rate of both ranks, and that as a part of two by themselves and of
    PyTorch's DDP.
    """
    def part(mine: list[float], key: tuple[str, bool]) -> str:
        return f"{statistics.median(b / a for a, b in zip(mine, times[key])):.3f}" if times.get(key) else "–"
    lines = []
    for (kind, together), found in times.items():
        what = f"DDP, {NAMES[kind]}" if together else f"two by themselves, {NAMES[kind].split(',')[0]}"
        middle = statistics.median(found)
        lines.append([f"{row} a rank; {what}", amount(middle, "s"), f"{examples / middle:,.0f}",
                      part(found, ("torch" if kind == "torch" else "gloo", False)), part(found, ("torch", True))])
    return lines


def machine() -> str:
    """The processor, its rate of products of float32, and of copies, on one thread."""
    import tensorgrad
    tensorgrad.set_num_threads(1)
    a, clock = tensorgrad.randn(1024, 1024), time.perf_counter
    products, copies, source = [], [], np.ones(25_000_000, np.float32)
    target = np.empty_like(source)
    for _ in range(7):
        start = clock()
        a @ a
        middle = clock()
        np.copyto(target, source)
        products.append(middle - start)
        copies.append(clock() - middle)
    multiplies, copied = 2 * 1024 ** 3 / min(products[1:]) / 1e9, source.nbytes / min(copies[1:]) / 1e9
    return (f"{os.cpu_count()} processors: {processor()}; one thread multiplies {multiplies:.0f} GFLOP/s (float32, "
            f"1024³) and copies {copied:.1f} GB/s (100 MB)")


def introduction(command: str, about: Sequence[str]) -> list[str]:
    versions = dict.fromkeys(" ".join(text.split()) for text in about)
    return [f"{'; '.join([f'{datetime.date.today()}, {machine()}', *versions])}; load average "
            f"{os.getloadavg()[0]:.1f}. Command: `{command}`.", ""]


def measure(options: argparse.Namespace, command: str) -> list[str]:
    budget = Budget(rounds=5, limit=0.6, seconds=0.05) if options.quick else Budget(rounds=11, limit=4.0, seconds=0.2)
    if options.busy:
        os.environ["BENCHMARK_BIND"] = "1"
        budget = Budget(rounds=60, seconds=0.004, limit=2.0 if options.quick else 6.0)
    bench = Bench(options.kinds, budget, options.busy)
    try:
        lines = introduction(command, [pair.about for pair in bench.pairs.values()])
        for part in options.only or PARTS:
            getattr(bench, part)()
    finally:
        bench.stop()
    how = "Times are medians of blocks in turn, of the slower rank; ratios are medians of those of a round."
    if options.busy:
        how = ("Times are the least of many short blocks in turn, of the slower rank, each rank held to a processor, "
               "for the machine had other work; ratios are those of the least times.")
    return [*lines, f"Two ranks with one thread each. {how}", "", *bench.lines]


# ── thousands ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def simulated(options: argparse.Namespace, command: str) -> list[str]:
    from tensorgrad.viz.collectives.network import NETWORKS, Network

    from . import simulation
    from .scaling import FABRICS, Fabric
    if (options.latency is None) != (options.bandwidth is None):
        raise SystemExit("--latency and --bandwidth come together")
    fabrics = [fabric._replace(per_node=options.per_node) for fabric in FABRICS]
    if options.latency is not None:
        fabrics = [Fabric("your network", options.per_node, NETWORKS["memory"],
                          Network(options.latency, options.bandwidth, "your network"))]
    models = [simulation.measured(name, batches, 3 if options.quick else 9)
              for name, (_, batches) in simulation.MODELS.items()]
    lines = simulation.report(models, fabrics, options.faster, spread=options.spread)
    told = ["### Thousands of ranks, by simulation", "", *introduction(command, []),
            f"Networks: {'; '.join(f'{f.between}' for f in fabrics)}; {options.per_node} ranks on each node, which "
            f"speak over {fabrics[0].inside}, and share their node's connection. All-reduces overlap with the "
            "backward, bucket by bucket, each by the quickest of ring, halving, tree and rings of two levels.", ""]
    try:
        simulation.draw(models, fabrics, options.faster, options.picture, spread=options.spread)
        told += [f"![The step of 2 to 4,096 "
                 f"ranks]({os.path.relpath(options.picture, options.write.parent if options.write else ROOT)})", ""]
    except ImportError as error:
        print(f"no picture: {error}", file=sys.stderr)
    return [*told, *lines]


# ── the report ────────────────────────────────────────────────────────────────────────────────────────────────────────


def written_into(text: str, lines: Sequence[str], simulation: bool) -> str:
    """A document with the section's half replaced: what was measured, or what was simulated."""
    head, _, section = text.partition(f"{HEADING}\n")
    mark = "### Thousands of ranks, by simulation"
    measured, _, old = section.partition(mark)
    ours = "\n".join(lines).strip()
    parts = [measured.strip(), ours] if simulation else [ours, f"{mark}{old}".strip() if old else ""]
    return f"{head.rstrip()}\n\n{HEADING}\n\n" + "\n\n".join(filter(None, parts)) + "\n"


def kept(path: Path) -> str:
    """Return the sections of a document that `benchmarks.run` does not write."""
    found = (re.search(rf"^({BY_HAND}|{HEADING})\n.*", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
             if path.exists() else None)
    return f"\n{found[0]}" if found else ""


def main(argv: Sequence[str] | None = None) -> None:
    options = parser().parse_args(argv)
    command = " ".join(["python -m benchmarks.distributed", *(sys.argv[1:] if argv is None else argv)])
    lines = (simulated if options.simulate else measure)(options, command)
    print("\n".join(lines))
    if options.write:
        text = options.write.read_text(encoding="utf-8") if options.write.exists() else ""
        options.write.write_text(written_into(text, lines, options.simulate), encoding="utf-8")


if __name__ == "__main__":
    main()
