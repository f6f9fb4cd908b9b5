"""Loaders of pipes: they set the shuffling, share samples out to ranks and workers, and give seeds."""
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ....generator import Generator
from ..datapipes.datapipe import IterDataPipe
from ..datapipes.iter.sharding import SHARDING_PRIORITIES
from ..graph_settings import apply_random_seed, apply_sharding
from ..sampler import draw_seed
from .worker import get_worker_info


def prepare(dataset: Any, generator: Any, num_workers: int) -> None:
    """Give the pipes of an epoch seeds, and without workers their rank's share."""
    if isinstance(dataset, IterDataPipe):
        apply_random_seed(dataset, Generator().manual_seed(draw_seed(generator)))
    if num_workers == 0:
        apply_sharding(dataset, *_ranks(), SHARDING_PRIORITIES.DISTRIBUTED)


def in_worker(init_fn: Callable[[int], Any] | None) -> Callable[[int], Any]:
    """Return the function that shares samples out in a worker, then calls the loader's own."""
    return partial(_sharding_worker_init_fn, init_fn, *_ranks())


def _sharding_worker_init_fn(worker_init_fn: Callable[[int], Any] | None, world_size: int, rank_id: int,
                             worker_id: int) -> None:
    info: Any = get_worker_info()
    apply_sharding(info.dataset, world_size, rank_id, SHARDING_PRIORITIES.DISTRIBUTED)
    apply_sharding(info.dataset, info.num_workers, worker_id, SHARDING_PRIORITIES.MULTIPROCESSING)
    if worker_init_fn is not None:
        worker_init_fn(worker_id)


def _ranks() -> tuple[int, int]:
    """Return (the number of ranks, this one's) of the process group; (1, 0) without one."""
    import sys
    distributed: Any = sys.modules.get(f"{__name__.partition('.')[0]}.distributed")
    if distributed is None or not distributed.is_initialized():
        return 1, 0
    return distributed.get_world_size(), distributed.get_rank()
