"""The last collectives that a rank began: to tell, after a time-out, which rank came late; and to tell that ranks
disagree.

A log is a ring of `Call`s. Nothing is formatted until somebody asks.
"""
from __future__ import annotations

import hashlib
import os
import sys
import threading
import time
from collections import deque
from enum import IntEnum
from pathlib import Path
from typing import Any

from .errors import DistBackendError
from .transport.base import Call

__all__ = ["DebugLevel", "Log", "compare", "fingerprint", "get_debug_level", "place", "set_debug_level",
           "set_debug_level_from_env"]

LENGTH = 64                             # collectives that a log remembers
LONGEST = 512                           # bytes of a fingerprint
_PACKAGE = str(Path(__file__).parents[1])
_STATES = ("started", "completed", "failed")


class _Naming(threading.local):
    """The name that collectives of this thread have in the log."""

    title = ""


naming = _Naming()
named = 0               # blocks of all threads that name collectives


def place() -> tuple[Any, int]:
    """Return (code, instruction) of the innermost caller outside the package; the line is worked out when it is asked
    for.
    """
    frame: Any = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return frame.f_code, frame.f_lasti


def level() -> int:
    """Return the `stacklevel` with which a warning of the caller names the program's line."""
    count, frame = 1, sys._getframe(1)  # type: int, Any
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        count, frame = count + 1, frame.f_back
    return count


def _line(where: tuple[Any, int] | None) -> str:
    if where is None:
        return "?"
    code, instruction = where
    line = next((line for start, end, line in code.co_lines() if start <= instruction < end and line),
                code.co_firstlineno)
    return f"{code.co_filename}:{line} in {code.co_name}"


class Log:
    """The last collectives of the groups that one rank is in, oldest first.

    >>> from tensorgrad.distributed.flight_recorder import Log
    >>> Log(rank=1).dump()
    '[rank 1] no collectives yet'
    """

    def __init__(self, rank: int, length: int = LENGTH) -> None:
        self.rank = rank
        self.calls: deque[Call] = deque(maxlen=length)

    def dump(self) -> str:
        """Return the log as text, a line for each collective, the rank first."""
        calls, now = list(self.calls), time.monotonic()
        if not calls:
            return f"[rank {self.rank}] no collectives yet"
        lines = [f"[rank {self.rank}] the last {len(calls)} collectives, oldest first:"]
        lines += [f"[rank {self.rank}]   {describe(call)}, {_STATES[call.state]}, begun {now - call.started:.3f} s ago "
                  f"at {_line(call.place)}"
                  for call in calls]
        return "\n".join(lines)


def describe(call: Call) -> str:
    """Return a collective in one line: group, number, kind, shapes, dtypes."""
    detail, title = f" {call.detail}" if call.detail else "", f" ({call.title})" if call.title else ""
    return (f"group {call.group} #{call.sequence} {call.kind}{title}{detail} {_shapes(call.shapes)} "
            f"{', '.join(dict.fromkeys(call.dtypes))} {call.device}")


def _shapes(shapes: tuple[tuple[int, ...], ...]) -> str:
    said = "; ".join(str(list(shape)) for shape in shapes[:8])
    return said + (f"; … {len(shapes) - 8} more" if len(shapes) > 8 else "")


# ── how much is checked ───────────────────────────────────────────────────────────────────────────────────────────────


class DebugLevel(IntEnum):
    """How much is checked. With DETAIL, ranks compare each collective before it begins, which costs a message.

    https://pytorch.org/docs → torch.distributed.DebugLevel
    """

    OFF, INFO, DETAIL = range(3)

    def __str__(self) -> str:
        return f"DebugLevel.{self.name}"


checking = False                        # whether ranks compare collectives on transports that do not
_level = DebugLevel.OFF


def get_debug_level() -> DebugLevel:
    """Return how much is checked. https://pytorch.org/docs → torch.distributed.get_debug_level"""
    return _level


def set_debug_level(debug_level: DebugLevel) -> None:
    """Set how much is checked, alike on all ranks. https://pytorch.org/docs → torch.distributed.set_debug_level"""
    global _level, checking
    _level = DebugLevel(debug_level)
    checking = _level is DebugLevel.DETAIL


def set_debug_level_from_env() -> None:
    """Set how much is checked as TORCH_DISTRIBUTED_DEBUG says.

    Errors: ValueError for what is not OFF, INFO or DETAIL.
    """
    said = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if said not in DebugLevel.__members__:
        raise ValueError("The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL.")
    set_debug_level(DebugLevel[said])


# ── fingerprints ──────────────────────────────────────────────────────────────────────────────────────────────────────

# of all but the sequence number: a program has few kinds of collectives, and repeats them
_known: dict[tuple[Any, ...], bytes] = {}


def fingerprint(call: Call) -> bytes:
    """Return what ranks must agree on, in at most 512 bytes: the sequence number, and five fields of text."""
    key = (call.kind, call.shapes, call.dtypes, call.device, call.detail)
    rest = _known.get(key)
    if rest is None:
        if len(_known) >= 4096:
            _known.clear()
        rest = _known[key] = _fields(call)
    return b"%d|%b" % (call.sequence, rest)


def _fields(call: Call) -> bytes:
    shapes, dtypes = ", ".join(str(list(shape)) for shape in call.shapes), ", ".join(call.dtypes)
    if len(call.dtypes) > 1 and len(set(call.dtypes)) == 1:
        dtypes = call.dtypes[0]
    fields = [call.kind, shapes, dtypes, call.device, call.detail]
    text = "|".join(fields).encode()
    if len(text) > LONGEST - 24:
        digest = hashlib.sha256(text).hexdigest()[:16]
        fields = [call.kind[:32], f"{shapes[:200]}…{digest}", dtypes[:80], call.device[:8], call.detail[:40]]
        text = "|".join(fields).encode()
    return text


def _read(data: bytes) -> dict[str, str]:
    names = ("SequenceNumber", "OpType", "TensorShape", "TensorDtypes", "TensorDeviceTypes", "Detail")
    values = data.decode(errors="replace").split("|")
    return dict(zip(names, values + [""] * (len(names) - len(values))))


def _said(read: dict[str, str]) -> str:
    fields = ([f"{name}={value}" for name, value in read.items() if value and name != "Detail"]
              + ([read["Detail"]] if read["Detail"] else []))
    return f"CollectiveFingerPrint({', '.join(fields)})"


def compare(rank: int, own: bytes, others: dict[int, bytes]) -> DistBackendError | None:
    """Return the error that names both sides if another rank's fingerprint is unlike one's own, else None.

    >>> from tensorgrad.distributed.flight_recorder import compare
    >>> str(compare(0, b"7|ALLREDUCE|[2]|Float|cpu|op=SUM", {1: b"7|ALLREDUCE|[3]|Float|cpu|op=SUM"})).partition("aspects: ")[2]
    'TensorShape: [2] vs [3]'
    """  # noqa: E501
    for other in sorted(others):
        if others[other] != own:
            one, two = _read(own), _read(others[other])
            unlike = [f"{name}: {one[name] or 'none'} vs {two[name] or 'none'}"
                      for name in one if one[name] != two[name]]
            return DistBackendError(
                f"Detected mismatch between collectives on ranks. Rank {rank} is running collective: {_said(one)}, but "
                f"Rank {other} is running collective: {_said(two)}. Collectives differ in the following aspects: "
                f"{', '.join(unlike)}")
    return None
