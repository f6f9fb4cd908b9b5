"""Sweeps: runs of one configuration with different settings, several at a time, of which sweep.json knows the plan and
the states.

A sweep can be stopped at any moment, also by `kill -9`, and goes on: finished runs stay, half-done ones resume from
their checkpoints."""

from __future__ import annotations

import itertools
import math
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..messages.escaping import escaped
from . import directory, files, provenance
from .config import ConfigError, Mistake, dump, override
from .launch import FAILED, INTERRUPTED, OK, WATCHED, Refused, Request, devices_of, import_project, read_config, say

PLAN, CONFIG, OUTPUT = "sweep.json", "config.yaml", "output"
MOST = 10_000  # runs
THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
RANGE = re.compile(r"([^:]+):([^:]+?)(:log)?")
PATIENCE = 30.0  # seconds that a process may take to save and end
TOLD = 12  # lines of a failed run's output


# ── plans ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def choices(words: Sequence[str]) -> dict[str, list[Any]]:
    """Settings and their values from `key=a,b,c`. ConfigError with all mistakes.

    >>> choices(["optimizer.args.lr=0.1,1e-3", "model.args.sizes=[8],[8, 8]"])
    {'optimizer.args.lr': [0.1, 0.001], 'model.args.sizes': [[8], [8, 8]]}
    """
    found, mistakes = {}, []
    for word in words:
        key, equals, text = word.partition("=")
        try:
            values = override({}, [f"values=[{text}]"])["values"] if equals else []
            if not isinstance(values, list) or not values:
                raise ConfigError([Mistake("", "a setting is written key=a,b,c")])
            if key in found:
                raise ConfigError([Mistake("", "the setting is given twice")])
            found[key] = values
        except ConfigError as error:
            mistakes += [Mistake(key, mistake.message) for mistake in error.mistakes]
    if mistakes:
        raise ConfigError(mistakes)
    return found


def grid(words: Sequence[str]) -> list[dict[str, Any]]:
    """All combinations of the settings' values, the last setting changing fastest.

    >>> grid(["a=1,2", "b=x"])
    [{'a': 1, 'b': 'x'}, {'a': 2, 'b': 'x'}]
    """
    found = choices(words)
    if (number := math.prod(map(len, found.values()))) > MOST:
        raise Refused(f"the grid has {number:,} combinations, and a sweep has at most {MOST:,} runs")
    return [dict(zip(found, values)) for values in itertools.product(*found.values())]


def draws(number: int, words: Sequence[str], seed: int) -> list[dict[str, Any]]:
    """Random settings: `key=low:high` is uniform, over integers where both are, `key=low:high:log` uniform in the
    logarithm, `key=a,b,c` one of these.

    >>> [list(draw) for draw in draws(2, ["lr=1e-4:1e-1:log", "width=8:64", "kind=SGD,Adam"], seed=0)]
    [['lr', 'width', 'kind'], ['lr', 'width', 'kind']]
    """
    if not 1 <= number <= MOST:
        raise Refused(f"--random takes a number of runs from 1 to {MOST:,}, not {number}")
    ranges, mistakes, stream = {}, [], random.Random(seed)
    for word in words:
        key, _, text = word.partition("=")
        match = RANGE.fullmatch(text)
        try:
            ranges[key] = _range(match) if match else choices([word])[key]
        except ConfigError as error:
            mistakes += [Mistake(key, mistake.message) for mistake in error.mistakes]
    if mistakes:
        raise ConfigError(mistakes)
    return [{key: _drawn(one, stream) for key, one in ranges.items()} for _ in range(number)]


def _range(match: re.Match[str]) -> tuple[float, float, bool]:
    ends = [override({}, [f"end={text}"])["end"] for text in match.groups()[:2]]
    if any(isinstance(end, bool) or not isinstance(end, (int, float)) or not math.isfinite(end) for end in ends):
        raise ConfigError([Mistake("", "a range is written low:high or low:high:log, with numbers")])
    low, high = ends
    if low > high or match[3] and low <= 0:
        raise ConfigError(
            [Mistake("", f"{low}:{high} is no range" + (": a logarithmic one is above 0" if match[3] else ""))]
        )
    return low, high, bool(match[3])


