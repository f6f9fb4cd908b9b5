"""Functions of autograd that old programs apply by name: `Resize` and `Type`."""
from .tensor import Resize, Type

__all__ = ["Resize", "Type"]
