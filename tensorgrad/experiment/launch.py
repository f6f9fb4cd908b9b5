"""Launch a run of either form from a configuration and a command line."""

from __future__ import annotations

import os
import re
import shlex
import sys
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..messages.escaping import escaped
from . import config as configs
from . import project
from .config import ConfigError
from .files import flattened

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130
COMMAND = ("python", "-m", "tensorgrad.experiment", "run")
WATCHED = "TENSORGRAD_WATCHES_STDIN"  # environment variable of a process that must end with its parent
OURS = ("cmd_args", "resume")  # keys of a configuration that record how it was run


class Refused(Exception):
    """A run cannot be started; the message has a line for each reason."""


class Stopped(Exception):
    """The first process has refused to start, and reports the reason."""


REFUSALS = (ConfigError, Refused, project.ProjectError)


@dataclass
class Request:
    """Settings that a command line gives. resume: None, "" for the newest checkpoint of the run of this name, or a
    path.
    """

    config: Path
    overrides: Sequence[str] = ()
    name: str | None = None
    tag: str | None = None
    gpu: str | None = None
    resume: str | None = None
    overwrite: bool = False
    folder: Path | None = None  # the project's folder, if it was given
    form: str | None = None  # the only accepted form
    command: Sequence[str] = field(default=COMMAND)

    @property
    def run_name(self) -> str:
        """The name of the run, by default `_` and the configuration's stem, followed by `_` and the tag.

        >>> Request(Path("configs/mnist.yaml"), tag="a").run_name
        '_mnist_a'
        """
        return (self.name or f"_{self.config.stem}") + (f"_{self.tag}" if self.tag else "")

    @property
    def path(self) -> Path:
        """The directory of the run, `save/<name>`. Refused for a name that leads out of `save`."""
        parts = Path(self.run_name).parts
        if not parts or Path(self.run_name).is_absolute() or ".." in parts:
            raise Refused(f"{escaped(self.run_name)!r} is no name of a run: runs are directories below save/")
        return Path("save", *parts)

    def go_on(self) -> str:
        """The command that resumes the run."""
        scripted = tuple(self.command) != COMMAND
        words = [*self.command, *(["--config"] if scripted else []), str(self.config)]
        for flag in ("name", "tag", "gpu"):
            if getattr(self, flag) is not None:
                words += [f"--{flag}", str(getattr(self, flag))]
        if self.folder is not None and not scripted:
            words += ["--project", str(self.folder)]
        return shlex.join([*words, "--resume"])


def launch(request: Request) -> int:
    """Run a request, and return the exit code: 0 on success, 1 if training failed, 2 if it could not start, 130 after
    Ctrl-C.

    Messages go to the standard error.
    """
    from . import parallel

    try:
        if not parallel.launched():
            return _Prepared(request).train(parallel.Alone())
        with parallel.joined(None, None) as group:
            return _together(request, group)
    except REFUSALS as error:
        say(error)
        return USAGE
    except KeyboardInterrupt:
        say("Interrupted before there was a run.")
        return INTERRUPTED


def _together(request: Request, group: Any) -> int:
    """Run this process's part among those that a launcher has started: they start if all can, and the first one
    writes."""
    prepared, refusal = None, None
    try:
        prepared = _Prepared(request)
    except REFUSALS as error:
        refusal = error
    if group.any(refusal is not None):
        first = group.first(None if refusal is None else str(refusal))
        if refusal is not None and (group.rank == 0 or first is None):
            say(refusal if group.rank == 0 else f"process {group.rank}: {refusal}")
        return USAGE
    assert prepared is not None
    prepared.checkpoint, prepared.resumes = group.first((prepared.checkpoint, prepared.resumes))
    return prepared.train(group)


def say(message: Any) -> None:
    """Print a message on the standard error."""
    print(escaped(message, keep="\n"), file=sys.stderr, flush=True)


def devices_of(gpu: str | None) -> tuple[str, Any, str | None]:
    """Return (accelerator, devices, message or None) for the argument of --gpu: numbers of GPUs, or `cpu`, `-1` or
    nothing for the CPU.

    >>> devices_of("cpu")
    ('cpu', 'auto', None)
    """
    if gpu is None:
        return "auto", "auto", None
    if gpu.strip().lower() in ("cpu", "-1", ""):
        return "cpu", "auto", None
    if not re.fullmatch(r"\d{1,4}(,\d{1,4})*", gpu.replace(" ", "")):
        raise Refused(f"--gpu takes numbers of GPUs such as 0 or 0,1, or cpu, not {escaped(gpu)!r}")
    from .. import cuda

    numbers, there = (
        sorted({int(number) for number in gpu.split(",")}),
        cuda.device_count() if cuda.is_available() else 0,
    )
    if not there:
        return "cpu", "auto", "No GPU can be used here: training on the CPU."
    if numbers[-1] >= there:
        raise Refused(
            f"--gpu {escaped(gpu)}: there is no GPU {numbers[-1]}; the last one is {there - 1}"
        )
    return "gpu", numbers, None


