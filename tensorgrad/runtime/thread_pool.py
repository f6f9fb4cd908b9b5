"""Work shared among Python's threads, if there is no native pool: NumPy releases the interpreter's lock while it
computes.

A split costs some 50 µs, so only work of half a millisecond is worth one. After each call of NumPy a thread may wait 20
µs more for the interpreter's lock: shared work should consist of few, long calls. BLAS uses one thread meanwhile, since
two pools would wait for each other's cores. Each thread runs in a copy of the caller's context, which holds NumPy's
error handling and memory allocator.

The split of the work does not depend on which thread does a part: results are reproducible.
"""
from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import copy_context
from math import prod
from threading import Thread, local
from typing import Any

import numpy as np

from . import threads
from .blas import watches_long
from .native import native

WORTH = 1 << 19                         # nanoseconds of work to be shared


class State(local):
    busy = False                        # True while this thread runs a part of shared work


state = State()
queue: Any = None                       # the jobs of the workers
workers: list[Thread] = []


class Scratch(local):
    """Memory that each thread reuses, by name."""

    def __init__(self) -> None:
        self.memory: dict[str, Any] = {}

    def take(self, name: str, shape: tuple[int, ...], dtype: Any) -> Any:
        size = prod(shape) * dtype.itemsize
        memory = self.memory.get(name)
        if memory is None or memory.nbytes < size:
            memory = None                           # free the old block before allocating
            self.memory.pop(name, None)
            memory = self.memory[name] = np.empty(size, np.uint8)
        return memory[:size].view(dtype).reshape(shape)


scratch = Scratch()


def spans(n: int, count: int) -> list[slice]:
    """Split the range of n into `count` slices of nearly equal length."""
    return [slice(i * n // count, (i + 1) * n // count) for i in range(count)]


def available(nanoseconds: float) -> int:
    """Return how many threads should share work that takes one thread `nanoseconds`.

    Work for one thread may still use BLAS's threads.
    """
    if state.busy:
        return 1
    return min(threads.get_num_threads(), int(nanoseconds / WORTH) + 1) if nanoseconds > WORTH and can_start() else 1


def can_start() -> bool:
    """Return True if threads may start: not in a browser, nor where idle threads of BLAS keep the processors busy."""
    return (os.name == "nt" or hasattr(os, "fork")) and (native is not None or not watches_long())


class Work:
    """Parts of a task, which workers and the waiting thread take one after the other."""

    __slots__ = ("task", "parts", "count", "done")

    def __init__(self, task: Callable[[Any], None], parts: Sequence[Any]) -> None:
        from queue import SimpleQueue  # seldom needed: not imported with the package
        self.task: Any = task
        self.parts, self.count, self.done = deque(parts), len(parts), SimpleQueue()

    def offer(self, helpers: int) -> None:
        """Ask so many threads to take part, once they are free."""
        global queue
        if queue is None:
            queue = type(self.done)()
        while len(workers) < helpers:
            workers.append(Thread(target=_work, daemon=True))
            workers[-1].start()
        for _ in range(helpers):
            queue.put((copy_context(), self))

    def help(self) -> None:
        """Do parts until none is left to begin."""
        while True:
            try:
                part = self.parts.popleft()
            except IndexError:
                return
            self.done.put(_run(self.task, part))

    def finish(self) -> None:
        """Do the parts that no thread has begun, wait for the rest, and raise the first error."""
        self.help()
        errors = [error for error in (self.done.get() for _ in range(self.count)) if error is not None]
        self.task, self.count = None, 0             # late threads must not keep the task alive
        if errors:
            raise errors[0]


def share(task: Callable[[Any], None], parts: Sequence[Any], count: int | None = None) -> None:
    """Run `task(part)` for each part on `count` threads, by default one per part; errors are raised here."""
    count = len(parts) if count is None else min(count, len(parts))
    if count <= 1:
        for part in parts:
            task(part)
        return
    with threads.single_blas:
        work = Work(task, parts)
        work.offer(count - 1)
        work.finish()


def finish(jobs: Sequence[Callable[[], None]], count: int) -> None:
    """Run the jobs, which write disjoint memory, on `count` threads."""
    share(lambda job: job(), jobs, count)


def add_up(task: Any, blocks: Any, count: int) -> None:
    """Call `task(group, i)` for `count` groups of the blocks, on as many threads.

    The groups depend on `count` alone, so sums are reproducible.
    """
    groups = [blocks[part] for part in spans(len(blocks), count)]
    share(lambda i: task(groups[i], i), range(count))


def elementwise(function: Callable[..., Any], *arrays: Any, out: Any, nanoseconds: float) -> Any:
    """Compute `function(*arrays, out=out)` for arrays of one shape; `nanoseconds` is the time per element."""
    count = available(nanoseconds * out.size) if nanoseconds * out.size > WORTH else 1
    if count == 1 or not all(a.flags.c_contiguous for a in (*arrays, out)):
        return function(*arrays, out=out)
    flat, into = [a.reshape(-1) for a in arrays], out.reshape(-1)
    share(lambda part: function(*(a[part] for a in flat), out=into[part]), spans(out.size, count))
    return out


def _run(task: Callable[[Any], None], part: Any) -> BaseException | None:
    busy, state.busy = state.busy, True
    try:
        task(part)
    except BaseException as error:
        return error
    finally:
        state.busy = busy
    return None


def _work() -> None:
    while True:
        context, work = queue.get()
        context.run(work.help)
        del context, work                           # keep nothing alive while waiting for the next


def _forked() -> None:
    """Reset the state in a child process, which has none of the threads."""
    global queue
    queue = None
    workers.clear()
    threads.single_blas.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
