"""The class of compiled modules, in PyTorch's place for it."""
from ..nn.modules.module import Module

__all__ = ["OptimizedModule"]


class OptimizedModule(Module):
    """The class of PyTorch's compiled modules: nothing here is one."""
