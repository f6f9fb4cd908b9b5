"""The provenance of a run: the command, the packages, the state of the repository, and a copy of the source."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from ..messages.escaping import escaped
from . import directory, files

SECRET = re.compile(
    r"(?i)(?:^|[^a-z])(?:\w*token|\w*passw(?:or)?d|passphrase|pwd|\w*secret|\w*key|credentials?|auth\w*|cookie)"
    r"(?:$|[^a-z])"
)
USER = re.compile(r"(?<=://)[^/\s@]*@")  # user:password@ of an address
HIDDEN = "***"
LARGEST, MOST_BYTES, MOST_FILES, MOST_SEEN = 1 << 20, 64 << 20, 5_000, 200_000
LEFT_OUT = ("load", "save", "out", "__pycache__")
PATIENCE = 10  # seconds that git may take


def now() -> str:
    """Return the time in the local zone: 2025-03-01T12:00:00+01:00."""
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")[:-2] + ":" + time.strftime("%z")[-2:]


def about(source: Path | None = None) -> dict[str, Any]:
    """Return facts about this process: time, command, interpreter, packages, processors, and the repository around
    `source` (by default the working directory)."""
    return {
        "time": now(),
        "command": command(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processors": os.cpu_count(),
        "git": git(source or Path.cwd()),
        "packages": packages(),
    }


def command(arguments: list[str] | None = None) -> list[str]:
    """Return the command line, without the values of flags that look like secrets and without passwords in addresses.

    >>> command(["train.py", "--lr=0.1", "--api-key", "abc", "hub.token=abc"])
    ['train.py', '--lr=0.1', '--api-key', '***', 'hub.token=***']
    """
    kept, hide = list[str](), False
    for argument in sys.argv if arguments is None else arguments:
        name, equals, _ = argument.partition("=")
        secret = SECRET.search(name.lstrip("-")) is not None
        if hide and not argument.startswith("-"):
            kept.append(HIDDEN)
        elif secret and equals:
            kept.append(f"{name}={HIDDEN}")
        else:
            kept.append(USER.sub(HIDDEN + "@", argument))
        hide = secret and not equals and argument.startswith("-")
    return kept


@cache
def _installed() -> dict[str, str]:
    from importlib.metadata import distributions

    found = {}
    for distribution in distributions():
        about = distribution.metadata
        if about and about["Name"]:
            found.setdefault(about["Name"], about["Version"] or "")
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def packages() -> dict[str, str]:
    """Return the versions of tensorgrad, NumPy, and all other installed packages."""
    import numpy

    root = sys.modules[__name__.partition(".")[0]]
    return {"tensorgrad": root.__version__, "numpy": numpy.__version__} | {
        n: v for n, v in _installed().items() if n not in ("numpy", "tensorgrad")
    }


def git(path: Path) -> dict[str, Any] | None:
    """Return the commit, the branch, and True if files differ from it; None outside of a repository or without git."""
    lines = _git(path, "status", "--porcelain=v2", "--branch", "--ignore-submodules=dirty")
    if lines is None:
        return None
    text = lines.decode("utf-8", "replace").split("\n")
    head = dict(line[2:].split(" ", 1) for line in text if line.startswith("# branch.") and " " in line[2:])
    commit, branch = head.get("branch.oid", ""), head.get("branch.head", "")
    return {
        "commit": None if commit in ("", "(initial)") else commit,
        "branch": None if branch in ("", "(detached)") else branch,
        "dirty": any(line and line[0] != "#" for line in text),
    }


def _git(path: Path, *arguments: str) -> bytes | None:
    """Return git's output, or None. No hook of the repository runs, and its index is not written."""
    program = shutil.which("git")
    if program is None:
        return None
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            [program, "-C", str(path), "-c", "core.fsmonitor=false", "-c", "core.quotePath=false", *arguments],
            timeout=PATIENCE,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 else None


# ── the source ────────────────────────────────────────────────────────────────────────────────────────────────────────


