"""Modules that a call uses."""
from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any


def trace_dependencies(callable: Callable[..., Any], inputs: Iterable[tuple[Any, ...]]) -> list[str]:
    """Return the names of the modules whose Python functions run while `callable` is called with each of the inputs.

    >>> from tensorgrad.package.analyze import trace_dependencies
    >>> import textwrap
    >>> "textwrap" in trace_dependencies(lambda text: textwrap.dedent(text), [(" a",)])
    True
    """
    used: set[str] = set()

    def note(frame: Any, event: str, arg: Any) -> None:
        if event == "call" and (name := frame.f_globals.get("__name__")):
            used.add(name)
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        for arguments in inputs:
            callable(*arguments)
    finally:
        sys.setprofile(before)
    return list(used)
