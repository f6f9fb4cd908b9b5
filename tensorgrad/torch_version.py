"""The type of `torch.__version__`: a string that compares as versions do. https://pytorch.org/docs → torch.__version__

>>> from tensorgrad.torch_version import TorchVersion
>>> TorchVersion("1.10.0") > "1.9", TorchVersion("2.13.0+cpu") >= (2, 13), TorchVersion("2.0.0a1") < "2.0"
(True, True, True)
"""
from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

__all__ = ["TorchVersion"]

_PATTERN = re.compile(r"v?(?P<release>\d+(\.\d+)*)(?:[-_.]?(?P<pre>a|b|rc|alpha|beta|c|dev)[-_.]?(?P"
                      r"<number>\d*))?[^+]*(?:\+(?P<local>.*))?$")
_STAGES = {"dev": -4, "a": -3, "alpha": -3, "b": -2, "beta": -2, "c": -1, "rc": -1}


def _key(version: Any) -> Any:
    """Return the sort key of a version, given as a string or as a tuple of parts; None if it is no version."""
    text = version if isinstance(version, str) else ".".join(str(part) for part in version)
    found = _PATTERN.match(text.strip())
    if found is None:
        return None
    release = [int(part) for part in found["release"].split(".")]
    while len(release) > 1 and release[-1] == 0:
        release.pop()
    return release, _STAGES.get(found["pre"], 0), int(found["number"] or 0), found["local"] or ""


def _compared(how: Callable[[Any, Any], bool]) -> Any:
    def compare(self: TorchVersion, other: Any) -> bool:
        if not isinstance(other, (str, tuple, list)):
            return NotImplemented
        mine, theirs = _key(self), _key(other)
        return how(str(self), str(other)) if mine is None or theirs is None else how(mine, theirs)
    return compare


class TorchVersion(str):
    """A version: 'major.minor.micro' and a suffix."""

    __slots__ = ()
    __lt__, __le__, __gt__, __ge__ = map(_compared, (operator.lt, operator.le, operator.gt, operator.ge))
    __eq__, __ne__ = map(_compared, (operator.eq, operator.ne))
    __hash__ = str.__hash__
