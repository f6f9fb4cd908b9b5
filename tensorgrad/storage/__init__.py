"""Storage backends: where memory lives."""
from .base import Namespace, Storage, backend_of, clock
from .cpu import NumpyStorage
from .cuda import CudaStorage
from .meta import MetaStorage

__all__ = ["CudaStorage", "MetaStorage", "Namespace", "NumpyStorage", "Storage", "backend_of", "clock"]


def __getattr__(name: str) -> object:
    """torch.storage's classes, for programs that look for them there."""
    if name in ("TypedStorage", "UntypedStorage"):
        from .. import storages
        found: object = getattr(storages, name)
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
