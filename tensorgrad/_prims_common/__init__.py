"""torch._prims_common: PyTorch's helpers for definitions of operators in Python: kinds of dtypes, dims and strides.

>>> from tensorgrad import _prims_common, float64
>>> _prims_common.corresponding_complex_dtype(float64), _prims_common.canonicalize_dims(3, (0, -1))
(torch.complex128, (0, 2))
"""
from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from math import prod
from typing import Any, TypeAlias

from .._tensor import Tensor
from ..api._arguments import normalize_dim
from ..core.casting import result_type
from ..dtype import (
    bfloat16,
    channels_last,
    channels_last_3d,
    complex32,
    complex64,
    complex128,
    contiguous_format,
    float16,
    float32,
    float64,
    get_default_dtype,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from ..dtype import bool as boolean
from ..dtype import dtype as Dtype  # noqa: N812
from ..size import Size
from ..types import Device, SymBool, SymFloat, SymInt

TensorLike = TensorLikeType = Tensor
Dim = int
DimsType: TypeAlias = int | list[int] | tuple[int, ...]
DimsSequenceType: TypeAlias = list[int] | tuple[int, ...]
ShapeType: TypeAlias = Size | list[int] | tuple[int, ...]
StrideType: TypeAlias = list[int] | tuple[int, ...]
DeviceLikeType = Device
RealNumberType: TypeAlias = bool | int | float
NumberType: TypeAlias = bool | int | float | complex
TensorSequenceType: TypeAlias = list[Tensor] | tuple[Tensor, ...]
IntLike, FloatLike, BoolLike = (int, SymInt), (float, SymFloat), (bool, SymBool)
Number = (bool, int, float, complex, SymInt, SymFloat, SymBool)

_COMPLEX: dict[Dtype, Dtype] = {float16: complex32, bfloat16: complex64, float32: complex64,
                                float64: complex128}
_REAL: dict[Dtype, Dtype] = {complex32: float16, complex64: float32, complex128: float64}
_INTEGERS = {int8, int16, int32, int64, uint8, uint16, uint32, uint64}
_WIDER: dict[Dtype, Dtype] = {float16: float32, bfloat16: float32, complex32: complex64}


# ── dtypes ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def is_boolean_dtype(dtype: Dtype) -> bool:
    """Return True for bool."""
    return dtype is boolean


def is_integer_dtype(dtype: Dtype) -> bool:
    """Return True for dtypes of integers; bool is none."""
    return dtype in _INTEGERS


def is_float_dtype(dtype: Dtype) -> bool:
    """Return True for real dtypes of floating point."""
    return dtype.is_floating_point


def is_complex_dtype(dtype: Dtype) -> bool:
    """Return True for complex """
    return dtype in _REAL


def is_grad_dtype(dtype: Dtype) -> bool:
    """Return True for dtypes whose tensors may have gradients."""
    return is_float_dtype(dtype) or is_complex_dtype(dtype)


def is_low_precision_dtype(dtype: Dtype) -> bool:
    """Return True for dtypes whose operators compute in a wider one."""
    return dtype in _WIDER


def get_computation_dtype(dtype: Dtype) -> Dtype:
    """Return the dtype that operators compute in."""
    return _WIDER.get(dtype, dtype)


def corresponding_real_dtype(dtype: Dtype) -> Dtype:
    """Return the dtype of the real part of a complex one. Raises KeyError for others."""
    return _REAL[dtype]


def corresponding_complex_dtype(dtype: Dtype) -> Dtype:
    """Return the complex dtype for a real one of floating point. Raises KeyError for others."""
    return _COMPLEX[dtype]


def dtype_to_type(dtype: Dtype) -> type:
    """Return Python's type of the numbers of a dtype."""
    for known, kind in ((is_boolean_dtype, bool), (is_integer_dtype, int), (is_float_dtype, float),
                        (is_complex_dtype, complex)):
        if known(dtype):
            return kind
    raise ValueError("Invalid dtype!")


def type_to_dtype(typ: type) -> Dtype:
    """Return the dtype of a tensor of one number of a type."""
    if typ not in (bool, int, float, complex):
        raise ValueError(f"Invalid type {typ}!")
    return result_type(typ(0))


class ELEMENTWISE_TYPE_PROMOTION_KIND(Enum):
    """How the dtype of a result follows from those of the operands."""

    DEFAULT = (0,)
    NO_OPMATH = (1,)
    INT_TO_FLOAT = (2,)
    ALWAYS_BOOL = (3,)
    COMPLEX_TO_FLOAT = (4,)
    BOOL_TO_LONG = (5,)


class REDUCTION_OUTPUT_TYPE_KIND(Enum):
    """How the dtype of a reduction follows from its input's."""

    SAME = (0,)
    COMPLEX_TO_FLOAT = (1,)
    KEEP_PROMOTED_TYPE = (2,)
    ALWAYS_BOOL = (3,)


def elementwise_dtypes(*operands: Any, type_promotion_kind: ELEMENTWISE_TYPE_PROMOTION_KIND) -> tuple[Dtype, Dtype]:
    """Return the dtype that an operator computes in, and that of its result.

    >>> import tensorgrad as torch
    >>> from tensorgrad._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND as KIND, elementwise_dtypes
    >>> elementwise_dtypes(torch.ones(2, dtype=torch.float16), 1.5, type_promotion_kind=KIND.DEFAULT)
    (torch.float32, torch.float16)
    """
    found, kinds = result_type(*[a for a in operands if a is not None]), ELEMENTWISE_TYPE_PROMOTION_KIND
    if type_promotion_kind is kinds.INT_TO_FLOAT and not is_grad_dtype(found):
        found = get_default_dtype()
    elif type_promotion_kind is kinds.BOOL_TO_LONG and is_boolean_dtype(found):
        found = int64
    if type_promotion_kind is kinds.NO_OPMATH:
        return found, found
    result = (boolean if type_promotion_kind is kinds.ALWAYS_BOOL else
              _REAL.get(found, found) if type_promotion_kind is kinds.COMPLEX_TO_FLOAT else found)
    return get_computation_dtype(found), result


# ── dims and shapes ───────────────────────────────────────────────────────────────────────────────────────────────────


def canonicalize_dim(rank: int, idx: int, wrap_scalar: bool = True) -> int:
    """Return a dim, counted from the front; IndexError if it is out of range."""
    if not rank and not wrap_scalar:
        raise IndexError(f"Dimension specified as {idx} but tensor has no dimensions")
    return normalize_dim(idx, rank)


def canonicalize_dims(rank: int, indices: Any, wrap_scalar: bool = True) -> Any:
    """Return a dim, or a tuple of dims, counted from the front."""
    if isinstance(indices, int):
        return canonicalize_dim(rank, indices, wrap_scalar)
    return tuple(canonicalize_dim(rank, d, wrap_scalar) for d in indices)


def reduction_dims(shape: Any, dims: Any) -> tuple[int, ...]:
    """Return the dims of a reduction, counted from the front: all of them for None."""
    if dims is None:
        return tuple(range(len(shape)))
    found: tuple[int, ...] = canonicalize_dims(len(shape), tuple(dims))
    if len(set(found)) < len(found):
        raise RuntimeError("duplicate value in the list of dims")
    return found


def compute_reduction_output_shape(shape: Any, dimensions: Any) -> tuple[int, ...]:
    """Return a shape without some of its dims."""
    return tuple(n for d, n in enumerate(shape) if d not in dimensions)


def is_same_shape(a: Any, b: Any) -> bool:
    """Return True if two shapes are equal."""
    return tuple(a) == tuple(b)


def check(condition: bool, message: Callable[[], str], exc_type: type[Exception] = RuntimeError) -> None:
    """Raise an error unless a condition holds; the message is made only then."""
    if not condition:
        raise exc_type(message())


# ── strides ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def make_contiguous_strides_for(shape: Any, row_major: bool = True) -> tuple[int, ...]:
    """Return the strides of a contiguous tensor; the last two dims are swapped unless `row_major`."""
    strides = [prod(max(n, 1) for n in shape[d + 1:]) for d in range(len(shape))]
    if not row_major and len(shape) > 1:
        strides[-2:] = 1, max(shape[-2], 1)
    return tuple(strides)


def make_channels_last_strides_for(shape: Any) -> tuple[int, ...]:
    """Return the strides of a tensor (N, C, …) whose channels follow each other in memory."""
    n, c, *rest = shape
    outer, *inner, channels = make_contiguous_strides_for((n, *rest, c))
    return outer, channels, *inner


def is_contiguous(a: Tensor) -> bool:
    """Return True if a tensor is contiguous."""
    return a.is_contiguous()


def is_channels_last_contiguous(a: Tensor) -> bool:
    """Return True if the channels of a tensor (N, C, …) follow each other in memory."""
    return any(a.is_contiguous(memory_format=f) for f in (channels_last, channels_last_3d))


def suggest_memory_format(x: Tensor) -> Any:
    """Return the memory format that results of operators of a tensor take."""
    if x.dim() in (4, 5) and is_channels_last_contiguous(x) and not x.is_contiguous():
        return channels_last if x.dim() == 4 else channels_last_3d
    return contiguous_format


def check_all_strides(a: Tensor, b: Tensor, *, only_cuda: bool = True) -> tuple[bool, int | None]:
    """Return True, and None, if all strides are equal; else False, and the first dim where they are not.

    As in PyTorch, tensors on other devices than CUDA and XPU pass, unless `only_cuda` is false.
    """
    return _strides_agree(a, b, only_cuda, significant=False)


def check_significant_strides(a: Tensor, b: Tensor, *, only_cuda: bool = True) -> tuple[bool, int | None]:
    """Like `check_all_strides`, without the dims of size 1, whose strides have no effect."""
    return _strides_agree(a, b, only_cuda, significant=True)


def _strides_agree(a: Tensor, b: Tensor, only_cuda: bool, significant: bool) -> tuple[bool, int | None]:
    if (only_cuda and not {a.device.type, b.device.type} & {"cuda", "xpu"}) or not a.numel():
        return True, None
    for d, (size, one, other) in enumerate(zip(a.shape, a.stride(), b.stride(), strict=True)):
        if one != other and not (significant and size <= 1):
            return False, d
    return True, None
