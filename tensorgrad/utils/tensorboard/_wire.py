"""The messages that event files are made of, in protobuf's wire format.

https://protobuf.dev/programming-guides/encoding

A message's fields are declared as in a `.proto` file, in the order of their numbers: `number kind name`. A `?` marks a
field that is written even if it is zero (a member of a oneof), a `*` a repeated field.
"""
from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Field(NamedTuple):
    """A field of a message."""

    name: str
    number: int
    kind: str
    mark: str

    def encode(self, value: Any) -> bytes:
        if self.kind == "map":
            return b"".join(_block(self.number, _ENTRY(key=k, value=v).SerializeToString()) for k, v in value.items())
        wire, single, several = KINDS[self.kind]
        if self.mark != "*":
            code = single(value)
            zero = not (code if wire == BLOCK else code.strip(b"\0"))
            return b"" if zero and self.mark != "?" and self.kind != "message" else self._keyed(wire, code)
        if several is None:
            return b"".join(self._keyed(wire, single(v)) for v in value)
        return _block(self.number, several(value)) if len(value) else b""

    def _keyed(self, wire: int, code: bytes) -> bytes:
        return _block(self.number, code) if wire == BLOCK else varint(self.number << 3 | wire) + code


def _block(number: int, code: bytes) -> bytes:
    return varint(number << 3 | BLOCK) + varint(len(code)) + code


def varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; all bytes but the last are marked. Negative numbers count as 64 bits.

    >>> varint(300)
    b'\\xac\\x02'
    """
    value &= 2 ** 64 - 1
    code = bytearray()
    while value > 127:
        code.append(value & 127 | 128)
        value >>= 7
    code.append(value)
    return bytes(code)


def varints(values: Any) -> bytes:
    """Encode many integers at once.

    >>> varints([1, 300, -1]) == varint(1) + varint(300) + varint(-1)
    True
    """
    groups = np.asarray(values, np.int64).astype(np.uint64)[:, None] >> np.arange(0, 70, 7, dtype=np.uint64)
    groups[:, 9] &= np.uint64(1)        # a shift by 63; there are 64 bits
    needed = np.logical_or.accumulate(groups[:, ::-1] != 0, axis=1)[:, ::-1]
    needed[:, 0] = True
    marked = np.zeros_like(needed)
    marked[:, :-1] = needed[:, 1:]
    return ((groups & np.uint64(127)).astype(np.uint8) | marked.astype(np.uint8) << np.uint8(7))[needed].tobytes()


def _integer(low: int, high: int) -> Callable[[Any], bytes]:
    def encode(value: Any) -> bytes:
        value = value.__index__()
        if not low <= value <= high:
            raise ValueError(f"Value out of range: {value}")
        return varint(value)
    return encode


def _single(value: Any) -> bytes:
    with np.errstate(over="ignore"):
        return np.float32(value).tobytes()


def _text(value: Any) -> bytes:
    if not isinstance(value, (str, bytes)):
        raise TypeError(f"a text is expected, not {type(value).__name__}")
    return value.encode() if isinstance(value, str) else value


BLOCK = 2       # the wire type of length-delimited fields
# wire type, encoder, packed encoder of several or None
KINDS: dict[str, tuple[int, Callable[[Any], bytes], Callable[[Any], bytes] | None]] = {
    "int": (0, _integer(-2 ** 63, 2 ** 63 - 1), varints),
    "int32": (0, _integer(-2 ** 31, 2 ** 31 - 1), varints),
    "bool": (0, lambda value: varint(bool(value)), varints),
    "double": (1, lambda value: struct.pack("<d", value), lambda values: np.asarray(values, "<f8").tobytes()),
    "text": (BLOCK, _text, None),
    "bytes": (BLOCK, bytes, None),
    "dtype": (0, _integer(0, 2 ** 31 - 1), varints),
    "message": (BLOCK, lambda value: value.SerializeToString(), None),
    "float": (5, _single, lambda values: np.asarray(values, "<f4").tobytes()),
}


# TensorFlow's names of dtypes, in the order of their numbers
DTYPES = """INVALID FLOAT DOUBLE INT32 UINT8 INT16 INT8 STRING COMPLEX64 INT64 BOOL QINT8 QUINT8 QINT32 BFLOAT16 QINT16
    QUINT16 UINT16 COMPLEX128 HALF RESOURCE VARIANT UINT32 UINT64""".split()
FLOATS: dict[str, Any] = {"float": (6, 9, np.float32), "double": (15, 17, float)}     # digits that fit, that suffice
UNSET: dict[str, Any] = {"text": "", "bytes": b"", "bool": False, "double": 0.0, "float": 0.0, "message": None,
                         "map": {}}


class Message:
    """A message, with the given fields as attributes; others are zero, empty or None."""

    fields: tuple[Field, ...]

    def __init__(self, **values: Any) -> None:
        names = {field.name for field in self.fields}
        for name, value in values.items():
            if name not in names:
                raise ValueError(f'Protocol message {type(self).__name__} has no "{name}" field.')
            setattr(self, name, value)

    def __getattr__(self, name: str) -> Any:
        for field in self.fields:
            if field.name == name:
                return [] if field.mark == "*" else UNSET.get(field.kind, 0)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def given(self) -> list[tuple[Field, Any]]:
        """The fields that are set, with their values."""
        return [(field, vars(self)[field.name]) for field in self.fields if vars(self).get(field.name) is not None]

    def SerializeToString(self) -> bytes:
        """Return the message in protobuf's wire format."""
        return b"".join(field.encode(value) for field, value in self.given())

    def __str__(self) -> str:
        """Return the message in protobuf's text format."""
        return "\n".join(_lines(self)) + "\n" if self.given() else ""


