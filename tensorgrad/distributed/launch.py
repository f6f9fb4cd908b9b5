"""The launcher that came before `run`: it hands each worker its number as `--local-rank=…`, too.

https://pytorch.org/docs/stable/distributed.html#launch-utility
"""
from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence

from .run import command_line, get_args_parser, run

__all__ = ["launch", "main", "parse_args"]


def parse_args(args: Sequence[str] | None) -> argparse.Namespace:
    """The words of a command line: those of `run`, and --use-env."""
    parser = get_args_parser()
    parser.add_argument("--use-env", "--use_env", action="store_true",
                        help="leave LOCAL_RANK to the environment: give no --local-rank")
    return parser.parse_args(args)


def launch(args: argparse.Namespace) -> None:
    """Run what parsed words ask for. Errors: those of `run`."""
    if args.no_python and not args.use_env:
        raise ValueError("When using the '--no-python' flag, you must also set the '--use-env' flag.")
    run(args)


def main(args: Sequence[str] | None = None) -> None:
    """Run a command line. Errors: those of `run`. Warns that `run` is the newer launcher."""
    warnings.warn("The module torch.distributed.launch is deprecated\nand will be removed in future. Use torchrun.\n"
                  "Note that --use-env is set by default in torchrun.\nIf your script expects `--local-rank` argument "
                  "to be set, please\nchange it to read from `os.environ['LOCAL_RANK']` instead.", FutureWarning,
                  stacklevel=2)
    launch(parse_args(args))


if __name__ == "__main__":
    sys.exit(command_line(main))
