"""torch.futures: results that come later. https://pytorch.org/docs/stable/futures.html

>>> from tensorgrad.futures import Future
>>> future = Future()
>>> after = future.then(lambda f: f.wait() + 1)
>>> future.set_result(1)
>>> after.wait()
2
"""
from __future__ import annotations

from collections.abc import Callable
from concurrent import futures as _futures
from typing import Any, Generic, TypeVar

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")


class Future(Generic[T]):
    """A value that somebody will set. https://pytorch.org/docs → torch.futures.Future"""

    def __init__(self, *, devices: Any = None) -> None:
        self._future: _futures.Future[Any] = _futures.Future()

    def done(self) -> bool:
        """Return True if there is a result or an error."""
        return self._future.done()

    def wait(self) -> Any:
        """The result, once it is there; or the error is raised."""
        return self._future.result()

    def value(self) -> Any:
        """The result, which has to be there."""
        if not self.done():
            raise RuntimeError("Attempted to call `value()` on a future that has not completed yet")
        return self.wait()

    def set_result(self, result: Any) -> None:
        """Set the value, once."""
        if self.done():
            raise RuntimeError("Future can only be set once")
        self._future.set_result(result)

    def set_exception(self, result: BaseException) -> None:
        """Set an error, which `wait` raises."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._future.set_exception(result)

    def add_done_callback(self, callback: Callable[[Future], None]) -> None:
        """Call a function with this future once it is done; now if it is."""
        self._future.add_done_callback(lambda _: callback(self))

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """Return a Future of `callback(self)`, which is called once this one is done."""
        after = Future()

        def run(_: Any) -> None:
            try:
                result = callback(self)
            except Exception as error:
                after.set_exception(error)
            else:
                after.set_result(result)
        self._future.add_done_callback(run)
        return after


def wait_all(futures: list[Future]) -> list[Any]:
    """The results of all. https://pytorch.org/docs → torch.futures.wait_all"""
    return [future.wait() for future in futures]


def collect_all(futures: list[Future]) -> Future:
    """A Future of the list of futures, done when they are. https://pytorch.org/docs → torch.futures.collect_all"""
    whole, left = Future(), len(futures)

    def count(_: Future) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            whole.set_result(futures)
    for future in futures:
        future.add_done_callback(count)
    if not futures:
        whole.set_result(futures)
    return whole
