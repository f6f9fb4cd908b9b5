"""show SAVE…: compare runs, as a table and as a page."""

from __future__ import annotations

import argparse
from pathlib import Path

from ...messages.escaping import escaped
from ..launch import OK, USAGE, say

ABOUT = "compare runs: a table, and a page of HTML"
PAGE = "runs.html"


def main(arguments: list[str], program: str) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(
        program, description="Compare the runs in directories: of runs, of sweeps, or of whole save/ folders."
    )
    parser.add_argument("paths", metavar="SAVE", nargs="+", type=Path, help="a directory of runs")
    parser.add_argument(
        "--html",
        metavar="FILE",
        nargs="?",
        const=PAGE,
        help=f"write one page of curves that works offline (default: {PAGE})",
    )
    parser.add_argument("--metric", metavar="M", help="show this metric only, the best run first")
    words = parser.parse_intermixed_args(arguments)
    from ..show import page, table
    from ..show.several import for_the_terminal, gathered, only

    try:
        records = gathered(words.paths)
        if words.metric is not None:
            records = only(records, words.metric)
    except (OSError, ValueError) as error:
        say(f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else error)
        return USAGE
    shown, left_out = for_the_terminal(records)
    print(table(shown))
    if left_out:
        print(f"{left_out} settings that not all of these runs have are on the page only (--html)")
    if words.html is not None and records:
        try:
            page(records, words.html)
        except OSError as error:
            say(f"{words.html}: {error.strerror or error}. --html FILE names the page to write")
            return USAGE
        print(f"\nThe page is in {escaped(words.html)}")
    return OK
