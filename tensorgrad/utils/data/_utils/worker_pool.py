"""The pool of worker processes of a ``DataLoader``, in the main process."""
from __future__ import annotations

import multiprocessing
import os
import signal
import time
import warnings
from collections.abc import Sequence
from multiprocessing.connection import wait
from multiprocessing.util import register_after_fork
from pickle import PicklingError

from .message_pipe import new_lane, pack, read, write
from .worker import Job, Reply, Task, run_worker

SECONDS_TO_FINISH = 5.0


class WorkerPool:
    """Processes that work on tasks; a task's reply is read from its worker."""

    def __init__(self, job: Job, context=None) -> None:
        context = context or multiprocessing.get_context()
        self.owner = os.getpid()
        self.processes: list = []
        self.tasks: list = []
        self.replies: list = []
        self.lanes: list = []
        try:
            for number in range(job.num_workers):
                self._start(context, job, number)
        except BaseException:
            self.close()
            raise

    def _start(self, context, job: Job, number: int) -> None:
        for_worker, tasks = context.Pipe(duplex=False)
        (replies, from_worker), lane = context.Pipe(), new_lane()
        # else a forked worker would hold both ends, and never notice that the other is closed
        for end in tasks, replies:
            register_after_fork(end, type(end).close)
        process = context.Process(target=run_worker, args=(job, number, for_worker, from_worker, lane), daemon=True)
        try:
            process.start()
        except (TypeError, AttributeError, PicklingError):
            warnings.warn('Got pickle error when attempting to start a worker Process. This might be because the '
                          'worker Process arguments are not picklable. The start method "fork" does not pickle them, '
                          'where it exists: multiprocessing_context="fork".', stacklevel=2)
            raise
        finally:
            for_worker.close()
            from_worker.close()
        self.processes.append(process)
        self.tasks.append(tasks)
        self.replies.append(replies)
        self.lanes.append(lane)

    def submit(self, worker: int, task: Task) -> None:
        try:
            write(self.tasks[worker], pack(task))
        except OSError:
            pass  # the worker is dead, which the next receive reports

    def receive(self, workers: Sequence[int], timeout: float | None = None) -> tuple[int, Reply]:
        """Return (worker, reply) for the next reply of any of the workers.

        RuntimeError if there is none within ``timeout`` seconds, or if a worker has died, which ends them all.
        """
        numbers = {self.replies[worker]: worker for worker in workers}
        ready = wait([*numbers, *(process.sentinel for process in self.processes)], timeout)
        if not ready:
            raise RuntimeError(f'DataLoader timed out after {timeout} seconds')
        for pipe in ready:
            if pipe in numbers:
                try:
                    worker = numbers[pipe]
                    return worker, read(pipe, self.lanes[worker])
                except (EOFError, OSError):
                    self.processes[numbers[pipe]].join(SECONDS_TO_FINISH)
        obituary = self._obituary(ready)
        self.close()
        raise RuntimeError(obituary)

    def _obituary(self, ready: Sequence) -> str:
        for process in self.processes:
            if process.sentinel in ready:
                process.join(SECONDS_TO_FINISH)  # the process is ending
        dead = [process for process in self.processes if not process.is_alive()]
        return '\n'.join([f'DataLoader worker (pid(s) {", ".join(str(process.pid) for process in dead)}) exited '
                          f'unexpectedly',
                          *(f'DataLoader worker (pid {process.pid}) {cause_of_death(process.exitcode)}'
                            for process in dead)])

    def close(self) -> None:
        """End all workers; those that do not finish in time are terminated."""
        processes, self.processes = self.processes, []
        if os.getpid() != self.owner:
            return  # workers belong to the parent of a forked process
        for tasks, replies in zip(self.tasks, self.replies, strict=True):
            try:
                write(tasks, pack(None))
            except OSError:
                pass
            tasks.close()
            replies.close()  # ends the sender of a worker that still holds a batch
        deadline = time.monotonic() + SECONDS_TO_FINISH
        for process in processes:
            process.join(max(0.0, deadline - time.monotonic()))
        for stop in 'terminate', 'kill':
            for process in processes:
                if process.is_alive():
                    getattr(process, stop)()
                    process.join(SECONDS_TO_FINISH)


def cause_of_death(code: int) -> str:
    if code < 0:
        return f'is killed by signal: {signal.strsignal(-code)}.'
    return (f'exited unexpectedly with exit code {code}. Details are lost due to multiprocessing. Rerunning with '
            'num_workers=0 may give better error trace.')