def _drawn(one: Any, stream: random.Random) -> Any:
    if isinstance(one, list):
        return stream.choice(one)
    low, high, log = one
    if log:
        value = math.exp(stream.uniform(math.log(low), math.log(high)))
        return (
            min(max(round(value), low), high)
            if isinstance(low, int) and isinstance(high, int)
            else float(f"{value:.6g}")
        )
    return (
        stream.randint(low, high)
        if isinstance(low, int) and isinstance(high, int)
        else float(f"{stream.uniform(low, high):.6g}")
    )


def written(settings: Mapping[str, Any]) -> list[str]:
    """Settings as words of a command line, which read back the same.

    >>> written({"a.b": 0.1, "c": [1, 2], "d": "1e3", "e": None})
    ['a.b=0.1', 'c=[1, 2]', "d='1e3'", 'e=null']
    """
    import json

    words = []
    for key, value in settings.items():
        text = json.dumps(value) if isinstance(value, (dict, list)) else dump({"v": value})[3:].strip()
        words.append(f"{key}={text}")
    return words


def folder_name(index: int, number: int, settings: Mapping[str, Any]) -> str:
    """The name of a run's directory: its number and its settings.

    >>> folder_name(3, 12, {"optimizer.args.lr": 0.1, "model.args.hidden_list": [8, 8]})
    '03-lr=0.1,hidden_list=8-8'
    """
    parts = [f"{key.rpartition('.')[2]}={value}" for key, value in settings.items()]
    text = re.sub(r"[^\w.,=+-]+", "-", ",".join(part.replace("[", "").replace("]", "") for part in parts))
    return f"{index:0{len(str(max(number - 1, 1)))}d}-{text.replace(',-', '-')[:80]}".rstrip("-.,")


# ── sweeps ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Sweep:
    """A plan and its progress, in a directory below save/."""

    def __init__(self, path: Path, plan: dict[str, Any]) -> None:
        self.path, self.plan = path, plan

    @property
    def runs(self) -> list[dict[str, Any]]:
        """Name, settings, status and exit code of each run."""
        return self.plan["runs"]

    @classmethod
    def begin(cls, path: Path, request: Request, settings: list[dict[str, Any]], words: Mapping[str, Any]) -> Sweep:
        """Create a sweep, after checking its configurations; or load the existing one, if its plan is equal.
        ConfigError, Refused."""
        folder = import_project(request)
        config = read_config(request.config, request.overrides)
        _check(config, settings)
        plan = {
            "format": 1,
            "words": dict(words),
            "project": None if folder is None else str(folder.resolve()),
            "created": provenance.now(),
            "runs": [
                {
                    "name": folder_name(i, len(settings), one),
                    "settings": written(one),
                    "status": "waiting",
                    "code": None,
                }
                for i, one in enumerate(settings)
            ],
        }
        if (path / PLAN).exists():
            old = cls.load(path)
            if [run["settings"] for run in old.runs] != [run["settings"] for run in plan["runs"]] or read_config(
                path / CONFIG
            ) != config:
                raise Refused(
                    f"{path} holds a sweep with another plan or configuration: "
                    f"sweep --resume {path.name} continues it, --name begins another"
                )
            return old
        if path.exists() and any(path.iterdir()):
            raise Refused(f"{path} is not empty, and no sweep: --name begins one elsewhere")
        sweep = cls(path, plan)
        try:
            (path / OUTPUT).mkdir(parents=True, exist_ok=True)
            files.write(path / CONFIG, dump(config).encode())
            sweep.save()
        except OSError as error:
            raise Refused(f"{error.filename or path}: {error.strerror or error}") from None
        return sweep

    @classmethod
    def load(cls, path: Path) -> Sweep:
        """The sweep in a directory. Refused if there is none, or its plan is damaged."""
        try:
            plan = files.read_json(path / PLAN)
            if plan["format"] != 1 or not all(map(_sound, plan["runs"])):
                raise ValueError("it is damaged, or of another version")
        except FileNotFoundError:
            raise Refused(f"{path} is no sweep: it has no {PLAN}") from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise Refused(f"{path / PLAN} cannot be read: {escaped(error)}") from None
        return cls(path, plan)

    def save(self) -> None:
        """Write sweep.json, whole or not at all."""
        files.write_json(self.path / PLAN, self.plan)

    def look(self, retry: bool) -> list[dict[str, Any]]:
        """Return the unfinished runs, according to their directories; failed ones only with `retry`."""
        for run in self.runs:
            self._wait(run)
            try:
                status = files.read_json(self.path / run["name"] / directory.RUN).get("status")
            except (OSError, ValueError):
                status = None
            if status == "finished":
                run["status"] = "finished"
            elif run["status"] == "running":
                run["status"] = "interrupted" if status != "failed" else "failed"
        return [run for run in self.runs if run["status"] != "finished" and (retry or run["status"] != "failed")]

    def _wait(self, run: dict[str, Any]) -> None:
        """Wait for the process of a killed sweep, which finishes its step and saves. Refused if that takes long."""
        path, began = self.path / run["name"], time.monotonic()
        while directory.is_held(path):
            if time.monotonic() - began > PATIENCE:
                raise Refused(f"{path} is being written by another process. Wait until it has ended, or stop it")
            time.sleep(0.05)


