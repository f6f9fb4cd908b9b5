"""Compare tensorgrad with PyTorch: `python -m benchmarks.run`, which writes BENCHMARK.md and BENCHMARK.png."""
from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

from .report import COLUMNS, OTHERS, Report, cell, chart, markdown
from .timing import Measurement
from .worker import GROUPS, workloads
from .workloads import ENGINES, ROOT

PURE = {"compiled": "0", "numpy": "1"}          # what TENSORGRAD_PURE says for each column
PATIENCE = 600.0                     # seconds for a row, after which its process is ended: some compile for minutes
QUICK = {"rounds": 5, "limit": 1.0}


def installed(*modules: str) -> bool:
    return all(importlib.util.find_spec(name) for name in modules)


class Worker:
    """A process that measures a column; another is started when it is lost."""

    def __init__(self, column: str, threads: int) -> None:
        engines = [f"benchmarks.others.{column}", "torch"] if column in OTHERS else filter(installed, ENGINES)
        self.command = [sys.executable, "-m", "benchmarks.worker", str(threads), *engines]
        pools = {f"{pool}_THREADS": str(threads) for pool in ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "NUM_CPU")}      # the last is tinygrad's
        self.environment = os.environ | pools | {"TENSORGRAD_KERNELS": "", "TENSORGRAD_PURE": PURE.get(column, "0")}
        self.process: subprocess.Popen[str] | None = None
        self.about: dict[str, Any] = {}

    def measure(self, **request: Any) -> Measurement:
        """The answer of the process, which is started where there is none."""
        fresh = self.process is None
        process = self.process = self.process or subprocess.Popen(self.command, cwd=ROOT, env=self.environment, text=True, bufsize=1,
                                                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        alarm = threading.Timer(PATIENCE, process.kill)
        alarm.start()
        try:
            print(json.dumps(request), file=process.stdin)
            if fresh:
                self.about = json.loads(process.stdout.readline())
            return Measurement(**json.loads(process.stdout.readline()))
        except (ValueError, BrokenPipeError):                                # nothing, which is no JSON
            return Measurement(problem=f"failed: its process ended with status {self.stop()}")
        finally:
            alarm.cancel()

    def stop(self) -> int | None:
        """End the process, if there is one, and say how it ended."""
        process, self.process = self.process, None
        with suppress(BrokenPipeError), process or nullcontext():
            pass
        return process and process.returncode


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(description=__doc__)
    out.add_argument("--only", choices=GROUPS, action="append", help="this group of rows; may be given more than once")
    out.add_argument("--filter", type=re.compile, default="", metavar="REGEX", help="rows whose section or name it finds")
    out.add_argument("--columns", choices=[*COLUMNS, *OTHERS], nargs="+", help="these alone; others than compiled and numpy are libraries, "
                     "whose training steps are measured where they are installed")
    out.add_argument("--note", default="", metavar="TEXT", help="what else there is to say of this run, for the report")
    out.add_argument("--quick", action="store_true", help="fewer rounds")
    out.add_argument("--cpu", action="store_true", help="CPU time with one thread in place of wall time: means something where the machine is busy")
    out.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), metavar="N", help="threads for all; all cores by default")
    out.add_argument("--out", type=Path, default=ROOT / "BENCHMARK.md", metavar="FILE", help="the report; its chart is written beside it as FILE.png")
    return out


def main(argv: Sequence[str] | None = None) -> None:
    arguments = (options := parser()).parse_args(argv)
    threads, clock = (1, "cpu") if arguments.cpu else (arguments.threads, "wall")
    wanted = arguments.columns or [*COLUMNS, *OTHERS]
    columns = [column for column in COLUMNS if column in wanted] + [column for column in OTHERS if column in wanted and installed(column, "torch")]
    if not set(COLUMNS) & set(columns):
        options.error(f"other libraries are columns beside tensorgrad's: {', '.join(COLUMNS)}")
    workers = {column: Worker(column, threads) for column in columns}
    report = Report(" ".join(["python -m benchmarks.run", *(sys.argv[1:] if argv is None else argv)]), threads, columns, clock=clock, note=arguments.note)
    started = time.perf_counter()

    def measure(group: str, row: Any, column: str) -> Measurement:
        return workers[column].measure(group="others" if column in OTHERS else group, name=row.name, clock=clock, **QUICK if arguments.quick else {})
    for group in arguments.only or GROUPS:
        for row in workloads(group):
            if re.search(arguments.filter, f"{row.section} {row.name}"):
                found = {column: measure(group, row, column) for column in report.columns_of(group)}
                report.add(group, row.section, row.name, found)
                print(f"{row.name:68} " + "  ".join(map(cell, found.values())), flush=True)
    for worker in workers.values():
        worker.stop()
        report.versions |= dict.fromkeys(worker.about.get("versions", ()))
    report.seconds = time.perf_counter() - started
    report.compiled = "compiled" not in workers or workers["compiled"].about.get("compiled", True)
    if not report.compiled:
        print("There are no compiled kernels here, or they are older than their source: build native/ first.", file=sys.stderr)
    picture = arguments.out.with_suffix(".png")
    drawn = installed("matplotlib") and chart(report, picture)
    arguments.out.write_text(markdown(report, picture.name if drawn else ""), encoding="utf-8")


if __name__ == "__main__":
    main()
