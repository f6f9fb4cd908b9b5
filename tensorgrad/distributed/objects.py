"""Objects that go from rank to rank, pickled: sizes first, then bytes.

https://pytorch.org/docs/stable/distributed.html#object-collectives

Whoever can send to a rank that receives objects can run code there, as with pickle always: these functions are for
ranks that trust each other. No other function of `distributed` unpickles anything.
"""
from __future__ import annotations

import io
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import api as tg
from .checks import label
from .collectives import _check_owner, all_gather, broadcast, gather, scatter
from .group import ProcessGroup
from .point_to_point import P2POp, _check_other, batch_isend_irecv, irecv, isend, recv, send
from .world import _group, _outside, _place, _warn_outside, get_global_rank

__all__ = ["all_gather_object", "broadcast_object_list", "gather_object", "recv_object_list", "scatter_object_list",
           "send_object_list"]

_pickler, _unpickler = pickle.Pickler, pickle.Unpickler         # programs put their own in their place


def _device(group: Any) -> str:
    """Where bytes have to be: with the CPU, if the group has a backend for it."""
    kinds = _group(group).transports
    return "cpu" if "cpu" in kinds or not kinds else next(iter(kinds))


def _to_bytes(value: Any) -> Any:
    buffer = io.BytesIO()
    _pickler(buffer).dump(value)
    return np.frombuffer(buffer.getvalue(), np.uint8)


def _from_bytes(tensor: Any, size: int) -> Any:
    return _unpickler(io.BytesIO(tensor.cpu().numpy()[:size].tobytes())).load()


def _tensor(array: Any, device: Any, room: int | None = None) -> Any:
    """Bytes or sizes as a tensor, with zeros after them if there is to be more room."""
    whole = np.zeros(len(array) if room is None else room, array.dtype)
    whole[:len(array)] = array
    return tg.from_numpy(whole).to(device)


def _sizes(data: Any, group: Any, device: str) -> list[int]:
    """How many bytes each rank has."""
    out = tg.empty(_group(group).size(), dtype=tg.int64, device=device)
    all_gather(list(out.split(1)), _tensor(np.array([len(data)]), device), group)
    return out.tolist()


def all_gather_object(object_list: list[Any], obj: Any, group: ProcessGroup | None = None) -> None:
    """Fill a list, one place for each rank, with the objects of all ranks.

    https://pytorch.org/docs → torch.distributed.all_gather_object
    """
    if _outside(group):
        return _warn_outside("all_gather_object")
    data, device = _to_bytes(obj), _device(group)
    sizes = _sizes(data, group, device)
    longest = max(sizes)
    out = tg.empty(longest * len(sizes), dtype=tg.uint8, device=device)
    all_gather(list(out.split(longest)), _tensor(data, device, longest), group)
    for i, size in enumerate(sizes):
        object_list[i] = _from_bytes(out[i * longest:(i + 1) * longest], size)


def gather_object(obj: Any, object_gather_list: list[Any] | None = None, dst: int | None = None,
                  group: ProcessGroup | None = None,
                  group_dst: int | None = None) -> None:
    """Fill a list on one rank, by default the first, with the objects of all ranks.

    https://pytorch.org/docs → torch.distributed.gather_object
    """
    found = _group(group)
    root = _place(found, 0 if dst is None and group_dst is None else dst, group_dst)
    if _outside(found):
        return _warn_outside("gather_object")
    own = found.rank() == root
    _check_owner(own, object_gather_list, "gather_list", "destination")
    data, device = _to_bytes(obj), _device(found)
    sizes = _sizes(data, found, device)
    longest = max(sizes)
    parts = list(tg.empty(longest * len(sizes), dtype=tg.uint8, device=device).split(longest)) if own else None
    gather(_tensor(data, device, longest), parts, group=found, group_dst=root)
    for i, part in enumerate(parts or ()):
        object_gather_list[i] = _from_bytes(part, sizes[i])     # type: ignore[index]


def _packed(objects: Sequence[Any], device: Any) -> tuple[Any, Any]:
    """The sizes of several objects, and their bytes one after the other."""
    if not objects:
        raise ValueError("not enough values to unpack (expected 2, got 0)")
    parts = [_to_bytes(value) for value in objects]
    return _tensor(np.array([len(part) for part in parts]), device), _tensor(np.concatenate(parts), device)


def _unpack(data: Any, sizes: Any, objects: list[Any]) -> None:
    start = 0
    for i, size in enumerate(sizes.tolist()):
        objects[i] = _from_bytes(data[start:start + size], size)
        start += size


