"""Draw the graph of the last loss of a program: `python -m tensorgrad.viz program.py --out graph.html [argument …]`."""
from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

from ..advice import offers
from .drawing import FORMS

USAGE = """usage: python -m tensorgrad.viz program.py [--out FILE] [--explain | --nan] [argument ...]
       python -m tensorgrad.viz [--out FILE] [--explain | --nan] (program.py | -m module | -c command) [argument ...]
       python -m tensorgrad.viz --collective NAME [--help] [option ...]
       python -m tensorgrad.viz grade [--help] [option ...] FILE [FILE ...]

Run a PyTorch program with tensorgrad in the place of torch, then draw the graph of the last tensor that it called backward() on; or, if it never did,
of the last single number that it computed from tensors that require grad. If the program fails, the picture shows how far it got.

  --out FILE    where the picture goes, as its suffix says: .html (a page to open and close groups in), .svg, .dot, .png or .pdf; graph.html if not given,
                or nan.html for --nan
  --explain     a page, or .txt, that goes through the backward step by step
  --nan         a page, or .txt, that says where a NaN came from: the program is stopped after its first backward whose loss or gradients are not finite
  --collective NAME  in place of a program: a collective such as all_reduce, message by message, as a page
  grade FILE    in place of a program: marks for answers that pages of exercises have handed in
  --            what follows are arguments of the program, even if they are called as these are
  -h, --help    before the program: this text"""  # noqa: E501
PICTURES, PAGES = tuple(f".{form}" for form in FORMS), (".html", ".txt")
SMALL = 40      # steps of the largest graph whose boxes show values


class Wanted(NamedTuple):
    """Parsed command line."""

    out: Path
    explain: bool
    program: list[str]
    nan: bool = False

    @property
    def name(self) -> str:
        """Return the name of the program for titles."""
        kind, *rest = self.program
        return {"-": "a program", "-c": "a command"}.get(kind) or (rest[0] if kind == "-m" else Path(kind).name)


def main(arguments: list[str]) -> int:
    """Run the program, draw, and return the exit status: that of the program, or 1 if there is nothing to draw, or 2 if
    the command line is wrong.
    """
    if arguments[:1] == ["--collective"]:
        from .collectives.command import main as collective
        return collective(arguments[1:])
    if arguments[:1] == ["grade"]:
        from .exercises.command import main as grade
        return grade(arguments[1:], run)
    try:
        wanted = parsed(arguments)
    except ValueError as wrong:
        print(f"{USAGE}\n\n{wrong}" if str(wrong) else USAGE, file=sys.stderr)
        return 2
    if wanted is None:
        print(USAGE)
        return 0
    from .last_loss import Last
    from .nan_search import Found, Hunt
    from .watch import watch
    last, seen = Hunt() if wanted.nan else Last(), watch()
    offers.command = False              # what an error would offer is drawn anyway
    status, error = 0, False
    try:
        with seen, last:
            run(wanted.program)
    except SystemExit as end:
        status = exit_status(end)
    except Found:
        status = 1
    except BaseException as failure:
        status, error = 130 if isinstance(failure, KeyboardInterrupt) else 1, True
        report(failure)
    sys.stdout.flush()
    try:
        drawn = failed(seen, wanted) if error and seen.failure is not None and seen.nodes else draw(last, wanted)
    except (RuntimeError, ImportError, OSError) as trouble:
        print(f"python -m tensorgrad.viz: {trouble}", file=sys.stderr)
        return status or 1
    if drawn is None:
        print("python -m tensorgrad.viz: there is no graph to draw: the program computed no loss from tensors that "
              "require grad", file=sys.stderr)
        return status or 1
    print(f"{wanted.out}: {drawn}", file=sys.stderr)
    return status


