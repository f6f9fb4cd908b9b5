"""Handles of communication under way. https://pytorch.org/docs → torch.distributed.Work"""
from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from ..futures import Future

__all__ = ["Work"]

_lock = threading.Lock()        # guards the few words of state of all handles: it is never held while anything is called


class Work:
    """One collective or message under way: `wait` ends it, and raises its error. https://pytorch.org/docs → torch.distributed.Work

    A transport makes a `Work` of a function that waits (`finish(timeout)`), or sets its end from a thread of its own (`complete`, `fail`).
    `Work.done()` is the handle of what has ended already.
    """

    __slots__ = ("__weakref__", "_after", "_ended", "_error", "_event", "_finish", "_result", "_source")

    def __init__(self, finish: Callable[[float | None], Any] | None = None, result: Any = None, source: int = -1) -> None:
        self._finish, self._result, self._source = finish, result, source
        self._ended, self._error = False, None  # type: tuple[bool, BaseException | None]
        self._event: threading.Event | None = None
        self._after: list[tuple[Callable[[], None], bool]] = []

    @classmethod
    def done(cls, result: Any = None, source: int = -1) -> Work:
        """Return the handle of what has ended; one shared handle where there is nothing to tell."""
        if result is None and source == -1 and cls is Work:
            return DONE
        work = cls(None, result, source)
        work._ended = True
        return work

    def complete(self, source: int = -1) -> None:
        """Say that it has ended well; `source` is the rank a message came from."""
        if source >= 0:
            self._source = source
        self._end()

    def fail(self, error: BaseException) -> None:
        """Say that it has ended with an error, which `wait` raises."""
        self._error = error
        self._end()

    def _end(self) -> None:
        """Call what is to come after, then let `wait` return."""
        while True:
            with _lock:
                after, self._after = self._after, []
                if not after:
                    self._ended = True
                    event = self._event
                    break
            for call, always in after:
                if always or self._error is None:
                    try:
                        call()
                    except BaseException as error:
                        self._error = self._error or error
        if event is not None:
            event.set()

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until it has ended; True. Errors: those of the communication; RuntimeError after `timeout`."""
        if not self._ended:
            self._wait(None if timeout is None else timeout.total_seconds())
        if self._error is not None:
            raise self._error
        return True

    def _wait(self, seconds: float | None) -> None:
        with _lock:
            finish, self._finish = self._finish, None
            if finish is None and self._event is None:
                self._event = threading.Event()
        if finish is not None:
            try:
                finish(seconds)
            except BaseException as error:
                self._error = error
            self._end()
        elif not self._ended and not self._event.wait(seconds):     # type: ignore[union-attr]
            raise RuntimeError(f"Wait timeout after {round(1000 * (seconds or 0))}ms")

    def synchronize(self) -> bool:
        """Wait until it has ended."""
        return self.wait()

    def then(self, after: Callable[[], None], always: bool = False) -> Work:
        """Call `after()` once it has ended well, or with `always` in any case, before `wait` returns; this handle. An error of `after` is the handle's."""
        with _lock:
            if not self._ended:
                self._after.append((after, always))
                return self
        if always or self._error is None:
            after()
        return self

    def is_completed(self) -> bool:
        """Return True if it has ended, well or not."""
        return self._ended

    def is_success(self) -> bool:
        """Return True if it has ended well."""
        return self.is_completed() and self._error is None

    def exception(self) -> BaseException | None:
        """Return the error it ended with, if any."""
        return self._error

    def source_rank(self) -> int:
        """Return the rank in the group that a received message came from. Errors: RuntimeError if nothing was received."""
        if self._source < 0:
            raise RuntimeError("sourceRank() may only be called on work objects that correspond to a recv or recv-from-any call.")
        return self._source

    _source_rank = source_rank

    def result(self) -> Any:
        """Return the tensors, once it has ended."""
        self.wait()
        return self._result

    def get_future(self) -> Future[Any]:
        """Return a Future of the list of tensors. https://pytorch.org/docs → torch.distributed.Work.get_future"""
        future = Pending(self)

        def settle() -> None:
            if future.done():
                return
            if self._error is None:
                future.set_result(self._result)
            else:
                future.set_exception(self._error if isinstance(self._error, Exception) else RuntimeError(str(self._error)))
        self.then(settle, always=True)
        return future


class Pending(Future[Any]):
    """The Future of what a handle waits for: whoever waits for it ends the communication."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self._work = work

    def wait(self) -> Any:
        """Wait for the communication, then give its tensors, or what a callback made of them."""
        self._work.wait()
        return super().wait()

    def then(self, callback: Callable[[Future[Any]], Any]) -> Future[Any]:
        """Return a Future of what the function makes of this one."""
        after = Pending(self._work)

        def run(_: Any) -> None:
            try:
                after.set_result(callback(self._plain()))
            except Exception as error:
                after.set_exception(error)
        self.add_done_callback(run)
        return after

    def _plain(self) -> Future[Any]:
        """A Future of the value alone: callbacks read it before the handle says that it has ended."""
        plain: Future[Any] = Future()
        plain._future = self._future
        return plain


DONE = Work()
DONE._ended = True
