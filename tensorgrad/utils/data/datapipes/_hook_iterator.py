"""The state of a pipe whose iteration may be restored."""
from enum import Enum


class _SnapshotState(Enum):
    """What the next iterator of a pipe does: it starts anew, but goes on where a restored pipe is."""

    NotStarted, Restored, Iterating = range(3)
