"""The kinds of arguments of public functions, for annotations. Each is also what a type checker should know.

Annotations are strings (`from __future__ import annotations`). They are read when a call has failed, to say what
PyTorch's argument parser says (`_parsing`), when stubs and documentation are generated, and by nothing else.

A name below, or a class, is one kind of PyTorch's parser; `| None` allows None. `A | B` means two signatures: one with
the first alternative of each argument, one with the second. `*size: Ints1` is a list whose integers may be given as
separate arguments. `_signatures` has the calls that this cannot say.
"""
from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import Any, SupportsIndex, TypeAlias

import numpy as np

from .._tensor import Tensor
from ..device import device
from ..dtype import dtype, layout, memory_format
from ..generator import Generator as Generator

Tensors: TypeAlias = Sequence[Tensor]
Indices: TypeAlias = Sequence[Tensor | None]        # for each axis, None for a whole one
Number: TypeAlias = int | float | complex           # PyTorch calls it Scalar
Operand: TypeAlias = Tensor | int | float | complex # PyTorch's signatures say Tensor
Numbers: TypeAlias = Sequence[int | float | complex]
Index: TypeAlias = int | SupportsIndex              # an int, or a tensor or array of one element
Ints: TypeAlias = Sequence[int]
Ints1: TypeAlias = int | Sequence[int]              # several integers, or one for all
Floats: TypeAlias = Sequence[float]
Dtype: TypeAlias = dtype | str | type               # of Python's types, bool, int, float and complex
Device: TypeAlias = device | str | int
Layout: TypeAlias = layout
MemoryFormat: TypeAlias = memory_format
Storage: TypeAlias = Any                            # a class of `tensorgrad.api.storage_objects`, which lies above
Names: TypeAlias = Sequence[str | None]
Subscript: TypeAlias = SupportsIndex | slice | EllipsisType | Tensor | np.ndarray | Sequence[Any] | None
