"""new DIR: write a small project that runs at once."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path

from .. import project
from ..launch import OK, USAGE, say

ABOUT = "write a small project that runs at once: a model, two configurations, two scripts, a test"


def main(arguments: list[str], program: str) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(program, description=f"Write into DIR {ABOUT.removeprefix('write ')}.")
    parser.add_argument("directory", metavar="DIR", help="a directory that is new or empty")
    directory = Path(parser.parse_args(arguments).directory)
    try:
        names = project.write(directory)
    except project.ProjectError as error:
        say(error)
        return USAGE
    except OSError as error:
        say(f"{error.filename or directory}: {error.strerror or error}; nothing was written")
        return USAGE
    print(f"{directory} has {len(names)} files. README.md says what they are. To begin:\n")
    if Path(os.path.abspath(directory)) != Path.cwd():
        print(f"    cd {shlex.quote(str(directory))}")
    print("    python -m tensorgrad.experiment run configs/mnist.yaml\n    python -m tensorgrad.experiment show save")
    return OK
