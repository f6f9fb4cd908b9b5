"""Checks of arguments that many functions share."""
from __future__ import annotations

from typing import Any

from .. import dtype as dtypes
from ..autograd.tape import TensorBase
from ..dispatch import apply, result_type
from ..ops.base import OPS


def normalize_dim(dim: Any, ndim: int) -> int:
    """An axis counted from the front; IndexError if there is none such. A 0-d tensor counts as having one."""
    n = ndim or 1
    if type(dim) is not int:
        if not hasattr(dim, "__index__") or isinstance(dim, bool):
            raise TypeError(f"argument 'dim' must be int, not {type(dim).__name__}")
        dim = dim.__index__()
    if not -n <= dim < n:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
    return dim + n if dim < 0 else dim


def normalize_dims(dims: Any, ndim: int) -> tuple[int, ...]:
    """Several axes, or one; RuntimeError if one is named twice."""
    if not isinstance(dims, (tuple, list)):
        return (normalize_dim(dims, ndim),)
    out = tuple(normalize_dim(d, ndim) for d in dims)
    for d in out:
        if out.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    return out


def check_tensor(value: Any, function: str, argument: str, position: int) -> None:
    """TypeError if an argument is no tensor."""
    if not isinstance(value, TensorBase):
        raise TypeError(f"{function}(): argument '{argument}' (position {position}) must be Tensor, not {type(value).__name__}")


def check_tensors(input: Any, other: Any, function: str) -> None:
    """TypeError if one of two operands is no tensor."""
    check_tensor(input, function, "input", 1)
    check_tensor(other, function, "other", 2)


def promoted(*tensors: Any) -> tuple[Any, ...]:
    """The tensors in their common dtype."""
    target = result_type(*tensors)
    return tuple(in_dtype(t, target) for t in tensors)


def in_dtype(tensor: Any, dtype: dtypes.dtype) -> Any:
    """The tensor in a dtype; itself if it has it."""
    return tensor if tensor.array.dtype == dtype.numpy else apply(OPS["cast"], tensor, dtype=dtype.numpy)


def floating(tensor: Any) -> Any:
    """Integers and bools in the default dtype."""
    return in_dtype(tensor, dtypes.get_default_dtype()) if tensor.array.dtype.kind in "biu" else tensor
