"""torch.futures: results that come later. https://pytorch.org/docs/stable/futures.html

>>> from tensorgrad.futures import Future
>>> future = Future()
>>> after = future.then(lambda f: f.wait() + 1)
>>> future.set_result(1)
>>> after.wait()
2
"""
from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from concurrent import futures as _futures
from types import NoneType
from typing import Any, Generic, TypeVar

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
CALLBACK_ERROR = "Got the following error when running the callback: "


def _check_callback(method: str, callback: Any) -> None:
    if not callable(callback):
        raise TypeError(f"{method}(): incompatible function arguments: expected a callable, but got "
                        f"{type(callback).__name__}")


def _failed(error: Exception) -> RuntimeError:
    """Return PyTorch's error about a callback that raised `error`, which becomes its cause."""
    wrapped = RuntimeError(f"{CALLBACK_ERROR}{type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped


class Future(Generic[T]):
    """A value that will be set later. https://pytorch.org/docs → torch.futures.Future

    Threads may wait for it, and functions may be called with it once it is set. devices: accepted for programs that
    name those of the value.
    """

    def __init__(self, *, devices: Any = None) -> None:
        self._future: _futures.Future[Any] = _futures.Future()

    def __reduce__(self) -> Any:
        raise RuntimeError("Can not pickle torch.futures.Future")

    def done(self) -> bool:
        """Return True if there is a result or an error."""
        return self._future.done()

    def wait(self) -> Any:
        """Wait for the result and return it, or raise the error."""
        return self._future.result()

    def value(self) -> Any:
        """Return the result, which has to be there, or raise the error."""
        if not self.done():
            raise RuntimeError("Attempted to call `value()` on a future that has not completed yet")
        return self.wait()

    def _complete(self, set_to: Callable[[Any], None], value: Any) -> None:
        try:
            set_to(value)
        except _futures.InvalidStateError:
            raise RuntimeError("Attempting to mark a completed Future as complete again. Note that a Future can only "
                               "be marked completed once.") from None

    def set_result(self, result: Any) -> None:
        """Set the value, once; then call the functions that wait for it."""
        self._complete(self._future.set_result, result)

    def set_exception(self, result: BaseException) -> None:
        """Set an error, which `wait` raises."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._complete(self._future.set_exception, result)

    def add_done_callback(self, callback: Callable[[Future], None]) -> None:
        """Call a function with this future once it is done; now if it is. Errors of the function are printed."""
        _check_callback("add_done_callback", callback)

        def run(_: Any) -> None:
            try:
                callback(self)
            except Exception as error:
                print(f"{CALLBACK_ERROR}{''.join(traceback.format_exception(error))}", file=sys.stderr)
        self._future.add_done_callback(run)

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """Return a Future of `callback(self)`, which is called once this one is done."""
        return self._chained(callback, Future(), self)

    def _chained(self, callback: Callable[[Future], Any], after: Future, given: Future) -> Future:
        """Return `after`, which gets the result of `callback(given)` once this one is done."""
        _check_callback("then", callback)

        def run(_: Any) -> None:
            try:
                result = callback(given)
            except Exception as error:
                after.set_exception(_failed(error))
            else:
                after.set_result(result)
        self._future.add_done_callback(run)
        return after


def _checked(futures: Any) -> list[Future]:
    if not isinstance(futures, Sequence) or not all(isinstance(future, (Future, NoneType)) for future in futures):
        raise TypeError(f"_collect_all(): incompatible function arguments: expected a sequence of Futures, but got "
                        f"{type(futures).__name__}")
    if None in futures:
        raise RuntimeError("Future can't be None")
    return list(futures)


def wait_all(futures: list[Future]) -> list[Any]:
    """Wait for all futures and return their results. https://pytorch.org/docs → torch.futures.wait_all"""
    given = _checked(futures)
    for future in given:        # all end, before the first error is raised
        try:
            future.wait()
        except Exception:       # noqa: S110
            pass
    return [future.wait() for future in given]


def collect_all(futures: list[Future]) -> Future:
    """Return a Future of the list of futures, done when they are. https://pytorch.org/docs → torch.futures.collect_all

    Its error is that of the first future in the list that has one.
    """
    whole, given = Future(), _checked(futures)
    left, lock = len(given), threading.Lock()

    def finish() -> None:
        errors = [error for future in given if (error := future._future.exception()) is not None]
        if errors:
            whole._future.set_exception(errors[0])
        else:
            whole.set_result(given)

    def count(_: Any) -> None:
        nonlocal left
        with lock:
            left -= 1
            last = left == 0
        if last:
            finish()
    for future in given:
        future._future.add_done_callback(count)
    if not given:
        finish()
    return whole