def import_project(request: Request) -> Path | None:
    """Import the project's registrations, and return its folder. Refused with the traceback if its code fails."""
    folder = request.folder or project.find(request.config)
    if folder is not None:
        try:
            project.activate(folder)
        except project.ProjectError:
            raise
        except Exception:
            raise Refused(f"{traceback.format_exc()}The packages of {folder} cannot be imported.") from None
    return folder


def read_config(path: Path, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """Read a configuration and apply changes. ConfigError, or Refused if there is no such file."""
    try:
        return configs.override(configs.load(path), overrides)
    except (OSError, ImportError) as error:
        raise Refused(f"{path}: {getattr(error, 'strerror', None) or error}") from None


class _Prepared:
    """A run that may start: everything has been checked that does not require reading data."""

    def __init__(self, request: Request) -> None:
        self.request, self.path, self.lines = request, request.path, list[str]()
        self.accelerator, self.devices, told = devices_of(request.gpu)
        self.lines += [told] if told else []
        if request.overwrite and request.resume == "":
            raise Refused("--resume continues a run and --overwrite removes it: give one of them")
        self.folder = import_project(request)
        self.same = request.resume == "" and (self.path / "run.json").exists()
        self.config = self._config()
        from .checking import checked, form

        self.form = form(self.config)
        if request.form not in (None, self.form):
            raise Refused(f"{request.config} has the {self.form} form, and this script trains the {request.form} form")
        checked(self.config)
        self.checkpoint, self.resumes = self._checkpoint()

    def _config(self) -> dict[str, Any]:
        """Return the effective configuration: the file's, or the resumed run's, with the changes of the command
        line.
        """
        request = self.request
        given = read_config(request.config, request.overrides)
        if not self.same:
            return given
        kept = next((file for name in ("config.yaml", "config.json") if (file := self.path / name).exists()), None)
        if kept is None:
            return given
        going_on = read_config(kept, request.overrides)
        new, old = dict(flattened(given)), dict(flattened(going_on))
        for key in dict.fromkeys([*new, *old]):
            if new.get(key) != old.get(key) and key.partition(".")[0] not in (*OURS, "seed"):
                self.lines.append(
                    f"{request.config} has {key}={new.get(key, '(nothing)')}; "
                    f"the run goes on with {old.get(key, '(nothing)')}. "
                    f"To change it: {key}={new.get(key, '…')} on the command line."
                )
        return going_on

    def _checkpoint(self) -> tuple[Path | None, bool]:
        """Return (the checkpoint to begin from or None, True if the run's own directory is resumed)."""
        from . import plain, resuming

        resume, newest = self.request.resume, plain.newest if self.form == "plain" else resuming.newest
        if resume is None:
            return None, False
        if resume == "":
            found = newest(self.path / "ckpt") if self.same else None
            if found is None:
                self.lines.append(f"{self.path} has no checkpoint yet: training begins at the first step.")
            return found, self.same
        path = Path(resume)
        if path.is_dir():
            found = newest(path / "ckpt") or newest(path)
            if found is None:
                raise Refused(f"{path}: there is no checkpoint of the {self.form} form in this directory")
            path = found
        try:
            (plain if self.form == "plain" else resuming).read(path)
        except Exception as error:
            raise Refused(f"--resume {path}: {getattr(error, 'strerror', None) or error}") from None
        own = path.resolve().is_relative_to(self.path.resolve())
        if own and self.request.overwrite:
            raise Refused("--overwrite would remove the checkpoint that --resume names: give another --name or --tag")
        return path, own

    # ── the run ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _final(self) -> dict[str, Any]:
        """Return the configuration as the run saves it: with its seed and its command line."""
        request, config = self.request, {key: value for key, value in self.config.items() if key not in OURS}
        if config.get("seed") is None:
            config["seed"] = time.time_ns() // 1_000_000 % 1000
        told = {
            "config": str(request.config),
            "name": request.name,
            "tag": request.tag,
            "gpu": request.gpu,
            "resume": request.resume,
        }
        return {**config, "cmd_args": told, "resume": None if self.checkpoint is None else str(self.checkpoint)}

    def _run(self, config: Mapping[str, Any], group: Any) -> Any:
        """Return the run in the first process, None in others. Refused, in all of them, if it cannot start."""
        run, refusal = None, None
        if group.rank == 0:
            try:
                run = self._begun(config)
            except Refused as error:
                refusal = error
        if group.any(refusal is not None):
            raise refusal or Stopped
        return run

    def _begun(self, config: Mapping[str, Any]) -> Any:
        from .run import Run

        try:
            return Run(
                self.path,
                config,
                resume=self.resumes,
                overwrite=self.request.overwrite,
                snapshot=self.folder,
                events=True if self.form == "plain" else "default",
            )
        except FileExistsError as error:
            if (self.path / "run.json").exists():
                raise Refused(
                    f"{self.path} holds a run: --resume continues it, --overwrite removes it first, "
                    "--name or --tag begins another"
                ) from None
            raise Refused(f"{self.path}: {error.strerror}") from None
        except OSError as error:
            raise Refused(f"{error.filename or self.path}: {error.strerror or error}") from None

    def train(self, group: Any) -> int:
        """Train with the other processes of the group, and return the exit code.

        With several processes errors are raised, so that their launcher ends the others, which would wait.
        """
        from ..distributed import DistError
        from .seeding import seed_everything

        config = group.first(self._final())
        try:
            run = self._run(config, group)
        except Stopped:
            return USAGE
        try:
            with run or nullcontext(), _stoppable():
                seed = seed_everything(config["seed"])
                if run is not None:
                    for line in self.lines:
                        run.print(line)
                    if self.resumes and self.checkpoint is None:
                        run.load_state_dict({"columns": ["step", "time"], "rows": 0})
                    run.print(f"Global seed set to {seed}")
                trainer = (_plain if self.form == "plain" else _with_trainer)(self, config, run)
                if trainer.interrupted and run is not None:
                    run.finish("interrupted")
        except KeyboardInterrupt:
            if run is not None:
                self._interrupted()
            group.abort()
            return INTERRUPTED
        except Exception as error:
            if run is not None:
                self._failed()
            if isinstance(error, (OSError, DistError)):  # another process reports the cause of a DistError
                say(f"{type(error).__name__}: {error}")
            elif group.world > 1:
                raise
            else:
                traceback.print_exc()
            return FAILED
        if trainer.interrupted:  # the trainer has printed how to resume
            return INTERRUPTED
        if run is not None:
            print(f"The run is in {self.path}.")
        return OK

    def _interrupted(self) -> None:
        say(f"Interrupted. To go on: {self.request.go_on()}")

    def _failed(self) -> None:
        if any((self.path / "ckpt").glob("*.[cp]*")):
            say(f"{self.path} has checkpoints. To go on: {self.request.go_on()}")


@contextmanager
def _stoppable() -> Iterator[None]:
    """Stop as after Ctrl-C when the parent process ends, if it set WATCHED: it holds the other end of the standard
    input."""
    if os.environ.pop(WATCHED, None) is None:
        yield
        return
    import signal
    import threading

    def watch() -> None:
        while os.read(0, 4096):
            pass
        if not done:
            os.kill(os.getpid(), signal.SIGINT)

    done: list[bool] = []
    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        done.append(True)


def _plain(prepared: _Prepared, config: Mapping[str, Any], run: Any) -> Any:
    from . import callbacks, plain

    made = [callbacks.make(spec) for spec in config.get("callbacks") or ()]
    own = prepared.request.resume == ""
    return plain.train(
        config,
        run,
        prepared.checkpoint,
        same=own,
        accelerator=prepared.accelerator,
        devices=prepared.devices,
        callbacks=made,
        go_on=prepared.request.go_on(),
        root=prepared.path,
    )


def _with_trainer(prepared: _Prepared, config: Mapping[str, Any], run: Any) -> Any:
    from . import callbacks, datasets, models
    from .callbacks import ModelCheckpoint
    from .trainer import Trainer

    params = dict(config.get("trainer_params") or {})
    if prepared.accelerator == "gpu":
        params |= {"accelerator": "gpu", "devices": prepared.devices}
    elif prepared.accelerator == "cpu":
        params["accelerator"] = "cpu"
    made = [callbacks.make(spec) for spec in config.get("callbacks") or ()]
    if config.get("checkpoint") is not None or not any(isinstance(callback, ModelCheckpoint) for callback in made):
        made.append(ModelCheckpoint(**(config.get("checkpoint") or {})))
    params.setdefault("default_root_dir", str(prepared.path))  # for processes without a run
    trainer = Trainer(run=run, callbacks=made, **params)
    trainer.go_on = prepared.request.go_on()
    trainer.fit(
        models.make(config["train_wrapper"]),
        datamodule=datasets.make(config["data_module"]),
        ckpt_path=prepared.checkpoint,
    )
    return trainer
