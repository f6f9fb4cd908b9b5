"""Share memory with other libraries by DLPack capsules. https://pytorch.org/docs/stable/dlpack.html"""
from ..api import from_dlpack, to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
