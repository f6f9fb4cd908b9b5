"""torch.functional: functions of the root package under an older name. https://pytorch.org/docs → torch"""
from importlib import import_module as _import_module

__all__ = ("atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod cdist "
           "chain_matmul einsum istft lu meshgrid norm pca_lowrank split stft svd_lowrank tensordot unique "
           "unique_consecutive unravel_index").split()
globals().update({_name: getattr(_import_module(__package__), _name) for _name in __all__})


def __getattr__(name: str) -> object:
    if name == "F":                     # as programs call torch.nn.functional from here
        return _import_module(f"{__package__}.nn.functional")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
