"""Masks in the shape of an input, and the values that replace masked elements."""
from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from .. import api as tg

INF = float("inf")


def parts(input: Any, mask: Any) -> tuple[Any, Any]:
    """Return values and mask: a MaskedTensor brings its own."""
    core = sys.modules.get(f"{__package__}.maskedtensor.core")
    if core is not None and isinstance(input, core.MaskedTensor):
        return input.get_data(), input.get_mask()
    return input, mask


def strided(input: Any, name: str) -> None:
    """Raise PyTorch's ValueError for a sparse tensor."""
    if input.layout is not tg.strided:
        raise ValueError(f"masked {name} expects strided tensor (got {input.layout} tensor)")


def is_sparse(input: Any) -> bool:
    """Return True for the layouts whose places a mask may keep."""
    return input.layout in (tg.sparse_coo, tg.sparse_csr)


def mask_for(input: Any, mask: Any) -> Any:
    """Return the mask as bools in the shape of the input."""
    if mask is None:
        raise ValueError("_input_mask requires explicit mask")
    if mask.layout is not tg.strided:
        mask = mask.to_dense()
    if mask.shape != input.shape:
        if mask.ndim > input.ndim:
            raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher than of the "
                             "input)")
        mask = tg.broadcast_to(mask, input.shape)
    return mask.to(dtype=tg.bool)


def kept(name: str, input: Any, mask: Any, *more: Any) -> Any:
    """Return the input, with the identity of an operation in place of the elements that the mask, if any, leaves out.

    Gradients reach the elements that are kept, and are 0 elsewhere, even if the elements there are NaN.
    """
    if mask is None:
        return input
    mask, identity = mask_for(input, mask), tg.tensor(IDENTITY[name](name, input.dtype, *more), dtype=input.dtype,
                                                      device=input.device)
    return tg.where(mask, input, identity)


def kept_strided(name: str, input: Any, mask: Any, *more: Any, like: str = "") -> Any:
    """Return the values of an operation on strided tensors alone, with the identity of `like` where none is kept."""
    values, mask = parts(input, mask)
    strided(values, name)
    return kept(like or name, values, mask, *more)


def _lowest(name: str, dtype: Any) -> Any:
    return -INF if dtype.is_floating_point else tg.iinfo(_ordered(name, dtype)).min


def _highest(name: str, dtype: Any) -> Any:
    return INF if dtype.is_floating_point else tg.iinfo(_ordered(name, dtype)).max


def _ordered(name: str, dtype: Any) -> Any:
    """Return the dtype; PyTorch's error for a dtype for which it has no least value."""
    if not (dtype.is_signed or dtype is tg.uint8):
        raise NotImplementedError(f"identity of {name} on {dtype} input")
    return dtype


def _of_sums(name: str, dtype: Any) -> Any:
    return -INF if dtype.is_complex else _lowest(name, dtype)


def _of_norms(name: str, dtype: Any, ord: Any = 2.0) -> Any:
    if float(ord) != -INF:
        return 0
    if not dtype.is_floating_point:
        raise AssertionError(f"input must be floating point, got {dtype}")
    return INF


# {reduction: its identity, which replaces masked elements and does not change the result}
IDENTITY: dict[str, Callable[..., Any]] = dict(
    sum=lambda name, dtype: 0, cumsum=lambda name, dtype: 0, prod=lambda name, dtype: 1, cumprod=lambda name, dtype: 1,
    amax=_lowest, argmax=_lowest, logaddexp=_lowest, amin=_highest, argmin=_highest, logsumexp=_of_sums,
    median=lambda name, dtype: float("nan"), norm=_of_norms)


def axes(dim: Any, ndim: int) -> tuple[int, ...]:
    """Return the axes of a reduction in ascending order; None and () are all of them."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    found: list[int] = []
    ndim = max(ndim, 1)
    for d in (dim,) if isinstance(dim, int) else dim:
        if d in found:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        if not -ndim <= d < ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {d})")
        found.append(d % ndim)
    return tuple(sorted(found))
