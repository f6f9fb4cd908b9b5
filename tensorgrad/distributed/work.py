"""Handles of communication under way. https://pytorch.org/docs → torch.distributed.Work"""
from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from ..futures import Future

__all__ = ["Work"]


class Work:
    """One collective or message under way: `wait` ends it, and raises its error. https://pytorch.org/docs → torch.distributed.Work

    A transport makes a `Work` of a function that waits (`finish(timeout)`), or sets its result from a thread of its own (`complete`, `fail`).
    `Work.done()` is the handle of what has ended already.
    """

    def __init__(self, finish: Callable[[float | None], Any] | None = None, result: Any = None, source: int = -1) -> None:
        self._finish, self._result, self._source = finish, result, source
        self._error: BaseException | None = None
        self._ended = threading.Event()
        self._after: list[Callable[[], None]] = []
        self._lock = threading.RLock()

    @classmethod
    def done(cls, result: Any = None, source: int = -1) -> Work:
        """The handle of what has ended."""
        work = cls(None, result, source)
        work._ended.set()
        return work

    def complete(self, source: int = -1) -> None:
        """Say that it has ended well; `source` is the rank a message came from."""
        self._source = source
        self._end()

    def fail(self, error: BaseException) -> None:
        """Say that it has ended with an error, which `wait` raises."""
        self._error = error
        self._end()

    def _end(self) -> None:
        with self._lock:
            self._ended.set()
            after, self._after = self._after, []
        for call in after:
            call()

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Until it has ended; True. Errors: those of the communication; RuntimeError after `timeout`."""
        seconds = None if timeout is None else timeout.total_seconds()
        finish, self._finish = self._finish, None
        if finish is not None:
            try:
                finish(seconds)
            except BaseException as error:
                self.fail(error)
                raise
            self._end()
        elif not self._ended.wait(seconds):
            raise RuntimeError(f"Wait timeout after {round(1000 * (seconds or 0))}ms")
        if self._error is not None:
            raise self._error
        return True

    synchronize = wait

    def then(self, after: Callable[[], None]) -> Work:
        """Call `after()` once it has ended well, before `wait` returns; this handle."""
        finish = self._finish
        if finish is not None:
            def both(timeout: float | None) -> None:
                finish(timeout)
                after()
            self._finish = both
            return self
        with self._lock:
            if not self._ended.is_set():
                self._after.append(after)
                return self
        after()
        return self

    def is_completed(self) -> bool:
        """Whether it has ended, well or not."""
        return self._ended.is_set()

    def is_success(self) -> bool:
        """Whether it has ended well."""
        return self._ended.is_set() and self._error is None

    def exception(self) -> BaseException | None:
        """The error it ended with, if any."""
        return self._error

    def source_rank(self) -> int:
        """The rank in the group that a received message came from."""
        return self._source

    def result(self) -> Any:
        """The tensors, once it has ended."""
        self.wait()
        return self._result

    def get_future(self) -> Future[Any]:
        """A Future of the tensors. https://pytorch.org/docs → torch.distributed.Work.get_future"""
        raise NotImplementedError
