"""From a folder of a checkpoint to one file of `torch.save`, and back.

https://pytorch.org/docs → torch.distributed.checkpoint.format_utils

    python -m tensorgrad.distributed.checkpoint.format_utils dcp_to_torch folder model.pt
"""
from __future__ import annotations

import argparse
import os
from typing import Any

from ... import api as tg
from ... import distributed as dist
from ... import serialization
from ...futures import Future
from ._collective_steps import Together
from ._nested_dict import flatten_state_dict
from .default_planner import DefaultLoadPlanner, _EmptyStateDictLoadPlanner, block
from .filesystem import FileSystemReader, FileSystemWriter
from .metadata import STATE_DICT_TYPE, ChunkStorageMetadata, Metadata, TensorProperties, TensorStorageMetadata
from .planner import LoadPlan
from .state_dict_loader import _load_state_dict
from .state_dict_saver import _save_state_dict
from .storage import StorageReader

__all__ = ["BroadcastingTorchSaveReader", "DynamicMetaLoadPlanner", "dcp_to_torch_save", "torch_save_to_dcp"]


def dcp_to_torch_save(dcp_checkpoint_dir: str | os.PathLike[str], torch_save_path: str | os.PathLike[str]) -> None:
    """Write a checkpoint that `save` wrote as one file, which `torch.load` reads.

    https://pytorch.org/docs → dcp_to_torch_save
    """
    state_dict: dict[str, Any] = {}
    _load_state_dict(state_dict, FileSystemReader(dcp_checkpoint_dir), Together(None, True),
                     _EmptyStateDictLoadPlanner())
    serialization.save(state_dict, torch_save_path)


def torch_save_to_dcp(torch_save_path: str | os.PathLike[str], dcp_checkpoint_dir: str | os.PathLike[str]) -> None:
    """Write a file of `torch.save`, which is read without running it, as a checkpoint.

    https://pytorch.org/docs → torch_save_to_dcp
    """
    _save_state_dict(serialization.load(torch_save_path), FileSystemWriter(dcp_checkpoint_dir), Together(None, True),
                     None)


class DynamicMetaLoadPlanner(DefaultLoadPlanner):
    """A planner for files that have no index: what the state dict has is what is read.

    RuntimeError for anything but tensors.

    https://pytorch.org/docs → torch.distributed.checkpoint.format_utils.DynamicMetaLoadPlanner
    """

    def set_up_planner(self, state_dict: STATE_DICT_TYPE, metadata: Metadata | None = None,
                       is_coordinator: bool = False) -> None:
        super().set_up_planner(state_dict, metadata, is_coordinator)
        entries: dict[str, Any] = {}
        for key, value in self.state_dict.items():
            if not isinstance(value, tg.Tensor):
                raise RuntimeError(f"Non-tensor value identified at {key}. At this time {type(self).__name__} only "
                                   f"supports loading Tensors.")
            whole = ChunkStorageMetadata(tg.Size([0] * value.dim()), value.shape)
            entries[key] = TensorStorageMetadata(TensorProperties(value.dtype), value.shape, [whole])
        self.metadata = Metadata(entries)


class BroadcastingTorchSaveReader(StorageReader):
    """Reads a file of `torch.save` on one rank, which sends each tensor to the others; for `load` with a
    `DynamicMetaLoadPlanner`.

    https://pytorch.org/docs → torch.distributed.checkpoint.format_utils.BroadcastingTorchSaveReader
    """

    def __init__(self, checkpoint_id: str | os.PathLike[str] | None = None, coordinator_rank: int = 0) -> None:
        self.checkpoint_id, self.coordinator_rank = checkpoint_id, coordinator_rank

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        self.checkpoint_id = checkpoint_id

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        return Metadata({})

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        self.is_coordinator = is_coordinator
        if self.checkpoint_id is None:
            raise AssertionError("checkpoint_id must be set before setting up storage reader")

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        return plans

    def read_data(self, plan: LoadPlan, planner: Any) -> Future[None]:
        state = serialization.load(self.checkpoint_id, map_location="cpu") if self.is_coordinator else {}
        values, _ = flatten_state_dict(state) if planner.flatten_state_dict else (state, None)
        for item in plan.items:
            key = item.storage_index.fqn
            tensor = (values[key].contiguous() if self.is_coordinator
                      else tg.empty_like(planner.state_dict[key], device="cpu"))
            if dist.is_initialized():
                dist.broadcast(tensor, self.coordinator_rank)
            target = planner.resolve_tensor(item).detach()
            target.copy_(block(tensor, item.storage_offsets, item.lengths))
            planner.commit_tensor(item, target)
        future: Future[None] = Future()
        future.set_result(None)
        return future

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        return os.path.isfile(checkpoint_id)


def main(arguments: list[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog=f"python -m {__package__}.format_utils",
                                     description=(__doc__ or "").split(". ")[0])
    parser.add_argument("mode", choices=["torch_to_dcp", "dcp_to_torch"])
    parser.add_argument("src", help="what to read")
    parser.add_argument("dst", help="what to write")
    given = parser.parse_args(arguments)
    (torch_save_to_dcp if given.mode == "torch_to_dcp" else dcp_to_torch_save)(given.src, given.dst)


if __name__ == "__main__":
    main()
