"""torch._subclasses: fake tensors, on which programs compute shapes alone."""
from typing import Any as _Any

from .fake_tensor import DynamicOutputShapeException, FakeTensor, FakeTensorMode, UnsupportedFakeTensorException

__all__ = ["CrossRefFakeMode", "DynamicOutputShapeException", "FakeTensor", "FakeTensorMode",
           "UnsupportedFakeTensorException"]


def __getattr__(name: str) -> _Any:
    """Load the mode that compares when it is first used: its class makes functions ask modes."""
    if name != "CrossRefFakeMode":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .fake_utils import CrossRefFakeMode
    return CrossRefFakeMode
