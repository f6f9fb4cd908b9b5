"""Read files of Lua Torch, `.t7`: numbers, strings, tables, tensors, storages and modules.

Files are data: no code is run, and functions are refused.

A binary file is one object. An object is the number of its type (0 nil, 1 number, 2 string, 3 table, 4 an object of
Torch, 5 boolean) and its content. Tables and Torch's objects have an index, by which later occurrences refer to them;
Torch's objects have the name of their class. Lua counts from 1: axes and indices that modules keep are converted to
count from 0.
"""
from __future__ import annotations

import os
import struct
from collections.abc import Callable
from typing import Any, BinaryIO

from .. import api as tg
from . import nn

__all__ = ["load_lua"]

DEEPEST = 100                   # objects inside objects
DTYPES = {"Float": tg.float32, "Double": tg.float64, "Half": tg.float16, "Byte": tg.uint8, "Char": tg.int8,
          "Short": tg.int16, "Int": tg.int32, "Long": tg.int64, "Cuda": tg.float32, "CudaDouble": tg.float64,
          "CudaHalf": tg.float16, "CudaLong": tg.int64, "CudaInt": tg.int32, "CudaByte": tg.uint8, "CudaChar": tg.int8,
          "CudaShort": tg.int16}
# Attributes that count axes or entries from 1 in Lua.
FROM_ONE = {"Concat": "dimension", "DepthConcat": "dimension", "JoinTable": "dimension", "SplitTable": "dimension",
            "Select": "dimension index", "Narrow": "dimension offset", "SelectTable": "index", "NarrowTable": "offset",
            "Max": "dimension", "Min": "dimension", "Mean": "dimension", "Sum": "dimension",
            "Parallel": "inputDimension outputDimension", "Index": "dimension", "Replicate": "dim", "Padding": "dim",
            "Unsqueeze": "dim",
            "Squeeze": "dim"}
RENAMED = {("Narrow", "index"): "offset", ("Unsqueeze", "pos"): "dim", ("Threshold", "val"): "value",
           ("HardTanh", "min_val"): "min_value", ("HardTanh", "max_val"): "max_value",
           ("LeakyReLU", "negval"): "negval", ("View", "size"): "sizes",
           ("Power", "pow"): "p",
           ("Replicate", "nfeatures"): "nfeatures"}
SAME = {"SpatialConvolutionMM": "SpatialConvolution", "VolumetricConvolutionMM": "VolumetricConvolution",
        "LookupTableGPU": "LookupTable"}


def load_lua(file: str | os.PathLike[str] | BinaryIO) -> Any:
    """Read the object in a binary `.t7` file: numbers, strings, lists, dictionaries, tensors, and modules of
    `legacy.nn`.

    A table with keys 1 … n is a list. Errors: ValueError for another or a damaged file, and for a function or a class
    that is not in `legacy.nn`.

    >>> import io
    >>> from tensorgrad.legacy import load_lua
    >>> load_lua(io.BytesIO(bytes([1, 0, 0, 0]) + bytes.fromhex("0000000000004540")))
    42
    """
    if not hasattr(file, "read"):
        with open(file, "rb") as opened:            # type: ignore[arg-type]
            return load_lua(opened)
    reader = _Reader(file.read())                   # type: ignore[union-attr]
    found = reader.object(0)
    if reader.at != len(reader.data):
        raise ValueError(f"{len(reader.data) - reader.at} bytes follow the object in a .t7 file")
    return found


