"""The state of a pipe whose iteration may be restored."""
from enum import Enum


class _SnapshotState(Enum):
    """States of a pipe: the next iterator of a restored pipe continues, other iterators begin anew."""

    NotStarted, Restored, Iterating = range(3)