def broadcast_object_list(object_list: list[Any], src: int | None = None, group: ProcessGroup | None = None,
                          device: Any = None,
                          group_src: int | None = None) -> None:
    """Replace the objects in a list by those of one rank, by default the first.

    https://pytorch.org/docs → torch.distributed.broadcast_object_list
    """
    found = _group(group)
    root = _place(found, 0 if src is None and group_src is None else src, group_src)
    if _outside(found):
        return _warn_outside("broadcast_object_list")
    device = device or _device(found)
    if found.rank() == root:
        sizes, data = _packed(object_list, device)
        broadcast(sizes, group=found, group_src=root)
        broadcast(data, group=found, group_src=root)
        return None
    sizes = tg.empty(len(object_list), dtype=tg.int64, device=device)
    broadcast(sizes, group=found, group_src=root)
    data = tg.empty(int(sizes.sum()), dtype=tg.uint8, device=device)
    broadcast(data, group=found, group_src=root)
    return _unpack(data, sizes, object_list)


def scatter_object_list(scatter_object_output_list: list[Any], scatter_object_input_list: list[Any] | None = None,
                        src: int | None = None,
                        group: ProcessGroup | None = None, group_src: int | None = None) -> None:
    """Put the object that one rank, by default the first, has for this one into a list.

    https://pytorch.org/docs → torch.distributed.scatter_object_list
    """
    found = _group(group)
    root = _place(found, 0 if src is None and group_src is None else src, group_src)
    if _outside(found):
        return _warn_outside("scatter_object_list")
    if not isinstance(scatter_object_output_list, list) or len(scatter_object_output_list) < 1:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    device, size = _device(found), found.size()
    longest, own = tg.zeros(1, dtype=tg.int64, device=device), tg.zeros(1, dtype=tg.int64, device=device)
    parts: Any = None
    sizes: Any = None
    if found.rank() == root:
        if scatter_object_input_list is None:
            raise ValueError("source rank must provide non-None scatter_object_input_list")
        if len(scatter_object_input_list) != size:
            raise RuntimeError(f"ProcessGroup{label(found)}::scatter: Incorrect input list size "
                               f"{len(scatter_object_input_list)}. Input list size should be {size}, same as size of "
                               f"the process group.")
        data = [_to_bytes(value) for value in scatter_object_input_list]
        longest[0] = max(map(len, data))
        parts = [_tensor(part, device, int(longest)) for part in data]
        sizes = [_tensor(np.array([len(part)]), device) for part in data]
    broadcast(longest, group=found, group_src=root)
    out = tg.empty(int(longest), dtype=tg.uint8, device=device)
    scatter(out, parts, group=found, group_src=root)
    scatter(own, sizes, group=found, group_src=root)
    scatter_object_output_list[0] = _from_bytes(out, int(own))
    return None


def send_object_list(object_list: list[Any], dst: int | None = None, group: ProcessGroup | None = None,
                     device: Any = None, group_dst: int | None = None,
                     use_batch: bool = False) -> None:
    """Send a list of objects to a rank. https://pytorch.org/docs → torch.distributed.send_object_list"""
    found = _group(group)
    place = _place(found, dst, group_dst)
    _check_other(found, place, "destination")
    if _outside(found):
        return _warn_outside("send_object_list")
    for tensor in _packed(object_list, device or _device(found)):
        if use_batch:
            batch_isend_irecv([P2POp(isend, tensor, group=found, group_peer=place)]).pop().wait()
        else:
            send(tensor, group=found, group_dst=place)
    return None


def recv_object_list(object_list: list[Any], src: int | None = None, group: ProcessGroup | None = None,
                     device: Any = None, group_src: int | None = None,
                     use_batch: bool = False) -> int:
    """Receive as many objects as a list has places from a rank, or from whichever sends first; the sender's rank in the
    world.

    https://pytorch.org/docs → torch.distributed.recv_object_list
    """
    found = _group(group)
    place = None if src is None and group_src is None else _place(found, src, group_src)
    if place is not None:
        _check_other(found, place, "source")
    if _outside(found):
        _warn_outside("recv_object_list")
        return -1
    device = device or _device(found)

    def received(tensor: Any, place: int | None) -> int:
        if use_batch and place is not None:
            batch_isend_irecv([P2POp(irecv, tensor, group=found, group_peer=place)]).pop().wait()
            return place
        source = recv(tensor, group=found, group_src=place)
        return found.ranks.index(source)
    sizes = tg.empty(len(object_list), dtype=tg.int64, device=device)
    place = received(sizes, place)
    data = tg.empty(int(sizes.sum()), dtype=tg.uint8, device=device)
    received(data, place)
    _unpack(data, sizes, object_list)
    return get_global_rank(found, place)
