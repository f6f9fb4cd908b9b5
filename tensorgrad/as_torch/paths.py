"""The `__path__` of this package's modules while they are `torch`, too: entries that only this package can read.

An import of `torch.nn.functional` looks below the `__path__` of `torch.nn`, which is `tensorgrad.nn`. Any import hook
may do so, at any place of sys.meta_path (pytest's is the first), and a directory there would let it load the file a
second time, as another module. These entries name no directory: they lead to `Place`, which knows both names.
"""
from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from .naming import PACKAGE, naming

MARK = "tensorgrad as torch:"


class Place:
    """Finds the modules in a directory of this package, under both names; the class is an entry of sys.path_hooks."""

    find_alias: Callable[[str], ModuleSpec | None]

    def __init__(self, entry: str) -> None:
        if not entry.startswith(MARK):
            raise ImportError(f"not a directory of {PACKAGE}", path=entry)
        self.directory = entry.removeprefix(MARK)

    def find_spec(self, name: str, target: Any = None) -> ModuleSpec | None:
        if name.startswith("torch."):
            return type(self).find_alias(name)
        if not name.startswith(f"{PACKAGE}."):
            return None
        spec = PathFinder.find_spec(name, [self.directory], target)
        if spec is not None and spec.submodule_search_locations is not None:
            spec.submodule_search_locations = marked(spec.submodule_search_locations)
        if spec is not None and spec.loader is not None:
            spec.loader = naming(spec.loader)
        return spec

    def iter_modules(self, prefix: str = "") -> Iterator[tuple[str, bool]]:
        """Yield the names of the modules there, and whether each is a package, as `pkgutil` asks for them."""
        from pkgutil import iter_modules
        for _, name, is_package in iter_modules([self.directory], prefix):
            yield name, is_package

    def invalidate_caches(self) -> None:
        """Do nothing: `PathFinder` forgets what it knows of the directory."""


def marked(path: Any) -> list[str]:
    """Return the entries of a `__path__`, as ones that lead to `Place`."""
    return [entry if entry.startswith(MARK) else MARK + entry for entry in path]


def directories(path: Any) -> list[str]:
    """Return the directories of the entries of a `__path__`."""
    return [entry.removeprefix(MARK) for entry in path]


def share(find_alias: Callable[[str], ModuleSpec | None]) -> None:
    """Let all modules of this package, later ones included, be found below `torch` by `find_alias`."""
    Place.find_alias = staticmethod(find_alias)
    sys.path_hooks.append(Place)
    for module in _packages():
        module.__path__[:] = marked(module.__path__)


def unshare() -> None:
    """Undo `share`."""
    for module in _packages():
        module.__path__[:] = directories(module.__path__)
    sys.path_hooks[:] = [hook for hook in sys.path_hooks if hook is not Place]
    for entry in [entry for entry in sys.path_importer_cache if entry.startswith(MARK)]:
        del sys.path_importer_cache[entry]


def _packages() -> list[ModuleType]:
    """Return the imported modules of this package that have a `__path__`."""
    return [module for name, module in list(sys.modules.items())
            if name.partition(".")[0] == PACKAGE and isinstance(vars(module).get("__path__"), list)]
