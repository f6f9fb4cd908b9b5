"""Options of collectives, as the methods of PyTorch's ProcessGroup take them.

https://pytorch.org/docs → torch.distributed
"""
from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from .operations import ReduceOp

__all__ = ["AllToAllOptions", "AllreduceCoalescedOptions", "AllreduceOptions", "BarrierOptions", "BroadcastOptions",
           "GatherOptions", "ReduceOptions",
           "ReduceScatterOptions", "ScatterOptions"]


@dataclass
class _Options:
    timeout: timedelta | None = None
    asyncOp: bool = True


@dataclass
class AllreduceOptions(_Options):
    """Options of `ProcessGroup.allreduce`."""

    reduceOp: ReduceOp = ReduceOp.SUM


@dataclass
class AllreduceCoalescedOptions(AllreduceOptions):
    """Options of `ProcessGroup.allreduce_coalesced`."""


@dataclass
class ReduceScatterOptions(AllreduceOptions):
    """Options of `ProcessGroup.reduce_scatter`."""


@dataclass
class BroadcastOptions(_Options):
    """Options of `ProcessGroup.broadcast`."""

    rootRank: int = 0
    rootTensor: int = 0


@dataclass
class ReduceOptions(BroadcastOptions):
    """Options of `ProcessGroup.reduce`."""

    reduceOp: ReduceOp = ReduceOp.SUM


@dataclass
class GatherOptions(_Options):
    """Options of `ProcessGroup.gather`."""

    rootRank: int = 0


@dataclass
class ScatterOptions(GatherOptions):
    """Options of `ProcessGroup.scatter`."""


@dataclass
class AllToAllOptions(_Options):
    """Options of `ProcessGroup.alltoall`."""


@dataclass
class BarrierOptions(_Options):
    """Options of `ProcessGroup.barrier`."""

    device_ids: list[int] = field(default_factory=list)
    device: Any = None
