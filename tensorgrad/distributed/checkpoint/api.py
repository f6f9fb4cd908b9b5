"""The error of several ranks. https://pytorch.org/docs → torch.distributed.checkpoint"""
from __future__ import annotations

import traceback
from typing import Any

__all__ = ["CheckpointException"]


class CheckpointException(BaseException):
    """A save or load failed on some ranks; `failures` has the error and the traceback of each."""

    def __init__(self, msg: str, failures: dict[int, Any]) -> None:
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self) -> dict[int, Any]:
        """{rank: (error, its traceback)}."""
        return self._failures

    def __str__(self) -> str:
        lines = [f"CheckpointException ranks:{self._failures.keys()}\n"]
        for rank, (error, trace) in self._failures.items():
            lines += [f"Traceback (most recent call last): (RANK {rank})\n", *traceback.format_list(trace),
                      *traceback.format_exception_only(error)]
        return "".join(lines)
