"""The errors for names that this package does not have: they say who speaks, and which names come nearest.

What comes nearest is worked out when the message is read, so that `hasattr` costs no more than elsewhere.
"""
from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

PACKAGE = __package__
# Where else a name may live, which a program looks for in the wrong place.
NAMESPACES = ("", ".nn", ".nn.functional", ".optim", ".linalg", ".special", ".fft", ".func", ".utils.data", ".distributions", ".autograd", ".nn.init",
              ".nn.utils", ".optim.lr_scheduler")


def nearest(module: str, name: str) -> list[str]:
    """The names, up to three, that a program may have meant by `module.name`.

    >>> nearest("tensorgrad.nn", "Liner")[0], nearest("tensorgrad", "Linear")[0]
    ('torch.nn.Linear', 'torch.nn.Linear')
    """
    from difflib import get_close_matches
    from importlib import import_module

    def public(namespace: str) -> dict[str, str]:
        found = import_module(namespace)
        return {n.lower(): n for n in (*dir(found), *getattr(found, "__all__", ())) if not n.startswith("_") or name.startswith("_")}

    here, found = public(module) if module in sys.modules else {}, []
    if name.lower() in here:
        found.append(f"{module}.{here[name.lower()]}")
    for namespace in NAMESPACES:
        if (same := public(PACKAGE + namespace).get(name.lower())) is not None:
            found.append(f"{PACKAGE}{namespace}.{same}")
    found += [f"{module}.{here[n]}" for n in get_close_matches(name.lower(), here, 3, 0.75)]
    return [n.replace(PACKAGE, "torch", 1) for n in dict.fromkeys(found)][:3]


def hint(module: str, name: str) -> str:
    """" (tensorgrad has …)", or nothing."""
    found = nearest(module, name)
    return f" (tensorgrad has {', '.join(found)})" if found else ""


class MissingName(AttributeError):
    """A namespace of this package does not have a name."""

    def __init__(self, module: str, name: str) -> None:
        super().__init__(module, name, obj=sys.modules.get(module))     # with an `obj` of its own, the interpreter adds no suggestion to ours

    def __reduce__(self) -> Any:
        return AttributeError, (str(self),)

    def __str__(self) -> str:
        module, name = self.args
        return f"module {module!r} has no attribute {name!r}{hint(module, name)}"


MissingName.__name__ = MissingName.__qualname__ = "AttributeError"       # as tracebacks show it
MissingName.__module__ = "builtins"


def missing(module: str) -> Callable[[str], Any]:
    """The `__getattr__` of a namespace in which nothing is loaded later."""
    def __getattr__(name: str) -> Any:
        raise MissingName(module, name)
    return __getattr__
