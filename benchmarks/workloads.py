"""Rows of the benchmark: each is a function of the library's module, run with tensorgrad and with PyTorch."""
from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from .timing import Budget, Case, Measurement, alternate, ratios, summary

if TYPE_CHECKING:
    from .processes import Process

ROOT = Path(__file__).parents[1]
ENGINES = ("tensorgrad", "torch")
PYTORCH = "PyTorch"                     # the column that the others are compared with
RUNTIME = "onnxruntime"                 # one that they are compared with, too, where it is measured
CANNOT = "–"                            # what a row says that a library has no functions for
TOLERANCE = 1e-3                        # of the largest number of a tensor: float32, after hundreds of ops


class Problem(Exception):
    """Why there is no measurement of a row, as the report has it, and in which column."""

    def __init__(self, text: str, column: str = "") -> None:
        super().__init__(text)
        self.column = column


@dataclass(frozen=True)
class Workload:
    """A row: `make(engine, tiny)` gives the Case to time; one run of it does `per` things.

    `tiny`: the same at sizes that tests can afford.
    """

    name: str
    make: Callable[..., Case]
    section: str = ""
    per: int = 1
    tolerance: float = TOLERANCE

    def measure(self, columns: Mapping[str, Process], group: str, budget: Budget) -> dict[str, Measurement]:
        """Measure the columns in turn in their processes; return the result of each, or the reason why there is
        none.
        """
        found: dict[str, Measurement] = {}
        left = dict(columns)
        while set(left) - {PYTORCH}:
            try:
                found |= self.compare(left, group, budget)
                left = {}
            except Problem as problem:
                without_reference = problem.column == PYTORCH
                for name in set(left) - {PYTORCH} if without_reference else {problem.column}:
                    found[name] = Measurement(problem=f"{PYTORCH} {problem}" if without_reference else str(problem))
                    del left[name]
        return {name: found[name] for name in columns if name != PYTORCH}

    def compare(self, columns: Mapping[str, Process], group: str, budget: Budget) -> dict[str, Measurement]:
        """The measurements of all columns. Problem where one of them fails or differs from PyTorch."""
        self.agree(columns, group)
        times = dict(zip(columns, alternate(list(columns.values()), budget)))
        to = {name: ratios(times[name], times[RUNTIME]) if RUNTIME in times else None for name in columns}
        return {name: summary(times[name], times.get(PYTORCH), self.per, runtime=to[name])
                for name in columns if name != PYTORCH}

    def agree(self, columns: Mapping[str, Process], group: str, **options: Any) -> None:
        """Let every column make its case. Problem for one that differs from PyTorch's."""
        results = {name: process.make(group, self.name, **options) for name, process in columns.items()}
        for name, values in results.items():
            if values is not None and (difference := disagreement(values, results.get(PYTORCH), self.tolerance)):
                raise Problem(f"differs: {difference}", name)


def array(x: Any) -> np.ndarray:
    return np.array(x.detach().numpy() if hasattr(x, "detach") else x)


def disagreement(ours: Sequence[Any], theirs: Sequence[Any] | None = None, tolerance: float = TOLERANCE) -> str:
    """Describe the difference of results; "" if they agree."""
    from tensorgrad.benchmark import comparing  # PyTorch's process imports this file, and no tensorgrad
    return comparing.disagreement(ours, theirs, tolerance)


def program(path: str, engine: Any) -> ModuleType:
    """The module in a file of this repository, with `engine` for what it imports as torch or tensorgrad."""
    def imported(module: str, *context: Any) -> Any:
        root, dot, rest = module.partition(".")
        return __import__(f"{engine.__name__}{dot}{rest}" if root in ENGINES else module, *context)
    loaded = ModuleType(f"{Path(path).stem}_of_{engine.__name__}")
    loaded.__dict__["__builtins__"] = {**vars(importlib.import_module("builtins")), "__import__": imported}
    exec(compile((ROOT / path).read_text(encoding="utf-8"), path, "exec", dont_inherit=True), loaded.__dict__)
    return loaded
