"""Install packages over PyTorch without PyTorch, run programs with them and their own tests over tensorgrad and over
PyTorch, and write the tables of docs/guide/packages.md: `make packages`, or

    python tests/packages/run.py [NAME …]        the rows of these packages; the others keep their lines

Everything is under out/packages: `venv` has the packages, of which pip takes a wheel without code for torch; `ours` and
`torch` are folders that one side or the other has on its path. PyTorch is that of the environment that runs this.
"""
from __future__ import annotations

import argparse
import importlib.util
import os
import re
import subprocess
import sys
import tarfile
import venv
from importlib.metadata import distribution
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from tensorgrad.as_torch.wheel import write_wheel  # noqa: E402
from tests.packages import own_tests  # noqa: E402
from tests.packages.comparing import difference  # noqa: E402
from tests.packages.own_tests import OWN_TESTS, SECONDS_OF_A_TEST, OwnTests  # noqa: E402
from tests.packages.rows import PROGRAMS, ROWS, Row  # noqa: E402

OUT, PAGE = ROOT / "out" / "packages", ROOT / "docs" / "guide" / "packages.md"
HERE = PROGRAMS.parent
PROGRAM_HEAD = "| package | what the program does | beside PyTorch |\n|---|---|---|\n"
TESTS_HEAD = "| package | its own tests | passed with PyTorch | of these over tensorgrad |\n|---|---|---|---|\n"
TORCH = "torch torchgen functorch sympy mpmath networkx jinja2 markupsafe".split()      # PyTorch, and what it imports
SECONDS = 600
PYTHON = OUT / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"


def install(rows: list[Row], suites: list[OwnTests]) -> None:
    """Install the rows' packages and what they and the tests need, PyTorch apart."""
    if not PYTHON.exists():
        venv.create(OUT / "venv", with_pip=True)
    wanted = [str(write_wheel(OUT / "wheels")), "setuptools<81", "pytest", "pytest-timeout",
              *(part for row in rows for part in f"{'' if row.apart else row.packages} {row.needs}".split()),
              *(part for suite in suites for part in f"{suite.package} {suite.needs}".split())]
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


def ran(side: str, *arguments: str, path: list[Path] | None = None, folder: Path = PROGRAMS, seconds: int = SECONDS,
        settings: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run Python in the environment of the packages, with `ours` or `torch` on its path."""
    home = OUT / "home"
    home.mkdir(exist_ok=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment |= {"PYTHONPATH": os.pathsep.join(map(str, [OUT / side, *(path or [])])), "HOME": str(home),
                    "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
                    "HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1", "MPLBACKEND": "Agg", **(settings or {})}
    first = ["-m", "tensorgrad"] if side == "ours" else [str(HERE / "with_torch.py")]
    try:
        return subprocess.run([PYTHON, *first, *arguments], cwd=folder, env=environment, capture_output=True, text=True,
                              timeout=seconds)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(arguments, 1, "", f"TimeoutExpired: {seconds} seconds")


def outcome(row: Row) -> str:
    """Run the row's program on both sides, and say how they compare."""
    path = [OUT / "apart" / row.names[0]] if row.apart else []
    ours, theirs = (ran(side, row.program, path=path) for side in ("ours", "torch"))
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


def counted(tests: OwnTests) -> tuple[int, int]:
    """Run a package's own tests on both sides; return how many pass on both, and how many over PyTorch."""
    source, found = _source(tests.package), {}
    arguments = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "recorded", "-o", "addopts=", "-W",
                 "ignore", "--continue-on-collection-errors", "--timeout", str(SECONDS_OF_A_TEST),
                 *tests.arguments(source)]
    for side in ("torch", "ours"):
        report = OUT / "reports" / f"{tests.name}-{side}.jsonl"
        report.unlink(missing_ok=True)
        done = ran(side, *arguments, path=[HERE], folder=source, seconds=own_tests.SECONDS,
                   settings={"REPORT": str(report), "EVERY": str(tests.every),
                                                           "EINOPS_TEST_BACKENDS": "numpy,torch"})
        report.with_suffix(".txt").write_text(done.stdout + done.stderr, encoding="utf-8")
        found[side] = own_tests.outcomes(report)
    passed, of, lost = own_tests.compared(found["ours"], found["torch"])
    (OUT / "reports" / f"{tests.name}-lost.txt").write_text(lost, encoding="utf-8")
    return passed, of


