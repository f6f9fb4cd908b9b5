"""Operators on lists of tensors, optional values and texts. https://onnx.ai/onnx/operators/"""
from __future__ import annotations

from typing import Any

from ... import api as torch
from ._table import number, numbers, operator
from ._types import dtype_of


@operator("SequenceEmpty")
def sequence_empty(*, dtype: int = 1) -> Any:
    dtype_of(dtype)
    return []


@operator("SequenceConstruct")
def sequence_construct(*values: Any) -> Any:
    return list(values)


@operator("SequenceInsert")
def sequence_insert(values: Any, value: Any, place: Any = None) -> Any:
    at = len(values) if place is None else int(number(place))
    at = at + len(values) if at < 0 else at
    return [*values[:at], value, *values[at:]]


@operator("SequenceErase")
def sequence_erase(values: Any, place: Any = None) -> Any:
    at = (-1 if place is None else int(number(place))) % len(values)
    return [*values[:at], *values[at + 1:]]


@operator("SequenceAt")
def sequence_at(values: Any, place: Any) -> Any:
    return values[int(number(place))]


@operator("SequenceLength")
def sequence_length(values: Any) -> Any:
    return torch.tensor(len(values), dtype=torch.int64)


@operator("SplitToSequence")
def split_to_sequence(x: Any, sizes: Any = None, *, axis: int = 0, keepdims: int = 1) -> Any:
    if sizes is None:
        parts = torch.split(x, 1, axis)
        return [part if keepdims else part.squeeze(axis) for part in parts]
    return list(torch.split(x, int(number(sizes)) if sizes.ndim == 0 else numbers(sizes), axis))


@operator("ConcatFromSequence")
def concat_from_sequence(values: Any, *, axis: int, new_axis: int = 0) -> Any:
    return torch.stack(values, axis) if new_axis else torch.cat(values, axis)


@operator("Optional")
def optional(value: Any = None, *, type: Any = None) -> Any:
    return value


@operator("OptionalHasElement")
def optional_has_element(value: Any = None) -> Any:
    return torch.tensor(value is not None)


@operator("OptionalGetElement")
def optional_get_element(value: Any) -> Any:
    if value is None:
        raise ValueError("OptionalGetElement was given an optional without a value")
    return value
