"""Tools for tests. https://pytorch.org/docs/stable/testing.html

>>> import tensorgrad as torch
>>> torch.testing.assert_close(torch.ones(2), torch.tensor([1., 1.5]))
Traceback (most recent call last):
AssertionError: Tensor-likes are not close!
<BLANKLINE>
Mismatched elements: 1 / 2 (50.0%)
Greatest absolute difference: 0.5 at index (1,) (up to 1e-05 allowed)
Greatest relative difference: 0.3333333432674408 at index (1,) (up to 1.3e-06 allowed)
"""
from importlib import import_module as _import_module
from typing import Any as _Any

from ..messages.missing_names import MissingName as _MissingName
from .comparison import assert_allclose, assert_close
from .creation import make_tensor
from .file_check import FileCheck

__all__ = ["FileCheck", "assert_allclose", "assert_close", "make_tensor"]


def __getattr__(name: str) -> _Any:
    """Import `_utils` when it is first asked for."""
    if name == "_utils":
        return _import_module(f"{__name__}.{name}")
    raise _MissingName(__name__, name)
