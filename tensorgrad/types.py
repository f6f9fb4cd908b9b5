"""Types for annotations. https://pytorch.org/docs → torch.types"""
from __future__ import annotations

import os
from collections.abc import Sequence
from typing import IO, Union

from .api import Size, Tensor
from .api import device as _device
from .api import dtype as _dtype  # noqa: F401
from .api import layout as _layout  # noqa: F401

__all__ = ["Device", "FileLike", "Number", "Storage"]

_bool, _bytes, _complex, _float, _int, _str = bool, bytes, complex, float, int, str


class SymInt:
    """The class of PyTorch's symbolic integers, for isinstance: lengths of ragged axes are its only instances."""


class SymFloat:
    """The class of PyTorch's symbolic numbers, for isinstance: it has no instances."""


class SymBool:
    """The class of PyTorch's symbolic booleans, for isinstance: it has no instances."""


Number = Union[int, float, bool]  # noqa: UP007
_Number = (int, float, bool)
Device = Union[_device, str, int, None]  # noqa: UP007
FileLike = Union[str, os.PathLike[str], IO[bytes]]  # noqa: UP007
IntLikeType, FloatLikeType, BoolLikeType = Union[int, SymInt], Union[float, SymFloat], Union[bool, SymBool]  # noqa: UP007
py_sym_types = (SymInt, SymFloat, SymBool)
PySymType = Union[SymInt, SymFloat, SymBool]  # noqa: UP007
_size = Union[Size, list[int], tuple[int, ...]]  # noqa: UP007
_symsize = Union[Size, Sequence[Union[int, SymInt]]]  # noqa: UP007
_TensorOrTensors = Union[Tensor, Sequence[Tensor]]  # noqa: UP007
_TensorOrOptionalTensors = Union[Tensor, Sequence[Union[Tensor, None]]]  # noqa: UP007


class Storage:
    """The type of a storage, for annotations."""
