"""Run an unchanged PyTorch program: `python -m tensorgrad program.py [argument …]`, or `python -m tensorgrad -m module
[argument …]`.

`import torch` means tensorgrad there, and torchx and pytorch_symbolic mean its `layers` and `symbolic`, unless they are
installed. Packages named after `--hidden-from` find no torch. All else is as under `python program.py`: sys.argv,
sys.path, `__main__`, exit codes, and tracebacks.
"""
from __future__ import annotations

import sys
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec
from types import CodeType, ModuleType
from typing import Any

from .as_torch.install import __file__ as FINDER
from .as_torch.install import install_as_torch

USAGE = """usage: python -m tensorgrad [--hidden-from names] program.py [argument ...]
       python -m tensorgrad [--hidden-from names] -m module [argument ...]
       python -m tensorgrad [--hidden-from names] -c command [argument ...]
       python -m tensorgrad [--hidden-from names] - [argument ...]      (the program comes from the standard input)

Run a PyTorch program with tensorgrad in the place of torch. Packages named after --hidden-from, with commas between
them, find no torch."""


def main(arguments: list[str]) -> None:
    """Run the program, or the tool, that the command line names."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, file=sys.stdout if arguments else sys.stderr)
        raise SystemExit(0 if arguments else 2)
    hidden: list[str] = []
    if arguments[0] == "--hidden-from":
        if len(arguments) < 3:
            raise SystemExit(f"{USAGE}\n\nNames of packages and a program expected after --hidden-from")
        hidden, arguments = arguments[1].split(","), arguments[2:]
    kind, rest = arguments[0], arguments[1:]
    if kind in ("-m", "-c"):
        if not rest:
            raise SystemExit(f"{USAGE}\n\nArgument expected for the {kind} option")
        what, rest = rest[0], rest[1:]
    elif kind.startswith("-") and kind != "-":
        raise SystemExit(f"{USAGE}\n\nunknown option {kind}: options of Python come before -m tensorgrad")
    install_as_torch(hidden)
    # spawned processes call the main module `__mp_main__`
    program = sys.modules["__main__"] = sys.modules["__mp_main__"] = ModuleType("__main__")
    names = vars(program)
    names["__builtins__"] = __builtins__
    try:
        if kind == "-m":
            code = _of_module(what, names, rest)
        elif kind == "-c":
            sys.argv[:], sys.path[0], code = ["-c", *rest], "", compile(what, "<string>", "exec", dont_inherit=True)
        elif kind == "-":
            sys.argv[:], sys.path[0], code = (["-", *rest], "",
                                              compile(sys.stdin.read(), "<stdin>", "exec", dont_inherit=True))
        else:
            code = _of_file(kind, names, rest)
        exec(code, names)
    except SystemExit:
        raise
    except BaseException:
        _hide_ours()
        raise


def _of_file(path: str, names: dict[str, Any], rest: list[str]) -> CodeType:
    """The code of a script, as `python path` finds it."""
    import os.path
    loader = SourceFileLoader("__main__", path)
    try:
        source = loader.get_data(path)
    except OSError as error:
        print(f"{sys.executable}: can't open file {os.path.abspath(path)!r}: [Errno {error.errno}] {error.strerror}",
              file=sys.stderr)
        raise SystemExit(2) from None
    names |= {"__file__": os.path.abspath(path), "__loader__": loader, "__cached__": None}
    sys.argv[:], sys.path[0] = [path, *rest], os.path.dirname(os.path.realpath(path))
    return compile(source, os.path.abspath(path), "exec", dont_inherit=True)


def _of_module(name: str, names: dict[str, Any], rest: list[str]) -> CodeType:
    """The code of a module, as `python -m name` finds it."""
    spec = _spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = _spec(f"{name}.__main__")
    code: CodeType | None = getattr(spec.loader, "get_code", lambda name: None)(spec.name) if spec is not None else None
    if spec is None or code is None:
        raise SystemExit(f"{sys.executable}: No module named {name}")
    names |= {"__spec__": spec, "__package__": spec.parent, "__loader__": spec.loader, "__file__": spec.origin,
              "__cached__": spec.cached}
    sys.argv[:] = [spec.origin or name, *rest]
    return code


def _spec(name: str) -> Any:
    try:
        return find_spec(name)
    except ModuleNotFoundError as error:
        if name != error.name and not name.startswith(f"{error.name}."):
            raise
        return None


def _hide_ours() -> None:
    """Remove our frames from the traceback of an uncaught error; the interpreter prints it and ends the process as
    usual.
    """
    plain = sys.excepthook

    def excepthook(kind: Any, error: Any, trace: Any) -> None:
        trace = _without_ours(trace)
        plain(kind, error.with_traceback(trace), trace)
    sys.excepthook = excepthook


def _without_ours(trace: Any) -> Any:
    """Return the traceback without the first frames, which run the program, and the last, which search for imports."""
    frames = []
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    files = [found.tb_frame.f_code.co_filename for found in frames]
    first = next((i for i, name in enumerate(files) if name not in (__file__, "<frozen runpy>")), len(files))
    last = len(files)
    if FINDER in files:
        while last > first and (files[last - 1] == FINDER or files[last - 1].startswith("<frozen importlib")):
            last -= 1
    for before, after in zip(frames[first:last], [*frames[first + 1:last], None]):
        before.tb_next = after
    return frames[first] if first < last else None


if __name__ == "__main__":
    main(sys.argv[1:])
