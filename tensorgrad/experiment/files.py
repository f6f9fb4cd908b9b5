"""Small files of a run: read with limits, written whole, and never through a link."""
from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from .._escaping import escaped
from ..serialization._atomic import replacing

MOST = 1 << 20          # bytes of a configuration, of run.json
DEEPEST = 32            # levels of a configuration
PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
FULL = "Free some space there, or give another directory."


def fail(error: OSError, path: Any, advice: str = FULL) -> NoReturn:
    """Raise an error of the same class that says what cannot be written, why, and what to do."""
    raise type(error)(error.errno, f"{error.strerror or error}. {advice}", os.fspath(path)) from None


def open_plain(path: Any, flags: int) -> int:
    """A descriptor of a regular file, which is not opened through a link. OSError for links, pipes and devices."""
    descriptor = os.open(path, flags | PLAIN, 0o666)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(None, "This is no regular file", os.fspath(path))
    return descriptor


def read(path: Any, most: int = MOST) -> bytes:
    """The bytes of a regular file. ValueError if there are more than `most`; OSError for links, pipes and devices."""
    with os.fdopen(open_plain(path, os.O_RDONLY), "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"{os.path.basename(path)} has more than {most:,} bytes")
    return data


def write(path: Any, data: bytes) -> None:
    """Write a file whole or not at all. OSError with the path and what to do; a link is refused."""
    if os.path.islink(path):
        raise OSError(None, "This is a link, through which a run writes nothing. Remove the link", os.fspath(path))
    try:
        with replacing(path) as file:
            file.write(data)
    except OSError as error:
        fail(error, path)


def append(path: Any, data: bytes) -> None:
    """Add bytes to the end of a file in one piece."""
    descriptor = open_plain(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)


def read_json(path: Any) -> dict[str, Any]:
    """The object in a JSON file. ValueError if there is none, OSError if the file cannot be read."""
    try:
        found = json.loads(read(path))
    except RecursionError:
        raise ValueError(f"{os.path.basename(path)} is nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError(f"{os.path.basename(path)} holds no object")
    return found


def write_json(path: Any, data: Mapping[str, Any]) -> None:
    """Write an object as JSON, whole or not at all."""
    write(path, (json.dumps(data, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace"))


# ── configurations ────────────────────────────────────────────────────────────────────────────────────────────────────


def read_config(directory: Path, stem: str = "config") -> dict[str, Any] | None:
    """The configuration that a run was given, or None. ValueError says why a file cannot be read."""
    if (directory / f"{stem}.json").exists() and not (directory / f"{stem}.yaml").exists():
        return read_json(directory / f"{stem}.json")
    try:
        data = read(directory / f"{stem}.yaml")
    except FileNotFoundError:
        return None
    try:
        import yaml
    except ImportError:
        raise ValueError(f"{stem}.yaml cannot be read without PyYAML (extra `yaml`)") from None
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(data)):       # they make much of little
            raise ValueError(f"{stem}.yaml has aliases, which no Run writes")
        found = yaml.safe_load(data)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ValueError(f"{stem}.yaml is no configuration: {escaped(error, 200)}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{stem}.yaml holds no mapping")
    return found


def write_config(directory: Path, config: Mapping[str, Any], stem: str = "config") -> Path:
    """Write `stem`.yaml, or `stem`.json where PyYAML is missing. Keys keep their order."""
    try:
        import yaml
    except ImportError:
        path = directory / f"{stem}.json"
        write_json(path, config)
        return path
    path = directory / f"{stem}.yaml"
    write(path, yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True).encode("utf-8", "backslashreplace"))
    return path


def plain(value: Any, path: str = "config", depth: int = 0) -> Any:
    """A copy made of dicts, lists, strings, numbers, bools and None, which any reader of YAML and JSON gives back.

    Tuples become lists; paths, dtypes and devices become their names. TypeError names the key of anything else.

    >>> plain({"lr": 0.1, "sizes": (2, 3)})
    {'lr': 0.1, 'sizes': [2, 3]}
    """
    if depth > DEEPEST:
        raise ValueError(f"{path} is nested more than {DEEPEST} levels deep")
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, Mapping):
        if odd := next((k for k in value if not isinstance(k, (str, int))), None):
            raise TypeError(f"{path} has the key {odd!r:.60} of type {type(odd).__name__}; keys are strings")
        return {k: plain(v, f"{path}.{k}", depth + 1) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v, f"{path}[{i}]", depth + 1) for i, v in enumerate(value)]
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        return plain(value.item(), path, depth + 1)
    if isinstance(value, (str, os.PathLike)):
        return str(os.fspath(value))
    if type(value).__name__ in ("dtype", "device"):
        return str(value)
    raise TypeError(f"{path} is of type {type(value).__name__}, which a configuration cannot hold")


def flattened(config: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """(path, value) of each leaf of a configuration, the path as in `callbacks[1].name`; a list of plain values is a leaf.

    >>> dict(flattened({"model": {"args": {"sizes": [2, 3]}}, "callbacks": [{"name": "a"}]}))
    {'model.args.sizes': [2, 3], 'callbacks[0].name': 'a'}
    """
    todo = [(path, config, 0)]
    while todo:
        path, value, depth = todo.pop()
        if isinstance(value, dict) and value and depth < DEEPEST:
            todo += [(f"{path}.{k}" if path else str(k), v, depth + 1) for k, v in reversed(value.items())]
        elif isinstance(value, list) and any(isinstance(v, (dict, list)) for v in value) and depth < DEEPEST:
            todo += [(f"{path}[{i}]", v, depth + 1) for i, v in reversed(list(enumerate(value)))]
        else:
            yield path, value
