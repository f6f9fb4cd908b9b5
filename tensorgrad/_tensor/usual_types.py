"""Which arguments of a call have a type that the function's annotations do not name, such as `keepdim=1`.

Python code would accept many that PyTorch refuses. They send a call to PyTorch's argument parser (`api/_parsing.py`);
values of the types below need no such check. Annotations are strings of the names in `api/_kinds.py`.
"""
from __future__ import annotations

from sys import maxsize
from typing import Any

from ..device import device
from ..dtype import dtype
from ..size import Size

USUAL: dict[str, tuple[type, ...]] = {
    "None": (type(None),), "bool": (bool,), "int": (int,), "float": (int, float, bool), "str": (str,), "Index": (int,),
    "Number": (int, float, bool, complex), "Ints": (tuple, list, Size), "Ints1": (int, tuple, list, Size),
    "Dtype": (dtype, str), "Device": (str, device)}
ANOTHER_NAME = {"dim": "axis", "keepdim": "keepdims"}
BESIDE_DIM: frozenset[type] = frozenset()       # of a keepdim= that is allowed only beside dim=


def usual(function: Any) -> tuple[int, tuple[tuple[int, frozenset[type]], ...], dict[str, frozenset[type]]]:
    """Return the usual types of arguments by position and by name, after the first such position.

    Arguments that may be tensors are left out, and so are the positions of axes: functions check these themselves.
    """
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    code, notes = function.__code__, function.__annotations__
    named = {}
    for name in code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]:
        kinds = notes.get(name, "").split(" | ")
        if USUAL.keys() >= set(kinds):
            named[name] = frozenset(kind for each in kinds for kind in USUAL[each])
    positions = tuple((i, named[name]) for i, name in enumerate(code.co_varnames[:code.co_argcount])
                      if name in named and name != "dim")
    if getattr(function, "keeps_with_dim", False):
        named["keepdim"] = BESIDE_DIM
    named.update({other: named[name] for name, other in ANOTHER_NAME.items() if name in named})
    return positions[0][0] if positions else maxsize, positions, named


def odd(args: Any, kwargs: Any, positions: Any, named: Any) -> bool:
    """Return True if an argument has an unusual type."""
    given = len(args)
    for place, types in positions:
        if place >= given:
            break
        if type(args[place]) not in types:
            return True
    for name in kwargs:
        if name in named and type(kwargs[name]) not in named[name]:
            if (named[name] is BESIDE_DIM and type(kwargs[name]) is bool
                    and (given > 1 or "dim" in kwargs or "axis" in kwargs)):
                continue
            return True
    return False
