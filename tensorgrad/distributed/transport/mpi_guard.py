"""Guard against hanging MPI jobs: a time limit for blocking calls, and an abort of all ranks where one of them fails.

A rank that waits in MPI cannot be interrupted from Python, and a rank that leaves with an exception would let the
others wait for it forever. While there is
a group, a thread looks at the calls under way: one that outlasts its time limit makes every rank print the last
    collectives that it saw, and ends the job.
An exception that nobody catches ends the job as well, as `python -m mpi4py` does; so does a collective for which a rank
is missing whose program has ended. The messages name the rank.
"""
from __future__ import annotations

import atexit
import os
import socket
import sys
import threading
import time
from typing import Any

__all__ = ["guard"]

TAG = 1         # of messages between these threads, on a communicator that carries no others with this tag
GRACE = 10.0    # seconds that the other ranks have to print what they saw
# what the threads tell each other: a time limit is over; the sender has printed its log; the program of the sender has
#     ended
OVER, SEEN, LEFT = 1, 2, 3
# seconds that a collective may still take after a rank has left, for what that had sent before
PATIENCE = 20.0
NEIGHBOURS = 8              # ranks that are told so: sooner or later one of them waits


class Guard:
    """The calls that this process waits in, the groups that they belong to, and the thread that looks at them."""

    def __init__(self) -> None:
        # by thread: since when it waits, in which group, for what
        self.calls: dict[int, tuple[float, Any, str]] = {}
        self.groups: list[Any] = []
        self.lock = threading.RLock()
        self.stop: threading.Event | None = None
        self.thread: threading.Thread | None = None
        self.hooked = False                                     # for the end of the program, and for forks
        # when which rank has left which group without destroying it
        self.left: list[tuple[float, Any, int]] = []
        self.hooks: tuple[Any, Any] = (None, None)
        # how many threads computed before the ranks of this machine shared its cores
        self.threads = 0

    # ── groups ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def add(self, group: Any) -> None:
        """Watch the calls of one more group."""
        with self.lock:
            self.groups.append(group)
            if len(self.groups) == 1:
                self.hooks = sys.excepthook, threading.excepthook
                sys.excepthook, threading.excepthook = self._uncaught, self._uncaught_in_a_thread
                self.stop = threading.Event()
                if not self.hooked:
                    atexit.register(self._leave)
                    if hasattr(os, "register_at_fork"):
                        os.register_at_fork(after_in_child=self._in_a_fork)
                    self.hooked = True
                self.thread = threading.Thread(target=self._watch, args=(self.stop,), name="tensorgrad-mpi-watch",
                                               daemon=True)
                self.thread.start()

    def remove(self, group: Any) -> None:
        """Forget a group. After the last one, the process is as it was before the first."""
        with self.lock:
            if group not in self.groups:
                return
            self.groups.remove(group)
            self.left = [entry for entry in self.left if entry[1] is not group]
            if not self.groups and self.stop is not None:
                self.stop.set()
                if sys.excepthook == self._uncaught:
                    sys.excepthook = self.hooks[0]
                if threading.excepthook == self._uncaught_in_a_thread:
                    threading.excepthook = self.hooks[1]
                if self.threads:
                    from ...runtime import threads
                    threads.set_num_threads(self.threads)
                    self.threads = 0

    def share_cores(self, world: Any) -> None:
        """Let ranks that may use the same cores compute with their part of them, unless the user has said how many
        threads there are. All ranks call this.
        """
        from ...runtime import threads
        if not hasattr(os, "sched_getaffinity"):
            return
        own = sorted(os.sched_getaffinity(0))
        beside = world.allgather((socket.gethostname(), own)).count((socket.gethostname(), own))
        chosen = any(os.environ.get(name) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"))
        if beside > 1 and not chosen and (before := threads.get_num_threads()) == len(own) > 1:
            threads.set_num_threads(max(len(own) // beside, 1))
            self.threads = before

    def _leave(self) -> None:
        """The program ends, perhaps with groups that it has not destroyed: MPI is finalized next."""
        with self.lock:
            for group in self.groups:
                group.tell(LEFT, [(group.rank + step) % group.size
                                  for step in range(1, min(NEIGHBOURS + 1, group.size))])
            if self.stop is not None:
                self.stop.set()
        if self.thread is not None and self.thread is not threading.current_thread():
            self.thread.join(GRACE)

    def _in_a_fork(self) -> None:
        """Leave the groups: a fork, such as a worker of a DataLoader, is no rank, and must not call MPI."""
        self.lock = threading.RLock()
        self.calls.clear()
        for group in list(self.groups):
            group.closed = True
            self.remove(group)

    # ── time limits ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _watch(self, stop: threading.Event) -> None:
        """Until the last group is gone, look for calls that take too long, here and, through their message,
        elsewhere.
        """
        while True:
            with self.lock:
                groups = list(self.groups)
            limits = [group.timeout.total_seconds() for group in groups]
            if stop.wait(min([1.0, *(max(limit / 4, 0.02) for limit in limits)])):
                return
            now = time.monotonic()
            for began, group, kind in list(self.calls.values()):
                if now - began > group.timeout.total_seconds():
                    self._end(group, f"{kind} has waited for longer than the time limit of "
                                     f"{group.timeout.total_seconds():g} s")
                for since, left, rank in self.left:
                    if left is group and kind not in ("SEND", "RECV") and now - max(since, began) > PATIENCE:
                        self._end(group, f"{kind} waits for rank {rank}, whose program has ended")
            for group in groups:
                with self.lock:             # not closed meanwhile
                    said = group.heard() if group in self.groups else None
                if said is not None and said[0] == LEFT:
                    self.left.append((now, group, said[1]))
                elif said is not None and said[0] == OVER:
                    print_now(f"{place(group)}: the time limit of rank {said[1]} is over.\n{group.log()}")
                    group.tell(SEEN, [said[1]])

    def _end(self, group: Any, why: str) -> None:
        """Say why the job ends, let the others say what they have seen, and end it."""
        print_now(f"{place(group)}: {why}: the job is aborted.\n{group.log()}")
        others = ({other for other in range(group.size) if other != group.rank}
                  - {rank for _, left, rank in self.left if left is group})
        group.tell(OVER, others)
        end = time.monotonic() + GRACE
        while others and time.monotonic() < end:
            said = group.heard()
            if said is None:
                time.sleep(0.02)
            else:
                others.discard(said[1])
        group.end_job()

    # ── exceptions ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _uncaught(self, kind: type[BaseException], error: BaseException, trace: Any) -> None:
        self.hooks[0](kind, error, trace)
        self._failed(kind, error, "")

    def _uncaught_in_a_thread(self, args: Any) -> None:
        self.hooks[1](args)
        if args.exc_type is not SystemExit:
            self._failed(args.exc_type, args.exc_value, f" in the thread {args.thread.name}" if args.thread
                         else " in a thread")

    def _failed(self, kind: type[BaseException], error: BaseException | None, where: str) -> None:
        if not self.groups:
            return
        group = self.groups[0]
        print_now(f"{place(group)} failed with {kind.__name__}{where}: the job is aborted.\n{kind.__name__}: {error}")
        group.end_job()


guard = Guard()


def place(group: Any) -> str:
    """Which process this is."""
    return (f"rank {group.rank} of {group.size} in the group {group.label!r} (pid {os.getpid()} on "
            f"{socket.gethostname()})")


def print_now(text: str) -> None:
    """Write to the standard error in one piece, since the other ranks write there, too."""
    sys.stdout.flush()
    sys.stderr.write(text.rstrip() + "\n")
    sys.stderr.flush()
