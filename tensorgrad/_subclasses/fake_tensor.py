"""Where packages ask whether a tensor has values; all here have."""
from __future__ import annotations

from typing import Any

from .._unsupported import unsupported

_NAMES = "FakeTensorMode"
__all__ = ["FakeTensor", "is_fake", *_NAMES.split()]


class FakeTensor:
    """The class of PyTorch's tensors without values: nothing here is one."""


def is_fake(x: Any) -> bool:
    """Whether a tensor has a shape but no values, as no tensor here."""
    return False


globals().update(unsupported(_NAMES, "torch._subclasses", "programs are not run without values; tensors of device='meta' have shapes alone"))
