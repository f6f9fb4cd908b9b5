"""The enumerations OP, DEVICE and DTYPE.

>>> from tensorgrad.const import OP, DEVICE, DTYPE
>>> import tensorgrad as torch
>>> DTYPE.FLOAT32 is torch.float32, DEVICE.CPU == torch.device('cpu') == 'cpu', OP.SOFTMAX.value
(True, True, 'softmax')
"""
from __future__ import annotations

from enum import Enum
from typing import Any

from .device import CPU as _CPU
from .device import device as _device
from .dtype import ALL as _ALL
from .dtype import EIGHT_BITS as _EIGHT_BITS
from .ops.base import OPS as _OPS


class _Names(type):
    """A class whose members are objects that exist elsewhere."""

    def __iter__(cls) -> Any:
        return (value for name, value in vars(cls).items() if name.isupper())

    def __setattr__(cls, name: str, value: Any) -> None:
        raise AttributeError(f"cannot reassign member {name!r}")


class DTYPE(metaclass=_Names):
    """The dtypes."""

    (BOOL, UINT8, INT8, INT16, INT32, INT64, UINT16, UINT32, UINT64, FLOAT16, BFLOAT16, FLOAT32, FLOAT64, COMPLEX32,
     COMPLEX64, COMPLEX128) = _ALL
    FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT8_E4M3FNUZ, FLOAT8_E5M2FNUZ, FLOAT8_E8M0FNU = _EIGHT_BITS


class DEVICE(metaclass=_Names):
    """The kinds of device."""

    CPU = _CPU
    CUDA = _device("cuda")


_MEMBERS = {name.upper(): name for name in sorted(_OPS)}
_FORMER = {op.former: name for name, op in _OPS.items() if op.former}      # second names

OP = Enum("OP", _MEMBERS | _FORMER, module=__name__)  # type: ignore[misc]
OP.__doc__ = "Every op of the table: the keys of `OpDispatch.register`."
