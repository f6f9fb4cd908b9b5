"""From the start of a fresh process to its first output: its CPU time on all threads, which says more than wall time
where the machine is busy.
"""
from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from .workloads import ROOT, Problem

if TYPE_CHECKING:
    from .processes import Process

PROGRAMS = {
    "import": "import torch",
    "import nn": "import torch\nfrom torch import nn",
    "MLP 784-128-10, first output": "import torch\nfrom torch import nn\nmodel = nn.Sequential(nn.Linear(784, 128), "
                                    "nn.ReLU(), nn.Linear(128, 10))\nprint(model(torch.ones(1, 784)).argmax())",
}


def spelt(program: str, engine: str) -> str:
    """The program with this library for torch."""
    return program.replace("import torch", f"import {engine} as torch", 1).replace("from torch", f"from {engine}")


def cpu_time(program: str, process: Process) -> float:
    """Of a Python program with a library, in a process of its own with the environment of this one, in user and system
    mode.
    """
    # as users have it: compiled once
    environment = {name: value for name, value in process.environment.items() if name != "PYTHONDONTWRITEBYTECODE"}
    started = subprocess.Popen([sys.executable, "-c", spelt(program, process.engine)],
                               env=environment | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(started.pid, 0)
    started.returncode = os.waitstatus_to_exitcode(status)
    if started.returncode:
        raise Problem(f"failed: status {started.returncode}", process.column)
    return used.ru_utime + used.ru_stime
