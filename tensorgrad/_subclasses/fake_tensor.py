"""PyTorch's queries about fake tensors; there are none here."""
from __future__ import annotations

from typing import Any

from ..messages.unsupported import unsupported

_NAMES = "FakeTensorConverter FakeTensorMode"
__all__ = ["FakeTensor", "is_fake", *_NAMES.split()]


class FakeTensor:
    """PyTorch's class of tensors without values; no object is an instance."""


def is_fake(x: Any) -> bool:
    """Return False: no tensor is fake."""
    return False


globals().update(unsupported(_NAMES, "torch._subclasses",
                             "programs are not run without values; tensors of device='meta' have shapes alone"))
