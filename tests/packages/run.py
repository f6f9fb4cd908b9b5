"""Install packages over PyTorch without PyTorch, run programs with them over tensorgrad and over PyTorch, and write the
table of docs/guide/packages.md: `make packages`, or

    python tests/packages/run.py [NAME …]        the rows of these packages; the others keep their lines

Everything is under out/packages: `venv` has the packages, of which pip takes a wheel without code for torch; `ours` and
`torch` are folders that one side or the other has on its path. PyTorch is that of the environment that runs this.
"""
from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import xml.etree.ElementTree as xml
from importlib.metadata import distribution
from pathlib import Path

ROOT = Path(__file__).parents[2]
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from tensorgrad.as_torch.wheel import write_wheel  # noqa: E402
from tests.packages.comparing import difference  # noqa: E402
from tests.packages.rows import PROGRAMS, ROWS, Row  # noqa: E402

OUT, PAGE = ROOT / "out" / "packages", ROOT / "docs" / "guide" / "packages.md"
BEGIN, END = "<!-- make packages: begin -->", "<!-- make packages: end -->"
HEAD = "| package | what the program does | beside PyTorch | its own tests |\n|---|---|---|---|\n"
TORCH = "torch torchgen functorch sympy mpmath networkx jinja2 markupsafe".split()      # PyTorch, and what it imports
SECONDS, SUITE_SECONDS = 600, 3600
PYTHON = OUT / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"


def install(rows: list[Row]) -> None:
    """Install the rows' packages and what they need, PyTorch apart."""
    if not PYTHON.exists():
        venv.create(OUT / "venv", with_pip=True)
    wanted = [str(write_wheel(OUT / "wheels")), "setuptools<81", "pytest", "pytest-timeout",
              *(part for row in rows for part in f"{'' if row.apart else row.packages} {row.needs}".split())]
    _pip("install", *dict.fromkeys(wanted))
    for row in rows:
        if row.apart:
            _pip("install", "--no-deps", "--upgrade", "--target", str(OUT / "apart" / row.names[0]), row.packages)
    if list((OUT / "venv").rglob("site-packages/torch/__init__.py")):
        raise SystemExit(f"PyTorch is in {OUT / 'venv'}: remove it, and see which package brought it")
    _link(OUT / "ours", {"tensorgrad": ROOT / "tensorgrad"})
    [facts] = Path(str(distribution("torch").locate_file(""))).glob("torch-*.dist-info")
    _link(OUT / "torch", {facts.name: facts, **{name: _place(name) for name in TORCH}})


def _pip(command: str, *arguments: str) -> None:
    subprocess.run([PYTHON, "-m", "pip", command, "-q", "--disable-pip-version-check", *arguments], check=True)


