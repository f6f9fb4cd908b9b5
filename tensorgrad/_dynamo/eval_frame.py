"""PyTorch's class of compiled modules, under its name."""
from ..nn.modules.module import Module

__all__ = ["OptimizedModule"]


class OptimizedModule(Module):
    """PyTorch's class of compiled modules; no object is an instance."""
