"""Run PyTorch's own test files on this package and on PyTorch, and compare.

    python tests/campaign/pytorch_tests.py FOLDER test_nn.py nn/test_pooling.py --jobs 2

FOLDER is the directory `test` of PyTorch's source, of a release near the one that is installed: its files are in no
wheel. Each file is run twice, in processes of their own: with PyTorch as `torch`, and with this package as `torch`. The
helpers that the files import, `torch.testing._internal`, come from the installed PyTorch in both cases. A test counts
if it passes with PyTorch; the score is the share of those that pass here. Only tests of the CPU are run, and a test
has `--seconds` for itself; where a process dies or hangs, the next one goes on behind that test.

`--every N` runs each N-th test of a file, `--only REGEX` those with a matching name, `--why` prints the first line of
each failure, `--json FILE` keeps all outcomes. PyTorch's outcomes are kept in out/pytorch_tests; `--anew` runs it
again.
"""
from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
WORKER = Path(__file__).with_name("pytorch_tests_worker.py")
PLACE = re.compile(r" \[.*|(?<=0x)[0-9a-f]+")
SILENCE = 3         # a process that writes nothing for this many times `--seconds` is stopped
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONHASHSEED": "0",
               "PYTORCH_TESTING_DEVICE_ONLY_FOR": "cpu", "PYTORCH_TEST_WITH_SLOW": "0", "PYTHONWARNINGS": "ignore"}


def outcomes(library: str, file: Path, options: Any) -> dict[str, tuple[str, str]]:
    """Run a file with one library and return {test: (status, first line of the error)}."""
    found: dict[str, tuple[str, str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        log.touch()
        while True:
            command = [sys.executable, str(WORKER), library, str(file), str(log), str(options.seconds),
                       str(options.every), options.only]
            stuck, last = run(command, log, folder, options)
            running = None
            for line in log.read_text().splitlines():
                name, status, text = json.loads(line)
                running = name if status == "started" else None
                if status != "started":
                    found[name] = status, text
            if running is None:
                break
            # the process died, or hung, in this test: the next one skips what the log names
            found[running] = ("timeout", "") if stuck else ("crash", last)
            with log.open("a") as file_of_log:
                file_of_log.write(json.dumps([running, *found[running]]) + "\n")
    return found


def run(command: list[str], log: Path, folder: str, options: Any) -> tuple[bool, str]:
    """Run a worker until it ends, or has written nothing for too long: (whether it was stopped, its last line)."""
    environment = {**os.environ, **ENVIRONMENT, "PYTHONPATH": str(ROOT), "TMPDIR": folder}
    with (Path(folder) / "output").open("w+") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                   env=environment, cwd=folder)
        stuck, size = False, -1
        while True:
            try:
                process.wait(options.seconds * SILENCE + 60 * (size < 1))       # the import comes first
                break
            except subprocess.TimeoutExpired:
                if log.stat().st_size == size:
                    process.kill()
                    stuck = True
                size = log.stat().st_size
        output.seek(0)
        lines = output.read().strip().splitlines()
    return stuck, lines[-1][:300] if lines else f"exit status {process.returncode}"


def reference(file: str, options: Any) -> dict[str, tuple[str, str]]:
    """Return the outcomes with PyTorch: those of an earlier run, if there are any."""
    kept = ROOT / "out" / "pytorch_tests" / f"{file.replace('/', '.')}.{options.every}.{options.only or 'all'}.json"
    if not kept.exists() or options.anew:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(outcomes("torch", options.folder / file, options), indent=0))
    return {name: (status, text) for name, (status, text) in json.loads(kept.read_text()).items()}


def compare(file: str, options: Any) -> dict[str, Any]:
    """Run a file with both libraries."""
    there, here = reference(file, options), outcomes("tensorgrad", options.folder / file, options)
    passed = [name for name, (status, _) in there.items() if status == "passed"]
    return {"file": file, "passed": len(passed), "tests": {
        name: here.get(name, here.get("import", ("missing", ""))) for name in passed},
        "reference": there.get("import", ("", ""))[1]}


def report(result: dict[str, Any], why: bool) -> Counter[str]:
    """Print a line for a file, and, if asked, each test that fails."""
    counted = Counter(status for status, _ in result["tests"].values())
    rest = ", ".join(f"{count} {status}" for status, count in sorted(counted.items()) if status != "passed")
    share = counted["passed"] / result["passed"] if result["passed"] else 0.0
    print(f"{result['file']:45} {counted['passed']:5} of {result['passed']:5}  {share:6.1%}  {rest}"
          f"{'  PyTorch: ' + result['reference'] if result['reference'] else ''}", flush=True)
    if why:
        texts: dict[str, list[str]] = {}
        for name, (status, text) in result["tests"].items():
            if status != "passed":
                texts.setdefault(f"{status}: {re.sub(PLACE, '', text)[:200]}", []).append(name)
        for text, names in sorted(texts.items(), key=lambda item: -len(item[1])):
            print(f"    {len(names):4} {text}\n         {', '.join(names[:3])}"
                  f" {''.join(re.findall(PLACE, result['tests'][names[0]][1]))}", flush=True)
    return counted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--only", default="")
    parser.add_argument("--anew", action="store_true")
    parser.add_argument("--why", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    options.folder = options.folder.resolve()
    total: Counter[str] = Counter()
    results = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for result in pool.map(lambda file: compare(file, options), options.files):
            total += report(result, options.why)
            results.append(result)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))
    wanted = sum(result["passed"] for result in results)
    print(f"pytorch_tests: {total['passed']:,} of {wanted:,} tests that pass with PyTorch "
          f"({total['passed'] / max(wanted, 1):.1%}), {len(results)} files")


if __name__ == "__main__":
    main()
