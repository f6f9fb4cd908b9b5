"""torch.functional: functions of the root package under an older name. https://pytorch.org/docs → torch"""
from . import api as _api
from .api._register import FUNCTIONS as _FUNCTIONS

__all__ = ["atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes", "broadcast_tensors", "cartesian_prod", "cdist", "chain_matmul", "einsum",
           "istft", "lu", "meshgrid", "norm", "pca_lowrank", "split", "stft", "svd_lowrank", "tensordot", "unique", "unique_consecutive", "unravel_index"]
globals().update({_name: _FUNCTIONS[_name] if _name in _FUNCTIONS else getattr(_api, _name) for _name in __all__})
