"""A process that measures with one library, tensorgrad, another or PyTorch: reads requests and writes answers, pickles
both.
"""
from __future__ import annotations

import argparse
import gc
import importlib
import os
import pickle
import platform
import sys
import traceback
from typing import Any, BinaryIO

import numpy as np

from .timing import Budget, Case
from .workloads import Problem, Workload, array

GROUPS = ("training", "inference", "ops", "machinery")


def workloads(group: str) -> list[Workload]:
    return importlib.import_module(f"benchmarks.{group}").ROWS


class Worker:
    """The requests that a process answers: a method each."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine
        self.case: Case | None = None

    def make(self, group: str, name: str, options: dict[str, Any]) -> list[np.ndarray] | None:
        """Make the case of a row, in place of the one before: what it results in, None if that is compared with
        nothing.
        """
        self.case = None
        gc.collect()
        [row] = [row for row in workloads(group) if row.name == name]
        self.case = row.make(self.engine, False, **options)
        return None if (results := self.case.results()) is None else [*map(array, results)]

    def fill(self, budget: Budget) -> int:
        return self.case.fill(budget)

    def block(self, runs: int, budget: Budget) -> float:
        return self.case.block(runs, budget)

    def about(self) -> dict[str, Any]:
        engine, versions = self.engine, [f"Python {platform.python_version()}", f"numpy {np.__version__}"]
        if engine.__name__ == "tensorgrad":
            versions.append(importlib.import_module("tensorgrad.runtime.blas").blas_name())
        return {"versions": [*versions, f"{engine.__name__.rpartition('.')[2]} {engine.__version__}"],
                "compiled": "tensorgrad.kernels.matrix_compiled" in sys.modules}

    def answer(self, request: str, *args: Any) -> tuple[Any, str]:
        """Return (result of a request or None, error message)."""
        try:
            return getattr(self, request)(*args), ""
        except Problem as problem:
            return None, str(problem)
        except (Exception, SystemExit) as error:
            traceback.print_exc()
            return None, f"failed: {type(error).__name__}: {error}".partition("\n")[0]


def serve(threads: int, module: str, requests: BinaryIO, answers: BinaryIO) -> None:
    engine = importlib.import_module(module)
    getattr(engine, "set_num_threads", int)(threads)
    worker = Worker(engine)
    pickle.dump(worker.about(), answers)
    answers.flush()
    while True:
        try:
            request = pickle.load(requests)
        except EOFError:
            return
        pickle.dump(worker.answer(*request), answers)
        answers.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("threads", type=int)
    parser.add_argument("module", help="of the library")
    arguments = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):                    # what every library has to heed, whatever else it reads
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:arguments.threads])
    answers, sys.stdout = sys.stdout.buffer, sys.stderr            # what rows print is not an answer
    serve(arguments.threads, arguments.module, sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
