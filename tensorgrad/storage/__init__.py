"""Storage backends: where memory lives."""
from collections.abc import Callable

from .base import Namespace, Storage, backend_of, clock
from .cpu import NumpyStorage
from .cuda import CudaStorage

__all__ = ["CudaStorage", "Namespace", "NumpyStorage", "Storage", "backend_of", "clock"]

# {name: load}: what torch.storage has besides, which layers above define; the package fills it
ABOVE: dict[str, Callable[[], object]] = {}


def __getattr__(name: str) -> object:
    """torch.storage's classes and tables, for programs that look for them there."""
    if name in ABOVE:
        return ABOVE[name]()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
