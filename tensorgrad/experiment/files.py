"""Small files of a run: read with limits, written atomically, never through a link."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from ..serialization._atomic import replacing
from . import config

MOST = 1 << 20  # bytes of a configuration, of run.json
PLAIN = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
FULL = "Free some space there, or give another directory."


def fail(error: OSError, path: Any, advice: str = FULL) -> NoReturn:
    """Raise an error of the same class that names the path, the reason, and a remedy."""
    raise type(error)(error.errno, f"{error.strerror or error}. {advice}", os.fspath(path)) from None


def open_plain(path: Any, flags: int) -> int:
    """Open a regular file without following a link, and return its descriptor. OSError for links, pipes and devices."""
    descriptor = os.open(path, flags | PLAIN, 0o666)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(None, "This is no regular file", os.fspath(path))
    return descriptor


def read(path: Any, most: int = MOST) -> bytes:
    """Read the bytes of a regular file.

    ValueError if there are more than `most`; OSError for links, pipes and devices.
    """
    with os.fdopen(open_plain(path, os.O_RDONLY), "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"{os.path.basename(path)} has more than {most:,} bytes")
    return data


def write(path: Any, data: bytes) -> None:
    """Write a file atomically. OSError with the path and a remedy; a link is refused."""
    if os.path.islink(path):
        raise OSError(None, "This is a link, through which a run writes nothing. Remove the link", os.fspath(path))
    try:
        with replacing(path) as file:
            file.write(data)
    except OSError as error:
        fail(error, path)


def append(path: Any, data: bytes) -> None:
    """Append bytes to a file with one write."""
    descriptor = open_plain(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)


def read_json(path: Any) -> dict[str, Any]:
    """Read the object in a JSON file. ValueError if there is none, OSError if the file cannot be read."""
    try:
        found = json.loads(read(path))
    except RecursionError:
        raise ValueError(f"{os.path.basename(path)} is nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError(f"{os.path.basename(path)} holds no object")
    return found


def write_json(path: Any, data: Mapping[str, Any]) -> None:
    """Write an object as JSON, atomically."""
    write(path, (json.dumps(data, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace"))


# ── configurations ────────────────────────────────────────────────────────────────────────────────────────────────────


def read_config(directory: Path, stem: str = "config") -> dict[str, Any] | None:
    """Read the configuration of a run, or return None. ValueError for an invalid file."""
    if (directory / f"{stem}.json").exists() and not (directory / f"{stem}.yaml").exists():
        return config.plain(read_json(directory / f"{stem}.json"))
    try:
        return config.loads(read(directory / f"{stem}.yaml"))
    except FileNotFoundError:
        return None
    except ImportError as error:
        raise ValueError(f"{stem}.yaml cannot be read: {error}") from None


def write_config(directory: Path, values: Mapping[str, Any], stem: str = "config") -> Path:
    """Write `stem`.yaml, or `stem`.json without PyYAML; return the path. Keys keep their order."""
    path, other = directory / f"{stem}.yaml", directory / f"{stem}.json"
    try:
        data = config.dump(values).encode()
    except ImportError:
        path, other = other, path
        write_json(path, config.plain(values))
    else:
        write(path, data)
    other.unlink(missing_ok=True)
    return path


def flattened(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (path, value) of each leaf of a configuration, with paths such as `callbacks[1].name`; a list of plain
    values is a leaf.

    >>> dict(flattened({"model": {"args": {"sizes": [2, 3]}}, "callbacks": [{"name": "a"}]}))
    {'model.args.sizes': [2, 3], 'callbacks[0].name': 'a'}
    """
    todo = [(path, value, 0)]
    while todo:
        path, value, depth = todo.pop()
        if isinstance(value, dict) and value and depth < config.DEPTH:
            todo += [(f"{path}.{k}" if path else str(k), v, depth + 1) for k, v in reversed(value.items())]
        elif isinstance(value, list) and any(isinstance(v, (dict, list)) for v in value) and depth < config.DEPTH:
            todo += [(f"{path}[{i}]", v, depth + 1) for i, v in reversed(list(enumerate(value)))]
        else:
            yield path, value
