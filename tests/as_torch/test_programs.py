"""Unchanged PyTorch programs, run by `python -m tensorgrad` and by PyTorch: they print the same."""
import importlib.util
import json
import os
import re
import subprocess
import sys
from functools import cache

import pytest
from support import ROOT, cpu_only

from tensorgrad.runtime.native import native

FOLDER = ROOT / "tests" / "as_torch" / "programs"
PROGRAMS = sorted(path.name for path in FOLDER.glob("[a-z]*.py") if path.name != "conftest.py")
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\bnan\b|\binf\b)")
STEPS = 50          # rounding differs, and grows step by step: later numbers are not compared
HEAD_TAIL = 12      # lines that a program may print besides
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}


def ran(*arguments):
    done = subprocess.run([sys.executable, *arguments], cwd=FOLDER, env=ENVIRONMENT, capture_output=True, text=True,
                          timeout=120)
    assert not done.returncode, done.stderr
    return done.stdout


@cache
def printed_with_pytorch():
    return json.loads(ran("_run_all.py", *PROGRAMS))


def numbers(line):
    return [float(n) for n in NUMBER.findall(line)]


@cpu_only
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not there to compare with")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the programs that run PyTorch are forked")
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_prints_what_it_prints_with_pytorch(program):
    ours, theirs = (text.splitlines() for text in (ran("-m", "tensorgrad", program), printed_with_pytorch()[program]))
    assert len(theirs) >= 5
    assert len(ours) == len(theirs)
    # two networks against each other magnify what NumPy rounds otherwise
    close = 3e-4 if native is None and "dcgan" in str(program) else 1e-4
    for one, other in list(zip(ours, theirs))[:STEPS + HEAD_TAIL]:
        assert NUMBER.sub("#", one) == NUMBER.sub("#", other)
        assert numbers(one) == pytest.approx(numbers(other), rel=1e-4, abs=close, nan_ok=True), (one, other)


def test_programs_are_unchanged():
    """The programs do not mention this package."""
    assert len(PROGRAMS) >= 15
    for program in PROGRAMS:
        text = (FOLDER / program).read_text(encoding="utf-8")
        assert "import torch" in text and "tensorgrad" not in text
