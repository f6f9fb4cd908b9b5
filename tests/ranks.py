"""Ranks as threads of one process, each with a default group of its own: programs of several ranks that need no processes."""
import threading
import time
from contextlib import contextmanager, suppress

from tensorgrad.distributed import HashStore, destroy_process_group, init_process_group, world


class Worlds(threading.local):
    """The groups that each thread is in, as `world.World` keeps those of a process."""

    def __init__(self):
        self.clear()

    clear = world.World.clear


@contextmanager
def threads_are_ranks():
    before, world._world = world._world, Worlds()
    try:
        yield
    finally:
        world._world = before


def as_threads(size, program, timeout=60):
    """What `program(rank)` gives on each of so many ranks; the first error that a rank raised."""
    store, results, errors = HashStore(), [None] * size, {}

    def run(rank):
        try:
            init_process_group("gloo", rank=rank, world_size=size, store=store)
            results[rank] = program(rank)
        except BaseException as error:
            errors[rank] = error
        finally:
            with suppress(Exception):           # the others see that this rank has left
                destroy_process_group()
    with threads_are_ranks():
        threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(size)]
        for thread in threads:
            thread.start()
        end = time.monotonic() + timeout
        while (waiting := [thread for thread in threads if thread.is_alive()]) and time.monotonic() < end:
            waiting[0].join(0.05)
            if errors:
                end = min(end, time.monotonic() + 5)
        for error in errors.values():           # the first one first
            raise error
        assert not waiting, "ranks wait for each other"
    return results
