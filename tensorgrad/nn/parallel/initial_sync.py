"""Processes agree at the start: their modules are alike, and have the values of one of them."""
from __future__ import annotations

from typing import Any
from zlib import crc32

from ... import api as tg
from ...core.dispatch import wrap
from ..processes import at_once

__all__ = ["broadcast_coalesced", "check_alike"]


def check_alike(group: Any, parameters: Any) -> None:
    """Raise RuntimeError in all processes unless each has as many parameters as the first, of the same shapes, strides
    and dtypes.
    """
    if group.size() == 1:
        return
    device = parameters[0].device
    own = [number for p in parameters for number in (p.ndim, crc32(str(p.dtype).encode()), *p.shape, *p.stride())]
    sizes = _gathered(group, [len(parameters), len(own)], device)
    rank = group.rank()
    for other, (count, _) in enumerate(sizes):
        if count != sizes[0][0]:
            raise RuntimeError(f"DDP expects same model across all ranks, but Rank {rank} has {len(parameters)} "
                               f"params, while rank {other if rank == 0 or count != len(parameters) else 0} has "
                               f"inconsistent {count if rank == 0 else sizes[0][0]} params.")
    longest = max(length for _, length in sizes)
    told = _gathered(group, own + [0] * (longest - len(own)), device)
    others = range(1, len(told)) if rank == 0 else [0]
    for other in others:
        theirs = iter(told[other])
        for index, p in enumerate(parameters):
            ndim, dtype = next(theirs), next(theirs)
            shape, strides = [next(theirs) for _ in range(ndim)], [next(theirs) for _ in range(ndim)]
            begin = f"[{rank}]: params[{index}] in this process with sizes {list(p.shape)} appears not to match "
            end = f" of the same param in process {other}."
            if shape != list(p.shape):
                raise RuntimeError(f"{begin}sizes{end} They are {shape} there.")
            if strides != list(p.stride()):
                raise RuntimeError(f"{begin}strides{end}")
            if dtype != crc32(str(p.dtype).encode()):
                raise RuntimeError(f"{begin}the dtype{end}")


def _gathered(group, numbers, device):
    """The lists of numbers of all processes."""
    own = tg.tensor(numbers, dtype=tg.int64, device=device)
    parts = [tg.empty_like(own) for _ in range(group.size())]
    at_once(group.allgather, parts, own)
    return [part.tolist() for part in parts]


def broadcast_coalesced(group: Any, tensors: Any, root: Any = 0, limit: Any = 250 << 20, dated: bool = True) -> None:
    """Put the values of one process into tensors of all, which travel together: up to `limit` bytes of one dtype and
    device at once.

    Unless `dated`, autograd does not take that for a change in place.
    """
    if group.size() == 1:
        return
    waiting = {}
    for tensor in tensors:
        kind = tensor.dtype, tensor.device
        lot = waiting.setdefault(kind, [])
        if lot and sum(t.array.nbytes for t in lot) + tensor.array.nbytes > limit:
            _broadcast(group, waiting.pop(kind), root, dated)
            lot = waiting.setdefault(kind, [])
        lot.append(tensor)
    for lot in waiting.values():
        _broadcast(group, lot, root, dated)


def _broadcast(group, tensors, root, dated):
    backend, sends = type(tensors[0]._storage), group.rank() == root
    flat = backend.xp.empty(sum(t.array.size for t in tensors), dtype=tensors[0].array.dtype)

    def pieces():
        start = 0
        for tensor in tensors:
            yield tensor, flat[start:start + tensor.array.size].reshape(tensor.array.shape)
            start += tensor.array.size
    if sends:
        for tensor, piece in pieces():
            piece[...] = tensor.array
    at_once(group.broadcast, wrap(flat, backend()), root)
    if sends:
        return
    for tensor, piece in pieces():
        tensor.array[...] = piece
        if dated:
            tensor._storage.wrote()
