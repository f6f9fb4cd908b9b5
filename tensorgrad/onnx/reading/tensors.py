"""Arrays of the tensors in ONNX files, and where their bytes may be.

Bytes are in the model's file, or beside it in files that the model names ("external data"). Such a file must be in the
model's folder or below it, also once links are followed; offset and length must be within the file. No array is made
before its size is known to be what the data have.
"""
from __future__ import annotations

import os
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ...dtype import bfloat16, float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu
from ..errors import InvalidModelError
from .messages import Message
from .wire import Span

# data_type → (dtype, the field with the numbers if `raw_data` is empty)
DTYPES: dict[int, tuple[Any, str]] = {
    number: (np.dtype(name) if isinstance(name, str) else name.numpy, field) for number, name, field in (
        (1, "f4", "float_data"), (2, "u1", "int32_data"), (3, "i1", "int32_data"), (4, "u2", "int32_data"),
        (5, "i2", "int32_data"), (6, "i4", "int32_data"), (7, "i8", "int64_data"), (9, "?", "int32_data"),
        (10, "f2", "int32_data"), (11, "f8", "double_data"), (12, "u4", "uint64_data"), (13, "u8", "uint64_data"),
        (14, "c8", "float_data"), (15, "c16", "double_data"), (16, bfloat16, "int32_data"),
        (17, float8_e4m3fn, "int32_data"), (18, float8_e4m3fnuz, "int32_data"),
        (19, float8_e5m2, "int32_data"), (20, float8_e5m2fnuz, "int32_data"),
        (24, float8_e8m0fnu, "int32_data"))}
# data_type → (bits, signed): several numbers in a byte, the first in the lowest bits; they are read as int8 and uint8
PACKED = {21: (4, False), 22: (4, True), 25: (2, False), 26: (2, True)}

LARGEST = 1 << 59       # the most numbers of an array, where axes of length 0 count as 1


