"""Short names of dtypes, as logs of tensors show them.

>>> import tensorgrad as torch
>>> from tensorgrad.utils._dtype_abbrs import dtype_abbrs
>>> dtype_abbrs[torch.float32], dtype_abbrs[torch.int64], dtype_abbrs[torch.bool]
('f32', 'i64', 'b8')
"""
from __future__ import annotations

from typing import Any

from ..dtype import NAMED

SHORT = {"bfloat": "bf", "float": "f", "complex": "c", "uint": "u", "int": "i", "bool": "b"}


def short(name: str) -> str:
    """Return a dtype's short name."""
    if name == "bool":
        return "b8"
    kind = next(kind for kind in SHORT if name.startswith(kind))
    return SHORT[kind] + name.removeprefix(kind).replace("_", "")


dtype_abbrs: dict[Any, str] = {dtype: short(name) for name, dtype in NAMED.items()}
