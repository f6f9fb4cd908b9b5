"""torch.jit.annotations: types that compiled functions are annotated with."""
from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: F401, UP035  packages take them from here

__all__ = ["Any", "BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "Dict", "List", "Optional", "Tuple",
           "Union"]


class _BroadcastingList:
    """`BroadcastingList2[int]`: a list, or one value for all of it."""

    def __getitem__(self, kind: Any) -> None:
        """Return the annotation unread."""


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = _BroadcastingList()
