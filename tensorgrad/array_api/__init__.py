"""The namespace of the Python array API standard: what `Tensor.__array_namespace__()` returns.

https://data-apis.org/array-api/2024.12/

Programs written for the standard, hence for any array library, run on tensors with it. A function of PyTorch with the
standard's name and meaning is used directly; others are adapted here. `Tensor.size` remains PyTorch's method.

>>> import tensorgrad as torch
>>> x = torch.tensor([[3., 1.], [2., 4.]])
>>> xp = x.__array_namespace__()
>>> xp.sum(xp.astype(x, xp.float64), axis=0)
tensor([5., 5.], dtype=torch.float64)
"""
from __future__ import annotations

from math import e, inf, nan, pi

from .. import api as _api
from . import fft, linalg
from .functions import *  # noqa: F403
from .functions import __all__ as _functions
from .functions import _integral
from .info import __array_namespace_info__, finfo, iinfo, isdtype
from .linalg import matrix_transpose, tensordot, vecdot

# The standard's names of functions and dtypes that are PyTorch's, too, and of those that have another name there.
SAME = ("abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift "
        "bitwise_xor bool broadcast_to can_cast complex128 complex64 copysign cos cosh divide empty_like exp expm1 "
        "float32 float64 floor_divide full_like hypot imag int16 int32 int64 int8 isfinite isinf isnan log log10 log1p "
        "log2 logaddexp logical_and logical_not logical_or logical_xor matmul maximum minimum moveaxis multiply "
        "negative nextafter ones_like positive pow real reciprocal remainder result_type sign signbit sin sinh sqrt "
        "square subtract tan tanh uint16 uint32 uint64 uint8 where zeros_like conj").split()
ROUNDING = "ceil floor round trunc".split()
RENAMED = {"bitwise_invert": "bitwise_not", "equal": "eq", "not_equal": "ne", "greater": "gt", "greater_equal": "ge",
           "less": "lt", "less_equal": "le"}
globals().update({name: getattr(_api, RENAMED.get(name, name)) for name in (*SAME, *RENAMED)})
globals().update({name: _integral(getattr(_api, name)) for name in ROUNDING})

__array_api_version__ = "2024.12"
newaxis = None

__all__ = ["__array_api_version__", "__array_namespace_info__", *SAME, *RENAMED, *ROUNDING, *_functions, "e", "fft",
           "finfo", "iinfo", "inf", "isdtype", "linalg", "matrix_transpose", "nan", "newaxis", "pi", "tensordot",
           "vecdot"]
