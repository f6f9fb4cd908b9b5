"""Load what all ranks saved, on any number of ranks. https://pytorch.org/docs → torch.distributed.checkpoint.load"""
from __future__ import annotations

import os
import warnings
from typing import Any

from ._collective_steps import Together
from .default_planner import DefaultLoadPlanner, _EmptyStateDictLoadPlanner
from .filesystem import FileSystemReader
from .planner import LoadPlan, LoadPlanner
from .state_dict_saver import alone
from .stateful import Stateful
from .storage import StorageReader

__all__ = ["load", "load_state_dict"]


def load(state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike[str] | None = None,
         storage_reader: StorageReader | None = None, planner: LoadPlanner | None = None, process_group: Any = None,
         no_dist: bool = False) -> None:
    """Fill a state dict from a checkpoint that `save` wrote, here or in PyTorch, on any number of ranks.

    https://pytorch.org/docs → torch.distributed.checkpoint.load

    Tensors are filled in place, and anything else is replaced; objects with `state_dict` and `load_state_dict` at the
    top get what was loaded by `load_state_dict`. Each rank reads what its state dict has, so ranks may ask for
    different entries. Nothing in the checkpoint is run.

    Errors: CheckpointException on all ranks, if a key is missing (planner=DefaultLoadPlanner(allow_partial_load=True)
        leaves it as it is), a tensor has
    another size, or a file is damaged.
    """
    together = Together(process_group, alone(no_dist, "load"))
    states = {key: value.state_dict() if isinstance(value, Stateful) else value
              for key, value in sorted(state_dict.items())}
    _load_state_dict(states, _reader(storage_reader, checkpoint_id), together, planner)
    for key, loaded in states.items():
        if isinstance(state_dict[key], Stateful):
            state_dict[key].load_state_dict(loaded)
        else:
            state_dict[key] = loaded


def load_state_dict(state_dict: dict[str, Any], storage_reader: StorageReader, process_group: Any = None,
                    coordinator_rank: int = 0, no_dist: bool = False,
                    planner: LoadPlanner | None = None) -> None:
    """Call `load` under its old name, for plain state dicts.

    https://pytorch.org/docs → torch.distributed.checkpoint.load_state_dict
    """
    warnings.warn("`load_state_dict` is deprecated and will be removed in future versions. Please use `load` instead.",
                  FutureWarning, stacklevel=2)
    storage_reader.reset()
    _load_state_dict(state_dict, storage_reader, Together(process_group, no_dist), planner)


def _load_state_dict_from_keys(keys: set[str] | str | None = None, *, checkpoint_id: Any = None,
                               storage_reader: StorageReader | None = None,
                               process_group: Any = None) -> dict[str, Any]:
    """Return a new state dict with all entries of a checkpoint, or with those under some keys."""
    state_dict: dict[str, Any] = {}
    planner = _EmptyStateDictLoadPlanner({keys} if isinstance(keys, str) else keys)
    _load_state_dict(state_dict, _reader(storage_reader, checkpoint_id), Together(process_group, alone(False, "load")),
                     planner)
    return state_dict


def _reader(reader: StorageReader | None, checkpoint_id: Any) -> StorageReader:
    if reader is not None:
        if checkpoint_id is not None:
            reader.reset(checkpoint_id)
        return reader
    if not checkpoint_id:
        raise RuntimeError("`checkpoint_id` must be specified if storage_reader/storage_writer is None.")
    if not FileSystemReader.validate_checkpoint_id(checkpoint_id):
        raise RuntimeError("Cannot detect which StorageReader or StorageWriter to use. Please specify the "
                           "storage_reader/storage_writer.")
    return FileSystemReader(checkpoint_id)


def _load_state_dict(state_dict: dict[str, Any], reader: StorageReader, together: Together,
                     planner: LoadPlanner | None) -> None:
    chosen = DefaultLoadPlanner() if planner is None else planner

    def plan_here() -> LoadPlan:
        metadata = reader.read_metadata()
        chosen.set_up_planner(state_dict, metadata, together.is_coordinator)
        reader.set_up_storage_reader(metadata, together.is_coordinator)
        return reader.prepare_local_plan(chosen.create_local_plan())

    def read() -> None:
        reader.read_data(chosen.finish_plan(plan), chosen).wait()
    plan = together.spread("plan", plan_here,
                           lambda plans: reader.prepare_global_plan(chosen.create_global_plan(plans)))
    together.join("read", read, lambda results: None)
