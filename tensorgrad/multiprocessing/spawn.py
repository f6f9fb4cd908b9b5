"""Start processes that run a function, and raise the first error of theirs here."""
from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from contextlib import suppress
from multiprocessing.connection import wait
from typing import Any

from ._process_cleanup import GRACE, descendants, end_all

__all__ = ["ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException", "SpawnContext",
           "spawn", "start_processes"]

ENV_VAR_PARALLEL_START = "TORCH_MP_PARALLEL_START"
# bytes of a message: below the size that a pipe writes atomically, so that a killed process leaves no partial message
PIECE = 4000


class ProcessException(Exception):
    """A process failed: its index and its pid."""

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid = msg, error_index, error_pid

    pid = property(lambda self: self.error_pid)

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """A process raised an exception."""


class ProcessExitedException(ProcessException):
    """A process ended with an exit code."""

    def __init__(self, msg: str, error_index: int, error_pid: int, exit_code: int,
                 signal_name: str | None = None) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.error_pid, self.exit_code, self.signal_name)


def _end_with_the_parent() -> None:
    """Interrupt this process when its parent ends, and kill it if it survives: an interrupt can be ignored, or come
    just before a blocking call."""
    parent: Any = multiprocessing.parent_process()
    wait([parent.sentinel])
    for name in ("SIGINT", "SIGTERM", "SIGKILL"):
        if name == "SIGTERM":           # most processes end by SIGTERM without ending their children
            end_all(descendants([os.getpid()]))
        os.kill(os.getpid(), getattr(signal, name, signal.SIGTERM))
        time.sleep(2)


def _run(fn: Any, i: int, args: Any, errors: Any) -> None:
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass                # the parent received it as well
    except Exception:
        text = f"{time.time_ns()}\n{traceback.format_exc()}".encode("utf-8", "backslashreplace")
        with suppress(OSError):         # the reader may be gone
            for start in range(0, len(text), PIECE):
                errors.send_bytes(text[start:start + PIECE])
        sys.exit(1)


def _log(text: str, pid: int) -> None:
    import logging  # imported late: few programs need it

    logging.getLogger("torch.multiprocessing.spawn").warning(text, pid)      # as PyTorch names it


