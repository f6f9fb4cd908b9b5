"""Storage backends: where memory lives."""
from collections.abc import Callable

from .base import Namespace, Storage, backend_of, clock
from .cpu import NumpyStorage
from .cuda import CudaStorage

__all__ = ["CudaStorage", "Namespace", "NumpyStorage", "Storage", "backend_of", "clock"]

# {name: function that loads it}: further names of torch.storage, which layers above define and the package registers
ABOVE: dict[str, Callable[[], object]] = {}


def __getattr__(name: str) -> object:
    """torch.storage's classes and tables, for programs that look for them there."""
    if name in ABOVE:
        return ABOVE[name]()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
