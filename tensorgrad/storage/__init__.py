"""Storage backends: where memory lives."""
from .base import Namespace, Storage, backend_of, clock
from .cpu import NumpyStorage
from .cuda import CudaStorage

__all__ = ["CudaStorage", "Namespace", "NumpyStorage", "Storage", "backend_of", "clock"]
