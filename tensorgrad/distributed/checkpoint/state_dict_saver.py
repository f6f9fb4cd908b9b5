"""Save what all ranks have, each rank a part of it. https://pytorch.org/docs → torch.distributed.checkpoint.save"""
from __future__ import annotations

import os
import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from typing import Any
from weakref import WeakKeyDictionary

from ... import distributed as dist
from ._collective_steps import Together
from .default_planner import DefaultSavePlanner
from .filesystem import FileSystemWriter
from .metadata import STATE_DICT_TYPE, Metadata
from .planner import SavePlan, SavePlanner
from .staging import staged
from .stateful import Stateful
from .storage import StorageWriter

__all__ = ["AsyncCheckpointerType", "AsyncSaveResponse", "async_save", "save", "save_state_dict"]


class AsyncCheckpointerType(Enum):
    """Where `async_save` writes: in a thread. PROCESS is a name that programs may pass; there is no need of one."""

    THREAD = "thread"
    PROCESS = "process"


@dataclass
class AsyncSaveResponse:
    """The futures that `async_save` returns if the stager gives one: of the copy, and of the checkpoint."""

    staging_completion: Future[None]
    upload_completion: Future[Metadata]


def alone(no_dist: bool, verb: str) -> bool:
    """Return True if this process saves or loads for itself. A warning tells whoever did not ask for it."""
    if not no_dist and not dist.is_initialized():
        warnings.warn(f"torch.distributed is disabled, unavailable or uninitialized, assuming the intent is to {verb} "
                      f"in a single process.", stacklevel=3)
        return True
    return no_dist


def save(state_dict: STATE_DICT_TYPE, *, checkpoint_id: str | os.PathLike[str] | None = None,
         storage_writer: StorageWriter | None = None, planner: SavePlanner | None = None, process_group: Any = None,
         no_dist: bool = False) -> Metadata:
    """Save a state dict of all ranks to a folder that they all see, in PyTorch's layout: its `load` reads it.

    Returns the index.

    https://pytorch.org/docs → torch.distributed.checkpoint.save

    state_dict: nested dicts and lists. Objects with `state_dict` and `load_state_dict` at its top, such as modules, are
        saved by their `state_dict()`.
    Values that several ranks have are written once; what one rank has, under a key of its own, is written too.
    checkpoint_id: the folder. process_group: the ranks; None: all. no_dist=True: this process saves for itself. An
    older checkpoint in
        the folder stays whole until the new one is.

    Errors: CheckpointException on all ranks, if something fails on any.

    >>> import tempfile
    >>> import tensorgrad as torch, tensorgrad.distributed.checkpoint as dcp
    >>> folder = tempfile.mkdtemp()
    >>> metadata = dcp.save({"weight": torch.ones(2), "epoch": 3}, checkpoint_id=folder, no_dist=True)
    >>> state = {"weight": torch.zeros(2), "epoch": 0}
    >>> dcp.load(state, checkpoint_id=folder, no_dist=True)
    >>> state
    {'weight': tensor([1., 1.]), 'epoch': 3}
    """
    together = Together(process_group, alone(no_dist, "save"))
    return _save_state_dict(states_of(state_dict), _writer(storage_writer, checkpoint_id), together, planner)


def async_save(state_dict: STATE_DICT_TYPE, *, checkpoint_id: str | os.PathLike[str] | None = None,
               storage_writer: StorageWriter | None = None, planner: SavePlanner | None = None,
               process_group: Any = None,
               async_checkpointer_type: AsyncCheckpointerType = AsyncCheckpointerType.THREAD,
               async_stager: Any = None, no_dist: bool = False) -> Future[Metadata] | AsyncSaveResponse:
    """Copy a state dict, then `save` it in a thread while training goes on. Returns a future of the index.

    https://pytorch.org/docs → torch.distributed.checkpoint.async_save

    All ranks call it. The thread communicates over a group of its own, so that the program may go on with collectives.
    async_stager: an object whose `stage(state_dict)` makes the copy, or a future of it: then this returns an
        `AsyncSaveResponse`. Wait for the future before the next save into
    the folder.
    """
    solitary = alone(no_dist, "save")
    writer = _writer(storage_writer, checkpoint_id)
    copy = (async_stager.stage if async_stager is not None else staged)(states_of(state_dict))
    together = Together(None if solitary else _own_group(process_group), solitary)
    pool = ThreadPoolExecutor(1, "async_save")
    later = isinstance(copy, Future)
    future = pool.submit(lambda: _save_state_dict(copy.result() if later else copy, writer, together, planner))
    pool.shutdown(wait=False)
    return AsyncSaveResponse(copy, future) if later else future


def save_state_dict(state_dict: STATE_DICT_TYPE, storage_writer: StorageWriter, process_group: Any = None,
                    coordinator_rank: int = 0, no_dist: bool = False,
                    planner: SavePlanner | None = None) -> Metadata:
    """Call `save` under its old name. https://pytorch.org/docs → torch.distributed.checkpoint.save_state_dict"""
    warnings.warn("`save_state_dict` is deprecated and will be removed in future versions.Please use `save` instead.",
                  FutureWarning, stacklevel=2)
    storage_writer.reset()
    return _save_state_dict(state_dict, storage_writer, Together(process_group, no_dist), planner)


def states_of(state_dict: STATE_DICT_TYPE) -> STATE_DICT_TYPE:
    """Return the state dict with the states of the objects at its top."""
    return {key: value.state_dict() if isinstance(value, Stateful) else value for key, value in state_dict.items()}


# a group → the one of the same ranks that `async_save` uses
_background: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def _own_group(group: Any) -> Any:
    """Return a group of the same ranks that nobody else uses."""
    group = dist.group.WORLD if group is None else group
    if dist.get_world_size(group) == 1:
        return group
    if group not in _background:
        _background[group] = dist.split_group(group, [list(range(dist.get_world_size(group)))])
    return _background[group]


def _writer(writer: StorageWriter | None, checkpoint_id: Any) -> StorageWriter:
    if writer is not None:
        if checkpoint_id is not None:
            writer.reset(checkpoint_id)
        return writer
    if not checkpoint_id:
        raise RuntimeError("`checkpoint_id` must be specified if storage_reader/storage_writer is None.")
    if not FileSystemWriter.validate_checkpoint_id(checkpoint_id):
        raise RuntimeError("Cannot detect which StorageReader or StorageWriter to use. Please specify the "
                           "storage_reader/storage_writer.")
    return FileSystemWriter(checkpoint_id)


def _save_state_dict(state_dict: STATE_DICT_TYPE, writer: StorageWriter, together: Together,
                     planner: SavePlanner | None) -> Metadata:
    chosen = DefaultSavePlanner() if planner is None else planner
    index: list[Metadata] = []

    def plan_here() -> SavePlan:
        chosen.set_up_planner(state_dict, writer.storage_meta(), together.is_coordinator)
        writer.set_up_storage_writer(together.is_coordinator)
        return writer.prepare_local_plan(chosen.create_local_plan())

    def plan_for_all(plans: list[SavePlan]) -> list[SavePlan]:
        plans, metadata = chosen.create_global_plan(plans)
        index.append(metadata)
        return writer.prepare_global_plan(plans)

    def write() -> Any:
        return writer.write_data(chosen.finish_plan(plan), chosen).wait()

    def finish(results: list[Any]) -> Metadata:
        writer.finish(index[0], results)
        return index[0]
    plan = together.spread("plan", plan_here, plan_for_all)
    return together.join("write", write, finish)  # type: ignore[no-any-return]