def _lines(message: Message, indent: str = "") -> list[str]:
    lines = []
    for field, value in message.given():
        for one in value if field.mark == "*" else [value]:
            if isinstance(one, Message):
                lines += [f"{indent}{field.name} {{", *_lines(one, indent + "  "), f"{indent}}}"]
            elif one or field.mark:         # zeros are left out, unless they are members of a oneof
                lines.append(f"{indent}{field.name}: {_shown(field.kind, one)}")
    return lines


def _shown(kind: str, value: Any) -> Any:
    if kind in ("text", "bytes"):
        return _quoted(value)
    if kind == "dtype":
        return f"DT_{DTYPES[value]}"
    if kind not in FLOATS:
        return value
    few, many, as_number = FLOATS[kind]
    return short if as_number(short := f"{value:.{few}g}") == as_number(value) else f"{as_number(value):.{many}g}"


def _quoted(value: Any) -> str:
    text, most = (value, "\U0010ffff") if isinstance(value, str) else (value.decode("latin-1"), "~")
    escapes = {c: "\\" + e for c, e in zip("\n\r\t\"'\\", "nrt\"'\\")}
    return '"' + "".join(escapes.get(c) or (c if " " <= c <= most and c != "\x7f" else f"\\{ord(c):03o}")
                         for c in text) + '"'


def message(name: str, declaration: str) -> type[Message]:
    """Return a class of messages.

    >>> Point = message("Point", "1 double x, 2 int y, 3 text* labels")
    >>> Point(y=3, labels=["a", "b"]).SerializeToString()
    b'\\x10\\x03\\x1a\\x01a\\x1a\\x01b'
    """
    fields = []
    for part in filter(None, map(str.strip, declaration.split(","))):
        number, kind, field = part.split()
        bare = kind.rstrip("?*")
        fields.append(Field(field, int(number), bare, kind[len(bare):]))
    return type(name, (Message,), {"fields": tuple(fields), "__doc__": f"A `{name}`: {declaration}"})


_ENTRY = message("Entry", "1 text key, 2 message value")

# ── event files ───────────────────────────────────────────────────────────────────────────────────────────────────────

Event = message("Event", "1 double wall_time, 2 int step, 3 text? file_version, 4 bytes? graph_def, 5 message summary, "
                         "7 message session_log, 8 message tagged_run_metadata, 10 message source_metadata")
