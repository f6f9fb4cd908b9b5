"""DistributedDataParallel in two processes: an unchanged program comes to the same with PyTorch."""
import importlib.util
import json
import os
import subprocess
import sys

import pytest
from support import ROOT, cpu_only

pytestmark = [cpu_only, pytest.mark.skipif(not hasattr(os, "fork"), reason="the program forks"),
              pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not there to compare with")]
TOLERANCE = dict.fromkeys(("convolutions", "uneven", "uneven by the busy", "powers", "powers of 3", "cold powers"), 5e-6)      # they magnify what is rounded


def begun(folder, *interpreter):
    return subprocess.Popen([sys.executable, *interpreter, str(ROOT / "tests" / "ddp_program.py"), str(folder)], stderr=subprocess.PIPE, text=True,
                            env={**os.environ, "PYTHONPATH": str(ROOT)})


def close(one, other, tolerance):
    if isinstance(one, list):
        assert len(one) == len(other)
        for a, b in zip(one, other):
            close(a, b, tolerance)
    elif isinstance(one, float):
        assert one == pytest.approx(other, rel=tolerance, abs=tolerance)
    else:
        assert one == other


def test_a_program_finds_what_it_finds_with_pytorch(tmp_path):
    programs = [begun(tmp_path / "theirs"), begun(tmp_path / "ours", "-m", "tensorgrad")]
    for program in programs:
        _, said = program.communicate(timeout=150)
        assert program.returncode == 0, said
    for rank in range(2):
        ours, theirs = (json.loads((tmp_path / whose / f"found{rank}").read_text()) for whose in ("ours", "theirs"))
        assert list(ours) == list(theirs) and "nothing" not in ours["errors"]
        for name in theirs:
            close(ours[name], theirs[name], TOLERANCE.get(name, 1e-6))
