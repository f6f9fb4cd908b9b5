"""Common parts of tests: the device under test, programs in separate processes, programs that are run beside
PyTorch.
"""
import os
import subprocess
import sys
import time
import unittest
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest

for _pool in ("OMP", "OPENBLAS", "MKL", "NUMEXPR"):          # before NumPy is imported: tests run beside each other
    os.environ.setdefault(f"{_pool}_NUM_THREADS", "1")

COMMON = Path(__file__).parent          # what tests share; pytest has it on the path
ROOT = COMMON.parents[1]
CHOICES = ("cpu", "cuda")
DEVICE = os.environ.get("DEVICE", "cpu")

not_numpy_2_0 = pytest.mark.skipif(version("numpy").startswith("2.0."), reason="NumPy 2.0 does not have it")
cpu_only = pytest.mark.skipif(DEVICE != "cpu", reason="about memory that NumPy and tensors share: the CPU's")


@cache
def has_gpu():
    """Return True if CuPy and a GPU that it can use are available."""
    try:
        import cupy
        return cupy.cuda.runtime.getDeviceCount() > 0
    except Exception:   # no CuPy, no driver, no device
        return False


if DEVICE == "cuda" and not has_gpu():
    os.environ.setdefault("TENSORGRAD_SIMULATED_CUDA", "2")      # before tensorgrad is imported


def on_device(tensor):
    """The tensor on the device under test."""
    return tensor.to(DEVICE)


def fresh_process(program, *, fails=False, **environment):
    """Run a Python program in a separate process, and return its output; with `fails`, the last line of its error."""
    settings = {name: value for name, value in os.environ.items()
                if name not in ("TENSORGRAD_SIMULATED_CUDA", "DEVICE")}
    ran = subprocess.run([sys.executable, "-W", "error", "-c", program], cwd=ROOT, env=settings | environment,
                         capture_output=True, text=True, timeout=120)
    assert bool(ran.returncode) == fails and "Exception ignored" not in ran.stderr, ran.stderr
    return ran.stderr.strip().splitlines()[-1] if fails else ran.stdout


class Skipped(pytest.skip.Exception, unittest.SkipTest):
    """Skips a file of tests, for pytest and for `python -m unittest discover tests` alike."""


def skip_file(reason):
    """Leave out the tests of the file that is being imported."""
    raise Skipped(reason, allow_module_level=True)


def needed(package):
    """A package without which the file that is being imported has no tests."""
    try:
        return import_module(package)
    except ImportError:
        skip_file(f"{package} is not installed")


def skip_if_built_with_cuda(torch):
    """For what PyTorch answers differently if it was built with CUDA, on a machine that has none, too."""
    if torch.version.cuda is not None:
        pytest.skip("this PyTorch was built with CUDA")


class Programs(list):
    """Small programs `program(torch)` that must come to the same with PyTorch: values, errors, warnings. A decorator.

        program = Programs()
        @program
        def accumulation(torch): ...
        test_programs = program.test()
    """

    def __call__(self, program):
        self.append(program)
        return program

    def test(self, **tolerances):
        @pytest.mark.parametrize("program", self, ids=[program.__name__ for program in self])
        def test_programs(program):
            from side_by_side import same
            same(program, **tolerances)
        return test_programs


def is_running(pid):
    """Return True if a process exists and is no zombie."""
    try:
        return (Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
                if os.path.exists("/proc/self/stat") else not os.kill(int(pid), 0))
    except OSError:
        return False


def until(found, what="it", seconds=60):
    """Poll a function until its result is true, and return the result."""
    end = time.monotonic() + seconds
    while not (value := found()):
        assert time.monotonic() < end, f"{what}, which did not come"
        time.sleep(0.01)
    return value


def shared_memory():
    """The names of segments and semaphores that there are now, but for MPI libraries', which leave theirs when a job is
    aborted.
    """
    names = os.listdir("/dev/shm") if os.path.isdir("/dev/shm") else []
    return {name for name in names if not name.startswith(("mpich_", "vader_", "sm_segment", "osc_", "psm2_"))}


def nothing_is_left(before):
    """Return True unless there is a new segment of shared memory that no process holds; other programs may hold new
    ones."""
    left = shared_memory() - before
    for process in Path("/proc").glob("[0-9]*") if left else ():
        held = ""
        with suppress(OSError):                     # it has just ended, or is another user's
            held += (process / "maps").read_text(errors="replace")
            for file in list((process / "fd").iterdir()):
                with suppress(OSError):
                    held += os.readlink(file)
        left = {name for name in left if f"/dev/shm/{name}" not in held}
    return not left & shared_memory()
