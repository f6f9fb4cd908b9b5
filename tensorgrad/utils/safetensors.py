"""Files of tensors in the safetensors format, read and written natively.

    uint64 length of the header; the header, JSON: {name: {"dtype", "shape", "data_offsets": [begin, end]},
    "__metadata__": {text: text}}; the bytes

Nothing in such a file can run code. A reader checks that the tensors cover the bytes without a gap or an overlap, and
that each has the bytes of its shape.

>>> import tensorgrad as torch
>>> from tensorgrad.utils import safetensors
>>> data = safetensors.save({"weight": torch.ones(2, 3)}, {"format": "pt"})
>>> safetensors.load(data)["weight"].shape
torch.Size([2, 3])
"""
from __future__ import annotations

import json
import mmap
import os
import re
import struct
import sys
from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from ..api import DTYPES, Tensor
from ..api.storage_objects import UntypedStorage, storage_of
from ..core.dispatch import wrap
from ..messages.escaping import escaped
from ..serialization._atomic import replacing

LONGEST_HEADER, MOST_ENTRIES, MOST_AXES = 100_000_000, 100_000, 64
# In the reverse of the order in which writers sort tensors: the largest elements come first, so that all are aligned.
BITS = {"BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8,
        "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32,
        "F32": 32, "C64": 64, "F64": 64, "I64": 64,
        "U64": 64}
ORDER = {name: place for place, name in enumerate(BITS)}
NAMES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32",
         "I16": "int16", "I8": "int8", "U8": "uint8", "BOOL": "bool", "C64": "complex64", "U64": "uint64",
         "U32": "uint32", "U16": "uint16", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
         "F8_E8M0": "float8_e8m0fnu",
         "F8_E4M3FNUZ": "float8_e4m3fnuz",
         "F8_E5M2FNUZ": "float8_e5m2fnuz"}
BY_DTYPE = {name: code for code, name in NAMES.items()}
# an unterminated one extends to the end, so no character is scanned twice
TEXTS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)


class SafetensorError(Exception):
    """An invalid file, or a file without the requested tensor. Text from the file is escaped in the message."""

    def __init__(self, message: str) -> None:
        super().__init__(escaped(message))


def _wrong(what: str) -> SafetensorError:
    return SafetensorError(f"Error while deserializing: {what}")


# ── the header ────────────────────────────────────────────────────────────────────────────────────────────────────────


class Header:
    """The checked header of a file. entries: name → (dtype, shape, begin, end), sorted by position.

    SafetensorError if it is invalid.
    """

    def __init__(self, data: Any) -> None:
        if len(data) < 8:
            raise _wrong("header too small")
        (length,) = struct.unpack("<Q", data[:8])
        if length > LONGEST_HEADER:
            raise _wrong("header too large")
        if 8 + length > len(data):
            raise _wrong("invalid header length")
        self.begin = 8 + length
        parsed = _parsed(bytes(data[8:self.begin]))
        self.metadata: dict[str, str] | None = parsed.pop("__metadata__", None)
        if (self.metadata is not None and not (type(self.metadata) is dict
                                               and all(type(value) is str for value in self.metadata.values()))):
            raise _wrong("invalid JSON in header: metadata are texts")
        self.entries = dict(sorted(((name, _entry(name, entry)) for name, entry in parsed.items()),
                                   key=lambda item: item[1][2:]))
        at = 0
        for name, (_, _, begin, end) in self.entries.items():
            if begin != at:
                raise _wrong(f"invalid offset for tensor `{name:.80}`")
            at = end
        if at != len(data) - self.begin:
            raise _wrong("incomplete metadata, file not fully covered")


