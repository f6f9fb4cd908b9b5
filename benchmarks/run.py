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

from .report import COLUMNS, LEFT_OUT, Report, cell, chart, markdown
from .timing import Measurement
from .worker import GROUPS, workloads
from .workloads import ROOT

KERNELS = {"compiled": "", "numpy": "numpy"}                      # what TENSORGRAD_KERNELS says for each column
PATIENCE = 240.0                     # seconds for a row, after which its process is ended


class Worker:
    """A process that measures with one choice of kernels; another is started when it is lost."""

    def __init__(self, kernels: str, threads: int) -> None:
        self.command = [sys.executable, "-m", "benchmarks.worker", str(threads)]
        pools = {f"{pool}_NUM_THREADS": str(threads) for pool in ("OMP", "OPENBLAS", "MKL")}
        self.environment = os.environ | pools | {"TENSORGRAD_KERNELS": kernels}
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
    out.add_argument("--kernels", choices=COLUMNS, action="append", help="with these kernels alone")
    out.add_argument("--quick", action="store_true", help="fewer rounds, and without the longest rows")
    out.add_argument("--cpu", action="store_true", help="CPU time of one thread in place of wall time: means something where the machine is busy")
    out.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), metavar="N", help="threads for both; all cores by default")
    out.add_argument("--out", type=Path, default=ROOT / "BENCHMARK.md", metavar="FILE", help="the report; its chart is written beside it as FILE.png")
    return out


def main(argv: Sequence[str] | None = None) -> None:
    arguments = parser().parse_args(argv)
    threads = 1 if arguments.cpu else arguments.threads
    budget = {"rounds": 3, "seconds": 0.02, "limit": 1.0, "fewest": 1} if arguments.quick else {}
    columns = [column for column in COLUMNS if column in (arguments.kernels or COLUMNS)]
    workers = {column: Worker(KERNELS[column], threads) for column in columns}
    clock = "cpu" if arguments.cpu else "wall"
    report = Report(" ".join(["python -m benchmarks.run", *(sys.argv[1:] if argv is None else argv)]), threads, columns, clock=clock)
    started = time.perf_counter()
    for group in arguments.only or GROUPS:
        for row in workloads(group):
            if re.search(arguments.filter, f"{row.section} {row.name}"):
                found = {column: Measurement(problem=LEFT_OUT) if arguments.quick and row.slow else
                         worker.measure(group=group, name=row.name, clock=clock, **budget) for column, worker in workers.items()}
                report.add(group, row.section, row.name, found)
                print(f"{row.name:68} " + "  ".join(cell(found[column]) for column in columns), flush=True)
    for worker in reversed(workers.values()):
        worker.stop()
        report.about |= worker.about
    report.seconds = time.perf_counter() - started
    if not report.about.get("compiled", True):
        print("There are no compiled kernels here, or they are older than their source: build native/ first.", file=sys.stderr)
    picture = arguments.out.with_suffix(".png")
    drawn = importlib.util.find_spec("matplotlib") is not None and chart(report, picture)
    arguments.out.write_text(markdown(report, picture.name if drawn else ""), encoding="utf-8")


if __name__ == "__main__":
    main()
