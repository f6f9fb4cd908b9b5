"""`Variable`, which has long been another word for Tensor, and is still written."""
from __future__ import annotations

import warnings
from typing import Any

from ..core import dispatch
from ..core.engine import ExecutionEngine
from ..core.tape import TensorBase


class _Kind(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, TensorBase)


class Variable(metaclass=_Kind):
    """The old constructor of Tensors: a call makes a leaf that shares the memory of `data`.

    https://pytorch.org/docs → torch.autograd.Variable

    >>> import tensorgrad as torch
    >>> torch.autograd.Variable(torch.ones(1), requires_grad=True)
    tensor([1.], requires_grad=True)
    """

    _execution_engine = ExecutionEngine()

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: Any = None) -> Any:
        if volatile is not None:
            warnings.warn("volatile was removed and now has no effect. Use `with torch.no_grad():` instead.",
                          UserWarning, stacklevel=2)
        if data is None:
            return dispatch.Tensor()
        if not isinstance(data, TensorBase):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        alone = data.data  # type: ignore[attr-defined]
        return alone.requires_grad_() if requires_grad else alone
