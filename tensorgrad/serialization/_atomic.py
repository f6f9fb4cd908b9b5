"""Atomic writes of files.

A save writes a file beside its target, `.<name>.<16 digits>.part`, locks it until it is renamed into place, and removes
it after an error. A killed save leaves the file, but the system releases its lock: the next save to that path removes
it. A locked file is being written, and is kept.
"""

from __future__ import annotations

import os
import re
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

try:
    import fcntl
except ImportError:  # Windows: it cannot remove open files anyway
    fcntl = None  # type: ignore[assignment]

ENDING = re.compile(r"\.[0-9a-f]{16}\.part")
LONGEST = 200  # bytes of the target's name: file systems take 255 in all
ABANDONED = 3600.0  # seconds after which an unlocked file is a leftover, where there are no locks
PLAIN = (
    getattr(os, "O_BINARY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
)


@contextmanager
def replacing(path: Any) -> Iterator[IO[bytes]]:
    """Yield a file to write to, which replaces `path` once it is complete and on the disk; after an error nothing has
    changed.

    The target of a link is replaced, not the link. A device or a pipe cannot be replaced, and is written to directly.
    """
    path = os.path.realpath(os.fsdecode(path))
    try:
        before = os.stat(path)
    except FileNotFoundError:
        before = None
    if before is not None and not stat.S_ISREG(before.st_mode):
        with open(path, "wb") as file:
            yield file
        return
    mode = 0o666 if before is None else before.st_mode & 0o777  # the system applies the umask
    with _part(path, mode) as (descriptor, temporary):
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if before is not None:
            if hasattr(os, "chown"):
                with suppress(OSError):
                    os.chown(temporary, before.st_uid, before.st_gid)
            os.chmod(temporary, mode)
        os.replace(temporary, path)
    if hasattr(os, "O_DIRECTORY"):
        with suppress(OSError):  # not every file system supports it
            descriptor = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


@contextmanager
def _part(path: str, mode: int) -> Iterator[tuple[int, str]]:
    """Yield (descriptor, path) of a new file beside `path`, locked in the block and removed after an error in it."""
    folder, name = os.path.split(path)
    beginning = "." + os.fsencode(name)[:LONGEST].decode(sys.getfilesystemencoding(), "ignore")
    _remove_leftovers(folder, beginning)
    descriptor, temporary = _created(path, os.path.join(folder, beginning), mode)
    held = None
    try:
        held = None if fcntl is None else os.dup(descriptor)  # keeps the lock when the first is closed
        yield descriptor, temporary
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    finally:
        if held is not None:
            os.close(held)


def _created(path: str, beginning: str, mode: int) -> tuple[int, str]:
    """Return (descriptor, path) of a new locked file.

    Another process may remove it between its creation and its lock, for it looks like a leftover; then another file is
    made.
    """
    while True:
        temporary = f"{beginning}.{os.urandom(8).hex()}.part"
        try:
            descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | PLAIN, mode)
        except OSError as error:
            raise type(error)(
                error.errno, f"{error.strerror} (a new file is written beside the old one)", path
            ) from None
        if _lock(descriptor) is not False and os.path.exists(temporary):
            return descriptor, temporary
        os.close(descriptor)
        with suppress(OSError):
            os.unlink(temporary)


def remove_leftovers(folder: Any) -> None:
    """Remove the files that killed saves to any path in this folder left."""
    _remove_leftovers(os.fsdecode(folder), None)


def _remove_leftovers(folder: str, beginning: str | None) -> None:
    """Remove the leftovers whose names begin like this. Files that cannot be listed, opened or locked are kept."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            start = entry.name.rfind(".", 0, -len(".part")) if beginning is None else len(beginning)
            if (
                entry.name.startswith(beginning or ".")
                and ENDING.fullmatch(entry.name, max(start, 1))
                and entry.is_file(follow_symlinks=False)
            ):
                with suppress(OSError):
                    _remove_if_abandoned(entry.path)


def _remove_if_abandoned(path: str) -> None:
    if fcntl is None:
        if time.time() - os.stat(path).st_mtime > ABANDONED:
            os.unlink(path)
        return
    descriptor = os.open(path, os.O_RDWR | PLAIN)
    try:
        if _lock(descriptor):
            os.unlink(path)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool | None:
    """Lock a file: return True, False if another process holds the lock, None if files cannot be locked."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True
