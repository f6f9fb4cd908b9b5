"""Patterns of module names. https://pytorch.org/docs → torch.package.GlobGroup"""
from __future__ import annotations

import re
from collections.abc import Iterable

GlobPattern = str | Iterable[str]


class GlobGroup:
    """A set of names: those that match one of the patterns `include` and none of `exclude`.

    Input: patterns of parts between separators. `*` is any text within a part, `**` any number of parts
    Errors: ValueError if `**` is not a part by itself

    >>> from tensorgrad.package import GlobGroup
    >>> group = GlobGroup("models.**", exclude="**.tests")
    >>> [group.matches(name) for name in ("models", "models.vision.resnet", "models.tests", "model")]
    [True, True, False, False]
    """

    def __init__(self, include: GlobPattern, *, exclude: GlobPattern = (), separator: str = ".") -> None:
        self._about = f"GlobGroup(include={include}, exclude={exclude})"
        self.separator = separator
        self.include, self.exclude = (
            [_expression(glob, separator) for glob in ([globs] if isinstance(globs, str) else globs)]
            for globs in (include, exclude))

    def __str__(self) -> str:
        return self._about

    __repr__ = __str__

    def matches(self, candidate: str) -> bool:
        """Return True if a name is in the set."""
        name = self.separator + candidate
        return (any(each.fullmatch(name) for each in self.include)
                and not any(each.fullmatch(name) for each in self.exclude))


def _expression(glob: str, separator: str) -> re.Pattern[str]:
    """Return the regular expression of a pattern: each part follows a separator."""
    mark = re.escape(separator)

    def part(text: str) -> str:
        if text == "**":
            return f"({mark}[^{mark}]+)*"
        if "**" in text:
            raise ValueError("** can only appear as an entire path segment")
        return mark + f"[^{mark}]*".join(map(re.escape, text.split("*")))
    return re.compile("".join(map(part, glob.split(separator))))
