"""Measure a model with several libraries: the same inputs and parameters, results compared first, then in turn."""
from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from .comparing import disagreement
from .machine import copy_rate, processor, sgemm_rate
from .measuring import Shape
from .processes import Problem, Process, pools
from .timing import REST, Budget, alternate, quartiles

MEASURING = Path(__file__).with_name("measuring.py")
ROOT = Path(__file__).parents[2]
TITLES = {"eager": "tensorgrad, eager", "compiled": "tensorgrad, compiled", "pytorch": "PyTorch, eager",
          "onnxruntime": "onnxruntime", "openvino": "OpenVINO"}
MODULES = {"pytorch": "torch", "onnxruntime": "onnxruntime", "openvino": "openvino"}


@dataclass
class Row:
    """Figures of a library at a batch: seconds of a run (quartiles), of a fresh process up to its first
    result, of its imports among them, and the most bytes that this process held. Or the problem.
    """

    library: str
    batch: int
    times: tuple[float, float, float] | None = None
    first: float | None = None
    imports: float | None = None
    peak: float | None = None
    problem: str = ""


@dataclass
class Found:
    """The rows, the model and the machine of a comparison."""

    model: str
    threads: int
    inputs: list[str]
    rows: list[Row] = field(default_factory=list)
    versions: list[str] = field(default_factory=list)
    machine: str = ""


def installed(library: str) -> bool:
    """Return True if a library of `TITLES` can be imported."""
    return library not in MODULES or importlib.util.find_spec(MODULES[library]) is not None


class Library(Process):
    """The process of a library, which can be timed in turn with others."""

    rest = REST

    def __init__(self, name: str, threads: int) -> None:
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
        # modules are compiled once, as users have them
        plain = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        super().__init__([sys.executable, "-P", str(MEASURING), "serve", name, str(threads)],
                         plain | pools(threads) | {"PYTHONPATH": path})
        self.name, self.threads = name, threads

    def fill(self, budget: Budget) -> int:
        return self.ask("fill", budget.seconds)             # type: ignore[no-any-return]

    def block(self, runs: int, budget: Budget) -> float:
        return self.ask("block", runs)                      # type: ignore[no-any-return]

    def first(self, model: str, inputs: str) -> tuple[float, float, float | None]:
        """Run the model once in a fresh process; return (seconds, seconds of its imports, bytes at most)."""
        command = [*self.command[:3], "first", self.name, str(self.threads), model, inputs]
        start = time.time()
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True)
        if done.returncode:
            raise Problem("failed: " + (done.stderr.strip().rpartition("\n")[2] or f"status {done.returncode}"))
        told = json.loads(done.stdout.splitlines()[-1])
        return told["done"] - start, told["imported"] - start, told["peak"]


