"""Experiments from the command line: `python -m tensorgrad.experiment new|run|sweep|show`."""

from __future__ import annotations

import importlib
import sys

COMMANDS = ("new", "run", "sweep", "show")
PROGRAM = "python -m tensorgrad.experiment"


def usage() -> str:
    """Return the help text, which lists the commands."""
    about = {name: importlib.import_module(f".commands.{name}", __package__).ABOUT for name in COMMANDS}
    return "\n".join(
        [
            f"usage: {PROGRAM} COMMAND …",
            "",
            *(f"    {name:<8}{text}" for name, text in about.items()),
            "",
            f"{PROGRAM} COMMAND --help says more.",
        ]
    )


def main(arguments: list[str] | None = None) -> int:
    """Run a command and return its exit code.

    >>> main(["--help"])
    usage: python -m tensorgrad.experiment COMMAND …
    ...
    0
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    if not arguments or arguments[0] in ("-h", "--help"):
        print(usage(), file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    name, *rest = arguments
    if name not in COMMANDS:
        from difflib import get_close_matches

        from ..messages.escaping import escaped

        near = get_close_matches(name, COMMANDS, 1)
        print(
            f"There is no command {escaped(name, 80)!r}; "
            + (f"the nearest is {near[0]}" if near else f"there are {', '.join(COMMANDS)}"),
            file=sys.stderr,
        )
        return 2
    try:
        return int(importlib.import_module(f".commands.{name}", __package__).main(rest, f"{PROGRAM} {name}"))
    except BrokenPipeError:  # of `… | head`
        sys.stderr.close()
        return 0


if __name__ == "__main__":
    sys.exit(main())
