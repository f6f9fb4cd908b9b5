"""Ranks as threads of one process: the programs of tests that need groups, but no processes."""
import threading
import time

from tensorgrad import distributed as dist
from tensorgrad.distributed import world


class PerThread(threading.local, world.World):
    """The groups that a thread is in: each is a rank."""


def as_threads(size, program, timeout=60, backend="gloo", **options):
    """Run `program(rank, group)` on `size` ranks, each a thread in which `group` is the default one.

    Return the results, or raise the first error of a rank.
    """
    store, results, errors = dist.HashStore(), [None] * size, {}

    def run(rank):
        try:
            dist.init_process_group(backend, store=store, rank=rank, world_size=size, **options)
            results[rank] = program(rank, dist.group.WORLD)
        except BaseException as error:
            errors[rank] = error
        finally:
            if dist.is_initialized():
                dist.destroy_process_group()
    before, world._world = world._world, PerThread()
    try:
        _run([threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(size)], errors,
             time.monotonic() + timeout)
    finally:
        world._world = before
    for error in errors.values():           # the first one first
        raise error
    return results


def _run(threads, errors, end):
    for thread in threads:
        thread.start()
    while alive := [thread for thread in threads if thread.is_alive()]:
        alive[0].join(0.05)
        if errors:
            end = min(end, time.monotonic() + 10)       # those that wait for a rank that failed
        assert time.monotonic() < end, f"ranks wait for each other: {errors}"
