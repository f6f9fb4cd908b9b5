"""torch._lobpcg: the module that PyTorch's `lobpcg` names as its home."""
from importlib import import_module as _import_module

__all__ = ["lobpcg"]
lobpcg = _import_module(__package__).lobpcg
