"""The types of values, as ONNX files state them."""
from __future__ import annotations

from ..operators._types import dtype_of
from .messages import Message
from .model import Signature


def signature(value: Message) -> Signature:
    """Return the signature of an input. InvalidModelError for a type that is not supported."""
    kind, optional = value.type, False
    if kind is not None and kind.optional_type is not None:
        kind, optional = kind.optional_type.elem_type, True
    tensor = None if kind is None else kind.tensor_type
    if tensor is None:                  # a list, or of a type that the file does not say
        return Signature(value.name, None, None, optional)
    shape = None
    if tensor.shape is not None:
        shape = tuple(dim.dim_value or dim.dim_param or "?" for dim in tensor.shape.dim)
    return Signature(value.name, dtype_of(tensor.elem_type), shape, optional)
