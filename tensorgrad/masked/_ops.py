"""PyTorch's import path of the functions of torch.masked, and its names of what they share, which its tests ask for."""
from typing import Any

from . import _reductions, _scans
from ._masks import axes as _canonical_dim
from ._masks import kept, mask_for, parts
from ._reductions import *  # noqa: F403
from ._scans import *  # noqa: F403

__all__ = [*_reductions.__all__, *_scans.__all__]


def _input_mask(input: Any, *args: Any, mask: Any = None, **kwargs: Any) -> Any:
    """Return the mask as bools in the shape of the input."""
    return mask_for(input, mask)


def _output_mask(op: Any, input: Any, *args: Any, mask: Any = None, **kwargs: Any) -> Any:
    """Return the mask of the result of a masked function: True where it comes from an element that is kept."""
    if not callable(op):
        raise ValueError(f"_output_mask expected masked operation (got {type(op).__name__} object)")
    name, kept_here = op.__name__, mask_for(input, mask)
    if name not in _reductions.__all__:
        if name not in _scans.__all__:
            raise ValueError(f"_output_mask expected masked operation (got callable {op.__module__}.{name})")
        return kept_here
    rest = args[1:] if name == "norm" else args
    dims = _canonical_dim(rest[0] if rest else kwargs.get("dim"), input.ndim)
    return kept_here.any(dims, bool(kwargs.get("keepdim"))) if dims else kept_here


def _combine_input_and_mask(op: Any, input: Any, mask: Any, *args: Any) -> Any:
    """Return the input with the identity of a masked function in place of the elements that are left out."""
    if not callable(op):
        raise ValueError(f"_combine_input_and_mask expected masked operation (got {type(op).__name__} object)")
    values, mask = parts(input, mask)
    return kept(op.__name__, values, mask, *args)
