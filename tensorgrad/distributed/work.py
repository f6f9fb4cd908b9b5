"""Handles of communication under way. https://pytorch.org/docs → torch.distributed.Work"""
from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from ..futures import Future

__all__ = ["Work"]

_lock = threading.Lock()        # guards the state of all handles; never held during a callback


class Work:
    """Handle of a collective or message: `wait` returns when it has ended.

    https://pytorch.org/docs → torch.distributed.Work

    A transport passes a function that waits (`finish(timeout)`), or ends the work from its own thread (`complete`,
    `fail`). `Work.done()` returns a handle of work that has already ended.
    """

    __slots__ = ("__weakref__", "_after", "_ended", "_error", "_event", "_finish", "_result", "_source")

    def __init__(self, finish: Callable[[float | None], Any] | None = None, result: Any = None,
                 source: int = -1) -> None:
        self._finish, self._result, self._source = finish, result, source
        self._ended, self._error = False, None  # type: tuple[bool, BaseException | None]
        self._event: threading.Event | None = None
        self._after: list[tuple[Callable[[], None], bool]] = []

    @classmethod
    def done(cls, result: Any = None, source: int = -1) -> Work:
        """Return a handle that has already ended; a shared one if it has neither a result nor a source."""
        if result is None and source == -1 and cls is Work:
            return DONE
        work = cls(None, result, source)
        work._ended = True
        return work

    def complete(self, source: int = -1) -> None:
        """End the work without an error; `source` is the rank that a message came from."""
        if source >= 0:
            self._source = source
        self._end()

    def fail(self, error: BaseException) -> None:
        """End the work with an error, which `wait` raises."""
        self._error = error
        self._end()

    def _end(self) -> None:
        """Run the callbacks of `then`, then let `wait` return."""
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
        """Wait until the work has ended; return True. Errors: the communication's; RuntimeError after `timeout`."""
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
        """Wait until the work has ended and return True."""
        return self.wait()

    def then(self, after: Callable[[], None], always: bool = False) -> Work:
        """Call `after()` once the work has ended without an error, or with any end if `always`; return this handle.

        `wait` returns after the callback. An error of `after` becomes the handle's; if the work had ended before, it is
        raised here.
        """
        with _lock:
            if not self._ended:
                self._after.append((after, always))
                return self
        if always or self._error is None:
            after()
        return self

    def is_completed(self) -> bool:
        """Return True if the work has ended, with or without an error."""
        return self._ended

    def is_success(self) -> bool:
        """Return True if the work has ended without an error."""
        return self.is_completed() and self._error is None

    def exception(self) -> BaseException | None:
        """Return the error that the work ended with, or None."""
        return self._error

    def source_rank(self) -> int:
        """Return the rank in the group that a received message came from.

        Errors: RuntimeError if nothing was received.
        """
        if self._source < 0:
            raise RuntimeError("sourceRank() may only be called on work objects that correspond to a recv or "
                               "recv-from-any call.")
        return self._source

    _source_rank = source_rank

    def result(self) -> Any:
        """Wait until the work has ended and return its tensors."""
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
                future.set_exception(self._error if isinstance(self._error, Exception)
                                     else RuntimeError(str(self._error)))
        self.then(settle, always=True)
        return future


class Pending(Future[Any]):
    """Future of a handle's tensors: waiting for the Future also completes the communication."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self._work = work

    def wait(self) -> Any:
        """Wait for the communication, then return its tensors or the result of a callback."""
        self._work.wait()
        return super().wait()

    def then(self, callback: Callable[[Future[Any]], Any]) -> Future[Any]:
        """Return a Future of the result of `callback(future)`."""
        return self._chained(callback, Pending(self._work), self._plain())

    def _plain(self) -> Future[Any]:
        """Return a Future without the handle: in callbacks the handle has not ended, and its `wait` would block."""
        plain: Future[Any] = Future()
        plain._future = self._future
        return plain


DONE = Work()
DONE._ended = True
