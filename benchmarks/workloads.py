"""What a row of the benchmark is: one function of the library's module, run with tensorgrad and with PyTorch."""
from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from .timing import Budget, Case, Measurement, alternate, summary

ROOT = Path(__file__).parents[1]
ENGINES = ("tensorgrad", "torch")
CANNOT = "–"                            # what a row says that a library has no functions for
TOLERANCE = 1e-3                        # of the largest number of a tensor: float32, after hundreds of ops


@dataclass(frozen=True)
class Workload:
    """A row: `make(engine, tiny)` gives the Case to time; one run of it does `per` things. `tiny`: the same at sizes that tests can afford."""

    name: str
    make: Callable[[Any, bool], Case]
    section: str = ""
    per: int = 1
    tolerance: float = TOLERANCE

    def measure(self, engines: Sequence[Any], budget: Budget) -> Measurement:
        cases = [self.make(engine, False) for engine in engines]
        if difference := disagreement(*(case.results() for case in cases), tolerance=self.tolerance):
            return Measurement(problem=f"differs: {difference}")
        ours, *theirs = alternate(cases, budget)
        return summary(ours, theirs[0] if theirs else None, self.per)


def disagreement(ours: Sequence[Any], theirs: Sequence[Any] | None = None, tolerance: float = TOLERANCE) -> str:
    """What is not equal, in words. A gradient that is nearly zero next to the others may be off by a little of theirs."""
    if theirs is None:
        return ""
    if len(ours) != len(theirs):
        return f"{len(ours)} results, PyTorch has {len(theirs)}"
    pairs = [tuple(np.asarray(x.detach().numpy() if hasattr(x, "detach") else x, np.float64) for x in pair) for pair in zip(ours, theirs)]
    largest = max((float(np.abs(b).max()) for _, b in pairs if b.size), default=0.0)
    for i, (a, b) in enumerate(pairs):
        if a.shape != b.shape:
            return f"result {i} has shape {a.shape}, PyTorch's {b.shape}"
        if a.size and not (off := float(np.abs(a - b).max())) <= tolerance * (float(np.abs(b).max()) + 0.01 * largest):       # so that NaN is caught
            return f"result {i} is off by {off:.3g}, the largest number of PyTorch's is {np.abs(b).max():.3g}"
    return ""


def program(path: str, engine: Any) -> ModuleType:
    """The module in a file of this repository, with `engine` for what it imports as torch or tensorgrad."""
    def imported(module: str, *context: Any) -> Any:
        root, dot, rest = module.partition(".")
        return __import__(f"{engine.__name__}{dot}{rest}" if root in ENGINES else module, *context)
    loaded = ModuleType(f"{Path(path).stem}_of_{engine.__name__}")
    loaded.__dict__["__builtins__"] = {**vars(importlib.import_module("builtins")), "__import__": imported}
    exec(compile((ROOT / path).read_text(encoding="utf-8"), path, "exec", dont_inherit=True), loaded.__dict__)
    return loaded
