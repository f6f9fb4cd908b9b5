"""Environments in which modules and objects are found by name. https://pytorch.org/docs → torch.package.Importer"""
from __future__ import annotations

import importlib
import logging
import pickle
from abc import ABC, abstractmethod
from functools import reduce
from types import ModuleType
from typing import Any

from ..graph.names import PACKAGE, package
from ._mangling import demangle, get_mangle_prefix, is_mangled

log = logging.getLogger(__name__)


class ObjNotFoundError(Exception):
    """An environment has no object of a name."""


class ObjMismatchError(Exception):
    """An environment has another object of that name."""


class Importer(ABC):
    """An environment of modules.

    Errors: of `get_name`, ObjNotFoundError if the object is not found under its name, and ObjMismatchError if another
    one is

    >>> import collections
    >>> from tensorgrad.package import sys_importer
    >>> sys_importer.get_name(collections.OrderedDict)
    ('collections', 'OrderedDict')
    """

    modules: dict[str, ModuleType]

    @abstractmethod
    def import_module(self, module_name: str) -> ModuleType:
        """Import a module of this environment."""

    def get_name(self, obj: Any, name: str | None = None) -> tuple[str, str]:
        """Return (module, name) under which this environment has an object."""
        if name is None and obj is not None and type(obj) not in pickle._Pickler.dispatch:  # type: ignore[attr-defined]
            name = _reduced(obj)
        name = name or getattr(obj, "__qualname__", None) or obj.__name__
        module_name = demangle(self.whichmodule(obj, name))
        try:
            found: Any = reduce(getattr, name.split("."), self.import_module(module_name))
        except (ImportError, KeyError, AttributeError):
            raise ObjNotFoundError(f"{obj} was not found as {module_name}.{name}") from None
        if found is obj:
            return module_name, name
        (given, place, listed), (other, there, above) = (self._place(thing, name) for thing in (obj, found))
        raise ObjMismatchError(f"\n\nThe object provided is from '{given}', which is coming from {place}."
                               f"\nHowever, when we import '{other}', it's coming from {there}."
                               f"\nTo fix this, make sure this 'PackageExporter's importer lists {listed} before "
                               f"{above}.")

    def _place(self, obj: Any, name: str) -> tuple[str, str, str]:
        """Return (module, environment, importer) of an object, for an error."""
        module = self.whichmodule(obj, name)
        if not is_mangled(module):
            return module, "the current Python environment", "'sys_importer'"
        prefix = get_mangle_prefix(module)
        return module, prefix, f"the importer for {prefix}"

    def whichmodule(self, obj: Any, name: str) -> str:
        """Return the name of an object's module; "__main__" if none is known."""
        if (module := getattr(obj, "__module__", None)) is not None:
            return str(module)
        for known, held in self.modules.copy().items():
            if known not in ("__main__", "__mp_main__") and getattr(held, name, None) is obj:
                return known
        return "__main__"


def _reduced(obj: Any) -> str | None:
    """Return the global name that `__reduce__` gives; None if it gives something else, or fails."""
    try:
        found = obj.__reduce__()
    except Exception:
        return None
    return found if isinstance(found, str) else None


class _SysImporter(Importer):
    """The modules of the process; `torch` is this library."""

    def import_module(self, module_name: str) -> ModuleType:
        top, _, rest = module_name.partition(".")
        if top != "torch":
            return importlib.import_module(module_name)
        return importlib.import_module(f"{PACKAGE}.{rest}") if rest else package()  # type: ignore[no-any-return]

    def whichmodule(self, obj: Any, name: str) -> str:
        return getattr(obj, "__module__", None) or pickle.whichmodule(obj, name)  # type: ignore[attr-defined]


sys_importer = _SysImporter()


class OrderedImporter(Importer):
    """Several environments: a name is looked up in each, in order.
    https://pytorch.org/docs → torch.package.OrderedImporter

    Errors: TypeError for a member that is no Importer; of `get_name`, ObjNotFoundError
    """

    def __init__(self, *args: Importer) -> None:
        self._importers = list(args)

    def get_name(self, obj: Any, name: str | None = None) -> tuple[str, str]:
        for importer in self._importers:
            try:
                return importer.get_name(obj, name)
            except (ObjNotFoundError, ObjMismatchError) as error:
                log.warning("Tried to call get_name with obj %s, and name %s on %s and got %s", obj, name, importer,
                            error)
        raise ObjNotFoundError(f"Could not find obj {obj} and name {name} in any of the importers {self._importers}")

    def import_module(self, module_name: str) -> ModuleType:
        failure = ModuleNotFoundError(module_name)
        for importer in self._importers:
            if not isinstance(importer, Importer):
                raise TypeError(f"{importer} is not a Importer. All importers in OrderedImporter must inherit from "
                                "Importer.")
            try:
                module = importer.import_module(module_name)
            except ModuleNotFoundError as error:
                failure = error
                continue
            # a package without code that only holds submodules may hide the real one
            if getattr(module, "__torch_package__", False) and hasattr(module, "__path__") and module.__file__ is None:
                continue
            return module
        raise failure

    def whichmodule(self, obj: Any, name: str) -> str:
        return next((found for importer in self._importers
                     if (found := importer.whichmodule(obj, name)) != "__main__"), "__main__")
