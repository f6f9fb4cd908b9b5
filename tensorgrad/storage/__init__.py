"""Storage backends: where memory lives."""
from .base import Namespace, Storage, backend_of, clock
from .cpu import NumpyStorage
from .cuda import CudaStorage

__all__ = ["CudaStorage", "Namespace", "NumpyStorage", "Storage", "backend_of", "clock"]


def __getattr__(name: str) -> object:
    """torch.storage's classes and tables, for programs that look for them there."""
    if name in ("TypedStorage", "UntypedStorage", "_dtype_to_storage_type_map", "_storage_type_to_dtype_map",
                "_get_always_warn_typed_storage_removal", "_set_always_warn_typed_storage_removal"):
        from ..api import storage_objects
        found: object = getattr(storage_objects, name)
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
