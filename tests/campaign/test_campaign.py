"""A little of the random trials of tests/campaign, always the same ones."""
import subprocess
import sys

import pytest
from support import ROOT, cpu_only

from tensorgrad.runtime.native import native

pytestmark = [cpu_only, pytest.mark.skipif(native is None, reason="the kernels are not built"),
              pytest.mark.skipif(sys.platform != "linux", reason="workers are forked, within limits that Linux knows")]


def figures(script, *given):
    """The last line of a script that finds nothing."""
    done = subprocess.run([sys.executable, ROOT / "tests" / "campaign" / script, *given], capture_output=True,
                          text=True)
    assert not done.returncode, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout.splitlines()[-1]


@pytest.mark.long
@pytest.mark.parametrize("level", ["public", "direct"])
def test_calls_at_random(level):
    assert figures("kernels.py", "--level", level, "--calls", "4000", "--jobs",
                   "1").startswith(f"kernels, {level}: 4,000 calls")


def test_a_crash_is_told_apart_and_cut_short():
    """A worker that dies, one that hangs and an error of the interpreter's own, each put down to its call, and the
    calls after it made as well.
    """
    program = """
import sys
sys.path[:0] = ["tests/campaign"]
import workers
workers.SECONDS = 1
ends = {5: "x = 1\\nos.abort()", 11: "while 1: pass", 17: "x = 2\\nraise SystemError(x)", 18: "raise ValueError"}
campaign = workers.Campaign(lambda number: ends.get(number, "y = 3"), {"os": workers.os}, jobs=2)
found = campaign.run(20)
print(found.calls, found.raised, found.crashes, sorted((f.program, f.number) for f in found.findings.values()))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert (done.stdout.splitlines()[-1] == "20 2 2 [('os.abort()', 5), ('while 1: pass', 11), ('x = 2\\nraise "
                                            "SystemError(x)', 17)]"), done.stdout
