"""PyTorch's import path of the class of nested tensors, and of functions that programs take from there."""
from __future__ import annotations

from typing import Any

from ... import api as tg
from ..functions import as_nested_tensor, nested_tensor_from_jagged
from ..ragged import shared
from ..tensor import NestedTensor, nested, view_of

__all__ = ["NestedTensor", "buffer_from_jagged", "jagged_from_list", "nested_from_padded",
           "nested_view_from_values_offsets", "nested_view_from_values_offsets_lengths"]


def jagged_from_list(tensors: list[Any], offsets: Any = None, dtype: Any = None,
                     device: Any = None) -> tuple[NestedTensor, Any]:
    """Return the nested tensor of a list of tensors, with their history, and its offsets: the given ones, if any."""
    made: Any = as_nested_tensor(tensors, dtype, device, tg.jagged)
    if offsets is not None:
        made = nested(made.values(), shared(offsets), made._ragged_idx)
    return made, made.offsets()


def nested_view_from_values_offsets(values: Any, offsets: Any, ragged_idx: int = 1, min_seqlen: Any = None,
                                    max_seqlen: Any = None) -> Any:
    """Return a nested tensor that shares the memory of values."""
    return view_of(values, shared(offsets, min_seqlen=_number(min_seqlen), max_seqlen=_number(max_seqlen)), ragged_idx)


def _number(length: Any) -> int | None:
    """Return a length: PyTorch keeps it as the number of rows of a tensor without columns."""
    return length.shape[0] if isinstance(length, tg.Tensor) else length


def nested_view_from_values_offsets_lengths(values: Any, offsets: Any, lengths: Any, ragged_idx: int = 1,
                                            min_seqlen: Any = None, max_seqlen: Any = None) -> Any:
    """Return a nested tensor that shares the memory of values, with holes between components."""
    return nested_tensor_from_jagged(values, offsets, lengths, ragged_idx, _number(min_seqlen), _number(max_seqlen))


def nested_from_padded(padded: Any, offsets: Any, ragged_idx: int = 1, min_seqlen: Any = None, max_seqlen: Any = None,
                       sum_S: Any = None) -> Any:
    """Return the nested tensor of a padded one, without the padding."""
    ragged = shared(offsets, min_seqlen=_number(min_seqlen), max_seqlen=_number(max_seqlen))
    return nested(ragged.unpadded(padded, ragged_idx - 1), ragged, ragged_idx)


def buffer_from_jagged(jagged: Any) -> Any:
    """Return the values of a nested tensor."""
    return jagged.values()