class _Reader:
    """The bytes of a file, and the objects read so far."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0
        self.known: dict[int, Any] = {}
        self.types: dict[int, Callable[[int], Any]] = {
            0: lambda depth: None, 1: lambda depth: self._number(), 2: lambda depth: self._string(), 3: self._table,
            4: self._torch,
            5: lambda depth: self._int() == 1}

    def _take(self, form: str, count: int = 1) -> tuple[Any, ...]:
        size = struct.calcsize(form) * count
        if not 0 <= size <= len(self.data) - self.at:
            raise ValueError(f"a .t7 file ends too early: {count} numbers are to follow at byte {self.at} of "
                             f"{len(self.data)}")
        found = struct.unpack_from(f"<{count}{form}", self.data, self.at)
        self.at += size
        return found

    def _int(self) -> int:
        return int(self._take("i")[0])

    def _count(self, what: str, least: int) -> int:
        """Read a number of items of at least `least` bytes each. ValueError if the file is too short for them."""
        found = self._int()
        if not 0 <= found * least <= len(self.data) - self.at:
            raise ValueError(f"a .t7 file claims {found} {what} at byte {self.at}, where {len(self.data) - self.at} "
                             f"bytes are left")
        return found

    def _number(self) -> int | float:
        value = float(self._take("d")[0])
        return int(value) if value.is_integer() else value

    def _string(self) -> str:
        size = self._count("characters", 1)
        self.at += size
        return self.data[self.at - size:self.at].decode("utf-8", "backslashreplace")

    def object(self, depth: int) -> Any:
        """Read the object at the current position."""
        if depth > DEEPEST:
            raise ValueError(f"a .t7 file has more than {DEEPEST} objects inside each other")
        kind = self._int()
        if kind in (6, 7, 8):
            raise ValueError(f"a .t7 file holds a function at byte {self.at - 4}: functions are not read")
        if kind not in self.types:
            raise ValueError(f"byte {self.at - 4} of a .t7 file begins no object: {kind} is no type. (Files in text "
                             f"form are not read.)")
        return self.types[kind](depth)

    def _table(self, depth: int) -> Any:
        index = self._int()
        if index in self.known:
            return self.known[index]
        size = self._count("entries", 8)
        pairs, found = [], {}           # type: list[Any], dict[Any, Any]
        self.known[index] = found
        for _ in range(size):
            key, value = self.object(depth + 1), self.object(depth + 1)
            pairs.append((key if isinstance(key, (int, float, str, bool)) else id(key), value))
        found.update(pairs)
        if size and set(found) == set(range(1, size + 1)):
            self.known[index] = [found[i] for i in range(1, size + 1)]
        return self.known[index]

    def _torch(self, depth: int) -> Any:
        index = self._int()
        if index in self.known:
            return self.known[index]
        name = self._string()
        if name.startswith("V "):
            name = self._string()
        package, _, kind = name.partition(".")
        if package == "torch" and kind.removesuffix("Storage") in DTYPES and kind.endswith("Storage"):
            found = self._storage(DTYPES[kind.removesuffix("Storage")])
        elif package == "torch" and kind.removesuffix("Tensor") in DTYPES and kind.endswith("Tensor"):
            found = self._tensor(DTYPES[kind.removesuffix("Tensor")], depth)
        elif package in ("nn", "cudnn") and SAME.get(kind, kind) in nn.__all__:
            return self._module(index, SAME.get(kind, kind), depth)
        else:
            raise ValueError(f"a .t7 file holds an object of the class {name!r}, which legacy.nn does not have")
        self.known[index] = found
        return found

    def _storage(self, dtype: Any) -> Any:
        size = int(self._take("q")[0])
        length = size * dtype.itemsize
        if not 0 <= length <= len(self.data) - self.at:
            raise ValueError(f"a .t7 file claims a storage of {size} numbers at byte {self.at}, where "
                             f"{len(self.data) - self.at} bytes are left")
        self.at += length
        return (tg.frombuffer(bytearray(self.data[self.at - length:self.at]), dtype=dtype) if size
                else tg.empty(0, dtype=dtype))

    def _tensor(self, dtype: Any, depth: int) -> Any:
        axes = self._count("axes", 16)
        sizes, strides = self._take("q", axes), self._take("q", axes)
        offset = int(self._take("q")[0]) - 1
        memory = self.object(depth + 1)
        if memory is None or not axes:
            return tg.empty(0, dtype=dtype)
        if not isinstance(memory, tg.Tensor) or memory.dtype != dtype:
            raise ValueError("a tensor of a .t7 file has no storage of its type")
        last = offset + sum((n - 1) * step for n, step in zip(sizes, strides))
        if min(sizes) < 0 or min(strides) < 0 or offset < 0 or min(sizes) > 0 and last >= memory.numel():
            raise ValueError(f"a tensor of a .t7 file, of sizes {list(sizes)} and strides {list(strides)} from "
                             f"{offset}, leaves its storage of {memory.numel()} numbers")
        return memory.as_strided(sizes, strides, offset)

    def _module(self, index: int, kind: str, depth: int) -> Any:
        cls = getattr(nn, kind)
        found = self.known[index] = cls.__new__(cls)
        nn.Module.__init__(found)
        fields = self.object(depth + 1)
        if not isinstance(fields, dict):
            raise ValueError(f"the state of a {kind} in a .t7 file is no table")
        _fill(found, kind, fields)
        return found


def _fill(module: Any, kind: str, fields: dict[str, Any]) -> None:
    """Set a module's attributes from a file, converted to this package's names and to counting from 0."""
    row = getattr(module, "row", None)
    if row is not None:
        for parameter in module.__signature__.parameters.values():
            setattr(module, parameter.name, () if parameter.kind is parameter.VAR_POSITIONAL else
                    None if parameter.default is parameter.empty else parameter.default)
    for name, value in fields.items():
        if (not isinstance(name, str) or not name.isidentifier() or name.startswith("_")
                or callable(getattr(type(module), name, None))):
            continue
        setattr(module, RENAMED.get((kind, name), name), value)
    for name in FROM_ONE.get(kind, "").split():
        value = getattr(module, name, None)
        if isinstance(value, int) and value > 0:
            setattr(module, name, value - 1)
    if kind in ("View", "Reshape"):
        name = "sizes" if kind == "View" else "size"
        setattr(module, name, tuple(int(n) for n in getattr(module, name)))
    weight = getattr(module, "weight", None)
    if isinstance(weight, tg.Tensor) and weight.numel():
        _sized(module, kind, weight)
    if row is not None:
        for name, given in row.state.items():
            if getattr(module, name, None) is None:
                setattr(module, name, given(module) if callable(given) else given)


def _sized(module: Any, kind: str, weight: Any) -> None:
    """Set the arguments that Lua's modules do not store, from their weights; reshape weights of convolutions."""
    if kind == "Linear":
        module.outputSize, module.inputSize = weight.shape
    elif kind == "LookupTable":
        module.nIndex, module.nOutput = weight.shape
    elif "BatchNormalization" in kind:
        module.nOutput, module.affine = weight.shape[0], True
    elif kind in ("SpatialConvolution", "VolumetricConvolution") and weight.dim() == 2:
        shape = (module.nOutputPlane, module.nInputPlane,
                 *(getattr(module, k) for k in ("kT", "kH", "kW") if hasattr(module, k)))
        for name in ("weight", "gradWeight"):
            if isinstance(getattr(module, name, None), tg.Tensor) and getattr(module, name).numel() == weight.numel():
                setattr(module, name, getattr(module, name).view(shape))
