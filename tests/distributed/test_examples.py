"""The programs of examples/distributed: unchanged under our launcher, under MPI and under PyTorch's torchrun; restarts
go on from the checkpoint.
"""
import os
import re
import shutil
import subprocess
import sys

import pytest
from support import ROOT, cpu_only

import tensorgrad
from benchmarks.pairs import mpiexec

pytestmark = cpu_only
FOLDER = ROOT / "examples" / "distributed"
LAUNCHER = [sys.executable, "-W", "error", "-m", "tensorgrad.distributed.run", "--standalone", "--nproc-per-node"]
QUICK = ["--epochs", "2", "--points", "256"]


def run(*command, whole=True):
    """Run a command, and return its output; `whole`: it must succeed."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(list(map(str, command)), cwd=ROOT, env=environment, capture_output=True, text=True,
                          timeout=120)
    assert not whole or done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def epochs(printed):
    return re.findall(r"epoch (\d+): (\d+\.\d) % right, 2 ranks", printed)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A checkpoint of two ranks under our launcher, and what they printed."""
    path = tmp_path_factory.mktemp("spirals") / "spirals.pt"
    return path, epochs(run(*LAUNCHER, 2, FOLDER / "train.py", *QUICK, "--checkpoint", path))


def test_two_ranks_train_and_save(saved):
    path, printed = saved
    assert [number for number, _ in printed] == ["0", "1"]
    state = tensorgrad.load(path)
    assert (state["epoch"] == 1 and len(state["model"]) == 6
            and all(value["step"] == 2 for value in state["optimizer"]["state"].values()))


@pytest.mark.slow
def test_training_goes_on_where_it_was(saved, tmp_path):
    path = tmp_path / "spirals.pt"
    parts = [epochs(run(*LAUNCHER, 2, FOLDER / "train.py", "--points", "256", "--epochs", number, "--checkpoint", path))
             for number in (1, 2)]
    assert [*parts[0], *parts[1]] == saved[1]


@pytest.mark.slow
def test_mpi_gives_the_same(saved):
    pytest.importorskip("mpi4py", reason="mpi4py is not installed")
    launcher = mpiexec() or pytest.skip("there is no mpiexec")
    assert epochs(run(launcher, "-n", "2", sys.executable, "-m", "tensorgrad", FOLDER / "train.py", *QUICK)) == saved[1]


@pytest.mark.slow
def test_pytorch_gives_the_same(saved):
    pytest.importorskip("torch")
    launcher = shutil.which("torchrun") or pytest.skip("there is no torchrun")
    start = [launcher, "--standalone", "--nproc-per-node"]
    # PyTorch's processes abort at their exit now and then, after all is done
    assert epochs(run(*start, 2, FOLDER / "train.py", *QUICK, whole=False)) == saved[1]
    collectives = run(*start, 3, FOLDER / "collectives.py", whole=False)
    assert collectives == run(*LAUNCHER, 3, FOLDER / "collectives.py").replace("[rank0]: ", "")


@pytest.mark.slow
def test_collectives_tell_whose_numbers_they_have():
    lines = dict(re.findall(r"(?:\[rank0\]: )?(\w[\w ()]*?)  +(.*)", run(*LAUNCHER, 3, FOLDER / "collectives.py")))
    assert lines["all_reduce"] == "  ".join(["[111]"] * 3) and lines["reduce_scatter"] == "[111]  [222]  [333]"
    assert lines["all_to_all"].startswith("[1, 10, 100]  [2, 20, 200]") and lines["send and recv"] == "[100]  [1]  [10]"