def _parsed(header: bytes) -> dict[str, Any]:
    if not header.startswith(b"{"):
        raise _wrong("invalid start character in header, must be `{`" if header[:1] != b"["
                     else "invalid JSON in header: a list")
    bare = TEXTS.sub(b"", header)        # bound the work of the JSON parser by the number of tensors
    if (bare.count(b"{") > MOST_ENTRIES + 2 or bare.count(b"[") > 2 * MOST_ENTRIES
            or bare.count(b",") > MOST_AXES * MOST_ENTRIES):
        raise _wrong(f"the header describes more than {MOST_ENTRIES} tensors")
    try:
        parsed = json.loads(header.decode("utf-8"), object_pairs_hook=_unequal, parse_constant=_no_number)
        if b"\\ud" in header.lower():       # a lone surrogate is no valid text
            json.dumps(parsed, ensure_ascii=False).encode("utf-8")
    except UnicodeDecodeError as error:
        raise _wrong(f"invalid UTF-8 in header: {error.reason}") from None
    except (ValueError, RecursionError) as error:
        raise _wrong(f"invalid JSON in header: {error!s:.200}") from None
    return parsed  # type: ignore[no-any-return]


def _unequal(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a name occurs twice")
    return made


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number")


def _entry(name: str, entry: Any) -> tuple[str, tuple[int, ...], int, int]:
    if type(entry) is not dict or not entry.keys() >= {"dtype", "shape", "data_offsets"}:
        raise _wrong(f"invalid JSON in header: tensor `{name:.80}` has a dtype, a shape and data_offsets")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if type(dtype) is not str or dtype not in BITS:
        raise _wrong(f"invalid JSON in header: unknown dtype {repr(dtype)[:40] if type(dtype) is str else ''} of "
                     f"tensor `{name:.80}`")
    if (not all(type(numbers) is list and all(type(n) is int and 0 <= n < 1 << 63 for n in numbers)
                for numbers in (shape, offsets)) or len(offsets) != 2):
        raise _wrong(f"invalid JSON in header: shape and data_offsets of tensor `{name:.80}` are counts")
    if len(shape) > MOST_AXES or prod(n for n in shape if n) * BITS[dtype] >= 1 << 63:
        raise _wrong("overflow computing buffer size from shape and/or element type")
    begin, end = offsets
    if end < begin:
        raise _wrong(f"invalid offset for tensor `{name:.80}`")
    if prod(shape) * BITS[dtype] != (end - begin) * 8:
        raise _wrong("invalid shape, data type, or offset for tensor")
    return dtype, tuple(shape), begin, end


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Contents:
    """The tensors in a buffer, made on request; they share its memory."""

    def __init__(self, data: Any) -> None:
        self.data, self.header = data, Header(data)

    def entry(self, name: str) -> tuple[str, tuple[int, ...], int, int]:
        try:
            return self.header.entries[name]
        except KeyError:
            raise SafetensorError(f"File does not contain tensor {name}") from None

    def tensor(self, name: str, device: Any = "cpu") -> Any:
        """Return the tensor of a name, on a device."""
        code, shape, begin, end = self.entry(name)
        if code not in NAMES:
            raise SafetensorError(f"tensor {name} is of dtype {code}, which there is not")
        dtype = DTYPES[NAMES[code]]
        raw = np.frombuffer(self.data, np.uint8, end - begin, self.header.begin + begin)
        if (self.header.begin + begin) % dtype.itemsize or sys.byteorder == "big" or dtype.name == "bool":
            raw = (raw != 0).view(np.uint8) if dtype.name == "bool" else raw.copy()
        untyped = UntypedStorage._over(raw)
        if sys.byteorder == "big":
            untyped.byteswap(dtype)
        array, storage = untyped.to(device).block(dtype)
        return wrap(array.reshape(shape), storage)


def load(data: bytes) -> dict[str, Any]:
    """Return the tensors in the bytes of a file. safetensors → safetensors.torch.load"""
    contents = _Contents(memoryview(bytearray(data)))
    return {name: contents.tensor(name) for name in contents.header.entries}


def load_file(filename: Any, device: Any = "cpu") -> dict[str, Any]:
    """Return the tensors of a file.

    On the CPU they are memory-mapped: each is read from the disk when it is used.
    safetensors → safetensors.torch.load_file
    """
    with safe_open(filename, "pt", device) as file:
        return {name: file.get_tensor(name) for name in file.offset_keys()}


class safe_open:
    """A file whose tensors are read one by one. safetensors → safe_open

    framework: "pt" for tensors, "np" for NumPy arrays.
    """

    def __init__(self, filename: Any, framework: str = "pt", device: Any = "cpu") -> None:
        if framework not in ("pt", "torch", "pytorch", "np", "numpy"):
            raise SafetensorError(f"framework {framework} is not known")
        try:
            with open(filename, "rb") as file:
                data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if os.fstat(file.fileno()).st_size else b""
        except FileNotFoundError:
            raise FileNotFoundError(f"No such file or directory: {os.fspath(filename)}") from None
        self._contents: _Contents | None = _Contents(memoryview(data))
        self._arrays, self._device = framework.startswith("n"), device

    def __enter__(self) -> safe_open:
        return self

    def __exit__(self, *exception: Any) -> None:
        self._contents = None

    def _open(self) -> _Contents:
        if self._contents is None:
            raise SafetensorError("File is closed")
        return self._contents

    def keys(self) -> list[str]:
        """The names, sorted."""
        return sorted(self._open().header.entries)

    def offset_keys(self) -> list[str]:
        """The names, in the order of the tensors in the file."""
        return list(self._open().header.entries)

    def metadata(self) -> dict[str, str] | None:
        """Return the metadata, a dict of strings, or None."""
        return self._open().header.metadata

    def get_tensor(self, name: str) -> Any:
        """Return the tensor of a name."""
        tensor = self._open().tensor(name, self._device)
        return tensor.numpy(force=True) if self._arrays else tensor

    def get_slice(self, name: str) -> Slice:
        """Return a Slice, which reads parts of a tensor."""
        self._open().entry(name)
        return Slice(self, name)


class Slice:
    """A tensor in a file; indexing reads a part of it."""

    def __init__(self, file: safe_open, name: str) -> None:
        self._file, self._name = file, name

    def get_shape(self) -> list[int]:
        """The lengths of its axes."""
        return list(self._file._open().entry(self._name)[1])

    def get_dtype(self) -> str:
        """The format's name of its dtype."""
        return self._file._open().entry(self._name)[0]

    def __getitem__(self, index: Any) -> Any:
        part = self._file._open().tensor(self._name)[index].clone()
        return part.numpy() if self._file._arrays else part.to(self._file._device)


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def save(tensors: dict[str, Any], metadata: dict[str, str] | None = None) -> bytes:
    """The bytes of a file of these tensors. safetensors → safetensors.torch.save"""
    return b"".join(_pieces(tensors, metadata))


def save_file(tensors: dict[str, Any], filename: Any, metadata: dict[str, str] | None = None) -> None:
    """Write tensors to a file, atomically.

    ValueError for tensors that are not contiguous, RuntimeError for tensors that share memory.
    safetensors → safetensors.torch.save_file
    """
    pieces = _pieces(tensors, metadata)
    first = next(pieces)            # raises errors about the tensors before a file is created
    with replacing(filename) as file:
        file.write(first)
        for piece in pieces:
            file.write(piece)


def _pieces(tensors: dict[str, Any], metadata: dict[str, str] | None) -> Iterator[Any]:
    _check(tensors, metadata)
    names = sorted(tensors, key=lambda name: (-ORDER[BY_DTYPE[tensors[name].dtype.name]], name))
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": metadata}
    at = 0
    for name in names:
        tensor = tensors[name]
        begin, at = at, at + tensor.nbytes
        header[name] = {"dtype": BY_DTYPE[tensor.dtype.name], "shape": list(tensor.shape), "data_offsets": [begin, at]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > LONGEST_HEADER:
        raise SafetensorError("Error while serializing: header too large")
    yield struct.pack("<Q", len(text)) + text
    for name in names:
        tensor = tensors[name]
        values = type(tensor._storage).host(tensor.array).reshape(-1).view(np.uint8)
        if sys.byteorder == "big":
            turned = UntypedStorage._over(values.copy())
            turned.byteswap(tensor.dtype)
            values = turned._line
        yield memoryview(values)


def _check(tensors: Any, metadata: Any) -> None:
    if type(tensors) is not dict and not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, torch.Tensor] but received {type(tensors)}")
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected torch.Tensor but received {type(tensor)}")
    for name in tensors:
        if type(name) is not str or name == "__metadata__":
            raise ValueError(f"the name {name!r} is not allowed")
    if metadata is not None and not all(type(text) is str for pair in metadata.items() for text in pair):
        raise TypeError("argument 'metadata': keys and values are 'str'")
    if shared := [set(group) for group in _sharing(tensors) if len(group) > 1]:
        raise RuntimeError("Some tensors share memory, this will lead to duplicate memory on disk and potential "
                           f"differences when loading them again: {shared}.\nA potential way to correctly save your "
                           f"model is to use `save_model`.")
    for name, tensor in tensors.items():
        if not tensor.is_contiguous():
            raise ValueError(f"You are trying to save a non contiguous tensor: `{name}` which is not allowed. It "
                             "either means you are trying to save tensors which are reference of each other in which "
                             "case it's recommended to save only the full tensors, and reslice at load time, or simply "
                             "call `.contiguous()` on your tensor to pack it before saving.")
        if tensor.dtype.name not in BY_DTYPE:
            raise ValueError(f"tensor `{name}` is of dtype {tensor.dtype}, which the format does not have")


def _sharing(tensors: dict[str, Any]) -> list[list[str]]:
    """Group the names of tensors that share memory."""
    spans = []
    for name, tensor in tensors.items():
        if tensor.numel() and not tensor.is_meta:
            length = (sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride())) + 1) * tensor.element_size()
            spans.append((str(tensor.device), tensor.data_ptr(), tensor.data_ptr() + length, name))
    groups: list[list[str]] = []
    reached = ("", 0)
    for device, begin, end, name in sorted(spans):
        if groups and (device, begin) < reached and device == reached[0]:
            groups[-1].append(name)
            reached = device, max(reached[1], end)
        else:
            groups.append([name])
            reached = device, end
    return groups


