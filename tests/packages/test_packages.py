"""Programs that use packages over PyTorch print over this package what they print over PyTorch.

Here run those whose packages are installed with the tests; `make packages` installs and runs all.
"""
import json
import os
import subprocess
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec

import pytest
from support import ROOT, cpu_only

from tests.packages import run
from tests.packages.comparing import difference
from tests.packages.own_tests import OWN_TESTS, compared, outcomes
from tests.packages.rows import PROGRAMS, ROWS

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1"}


def is_installed(name):
    try:
        return distribution(name) is not None
    except PackageNotFoundError:
        return False


HERE = [row for row in ROWS if find_spec("torch") is not None and all(map(is_installed, row.names))]


def ran(*arguments):
    done = subprocess.run([sys.executable, *arguments], cwd=PROGRAMS, env=ENVIRONMENT, capture_output=True, text=True,
                          timeout=120)
    assert not done.returncode, done.stderr
    return done.stdout


@cache
def printed_with_pytorch():
    return json.loads(ran(str(ROOT / "tests" / "as_torch" / "programs" / "_run_all.py"),
                          *(row.program for row in HERE)))


@cpu_only
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the programs that run PyTorch are forked")
@pytest.mark.parametrize("row", HERE, ids=lambda row: row.names[0])
def test_a_package_does_what_it_does_with_pytorch(row):
    ours, theirs = ran("-m", "tensorgrad", row.program), printed_with_pytorch()[row.program]
    assert len(theirs.splitlines()) >= 5 and difference(ours, theirs) == ""


def test_programs_are_all_listed_and_unchanged():
    assert (sorted({row.program for row in ROWS})
            == sorted(path.name for path in PROGRAMS.glob("[a-z]*.py") if path.name != "conftest.py"))
    for row in ROWS:
        text = (PROGRAMS / row.program).read_text(encoding="utf-8")
        assert "import torch" in text and "tensorgrad" not in text and row.about


def test_the_page_has_a_line_for_each_row():
    page = (ROOT / "docs" / "guide" / "packages.md").read_text(encoding="utf-8")
    assert list(run.lines_of(page, "programs")) == [run.title(row) for row in ROWS]
    counted = run.lines_of(page, "tests")
    assert list(counted) == [tests.title for tests in OWN_TESTS]
    for tests in OWN_TESTS:
        assert f"| {tests.about} |" in counted[tests.title], "counted with other files: make packages"


def test_outcomes_are_compared_by_their_causes(tmp_path):
    theirs = {name: ("passed", "") for name in "abcd"} | {"e": ("failed", "ValueError")}
    report = tmp_path / "ours.jsonl"
    report.write_text('["a", "passed", ""]\n["b", "failed", "TypeError: x"]\n["c", "failed", "TypeError: x"]\n')
    passed, of, lost = compared(outcomes(report), theirs)
    assert (passed, of) == (1, 4)
    assert lost == "2 failed: TypeError: x\n    b\n    c\n1 not run: \n    d"


@pytest.mark.parametrize("ours, theirs, found", [
    ("a 1.00001\n", "a 1.0\n", ""), ("a nan", "a nan", ""), ("a 1.1", "a 1.0", "a 1.1 ≠ a 1.0"),
    ("a 1", "b 1", "a 1 ≠ b 1"), ("a\nb", "a", "2 lines ≠ 1 lines"), ("a 1 2", "a 1", "a 1 2 ≠ a 1")])
def test_differences_are_found(ours, theirs, found):
    assert difference(ours, theirs) == found
