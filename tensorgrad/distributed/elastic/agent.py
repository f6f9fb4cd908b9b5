"""Workers of one machine: started together, watched, ended together, and started again where a job asks for it."""
from __future__ import annotations

import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...multiprocessing import _process_cleanup
from .multiprocessing.errors import NOT_AVAILABLE, ChildFailedError, ProcessFailure
from .output import Console, Relay

__all__ = ["Agent", "Job", "Stopped"]

SIGNALS = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"
STREAMS = {"stdout": 1, "stderr": 2}        # the bits of --redirects and --tee


class Stopped(Exception):
    """The launcher was told to end, by a signal; workers have ended."""

    def __init__(self, number: int) -> None:
        super().__init__(f"Process {os.getpid()} got signal: {signal.Signals(number).name}")
        self.number = number


@dataclass
class Job:
    """Description of the job that a launcher runs.

    command: the command of the worker of a number. prefix: what its lines begin with; None hands its streams over as
        they are.
    redirects, tee: per worker, which streams (1 output, 2 errors, 3 both) go to files, and which to files and to the
        console.
    """

    name: str
    command: Callable[[int], Sequence[str]]
    workers: int
    run_id: str
    address: str = "127.0.0.1"
    port: int = 0                               # 0: one that is free, another one for each start
    role: str = "default"
    max_restarts: int = 0
    # seconds between two looks at the workers, where the system does not tell of their end
    interval: float = 0.1
    grace: float = 30.0                         # seconds between a signal and SIGKILL
    prefix: Callable[[int], str] | None = "[rank{}]: ".format
    redirects: Mapping[int, int] = field(default_factory=dict)
    tee: Mapping[int, int] = field(default_factory=dict)
    shown: frozenset[int] | None = None         # the workers whose lines are shown; None: all
    log_dir: str | None = None
    signals: str = SIGNALS
    environment: Mapping[str, str] = field(default_factory=dict)
    own_device: bool = False                    # each worker sees its own GPU alone, as number 0


class Agent:
    """Runs a job: `run` returns when all workers have ended well.

    Errors: ChildFailedError when one failed and there are no restarts left, Stopped after a signal; OSError if a worker
        cannot be started. Workers, and
    what they have started, are gone in each case. They end with this process, too, if it is killed: another one watches
    it.
    """

    def __init__(self, job: Job) -> None:
        self.job, self.console = job, Console()
        self._mark = secrets.token_hex(16)
        self._folder: Path | None = None

    def run(self) -> None:
        """Start the workers, and wait for them."""
        folder = self._made_folder()
        keep = self.job.log_dir is not None
        with _Signals(self.job.signals) as signals, self._watched("" if keep else str(folder)) as watcher:
            try:
                for attempt in range(self.job.max_restarts + 1):
                    failures = self._attempt(attempt, folder / f"attempt_{attempt}", signals, watcher)
                    if not failures:
                        return
                    if attempt < self.job.max_restarts:
                        rank, failure = next(iter(failures.items()))
                        how = failure.signal_name() if failure.exitcode < 0 else f"exit code {failure.exitcode}"
                        self.console.note(f"rank {rank} (pid {failure.pid}) failed: {how}; all workers start again, "
                                          f"restart {attempt + 1} of {self.job.max_restarts}")
                keep = keep or any(failure.error_file != NOT_AVAILABLE for failure in failures.values())
                raise ChildFailedError(self.job.name, failures)
            finally:
                if not keep:
                    _remove(folder)

    def _made_folder(self) -> Path:
        """The directory for the files of this run."""
        if self.job.log_dir is None:
            return Path(tempfile.mkdtemp(prefix="tensorgrad_run_"))
        Path(self.job.log_dir).mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f"{self.job.run_id.replace(os.sep, '_')}_", dir=self.job.log_dir))

    def _attempt(self, attempt: int, folder: Path, signals: _Signals, watcher: Any) -> dict[int, ProcessFailure]:
        """Start all workers and see them end: how they failed, by rank."""
        with _port(self.job.port) as port:
            workers = Workers(self.job, self.console, folder, watcher)
            sent = 0
            try:
                workers.start(self._variables(attempt, port))
                while not signals.seen and not self.console.broken and not workers.look():
                    signals.wait(self.job.interval)
                sent = signals.seen[-1] if signals.seen else 0
            finally:
                workers.end(sent or signal.SIGTERM, self.job.grace, signals)
                _process_cleanup.sweep(self._mark, grace=min(self.job.grace, _process_cleanup.GRACE))
                workers.finish()
        if sent:
            raise Stopped(sent)
        if self.console.broken:
            raise BrokenPipeError("nobody reads what the workers print")
        return workers.failures

    def _variables(self, attempt: int, port: int) -> dict[str, str]:
        """The environment that all workers of one start share, besides the launcher's own."""
        job, count = self.job, str(self.job.workers)
        return {**os.environ, **_process_cleanup.marked(dict(os.environ), self._mark), "GROUP_RANK": "0",
                "GROUP_WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": count, "WORLD_SIZE": count, "ROLE_WORLD_SIZE": count,
                "ROLE_NAME": job.role, "MASTER_ADDR": job.address, "MASTER_PORT": str(port),
                "TORCHELASTIC_RUN_ID": job.run_id, "TORCHELASTIC_RESTART_COUNT": str(attempt),
                "TORCHELASTIC_MAX_RESTARTS": str(job.max_restarts), "TORCHELASTIC_USE_AGENT_STORE": "False",
                "TORCHELASTIC_SIGNALS_TO_HANDLE": job.signals,
                "TENSORGRAD_SECRET": secrets.token_hex(32),
                **job.environment}

    @contextmanager
    def _watched(self, folder: str) -> Iterator[Any]:
        """A process that ends the workers, and removes their folder, when this one is gone, which it learns from the
        end of a pipe; yields what tells it of workers."""
        if os.name != "posix":
            yield lambda line: None
            return
        watcher = subprocess.Popen([sys.executable, "-I", "-S", _process_cleanup.__file__], stdin=subprocess.PIPE,
                                   stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, start_new_session=True)
        pipe: Any = watcher.stdin

        def tell(line: str) -> None:
            with suppress(BrokenPipeError):
                pipe.write(f"{line}\n".encode())
                pipe.flush()
        tell(f"{self._mark}\n{folder}")
        try:
            yield tell
        finally:
            tell("done")
            pipe.close()
            watcher.wait()


