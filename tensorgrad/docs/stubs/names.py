"""The names that a stub uses: where each is defined, and the import that brings it in."""
from __future__ import annotations

import ast
import builtins
import collections.abc
import re
import sys
import typing
from functools import cache
from importlib import import_module
from inspect import getsource
from types import ModuleType
from typing import Any

PACKAGE = "tensorgrad"
WORDS = {"Any": "typing", "Literal": "typing", "Self": "typing", "overload": "typing"}
WORD = re.compile(r"(?<![\w.\"'])[A-Za-z_][\w.]*\w|(?<![\w.\"'])[A-Za-z_]")


@cache
def defined_in(module: str) -> frozenset[str]:
    """Return the names that the source of a module defines or imports at its top level, as a type checker sees them."""
    found: set[str] = set()
    if not str(getattr(sys.modules[module], "__file__", "")).endswith(".py"):
        return frozenset(dir(sys.modules[module]))
    for node in ast.parse(getsource(sys.modules[module])).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found.update(a.asname or a.name.partition(".")[0] for a in node.names)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found.update(n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name))
    return frozenset(found)


def home_of(value: Any, name: str) -> tuple[str, str] | None:
    """Return (module, name there) of a class or function, where the source says it; None if no source does."""
    own = getattr(value, "__name__", name)
    for module in (getattr(value, "__module__", None), getattr(value, "__module__", None) and _real(value)):
        for candidate in dict.fromkeys((own, name)):
            if (isinstance(module, str) and module in sys.modules and candidate in defined_in(module)
                    and vars(sys.modules[module]).get(candidate) is value):
                return module, candidate
    return None


def _real(value: Any) -> str | None:
    """Return the module of a class's methods: `__module__` may be the name under which pickles know it."""
    for member in vars(value).values() if isinstance(value, type) else ():
        if (module := getattr(member, "__globals__", {}).get("__name__")) is not None:
            return str(module)
    return None


def wrapped_imports(parts: dict[str, list[str]]) -> list[str]:
    """Return `from … import …` for {"from …": names}, in lines of readable length."""
    lines = []
    for module, names in sorted(parts.items(), key=lambda item: (item[0].startswith("from ."), item[0])):
        line = f"{module} import {', '.join(sorted(names))}"
        lines += ([line] if len(line) <= 120 else [f"{module} import (", *(f"    {name}," for name in sorted(names)),
                                                   ")"])
    return lines


class Names:
    """The imports of a stub.

    `taken` are the names that the stub defines itself, `own` (module, name) of its classes.
    """

    def __init__(self, module: str, is_package: bool, taken: frozenset[str],
                 own: frozenset[tuple[str, str]] = frozenset()) -> None:
        self.module, self.taken, self.own = module, taken, own
        self.package = module if is_package else module.rpartition(".")[0]
        self.lines: set[str] = set()

    def relative(self, module: str) -> str:
        """Return a module of the package as the stub imports from it: `.a`, `..b.c`."""
        own, other = self.package.split("."), module.split(".")
        shared = next((i for i, (a, b) in enumerate(zip(own, other, strict=False)) if a != b),
                      min(len(own), len(other)))
        return "." * (len(own) - shared + 1) + ".".join(other[shared:])

    def local(self, name: str) -> str:
        """Return the name under which the stub imports `name`: with an underscore where its own names hide it."""
        return f"_{name}" if name in self.taken else name

    def use(self, module: str, name: str) -> str:
        """Import a name, and return it as the stub writes it."""
        if (module, name) in self.own:
            return name
        local = self.local(name)
        source = self.relative(module) if module.split(".")[0] == PACKAGE else module
        if module != "builtins" or local != name:
            self.lines.add(f"from {source} import {name}" + ("" if local == name else f" as {local}"))
        return local

    def annotation(self, text: str, names: dict[str, Any]) -> str:
        """Import what an annotation names; `names` are those of the module that it is written in."""
        return WORD.sub(lambda found: self._word(found[0], names), text)

    def _word(self, word: str, names: dict[str, Any]) -> str:
        """Import one name of an annotation, which may have dots."""
        if word in ("None", "True", "False"):
            return word
        if word in WORDS:
            return self.use(WORDS[word], word)
        if isinstance(getattr(builtins, word, None), type) and not isinstance(names.get(word), type):
            return self.use("builtins", word)
        head, _, rest = word.partition(".")
        value = names.get(head)
        if head == "np" and rest:
            self.lines.add("import numpy as np")
            return word
        if isinstance(value, ModuleType):
            if not rest or (home := home_of(getattr(value, rest), rest)) is None:
                package, _, name = value.__name__.rpartition(".")
                return self.use(package, name) + (f".{rest}" if rest else "")
            return self.use(*home)
        kinds = import_module(f"{PACKAGE}.api._kinds")
        if value is not None and vars(kinds).get(word) is value and getattr(value, "__name__", "") != word:
            return self.use(kinds.__name__, word)
        if (word in collections.abc.__all__ and getattr(value, "__module__", "collections.abc") in ("collections.abc",
                                                                                                    "typing")):
            return self.use("collections.abc", word)
        if value is not None and value is getattr(typing, word, None):
            return self.use("typing", word)
        if (home := home_of(value, word)) is None:
            raise LookupError(f"{self.module}: no source defines {word}, which an annotation names")
        return self.use(*home)

    def imports(self) -> list[str]:
        """Return the lines, sorted, with the names of a module in one."""
        whole, parts = [], {}
        for line in sorted(self.lines):
            module, is_from, name = line.partition(" import ")
            parts.setdefault(module, []).append(name) if is_from and module.startswith("from ") else whole.append(line)
        return [*whole, *wrapped_imports(parts)]
