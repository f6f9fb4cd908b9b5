"""The tests of the compiled kernels under AddressSanitizer and UBSan: `python tests/campaign/sanitized_tests.py`.

For each set of instructions that this processor has, it builds the kernels twice: as they are installed, where a
warning is an error, and with the sanitizers. Arrays are from malloc, so that each has its own borders. Tests of
accuracy are left out, because these builds sum in one chain instead of sixteen, and round products before they add
them. kernels.py makes calls at random in the same way.
"""
from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "common"))
import sanitized  # noqa: E402

SETS = "AVX-512", "AVX2", "baseline"
PYTEST = [sys.executable, "-m", "pytest", "-q", "-x", "-s", "-p", "no:cacheprovider"]


def usable(instructions: str) -> bool:
    """Return True if this processor has these instructions."""
    asked = subprocess.run([sys.executable, "-c", "from tensorgrad.runtime.native import native; "
                                                  "print(native.instructions)"], cwd=ROOT, capture_output=True,
                           text=True, env=os.environ | {"TENSORGRAD_INSTRUCTIONS": instructions})
    return asked.stdout.strip() == instructions


def outcome(instructions: str) -> str:
    """Build and test the kernels for one set of instructions; return pytest's last line, or raise RuntimeError."""
    with tempfile.TemporaryDirectory() as folder:
        strict = subprocess.run([sys.executable, ROOT / "native" / "build.py", folder, f"only={instructions}",
                                 "-Werror"], capture_output=True, text=True)
        if strict.returncode:
            raise RuntimeError(strict.stderr)
    with tempfile.TemporaryDirectory() as folder:
        environment = sanitized.build(folder, only=instructions)
        done = subprocess.run([*PYTEST, *sanitized.KERNEL_TESTS, "-p", "sanitized", "-k", "not digits and not units"],
                              cwd=ROOT, capture_output=True, text=True,
                              env=os.environ | environment | {"PYTHONPATH": str(ROOT / "tests" / "common")})
        if done.returncode:
            raise RuntimeError(done.stdout[-3000:] + done.stderr[-3000:])
    return done.stdout.strip().splitlines()[-1]


def main() -> int:
    if len(sanitized.libraries()) < len(sanitized.LIBRARIES):
        print("sanitized tests: the compiler has no sanitizers")
        return 0
    ends = {}
    for instructions in filter(usable, SETS):
        try:
            ends[instructions] = outcome(instructions)
        except RuntimeError as error:
            print(f"{instructions}:\n{error}")
            ends[instructions] = "failed"
    print("sanitized tests:", "; ".join(f"{name}: {end}" for name, end in ends.items()))
    return "failed" in ends.values()


if __name__ == "__main__":
    sys.exit(main())
