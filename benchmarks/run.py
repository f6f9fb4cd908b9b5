"""Compare tensorgrad with PyTorch: `python -m benchmarks.run`, which writes BENCHMARK.md and BENCHMARK.png."""
from __future__ import annotations

import argparse
import importlib.util
import os
import re
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from .distributed import kept
from .processes import Process
from .report import COLUMNS, OTHERS, RUNTIMES, Report, cell, chart, markdown
from .timing import Budget
from .worker import GROUPS, workloads
from .workloads import PYTORCH, ROOT

QUICK = {"rounds": 5, "limit": 0.5}


def installed(*modules: str) -> bool:
    return all(importlib.util.find_spec(name) for name in modules)


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(description=__doc__)
    out.add_argument("--only", choices=GROUPS, action="append", help="this group of rows; may be given more than once")
    out.add_argument("--filter", type=re.compile, default="", metavar="REGEX",
                     help="rows whose section or name it finds")
    out.add_argument("--columns", choices=[*COLUMNS, *RUNTIMES, *OTHERS], nargs="+",
                     help=f"these alone; {', '.join(RUNTIMES)} are measured in inference, and others than compiled and "
                     "numpy in training, where they are installed")
    out.add_argument("--note", default="", metavar="TEXT", help="what else there is to say of this run, for the report")
    out.add_argument("--quick", action="store_true", help="fewer rounds")
    out.add_argument("--cpu", action="store_true",
                     help="CPU time with one thread in place of wall time: means something where the machine is busy")
    out.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), metavar="N",
                     help="threads for all; all cores by default")
    out.add_argument("--out", type=Path, default=ROOT / "BENCHMARK.md", metavar="FILE",
                     help="the report; its chart is written beside it as FILE.png")
    return out


def main(argv: Sequence[str] | None = None) -> None:
    arguments = (options := parser()).parse_args(argv)
    threads, clock = (1, "cpu") if arguments.cpu else (arguments.threads, "wall")
    wanted = arguments.columns or [*COLUMNS, *RUNTIMES, *OTHERS]
    columns = ([column for column in COLUMNS if column in wanted]
               + [column for column in RUNTIMES if column in wanted
                  and (column.endswith("graph") or installed(column, "onnx"))]
               + [column for column in OTHERS if column in wanted and installed(column, "torch")])
    if not set(COLUMNS) & set(columns):
        options.error(f"other libraries are columns beside tensorgrad's: {', '.join(COLUMNS)}")
    processes = {column: Process(column, threads) for column in [*columns, *[PYTORCH] * installed("torch")]}
    report = Report(" ".join(["python -m benchmarks.run", *(sys.argv[1:] if argv is None else argv)]), threads, columns,
                    clock=clock, note=arguments.note)
    budget = Budget(clock=time.process_time if arguments.cpu else time.perf_counter, **QUICK if arguments.quick else {})
    started = time.perf_counter()
    for group in arguments.only or GROUPS:
        for together in report.rounds_of(group):
            measured = {name: process for name, process in processes.items() if name == PYTORCH or name in together}
            for row in workloads(group):
                if re.search(arguments.filter, f"{row.section} {row.name}"):
                    found = row.measure(measured, group, budget)
                    report.add(group, row.section, row.name, found)
                    print(f"{row.name:68} " + "  ".join(map(cell, found.values())), flush=True)
            if not set(together) & set(COLUMNS):
                processes[together[0]].stop()
    for process in processes.values():
        process.stop()
        report.versions |= dict.fromkeys(process.about.get("versions", ()))
    report.versions |= {f"{runtime} {version(runtime)}": None for runtime in ("onnxruntime", "openvino")
                        if runtime in columns}
    report.seconds = time.perf_counter() - started
    report.compiled = "compiled" not in processes or processes["compiled"].about.get("compiled", True)
    if not report.compiled:
        print("There are no compiled kernels here, or they are older than their source: build native/ first.",
              file=sys.stderr)
    picture = arguments.out.with_suffix(".png")
    drawn = installed("matplotlib") and chart(report, picture)
    arguments.out.write_text(markdown(report, picture.name if drawn else "") + kept(arguments.out), encoding="utf-8")


if __name__ == "__main__":
    main()
