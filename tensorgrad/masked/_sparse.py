"""Reductions of sparse tensors, over the values at the places that a mask keeps.

A place without a value counts for nothing; only one that a mask keeps is 0. Results are sparse, as the inputs are.
"""
from __future__ import annotations

from typing import Any

from .. import api as tg
from ._masks import kept


def reduced(name: str, input: Any, dims: tuple[int, ...], keepdim: bool, dtype: Any, mask: Any) -> Any:
    """Return sums, products or extremes of a sparse_coo or sparse_csr tensor along dimensions.

    NotImplemented, as in PyTorch, for other than sums along dense dimensions.
    """
    rows = input.layout is tg.sparse_csr
    if mask is None and name != "sum":
        named = "amax" if name == "amin" and not rows else name            # so does PyTorch
        raise ValueError(f"masked {named} expects explicit mask for {_layout(input)} tensor input")
    if rows and not keepdim:
        kind = RuntimeError if name in ("sum", "prod") else AssertionError
        raise kind("reduction operations on CSR tensors with keepdim=False is unsupported")
    x = _at_places(name, input, mask)
    dims = tuple(axis for axis in dims if axis < x.ndim)            # a scalar counts as a line of one element
    if name != "sum" and any(axis >= x.sparse_dim() for axis in dims):
        return NotImplemented
    found = _reduced(name, x, dims, keepdim, dtype or input.dtype, rows)
    return found.to_sparse_csr() if rows else found


def _layout(x: Any) -> str:
    return str(x.layout).partition(".")[2]


def _at_places(name: str, input: Any, mask: Any) -> Any:
    """Return the input as a coalesced sparse_coo tensor, with values at the places that the mask keeps alone."""
    if mask is None:
        return input.to_sparse_coo().coalesce()
    if mask.ndim > input.ndim:
        raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)")
    if mask.layout is tg.strided or mask.shape != input.shape:
        mask = tg.broadcast_to(mask.to_dense(), input.shape).to(dtype=tg.bool)
        mask = mask.to_sparse(input.to_sparse_coo().sparse_dim())
    input, mask = input.to_sparse_coo().coalesce(), mask.to_sparse_coo().coalesce()
    flags, places = mask.values().to(dtype=tg.bool), mask.indices()
    some = flags.flatten(1).any(1) if flags.ndim > 1 else flags
    flags, places = flags[some], places[:, some]
    values = input.sparse_mask(tg.sparse_coo_tensor(places, flags, input.shape, is_coalesced=True)).values()
    values = kept(name, values, flags) if flags.ndim > 1 else values
    return tg.sparse_coo_tensor(places, values, input.shape, is_coalesced=True)


def _reduced(name: str, x: Any, dims: tuple[int, ...], keepdim: bool, dtype: Any, rows: bool) -> Any:
    sparse = x.sparse_dim()
    values, places = x.values().to(dtype=dtype), x.indices()
    shape = [1 if axis in dims else size for axis, size in enumerate(x.shape) if keepdim or axis not in dims]
    if inner := [axis + 1 - sparse for axis in dims if axis >= sparse]:
        values = tg.sum(values, inner, keepdim=keepdim)
    left = [axis for axis in range(sparse) if axis not in dims]
    if not left:
        of_all = kept(name, values.new_zeros(()), tg.tensor(False)) if name in ("amax", "amin") and not len(values) \
            else getattr(tg, name)(values, 0)
        of_all = of_all.to(dtype=dtype)
        if rows:
            return tg.sparse_coo_tensor(places[:, :1] * 0, of_all.reshape(1)[:places.shape[1]], shape)
        return of_all.reshape(shape).to_sparse()
    if keepdim:
        places = tg.stack([places[axis] if axis in left else tg.zeros_like(places[axis]) for axis in range(sparse)])
    else:
        places = places[left]
    if places.numel():
        places, groups = tg.unique(places, return_inverse=True, dim=1)
        index = groups.reshape(-1, *[1] * (values.ndim - 1)).expand(values.shape)
        values = values.new_zeros((places.shape[1], *values.shape[1:])).scatter_reduce(0, index, values, name,
                                                                                       include_self=False)
    return tg.sparse_coo_tensor(places, values, shape, dtype=dtype)
