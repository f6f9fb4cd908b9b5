"""State dicts as NumPy's .npz files, for programs that have NumPy alone.

Objects are never unpickled; files are written atomically.

>>> import tempfile, tensorgrad as torch
>>> from tensorgrad.utils import npz
>>> path = tempfile.mkdtemp() + "/weights.npz"
>>> npz.save_file(torch.nn.Linear(3, 2).state_dict(), path)
>>> {name: tuple(tensor.shape) for name, tensor in npz.load_file(path).items()}
{'weight': (2, 3), 'bias': (2,)}
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from errno import EINVAL
from math import prod
from typing import Any

import numpy as np

from ..api import Tensor, from_numpy
from ..messages.escaping import escaped
from ..serialization._archive import ENCRYPTED, _fill
from ..serialization._atomic import replacing

__all__ = ["load_file", "save_file"]

RATIO, LEAST_LIMIT, MOST_AXES = 20, 1 << 28, 64
METHODS = {0: 1, 8: 1032}  # stored, deflated: the largest ratio of expansion
NUMBERS = frozenset("b1 i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16".split())
# Errors that zipfile raises beside its own error; the OSError is EINVAL, for a seek before the file's beginning.
MALFORMED = (EOFError, struct.error, UnicodeDecodeError, NotImplementedError, OverflowError, OSError)
READERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def save_file(tensors: Mapping[str, Tensor], path: Any) -> None:
    """Write tensors under their names.

    TypeError for other values, and for dtypes that NumPy lacks, such as bfloat16.
    """
    arrays = {}
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name!r} is a {type(tensor).__name__}, and .npz files hold tensors")
        if tensor.array.dtype.kind not in "biufc":
            raise TypeError(f"{name!r} is of {tensor.dtype}, which .npz files cannot say: utils.safetensors can")
        arrays[name] = tensor.detach().cpu().numpy()
    with replacing(path) as file:
        np.savez(file, **arrays)


def load_file(path: Any, largest: int | None = None) -> dict[str, Tensor]:
    """Return the tensors of a file, by their names.

    largest: the limit on the bytes of all arrays; by default 20 times the file's length, and at least
    256 MiB, since a compressed file of a megabyte can hold a gigabyte of zeros. ValueError for files that hold anything
    else, or are damaged.
    """
    import zipfile
    import zlib

    try:
        with zipfile.ZipFile(path) as archive:
            return _tensors(archive, path, largest)
    except (zipfile.BadZipFile, zlib.error, *MALFORMED) as error:
        if isinstance(error, OSError) and error.errno != EINVAL:
            raise
        raise ValueError(_of_no_archive(path) or f"the .npz file is damaged: {escaped(error, 200)}") from None


def _of_no_archive(path: Any) -> str | None:
    """Return the error for a file that is no archive."""
    if hasattr(path, "read"):
        path.seek(0)
        head = path.read(6)
    else:
        with open(path, "rb") as file:
            head = file.read(6)
    if head == np.lib.format.MAGIC_PREFIX:
        return f"{path} is not an .npz file: it holds a single array"
    return None if head[:2] == b"PK" else f"{path} is not an .npz file"


def _tensors(archive: Any, path: Any, largest: int | None) -> dict[str, Tensor]:
    entries = archive.infolist()
    length = archive.fp.seek(0, 2)
    limit = max(RATIO * length, LEAST_LIMIT) if largest is None else largest
    if (size := sum(entry.file_size for entry in entries)) > limit:
        trusted = f"if you trust the file, say `largest={size}`"
        raise ValueError(f"the arrays of {path} take {size} bytes, more than {limit}: {trusted}")
    if sum(entry.compress_size for entry in entries) > length:
        raise ValueError("the entries of the .npz file are longer than the file, or overlap")
    found: dict[str, Tensor] = {}
    for entry in entries:
        name = entry.filename.removesuffix(".npy")
        if entry.compress_type not in METHODS or entry.flag_bits & ENCRYPTED or name == entry.filename or name in found:
            what = "is no array, is encrypted or is there twice"
            raise ValueError(f"the entry {entry.filename!r:.200} of the .npz file {what}")
        if entry.file_size > entry.compress_size * METHODS[entry.compress_type]:
            raise ValueError(f"the entry {entry.filename!r:.200} of the .npz file is shorter than it says")
        with archive.open(entry) as file:
            found[name] = from_numpy(_array(file, entry.file_size, name))
    return found


def _array(file: Any, size: int, name: str) -> np.ndarray:
    """Read the array in an .npy file of that size, which is allocated only if its header agrees with the size."""
    shape, fortran, dtype = _header(file, name)
    if dtype.hasobject:
        raise ValueError(f"{name!r:.200} is an object array, which cannot be loaded when allow_pickle=False")
    if dtype.kind not in "biufc" or dtype.newbyteorder("=").str[1:] not in NUMBERS:
        raise ValueError(f"{name!r:.200} is of NumPy's dtype {str(dtype)!r:.100}, which tensors do not have")
    left = size - file.tell()
    counts = len(shape) <= MOST_AXES and all(type(n) is int and n >= 0 for n in shape)
    if not counts or prod(shape) * dtype.itemsize != left:
        raise ValueError(f"{name!r:.200} has another length than its shape and dtype say")
    data = bytearray(left)
    if _fill(file, memoryview(data)) != len(data) or file.read(1):  # zipfile compares the checksum at the end
        raise ValueError(f"{name!r:.200} is cut off")
    array = np.frombuffer(data, dtype)
    if dtype.kind == "b":  # bools other than 0 and 1 are undefined behaviour in C
        array = array.view(np.uint8) != 0
    return array.astype(dtype.newbyteorder("="), copy=False).reshape(shape, order="F" if fortran else "C")


def _header(file: Any, name: str) -> tuple[tuple[int, ...], bool, np.dtype]:
    from tokenize import TokenError

    try:
        version = np.lib.format.read_magic(file)
        if version in READERS:
            return READERS[version](file)
    except (
        SyntaxError,
        TypeError,
        MemoryError,
        RecursionError,
        ValueError,
        TokenError,
    ) as error:  # NumPy evaluates the header as a literal
        raise ValueError(f"the header of {name!r:.200} is malformed: {escaped(error, 200)}") from None
    raise ValueError(f"the header of {name!r:.200} is of version {version}, which arrays of numbers do not have")
