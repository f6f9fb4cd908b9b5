"""PyTorch's dtypes of which there are no tensors here: programs name and compare them, and read their properties.

https://pytorch.org/docs → torch.Tensor. They are keys of tables in many programs, and values of dtype arguments that
are never used. A tensor of such a dtype cannot be made: NotImplementedError, as for most of them in PyTorch.
"""
from __future__ import annotations

from typing import Any

from . import dtype as dtypes
from .dtype import COMPLEX, FLOATING, INTEGER, NOMINAL, SCALAR_TYPES, dtype


class NominalDtype(dtype):
    """A dtype without tensors.

    >>> import tensorgrad as torch
    >>> torch.qint8, torch.qint8.itemsize, torch.uint4.is_signed
    (torch.qint8, 1, False)
    """

    __slots__ = ("scalar_type", "_signed")

    def __init__(self, name: str, scalar_type: str, category: int, itemsize: int, signed: bool | str) -> None:
        self.name, self.scalar_type, self.category, self.itemsize = name, scalar_type, category, itemsize
        self.is_floating_point, self.is_complex = category == FLOATING, category == COMPLEX
        self._signed = signed

    @property
    def is_signed(self) -> bool:    # type: ignore[override]
        """True if the dtype has negative numbers; RuntimeError where PyTorch does not say."""
        if isinstance(self._signed, str):
            raise RuntimeError(self._signed)
        return self._signed

    @property
    def numpy(self) -> Any:
        """NotImplementedError: no array here holds such values."""
        raise NotImplementedError(f"\"copy_\" not implemented for '{self.scalar_type}': tensorgrad has no tensors of "
                                  f"the dtype {self.name}")

    def to_real(self) -> dtype:
        """The dtype of the real and imaginary parts."""
        return dtypes.float16 if self.is_complex else self

    def to_complex(self) -> dtype:
        """The dtype itself if it is complex; RuntimeError for others."""
        if self.is_complex:
            return self
        raise RuntimeError(f"Unknown Complex ScalarType for {self.scalar_type}")

    def common(self, a: dtype, b: dtype) -> dtype | None:
        """PyTorch's common dtype of this one and another; RuntimeError where it has none; None: the usual rules."""
        other = b if a is self else a
        names = [SCALAR_TYPES[d.name] for d in (a, b)]
        if "q" in (a.name[0], b.name[0]):
            raise RuntimeError("promoteTypes with quantized numbers is not handled yet; figure out what the correct "
                               f"rules should be, offending types: {' '.join(names)}")
        if "bits" in (a.name[:4], b.name[:4]):
            raise RuntimeError(f"Promotion from {' and '.join(names)} is unsupported.")
        if self.name.startswith("uint") and not other.is_floating_point:
            raise RuntimeError("Promotion for uint16, uint32, uint64 types is not supported, attempted to promote "
                               f"{' and '.join(names)}")
        if self.name.startswith(("int", "float4")):
            raise RuntimeError(f"Promotion of {self.scalar_type} is not supported, attempted to promote "
                               f"{' and '.join(names)}")
        narrow = other is dtypes.float16 or other.category < FLOATING and type(other) is dtype
        return self if self.is_complex and narrow else None

    def __reduce__(self) -> Any:
        return nominal, (self.name,)


def _whole(names: str, scalar_type: Any, signed: bool | str) -> list[NominalDtype]:
    """Return integer dtypes, of a byte each unless the name ends in a number of bits."""
    bytes_of = {"qint32": 4, "bits16": 2}
    return [NominalDtype(name, scalar_type(name), INTEGER, bytes_of.get(name, 1), signed) for name in names.split()]


def nominal(name: str) -> dtype:
    """Return the dtype of a pickle."""
    return NOMINAL[name]


_ALL = (
    NominalDtype("float4_e2m1fn_x2", "Float4_e2m1fn_x2", FLOATING, 1, True),
    *_whole("uint1 uint2 uint3 uint4 uint5 uint6 uint7", lambda name: f"UInt{name[-1]}", False),
    *_whole("int1 int2 int3 int4 int5 int6 int7", str.capitalize, True),
    *_whole("qint8 qint32", lambda name: f"QInt{name[4:]}", "isSignedType not supported for quantized types"),
    *_whole("quint8 quint4x2 quint2x4", lambda name: f"QUInt{name[5:]}",
            "isSignedType not supported for quantized types"),
    *_whole("bits8 bits16 bits1x8 bits2x4 bits4x2", str.capitalize, "Bits types are undefined"))
NOMINAL.update({d.name: d for d in _ALL})
SCALAR_TYPES.update({d.name: d.scalar_type for d in _ALL})
globals().update(NOMINAL)