class Comparison:
    """A model, `file.py:function` or a file of ONNX, and the processes of some libraries."""

    def __init__(self, model: str, libraries: Sequence[str], threads: int, shapes: Sequence[Shape] = ()) -> None:
        self.model, self.threads, self.shapes = model, threads, shapes
        self.onnx = model.endswith(".onnx")
        # tensorgrad, eager, is what results are compared with
        self.processes = {name: Library(name, threads) for name in dict.fromkeys(["eager", *libraries])
                          if not (self.onnx and name == "pytorch")}
        self.wanted = [name for name in libraries if name in self.processes]

    def run(self, batches: Sequence[int], folder: Path, budget: Budget, processes: int = 3,
            note: Callable[[str], Any] = lambda text: None) -> Found:
        """Measure all. Problem if tensorgrad itself cannot run the model.

        `processes` is how many fresh ones are measured of each; `note` is called with what begins.
        """
        try:
            own = self.processes["eager"].ask("load", self.model)
            given = self.inputs(own)
            found = Found(self.model, self.threads, [f"{x.dtype}{list(x.shape)}" for x in given])
            files = self.loaded(given, folder, note)
            for batch in batches or [len(given[0]) if given[0].ndim else 1]:
                arrays = [resized(x, batch) if x.ndim and len(x) == len(given[0]) else x for x in given]
                found.rows += self.rows(batch, arrays, files, folder, budget, processes, note)
        finally:
            for process in self.processes.values():
                process.stop()
        found.versions = list(dict.fromkeys(version for name in self.wanted
                                            if (version := self.processes[name].about.get("version"))))
        note("the machine")
        rates = sgemm_rate(seconds=budget.limit / 10) / 1e9, copy_rate(seconds=budget.limit / 10) / 1e9
        found.machine = (f"{processor()}, {os.cpu_count()} processors; NumPy multiplies {rates[0]:,.0f} GFLOP/s "
                         f"(float32) and copies {rates[1]:.1f} GB/s")
        return found

    def inputs(self, own: list[Any]) -> list[np.ndarray]:
        """Return example inputs: of the shapes that were given, else the program's own."""
        rng = np.random.default_rng(0)
        if self.onnx:
            given = {shape.name: shape for shape in self.shapes}
            signatures = self.processes["eager"].ask("signatures")
            if unknown := set(given) - {name for name, _, _ in signatures}:
                raise Problem(f"the model has no input {', '.join(sorted(unknown))}: its inputs are "
                              f"{', '.join(name for name, _, _ in signatures)}")
            return [drawn(rng, given[name].sizes if name in given
                          else tuple(n if isinstance(n, int) else 1 for n in sizes or ()), dtype)
                    for name, sizes, dtype in signatures]
        arrays = [drawn(rng, shape.sizes, shape.dtype) for shape in self.shapes] or own
        if not arrays:
            raise Problem(f"{self.model} returned a module without inputs: tell their shapes by --shape 1,3,224,224, "
                          f"or return (module, inputs)")
        return arrays

    def loaded(self, given: list[np.ndarray], folder: Path, note: Callable[[str], Any]) -> dict[str, str]:
        """Load the model in every process; return the file for each. Drop processes that cannot load it."""
        files, state = dict.fromkeys(self.processes, self.model), ""
        others = [name for name in ("onnxruntime", "openvino") if name in files]
        self.problems = dict[str, str]()
        if not self.onnx:
            note("parameters, and the model as an ONNX file")
            exported, state = str(folder / "model.onnx"), str(folder / "state.pt")
            self.processes["eager"].ask("make", given)
            self.processes["eager"].ask("save", state)
            try:
                if others:
                    self.processes["eager"].ask("export", given, exported)
                files |= dict.fromkeys(others, exported)
            except Problem as problem:
                self.problems |= dict.fromkeys(others, f"no ONNX file: {problem}")
        for name, process in self.processes.items():
            if name != "eager" and name not in self.problems:
                try:
                    process.ask("load", files[name], "" if files[name].endswith(".onnx") else state)
                except Problem as problem:
                    self.problems[name] = str(problem)
        return files

    def rows(self, batch: int, arrays: list[np.ndarray], files: dict[str, str], folder: Path, budget: Budget,
             processes: int, note: Callable[[str], Any]) -> Iterator[Row]:
        """Yield the rows of a batch."""
        note(f"results at batch {batch}")
        rows = {name: Row(name, batch, problem=self.problems.get(name, "")) for name in self.wanted}
        expected = self.processes["eager"].ask("make", arrays)
        for name, row in rows.items():
            if not row.problem and name != "eager":
                try:
                    difference = disagreement(self.processes[name].ask("make", arrays), expected, other="eager mode")
                    row.problem = difference and f"differs: {difference}"
                except Problem as problem:
                    row.problem = str(problem)
        note(f"times at batch {batch}")
        timed = [name for name, row in rows.items() if not row.problem]
        for name, times in zip(timed, alternate([self.processes[name] for name in timed], budget), strict=True):
            rows[name].times = quartiles(times)
        note(f"first results at batch {batch}")
        inputs = str(folder / f"inputs{batch}.npz")
        np.savez(inputs, *arrays)
        fresh: dict[str, list[Any]] = {name: [] for name in timed}
        for _ in range(processes):
            for name in timed:
                try:
                    fresh[name].append(self.processes[name].first(files[name], inputs))
                except Problem as problem:
                    rows[name].problem = str(problem)
        for name, measured in fresh.items():
            if measured:
                first, imports, peaks = zip(*measured, strict=True)
                rows[name].first, rows[name].imports = median(first), median(imports)
                rows[name].peak = None if None in peaks else median(peaks)
        yield from rows.values()


def resized(array: np.ndarray, batch: int) -> np.ndarray:
    """Repeat or cut an array along its first axis."""
    return np.ascontiguousarray(array[np.arange(batch) % max(len(array), 1)])


def drawn(rng: np.random.Generator, sizes: tuple[int, ...], dtype: str) -> np.ndarray:
    """Return random numbers: normal ones, or zeros and ones if they are no floating point numbers."""
    if dtype in ("float16", "float32", "float64"):
        return rng.standard_normal(sizes).astype(dtype)
    return rng.integers(0, 2, sizes).astype(dtype)
