"""A process that measures rows with some libraries, tensorgrad or another and PyTorch: reads requests and writes answers, a line of JSON each."""
from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
import time
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, TextIO

from .timing import Budget, Measurement
from .workloads import Workload

GROUPS = ("training", "inference", "ops", "machinery")
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


def workloads(group: str) -> list[Workload]:
    return importlib.import_module(f"benchmarks.{group}").ROWS


def answer(engines: list[Any], group: str, name: str, **budget: Any) -> Measurement:
    """The measurement of a row, whatever happens in it."""
    try:
        [row] = [row for row in workloads(group) if row.name == name]
        return row.measure(engines, Budget(**budget | {"clock": CLOCKS[budget["clock"]]}))
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        return Measurement(problem=f"failed: {type(error).__name__}: {error}".partition("\n")[0])


def serve(threads: int, modules: Sequence[str], requests: Iterable[str], answers: TextIO) -> None:
    engines = [importlib.import_module(name) for name in modules]
    for engine in engines:
        getattr(engine, "set_num_threads", int)(threads)
    versions = [f"{module.__name__.rpartition('.')[2]} {module.__version__}" for module in (sys.modules["numpy"], *engines)]
    if "tensorgrad" in modules:
        versions.insert(1, importlib.import_module("tensorgrad.threads").blas_name())
    about = {"versions": [f"Python {platform.python_version()}", *versions], "compiled": "tensorgrad.kernels.matrix_compiled" in sys.modules}
    print(json.dumps(about), file=answers, flush=True)
    for request in requests:
        print(json.dumps(asdict(answer(engines, **json.loads(request)))), file=answers, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("threads", type=int)
    parser.add_argument("modules", nargs="+", help="of the libraries: the one to measure first")
    arguments = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):                    # what every library has to heed, whatever else it reads
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:arguments.threads])
    answers, sys.stdout = sys.stdout, sys.stderr            # what rows print is not an answer
    serve(arguments.threads, arguments.modules, sys.stdin, answers)


if __name__ == "__main__":
    main()
