"""The processes that measure, each for one column, seen from the one that asks them: they hold their cases, and time a
block when it is their turn.
"""
from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from contextlib import nullcontext, suppress
from typing import Any

from .timing import REST, Budget
from .workloads import PYTORCH, ROOT, Problem

PATIENCE = 600.0                     # seconds for an answer, after which a process is ended: some compile for minutes
LONG_REST = 0.2                      # seconds until threads of OpenBLAS sleep, where it is left as it is
PURE = {"compiled": "0", "numpy": "1"}          # what TENSORGRAD_PURE says for each column


class Process:
    """A process with the library of a column; another is started when it is lost."""

    def __init__(self, column: str, threads: int) -> None:
        self.column = column
        self.rest = LONG_REST if column not in (*PURE, PYTORCH) else REST
        self.engine = ("torch" if column == PYTORCH else "tensorgrad" if column in PURE
                       else f"benchmarks.others.{column}")
        self.command = [sys.executable, "-m", "benchmarks.worker", str(threads), self.engine]
        # the last is tinygrad's
        pools = {f"{pool}_THREADS": str(threads) for pool in ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "NUM_CPU")}
        # PyTorch's threads would share a processor at times, for seconds, and small networks take three times as long
        pools["OMP_PROC_BIND"] = "true"
        self.environment = os.environ | pools | {"TENSORGRAD_KERNELS": "", "TENSORGRAD_PURE": PURE.get(column, "0")}
        self.process: subprocess.Popen[bytes] | None = None
        self.about: dict[str, Any] = {}

    def make(self, group: str, name: str, **options: Any) -> Any:
        """Let it make the case of a row: the results that have to agree with PyTorch's, None if it compared them
        itself.
        """
        return self.ask("make", group if self.engine in ("torch", "tensorgrad") else "others", name, options)

    def fill(self, budget: Budget) -> int:
        """How many runs of its case fill a block."""
        return self.ask("fill", budget)

    def block(self, runs: int, budget: Budget) -> float:
        """The time of one run in a block of them."""
        return self.ask("block", runs, budget)

    def ask(self, *request: Any) -> Any:
        """The answer of the process, which is started where there is none.

        Problem: what it says of one, or that it ended.
        """
        fresh = self.process is None
        process = self.process = (self.process or subprocess.Popen(self.command, cwd=ROOT, env=self.environment,
                                                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        alarm = threading.Timer(PATIENCE, process.kill)
        alarm.start()
        try:
            pickle.dump(request, process.stdin)
            process.stdin.flush()
            if fresh:
                self.about = pickle.load(process.stdout)
            answer, problem = pickle.load(process.stdout)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            raise Problem(f"failed: its process ended with status {self.stop()}", self.column) from None
        finally:
            alarm.cancel()
        if problem:
            raise Problem(problem, self.column)
        return answer

    def stop(self) -> int | None:
        """End the process, if there is one, and say how it ended."""
        process, self.process = self.process, None
        with suppress(BrokenPipeError), process or nullcontext():
            pass
        return process and process.returncode