def parsed(arguments: list[str]) -> Wanted | None:
    """Parse a command line; return None if it asks for help. Errors: ValueError for a wrong one."""
    out, explain, nan, program, rest = "", False, False, [], list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "--":
            program += rest
            break
        if word == "--out" or word.startswith("--out="):
            if word == "--out" and not rest:
                raise ValueError("--out: a file is expected")
            out = word.partition("=")[2] if "=" in word else rest.pop(0)
        elif word == "--explain":
            explain = True
        elif word == "--nan":
            nan = True
        elif program:
            program.append(word)
        elif word in ("-h", "--help"):
            return None
        elif word in ("-m", "-c"):
            if not rest:
                raise ValueError(f"argument expected for the {word} option")
            program = [word, rest.pop(0)]
        elif word.startswith("-") and word != "-":
            raise ValueError(f"unknown option {word}: options of the program come after it")
        else:
            program = [word]
    if not program:
        raise ValueError("" if not arguments else "which program?")
    if explain and nan:
        raise ValueError("--explain and --nan: one of them")
    out, suffixes = out or ("nan.html" if nan else "graph.html"), PAGES if explain or nan else PICTURES
    if Path(out).suffix not in suffixes:
        raise ValueError(f"--out: {'an explanation' if explain or nan else 'a picture'} ends in one of "
                         f"{', '.join(suffixes)}, and {out!r} does not")
    return Wanted(Path(out).absolute(), explain, program, nan)


# ── the program ───────────────────────────────────────────────────────────────────────────────────────────────────────


def run(program: list[str]) -> None:
    """Run the program as __main__, with `import torch` meaning tensorgrad."""
    from ..__main__ import main as run_as_torch
    run_as_torch(program)


def exit_status(end: SystemExit) -> int:
    """Return the exit status of a SystemExit; print anything else that it holds, as Python does."""
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    print(end.code, file=sys.stderr)
    return 1


def report(error: BaseException) -> None:
    """Print the traceback without this module's own frames."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    sys.stdout.flush()
    sys.excepthook(type(error), error.with_traceback(trace), trace)


# ── the picture ───────────────────────────────────────────────────────────────────────────────────────────────────────


def draw(last: Any, wanted: Wanted) -> str | None:
    """Save the picture of the last loss. Returns what it shows, or None if there is no loss."""
    from . import explain, graph
    from .modules import outermost
    from .naming import unnamed
    if not last.outputs:
        return None
    if wanted.nan:
        found = last.report()
        found.save(wanted.out)
        times = f"{last.backwards} backward{'s' if last.backwards != 1 else ''}"
        return f"{found.title} (in backward {last.backwards}, after which the program was stopped)" if last.found else \
            f"no NaN or infinity in the loss and the gradients of {times}; of the last loss: {found.title}"
    last.restore()
    module = last.module()
    names = unnamed(last.scope, module) | outermost(last.scope, module)
    loss = last.outputs[-1]
    if wanted.explain:
        gradient = last.gradients[-1] if isinstance(last.gradients, (tuple, list)) else last.gradients
        explanation = explain(loss, gradient, module=module, names=names)
        explanation.save(wanted.out)
        return f"backprop of the last loss in {len(explanation)} step{'s' if len(explanation) != 1 else ''}"
    def picture_of(values: bool) -> Any:
        return graph(*last.outputs, module=module, names=names, values=values, source=wanted.out.suffix == ".html",
                     title=f"The last loss of {wanted.name}")
    picture = picture_of(False)
    if picture.steps <= SMALL:
        picture = picture_of(True)
    picture.save(wanted.out)
    return f"the graph of the last loss, {picture.steps:,} step{'s' if picture.steps != 1 else ''}"


def failed(seen: Any, wanted: Wanted) -> str:
    """Save the picture of how far the program got."""
    out = wanted.out.with_suffix(".html") if wanted.out.suffix == ".txt" else wanted.out
    seen.graph().save(out)
    return "how far the program got" + (f": it failed at {seen.failure.title}" if seen.failure.operands else "")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
