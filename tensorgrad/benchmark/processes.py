"""The asking side of processes that measure: requests and answers are pickles in pipes."""
from __future__ import annotations

import pickle
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

PATIENCE = 600.0                     # seconds for an answer, after which a process is ended: some compile for minutes


class Problem(Exception):
    """Why there is no measurement."""


class Process:
    """A process that answers; the next request starts another when it is lost.

    A new process first sends a description of itself, `about`; an answer is (result, text of a problem or "").
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], folder: Path | None = None) -> None:
        self.command, self.environment, self.folder = list(command), dict(environment), folder
        self.process: subprocess.Popen[bytes] | None = None
        self.about: dict[str, Any] = {}

    def problem(self, text: str) -> Exception:
        """Return the exception to raise."""
        return Problem(text)

    def ask(self, *request: Any) -> Any:
        """Return the answer of the process. `problem` is raised if it says that there is one, or ends."""
        fresh = self.process is None
        process = self.process = self.process or subprocess.Popen(
            self.command, cwd=self.folder, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdin is not None and process.stdout is not None
        alarm = threading.Timer(PATIENCE, process.kill)
        alarm.start()
        try:
            pickle.dump(request, process.stdin)
            process.stdin.flush()
            if fresh:
                self.about = pickle.load(process.stdout)
            answer, problem = pickle.load(process.stdout)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            raise self.problem(f"failed: its process ended with status {self.stop()}") from None
        finally:
            alarm.cancel()
        if problem:
            raise self.problem(problem)
        return answer

    def stop(self) -> int | None:
        """End the process, if there is one, and return its status."""
        process, self.process = self.process, None
        with suppress(BrokenPipeError), process or nullcontext():
            pass
        return process.returncode if process is not None else None


def pools(threads: int) -> dict[str, str]:
    """Return the variables of an environment that say how many threads the libraries' pools have.

    PyTorch's threads would share a processor at times, for seconds, and small networks take three times as long: they
    are bound.
    """
    # the last is tinygrad's
    names = [f"{pool}_THREADS" for pool in ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "NUM_CPU")]
    return dict.fromkeys(names, str(threads)) | {"OMP_PROC_BIND": "true"}
