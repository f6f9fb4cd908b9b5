"""Targets that Python writes as operators or subscripts, and the public names of functions."""
from __future__ import annotations

import builtins
import operator
import sys
from typing import Any

from .records import Record

OPERATORS = {operator.add: "+", operator.sub: "-", operator.mul: "*", operator.truediv: "/", operator.floordiv: "//",
             operator.mod: "%", operator.pow: "**", operator.matmul: "@", operator.and_: "&", operator.or_: "|",
             operator.xor: "^", operator.lshift: "<<", operator.rshift: ">>", operator.lt: "<", operator.le: "<=",
             operator.gt: ">",
             operator.ge: ">="}
SIGNS = {operator.neg: "-", operator.pos: "+", operator.invert: "~"}
# {name: how fx writes the operator}: operators that have a reflected form, all operators, and those in place
REFLECTED = {function.__name__: f"{{}} {sign} {{}}" for function, sign in OPERATORS.items()
             if sign[0] not in "<>" or sign in ("<<", ">>")} | {"getitem": "{}[{}]"}
MAGIC = ({name: f"{{}} {sign} {{}}" for name, sign in
          {"eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">="}.items()}
         | {function.__name__: f"{sign}{{}}" for function, sign in SIGNS.items()} | REFLECTED)
IN_PLACE = {f"i{function.__name__.strip('_')}": f"{{}} {sign}= {{}}" for function, sign in OPERATORS.items()
            if function.__name__ in REFLECTED} | {"setitem": "{}[{}] = {}"}


class Unpack(Record):
    """Unpacks an iterable of a fixed length.

    >>> Unpack(2)([1, 2])
    (1, 2)
    """

    count: int

    def __call__(self, data: Any) -> tuple[Any, ...]:
        parts = tuple(data)
        if len(parts) != self.count:
            raise ValueError(f"{'not enough' if len(parts) < self.count else 'too many'} values to unpack (expected "
                             f"{self.count}, got {len(parts)})")
        return parts


def public_name(thing: Any) -> str | None:
    """Return the name by which programs call a function of the package or of Python: torch.cat, F.relu, abs.

    None for others.

    >>> import tensorgrad as torch
    >>> public_name(torch.cat), public_name(torch.nn.functional.relu), public_name(abs), public_name(lambda: 1)
    ('torch.cat', 'F.relu', 'abs', None)
    """
    module, name = getattr(thing, "__module__", None) or "", getattr(thing, "__name__", "")
    if getattr(builtins, name, None) is thing:
        return str(name)
    if (module == "tensorgrad" or module.startswith("tensorgrad.")
            and getattr(sys.modules.get(module), name, None) is thing):
        path = module.removeprefix("tensorgrad").removeprefix(".")
        path = "F" if path == "nn.functional" else f"torch.{path}" if path else "torch"
        return f"{path}.{name}"
    return None


__all__ = ["OPERATORS", "SIGNS", "Unpack", "public_name"]
