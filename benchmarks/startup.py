"""From the start of a fresh process to its first output, tensorgrad and PyTorch in turn: `python -m benchmarks.startup`.

CPU time is what the process used, in user and system mode, on all threads: it says more than wall time does where the machine has other things to do.
"""
from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
MODEL = "from torch import nn\nmodel = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))\n"
PROGRAMS = {                # with `torch` for either library; {file} is a state dict of the model
    "import": "import torch",
    "import nn": "import torch\nfrom torch import nn",
    "MLP 784-128-10, first output": "import torch\n" + MODEL + "print(model(torch.ones(1, 784)).argmax())",
    "the same, weights from a file": "import torch\n" + MODEL + "model.load_state_dict(torch.load({file!r}))\nprint(model(torch.ones(1, 784)).argmax())",
}


class Took(NamedTuple):
    wall: float
    cpu: float


def ran(program: str) -> Took:
    """The time that a Python program takes in a process of its own."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}     # as users have it: compiled once
    environment["PYTHONPATH"] = str(ROOT)
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"this program failed:\n{program}")
    return Took(wall, used.ru_utime + used.ru_stime)


def medians(programs: dict[str, str], rounds: int) -> dict[str, Took]:
    """The median times of programs that take turns; the first round, which may have to compile or to read from the disk, does not count."""
    times: dict[str, list[Took]] = {name: [] for name in programs}
    for turn in range(rounds + 1):
        for name, program in programs.items():
            took = ran(program)
            if turn:
                times[name].append(took)
    return {name: Took(*map(statistics.median, zip(*taken))) for name, taken in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="how often each program runs")
    arguments = parser.parse_args()
    engines = ["tensorgrad", *(["torch"] if importlib.util.find_spec("torch") else [])]
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "model.pt")
        subprocess.run([sys.executable, "-c", spelt(f"import torch\n{MODEL}torch.save(model.state_dict(), {file!r})", "tensorgrad")], cwd=ROOT, check=True)
        programs = {"python": "", "numpy": "import numpy"}
        for name, text in PROGRAMS.items():
            programs |= {f"{engine}: {name}": spelt(text, engine).replace("{file!r}", repr(file)) for engine in engines}
        found = medians(programs, arguments.rounds)
    print(f"{'':48} wall, ms   CPU, ms")
    for name, took in found.items():
        print(f"{name:48} {1e3 * took.wall:8.0f} {1e3 * took.cpu:9.0f}")
    bare, numpy, own = (found[name].cpu for name in ("python", "numpy", "tensorgrad: import"))
    print(f"importing tensorgrad takes {(own - bare) / (numpy - bare):.2f} times the CPU time that importing NumPy takes")


def spelt(text: str, engine: str) -> str:
    """A program with `torch` for the library."""
    return text.replace("import torch", f"import {engine} as torch", 1).replace("from torch", f"from {engine}")


if __name__ == "__main__":
    main()
