"""Writes BENCHMARK.md: `python -m benchmarks.run [--out FILE] [--only machinery|training]`."""
from __future__ import annotations

import argparse
import datetime
import importlib
import os
import platform
from pathlib import Path
from typing import Any

import numpy as np

import tensorgrad

from .timing import Row

GROUPS = {"machinery": "Machinery", "training": "Training steps"}


def pytorch() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError:
        return None


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def report(groups: dict[str, list[Row]], torch: Any, threads: int) -> str:
    against = f"PyTorch {torch.__version__} eager" if torch else "nothing: PyTorch is not installed"
    lines = ["# Benchmark", "",
             f"{datetime.date.today()}, {processor()}, {threads} threads, Python {platform.python_version()}, NumPy {np.__version__}, tensorgrad "
             f"{tensorgrad.__version__} on NumPy alone, against {against}.", "",
             "Command: `python -m benchmarks.run`. Both are timed in one process, in turn; the ratio is the median of our time over PyTorch's: "
             "**below 1 tensorgrad is faster, above 1 it is slower**. The machine is shared: trust ratios, not microseconds.", ""]
    for name, rows in groups.items():
        lines += [f"## {GROUPS[name]}", "", "| | tensorgrad, µs | ratio to PyTorch | |", "|---|---:|---:|---|"]
        for row in rows:
            ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
            verdict = "" if row.ratio is None else "slower" if row.ratio > 1.05 else "faster" if row.ratio < 0.95 else "even"
            lines.append(f"| {row.name} | {row.ours:,.2f} | {ratio} | {verdict} |")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="BENCHMARK.md")
    parser.add_argument("--only", choices=GROUPS)
    arguments = parser.parse_args()
    torch = pytorch()
    groups = {}
    for name in GROUPS:
        if arguments.only in (None, name):
            groups[name] = []
            for row in importlib.import_module(f"benchmarks.{name}").rows(torch):
                print(f"{row.name:68} {row.ours:12,.2f} µs  {'' if row.ratio is None else f'{row.ratio:6.2f}'}  {row.note}", flush=True)
                groups[name].append(row)
    threads = torch.get_num_threads() if torch else len(os.sched_getaffinity(0))
    Path(arguments.out).write_text(report(groups, torch, threads), encoding="utf-8")


if __name__ == "__main__":
    main()