def _place(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{name} is not installed here: make test installs PyTorch")
    return Path(spec.origin).parent


def _link(folder: Path, targets: dict[str, Path]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, target in targets.items():
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(target, target_is_directory=True)


def ran(side: str, *arguments: str, row: Row, folder: Path = PROGRAMS, seconds: int = SECONDS
        ) -> subprocess.CompletedProcess[str]:
    """Run Python in the environment of the packages, with `ours` or `torch` on its path."""
    home = OUT / "home"
    home.mkdir(exist_ok=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    path = [str(OUT / side), *([str(OUT / "apart" / row.names[0])] if row.apart else [])]
    environment |= {"PYTHONPATH": os.pathsep.join(path), "HOME": str(home), "PYTHONWARNINGS": "ignore",
                    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1",
                    "MPLBACKEND": "Agg"}
    first = ["-m", "tensorgrad"] if side == "ours" else [str(PROGRAMS.parent / "with_torch.py")]
    try:
        return subprocess.run([PYTHON, *first, *arguments], cwd=folder, env=environment, capture_output=True, text=True,
                              timeout=seconds)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(arguments, 1, "", f"TimeoutExpired: {seconds} seconds")


def outcome(row: Row) -> str:
    """Run the row's program on both sides, and say how they compare."""
    ours, theirs = ran("ours", row.program, row=row), ran("torch", row.program, row=row)
    if theirs.returncode:
        return f"PyTorch itself fails: {_last(theirs.stderr)}"
    if ours.returncode:
        done, of = len(ours.stdout.splitlines()), len(theirs.stdout.splitlines())
        return f"stops after {done} of {of} lines: {_last(ours.stderr)}"
    return difference(ours.stdout, theirs.stdout).replace("|", "¦") or "equal"


def _last(errors: str) -> str:
    """Return the error that a traceback ends with."""
    found = [line for line in errors.splitlines() if re.match(r"[\w.]+(Error|Exception|Expired)\b", line)]
    return found[0].replace("|", "¦") if found else "no traceback"


def passed(row: Row) -> str:
    """Run tests of the package's source distribution on both sides, and count those that pass on both."""
    folder, files = _source(row), row.tests.split()
    if files[0].startswith("suites/"):
        (folder / "tests" / "__init__.py").touch()
        files = [shutil.copy(PROGRAMS.parent / files[0], folder / "tests" / "test_of_models.py")]
    results = {}
    for side in ("torch", "ours"):
        report = OUT / "reports" / f"{row.names[0]}-{side}.xml"
        report.unlink(missing_ok=True)
        ran(side, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=", "--timeout", "120",
            "--junitxml", str(report),
            *files, row=row, folder=folder, seconds=SUITE_SECONDS)
        cases = xml.parse(report).iter("testcase") if report.exists() else []
        results[side] = {f"{case.get('classname')}.{case.get('name')}" for case in cases
                         if not any(case.find(mark) is not None for mark in ("failure", "error", "skipped"))}
    (OUT / "reports" / f"{row.names[0]}-lost.txt").write_text("\n".join(sorted(results["torch"] - results["ours"])))
    return f"{len(results['torch'] & results['ours'])} of {len(results['torch'])}"


def _source(row: Row) -> Path:
    """Return the folder of the first package's source distribution, which is downloaded."""
    package, sources = row.packages.split()[0], OUT / "sources"
    name, version = package.split("==")
    stem = f"{name.replace('-', '_')}-{version}"
    if not (sources / stem).exists():
        _pip("download", "--no-deps", "--no-binary", ":all:", "-d", str(sources), package)
        with tarfile.open(sources / f"{stem}.tar.gz") as archive:
            archive.extractall(sources, filter="data")
    return sources / stem


def title(row: Row) -> str:
    """Return the first column of a row: packages with their versions."""
    return ", ".join(package.replace("==", " ") for package in row.packages.split())


def lines_of(page: str) -> dict[str, str]:
    """Return the table's lines in a page by their first columns."""
    table = page.partition(BEGIN)[2].partition(END)[0]
    lines = [line for line in table.splitlines() if line.startswith("| ")][1:]
    return {line.split(" | ")[0].removeprefix("| "): line for line in lines}


def known_tests(name: str) -> str:
    """Return what the page says about the tests of a row."""
    cells = lines_of(PAGE.read_text(encoding="utf-8")).get(name, "").strip("|").split("|")
    return cells[3].strip() if len(cells) == 4 else ""


def write(outcomes: dict[str, str]) -> None:
    """Write the outcomes into the table of the page."""
    page = PAGE.read_text(encoding="utf-8")
    known, lines = lines_of(page), []
    for row in ROWS:
        name = title(row)
        line = f"| {name} | {row.about} | {outcomes[name]} |" if name in outcomes else known.get(name)
        lines.append(line or f"| {name} | {row.about} | not run | |")
    head, _, rest = page.partition(BEGIN)
    PAGE.write_text(head + BEGIN + "\n\n" + HEAD + "\n".join(lines) + "\n\n" + END + rest.partition(END)[2],
                    encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description="Run packages over tensorgrad and over PyTorch.")
    parser.add_argument("names", nargs="*", help="packages; all of them otherwise")
    parser.add_argument("--installed", action="store_true", help="install nothing")
    parser.add_argument("--programs", action="store_true", help="run no tests of source distributions")
    options = parser.parse_args()
    rows = [row for row in ROWS if not options.names or set(row.names) & set(options.names)]
    if not options.installed:
        install(rows)
    (OUT / "reports").mkdir(parents=True, exist_ok=True)
    outcomes = {}
    for row in rows:
        tests = passed(row) if row.tests and not options.programs else known_tests(title(row))
        outcomes[title(row)] = f"{outcome(row)} | {tests}"
        print(f"{title(row)}: {outcomes[title(row)]}", flush=True)
        write(outcomes)
    equal = sum(found.startswith("equal |") for found in outcomes.values())
    print(f"packages: {equal} of {len(rows)} rows equal")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
