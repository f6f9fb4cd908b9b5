"""PyTorch's import path of the class of nested tensors, and of functions that programs take from there."""
from __future__ import annotations

from typing import Any

from ... import api as tg
from ..functions import as_nested_tensor, nested_tensor_from_jagged
from ..ragged import Ragged
from ..tensor import NestedTensor, nested

__all__ = ["NestedTensor", "buffer_from_jagged", "jagged_from_list", "nested_from_padded",
           "nested_view_from_values_offsets", "nested_view_from_values_offsets_lengths"]


def jagged_from_list(tensors: list[Any], offsets: Any = None, dtype: Any = None,
                     device: Any = None) -> tuple[NestedTensor, Any]:
    """Return the nested tensor of a list of tensors, with their history, and its offsets; given ones are shared."""
    made: Any = as_nested_tensor(tensors, dtype, device, tg.jagged)
    if offsets is not None:
        made = nested(made.values(), _shared(offsets), made._ragged_idx)
    return made, made.offsets()


def _shared(offsets: Any) -> Ragged:
    """The Ragged of an offsets tensor: of one tensor, one."""
    found = offsets.__dict__.get("_ragged_of_offsets")
    if found is None:
        found = offsets.__dict__["_ragged_of_offsets"] = Ragged(offsets)
    return found  # type: ignore[no-any-return]


def nested_view_from_values_offsets(values: Any, offsets: Any, ragged_idx: int = 1, min_seqlen: Any = None,
                                    max_seqlen: Any = None) -> Any:
    """Return a nested tensor that shares the memory of values."""
    return nested(values, _shared(offsets), ragged_idx)


def nested_view_from_values_offsets_lengths(values: Any, offsets: Any, lengths: Any, ragged_idx: int = 1,
                                            min_seqlen: Any = None, max_seqlen: Any = None) -> Any:
    """Return a nested tensor that shares the memory of values, with holes between components."""
    return nested_tensor_from_jagged(values, offsets, lengths, ragged_idx)


def nested_from_padded(padded: Any, offsets: Any, ragged_idx: int = 1, min_seqlen: Any = None, max_seqlen: Any = None,
                       sum_S: Any = None) -> Any:
    """Return the nested tensor of a padded one, without the padding."""
    ragged = _shared(offsets)
    return nested(ragged.unpadded(padded, ragged_idx - 1), ragged, ragged_idx)


def buffer_from_jagged(jagged: Any) -> Any:
    """Return the values of a nested tensor."""
    return jagged.values()
