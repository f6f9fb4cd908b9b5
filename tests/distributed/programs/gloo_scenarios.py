"""Scenarios in which a rank of a "gloo" group dies, stops, or calls something else than the others.

Run as a program: prints a line of JSON for each scenario, with the outcome of each rank. Ranks are forked, which is
quick, and meet in a file, which needs no thread before the fork.
"""
import itertools
import json
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import numpy as np

from tensorgrad.distributed import FileStore
from tensorgrad.distributed.operations import ReduceOp
from tensorgrad.distributed.transport import shared_memory
from tensorgrad.distributed.transport.base import Call

SIZE = 3
LONG = timedelta(seconds=60)
scenarios = {}


def scenario(function):
    scenarios[function.__name__] = function
    return function


class Rank:
    """A rank: its transport, and short names for its calls."""

    def __init__(self, directory, rank, timeout=LONG):
        self.directory, self.rank, self.numbers = directory, rank, itertools.count(1)
        self.transport = shared_memory.create(FileStore(str(directory / "store")), rank, SIZE, timeout, "world")

    def call(self, kind, shape=(4,), dtype="Float", detail="op=SUM", later=False):
        return Call(kind, next(self.numbers), (shape,), (dtype,), "cpu", detail, later)

    def reduce(self, count=4, later=False, kind="f4"):
        array = np.ones(count, kind)
        return self.transport.allreduce(self.call("ALLREDUCE", (count,), kind, later=later), array, ReduceOp.SUM)

    def barrier(self):
        return self.transport.barrier(self.call("BARRIER", (), "", ""))

    def pid(self, rank):
        return self.transport.members[rank].pid

    def reached(self, name):
        """Tell the others that this rank has reached a point of its program."""
        (self.directory / name).touch()

    def await_(self, name):
        while not (self.directory / name).exists():
            time.sleep(0.002)


def error_of(function):
    """How a function ended, and how long it took."""
    start = time.monotonic()
    try:
        function()
        return {"error": "", "text": ""}
    except BaseException as error:
        return {"error": type(error).__name__, "text": str(error), "seconds": time.monotonic() - start}


def many(rank, **arguments):
    while True:
        rank.reduce(**arguments)


@scenario
def killed(rank):
    """Others are in collectives, large ones."""
    if rank.rank == 2:
        rank.reduce(300_000)
        os.kill(os.getpid(), signal.SIGKILL)
    pid = rank.pid(2)
    return [error_of(lambda: many(rank, count=300_000)), error_of(rank.barrier), pid]


@scenario
def killed_while_others_wait_for_each_other(rank):
    """Nobody waits for the one that dies: rank 0 waits for a message of rank 1, which does something else until rank 0
    has seen it.
    """
    if rank.rank == 2:
        rank.await_("waiting")
        os.kill(os.getpid(), signal.SIGKILL)
    if rank.rank == 1:
        rank.await_("seen")
        return [error_of(rank.barrier)]
    rank.reached("waiting")
    found = error_of(lambda: rank.transport.receive(np.zeros(3), 1, 0, False))
    rank.reached("seen")
    return [found]


@scenario
def killed_while_work_is_under_way(rank):
    """Asynchronous collectives and messages raise when they are waited for."""
    if rank.rank == 2:
        rank.await_("posted0"), rank.await_("posted1")
        os.kill(os.getpid(), signal.SIGKILL)
    works = [rank.reduce(later=True), rank.reduce(later=True),
             rank.transport.receive(np.zeros(3), 1 - rank.rank, 7, True)]
    rank.reached(f"posted{rank.rank}")
    return [error_of(work.wait) for work in works] + [rank.transport.close() is None]


@scenario
def raises(rank):
    if rank.rank == 2:
        rank.reduce()
        sys.exit(3)
    return [error_of(lambda: many(rank))]


@scenario
def left(rank):
    """Rank 2 leaves; the others can still exchange messages, and fail at the next collective."""
    rank.barrier()
    if rank.rank == 2:
        rank.transport.close()
        rank.reached("left")
        return [error_of(rank.barrier)]
    rank.await_("left")
    array = np.full(70_000, float(rank.rank))
    other, work = np.zeros(70_000), rank.transport.send(array, 1 - rank.rank, 1, True)
    rank.transport.receive(other, 1 - rank.rank, 1, False)
    work.wait()
    return [bool((other == 1 - rank.rank).all()), error_of(rank.barrier), error_of(rank.barrier)]


@scenario
def stopped(rank):
    """Rank 2 is stopped; the others raise after the time limit."""
    rank.reduce()
    rank.transport.timeout = timedelta(seconds=0.4)
    if rank.rank == 2:
        os.kill(os.getpid(), signal.SIGSTOP)
    return [error_of(rank.reduce), error_of(rank.reduce),
            error_of(lambda: rank.transport.send(np.zeros(2), 1 - rank.rank, 0, False))]


@scenario
def no_message(rank):
    """A message that nobody sends."""
    rank.transport.timeout = timedelta(seconds=0.3)
    if rank.rank == 0:
        return [error_of(lambda: rank.transport.receive(np.zeros(2), None, 0, False))]
    return [error_of(rank.barrier)]


@scenario
def shapes(rank):
    return [error_of(lambda: rank.reduce(5 if rank.rank == 1 else 4))]


@scenario
def sizes(rank):
    """Ranks reduce arrays of different sizes: a large one in shared memory, small ones in the ring."""
    return [error_of(lambda: rank.reduce(1_000_000 if rank.rank == 0 else 4, later=rank.rank == 2).wait())]


