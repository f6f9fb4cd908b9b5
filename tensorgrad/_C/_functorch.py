"""Queries of PyTorch's function transforms: if a tensor is a batch inside vmap, its level, its axis.

A batch here is a tensor whose storage has a rank, the depth of the vmap that hides its axis; the batch is the first
axis of its memory. Gradients of functions need no such tensors.
"""
from __future__ import annotations

from enum import Enum
from typing import Any

from .._tensor import Tensor
from ..core.mode import mode
from ..interpret import batching


class TransformType(Enum):
    """The kinds of function transforms, as keys for what operators of a program's own do inside them."""

    Torch, Vmap, Grad, Jvp, Functionalize = range(5)


def is_batchedtensor(tensor: Any) -> bool:
    """Return True for a batch inside vmap."""
    return isinstance(tensor, Tensor) and type(tensor._storage).rank > 0


def is_gradtrackingtensor(tensor: Any) -> bool:
    """Return False: derivatives of functions are taken on tensors themselves."""
    return False


def is_functorch_wrapped_tensor(tensor: Any) -> bool:
    """Return True for a tensor that a function transform has wrapped: a batch inside vmap."""
    return is_batchedtensor(tensor)


is_legacy_batchedtensor = is_functionaltensor = is_gradtrackingtensor


def maybe_get_level(tensor: Any) -> int:
    """Return the depth of a batch's vmap, from 1; −1 for other tensors."""
    return int(type(tensor._storage).rank) if is_batchedtensor(tensor) else -1


def maybe_get_bdim(tensor: Any) -> int:
    """Return 0, the axis of the memory that is the batch; −1 for other tensors."""
    return 0 if is_batchedtensor(tensor) else -1


def get_unwrapped(tensor: Any) -> Tensor:
    """Return the tensor with its innermost batch as the first axis."""
    if not is_batchedtensor(tensor):
        raise RuntimeError("No wrappers present!")
    depth = maybe_get_level(tensor)
    return batching.shown(tensor, 0, depth, mode.batches[depth - 1].size)  # type: ignore[no-any-return]


def current_level() -> int:
    """The depth of the innermost running vmap."""
    if not mode.batches:
        raise RuntimeError("maybe_layer.has_value() INTERNAL ASSERT FAILED: no function transform is running")
    return len(mode.batches)


def maybe_current_level() -> int | None:
    """The depth of the innermost running vmap; None outside."""
    return len(mode.batches) or None


def _vmap_increment_nesting(batch_size: int, randomness: str) -> int:
    """Begin a vmap over a batch of this size, and return its depth."""
    mode.batches = (*mode.batches, batching.Level(batch_size, randomness))
    return len(mode.batches)


def _vmap_decrement_nesting() -> int:
    """End the innermost vmap, and return the depth that it had."""
    depth = current_level()
    mode.batches = mode.batches[:-1]
    return depth


def _add_batch_dim(tensor: Any, batch_dim: int, level: int) -> Any:
    """Hide an axis of a tensor as the batch of a level."""
    return batching.hidden(tensor, batch_dim % tensor.dim(), level)


def _remove_batch_dim(tensor: Any, level: int, batch_size: int, out_dim: int) -> Any:
    """Show the batch of a level as an axis of the tensor; a tensor without that batch is repeated along it."""
    if maybe_get_level(tensor) != level:
        return tensor.unsqueeze(out_dim).expand(*tensor.shape[:out_dim], batch_size, *tensor.shape[out_dim:])
    return batching.shown(tensor, out_dim, level, batch_size)


def _set_vmap_fallback_warning_enabled(enabled: bool) -> None:
    """Do nothing: no warning tells of functions that vmap runs example by example."""


def _set_vmap_fallback_enabled(enabled: bool) -> None:
    """Do nothing: vmap falls back on nothing that could be turned off."""


def _is_vmap_fallback_enabled() -> bool:
    """Return True, PyTorch's default."""
    return True


def reshape_dim_into(src: int, dst: int, x: Any) -> Any:
    """Merge an axis into another: the result has x.shape[src] times as many rows there, those of one index together."""
    src %= x.dim()
    dst %= x.dim() - 1
    return x.movedim(src, dst).flatten(dst, dst + 1)


def reshape_dim_outof(src: int, size1: int, x: Any) -> Any:
    """Split an axis in two, the first of which has this length."""
    return x.unflatten(src, (size1, x.shape[src] // size1 if size1 else 0))


dlevel = maybe_get_level