class Files:
    """The files that hold a model's bytes."""

    def __init__(self, model: BinaryIO, folder: str | os.PathLike[str] | None) -> None:
        self.model = model
        self.folder = None if folder is None else Path(folder).resolve()

    def array(self, tensor: Message) -> Any:
        """Return a tensor's values as a new array. InvalidModelError if they do not fit its shape and type."""
        shape = tuple(tensor.dims)
        if any(n < 0 for n in shape):
            raise self.bad(tensor, f"has the shape {shape}")
        if prod(filter(None, shape)) > LARGEST:
            raise self.bad(tensor, f"has the shape {shape}, which is too large")
        count, kind = prod(shape), tensor.data_type
        if kind not in DTYPES and kind not in PACKED:
            raise self.bad(tensor, f"has the data type {kind}, which is not supported")
        bits, signed = PACKED.get(kind, (0, False))
        dtype, field = DTYPES.get(kind, (np.dtype(np.uint8), "int32_data"))
        size = -(-count * bits // 8) if bits else count * dtype.itemsize
        data = self._bytes(tensor, size)
        if data is None:
            data = self._typed(tensor, field, dtype, size)
        if bits:
            return unpacked(data.view(np.uint8), bits, signed, count).reshape(shape)
        return data.view(dtype).reshape(shape) if dtype.kind != "b" else (data != 0).reshape(shape)

    def _bytes(self, tensor: Message, size: int) -> Any:
        """Return the bytes of a tensor as a new array; None if the tensor has its numbers in a field of their type."""
        if tensor.data_location == 1:
            return self._external(tensor, size)
        raw = tensor.raw_data
        if not len(raw):
            return None
        if len(raw) != size:
            raise self.bad(tensor, f"has {len(raw)} bytes, but its shape and type need {size}")
        if not isinstance(raw, Span):
            return np.frombuffer(bytearray(raw), np.uint8)
        return self._read(tensor, self.model, raw.start, size)

    def _external(self, tensor: Message, size: int) -> Any:
        entries = {entry.key: entry.value for entry in tensor.external_data}
        if self.folder is None:
            raise self.bad(tensor, "is in another file, and a model that is read from an open file has no folder")
        start, length = (self._number(tensor, key, entries.get(key)) for key in ("offset", "length"))
        if length is not None and length != size:
            raise self.bad(tensor, f"has {length} bytes, but its shape and type need {size}")
        with open(self._place(tensor, entries.get("location", "")), "rb") as file:
            return self._read(tensor, file, start or 0, size)

    def _number(self, tensor: Message, key: str, text: str | None) -> int | None:
        if text is not None and not (text.isascii() and text.isdigit() and len(text) < 20):
            raise self.bad(tensor, f"has the {key} {text[:40]!r}, which is not a number of bytes")
        return None if text is None else int(text)

    def _place(self, tensor: Message, location: str) -> Path:
        """Return the path of a file of external data. InvalidModelError if it is not below the model's folder."""
        assert self.folder is not None
        try:
            path = (self.folder / location).resolve()
            plain = not os.path.isabs(location) and ".." not in Path(location).parts
            inside = plain and path.is_relative_to(self.folder)
            if inside and path.is_file():
                return path
        except (OSError, ValueError):           # too long, or with a null character
            inside = False
        if inside:
            raise FileNotFoundError(f"the tensor {tensor.name!r} is in {location!r}, and there is no such file beside "
                                    f"the model")
        raise self.bad(tensor, f"is in {location[:200]!r}, which is not below the model's folder")

    def _read(self, tensor: Message, file: BinaryIO, start: int, size: int) -> Any:
        there = file.seek(0, 2) - start
        if size > there:
            raise self.bad(tensor, f"needs {size} bytes from {start}, where the file has {max(there, 0)}")
        found = np.empty(size, np.uint8)
        file.seek(start)
        if file.readinto(memoryview(found)) != size:    # type: ignore[attr-defined, arg-type, unused-ignore]
            raise self.bad(tensor, "cannot be read whole: its file is being changed")
        return found

    def _typed(self, tensor: Message, field: str, dtype: Any, size: int) -> Any:
        """Return the numbers of the field for a type, as the bytes of the type."""
        numbers = np.asarray(getattr(tensor, field))
        if dtype.kind in "fV" and field == "int32_data":        # the bits of small floats
            numbers = numbers.astype(f"u{dtype.itemsize}")
        elif field not in ("float_data", "double_data"):
            numbers = numbers.astype(dtype)
        numbers = numbers.view(np.uint8) if dtype.kind != "b" else numbers
        if numbers.size != size:
            raise self.bad(tensor, f"has {numbers.size} bytes, but its shape and type need {size}")
        return numbers.copy() if numbers.base is not None else numbers

    def sparse(self, sparse: Message) -> Any:
        """Return the dense array of a sparse tensor. InvalidModelError if an index is not within its shape."""
        if sparse.values is None or sparse.indices is None:
            raise InvalidModelError("a sparse tensor lacks its values or its indices")
        values, indices, shape = self.array(sparse.values), self.array(sparse.indices), tuple(sparse.dims)
        name = sparse.values
        if values.ndim != 1 or indices.dtype != np.int64 or any(n < 0 for n in shape):
            raise self.bad(name, "is sparse with values or indices of a wrong kind")
        if prod(shape) > max(1 << 24, 1024 * values.size):
            raise self.bad(name, f"is sparse with the shape {shape}, of which {values.size} values are given")
        if indices.ndim == 2 and indices.shape == (values.size, len(shape)):
            within = bool((indices >= 0).all() and (indices < np.asarray(shape, np.int64)).all())
            flat = np.ravel_multi_index(tuple(indices.T), shape) if within and len(shape) else indices[:, :0].sum(1)
        else:
            flat = indices.reshape(-1)
            within = indices.shape == values.shape and bool(((flat >= 0) & (flat < prod(shape))).all())
        if not within:
            raise self.bad(name, f"is sparse with indices that are not within the shape {shape}")
        dense = np.zeros(prod(shape), values.dtype)
        dense[flat] = values
        return dense.reshape(shape)

    @staticmethod
    def bad(tensor: Message, what: str) -> InvalidModelError:
        return InvalidModelError(f"the tensor {tensor.name!r} {what}")


def unpacked(octets: Any, bits: int, signed: bool, count: int) -> Any:
    """Return numbers of 2 or 4 bits, several of which are in each byte.

    >>> unpacked(np.array([0x21, 0x0f], np.uint8), 4, True, 3)
    array([ 1,  2, -1], dtype=int8)
    """
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    found = (octets[:, None] >> shifts & ((1 << bits) - 1)).reshape(-1)[:count]
    if not signed:
        return found
    return (found.astype(np.int8) ^ (1 << bits - 1)) - np.int8(1 << bits - 1)

