"""The IDX file format: two zero bytes, a type code, the number of dimensions, the dimensions, the values; all
big-endian."""

from __future__ import annotations

import gzip
import math
import os
import struct
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np

TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
GZIP_MAGIC = b"\x1f\x8b"
GZIP_RATIO = 1040  # deflate compresses by 1032 at most
MOST_DIMENSIONS = 64  # NumPy's limit
CHUNK = 1 << 20


def read_idx(path: Any) -> np.ndarray:
    """Read the array in an IDX file, plain or gzipped.

    ValueError, which names the file, for an invalid one. The header is not trusted: memory is allocated only for bytes
    that the file can have.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "digits").write_bytes(b"\\0\\0\\x08\\x01" + b"\\0\\0\\0\\x03" + bytes([7, 8, 9]))
    ...     read_idx(f"{folder}/digits").tolist()
    [7, 8, 9]
    """
    path = Path(path)
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        packed = file.read(2) == GZIP_MAGIC
        file.seek(0)
        try:
            return parse_idx(gzip.GzipFile(fileobj=file), size * GZIP_RATIO) if packed else parse_idx(file, size)
        except (ValueError, EOFError, zlib.error, gzip.BadGzipFile) as error:
            damage = "" if isinstance(error, ValueError) else "damaged gzip data: "
            raise ValueError(f"{path}: {damage}{error}") from None


def parse_idx(stream: IO[bytes] | gzip.GzipFile, limit: int) -> np.ndarray:
    """Read the array in a stream that cannot hold more than `limit` bytes. ValueError if it is invalid, or larger."""
    dtype, shape = _header(stream)
    length = math.prod(shape) * dtype.itemsize
    if length > limit:
        raise ValueError(f"too short: the header promises shape {shape}, {length} bytes")
    values = _read_at_most(stream, length + 1)
    if len(values) < length:
        raise ValueError(f"too short: the header promises shape {shape}, {length} bytes, but {len(values)} follow")
    if len(values) > length:
        raise ValueError(f"trailing bytes after the {length} of shape {shape}")
    return np.frombuffer(values, dtype).reshape(shape).astype(dtype.newbyteorder("="), copy=False)


def _header(stream: Any) -> tuple[np.dtype, tuple[int, ...]]:
    magic = stream.read(4)
    if len(magic) < 4:
        raise ValueError(f"too short for an IDX header: {len(magic)} bytes")
    zeros, code, ndim = struct.unpack(">HBB", magic)
    if zeros or not ndim:
        raise ValueError(f"not an IDX file: it starts with {magic.hex(' ')}")
    if code not in TYPES:
        raise ValueError(f"not an IDX file: unknown type code 0x{code:02x}")
    if ndim > MOST_DIMENSIONS:
        raise ValueError(f"{ndim} dimensions; arrays have {MOST_DIMENSIONS} at most")
    dimensions = stream.read(4 * ndim)
    if len(dimensions) < 4 * ndim:
        raise ValueError(f"too short for an IDX header of {ndim} dimensions")
    return np.dtype(TYPES[code]), struct.unpack(f">{ndim}I", dimensions)


def _read_at_most(stream: Any, length: int) -> bytearray:
    """Read up to `length` bytes piece by piece, so that memory grows with the data, not with the claimed length."""
    values = bytearray()
    while len(values) < length and (piece := stream.read(min(CHUNK, length - len(values)))):
        values += piece
    return values
