"""Modules on several devices, and in several processes. https://pytorch.org/docs → torch.nn.parallel"""
from __future__ import annotations

import warnings
from typing import Any

from . import comm
from .data_parallel import DataParallel, data_parallel
from .distributed import DistributedDataParallel
from .parallel_apply import parallel_apply
from .reduction import reduce_early
from .replicate import replicate
from .scatter_gather import gather, scatter
from .stages import GPUReplicate, Join, ParallelApply, Split

__all__ = ["DataParallel", "DistributedDataParallel", "GPUReplicate", "Join", "ParallelApply", "Split", "comm",
           "data_parallel", "gather", "parallel_apply", "reduce_early", "replicate", "scatter"]


class DistributedDataParallelCPU(DistributedDataParallel):
    """An old name of DistributedDataParallel."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn("`torch.nn.parallel.DistributedDataParallelCPU` is deprecated, please use "
                      "`torch.nn.parallel.DistributedDataParallel` instead.",
                      FutureWarning, stacklevel=2)
        super().__init__(*args, **kwargs)
