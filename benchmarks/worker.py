"""A process that measures rows with one choice of kernels: reads requests and writes answers, a line of JSON each."""
from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import platform
import sys
import time
import traceback
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, TextIO

from .timing import Budget, Measurement
from .workloads import ENGINES, Workload

GROUPS = ("training", "inference", "ops", "machinery")
CLOCKS = {"wall": time.perf_counter, "cpu": time.thread_time}


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


def serve(threads: int, requests: Iterable[str], answers: TextIO) -> None:
    engines = [importlib.import_module(name) for name in ENGINES if importlib.util.find_spec(name)]
    for engine in engines:
        engine.set_num_threads(threads)
    versions = [f"{name} {sys.modules[name].__version__}" for name in ("numpy", *ENGINES) if name in sys.modules]
    about = {"versions": [f"Python {platform.python_version()}", *versions], "compiled": "tensorgrad.kernels.matrix_compiled" in sys.modules}
    print(json.dumps(about), file=answers, flush=True)
    for request in requests:
        print(json.dumps(asdict(answer(engines, **json.loads(request)))), file=answers, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("threads", type=int)
    answers, sys.stdout = sys.stdout, sys.stderr            # what rows print is not an answer
    serve(parser.parse_args().threads, sys.stdin, answers)


if __name__ == "__main__":
    main()
