"""Where PyTorch keeps the class of its compiled modules."""
from . import OptimizedModule

__all__ = ["OptimizedModule"]
