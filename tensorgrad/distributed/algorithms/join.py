"""Processes that run out of data at different times: there is one process here."""
from __future__ import annotations

from typing import Any

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """What a process that is done does for the others."""

    def main_hook(self) -> None:
        """Nothing."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Nothing."""


class Joinable:
    """What can take part in `Join`."""


class Join:
    """A block for processes with unlike amounts of data: NotImplementedError. https://pytorch.org/docs → torch.distributed.algorithms.Join"""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("tensorgrad has no torch.distributed.algorithms.Join: there is no backend for several processes")

    @staticmethod
    def notify_join_context(joinable: Joinable) -> None:
        """Say that this process goes on: nobody waits for it here."""
