"""A few hundred calls of the differential fuzzer, the same ones each time, come to what PyTorch makes of them."""
import os
import subprocess
import sys

import pytest
from support import ROOT, cpu_only

pytestmark = cpu_only


@pytest.mark.skipif(not hasattr(os, "fork") or not os.path.exists("/proc/self/statm"),
                    reason="the fuzzer's processes are forked, on Linux")
def test_few_calls_differ():
    """No crash, no hang, no argument changed by a call that raises; and hardly any other difference without a
    reason.
    """
    pytest.importorskip("torch")
    script = str(ROOT / "tests" / "campaign" / "differential.py")
    ran = subprocess.run([sys.executable, script, "--calls", "400", "--seed", "7", "--jobs", "1", "--most", "8"],
                         cwd=ROOT, capture_output=True,
                         text=True, timeout=120)
    assert not ran.returncode, ran.stdout + ran.stderr
