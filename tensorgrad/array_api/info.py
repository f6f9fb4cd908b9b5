"""Inspection of dtypes and devices. https://data-apis.org/array-api/2024.12/API_specification/inspection.html"""
from __future__ import annotations

from typing import Any

from .. import api as tg

BOOL = {"bool": tg.bool}
SIGNED = {name: getattr(tg, name) for name in ("int8", "int16", "int32", "int64")}
UNSIGNED = {name: getattr(tg, name) for name in ("uint8", "uint16", "uint32", "uint64")}
REAL = {name: getattr(tg, name) for name in ("float32", "float64")}
COMPLEX = {name: getattr(tg, name) for name in ("complex64", "complex128")}
KINDS = {"bool": BOOL, "signed integer": SIGNED, "unsigned integer": UNSIGNED, "integral": SIGNED | UNSIGNED,
         "real floating": REAL,
         "complex floating": COMPLEX, "numeric": SIGNED | UNSIGNED | REAL | COMPLEX}


class __array_namespace_info__:
    """Inspection of the namespace."""

    @staticmethod
    def capabilities() -> dict[str, Any]:
        """Return the capabilities: boolean indexing, data-dependent shapes, and the maximal number of axes."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    @staticmethod
    def default_device() -> Any:
        """Return the device of new tensors."""
        return tg.get_default_device()

    @staticmethod
    def devices() -> list[Any]:
        """Return the available devices."""
        from .. import cuda
        return [tg.device("cpu"), *(tg.device("cuda", i) for i in range(cuda.device_count()))]

    @staticmethod
    def default_dtypes(*, device: Any = None) -> dict[str, Any]:
        """Return the dtypes of new tensors of Python numbers."""
        real = tg.get_default_dtype()
        return {"real floating": real, "complex floating": tg.complex128 if real is tg.float64 else tg.complex64,
                "integral": tg.int64,
                "indexing": tg.int64}

    @staticmethod
    def dtypes(*, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """Return {name: dtype} of a kind, of several kinds, or of all."""
        kinds = (kind,) if isinstance(kind, str) else kind if kind is not None else ("bool", "numeric")
        unknown = [k for k in kinds if k not in KINDS]
        if unknown:
            raise ValueError(f"unsupported kind: {unknown[0]!r}; known are {', '.join(KINDS)}")
        return {name: value for k in kinds for name, value in KINDS[k].items()}


def isdtype(dtype: Any, kind: Any) -> bool:
    """Return True if a dtype is of a kind ("bool", "integral", "real floating", …), equals a dtype, or matches any
    of a tuple."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str):
        return (dtype in __array_namespace_info__.dtypes(kind=kind).values()
                or (kind in ("real floating", "numeric") and dtype.is_floating_point))
    return dtype is kind


def finfo(type: Any, /) -> Any:  # noqa: A002
    """Return the limits of a floating point dtype, or of a tensor's dtype."""
    return tg.finfo(type.dtype if isinstance(type, tg.Tensor) else type)


def iinfo(type: Any, /) -> Any:  # noqa: A002
    """Return the limits of an integer dtype, or of a tensor's dtype."""
    return tg.iinfo(type.dtype if isinstance(type, tg.Tensor) else type)
