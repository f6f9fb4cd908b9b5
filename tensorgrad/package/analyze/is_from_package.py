"""Origin of objects."""
from __future__ import annotations

from types import ModuleType
from typing import Any

from .._mangling import is_mangled


def is_from_package(obj: Any) -> bool:
    """Return True for a module of a package, or an object whose class is defined in one.
    https://pytorch.org/docs → torch.package.is_from_package
    """
    return is_mangled(obj.__name__ if type(obj) is ModuleType else type(obj).__module__)
