"""Start processes that run one function, and raise here what one of them raises."""
from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from multiprocessing.connection import wait
from typing import Any

__all__ = ["ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException", "SpawnContext", "spawn", "start_processes"]


class ProcessException(Exception):
    """A process failed: which one, and its pid."""

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """A process raised an exception."""


class ProcessExitedException(ProcessException):
    """A process ended with an exit code."""

    def __init__(self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


def _end_with_the_parent() -> None:
    """An interrupt can be ignored, or come just before a call that then waits: what is still there after it is ended."""
    parent: Any = multiprocessing.parent_process()
    wait([parent.sentinel])
    for what in (signal.SIGINT, signal.SIGTERM):
        os.kill(os.getpid(), what)
        time.sleep(2)


def _run(fn: Any, i: int, args: Any, errors: Any) -> None:
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass                # the parent got it, too
    except Exception:
        errors.put(traceback.format_exc())
        sys.exit(1)


class ProcessContext:
    """Processes that run. https://pytorch.org/docs → torch.multiprocessing.spawn"""

    def __init__(self, processes: list[Any], errors: list[Any]) -> None:
        self.processes, self.error_queues = processes, errors
        self.sentinels = {process.sentinel: index for index, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """Their numbers."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait for one of them, or until all are done: True. If one failed, the others are ended, and its error is raised."""
        if not self.sentinels:
            return True
        failed = None
        for sentinel in wait(list(self.sentinels), timeout):
            index = self.sentinels.pop(sentinel)        # type: ignore[arg-type]
            self.processes[index].join()
            if self.processes[index].exitcode:
                failed = index
                break
        if failed is None:
            return not self.sentinels
        for process in self.processes:
            if process.is_alive():
                process.terminate()
            process.join()
        raise self._error(failed)

    def _error(self, index: int) -> Exception:
        process, errors = self.processes[index], self.error_queues[index]
        if not errors.empty():
            return ProcessRaisedException(f"\n\n-- Process {index} terminated with the following error:\n{errors.get()}", index, process.pid)
        if process.exitcode < 0:
            name = signal.Signals(-process.exitcode).name
            return ProcessExitedException(f"process {index} terminated with signal {name}", index, process.pid, process.exitcode, name)
        return ProcessExitedException(f"process {index} terminated with exit code {process.exitcode}", index, process.pid, process.exitcode)


SpawnContext = ProcessContext


def start_processes(fn: Any, args: Any = (), nprocs: int = 1, join: bool = True, daemon: bool = False, start_method: str = "spawn") -> ProcessContext | None:
    """Start processes that call fn(i, *args). https://pytorch.org/docs → torch.multiprocessing.start_processes"""
    context: Any = multiprocessing.get_context(start_method)
    processes, errors = [], []
    for i in range(nprocs):
        queue = context.SimpleQueue()
        process = context.Process(target=_run, args=(fn, i, args, queue), daemon=daemon)
        process.start()
        processes.append(process)
        errors.append(queue)
    running = ProcessContext(processes, errors)
    if not join:
        return running
    while not running.join():
        pass
    return None


def spawn(fn: Any, args: Any = (), nprocs: int = 1, join: bool = True, daemon: bool = False, start_method: str = "spawn") -> ProcessContext | None:
    """Start processes that begin afresh and call fn(i, *args). https://pytorch.org/docs → torch.multiprocessing.spawn"""
    return start_processes(fn, args, nprocs, join, daemon, start_method)
