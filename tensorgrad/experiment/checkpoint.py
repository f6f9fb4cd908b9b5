"""Save everything that a training loop needs to resume in a single file, written atomically."""
from __future__ import annotations

import copy
import operator
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..serialization import load, save
from ..serialization._atomic import remove_leftovers, replacing
from ..utils.data import DataLoader
from ..utils.data._utils.rng_states import go_to
from . import streams
from ._safe_values import check_plain

__all__ = ["Checkpointer"]

FORMAT = 1
OWN = "format", "parts", "streams"
LAST, SUFFIX = "last.ckpt", ".ckpt"
BY_STEP = re.compile(r"step=(\d+)\.ckpt")


class Checkpointer:
    """Saves and restores the parts of a training loop and the streams of random numbers.

    `parts`, by name: objects with `state_dict` and `load_state_dict` (modules, optimizers, schedulers, gradient
        scalers, loaders, runs), lists and dicts of
    those, and None for what is not there. Files are written to `directory`, each whole or not at all: a kill or a full
    disk at any moment leaves those before it intact. They hold numbers, texts and tensors only, so they are read
    without running code, by PyTorch as well. `keep`: how many of the files that are named by their step stay, the
        newest ones.

    A part may reject a state in advance, with a method `check_state_dict(state)` that raises an error. A part with
    `restore_last = True` is restored after all others, because it cannot be rolled back.

    TypeError for what has no state, ValueError for `keep` below 1.

    >>> import tempfile
    >>> import tensorgrad as torch
    >>> from tensorgrad.experiment import Checkpointer
    >>> model = torch.nn.Linear(2, 1)
    >>> optimizer = torch.optim.Adam(model.parameters())
    >>> loader = torch.utils.data.DataLoader(range(8), batch_size=2, shuffle=True)
    >>> checkpointer = Checkpointer(tempfile.mkdtemp(), model=model, optimizer=optimizer, loader=loader)
    >>> for step, batch in enumerate(loader, 1):
    ...     if step == 2:
    ...         path = checkpointer.save(step, epoch=0)
    >>> path.name, checkpointer.restore()
    ('step=2.ckpt', {'step': 2, 'epoch': 0})
    >>> len(list(loader))       # of the four batches in this epoch
    2
    """

    def __init__(self, directory: Any, *, keep: int | None = None, **parts: Any) -> None:
        if keep is not None and (type(keep) is not int or keep < 1):
            raise ValueError(f"keep is None or a positive integer, but got {keep!r}")
        self.directory, self.keep, self.parts = Path(directory), keep, parts
        for _, part in leaves(parts):
            if isinstance(part, DataLoader):
                part.state_dict()       # from the first call on, the part records what its state needs

    # ── saving ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def state(self, **extra: Any) -> dict[str, Any]:
        """Return the content of a file: the states of the parts and of the random streams, and `extra`; tensors are
        shared.

        TypeError, with its path, for what cannot be saved, ValueError for a name in `extra` that has a meaning.
        """
        if taken := [name for name in extra if name in OWN]:
            raise ValueError(f"{taken[0]!r} is the name of a part of every checkpoint: give the value another one")
        state = {"format": FORMAT, **extra, "parts": states_of(self.parts), "streams": streams.state()}
        for name, value in {**extra, **state["parts"]}.items():
            check_plain(value, name)
        return state

    def save(self, step: int, name: str | None = None, **extra: Any) -> Path:
        """Write a file for this step, and return its path: `step=<step>.ckpt` or `name`, which is also `last.ckpt`
        until the next one is written.

        Errors: those of `state`; ValueError for a name that is not a file's; OSError if the disk is full or the
            directory cannot be written to. After an
        error the files are as before.
        """
        step = operator.index(step)
        path = self.directory / named(f"step={step}" if name is None else name)
        state = self.state(step=step, **extra)
        self.directory.mkdir(parents=True, exist_ok=True)
        remove_leftovers(self.directory)
        last = self.directory / LAST
        save(state, last)       # first, so that it is the newest one at any moment
        if path != last:
            link(last, path)
        self._remove_old(path)
        return path

    def _remove_old(self, saved: Path) -> None:
        if self.keep is None:
            return
        found = [path for path in self._files() if BY_STEP.fullmatch(path.name) and path != saved]
        for path in found[self.keep - bool(BY_STEP.fullmatch(saved.name)):]:
            with suppress(FileNotFoundError):
                path.unlink()

    def _files(self) -> list[Path]:
        """The files that are there, the newest first."""
        found = []
        with suppress(FileNotFoundError):
            for path in self.directory.glob(f"*{SUFFIX}"):
                with suppress(FileNotFoundError):       # another process may tidy up
                    step = BY_STEP.fullmatch(path.name)
                    found.append((path.name == LAST, path.stat().st_mtime_ns, int(step[1]) if step else -1, path))
        return [path for *_, path in sorted(found, reverse=True)]

    # ── restoring ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def restore(self, path: Any = None) -> dict[str, Any] | None:
        """Restore the parts and the streams from a file, by default the newest one, and return `step` and what else was
        saved with it.

        None if there is no file. A newest file that cannot be read gets a warning, and the one before it is taken.
        RuntimeError if there are files, and none can be read. Errors of `load` for one that does not fit; then nothing
        has changed.
        """
        if path is not None:
            return self.load(read(path))
        failed: dict[tuple[int, int], str] = {}
        for file in self._files():
            where = file.stat()
            if (where.st_dev, where.st_ino) in failed:      # another name of the same file
                continue
            try:
                state = read(file)
            except Exception as error:
                failed[where.st_dev, where.st_ino] = f"{file}: {first_line(error)}"
                warnings.warn(f"the checkpoint {file} cannot be read, so the one before it is taken: "
                              f"{first_line(error)}", stacklevel=2)
                continue
            return self.load(state)
        if failed:
            raise RuntimeError("none of the checkpoints can be read:\n" + "\n".join(failed.values()))
        return None

    def load(self, state: dict[str, Any]) -> dict[str, Any]:
        """Restore the parts and the streams from what `state` returned, and return what else it held.

        Parts of the state that are not here are passed over.

        ValueError for parts that the state does not have; errors of the parts name the part. Then nothing has changed.
        """
        check_format(state)
        found, wanted = streams.checked(state["streams"])
        pairs = list(matched(self.parts, state["parts"], ""))
        for path, part, value in pairs:
            if hasattr(part, "check_state_dict"):
                with naming(path):
                    part.check_state_dict(value)
        pairs.sort(key=lambda pair: (bool(getattr(pair[1], "restore_last", False)), isinstance(pair[1], DataLoader)))
        before: list[tuple[Any, Any]] = []
        try:
            for path, part, value in pairs:
                with naming(path):
                    if not getattr(part, "restore_last", False):
                        before.append((part, copy.deepcopy(part.state_dict())))
                    part.load_state_dict(value)
        except BaseException:
            for part, value in reversed(before):
                part.load_state_dict(value)
            raise
        go_to(found, wanted)
        return {name: value for name, value in state.items() if name not in OWN}


