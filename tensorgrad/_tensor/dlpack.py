"""DLPack capsules of dtypes that NumPy does not exchange: bfloat16, float8 and complex32.

NumPy makes and reads the capsule, of bits; the code of the dtype in it, a byte beside the number of bits, is written
here. https://dmlc.github.io/dlpack/latest/c_api.html
"""
from __future__ import annotations

import ctypes
from typing import Any

from ..dtype import NAMED

UNSIGNED = 1
CODES = {"bfloat16": 4, "complex32": 5, "float8_e4m3fn": 10, "float8_e4m3fnuz": 11, "float8_e5m2": 12,
         "float8_e5m2fnuz": 13, "float8_e8m0fnu": 14}
DTYPES = {code: name for name, code in CODES.items()}


class _Array(ctypes.Structure):
    """DLTensor."""

    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned, as far as the array."""

    _fields_ = [("version", ctypes.c_uint32 * 2), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("array", _Array)]


def _described(capsule: Any) -> _Array | None:
    """Return the array that a capsule describes; None for an object that is no unused capsule."""
    valid, pointer = ctypes.pythonapi.PyCapsule_IsValid, ctypes.pythonapi.PyCapsule_GetPointer
    valid.argtypes = pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
    valid.restype, pointer.restype = ctypes.c_int, ctypes.c_void_p
    if valid(capsule, b"dltensor"):
        return _Array.from_address(pointer(capsule, b"dltensor"))
    if valid(capsule, b"dltensor_versioned"):
        return _Versioned.from_address(pointer(capsule, b"dltensor_versioned")).array
    return None


def exported(array: Any, dtype: Any, **options: Any) -> Any:
    """Return a capsule of a NumPy array of a dtype that NumPy does not exchange."""
    capsule = array.view(f"u{array.itemsize}").__dlpack__(**options)
    described = _described(capsule)
    if described is None:
        raise BufferError(f"NumPy's capsule of {dtype} is of an unknown kind")
    described.code = CODES[dtype.name]
    return capsule


def taken(capsule: Any) -> Any:
    """Describe a capsule's elements as unsigned integers if NumPy does not take them; return their dtype, else None."""
    described = _described(capsule)
    if described is None or described.device[0] != 1 or described.lanes != 1:
        return None
    found = NAMED.get(DTYPES.get(described.code, ""))
    if found is None or described.bits != 8 * found.itemsize:
        return None
    described.code = UNSIGNED
    return found
