"""Control flow as functions: `torch.cond`, loops, scans and maps whose bodies are functions of tensors.

PyTorch has them for its compiler; here they run, and their bodies are recorded as any other code is.
"""
from .associative_scan import associative_scan
from .cond import cond
from .map import map
from .scan import scan
from .while_loop import while_loop

__all__ = ["associative_scan", "cond", "map", "scan", "while_loop"]