def _sound(run: Mapping[str, Any]) -> bool:
    """Return True if a run's entry in sweep.json is safe to put on a command line."""
    words = run["settings"]
    return (
        Path(run["name"]).name == run["name"]
        and isinstance(run["status"], str)
        and all(isinstance(word, str) and "=" in word and word[0] not in "-=" for word in words)
    )


def _check(config: dict[str, Any], settings: Sequence[Mapping[str, Any]]) -> None:
    """Look for mistakes in all configurations of a sweep. ConfigError with each once."""
    from .checking import check

    mistakes: dict[Mistake, None] = {}
    for one in settings:
        try:
            mistakes |= dict.fromkeys(check(override(config, written(one))))
        except ConfigError as error:
            mistakes |= dict.fromkeys(error.mistakes)
    if mistakes:
        raise ConfigError(mistakes)


# ── running ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def cores() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Pool:
    """Processes that do the runs of a sweep, `jobs` at a time, with no more threads than processors in all."""

    def __init__(self, sweep: Sweep, jobs: int, gpu: str | None) -> None:
        self.sweep, self.jobs = sweep, max(1, min(jobs, cores()))
        self.threads = max(1, cores() // self.jobs)
        devices = devices_of(gpu)[1]
        self.gpus = [str(number) for number in devices] if isinstance(devices, list) else [gpu]
        self.at_work: dict[int, tuple[subprocess.Popen[bytes], dict[str, Any], float]] = {}
        self.done = 0

    def work(self, runs: list[dict[str, Any]]) -> bool:
        """Do the runs; False if Ctrl-C stopped it, after which the processes have saved and ended."""
        left, self.number = list(reversed(runs)), len(runs)
        try:
            while left or self.at_work:
                while left and len(self.at_work) < self.jobs:
                    self._start(left.pop())
                self._collect()
                time.sleep(0.05)
            return True
        except KeyboardInterrupt:
            say(
                f"Stopping {len(self.at_work)} run(s): each finishes its step and saves. "
                "Ctrl-C again ends them at once."
            )
            self._stop()
            return False
        finally:
            for process, _, _ in self.at_work.values():
                process.kill()
                process.wait()

    def _start(self, run: dict[str, Any]) -> None:
        sweep = self.sweep
        slot = next(i for i in range(self.jobs) if i not in self.at_work)
        name, gpu = sweep.path.relative_to("save") / run["name"], self.gpus[slot % len(self.gpus)]
        command = [
            sys.executable,
            "-m",
            __package__,
            "run",
            str(sweep.path / CONFIG),
            *run["settings"],
            "--name",
            str(name),
            "--resume",
            *(["--gpu", gpu] if gpu is not None else []),
            *(["--project", sweep.plan["project"]] if sweep.plan["project"] else []),
        ]
        environment = {**os.environ, **dict.fromkeys(THREADS, str(self.threads)), WATCHED: "1"}
        environment["PYTHONPATH"] = os.pathsep.join(
            filter(None, [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")])
        )
        with open(sweep.path / OUTPUT / f"{run['name']}.txt", "ab") as output:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=output, stderr=output, env=environment, start_new_session=True
            )
        self.at_work[slot] = process, run, time.monotonic()
        run["status"], run["code"] = "running", None
        sweep.save()

    def _collect(self) -> None:
        """Take note of the runs that have ended."""
        from .utils import time_text

        for slot, (process, run, began) in list(self.at_work.items()):
            code = process.poll()
            if code is None:
                continue
            del self.at_work[slot]
            if process.stdin is not None:
                process.stdin.close()
            run["code"] = code
            run["status"] = {OK: "finished", INTERRUPTED: "interrupted", -signal.SIGINT: "interrupted"}.get(
                code, "failed"
            )
            self.sweep.save()
            self.done += 1
            print(
                f"[{self.done}/{self.number}] {run['name']}: {run['status']} "
                f"after {time_text(time.monotonic() - began)}",
                flush=True,
            )

    def _stop(self) -> None:
        """Interrupt the processes and wait for them; a second Ctrl-C ends them at once."""
        sent = signal.SIGINT
        while self.at_work:
            for process, _, _ in self.at_work.values():
                if process.poll() is None:
                    process.send_signal(sent)
            try:
                while self.at_work:
                    self._collect()
                    time.sleep(0.05)
            except KeyboardInterrupt:
                sent = signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Lock a directory against other sweeps. Refused if one is running there."""
    descriptor = files.open_plain(path / directory.LOCK, os.O_RDWR | os.O_CREAT)
    try:
        if directory.fcntl is not None:
            try:
                directory.fcntl.flock(descriptor, directory.fcntl.LOCK_EX | directory.fcntl.LOCK_NB)
            except BlockingIOError:
                raise Refused(
                    f"{path} is being worked on by another process. Wait until it has ended, or stop it"
                ) from None
        yield
    finally:
        os.close(descriptor)


def perform(sweep: Sweep, jobs: int, gpu: str | None, retry: bool) -> int:
    """Do the remaining runs of a sweep, print the result and return the exit code."""
    with held(sweep.path):
        sweep = Sweep.load(sweep.path)
        runs = sweep.look(retry)
        pool = Pool(sweep, jobs, gpu)
        if jobs > pool.jobs:
            say(f"{jobs} jobs, but {pool.jobs} processor(s): {pool.jobs} at a time")
        before, number = len(sweep.runs) - len(runs), len(sweep.runs)
        ready = f", {before} of which are left as they are" if before else ""
        each = f"{pool.threads} thread{'s' * (pool.threads > 1)} each"
        print(f"{sweep.path}: {number} runs{ready}; {pool.jobs} at a time, with {each}", flush=True)
        whole = pool.work(runs)
        _show(sweep)
    again = ["python", "-m", __package__, "sweep", "--resume", sweep.path.relative_to("save").as_posix()]
    again += ["--jobs", str(jobs)] * (jobs > 1) + ["--gpu", str(gpu)] * (gpu is not None)
    if not whole:
        say(f"Interrupted. To go on: {shlex.join(again)}")
        return INTERRUPTED
    if failed := sum(run["status"] == "failed" for run in sweep.runs):
        say(f"{failed} of {number} runs failed. To try those again: {shlex.join([*again, '--retry'])}")
    return OK if all(run["status"] == "finished" for run in sweep.runs) else FAILED


def _show(sweep: Sweep) -> None:
    """Print the last lines of failed runs, and all runs as a table."""
    from .show import table
    from .show.several import gathered

    for run in sweep.runs:
        if run["status"] == "failed":
            print(f"\n{run['name']} failed with exit code {run['code']}:")
            print(*(f"    {line}" for line in _last_lines(sweep.path / OUTPUT / f"{run['name']}.txt")), sep="\n")
    order = {run["name"]: i for i, run in enumerate(sweep.runs)}
    records = [record for record in gathered([sweep.path]) if record.path.name in order]
    print(f"\n{table(sorted(records, key=lambda record: order[record.path.name]))}", flush=True)


def _last_lines(path: Path) -> list[str]:
    try:
        with open(path, "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 10_000))
            return [escaped(line, 200) for line in file.read().decode("utf-8", "replace").splitlines()[-TOLD:]]
    except OSError as error:
        return [f"({path}: {error.strerror})"]
