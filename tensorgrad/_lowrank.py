"""torch._lowrank: the module that PyTorch's functions of low rank name as their home."""
from importlib import import_module as _import_module

__all__ = ["pca_lowrank", "svd_lowrank"]
pca_lowrank, svd_lowrank = (getattr(_import_module(__package__), _name) for _name in __all__)
