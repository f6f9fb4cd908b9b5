"""Compare how fast a model runs: `python -m tensorgrad.benchmark model.py:make`, or `model.onnx`.

`make`, a function of a program for PyTorch, has no arguments and returns a module, or (module, inputs), or a
function that returns these. Without inputs, --shape tells them. tensorgrad runs the model eager and compiled; PyTorch,
onnxruntime and OpenVINO run it where they are installed, each in a process of its own, with the same parameters and
inputs, and in turns. Results are compared first.
"""
from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .comparison import TITLES, Comparison, installed
from .measuring import Shape
from .processes import Problem
from .report import picture, text
from .timing import Budget

QUICK = Budget(rounds=3, seconds=0.02, limit=0.5)
DTYPES = ("float16", "float32", "float64", "int32", "int64", "bool")


def shape(told: str) -> Shape:
    """Read `[name=]1,3,224,224[:dtype]`.

    >>> shape("ids=1,64:int64")
    Shape(name='ids', sizes=(1, 64), dtype='int64')
    """
    name, _, rest = told.rpartition("=")
    sizes, _, dtype = rest.partition(":")
    try:
        found = Shape(name, tuple(int(n) for n in sizes.split(",") if n), dtype or "float32")
    except ValueError:
        found = Shape(name, (-1,), dtype)
    if min(found.sizes, default=1) < 0 or found.dtype not in DTYPES:
        raise argparse.ArgumentTypeError(f"{told!r} is no shape: write 1,3,224,224, or name=1,3,224,224, or "
                                         f"1,64:int64 (of {', '.join(DTYPES)})")
    return found


def positive(told: str) -> int:
    if not told.isdecimal() or not int(told):
        raise argparse.ArgumentTypeError(f"{told!r} is no positive number")
    return int(told)


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(prog="python -m tensorgrad.benchmark", description=__doc__,
                                  formatter_class=argparse.RawDescriptionHelpFormatter)
    out.add_argument("model", metavar="model.py:make | model.onnx")
    out.add_argument("--shape", action="append", type=shape, default=[], metavar="[NAME=]1,3,224,224[:DTYPE]",
                     help="the shape of an input; once for each")
    out.add_argument("--batch", type=positive, nargs="+", default=[], metavar="N",
                     help="sizes of the first axis; the inputs' own by default")
    out.add_argument("--threads", type=positive, default=len(os.sched_getaffinity(0)), metavar="N",
                     help="for all libraries; all processors by default")
    out.add_argument("--libraries", nargs="+", choices=TITLES, default=list(TITLES), metavar="NAME",
                     help=f"these alone, of {', '.join(TITLES)}")
    out.add_argument("--picture", type=Path, metavar="FILE", help="draw the result as .svg, or .png with Matplotlib")
    out.add_argument("--quick", action="store_true", help="fewer rounds, and one fresh process of each")
    return out


def checked(options: argparse.Namespace) -> str:
    """Return the model's name, complete. Problem for one that is no file, or a picture that cannot be drawn."""
    path, colon, function = options.model.rpartition(":")
    if not colon or not path.endswith(".py"):
        path, function = options.model, "make"
    if not path.endswith((".py", ".onnx")):
        raise Problem(f"{options.model}: a program, model.py:make, or an ONNX file, model.onnx, was expected")
    if not Path(path).is_file():
        raise Problem(f"{path}: there is no such file")
    if options.picture and options.picture.suffix not in (".svg", ".png"):
        raise Problem(f"{options.picture}: a picture is an .svg or a .png")
    return path if path.endswith(".onnx") else f"{path}:{function}"


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)

    def note(words: str) -> None:
        if sys.stderr.isatty():
            print(f"\r\033[K{words} …", end="", file=sys.stderr, flush=True)
    try:
        model = checked(options)
        libraries = [name for name in TITLES if name in options.libraries and installed(name)]
        comparison = Comparison(model, libraries, options.threads, options.shape)
        with tempfile.TemporaryDirectory() as folder:
            found = comparison.run(options.batch, Path(folder), QUICK if options.quick else Budget(),
                                   1 if options.quick else 3, note)
        if options.picture:
            drawn = picture(found)
            options.picture.write_bytes(painted(drawn) if options.picture.suffix == ".png" else drawn.encode())
    except (Problem, OSError, ImportError) as problem:
        print(f"\r\033[K{problem}" if sys.stderr.isatty() else problem, file=sys.stderr)
        return 1
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    print(text(found))
    return 0


def painted(svg: str) -> bytes:
    from ..viz.matplotlib_export import painted
    return painted(svg, "png")


if __name__ == "__main__":
    sys.exit(main())
