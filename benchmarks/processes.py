"""The processes that measure, each for one column, seen from the one that asks them: they hold their cases, and time a
block when it is their turn.
"""
from __future__ import annotations

import os
import sys
from typing import Any

from tensorgrad.benchmark import processes

from .timing import REST, Budget
from .workloads import PYTORCH, ROOT, Problem

LONG_REST = 0.2                      # seconds until threads of OpenBLAS sleep, where it is left as it is
# what TENSORGRAD_PURE says for each column; other runtimes run models that tensorgrad has made
PURE = {"compiled": "0", "numpy": "1", "graph": "0", "numpy_graph": "1", "onnxruntime": "0", "openvino": "0"}
# what runs the models of these columns, in rows of inference
RUNTIMES = {"graph": "graph", "numpy_graph": "graph", "onnxruntime": "onnxruntime", "openvino": "openvino"}


class Process(processes.Process):
    """A process with the library of a column; another is started when it is lost."""

    def __init__(self, column: str, threads: int) -> None:
        self.column = column
        self.rest = LONG_REST if column not in (*PURE, PYTORCH) else REST
        self.engine = ("torch" if column == PYTORCH else "tensorgrad" if column in PURE
                       else f"benchmarks.others.{column}")
        super().__init__([sys.executable, "-m", "benchmarks.worker", str(threads), self.engine],
                         os.environ | processes.pools(threads)
                         | {"TENSORGRAD_KERNELS": "", "TENSORGRAD_PURE": PURE.get(column, "0")}, ROOT)

    def problem(self, text: str) -> Problem:
        return Problem(text, self.column)

    def make(self, group: str, name: str, **options: Any) -> Any:
        """Let it make the case of a row: the results that have to agree with PyTorch's, None if it compared them
        itself.
        """
        if group == "inference" and self.column in RUNTIMES:
            options |= {"runtime": RUNTIMES[self.column]}
        return self.ask("make", group if self.engine in ("torch", "tensorgrad") else "others", name, options)

    def fill(self, budget: Budget) -> int:
        """How many runs of its case fill a block."""
        return self.ask("fill", budget)

    def block(self, runs: int, budget: Budget) -> float:
        """The time of one run in a block of them."""
        return self.ask("block", runs, budget)
