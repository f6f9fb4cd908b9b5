"""Work shared among threads, where there is no pool of compiled loops: NumPy lets other threads run while it computes.

A split costs some fifty microseconds, so only what takes half a millisecond is worth one. After each call of NumPy a thread may find the interpreter's lock
taken, which costs it twenty more: what is shared should consist of few, long calls. BLAS computes with one thread meanwhile: two pools would wait for
each other's cores. Each thread runs in a copy of the caller's context, which holds what NumPy does about overflow, and where it takes memory from.

Who does a part is left to chance, how work is parted is not: results are the same from run to run.
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

from . import affinity, threads
from ._blas import watches_long
from ._native import native

WORTH = 1 << 19                         # nanoseconds of work to be shared
VIEWS = 1 << 10                         # of its memory that a thread keeps at most


class State(local):
    busy = False                        # whether this thread is part of a shared run


state = State()
queue: Any = None                       # of what the workers are to do
workers: list[Thread] = []


class Scratch(local):
    """Memory that each thread uses again and again, by name, and views of it that it takes time to make."""

    def __init__(self) -> None:
        self.memory: dict[str, Any] = {}
        self.views: dict[Any, Any] = {}

    def take(self, name: str, shape: tuple[int, ...], dtype: Any) -> Any:
        size = prod(shape) * dtype.itemsize
        memory = self.memory.get(name)
        if memory is None or memory.nbytes < size:
            memory = None                           # it is freed before there is another
            self.memory.pop(name, None)
            self.views.clear()                      # some may hold it
            memory = self.memory[name] = np.empty(size, np.uint8)
        return memory[:size].view(dtype).reshape(shape)

    def view(self, make: Callable[..., Any], *key: Any) -> Any:
        """`make(*key)`, which takes memory and makes views of it: what it gave the last time, if that memory is still the same."""
        found = self.views.get((make, key))
        if found is None:
            found = make(*key)
            if len(self.views) >= VIEWS:
                self.views.clear()
            self.views[make, key] = found
        return found


scratch = Scratch()


def spans(n: int, count: int) -> list[slice]:
    """n things in so many parts of nearly one size."""
    return [slice(i * n // count, (i + 1) * n // count) for i in range(count)]


def available(nanoseconds: float) -> int:
    """How many threads should share work that takes one of them this long.

    What is left to one thread may be products that BLAS's threads share.
    """
    if state.busy:
        return 1
    affinity.blas.keep_off()
    return min(threads.get_num_threads(), int(nanoseconds / WORTH) + 1) if nanoseconds > WORTH and can_start() else 1


def can_start() -> bool:
    """Not in a browser, nor where threads of BLAS that computed for us hold the processors that ours would compute on."""
    return (os.name == "nt" or hasattr(os, "fork")) and (native is not None or not watches_long())


class Work:
    """Parts of a task, which threads take one after the other: those of ours, and whoever waits for the end."""

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
        affinity.ours.keep_off()
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
        """Do what nobody has begun, wait for the rest, and raise the first error that there was."""
        self.help()
        errors = [error for error in (self.done.get() for _ in range(self.count)) if error is not None]
        self.task, self.count = None, 0             # a thread that comes late holds nothing by it
        if errors:
            raise errors[0]

    def give_up(self) -> None:
        """Begin no more parts, and wait for those that were begun."""
        while self.parts:
            try:
                self.parts.popleft()
                self.count -= 1
            except IndexError:
                break
        for _ in range(self.count):
            self.done.get()
        self.task, self.count = None, 0


def share(task: Callable[[Any], None], parts: Sequence[Any], count: int | None = None) -> None:
    """Run `task(part)` for each part, on so many threads (one for each part), this one among them; errors are raised here."""
    count = len(parts) if count is None else min(count, len(parts))
    if count <= 1:
        for part in parts:
            task(part)
        return
    with threads.single_blas:
        work = Work(task, parts)
        work.offer(count - 1)
        work.finish()


def aside(job: Callable[[], None]) -> Work:
    """Let another thread do a job; its end is to be waited for."""
    work = Work(lambda _: job(), (None,))
    work.offer(1)
    return work


def finish(jobs: Sequence[Callable[[], None]], count: int) -> None:
    """Do the jobs, each of which writes what no other one does, on so many threads."""
    share(lambda job: job(), jobs, count)


def add_up(task: Any, blocks: Any, count: int) -> None:
    """`task(blocks, number)`, which adds up what the blocks give, for so many numbers: each has always the same ones, so that sums are."""
    groups = [blocks[part] for part in spans(len(blocks), count)]
    share(lambda i: task(groups[i], i), range(count))


def elementwise(function: Callable[..., Any], *arrays: Any, out: Any, nanoseconds: float) -> Any:
    """`function(*arrays, out=out)` of arrays of one shape, whose elements take so long each."""
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
    affinity.help_others()
    while True:
        context, work = queue.get()
        context.run(work.help)
        del context, work                           # not to be held until the next one comes


def _forked() -> None:
    """A child process has none of the threads, and whatever waited for them is not its own."""
    global queue
    queue = None
    workers.clear()
    threads.single_blas.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
