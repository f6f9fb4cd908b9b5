"""sweep CONFIG --grid … | --random N …: runs of one configuration with different settings."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..launch import INTERRUPTED, USAGE, Refused, Request, say

ABOUT = "train with different settings, several runs at a time, and compare them"
TEXT = """Train what CONFIG describes with different settings. Each run is a process; a run that fails does not stop the
others. The sweep is written to save/<name>, one directory a run. Stopped at any moment, it goes on with the same
command, or with --resume NAME: finished runs stay, half-done ones go on from their checkpoints.
"""


def main(arguments: list[str], program: str) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(
        program,
        description=TEXT,
        epilog="Exit codes: 0 all runs finished, 1 some did not, 2 wrong usage, 130 interrupted.",
    )
    parser.add_argument("config", metavar="CONFIG", nargs="?", help="a file of YAML or JSON")
    parser.add_argument("overrides", metavar="key=value", nargs="*", help="changes for all runs")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--grid", metavar="key=a,b,c", nargs="+", help="all combinations of these values")
    how.add_argument(
        "--random",
        metavar=("N", "key=low:high[:log]"),
        nargs="+",
        help="N random settings; key=a,b,c draws one of these",
    )
    how.add_argument("--resume", metavar="NAME", help="go on with the sweep of this name")
    parser.add_argument(
        "--jobs", metavar="J", type=int, default=1, help="runs at a time, which share the processors (default: 1)"
    )
    parser.add_argument("--seed", metavar="S", type=int, default=0, help="of the random settings (default: 0)")
    parser.add_argument(
        "--name", help="name of the sweep, and of its directory below save/ (default: _, CONFIG's stem and _sweep)"
    )
    parser.add_argument("--gpu", metavar="0,1|cpu", help="GPUs, which the runs share out; cpu for none")
    parser.add_argument("--retry", action="store_true", help="run those that failed once more")
    words = parser.parse_intermixed_args(arguments)
    if words.jobs < 1:
        parser.error("--jobs is at least 1")
    if (words.resume is None) == (words.grid is None and words.random is None) or (words.config is None) != (
        words.resume is not None
    ):
        parser.error("a sweep takes CONFIG with --grid or --random, or --resume NAME alone")
    from .. import parallel, sweeps
    from ..config import ConfigError

    if parallel.launched():
        if parallel.place()[0] == 0:
            say("A sweep starts processes of its own: start it without mpiexec, srun or torchrun, which are for `run`.")
        return USAGE
    try:
        return sweeps.perform(_sweep(words), words.jobs, words.gpu, words.retry)
    except (ConfigError, Refused) as error:
        say(error)
        return USAGE
    except OSError as error:
        say(f"{error.filename or 'the sweep'}: {error.strerror or error}")
        return USAGE
    except KeyboardInterrupt:
        say("Interrupted.")
        return INTERRUPTED


def _sweep(words: argparse.Namespace) -> object:
    from .. import project, sweeps

    if words.resume is not None:
        return sweeps.Sweep.load(Request(Path("-"), name=words.resume).path)
    if words.grid is not None:
        settings = sweeps.grid(words.grid)
    else:
        number, *rest = words.random
        if not number.isdigit() or not rest:
            raise Refused("--random takes a number of runs and settings such as optimizer.args.lr=1e-4:1e-1:log")
        settings = sweeps.draws(int(number), rest, words.seed)
    name = words.name or f"_{Path(words.config).stem}_sweep"
    request = Request(Path(words.config), words.overrides, name)
    told = {key: getattr(words, key) for key in ("config", "overrides", "grid", "random", "seed")}
    try:
        return sweeps.Sweep.begin(request.path, request, settings, told)
    except project.ProjectError as error:
        raise Refused(error) from None