class ProcessContext:
    """Running processes, and the pipes through which they report errors.
    https://pytorch.org/docs → torch.multiprocessing.spawn
    """

    def __init__(self, processes: list[Any], errors: list[Any]) -> None:
        self.processes, self.errors = processes, errors
        self.sentinels = {process.sentinel: index for index, process in enumerate(processes)}
        self._told: dict[int, bytes] = {}

    def add(self, process: Any, errors: Any) -> None:
        """Add a process."""
        self.sentinels[process.sentinel] = len(self.processes)
        self.processes.append(process)
        self.errors.append(errors)

    def pids(self) -> list[int]:
        """Return the pids."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait up to `timeout` seconds for a process to end; return True if all have ended.

        If one failed, the others are ended, and its error is raised: ProcessRaisedException or ProcessExitedException.
            Others have `grace_period` seconds
        to end by themselves, then as long (30 s without a grace period) to follow SIGTERM; then they are killed.
        """
        if not self.sentinels:
            return True
        failed = self._ended(timeout)
        if not failed:
            return not self.sentinels
        if grace_period is not None:
            self._join_procs_with_timeout(grace_period)
        self.end(30 if grace_period is None else grace_period)
        raise self._error(min(failed, key=self._when))

    def _ended(self, timeout: float | None) -> list[int]:
        """Wait for processes to end, and return those that failed.

        Reads their pipes meanwhile, because a full pipe would block them.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            pipes = [pipe for pipe in self.errors if pipe is not None]
            ready = wait([*self.sentinels, *pipes], None if end is None else max(0.0, end - time.monotonic()))
            self._read()
            ended = [self.sentinels.pop(one) for one in ready if one in self.sentinels]
            for index in ended:
                self.processes[index].join()
            if ended or not ready:
                return [index for index in ended if self.processes[index].exitcode]

    def _read(self) -> None:
        """Read available error messages."""
        for index, pipe in enumerate(self.errors):
            try:
                while pipe is not None and pipe.poll():
                    self._told[index] = self._told.get(index, b"") + pipe.recv_bytes()
            except (EOFError, OSError):
                pipe.close()
                self.errors[index] = None

    def _when(self, index: int) -> int:
        """Return the time at which a process failed, for sorting; processes killed from outside come first, since
        others fail because of them."""
        return int(self._told.get(index, b"").partition(b"\n")[0] or 0)

    def _join_procs_with_timeout(self, timeout: float) -> None:
        end = time.monotonic() + timeout
        for process in self.processes:
            process.join(max(0.0, end - time.monotonic()))

    def end(self, seconds: float = 30) -> None:
        """End all running processes and their descendants: by SIGTERM, and by SIGKILL after `seconds`."""
        own = descendants(process.pid for process in self.processes if process.is_alive())
        for process in self.processes:
            if process.is_alive():
                _log("Terminating process %s via signal SIGTERM", process.pid)
                process.terminate()
        self._join_procs_with_timeout(seconds)
        for process in self.processes:
            if process.is_alive():
                _log("Unable to shutdown process %s via SIGTERM, forcefully exiting via SIGKILL", process.pid)
                process.kill()
            process.join()
        end_all(own, min(seconds, GRACE))
        self._read()

    def _error(self, index: int) -> Exception:
        process, told = self.processes[index], self._told.get(index, b"")
        self.sentinels.clear()
        if told:
            text = told.partition(b"\n")[2].decode("utf-8", "replace")
            return ProcessRaisedException(f"\n\n-- Process {index} terminated with the following error:\n{text}", index,
                                          process.pid)
        if process.exitcode < 0:
            try:
                name = signal.Signals(-process.exitcode).name
            except ValueError:
                name = f"<Unknown signal {-process.exitcode}>"
            return ProcessExitedException(f"process {index} terminated with signal {name}", index, process.pid,
                                          process.exitcode, name)
        return ProcessExitedException(f"process {index} terminated with exit code {process.exitcode}", index,
                                      process.pid, process.exitcode)


class SpawnContext(ProcessContext):
    """The old name of ProcessContext."""

    def __init__(self, processes: list[Any], errors: list[Any]) -> None:
        warnings.warn("SpawnContext is renamed to ProcessContext since 1.4 release.", stacklevel=2)
        super().__init__(processes, errors)


def _started(context: Any, fn: Any, i: int, args: Any, daemon: bool) -> tuple[Any, Any]:
    """Start a process, and return it with the pipe of its errors."""
    reader, writer = context.Pipe(duplex=False)
    try:
        process = context.Process(target=_run, args=(fn, i, args, writer), daemon=daemon)
        process.start()
    except BaseException:
        reader.close()
        raise
    finally:
        writer.close()
    return process, reader


def start_processes(fn: Any, args: Any = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
                    start_method: str = "spawn") -> ProcessContext | None:
    """Start processes that call fn(i, *args), and with `join` wait for them.

    start_method: "spawn" (new interpreters; fn and args are pickled), "fork" or "forkserver". Without `join`, the
        result is a ProcessContext. The error of the
    first process that fails is raised, after the others were ended; they are ended, too, if this process leaves the
    call by another exception, as after
    Ctrl-C, and if it is killed. TORCH_MP_PARALLEL_START=1 in the environment starts them in parallel by "forkserver".
    Errors: ProcessRaisedException, ProcessExitedException.

    https://pytorch.org/docs → torch.multiprocessing.start_processes
    """
    context: Any = multiprocessing.get_context(start_method)
    running = ProcessContext([], [])
    started: list[Any] = [None] * nprocs

    def start(i: int) -> None:
        started[i] = _started(context, fn, i, args, daemon)
    try:
        try:
            if start_method == "forkserver" and os.environ.get(ENV_VAR_PARALLEL_START, "0") == "1":
                from concurrent.futures import ThreadPoolExecutor
                with ThreadPoolExecutor(max_workers=max(nprocs, 1)) as pool:
                    list(pool.map(start, range(nprocs)))
            else:
                list(map(start, range(nprocs)))
        finally:
            for process in filter(None, started):
                running.add(*process)
        while join and not running.join():
            pass
    except ProcessException:
        raise
    except BaseException:
        running.end(5)
        raise
    return None if join else running


def spawn(fn: Any, args: Any = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
          start_method: str = "spawn") -> ProcessContext | None:
    """Start new interpreters that call fn(i, *args). https://pytorch.org/docs → torch.multiprocessing.spawn"""
    if start_method != "spawn":
        warnings.warn(f"This method only supports start_method=spawn (got: {start_method}).\nTo use a different "
                      "start_method use:\n\t\t torch.multiprocessing.start_processes(...)", FutureWarning, stacklevel=2)
    return start_processes(fn, args, nprocs, join, daemon)
