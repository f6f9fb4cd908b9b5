"""torch.functional: functions of the root package under an older name. https://pytorch.org/docs → torch"""
from importlib import import_module as _import_module

from ._tensor.torch_function import OF_FUNCTIONAL as _OWN

__all__ = sorted(_OWN | {"istft", "pca_lowrank", "svd_lowrank"})
globals().update({_name: getattr(_import_module(__package__), _name) for _name in __all__})


def __getattr__(name: str) -> object:
    if name == "F":                     # as programs call torch.nn.functional from here
        return _import_module(f"{__package__}.nn.functional")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
