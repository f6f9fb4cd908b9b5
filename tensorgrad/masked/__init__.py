"""Reductions and normalizations over the elements that a mask keeps. https://pytorch.org/docs/stable/masked.html

>>> import tensorgrad as torch
>>> x, valid = torch.tensor([[1., 2.], [3., 4.]]), torch.tensor([[True, False], [True, True]])
>>> torch.masked.mean(x, 0, mask=valid)
tensor([2., 4.])
"""
from typing import Any as _Any

from ._ops import _canonical_dim, _combine_input_and_mask, _input_mask, _output_mask  # noqa: F401
from ._reductions import amax, amin, argmax, argmin, logsumexp, mean, median, norm, prod, std, sum, var
from ._scans import cumprod, cumsum, log_softmax, logaddexp, normalize, softmax, softmin

# The class overrides functions, for which all methods of Tensor must ask: it is made when it is first used.
_LATER = ("MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor")


def __getattr__(name: str) -> _Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import maskedtensor
    return getattr(maskedtensor, name)


__all__ = ["amax", "amin", "argmax", "argmin", "as_masked_tensor", "cumprod", "cumsum", "is_masked_tensor",  # noqa: F822
           "log_softmax", "logaddexp", "logsumexp", "masked_tensor", "MaskedTensor", "mean", "median", "norm",  # noqa: F822
           "normalize", "prod", "softmax", "softmin", "std", "sum", "var"]
