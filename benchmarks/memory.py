"""Peak memory of a training step, in a process of its own.

What counts is how far the process grows while it takes its first step: its largest resident size (VmHWM, reset before
the step) less its size before, which holds the libraries, the parameters and what a step of a small batch left behind.
Linux only.
"""
from __future__ import annotations

import ctypes
import gc
import importlib
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .training import step_of
from .workloads import ROOT, Problem

if TYPE_CHECKING:
    from .processes import Process

STATUS, REFERENCES = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def resident(field: str) -> int:
    """The bytes that the process holds (VmRSS), or held at most (VmHWM)."""
    return next(int(line.split()[1]) * 1024 for line in STATUS.read_text().splitlines() if line.startswith(field))


def measured(engine_name: str, name: str) -> int:
    """How far this process grows in one training step."""
    engine = importlib.import_module(engine_name)
    step_of(name, engine, batch=2).run()            # what is set up once: threads, buffers
    step = step_of(name, engine)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)                # memory that is free, but kept, would hide growth
    if engine_name == "tensorgrad" and (native := importlib.import_module("tensorgrad.runtime.native").native):
        native.empty_memory()
    REFERENCES.write_text("5")
    before = resident("VmRSS")
    step.run()
    return resident("VmHWM") - before


def grown(name: str, process: Process) -> float:
    """Measure the growth with the library of a process, in a separate process."""
    done = subprocess.run([sys.executable, "-m", "benchmarks.memory", process.engine, name], cwd=ROOT,
                          env=process.environment, capture_output=True, text=True)
    if done.returncode:
        raise Problem("failed: " + (done.stderr.strip().rpartition("\n")[2] or f"status {done.returncode}"),
                      process.column)
    return float(done.stdout)


if __name__ == "__main__":
    print(measured(*sys.argv[1:]))
