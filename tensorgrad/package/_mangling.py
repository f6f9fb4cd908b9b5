"""Names of modules that come from packages: `<torch_package_0>.name`, which no other module can have."""
from __future__ import annotations

import re
from itertools import count

_numbers = count()


class PackageMangler:
    """Puts the name of one importer before names of modules."""

    def __init__(self) -> None:
        self._parent = f"<torch_package_{next(_numbers)}>"

    def mangle(self, name: str) -> str:
        """Return a name with this prefix."""
        if not name:
            raise AssertionError("name must not be empty")
        return f"{self._parent}.{name}"

    def demangle(self, mangled: str) -> str:
        """Return a name without this prefix; others remain."""
        return mangled.removeprefix(f"{self._parent}.")

    def parent_name(self) -> str:
        """Return the prefix."""
        return self._parent


def is_mangled(name: str) -> bool:
    """Return True if a name has such a prefix."""
    return re.match(r"<torch_package_\d+>", name) is not None


def demangle(name: str) -> str:
    """Return a name without any such prefix.

    >>> demangle("<torch_package_7>.a.b"), demangle("a.b")
    ('a.b', 'a.b')
    """
    return name.partition(".")[2] if is_mangled(name) else name


def get_mangle_prefix(name: str) -> str:
    """Return the prefix of a name; the name if it has none."""
    return name.partition(".")[0] if is_mangled(name) else name