class Workers:
    """The processes of one start."""

    def __init__(self, job: Job, console: Console, folder: Path, watcher: Callable[[str], None]) -> None:
        self.job, self.console, self.folder, self.watcher = job, console, folder, watcher
        self.running: dict[int, subprocess.Popen[bytes]] = {}
        self.relays: list[Relay] = []
        self.failures: dict[int, ProcessFailure] = {}

    def start(self, variables: dict[str, str]) -> None:
        """Start all of them."""
        for i in range(self.job.workers):
            folder = self.folder / str(i)
            folder.mkdir(parents=True)
            own = {"RANK": str(i), "LOCAL_RANK": str(i), "ROLE_RANK": str(i),
                   "TORCHELASTIC_ERROR_FILE": str(folder / "error.json")}
            if self.job.own_device:
                devices = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
                own |= {"LOCAL_RANK": "0", "CUDA_VISIBLE_DEVICES": devices[i].strip() if i < len(devices) and devices[i]
                        else str(i)}
            streams = {name: self._target(i, name, folder) for name in STREAMS}
            try:
                process = subprocess.Popen(self.job.command(i), env=variables | own,
                                           stdin=None if i == 0 else subprocess.DEVNULL,
                                           start_new_session=os.name == "posix", **streams)
            finally:
                for stream in streams.values():
                    if hasattr(stream, "close"):
                        stream.close()
            self.running[i] = process
            self.watcher(f"+{process.pid}")
            for name in STREAMS:
                if (pipe := getattr(process, name)) is not None:
                    self._relay(i, name, pipe, folder)

    def _target(self, i: int, name: str, folder: Path) -> Any:
        """Where a stream of a worker goes: to a pipe, to a file, or to where this process's own goes (None)."""
        if self._wants(self.job.tee, i, name):
            return subprocess.PIPE
        if self._wants(self.job.redirects, i, name):
            return open(folder / f"{name}.log", "wb")
        return None if self.job.prefix is None else subprocess.PIPE

    def _wants(self, asked: Mapping[int, int], i: int, name: str) -> bool:
        return bool(asked.get(i, 0) & STREAMS[name])

    def _relay(self, i: int, name: str, pipe: Any, folder: Path) -> None:
        file = open(folder / f"{name}.log", "wb") if self._wants(self.job.tee, i, name) else None
        console = self.console if self.job.shown is None or i in self.job.shown else None
        prefix = "" if self.job.prefix is None else self.job.prefix(i)
        relay = Relay(pipe, console, name, prefix.encode("utf-8", "surrogateescape"), file)
        relay.start()
        self.relays.append(relay)

    def look(self) -> bool:
        """Note who has ended: whether all have, or one has failed."""
        for i, process in list(self.running.items()):
            if process.poll() is not None:
                del self.running[i]
                self.watcher(f"-{process.pid}")
                if process.returncode:
                    self.failures[i] = ProcessFailure(i, process.pid, process.returncode,
                                                      str(self.folder / str(i) / "error.json"))
        return not self.running or bool(self.failures)

    def end(self, number: int, grace: float, signals: _Signals) -> None:
        """Send a signal to those that still run, and to what they have started; SIGKILL after a grace period.

        Signals that come meanwhile are passed on.
        """
        # who waits for a rank that is killed may end before it: its end comes in a moment
        if self.failures and self.running:
            signals.wait(0.05)
            self.look()
        failures = dict(self.failures)          # what comes after is this signal's doing
        self._send(number)
        passed, end = len(signals.seen), time.monotonic() + grace
        while self.running and time.monotonic() < end:
            signals.wait(min(self.job.interval, max(0.0, end - time.monotonic())))
            self.look()
            for later in signals.seen[passed:]:
                self._send(later)
            passed = len(signals.seen)
        if self.running:
            pids = ", ".join(f"{i} (pid {process.pid})" for i, process in self.running.items())
            self.console.note(f"{grace:g} s after {signal.Signals(number).name}, SIGKILL ends rank {pids}")
            self._send(getattr(signal, "SIGKILL", signal.SIGTERM))
        for process in self.running.values():
            process.wait()
        self.look()
        self.failures = failures

    def _send(self, number: int) -> None:
        for process in self.running.values():
            with suppress(ProcessLookupError, PermissionError):
                if hasattr(os, "killpg"):
                    os.killpg(process.pid, number)
                else:
                    process.terminate()

    def finish(self) -> None:
        """Wait for the last lines."""
        end = time.monotonic() + 10
        for relay in self.relays:
            relay.join(max(0.0, end - time.monotonic()))


