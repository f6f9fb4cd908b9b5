"""Read messages of the protobuf wire format. https://protobuf.dev/programming-guides/encoding/

A message is a sequence of fields. A varint (7 bits a byte, the lowest first, the highest bit set but in the last byte)
holds a field's number · 8 + its wire type: 0 a varint follows, 1 eight bytes, 5 four bytes, 2 a varint n and n bytes,
which are a string, a message or packed numbers.

A file is read front to back. Messages of more than BLOCK bytes are entered, and strings of bytes of more than BLOCK are
left in the file as a `Span`: a model's weights go from the file to their arrays, and are never twice in memory.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from ..errors import InvalidModelError
from .messages import MESSAGES, Field, Message

BLOCK = 1 << 16         # bytes
FEW = 32                # bytes of packed numbers that are read one by one: NumPy has little to do
DEEPEST = 64            # messages within messages: graphs in attributes of nodes of graphs …
VARINT, EIGHT, BYTES, FOUR = 0, 1, 2, 5
WIRE_TYPES = {"int": VARINT, "uint": VARINT, "float": FOUR, "double": EIGHT}
FIXED = {"float": np.dtype("<f4"), "double": np.dtype("<f8")}           # machines that run this are little-endian


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes that were left in the file."""

    start: int
    size: int

    def __len__(self) -> int:
        return self.size


def read(file: BinaryIO, kind: str) -> Message:
    """Read a message that is all of a file. InvalidModelError if the file holds something else.

    >>> import io
    >>> read(io.BytesIO(b"\\x0a\\x07ai.onnx\\x10\\x17"), "Opset")
    Opset(domain='ai.onnx', version=23)
    """
    end = file.seek(0, 2)
    file.seek(0)
    found = Message(kind)
    _enter(file, end, found, 0)
    return found


# ── fields of a file and of memory ────────────────────────────────────────────────────────────────────────────────────


def _enter(file: BinaryIO, end: int, message: Message, depth: int) -> None:
    """Read the fields of a message from a file, up to a position."""
    fields = _fields(message, depth)
    while (at := file.tell()) < end:
        head = memoryview(file.read(min(20, end - at)))         # two varints have 10 bytes each
        key, used = _varint(head, 0)
        field = fields.get(key >> 3)
        if key & 7 != BYTES:
            size = _size_of_number(key & 7, head, used)
            file.seek(at)
            _decode(memoryview(file.read(size)), message, depth)
            continue
        size, used = _varint(head, used)
        start = file.seek(at + used)
        if size > end - start:
            raise InvalidModelError(f"a field of {size} bytes goes beyond the {end - start} bytes of its message")
        if field is None:
            file.seek(start + size)
        elif size <= BLOCK or field.type not in MESSAGES and field.type != "bytes":
            _store(message, field, BYTES, memoryview(file.read(size)), depth)
        elif field.type == "bytes":
            _put(message, field, Span(start, size))
            file.seek(start + size)
        else:
            _enter(file, start + size, _child(message, field), depth + 1)


def _decode(view: memoryview, message: Message, depth: int) -> None:
    """Read the fields of a message from memory."""
    fields = _fields(message, depth)
    at, end = 0, len(view)
    while at < end:
        key, at = _varint(view, at)
        wire, field = key & 7, fields.get(key >> 3)
        if wire == BYTES:
            size, at = _varint(view, at)
        else:
            size = _size_of_number(wire, view, at) - at
        if size > end - at:
            raise InvalidModelError(f"a field of {size} bytes goes beyond the {end - at} bytes of its message")
        if field is not None:
            _store(message, field, wire, view[at:at + size], depth)
        at += size


def _fields(message: Message, depth: int) -> dict[int, Field]:
    if depth > DEEPEST:
        raise InvalidModelError(f"messages are nested more than {DEEPEST} deep")
    return MESSAGES[message.kind]


def _size_of_number(wire: int, view: memoryview, at: int) -> int:
    """Return where the number that begins at `at` ends."""
    if wire == VARINT:
        return _varint(view, at)[1]
    if wire not in (EIGHT, FOUR):
        raise InvalidModelError(f"a field has the wire type {wire}, which ONNX files do not use")
    return at + (8 if wire == EIGHT else 4)


def _varint(view: memoryview, at: int) -> tuple[int, int]:
    """Return (the number, where the next byte is)."""
    found = shift = 0
    for byte in view[at:at + 10]:
        found |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            return found & (1 << 64) - 1, at + shift // 7
    raise InvalidModelError("a number has no end" if shift == 70 else "the data end within a number")


# ── values ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _child(message: Message, field: Field) -> Message:
    """Return the message to read into: the parts of a single one that comes twice are merged."""
    found = None if field.repeated else getattr(message, field.name)
    if found is None:
        found = Message(field.type)
        _put(message, field, found)
    return found


def _put(message: Message, field: Field, value: Any) -> None:
    if field.repeated:
        getattr(message, field.name).append(value)
    else:
        setattr(message, field.name, value)


def _store(message: Message, field: Field, wire: int, data: memoryview, depth: int) -> None:
    """Give a field the value that is encoded in `data`."""
    wanted = WIRE_TYPES.get(field.type, BYTES)
    if wire != wanted and not (wire == BYTES and field.repeated):
        raise InvalidModelError(f"the field {message.kind}.{field.name} has the wire type {wire} instead of {wanted}")
    if field.type in MESSAGES:
        _decode(data, _child(message, field), depth + 1)
    elif wanted != BYTES:
        numbers = _numbers(field.type, data)
        if field.repeated:
            getattr(message, field.name).frombytes(numbers.tobytes())
        else:
            setattr(message, field.name, numbers[-1].item())
    elif field.type == "bytes":
        _put(message, field, bytes(data))
    else:
        try:
            _put(message, field, str(data, "utf-8"))
        except UnicodeDecodeError as error:
            raise InvalidModelError(f"the field {message.kind}.{field.name} is not text: {error}") from None


def _numbers(kind: str, data: memoryview) -> Any:
    """Return the numbers that are one after the other in `data`."""
    if kind not in FIXED:
        return varints(data).view(np.int64 if kind == "int" else np.uint64)
    if len(data) % FIXED[kind].itemsize:
        raise InvalidModelError(f"{len(data)} bytes are no whole number of {kind}s")
    return np.frombuffer(data, FIXED[kind])


def varints(data: Any) -> Any:
    """Return packed varints as an array of uint64.

    >>> varints(b"\\x01\\xac\\x02\\x00")
    array([  1, 300,   0], dtype=uint64)
    """
    if len(data) <= FEW:                    # shapes, and attributes of nodes
        found, at, view = list[int](), 0, memoryview(data)
        while at < len(data):
            number, at = _varint(view, at)
            found.append(number)
        return np.array(found, np.uint64)
    octets = np.frombuffer(data, np.uint8)
    last = octets < 0x80
    if octets.size and not last[-1]:
        raise InvalidModelError("the data end within a number")
    starts = np.concatenate([[0], np.flatnonzero(last)[:-1] + 1]) if octets.size else np.empty(0, np.intp)
    lengths = np.diff(starts, append=octets.size)
    if octets.size and lengths.max() > 10:
        raise InvalidModelError("a number has no end")
    places = np.arange(octets.size) - np.repeat(starts, lengths)
    shifted = (octets & 0x7f).astype(np.uint64) << (7 * places).astype(np.uint64)
    return np.add.reduceat(shifted, starts) if octets.size else shifted

