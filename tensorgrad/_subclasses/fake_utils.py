"""A mode that compares functions on fake tensors with the same functions on real ones."""
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from .._tensor import Tensor
from ..utils._python_dispatch import TorchDispatchMode
from ..utils._pytree import tree_leaves, tree_map
from .fake_tensor import FakeTensorMode, NoValues, UnsupportedFakeTensorException

__all__ = ["CrossRefFakeMode", "MetadataMismatchError"]


class MetadataMismatchError(RuntimeError):
    """A result on fake tensors has other metadata than that on real ones."""


class CrossRefFakeMode(TorchDispatchMode):
    """While it is on, each function also runs on fakes of its arguments: sizes, dtypes and devices must agree.

    Functions whose results depend on values are not compared.

    Input: ignore_op_fn: returns True for an operator that is not compared; check_strides: strides must agree, too
    Errors: MetadataMismatchError

    >>> import tensorgrad as torch
    >>> with CrossRefFakeMode():
    ...     torch.ones(2, 3) @ torch.ones(3)
    tensor([3., 3.])
    """

    def __init__(self, ignore_op_fn: Callable[[Any], bool] | None = None, *, check_strides: bool = True,
                 check_aliasing: bool = True, only_check_ops_with_meta: bool = True) -> None:
        super().__init__()
        self.ignore_op_fn, self.check_strides = ignore_op_fn or (lambda func: False), check_strides

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        fake = None if self.ignore_op_fn(func) else self._on_fakes(func, args, kwargs)
        real = func(*args, **kwargs)
        if fake is not None:
            self._compare(func, tree_leaves(real), tree_leaves(fake))
        return real

    def _on_fakes(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Return the function's result on fakes of its arguments; None if it depends on values."""
        try:
            with FakeTensorMode() as mode, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                args, kwargs = tree_map(lambda v: mode.from_tensor(v) if isinstance(v, Tensor) else v, (args, kwargs))
                return func(*args, **kwargs)
        except (NoValues, UnsupportedFakeTensorException):
            return None

    def _compare(self, func: Any, real: list[Any], fake: list[Any]) -> None:
        begins = f"When comparing the output of {func} on FakeTensor and concrete Tensors, found"
        if len(real) != len(fake):
            raise MetadataMismatchError(f"{begins} mismatched number of returns {len(real)} != {len(fake)}")
        for place, (r, f) in enumerate(zip(real, fake)):
            if not isinstance(r, Tensor):
                continue
            facts = [("sizes", r.shape, f.shape), ("dtypes", r.dtype, f.dtype), ("devices", r.device, f.device),
                     ("storage offsets", r.storage_offset(), f.storage_offset()),
                     ("requires_grad", r.requires_grad, f.requires_grad)]
            if self.check_strides:
                facts.append(("strides", r.stride(), f.stride()))
            for what, a, b in facts:
                if a != b:
                    raise MetadataMismatchError(f"{begins} mismatched tensor metadata: result {place} has {what} {a} "
                                                f"and {b}")
