"""Linear algebra. https://pytorch.org/docs/stable/linalg.html

>>> import tensorgrad as torch
>>> torch.linalg.solve(torch.tensor([[2., 0.], [0., 4.]]), torch.tensor([2., 2.]))
tensor([1.0000, 0.5000])
"""
from ._tensor.torch_function import namespaced as _namespaced
from .api._linalg import LINALG as _LINALG
from .api.linalg import LinAlgError  # noqa: F401
from .messages.missing_names import missing as _missing

globals().update(_namespaced(_LINALG, __name__))

__all__ = sorted([*_LINALG, "LinAlgError"])
__getattr__ = _missing(__name__)
