"""Errors of worker processes, which reach the launcher in files. https://pytorch.org/docs/stable/elastic/errors.html

A worker that is started by `python -m tensorgrad.distributed.run` is told the name of a file, in
TORCHELASTIC_ERROR_FILE. `record` writes the exception
that ends a program into it, as JSON; the launcher shows its traceback.
"""
from __future__ import annotations

import faulthandler
import json
import os
import shutil
import signal
import socket
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import wraps
from typing import Any

__all__ = ["ChildFailedError", "ErrorHandler", "ProcessFailure", "get_error_handler", "record"]

NOT_AVAILABLE = "<N/A>"
HOW = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"


class ErrorHandler:
    """Writes the exception that ends a program into the file that TORCHELASTIC_ERROR_FILE names, if there is one."""

    def _get_error_file_path(self) -> str | None:
        return os.environ.get("TORCHELASTIC_ERROR_FILE")

    def initialize(self) -> None:
        """Let crashes of the interpreter print a traceback, too, where the standard error is a file of the system."""
        with suppress(Exception):           # faulthandler has errors of several types for a stderr without descriptor
            faulthandler.enable(all_threads=True)

    def record_exception(self, e: BaseException) -> None:
        """Write an exception and its traceback."""
        path = self._get_error_file_path()
        if path:
            trace = "".join(traceback.format_exception(e))
            about = {"py_callstack": trace, "timestamp": str(int(time.time()))}
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"message": {"message": f"{type(e).__name__}: {e}", "extraInfo": about}}, file)

    def dump_error_file(self, rootcause_error_file: str, error_code: int = 0) -> None:
        """Hand the error of a worker on to the launcher of this launcher, with the exit code."""
        path = self._get_error_file_path()
        if path:
            data = _read(rootcause_error_file)
            if data is None:
                shutil.copyfile(rootcause_error_file, path)
                return
            if error_code and isinstance(data["message"], dict):
                data["message"]["errorCode"] = error_code
            with open(path, "w", encoding="utf-8") as file:
                json.dump(data, file)


def get_error_handler() -> ErrorHandler:
    """The handler that `record` uses."""
    return ErrorHandler()


def _read(path: str) -> dict[str, Any] | None:
    """Read an error file; None if it is missing or incomplete (a worker may be killed while it writes)."""
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
        return data if isinstance(data, dict) and "message" in data else None
    except (OSError, ValueError):
        return None


@dataclass
class ProcessFailure:
    """How a worker failed: its number on this machine, pid and exit code (minus the signal), and its error file, where
    `record` has written one.
    """

    local_rank: int
    pid: int
    exitcode: int
    error_file: str
    error_file_data: dict[str, Any] = field(init=False)
    message: Any = field(init=False)
    timestamp: int = field(init=False)

    def __post_init__(self) -> None:
        data = _read(self.error_file)
        self.timestamp = int(time.time())
        if data is not None:
            self.error_file_data, self.message = data, data["message"]
            with suppress(KeyError, TypeError, ValueError):
                self.timestamp = int(data["timestamp"] if isinstance(self.message, str)
                                     else self.message["extraInfo"]["timestamp"])
        else:
            self.error_file, self.error_file_data = NOT_AVAILABLE, {"message": "<NONE>"}
            self.message = (f"Signal {-self.exitcode} ({self.signal_name()}) received by PID {self.pid}"
                            if self.exitcode < 0 else HOW)

    def signal_name(self) -> str:
        """The name of the signal that ended it; "<N/A>" if none did."""
        try:
            return signal.Signals(-self.exitcode).name if self.exitcode < 0 else NOT_AVAILABLE
        except ValueError:
            return NOT_AVAILABLE

    def timestamp_isoformat(self) -> str:
        """When, as YYYY-MM-DD_HH:MM:SS."""
        return datetime.fromtimestamp(self.timestamp).isoformat(sep="_")

    def lines(self, index: int, rank: int) -> list[str]:
        """Describe the failure for the summary."""
        message = self.message
        if isinstance(message, dict):
            about = message.get("extraInfo")
            message = (about if isinstance(about, dict) else {}).get("py_callstack",
                                                                     message.get("message", NOT_AVAILABLE))
        name = f"({self.signal_name()})" if self.exitcode < 0 else ""
        return [f"[{index}]:", f"  time      : {self.timestamp_isoformat()}", f"  host      : {socket.gethostname()}",
                f"  rank      : {rank} (local_rank: {self.local_rank})",
                f"  exitcode  : {self.exitcode} (pid: {self.pid}) {name}",
                f"  error_file: {self.error_file}", "  traceback : " + str(message).rstrip().replace("\n", "\n  ")]


class ChildFailedError(Exception):
    """Workers failed: `failures` by rank. The text tells of each, and which was the first."""

    def __init__(self, name: str, failures: dict[int, ProcessFailure]) -> None:
        if not failures:
            raise AssertionError("a ChildFailedError reports at least one failure")
        self.name, self.failures = name, failures
        super().__init__(self.format_msg())

    def get_first_failure(self) -> tuple[int, ProcessFailure]:
        """Rank and failure of the one that failed first; among those of one second, one that a signal ended, since
        others fail when a rank is gone.
        """
        rank = min(self.failures, key=lambda r: (self.failures[r].timestamp, self.failures[r].exitcode >= 0))
        return rank, self.failures[rank]

    def format_msg(self, boarder_delim: str = "=", section_delim: str = "-") -> str:
        """The text."""
        first = self.get_first_failure()[0]
        told = {rank: failure.lines(index, rank) for index, (rank, failure) in enumerate(self.failures.items())}
        others = [line for rank, lines in told.items() if rank != first for line in lines] or ["  <NO_OTHER_FAILURES>"]
        title = f"{self.name} FAILED"
        width = min(60, max(map(len, [title, *(line for lines in told.values() for line in lines)])))
        border, section = boarder_delim * width, section_delim * width
        return "\n".join(["", border, title, section, "Failures:", *others, section,
                          "Root Cause (first observed failure):", *told[first], border])


def record(fn: Callable[..., Any], error_handler: ErrorHandler | None = None) -> Callable[..., Any]:
    """Let the launcher know the exception that ends a function: a decorator for the main function of a program.

    The exception is raised as before. Source: https://pytorch.org/docs →
        torch.distributed.elastic.multiprocessing.errors.record

    >>> from tensorgrad.distributed.elastic.multiprocessing.errors import record
    >>> @record
    ... def main():
    ...     return "trained"
    >>> main()
    'trained'
    """
    handler = error_handler or get_error_handler()

    @wraps(fn)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        handler.initialize()
        try:
            return fn(*args, **kwargs)
        except SystemExit as ended:
            if ended.code == 0:
                return None
            raise
        except ChildFailedError as error:
            failure = error.get_first_failure()[1]
            if failure.error_file != NOT_AVAILABLE:
                handler.dump_error_file(failure.error_file, failure.exitcode)
            raise
        except Exception as error:
            handler.record_exception(error)
            raise
    return recorded