class _Signals:
    """Signals that this process is sent while it waits for workers. They can be caught in the main thread only."""

    def __init__(self, names: str) -> None:
        self.seen: list[int] = []
        self._numbers = [number for name in names.split(",")
                         if (number := getattr(signal, name.strip(), None)) is not None]
        self._before: dict[int, Any] = {}
        self._ends: tuple[socket.socket, socket.socket] | None = None

    def __enter__(self) -> _Signals:
        if threading.current_thread() is threading.main_thread():
            self._ends = reader, writer = socket.socketpair()
            reader.setblocking(False)
            writer.setblocking(False)
            self._wake = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
            for number in self._numbers:
                if signal.getsignal(number) is not signal.SIG_IGN:          # nohup's wish
                    self._before[number] = signal.signal(number, lambda number, frame: self.seen.append(number))
            if hasattr(signal, "SIGCHLD"):
                self._before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda number, frame: None)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        if self._ends is not None:
            signal.set_wakeup_fd(self._wake)
            for end in self._ends:
                end.close()

    def wait(self, seconds: float) -> None:
        """Until a signal comes, SIGCHLD of a worker's end among them, or time is up."""
        if self._ends is None:
            time.sleep(seconds)
        elif select.select([self._ends[0]], [], [], seconds)[0]:
            with suppress(BlockingIOError):
                self._ends[0].recv(4096)


@contextmanager
def _port(asked: int) -> Iterator[int]:
    """A port of this machine on which no one listens. Where the system allows it, no other program is given it
    meanwhile: this process holds it, without listening, and the first worker can still listen there. OSError if the
        port that was asked for is taken."""
    holder = socket.socket()
    try:
        if os.name == "posix":
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            holder.bind(("127.0.0.1", asked))
        except OSError as error:
            raise OSError(error.errno, f"port {asked} cannot be used for the workers to meet: "
                                       f"{os.strerror(error.errno or 0)}") from None
        port: int = holder.getsockname()[1]
        if sys.platform != "linux":
            holder.close()
        yield port
    finally:
        holder.close()


def _remove(folder: Path) -> None:
    import shutil
    shutil.rmtree(folder, ignore_errors=True)
