"""Ranks as threads of one process: the programs of tests that need groups, but no processes."""
import threading
import time

from tensorgrad import distributed as dist


def as_threads(size, program, timeout=60):
    """What `program(rank, group)` gives on each of so many ranks, each a thread; the first error that a rank raised."""
    store, results, errors = dist.HashStore(), [None] * size, {}

    def run(rank):
        try:
            results[rank] = program(rank, group_of(store, rank, size))
        except BaseException as error:
            errors[rank] = error
    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + timeout
    while any(thread.is_alive() for thread in threads) and not errors and time.monotonic() < end:
        next(thread for thread in threads if thread.is_alive()).join(0.05)
    for error in errors.values():           # the first one first
        raise error
    assert not any(thread.is_alive() for thread in threads), "ranks wait for each other"
    return results


def group_of(store, rank, size):
    return dist.ProcessGroup(dist.PrefixStore("ranks", store), rank, size)
