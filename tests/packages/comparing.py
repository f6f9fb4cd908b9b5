"""Compare what a program printed over tensorgrad with what it printed over PyTorch."""
from __future__ import annotations

import math
import re

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\bnan\b|\binf\b)")
RELATIVE, ABSOLUTE = 1e-3, 1e-4


def difference(ours: str, theirs: str) -> str:
    """Return the first lines that differ, as "ours ≠ theirs"; "" if the texts are equal but for the last digits."""
    one, other = ours.splitlines(), theirs.splitlines()
    for a, b in zip(one, other):
        if NUMBER.sub("#", a) != NUMBER.sub("#", b) or not all(map(_close, NUMBER.findall(a), NUMBER.findall(b))):
            return f"{a} ≠ {b}"
    return "" if len(one) == len(other) else f"{len(one)} lines ≠ {len(other)} lines"


def _close(a: str, b: str) -> bool:
    x, y = float(a), float(b)
    return math.isclose(x, y, rel_tol=RELATIVE, abs_tol=ABSOLUTE) or (math.isnan(x) and math.isnan(y))