# ── parts ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def has_state(part: Any) -> bool:
    return callable(getattr(part, "state_dict", None)) and callable(getattr(part, "load_state_dict", None))


def leaves(part: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The parts with a state, and their paths. TypeError for anything else."""
    if has_state(part):
        yield path, part
    elif isinstance(part, dict):
        for name, inner in part.items():
            if not isinstance(name, str):
                raise TypeError(f"the names of parts are strings, but {path or 'a dict'} has the key {name!r}")
            yield from leaves(inner, f"{path}.{name}" if path else name)
    elif isinstance(part, (list, tuple)):
        for index, inner in enumerate(part):
            yield from leaves(inner, f"{path}[{index}]")
    elif part is not None:
        raise TypeError(f"{path} has no state_dict and load_state_dict: {type(part).__name__}")


def states_of(part: Any) -> Any:
    """The states of parts, in dicts and lists like theirs."""
    if has_state(part):
        return part.state_dict()
    if isinstance(part, dict):
        return {name: states_of(inner) for name, inner in part.items()}
    return None if part is None else [states_of(inner) for inner in part]


def matched(part: Any, state: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """(path, part, state) of the parts with a state. ValueError for parts that have none in a file."""
    if has_state(part):
        if state is None:
            raise ValueError(f"the checkpoint has no state of {path}")
        yield path, part, state
    elif isinstance(part, dict):
        missing = [name for name in part if not isinstance(state, dict) or name not in state]
        if missing:
            there = ", ".join(map(repr, state)) if isinstance(state, dict) else "none"
            raise ValueError(f"the checkpoint has no part "
                             f"{', '.join(map(repr, missing))}{f' in {path}' if path else ''}; its parts: {there}")
        for name, inner in part.items():
            yield from matched(inner, state[name], f"{path}.{name}" if path else name)
    elif part is not None:
        if not isinstance(state, (list, tuple)) or len(state) != len(part):
            raise ValueError(f"the checkpoint has {len(state) if isinstance(state, (list, tuple)) else 'no list of'} "
                             f"states for {path}, which has {len(part)}")
        for index, (inner, its_state) in enumerate(zip(part, state, strict=True)):
            yield from matched(inner, its_state, f"{path}[{index}]")


class naming:
    """A context manager that adds a note naming the part to an error."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if error is not None:
            error.add_note(f"(restoring the part {self.path!r} of a checkpoint)")


# ── files ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def named(name: str) -> str:
    """The name of a file with the ending of checkpoints."""
    if not isinstance(name, str) or not name.strip(".") or Path(name).name != name or "\0" in name:
        raise ValueError(f"the name of a checkpoint is that of a file in its directory, but got {name!r}")
    return name if name.endswith(SUFFIX) else name + SUFFIX


def link(source: Path, path: Path) -> None:
    """Replace `path` by a hard link to `source`, or by a copy where the file system has no links."""
    spare = path.with_name(f".{path.name}.{os.urandom(8).hex()}.part")
    try:
        os.link(source, spare)
        try:
            os.replace(spare, path)
        finally:
            spare.unlink(missing_ok=True)
    except OSError:
        with replacing(path) as file:
            file.write(source.read_bytes())


def read(path: Any) -> dict[str, Any]:
    """The state in a file, with its tensors on the CPU."""
    state = load(path, map_location="cpu", weights_only=True)
    check_format(state)
    return state


def check_format(state: Any) -> None:
    if not isinstance(state, dict) or any(name not in state for name in OWN):
        raise ValueError("this is not the state of a Checkpointer")
    if state["format"] != FORMAT:
        raise ValueError(f"the checkpoint has the format {state['format']!r:.80}, and this version knows {FORMAT}")


def first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0][:200] if str(error) else ''}"