# ── models ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _block(tensor: Any) -> tuple[int, int]:
    block = storage_of(tensor)
    return block.data_ptr(), block.nbytes()


def _twice(state: dict[str, Any], preferred: Any = ()) -> dict[str, list[str]]:
    """Return {name to keep: other names of tensors in its memory}."""
    kept = {}
    for group in _sharing(state):
        if len(group) > 1:
            whole = sorted(name for name in group if (state[name].data_ptr(), state[name].nbytes)
                           == _block(state[name]))
            if not whole:
                raise RuntimeError("Error while trying to find names to remove to save state dict, but found no "
                                   f"suitable name to keep for saving amongst: {set(group)}. None is covering the "
                                   f"entire storage.")
            keep = next((name for name in whole if name in preferred), whole[0])
            kept[keep] = sorted(name for name in group if name != keep)
    return kept


def save_model(model: Any, filename: Any, metadata: dict[str, str] | None = None,
               force_contiguous: bool = True) -> None:
    """Write a model's tensors to a file; a tensor with several names is written once.

    safetensors → safetensors.torch.save_model
    """
    state, metadata = dict(model.state_dict()), dict(metadata or {})
    for keep, others in _twice(state).items():
        for name in others:
            metadata.setdefault(name, keep)
            del state[name]
    save_file({name: tensor.contiguous() if force_contiguous else tensor for name, tensor in state.items()}, filename,
              metadata or None)


def load_model(model: Any, filename: Any, strict: bool = True, device: Any = "cpu") -> tuple[set[str], list[str]]:
    """Load a file into a model, and return (names that the file lacks, names that the model lacks).

    safetensors → safetensors.torch.load_model
    """
    state = load_file(filename, device)
    others = {name for names in _twice(dict(model.state_dict()), state).values() for name in names}
    found = model.load_state_dict(state, strict=False)
    missing, unexpected = set(found.missing_keys) - others, [*found.unexpected_keys, *(others & state.keys())]
    if strict and (missing or unexpected):
        lines = [f"Error(s) in loading state_dict for {type(model).__name__}:"]
        for kind, names in (("Missing", missing), ("Unexpected", unexpected)):
            if names:
                shown = ", ".join(f'"{escaped(name)}"' for name in sorted(names))
                lines.append(f"{kind} key(s) in state_dict: {shown}")
        raise RuntimeError("\n    ".join(lines))
    return missing, unexpected