@scenario
def dtypes(rank):
    return [error_of(lambda: rank.reduce(kind="f8" if rank.rank == 2 else "f4"))]


@scenario
def order(rank):
    def steps():
        for step in (rank.barrier, rank.reduce) if rank.rank else (rank.reduce, rank.barrier):
            step()
    return [error_of(steps)]


@scenario
def roots(rank):
    root = int(rank.rank == 1)
    return [error_of(lambda: rank.transport.broadcast(rank.call("BROADCAST", detail=f"root={root}"), np.ones(4, "f4"),
                                                      root))]


@scenario
def counts(rank):
    """A rank sends more than the other expects, which fingerprints do not reveal."""
    got = [1, 1, 2 if rank.rank == 0 else 1]
    return [error_of(lambda: rank.transport.alltoall(rank.call("ALLTOALL", (), detail=""), np.zeros(sum(got)),
                                                     np.ones(3), got, [1, 1, 1]))]


@scenario
def messages(rank):
    """Messages of another size or dtype than was asked for: only the one who asked gets an error."""
    found = []
    if rank.rank == 0:
        rank.transport.send(np.ones(3, "f4"), 1, 0, False)
        rank.transport.send(np.ones(3, "f4"), 1, 1, False)
    if rank.rank == 1:
        found = [error_of(lambda: rank.transport.receive(np.zeros(4, "f4"), 0, 0, False)),
                 error_of(lambda: rank.transport.receive(np.zeros(3, "i4"), 0, 1, False))]
    return [*found, error_of(rank.barrier)]


@scenario
def aborted(rank):
    if rank.rank == 0:
        rank.await_("waiting1"), rank.await_("waiting2")
        rank.transport.abort("the weather is bad")
        return [error_of(rank.barrier)]
    threading.Timer(0.05, lambda: rank.reached(f"waiting{rank.rank}")).start()
    return [error_of(rank.barrier if rank.rank == 1 else lambda: rank.transport.receive(np.zeros(2), 1, 0, False))]


@scenario
def interrupted(rank):
    if rank.rank == 0:
        signal.signal(signal.SIGALRM, signal.default_int_handler)
    if rank.rank == 2:
        # rank 1 waits for this one, and hears of rank 0 all the same
        rank.await_("seen0"), rank.await_("seen1")

    def until_the_alarm():
        if rank.rank == 0:
            signal.setitimer(signal.ITIMER_REAL, 0.1)
        many(rank)
    found = [error_of(until_the_alarm)]
    rank.reached(f"seen{rank.rank}")
    return found


@scenario
def forked(rank):
    """A child that was forked keeps nothing open, and cannot use the group."""
    rank.barrier()
    if rank.rank == 2:
        if os.fork() == 0:
            found = error_of(rank.barrier)
            (rank.directory / "part").write_text(json.dumps([found, os.getpid()]), encoding="utf-8")
            os.replace(rank.directory / "part", rank.directory / "child")       # which others see whole
            time.sleep(100)
            os._exit(0)
        rank.await_("child")
        os.kill(os.getpid(), signal.SIGKILL)
    found = [error_of(rank.barrier)]
    child = json.loads((rank.directory / "child").read_text(encoding="utf-8"))
    rank.transport.close()
    rank.reached(f"done{rank.rank}")
    if rank.rank == 0:
        rank.await_("done1")
        os.kill(child[1], signal.SIGKILL)
    return found + child[:1]


@scenario
def leaves_nothing(rank):
    """Count the threads, descriptors and named memory of a rank, during and after its group."""
    rank.reduce(200_000, later=True).wait()
    work = rank.transport.receive(np.zeros(1), (rank.rank + 1) % SIZE, 0, True)
    rank.transport.send(np.zeros(1), (rank.rank - 1) % SIZE, 0, True).wait()
    work.wait()
    rank.barrier()
    during, rank.barrier = descriptors(), None
    threads = threading.active_count()
    rank.transport.close()
    rank.transport.close()
    del rank.transport
    return [threads, during, threading.active_count(), descriptors()]


def descriptors():
    """Count the open descriptors of the process by kind."""
    names = []
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            names.append(os.readlink(f"/proc/self/fd/{number}").partition(":")[0])
    return ({kind: names.count(kind) for kind in ("socket", "/memfd")}
            | {"shm": sum(name.startswith("/dev/shm") for name in names)})


def run(name, directory, rank):
    found = scenarios[name](Rank(directory, rank))
    (directory / f"rank{rank}").write_text(json.dumps(found), encoding="utf-8")


def main(names):
    context = multiprocessing.get_context("fork")
    for name in names or scenarios:
        with tempfile.TemporaryDirectory() as temporary:
            directory = Path(temporary)
            processes = [context.Process(target=run, args=(name, directory, rank)) for rank in range(SIZE)]
            for process in processes:
                process.start()
            end = time.monotonic() + 60
            while (time.monotonic() < end and any(process.is_alive()
                                                  for process in (processes[:2] if name == "stopped" else processes))):
                time.sleep(0.002)
            for process in processes:
                process.kill()
                process.join()
            ranks = [json.loads(path.read_text(encoding="utf-8")) if (path := directory / f"rank{rank}").exists()
                     else None for rank in range(SIZE)]
            print(json.dumps({"name": name, "ranks": ranks, "pids": [process.pid for process in processes],
                              "codes": [process.exitcode for process in processes]}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
