"""Kernels from outside: `OpDispatch` registers them, `xp` is the op table as Tensors see it. The dispatcher itself is `core/dispatch.py`."""
from .core.dispatch import OpDispatch, apply, xp

__all__ = ["OpDispatch", "apply", "xp"]
