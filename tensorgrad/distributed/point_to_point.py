"""Messages from one rank to another. https://pytorch.org/docs/stable/distributed.html#point-to-point-communication"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .collectives import _check, overridable
from .group import ProcessGroup
from .work import Work
from .world import _group, _outside, _place, _warn_outside, get_global_rank, get_rank

__all__ = ["P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "send"]


@overridable
def isend(tensor: Any, dst: int | None = None, group: ProcessGroup | None = None, tag: int = 0,
          group_dst: int | None = None) -> Work | Any:
    """Begin to send a tensor to a rank. https://pytorch.org/docs → torch.distributed.isend"""
    found = _group(group)
    place = _place(found, dst, group_dst)
    _check(tensor, "tensor")
    if _outside(found):
        return _warn_outside("isend")
    return found.send(tensor, place, tag)


@overridable
def irecv(tensor: Any, src: int | None = None, group: ProcessGroup | None = None, tag: int = 0,
          group_src: int | None = None) -> Work | Any:
    """Begin to receive a tensor from a rank, or from whichever sends first.

    https://pytorch.org/docs → torch.distributed.irecv
    """
    _check(tensor, "tensor")
    if _outside(group):
        return _warn_outside("irecv")
    found = _group(group)
    if src is None and group_src is None:
        return found.recv_anysource(tensor, tag)
    return found.recv(tensor, _place(found, src, group_src), tag)


def _check_other(group: ProcessGroup, rank: int, what: str) -> None:
    if group.rank() == rank:
        raise ValueError(f"Invalid {what} rank: {what} rank should not be the same as the rank of the current process.")


@overridable
def send(tensor: Any, dst: int | None = None, group: ProcessGroup | None = None, tag: int = 0,
         group_dst: int | None = None) -> None:
    """Send a tensor to a rank. https://pytorch.org/docs → torch.distributed.send"""
    found = _group(group)
    place = _place(found, dst, group_dst)
    _check_other(found, place, "destination")
    _check(tensor, "tensor")
    found.send(tensor, place, tag, later=False)


@overridable
def recv(tensor: Any, src: int | None = None, group: ProcessGroup | None = None, tag: int = 0,
         group_src: int | None = None) -> int:
    """Receive a tensor from a rank, or from whichever sends first; return the sender's rank in the world.

    Returns -1 outside the group.

    https://pytorch.org/docs → torch.distributed.recv
    """
    _check(tensor, "tensor")
    if _outside(group):
        _warn_outside("irecv")
        return -1
    found = _group(group)
    place = None if src is None and group_src is None else _place(found, src, group_src)
    if place is not None:
        _check_other(found, place, "source")
    work = found.recv(tensor, place, tag, later=False)
    return get_global_rank(found, work.source_rank() if place is None else place)


class P2POp:
    """A message of a batch: `isend` or `irecv` of a tensor.

    The other end is rank `peer` of the world or rank `group_peer` of the group. ValueError for another `op`.

    https://pytorch.org/docs → torch.distributed.P2POp
    """

    def __init__(self, op: Callable[..., Any], tensor: Any, peer: int | None = None, group: ProcessGroup | None = None,
                 tag: int = 0,
                 group_peer: int | None = None) -> None:
        if op not in (isend, irecv):
            raise ValueError("Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or "
                             "``torch.distributed.irecv``.")
        _check(tensor, "tensor")
        self.op, self.tensor, self.group, self.tag = op, tensor, _group(group), tag
        self.group_peer = _place(self.group, peer, group_peer)
        self.peer = get_global_rank(self.group, self.group_peer)

    def __repr__(self) -> str:
        ends = [get_rank(self.group), self.group_peer]
        source, target = ends if self.op is isend else reversed(ends)
        return (f"P2POp({self.op.__name__} pg={self.group.group_name}, group_src={source}, group_dst={target},  "
                f"{self.tensor.shape}, {self.tensor.dtype})")


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Begin several messages; the order of sends and receives does not matter.

    https://pytorch.org/docs → torch.distributed.batch_isend_irecv
    """
    if not isinstance(p2p_op_list, list) or not all(isinstance(op, P2POp) for op in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``.")
    group = p2p_op_list[0].group
    if any(op.group is not group for op in p2p_op_list):
        raise ValueError("All ops need to use the same group.")
    return group.batch([(op.op is isend, op.tensor, op.group_peer, op.tag) for op in p2p_op_list])
