"""run CONFIG [key=value …]: train what a configuration describes. The scripts of a project, too."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from ..launch import Request, launch

ABOUT = "train what a configuration describes"
TEXT = """Train what CONFIG describes: the plain form has the key `model`, the trainer's form `train_wrapper`. The run is
written to save/<name>, with its metrics, checkpoints, final configuration and source. Registrations are made by
importing the packages models, datasets, losses and callbacks of the project: of the folder above that of CONFIG, or
else of the working directory.
"""  # noqa: E501
CODES = "Exit codes: 0 all is well, 1 training failed, 2 wrong usage or configuration, 130 interrupted."


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags that the command and the scripts of a project share."""
    parser.add_argument(
        "--name", help="name of the run, and of its directory below save/ (default: _ and CONFIG's stem)"
    )
    parser.add_argument("--tag", help="appended to the name as _TAG")
    parser.add_argument(
        "--gpu",
        metavar="0,1|cpu",
        help="GPUs by their numbers; cpu, -1 or '' for the CPU (default: a GPU if there is one)",
    )
    parser.add_argument(
        "--resume",
        metavar="PATH",
        nargs="?",
        const="",
        help="go on exactly where the run of this name was, or begin from the checkpoint at PATH",
    )
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="remove an earlier run of this name first; nothing is removed without it",
    )


def request_of(words: argparse.Namespace, **more: object) -> Request:
    """Return the request that a parsed command line makes.

    A `key=value` right after --resume is a change, not a path.
    """
    overrides, resume = list(words.overrides), words.resume
    if resume and "=" in resume and not os.path.exists(resume):
        overrides, resume = [*overrides, resume], ""
    return Request(Path(words.config), overrides, words.name, words.tag, words.gpu, resume, words.overwrite, **more)


def main(arguments: list[str], program: str) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(program, description=TEXT, epilog=CODES)
    parser.add_argument("config", metavar="CONFIG", help="a file of YAML or JSON")
    parser.add_argument("overrides", metavar="key=value", nargs="*", help="changes, such as optimizer.args.lr=0.1")
    add_flags(parser)
    parser.add_argument("--project", type=Path, metavar="DIR", help="the folder whose packages are imported")
    words = parser.parse_intermixed_args(arguments)
    return launch(request_of(words, folder=words.project))


def script(form: str, folder: Path) -> int:
    """Run a project's `train.py` (form "plain") or `train_pl.py` (form "trainer"), and return the exit code."""
    parser = argparse.ArgumentParser(
        description=f"Train what a configuration of the {form} form describes.", epilog=CODES
    )
    parser.add_argument("--config", metavar="FILE", required=True, help="a file of YAML or JSON")
    parser.add_argument("overrides", metavar="key=value", nargs="*", help="changes, such as optimizer.args.lr=0.1")
    add_flags(parser)
    return launch(request_of(parser.parse_intermixed_args(), folder=folder, form=form, command=("python", sys.argv[0])))
