"""Watch a collective: `python -m tensorgrad.viz --collective all_reduce --algorithm ring --ranks 4 --out
collective.html`.
"""
from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from .network import NETWORKS
from .running import OPS, run
from .schedules import COLLECTIVES


def parser() -> argparse.ArgumentParser:
    known = "; ".join(f"{kind}: {', '.join(algorithms)}" for kind, algorithms in COLLECTIVES.items())
    out = argparse.ArgumentParser(prog="python -m tensorgrad.viz --collective", epilog=f"Algorithms: {known}.",
                                  description="Run a collective among ranks of one process, and draw each message.")
    out.add_argument("collective", choices=COLLECTIVES)
    out.add_argument("--algorithm", metavar="NAME", help="the first of its list if not given")
    out.add_argument("--ranks", type=int, default=4, metavar="N",
                     help="how many, with small numbers for values; 4 by default")
    out.add_argument("--values", nargs="+", metavar="A,B,…",
                     help="numbers of each rank, separated by commas, in place of --ranks")
    out.add_argument("--op", choices=OPS, default="sum")
    out.add_argument("--root", type=int, default=0, metavar="RANK")
    out.add_argument("--network", metavar="NAME | SECONDS,BYTES",
                     help=f"{', '.join(NETWORKS)}, or a latency and bytes a second")
    out.add_argument("--out", type=Path, default=Path("collective.html"), metavar="FILE",
                     help="a page, or .txt; collective.html if not given")
    return out


def main(argv: Sequence[str]) -> int:
    """Run it, write the page, and return the exit status: 2 for a wrong command line, 1 if the file cannot be
    written.
    """
    options = (known := parser()).parse_args(argv)
    if options.out.suffix not in (".html", ".txt"):
        known.error(f"--out: a collective ends in .html or .txt, and {str(options.out)!r} does not")
    try:
        values = [list(map(float, text.split(","))) for text in options.values] if options.values else options.ranks
        network = (options.network if options.network is None or options.network in NETWORKS
                   else tuple(map(float, options.network.split(","))))
        if isinstance(network, tuple) and len(network) != 2:
            raise ValueError(f"--network: one of {', '.join(NETWORKS)}, or SECONDS,BYTES, not {options.network!r}")
        ran = run(options.collective, values, options.algorithm or next(iter(COLLECTIVES[options.collective])),
                  root=options.root, op=options.op, network=network)
        page = ran.html() if options.out.suffix == ".html" else f"{ran}\n"
    except ValueError as wrong:
        known.error(str(wrong))
    try:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(page, encoding="utf-8")
    except OSError as trouble:
        print(f"python -m tensorgrad.viz: {trouble}", file=sys.stderr)
        return 1
    print(f"{options.out.absolute()}: {ran.title}, {len(ran.steps)} steps", file=sys.stderr)
    return 0
