"""Groups over backends of third parties, which register with `Backend.register_backend` and have the methods of
PyTorch's ProcessGroup.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import options
from .group import ProcessGroup, first
from .operations import ReduceOp
from .work import Work

__all__ = ["Plugged"]


class Plugged(ProcessGroup):
    """A group whose methods are those of another object: `allreduce([tensor], AllreduceOptions)` and so on, which give
    something to wait for.
    """

    def __init__(self, inner: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.inner = inner

    def name(self) -> str:
        """Return the name of the backend."""
        return str(self.backend)

    def _settled(self, work: Any, later: bool) -> Work:
        if not later and work is not None:
            work.wait()
        return work

    def allreduce(self, tensors: Any, op: Any = ReduceOp.SUM, later: bool = True) -> Work:
        """Replace a tensor by the reduction of all ranks'."""
        return self._settled(self.inner.allreduce([first(tensors)],
                                                  options.AllreduceOptions(reduceOp=getattr(op, "reduceOp", op))),
                             later)

    def allreduce_coalesced(self, tensors: Sequence[Any], op: Any = ReduceOp.SUM, later: bool = True) -> Work:
        """Replace several tensors by the reductions of all ranks'."""
        return self._settled(self.inner.allreduce_coalesced(list(tensors),
                                                            options.AllreduceCoalescedOptions(reduceOp=op)), later)

    def broadcast(self, tensors: Any, root: Any = 0, later: bool = True) -> Work:
        """Replace a tensor by the root's."""
        return self._settled(self.inner.broadcast([first(tensors)],
                                                  options.BroadcastOptions(rootRank=getattr(root, "rootRank", root))),
                             later)

    def reduce(self, tensors: Any, root: Any = 0, op: Any = ReduceOp.SUM, later: bool = True) -> Work:
        """Replace the root's tensor by the reduction of all ranks'."""
        return self._settled(self.inner.reduce([first(tensors)], options.ReduceOptions(rootRank=root, reduceOp=op)),
                             later)

    def allgather(self, outputs: Any, tensors: Any, later: bool = True) -> Work:
        """Fill a list of tensors with those of all ranks."""
        return self._settled(self.inner.allgather([list(outputs)], [first(tensors)], None), later)

    def _allgather_base(self, output: Any, tensor: Any, later: bool = True) -> Work:
        """Fill one tensor with those of all ranks."""
        return self._settled(self.inner._allgather_base(output, tensor, None), later)

    def gather(self, outputs: Any, tensors: Any, root: Any = 0, later: bool = True) -> Work:
        """Fill the root's list of tensors with those of all ranks."""
        lists = [list(outputs)] if root == self.rank() else []
        return self._settled(self.inner.gather(lists, [first(tensors)], options.GatherOptions(rootRank=root)), later)

    def scatter(self, outputs: Any, inputs: Any, root: Any = 0, later: bool = True) -> Work:
        """Fill a tensor with this rank's part of the root's list."""
        lists = [list(inputs)] if root == self.rank() else []
        return self._settled(self.inner.scatter([first(outputs)], lists, options.ScatterOptions(rootRank=root)), later)

    def reduce_scatter(self, outputs: Any, inputs: Any, op: Any = ReduceOp.SUM, later: bool = True) -> Work:
        """Fill a tensor with this rank's part of the reduction of all ranks' lists."""
        return self._settled(self.inner.reduce_scatter([first(outputs)], [list(inputs)],
                                                       options.ReduceScatterOptions(reduceOp=op)), later)

    def _reduce_scatter_base(self, output: Any, tensor: Any, op: Any = ReduceOp.SUM, later: bool = True) -> Work:
        """Fill a tensor with this rank's part of the reduction of all ranks' tensors."""
        return self._settled(self.inner._reduce_scatter_base(output, tensor, options.ReduceScatterOptions(reduceOp=op)),
                             later)

    def alltoall(self, outputs: Sequence[Any], inputs: Sequence[Any], later: bool = True) -> Work:
        """Send the i-th tensor of a list to rank i; fill the i-th of another with what rank i sent."""
        return self._settled(self.inner.alltoall(list(outputs), list(inputs), options.AllToAllOptions()), later)

    def alltoall_base(self, output: Any, tensor: Any, output_split_sizes: Any = None, input_split_sizes: Any = None,
                      later: bool = True) -> Work:
        """Exchange parts of one tensor."""
        sizes = list(output_split_sizes or ()), list(input_split_sizes or ())
        return self._settled(self.inner.alltoall_base(output, tensor, *sizes, options.AllToAllOptions()), later)

    def barrier(self, opts: Any = None, later: bool = True, timeout: Any = None) -> Work:
        """Wait until all ranks are here."""
        return self._settled(self.inner.barrier(opts or options.BarrierOptions(timeout=timeout)), later)

    def send(self, tensors: Any, dst: int, tag: int = 0, later: bool = True) -> Work:
        """Send a tensor to a rank of the group."""
        return self._settled(self.inner.send([first(tensors)], dst, tag), later)

    def recv(self, tensors: Any, src: int | None, tag: int = 0, later: bool = True) -> Work:
        """Fill a tensor with what a rank of the group sent."""
        tensor = first(tensors)
        work = self.inner.recv_anysource([tensor], tag) if src is None else self.inner.recv([tensor], src, tag)
        return self._settled(work, later)

    def batch(self, messages: Sequence[tuple[bool, Any, int, int]]) -> list[Work]:
        """Begin several messages."""
        return [(self.send if sends else self.recv)(tensor, rank, tag) for sends, tensor, rank, tag in messages]

    def shutdown(self) -> None:
        """End it, if the other object knows how."""
        getattr(self.inner, "shutdown", lambda: None)()