def snapshot(source: Path, run: Path) -> list[str]:
    """Copy the source in a directory to `src` of a run, replacing an older copy; return lines about what was left out.

    Directories named load, save, out, __pycache__ or .git…, virtual environments, caches and other runs are left out;
    so are files of more than 1 MiB, files that git ignores, and links that lead out of the directory. At most 5,000
    files of 64 MiB in all are copied.
    """
    source = Path(os.path.realpath(source))
    if not source.is_dir():
        raise NotADirectoryError(None, "snapshot: this is no directory of source code", str(source))
    for old in directory.leftovers(run, "src"):
        shutil.rmtree(old, ignore_errors=True)
    copy, target = _Copy(source, run), run / f".src-{os.urandom(4).hex()}"
    try:
        target.mkdir()
        copy.into(target)
        directory.replace_folder(target, run / "src")
    except OSError as error:
        files.fail(error, error.filename or target, "The source could not be copied; snapshot=None copies none")
    finally:
        shutil.rmtree(target, ignore_errors=True)
    return copy.told()


class _Copy:
    """A copy of a source: the files to copy, and the reasons why others are left out."""

    def __init__(self, source: Path, run: Path) -> None:
        self.source, self.run = source, Path(os.path.realpath(run))
        self.reasons: dict[str, list[str]] = {}
        listed = _git(source, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
        self.wanted = set(listed.decode("utf-8", "surrogateescape").split("\0")) - {""} if listed else None
        self.folders = (
            None if self.wanted is None else {str(above) for name in self.wanted for above in Path(name).parents}
        )

    def into(self, target: Path) -> None:
        number = size = 0
        for path, name in self.found():
            length = path.stat().st_size
            if number >= MOST_FILES or size + length > MOST_BYTES:
                self.leave(name, f"more than {MOST_FILES:,} files or {MOST_BYTES >> 20} MiB")
                continue
            to = target / name
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, to)
            shutil.copymode(path, to)
            number, size = number + 1, size + length

    def found(self) -> Iterator[tuple[Path, str]]:
        """Yield (path, path inside of the source) of each file to copy."""
        todo, seen = [""], 0
        while todo:
            folder = todo.pop()
            with os.scandir(self.source / folder) as entries:
                for entry in sorted(entries, key=lambda entry: entry.name):
                    seen += 1
                    name = f"{folder}/{entry.name}" if folder else entry.name
                    if seen > MOST_SEEN:
                        self.leave(name, f"more than {MOST_SEEN:,} entries")
                        return
                    if entry.is_dir(follow_symlinks=False):
                        if self.enters(Path(entry.path), name):
                            todo.append(name)
                    elif self.takes(Path(entry.path), name):
                        yield Path(os.path.realpath(entry.path)), name

    def enters(self, path: Path, name: str) -> bool:
        if path.name in LEFT_OUT or path.name.startswith(".git") or path == self.run:
            return False
        if (path / "pyvenv.cfg").exists() or (path / "CACHEDIR.TAG").exists() or directory.is_run(path):
            return False
        return self.folders is None or name in self.folders

    def takes(self, path: Path, name: str) -> bool:
        if self.wanted is not None and name not in self.wanted:
            return False
        real = Path(os.path.realpath(path))
        if path.is_symlink() and (
            not real.is_relative_to(self.source) or real.is_relative_to(self.run) or not real.is_file()
        ):
            self.leave(name, "links to directories or out of the source")
            return False
        if not real.is_file():
            return False
        if real.stat().st_size > LARGEST:
            self.leave(name, "files of more than 1 MiB")
            return False
        return True

    def leave(self, name: str, why: str) -> None:
        self.reasons.setdefault(why, []).append(name)

    def told(self) -> list[str]:
        """Return a line for each reason: the number of files, and the first of them."""
        return [
            f"src is without {len(names):,} {'file' if len(names) == 1 else 'files'} ({why}): "
            + ", ".join(escaped(name, 80) for name in names[:5])
            + (" …" if len(names) > 5 else "")
            for why, names in self.reasons.items()
        ]
