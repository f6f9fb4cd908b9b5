"""Files that are written whole or not at all."""
from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any


@contextmanager
def replacing(path: Any) -> Iterator[IO[bytes]]:
    """A file to write to, which takes the place of `path` when all is written and on the disk; after an error nothing has changed.

    A link stays one: what it points to is replaced. What is no plain file (a device, a pipe) cannot be replaced, and is written to.
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
    folder = os.path.dirname(path)
    temporary = os.path.join(folder, f".{os.path.basename(path)[:80]}.{os.urandom(8).hex()}.part")
    mode = 0o666 if before is None else before.st_mode & 0o777          # the system takes the umask off
    try:
        descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0), mode)
    except OSError as error:
        raise type(error)(error.errno, f"{error.strerror} (a new file is written beside the old one)", path) from None
    try:
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
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    if hasattr(os, "O_DIRECTORY"):
        with suppress(OSError):         # not every file system has it
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
