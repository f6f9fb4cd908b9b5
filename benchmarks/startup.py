"""From the start of a fresh process to its first output: its CPU time on all threads, which says more than wall time where the machine is busy."""
from __future__ import annotations

import os
import subprocess
import sys

from .workloads import ROOT

PROGRAMS = {
    "import": "import torch",
    "import nn": "import torch\nfrom torch import nn",
    "MLP 784-128-10, first output": "import torch\nfrom torch import nn\nmodel = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))\n"
                                    "print(model(torch.ones(1, 784)).argmax())",
}


def spelt(program: str, engine: str) -> str:
    """The program with this library for torch."""
    return program.replace("import torch", f"import {engine} as torch", 1).replace("from torch", f"from {engine}")


def cpu_time(program: str) -> float:
    """Of a Python program in a process of its own, in user and system mode."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}     # as users have it: compiled once
    process = subprocess.Popen([sys.executable, "-c", program], env=environment | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"this program failed:\n{program}")
    return used.ru_utime + used.ru_stime
