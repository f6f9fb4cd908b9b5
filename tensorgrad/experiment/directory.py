"""The directory of a run: lock it against other writers, and remove an earlier run safely.

A writing process holds a lock on `.lock`; the system releases it when the process ends, however it ends.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import time
from pathlib import Path
from typing import Any

from ..messages.escaping import escaped
from . import files

try:
    import fcntl
except ImportError:  # Windows: nothing is locked
    fcntl = None  # type: ignore[assignment]

RUN, LOCK, LOG, METRICS = "run.json", ".lock", "log.txt", "metrics.csv"
FORMAT = 1
FOLDERS = ("ckpt", "img")
WRITABLE = "A run writes to this directory: give one that is writable and has room"


def is_run(path: Path) -> bool:
    """Return True for a directory with a run.json that a Run wrote."""
    try:
        return not path.is_symlink() and files.read_json(path / RUN).get("format") == FORMAT
    except (OSError, ValueError):
        return False


def is_held(path: Path) -> bool | None:
    """Return True while a process writes to the run, None if that cannot be determined."""
    if fcntl is None:
        return None
    try:
        descriptor = files.open_plain(path / LOCK, os.O_RDONLY)
    except FileNotFoundError:
        return False
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    except OSError:
        return None
    finally:
        os.close(descriptor)


class Directory:
    """A directory that this process writes to until `release`. `existed` is True if it was a run before.

    An empty or new directory is accepted, with `resume` any other, too. With `overwrite` the contents of an earlier run
    are removed first. All else is a FileExistsError, and nothing is changed.
    """

    def __init__(self, path: Path, resume: bool, overwrite: bool) -> None:
        self.path = path
        if overwrite and path.is_symlink():
            raise FileExistsError(
                errno.EEXIST,
                "This is a link, and what it points to is not removed. Give the directory itself",
                str(path),
            )
        if path.exists() and not path.is_dir():
            raise FileExistsError(
                errno.EEXIST, "This is no directory, and a run needs one. Give another path", str(path)
            )
        self._look(resume, overwrite)
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._descriptor = self._lock()
        except BlockingIOError:
            raise
        except OSError as error:
            files.fail(error, error.filename or path, WRITABLE)
        try:
            if (
                self._look(resume, overwrite) and not resume
            ):  # check again under the lock: another process may have come first
                _empty(path)
                self.existed = False
            self._prepare()
        except BaseException:
            self.release()
            raise

    def _look(self, resume: bool, overwrite: bool) -> bool:
        """Return True if the directory is not empty. FileExistsError if it must be kept and the run is to be new."""
        path = self.path
        try:
            occupied = path.exists() and bool({*os.listdir(path)} - {LOCK})
        except OSError as error:
            files.fail(error, path, WRITABLE)
        self.existed = is_run(path) or resume and os.path.lexists(path / RUN)
        if occupied and not resume and not (overwrite and self.existed):
            raise FileExistsError(errno.EEXIST, _refusal(self.existed, overwrite), str(path))
        return occupied

    def _lock(self) -> int:
        descriptor = files.open_plain(self.path / LOCK, os.O_RDWR | os.O_CREAT)
        try:
            for attempt in range(20):  # a process that only checks holds the lock for a moment
                try:
                    if fcntl is not None:
                        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if attempt == 19:
                        raise BlockingIOError(errno.EWOULDBLOCK, _holder(descriptor), str(self.path)) from None
                    time.sleep(0.005)
                except OSError:  # a file system without locks
                    break
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0) if hasattr(os, "pwrite") else None
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _prepare(self) -> None:
        for name in (LOG, METRICS, RUN):
            if os.path.islink(self.path / name):
                raise OSError(
                    None, "This is a link, through which a run writes nothing. Remove the link", str(self.path / name)
                )
        try:
            for name in FOLDERS:
                (self.path / name).mkdir(exist_ok=True)
        except OSError as error:
            files.fail(error, error.filename or self.path, WRITABLE)

    def release(self) -> None:
        """Release the lock."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _refusal(is_a_run: bool, overwrite: bool) -> str:
    if is_a_run:
        return "This run exists. resume=True goes on with it, overwrite=True removes it first; or give another path"
    note = (
        "It has no run.json, so that overwrite=True does not remove it"
        if overwrite
        else "overwrite=True removes only what a Run has written"
    )
    return f"This directory is not empty. {note}; resume=True writes beside what is there; or give another path"


def _holder(descriptor: int) -> str:
    process = escaped(os.read(descriptor, 20).decode("ascii", "replace").strip())
    who = f"process {process}" if process.isdigit() else "another process"
    if process == str(os.getpid()):
        return "This run is being written by an earlier Run of this process. Call its finish() first"
    return f"This run is being written by {who}. Wait until it has ended, stop it, or give another path"


def _empty(path: Path) -> None:
    """Remove the contents of a run's directory, never through a link; run.json comes last, so that the rest after a
    kill is still a run."""
    try:
        for entry in sorted([*os.scandir(path)], key=lambda entry: entry.name == RUN):
            if entry.name == LOCK:
                continue
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            else:
                os.unlink(entry.path)
    except OSError as error:
        files.fail(error, error.filename or path, "Not all of the earlier run could be removed")


def replace_folder(new: Path, target: Path) -> None:
    """Replace a folder by a finished one."""
    old = target.with_name(f".{target.name}-{os.urandom(4).hex()}")
    if os.path.lexists(target):
        os.rename(target, old)
    os.rename(new, target)
    if old.is_symlink() or os.path.lexists(old) and not stat.S_ISDIR(os.lstat(old).st_mode):
        old.unlink()
    elif old.exists():
        shutil.rmtree(old, ignore_errors=True)


def leftovers(path: Path, name: str) -> list[Path]:
    """Return the folders that a killed `replace_folder` left beside its target."""
    return [Path(entry) for entry in path.glob(f".{name}-*")]


def as_path(path: Any) -> Path:
    """Return the absolute path, which remains valid when the program changes its directory."""
    return Path(os.path.abspath(os.fspath(path)))
