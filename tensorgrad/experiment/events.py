"""Events of a run for TensorBoard: an event with the scalars of a row."""

from __future__ import annotations

import math
import os
import re
import struct
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ..utils.tensorboard._wire import varint

if TYPE_CHECKING:
    from ..utils.tensorboard import SummaryWriter

QUEUE, SECONDS = 100, 10  # limits of waiting events: their number, and seconds
MOST_TAGS = 10_000


def folder(run: Path, events: bool | str) -> Path | None:
    """Return the folder of events: `tensorboard`; for a name, the next free `name/version_k`; for False None."""
    if isinstance(events, str):
        if not re.fullmatch(r"(?!\.)[\w.-]+", events):
            raise ValueError(f"events must be True, False or the name of a folder in the run, but got {events!r:.80}")
        taken = (
            [int(m[1]) for m in map(re.compile(r"version_(\d{1,9})").fullmatch, os.listdir(run / events)) if m]
            if (run / events).is_dir()
            else []
        )
        return run / events / f"version_{max(taken, default=-1) + 1}"
    return run / "tensorboard" if events else None


class Scalars:
    """An event of several scalars; encodes `Event(step=…, summary=Summary(value=[Value(tag=…, simple_value=…), …]))`
    in a quarter of the time."""

    __slots__ = ("step", "wall_time", "scalars")
    heads: dict[str, bytes] = {}  # encoded bytes before the number, by tag

    def __init__(self, step: int, scalars: list[tuple[str, float]]) -> None:
        self.step, self.wall_time, self.scalars = step, time.time(), scalars

    def SerializeToString(self) -> bytes:
        """Return the event's bytes. Numbers too large for float32 become infinite."""
        parts = []
        for tag, value in self.scalars:
            head = self.heads.get(tag)
            if head is None:
                name = tag.encode("utf-8", "backslashreplace")
                field = b"\x0a" + varint(len(name)) + name + b"\x15"
                head = b"\x0a" + varint(len(field) + 4) + field
                if len(self.heads) < MOST_TAGS:
                    self.heads[tag] = head
            try:
                parts.append(head + struct.pack("<f", value))
            except OverflowError:
                parts.append(head + struct.pack("<f", math.copysign(math.inf, value)))
        summary = b"".join(parts)
        return b"".join(
            (
                b"\x09",
                struct.pack("<d", self.wall_time),
                b"\x10" + varint(self.step) if self.step else b"",
                b"\x2a",
                varint(len(summary)),
                summary,
            )
        )


class Events:
    """Writes events to a folder.

    The first event creates the file, which tells TensorBoard from which step on to drop events of earlier files.
    """

    def __init__(self, path: Path, purge: int | None = None) -> None:
        self.path, self.purge = path, purge
        self._writer: SummaryWriter | None = None
        path.mkdir(parents=True, exist_ok=True)

    def add(self, step: int, scalars: list[tuple[str, float]]) -> None:
        """Write the scalars of a step."""
        if self._writer is None:
            from ..utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(self.path, purge_step=self.purge, max_queue=QUEUE, flush_secs=SECONDS)
        file = self._writer.file_writer
        assert file is not None
        file.event_writer.add_event(Scalars(step, scalars))  # type: ignore[arg-type]

    def restart(self, purge: int) -> None:
        """Begin a new file that lets TensorBoard drop earlier events from step `purge` on."""
        self.close()
        self.purge = purge

    def close(self) -> None:
        """Write waiting events."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()
