"""Work handles of MPI: stages of non-blocking calls, each begun when the previous one has ended."""
from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from ..errors import TimedOut
from ..work import Work

__all__ = ["Order", "Requests", "Stages"]

# lists of (name of a blocking method, argument, …) that may run side by side
Stages = Iterator[list[tuple[Any, ...]]]


class Order:
    """Queue of the works whose later stages have not begun, oldest first.

    All ranks must begin the collectives of a communicator in one order. First stages begin with the user's call; later
    ones when this rank polls, at another time than on other ranks. Later stages therefore use a second communicator, in
    the order of the works. Each wait also advances this queue, since another rank may block on a later stage before it
    does its part of the awaited work.
    """

    def __init__(self) -> None:
        self.works: deque[Requests] = deque()

    def poll(self) -> bool:
        """Advance the oldest work without blocking; return True if it made progress."""
        try:
            first = self.works[0]
        except IndexError:
            return False
        if not first.lock.acquire(blocking=False):      # another thread is advancing it
            return False
        try:
            return self.works[0] is first and first.advance(block=False)
        except IndexError:
            return False
        finally:
            first.lock.release()

    def reached(self, work: Requests) -> bool:
        """Advance the works before `work`; return True once it is the oldest, so that its next stage may begin."""
        while self.works[0] is not work:
            if not self.poll():
                return False
        return True


class Requests(Work):
    """A collective or message under way in MPI.

    MPI makes progress only while this process calls it: in `wait`, `is_completed`, or any other call.
    `start(call, later)` begins a call on the first communicator, or on the second if `later`. `received(status)`
    returns the rank that a message came from.
    """

    def __init__(self, what: str, stages: Stages, start: Callable[[tuple[Any, ...], bool], Any], transport: Any,
                 order: Order | None = None,
                 received: Callable[[Any], int] | None = None) -> None:
        super().__init__()
        self.what, self.stages, self.start, self.transport, self.order, self.received = (what, stages, start, transport,
                                                                                         order, received)
        self.lock = threading.RLock()       # a request is tested by one thread at a time
        self.requests: list[Any] = []
        self.begun = 0
        if order is not None:
            order.works.append(self)
        transport.pending.add(self)         # MPI writes into its arrays even if the user forgets the handle
        try:
            self._begin()
        except BaseException:
            self._leave()
            raise

    def _begin(self) -> bool:
        """Begin the next stage; return False if there is none."""
        for stage in self.stages:
            self.requests = [self.start(call, self.begun > 0) for call in stage]
            self.begun += 1
            return True
        return False

    def step(self, block: bool) -> bool:
        """Finish the current stage, then begin the next one or complete; return False if that would block.

        The caller holds the lock. `block` waits for the current stage.
        """
        requests = self.requests
        statuses = [self.transport.MPI.Status()] if self.received is not None else None
        if block:
            type(requests[0]).Waitall(requests, statuses)
        elif not type(requests[0]).Testall(requests, statuses):
            return False
        if self.order is not None and self.begun == 1:
            if not self.order.reached(self):
                return False
            try:
                more = self._begin()
            finally:
                self.order.works.popleft()
        else:
            more = self._begin()
        if not more:
            self._leave()
            self.complete(self.received(statuses[0]) if self.received is not None and statuses else -1)
        return True

    def _leave(self) -> None:
        self.transport.pending.discard(self)
        if self.order is not None and self in self.order.works:
            self.order.works.remove(self)

    def advance(self, block: bool) -> bool:
        """Call `step`; an error ends the work and returns True. The caller holds the lock."""
        try:
            return self.step(block)
        except Exception as error:
            self._leave()
            self.fail(self.transport.failure(self.what, error))
            return True

    def is_completed(self) -> bool:
        if not super().is_completed() and self.lock.acquire(blocking=False):
            try:
                while not super().is_completed() and self.advance(block=False):
                    pass
            finally:
                self.lock.release()
        return super().is_completed()

    def is_success(self) -> bool:
        return self.is_completed() and self._error is None

    def wait(self, timeout: timedelta | None = None) -> bool:
        if not super().is_completed():
            if timeout is None:
                with self.transport.waiting(self.what), self.lock:
                    while not super().is_completed():
                        moved = self.transport.order.poll()
                        if not self.advance(block=not moved and not self.transport.order.works) and not moved:
                            time.sleep(0)           # yield the core to other ranks of the machine
            else:
                self._poll(timeout.total_seconds())
        if self._error is not None:
            raise self._error
        return True

    synchronize = wait

    def _poll(self, seconds: float) -> None:
        """Poll, with growing pauses, until the work is complete. Errors: TimedOut after `seconds`."""
        end, pause = time.monotonic() + seconds, 1e-5
        while not self.is_completed():
            self.transport.order.poll()
            if time.monotonic() > end:
                raise TimedOut(f"Timed out waiting {round(1000 * seconds)}ms for {self.what} operation to complete")
            time.sleep(pause)
            pause = min(2 * pause, 1e-3)
