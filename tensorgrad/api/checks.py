"""PyTorch's own assertions, which libraries call: for conditions, tensors, and metadata of tensors.

`_check` and its kin raise an error of the kind in their name; `_assert` raises Python's.
"""
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from .._tensor import Tensor
from .._tensor.torch_function import namespaced
from ..device import device as as_device
from ..dtype import FROM_NUMPY, SCALAR_TYPES
from ._arguments import C_NAMES, check_tensor

Message = Callable[[], Any] | None
UNSAID = ("Expected cond to be True, but got False. (Could this error message be improved? If so, please report an "
          "enhancement request to PyTorch.)")
LAYOUTS = {"strided": "Strided", "sparse_coo": "Sparse", "sparse_csr": "SparseCsr", "sparse_csc": "SparseCsc",
           "sparse_bsr": "SparseBsr", "sparse_bsc": "SparseBsc"}


def _assert(condition: Any, message: Any) -> None:
    """AssertionError with the message unless the condition is true; functions that are traced record it."""
    assert condition, message


def _check_with(error_type: type[Exception], cond: Any, message: Message) -> None:
    if isinstance(cond, Tensor):
        raise TypeError("cond must be a bool, but got a Tensor. For tensor conditions, use torch._check_tensor_all() "
                        "to assert that all elements are true.")
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if not cond:
        raise error_type(_said(message))


def _said(message: Message) -> str:
    if message is None:
        return UNSAID
    if not callable(message):
        raise TypeError("message must be a callable")
    return str(message())


def _check_tensor_all_with(error_type: type[Exception], cond: Any, message: Message = None) -> None:
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.array.dtype.kind != "b":
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    if not cond.array.all():
        raise error_type(_said(message))


def _check_is_size(i: Any, message: Message = None, *, max: Any = None) -> None:
    """RuntimeError unless 0 ≤ i, and i ≤ max where that is given."""
    warnings.warn("_check_is_size will be removed in a future PyTorch release along with guard_size_oblivious.     Use "
                  "_check(i >= 0) instead.", FutureWarning, stacklevel=2)
    _check_with(RuntimeError, bool(i >= 0 and (max is None or i <= max)), message)


def _assert_async(input: Any, assert_msg: str | None = None) -> None:
    """RuntimeError, at once, unless the only element of a tensor is nonzero."""
    check_tensor(input, "_assert_async", "input", 1)
    if not bool(input):
        raise RuntimeError("Expected Tensor with single nonzero value, but got zero" if assert_msg is None
                           else assert_msg)


def _assert_scalar(self: Any, assert_msg: str) -> None:
    """RuntimeError with the message unless a number is nonzero."""
    if not self:
        raise RuntimeError(assert_msg)


def _assert_tensor_metadata(a: Any, size: Any = None, stride: Any = None, dtype: Any = None, *, device: Any = None,
                            layout: Any = None) -> None:
    """RuntimeError unless a tensor has the expected sizes, strides, dtype, device and layout, as far as given."""
    check_tensor(a, "_assert_tensor_metadata", "a", 1)

    def compare(what: str, expected: Any, got: Any) -> None:
        if expected is not None and expected != got:
            raise RuntimeError(f"Tensor {what} mismatch! Expected: {expected}, Got: {got}")
    compare("sizes", None if size is None else list(size), list(a.shape))
    compare("strides", None if stride is None else list(stride), list(a.stride()))
    own = FROM_NUMPY[a.array.dtype]
    if dtype is not None and dtype is not own:
        raise RuntimeError(f"Tensor dtype mismatch! Expected: {SCALAR_TYPES[dtype.name]}, Got: {C_NAMES[own.name]}")
    compare("device", None if device is None else as_device(device), a.device)
    compare("layout", None if layout is None else LAYOUTS[layout.name], LAYOUTS[a.layout.name])


def _checking(error_type: type[Exception], name: str) -> Any:
    def check(cond: Any, message: Message = None) -> None:
        _check_with(error_type, cond, message)
    check.__name__ = check.__qualname__ = name
    check.__doc__ = f"{error_type.__name__} with what `message` returns unless a condition is true."
    return check


def _check_tensor_all(cond: Any, message: Message = None) -> None:
    """RuntimeError with what `message` returns unless all elements of a tensor of bools are true."""
    _check_tensor_all_with(RuntimeError, cond, message)


KINDS = {"_check": RuntimeError, "_check_index": IndexError, "_check_value": ValueError, "_check_type": TypeError,
         "_check_not_implemented": NotImplementedError}
globals().update({name: _checking(error, name) for name, error in KINDS.items()})
globals().update(namespaced({f.__name__: f for f in (_assert, _assert_async, _assert_tensor_metadata)},
                            __name__.partition(".")[0]))
