"""Steps that ranks do together: an error of one rank is raised on all of them, as a `CheckpointException`."""
from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

from ... import distributed as dist
from .api import CheckpointException

__all__ = ["Together"]

T = TypeVar("T")


class Failure:
    """An error of one rank, on its way to the others."""

    def __init__(self, error: BaseException) -> None:
        trace = traceback.extract_tb(error.__traceback__)
        for frame in trace:
            if hasattr(frame, "_code"):
                frame._code = None      # a code object, which cannot be pickled
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            error = RuntimeError(f"{type(error).__name__}: {error}")
        self.pair = error, trace


class Together:
    """The ranks of a group, the first of which sees to what concerns all; or this process alone."""

    def __init__(self, group: Any, alone: bool) -> None:
        self.group = group
        self.rank, self.size = (0, 1) if alone else (dist.get_rank(group), dist.get_world_size(group))
        self.is_coordinator = self.rank == 0

    def _gather(self, value: T) -> list[T] | None:
        """Return the values of all ranks, on the first."""
        if self.size == 1:
            return [value]
        values: list[Any] | None = [None] * self.size if self.is_coordinator else None
        dist.gather_object(value, values, group=self.group, group_dst=0)
        return values

    def spread(self, step: str, here: Callable[[], T], of_all: Callable[[list[T]], list[T]]) -> T:
        """Gather what `here()` gives on each rank, and give each rank its item of `of_all(…)`, which the first rank
        calls.
        """
        answers = self._answers(step, here, of_all)
        answer: list[Any] = [answers[0] if answers is not None else None]
        if self.size > 1:
            dist.scatter_object_list(answer, answers, group=self.group, group_src=0)
        return self._given(answer[0])  # type: ignore[no-any-return]

    def join(self, step: str, here: Callable[[], T], of_all: Callable[[list[T]], Any]) -> Any:
        """Gather what `here()` gives on each rank, and give all ranks the result of `of_all(…)`, which the first rank
        calls.
        """
        answers = self._answers(step, here, lambda values: [of_all(values)])
        answer: list[Any] = [answers[0] if answers is not None else None]
        if self.size > 1:
            dist.broadcast_object_list(answer, group=self.group, group_src=0)
        return self._given(answer[0])

    def _answers(self, step: str, here: Callable[[], Any],
                 of_all: Callable[[list[Any]], list[Any]]) -> list[Any] | None:
        try:
            value = here()
        except BaseException as error:
            value = Failure(error)
        values = self._gather(value)
        if values is None:
            return None
        failures = {rank: value.pair for rank, value in enumerate(values) if isinstance(value, Failure)}
        if not failures:
            try:
                return of_all(values)
            except BaseException as error:
                failures = {0: Failure(error).pair}
        return [CheckpointException(step, failures)] * self.size

    def _given(self, answer: Any) -> Any:
        if isinstance(answer, CheckpointException):
            raise answer
        return answer
