"""DistributedDataParallel in two processes: an unchanged program comes to the same with PyTorch, and over MPI."""
import importlib.util
import json
import os
import subprocess
import sys

import pytest
from support import ROOT, cpu_only

from tests.distributed.test_mpi import run

pytestmark = [cpu_only, pytest.mark.skipif(not hasattr(os, "fork"), reason="the program forks")]
PROGRAM = str(ROOT / "tests" / "distributed" / "programs" / "ddp_program.py")
# they magnify what is rounded
TOLERANCE = dict.fromkeys(("convolutions", "uneven", "uneven by the busy", "powers", "powers of 3", "cold powers"),
                          5e-6)


def begun(folder, *interpreter):
    return subprocess.Popen([sys.executable, *interpreter, PROGRAM, str(folder)], stderr=subprocess.PIPE, text=True,
                            env={**os.environ, "PYTHONPATH": str(ROOT)})


def read(folder):
    """Return the results of each rank."""
    return [json.loads((folder / f"found{rank}").read_text()) for rank in range(2)]


def close(one, other, tolerance):
    if isinstance(one, list):
        assert len(one) == len(other)
        for a, b in zip(one, other):
            close(a, b, tolerance)
    elif isinstance(one, float):
        assert one == pytest.approx(other, rel=tolerance, abs=tolerance)
    else:
        assert one == other


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """{whose: what each rank found}, of the two libraries; of PyTorch where it is there."""
    folder = tmp_path_factory.mktemp("found")
    programs = {"ours": begun(folder / "ours", "-m", "tensorgrad")}
    if importlib.util.find_spec("torch") is not None:
        programs["theirs"] = begun(folder / "theirs")
    for program in programs.values():
        _, said = program.communicate(timeout=150)
        assert program.returncode == 0, said
    return {name: read(folder / name) for name in programs}


def test_a_program_finds_what_it_finds_with_pytorch(found):
    if "theirs" not in found:
        pytest.skip("PyTorch is not there to compare with")
    for ours, theirs in zip(found["ours"], found["theirs"]):
        assert list(ours) == list(theirs) and "nothing" not in ours["errors"]
        for name in theirs:
            close(ours[name], theirs[name], TOLERANCE.get(name, 1e-6))


def test_ranks_of_mpi_find_what_ranks_of_gloo_find(found, tmp_path):
    ran = run(2, "-m", "tensorgrad", PROGRAM, str(tmp_path), "mpi")
    assert ran.returncode == 0, ran.stderr
    for one, other in zip(read(tmp_path), found["ours"]):
        for name in other:
            close(one[name], other[name], TOLERANCE.get(name, 1e-6))