SessionLog = message("SessionLog", "1 int32 status")
SourceMetadata = message("SourceMetadata", "1 text writer")
TaggedRunMetadata = message("TaggedRunMetadata", "1 text tag, 2 bytes run_metadata")
RunMetadata = message("RunMetadata", "1 message step_stats")
StepStats = message("StepStats", "1 message* dev_stats")
DeviceStepStats = message("DeviceStepStats", "1 text device")

Summary = message("Summary", "1 message* value")
Value = message("Value", "1 text tag, 2 float? simple_value, 4 message image, 5 message histo, 6 message audio, 8 "
                         "message tensor, 9 message metadata")
Image = message("Image", "1 int32 height, 2 int32 width, 3 int32 colorspace, 4 bytes encoded_image_string")
Audio = message("Audio", "1 float sample_rate, 2 int num_channels, 3 int length_frames, 4 bytes encoded_audio_string, "
                         "5 text content_type")
HistogramProto = message("HistogramProto", "1 double min, 2 double max, 3 double num, 4 double sum, 5 double "
                                           "sum_squares, 6 double* bucket_limit, 7 double* bucket")
SummaryMetadata = message("SummaryMetadata", "1 message plugin_data, 2 text display_name, 3 text summary_description")
PluginData = message("PluginData", "1 text plugin_name, 2 bytes content")

TensorProto = message("TensorProto", "1 dtype dtype, 2 message tensor_shape, 5 float* float_val, 6 double* double_val, "
                                     "7 int32* int_val, 8 bytes* string_val, 9 float* scomplex_val, 10 int* int64_val, "
                                     "11 bool* bool_val, 12 double* dcomplex_val, 13 int32* half_val, 16 int* "
                                     "uint32_val")
TensorShapeProto = message("TensorShapeProto", "2 message* dim")
Dim = message("Dim", "1 int size")

# ── plugins ───────────────────────────────────────────────────────────────────────────────────────────────────────────

PrCurvePluginData = message("PrCurvePluginData", "1 int32 version, 2 int num_thresholds")
MeshPluginData = message("MeshPluginData", "1 int32 version, 2 text name, 3 int32 content_type, 5 text json_config, 6 "
                                           "int32* shape, 7 int components")

HParamsPluginData = message("HParamsPluginData", "2 message experiment, 3 message session_start_info, 4 message "
                                                 "session_end_info")
Experiment = message("Experiment", "4 message* hparam_infos, 5 message* metric_infos")
HParamInfo = message("HParamInfo", "1 text name, 4 int32 type, 5 message domain_discrete")
MetricInfo = message("MetricInfo", "1 message name")
MetricName = message("MetricName", "2 text tag")
SessionStartInfo = message("SessionStartInfo", "1 map hparams")
SessionEndInfo = message("SessionEndInfo", "1 int32 status")
ListValue = message("ListValue", "1 message* values")
Plain = message("Plain", "2 double? number_value, 3 text? string_value, 4 bool? bool_value")

Layout = message("Layout", "2 message* category")
Category = message("Category", "1 text title, 2 message* chart")
Chart = message("Chart", "1 text title, 2 message multiline, 3 message margin")
MultilineChartContent = message("MultilineChartContent", "1 text* tag")
MarginChartContent = message("MarginChartContent", "1 message* series")
Series = message("Series", "1 text value, 2 text lower, 3 text upper")

ProjectorConfig = message("ProjectorConfig", "2 message* embeddings")
EmbeddingInfo = message("EmbeddingInfo", "1 text tensor_name, 2 text metadata_path, 5 message sprite, 6 text "
                                         "tensor_path")
SpriteMetadata = message("SpriteMetadata", "1 text image_path, 2 int* single_image_dim")

# ── graphs ────────────────────────────────────────────────────────────────────────────────────────────────────────────

GraphDef = message("GraphDef", "1 message* node, 4 message versions")
VersionDef = message("VersionDef", "1 int32 producer")
NodeDef = message("NodeDef", "1 text name, 2 text op, 3 text* input, 4 text device, 5 map attr")
AttrValue = message("AttrValue", "1 message list, 2 bytes? s")
AttrList = message("AttrList", "7 message* shape")