def _source(package: str) -> Path:
    """Return the folder of a package's source distribution, which is downloaded."""
    sources = OUT / "sources"
    name, version = package.split("==")
    stems = [f"{name.replace('-', '_')}-{version}", f"{name}-{version}"]
    if not any((sources / stem).exists() for stem in stems):
        _pip("download", "--no-deps", "--no-binary", name, "-d", str(sources), package)
        for archive in [sources / f"{stem}.tar.gz" for stem in stems]:
            if archive.exists():
                with tarfile.open(archive) as file:
                    file.extractall(sources, filter="data")
    return next(sources / stem for stem in stems if (sources / stem).exists())


def title(row: Row) -> str:
    """Return the first column of a row: packages with their versions."""
    return ", ".join(package.replace("==", " ") for package in row.packages.split())


def marks(table: str) -> tuple[str, str]:
    """Return the comments that enclose a table of the page."""
    return f"<!-- make packages: {table}: begin -->", f"<!-- make packages: {table}: end -->"


def lines_of(page: str, table: str) -> dict[str, str]:
    """Return a table's lines in a page by their first columns."""
    begin, end = marks(table)
    lines = [line for line in page.partition(begin)[2].partition(end)[0].splitlines() if line.startswith("| ")][1:]
    return {line.split(" | ")[0].removeprefix("| "): line for line in lines}


def write(table: str, head: str, names: list[str], found: dict[str, str]) -> None:
    """Write what was found into a table of the page; other names keep their lines."""
    page, (begin, end) = PAGE.read_text(encoding="utf-8"), marks(table)
    lines = {name: f"| {name} |" + " not run |" * (head.partition("\n")[0].count("|") - 2) for name in names}
    lines |= {name: line for name, line in lines_of(page, table).items() if name in lines}
    lines |= {name: f"| {name} | {cells} |" for name, cells in found.items()}
    before, after = page.partition(begin)[0], page.partition(end)[2]
    PAGE.write_text(before + begin + "\n\n" + head + "\n".join(lines.values()) + "\n\n" + end + after, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description="Run packages over tensorgrad and over PyTorch.")
    parser.add_argument("names", nargs="*", help="packages; all of them otherwise")
    parser.add_argument("--installed", action="store_true", help="install nothing")
    parser.add_argument("--programs", action="store_true", help="run no tests of source distributions")
    parser.add_argument("--tests", action="store_true", help="run nothing else")
    options = parser.parse_args()
    rows = [row for row in ROWS if not options.names or set(row.names) & set(options.names)]
    suites = [suite for suite in OWN_TESTS if not options.names or suite.name in options.names]
    if not options.installed:
        install(rows, suites)
    (OUT / "reports").mkdir(parents=True, exist_ok=True)
    outcomes: dict[str, str] = {}
    for row in [] if options.tests else rows:
        found = outcome(row)
        outcomes[title(row)] = f"{row.about} | {found}"
        print(f"{title(row)}: {found}", flush=True)
        write("programs", PROGRAM_HEAD, [title(row) for row in ROWS], outcomes)
    counts: dict[str, str] = {}
    for suite in [] if options.programs else suites:
        passed, of = counted(suite)
        counts[suite.title] = f"{suite.about} | {of} | {passed}"
        print(f"{suite.title}: {passed} of {of} of its own tests", flush=True)
        write("tests", TESTS_HEAD, [suite.title for suite in OWN_TESTS], counts)
    equal = sum(found.endswith("| equal") for found in outcomes.values())
    print(f"packages: {equal} of {len(outcomes)} programs equal, own tests of {len(counts)} packages counted")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
