"""`OpDispatch`, which registers kernels, and `xp`, the op table for Tensors.

The dispatcher itself is `core/dispatch.py`.
"""
from .core.dispatch import OpDispatch, apply, xp

__all__ = ["OpDispatch", "apply", "xp"]
