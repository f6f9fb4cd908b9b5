"""Special functions. https://pytorch.org/docs/stable/special.html

>>> import tensorgrad as torch
>>> torch.special.expit(torch.tensor([0.]))
tensor([0.5000])
"""
from __future__ import annotations

from ._tensor import Tensor
from ._tensor.torch_function import namespaced as _namespaced
from .api import FUNCTIONS as _FUNCTIONS
from .api._kinds import Dtype
from .api.special import SPECIAL as _SPECIAL


def softmax(input: Tensor, dim: int, dtype: Dtype | None = None) -> Tensor:
    """exp x / Σ exp x along an axis. https://pytorch.org/docs → torch.special.softmax"""
    return _FUNCTIONS["softmax"](input, dim, dtype=dtype)


def log_softmax(input: Tensor, dim: int, *, dtype: Dtype | None = None) -> Tensor:
    """x − ln Σ exp x along an axis. https://pytorch.org/docs → torch.special.log_softmax"""
    return _FUNCTIONS["log_softmax"](input, dim, dtype=dtype)


globals().update(_namespaced({**_SPECIAL, "softmax": softmax, "log_softmax": log_softmax}, __name__))

__all__ = sorted([*_SPECIAL, "log_softmax", "softmax"])
