"""Names of nodes, and the printed names of functions and types, as in torch.fx."""
from __future__ import annotations

import builtins
import keyword
import re
import sys
from typing import Any

from .._tensor import Tensor

FOREIGN = re.compile(r"[^0-9a-zA-Z_]+")
HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")                     # between a small letter and a capital
TAKEN = frozenset({*keyword.kwlist, *dir(builtins), "torch", "device", "inf", "nan", "NoneType", "fx_pytree", "pytree"})


class Namespace:
    """Creates unique names: `relu`, then `relu_1`. Python's and the module's own names get a number from the start.

    >>> names = Namespace()
    >>> [names.create_name(wanted) for wanted in ("relu", "relu", "relu_5", "relu", "int", "sub.0")]
    ['relu', 'relu_1', 'relu_5', 'relu_6', 'int_1', 'sub_0']
    """

    __slots__ = ("used", "counts")

    def __init__(self) -> None:
        self.used: set[str] = set()
        self.counts: dict[str, int] = {}            # base → its last number

    def copy(self) -> Namespace:
        """Return a copy of the namespace."""
        new = Namespace()
        new.used, new.counts = self.used.copy(), self.counts.copy()
        return new

    def create_name(self, wanted: str) -> str:
        """Create a unique identifier from the wanted one."""
        name = wanted if wanted.isidentifier() and wanted.isascii() else FOREIGN.sub("_", wanted) or "_unnamed"
        if name[0].isdigit():
            name = f"_{name}"
        base, _, digits = name.rpartition("_")
        if not base or not digits.isdigit():
            base, digits = name, ""
        number = int(digits) if digits and name not in self.used else self.counts.get(base, 0)
        if not digits and name in TAKEN:
            number += 1
            name = f"{base}_{number}"
        while name in self.used:
            number += 1
            name = f"{base}_{number}"
        self.used.add(name)
        self.counts[base] = number
        return name


def wanted_name(target: Any) -> str:
    """Return the default name of a node that calls a target.

    >>> import operator
    >>> wanted_name(operator.add), wanted_name("__getitem__"), wanted_name("sub.MyLayer")
    ('add', 'getitem', 'sub.my_layer')
    """
    if callable(target):
        name = getattr(target, "__name__", type(target).__name__)
    else:
        assert isinstance(target, str), f"Expected target to be str, got {type(target)}"
        name = target[2:-2] if target.startswith("__") and target.endswith("__") else target
    return name if name.islower() else HUMP.sub("_", name).lower()


def qualified_name(target: Any) -> str:
    """Return a function's name in printed graphs; the package's functions have their public names: torch.relu.

    >>> import operator, tensorgrad as torch
    >>> [qualified_name(f) for f in (operator.add, len, torch.relu, torch.nn.functional.relu, torch.Tensor.relu)]
    ['operator.add', 'builtins.len', 'torch.relu', 'torch.nn.functional.relu', 'torch.Tensor.relu']
    """
    name = getattr(target, "__name__", None)
    if name is None:                                # a callable object
        target = type(target)
        name = target.__name__
    if getattr(builtins, name, None) is target:
        return f"builtins.{name}"
    if getattr(Tensor, name, None) is target:
        return f"torch.Tensor.{name}"
    owner = getattr(target, "__objclass__", None)
    return f"{home(target)}.{name}" if owner is None else f"{home(owner)}.{owner.__name__}.{name}"


def home(target: Any) -> str:
    """Return the module of a function or class, as a graph prints it."""
    module = getattr(target, "__module__", None) or "builtins"
    package = __name__.partition(".")[0]
    if module == package or module.startswith(f"{package}."):
        public = getattr(sys.modules[package], getattr(target, "__name__", ""), None) is target
        return "torch" if public else f"torch{module[len(package):]}"
    return "operator" if module == "_operator" else str(module)


def type_name(kind: Any) -> str:
    """Return a type as an annotation shows it.

    >>> type_name(int), type_name(list[int]), type_name(None)
    ('int', 'list[int]', 'None')
    """
    if isinstance(kind, type) and not hasattr(kind, "__origin__"):
        return kind.__qualname__ if kind.__module__ == "builtins" else f"{home(kind)}.{kind.__qualname__}"
    return repr(kind)
