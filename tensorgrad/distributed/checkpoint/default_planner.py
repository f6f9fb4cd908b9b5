"""The planners that `save` and `load` use: what all ranks have is written once, by whichever rank has the least to
write.
"""
from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

from ... import api as tg
from ... import serialization
from ._nested_dict import FLATTEN_MAPPING, flatten_state_dict, set_element
from .metadata import (
    STATE_DICT_TYPE,
    STORAGE_TYPES,
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from .planner import (
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    TensorWriteData,
    WriteItem,
    WriteItemType,
)

__all__ = ["DefaultLoadPlanner", "DefaultSavePlanner", "create_default_global_load_plan",
           "create_default_global_save_plan", "create_default_local_load_plan",
           "create_default_local_save_plan"]


class DefaultSavePlanner(SavePlanner):
    """Save each entry of a nested state dict once: an entry of several ranks by one of them, an entry of one rank by
    that rank.

    https://pytorch.org/docs → torch.distributed.checkpoint.DefaultSavePlanner

    Entries of one key count as equal on all ranks. Give entries that differ from rank to rank a key for each rank:
    {f"random state of rank {rank}": state}.
    dedup_save_to_lowest_rank: let the lowest rank that has an entry write it, rather than the one with the least to
        write.
    """

    def __init__(self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True,
                 dedup_replicated_tensors: bool | None = None,
                 dedup_save_to_lowest_rank: bool = False, enable_plan_caching: bool = False) -> None:
        self.flatten_state_dict, self.dedup_save_to_lowest_rank = flatten_state_dict, dedup_save_to_lowest_rank
        self.mappings: FLATTEN_MAPPING = {}

    def set_up_planner(self, state_dict: STATE_DICT_TYPE, storage_meta: StorageMeta | None = None,
                       is_coordinator: bool = False) -> None:
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict, self.is_coordinator = state_dict, is_coordinator

    def create_local_plan(self) -> SavePlan:
        plan = create_default_local_save_plan(self.state_dict, self.is_coordinator)
        self.plan = replace(plan, planner_data=self.mappings) if self.flatten_state_dict else plan
        return self.plan

    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        plans, metadata = create_default_global_save_plan(_without_duplicates(all_plans,
                                                                              self.dedup_save_to_lowest_rank))
        if self.flatten_state_dict:
            metadata.planner_data = {key: path for plan in reversed(plans) for key, path in plan.planner_data.items()}
            plans = [replace(plan, planner_data=None) for plan in plans]
        self.global_plan, self.metadata = plans, metadata
        return plans, metadata

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        self.plan = new_plan
        return new_plan

    def resolve_data(self, write_item: WriteItem) -> Any:
        return self.transform_object(write_item, self.lookup_object(write_item.index))

    def lookup_object(self, index: MetadataIndex) -> Any:
        """Return the entry of the state dict that is to be written."""
        return self.state_dict[index.fqn]

    def transform_object(self, write_item: WriteItem, object: Any) -> Any:
        """Return an entry as it is written: a tensor, or the bytes of `torch.save` in an io.BytesIO."""
        if write_item.type is not WriteItemType.BYTE_IO:
            return object
        buffer = io.BytesIO()
        serialization.save(object, buffer)
        return buffer


class DefaultLoadPlanner(LoadPlanner):
    """Fill each entry of a nested state dict: tensors in place, anything else anew.

    https://pytorch.org/docs → torch.distributed.checkpoint.DefaultLoadPlanner

    allow_partial_load: leave entries as they are that the checkpoint lacks, rather than raise. Entries that are no
        tensors are read as by
    `torch.load(weights_only=True)`: classes of a program's own need `torch.serialization.add_safe_globals`.
    """

    def __init__(self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True,
                 allow_partial_load: bool = False) -> None:
        self.flatten_state_dict, self.allow_partial_load = flatten_state_dict, allow_partial_load
        self.original_state_dict: STATE_DICT_TYPE = {}
        self.mappings: FLATTEN_MAPPING = {}

    def set_up_planner(self, state_dict: STATE_DICT_TYPE, metadata: Metadata | None = None,
                       is_coordinator: bool = False) -> None:
        self.original_state_dict = state_dict
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict, self.metadata, self.is_coordinator = state_dict, metadata, is_coordinator

    def create_local_plan(self) -> LoadPlan:
        assert self.metadata is not None
        return create_default_local_load_plan(self.state_dict, self.metadata, not self.allow_partial_load)

    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        return create_default_global_load_plan(global_plan)

    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        return central_plan

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        key, loaded = read_item.dest_index.fqn, serialization.load(value)
        if self.flatten_state_dict:
            set_element(self.original_state_dict, self.mappings[key], loaded)
        else:
            self.state_dict[key] = loaded

    def resolve_tensor(self, read_item: ReadItem) -> Any:
        return self.transform_tensor(read_item, self.lookup_tensor(read_item.dest_index))

    def commit_tensor(self, read_item: ReadItem, tensor: Any) -> None:
        """Do nothing: tensors are filled in place."""

    def lookup_tensor(self, index: MetadataIndex) -> Any:
        """Return the tensor of the state dict that is to be filled."""
        return self.state_dict[index.fqn]

    def transform_tensor(self, read_item: ReadItem, tensor: Any) -> Any:
        """Return the block of a tensor that is to be filled."""
        return block(tensor, read_item.dest_offsets, read_item.lengths)


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Makes the state dict of a checkpoint's index: of all its entries, or of those whose keys, or beginnings of keys,
    are given.
    """

    def __init__(self, keys: set[str] | None = None, *args: Any, **kwargs: Any) -> None:
        self.keys = keys
        super().__init__(*args, **kwargs)

    def set_up_planner(self, state_dict: STATE_DICT_TYPE, metadata: Metadata | None = None,
                       is_coordinator: bool = False) -> None:
        assert not state_dict and metadata is not None
        for key, entry in metadata.state_dict_metadata.items():
            path = (metadata.planner_data or {}).get(key, (key,))
            beginnings = {".".join(map(str, path[:n])) for n in range(1, len(path) + 1)}
            if self.keys is None or key in self.keys or beginnings & self.keys:
                tensor = isinstance(entry, TensorStorageMetadata)
                set_element(state_dict, path, tg.empty(entry.size, dtype=entry.properties.dtype) if tensor else None)   # type: ignore[union-attr]
        super().set_up_planner(state_dict, metadata, is_coordinator)


def block(tensor: Any, offsets: Any, lengths: Any) -> Any:
    """Return a view of a block of a tensor: all of it, mostly."""
    for axis, (offset, length) in enumerate(zip(offsets, lengths)):
        if length != tensor.shape[axis]:
            tensor = tensor.narrow(axis, offset, length)
    return tensor


def create_default_local_save_plan(state_dict: dict[str, Any], is_coordinator: bool) -> SavePlan:
    """Return a plan that writes every entry of a flat state dict.

    https://pytorch.org/docs → create_default_local_save_plan
    """
    items = []
    for key, value in state_dict.items():
        if isinstance(value, tg.Tensor):
            start = tg.Size([0] * value.dim())
            data = TensorWriteData(ChunkStorageMetadata(start, value.shape), TensorProperties.create_from_tensor(value),
                                   value.shape)
            items.append(WriteItem(MetadataIndex(key, start), WriteItemType.TENSOR, tensor_data=data))
        else:
            items.append(WriteItem(MetadataIndex(key), WriteItemType.BYTE_IO))
    return SavePlan(items)


def _without_duplicates(plans: list[SavePlan], lowest: bool) -> list[SavePlan]:
    """Return the plans of all ranks with each entry in one of them only."""
    having: dict[MetadataIndex, list[int]] = {}
    first: dict[MetadataIndex, WriteItem] = {}
    for rank, plan in enumerate(plans):
        for item in plan.items:
            having.setdefault(item.index, []).append(rank)
            if first.setdefault(item.index, item).tensor_data != item.tensor_data:
                raise ValueError(f"Failed to validate global plan: the ranks {having[item.index][0]} and {rank} have "
                                 f"unlike tensors under the key {item.index.fqn!r}. Give entries that differ from rank "
                                 f"to rank a key for each rank.")
    loads, writer = [0] * len(plans), {}
    for index, ranks in having.items():
        writer[index] = ranks[0] if lowest else min(ranks, key=loads.__getitem__)
        loads[writer[index]] += first[index].tensor_storage_size() or 1
    return [replace(plan, items=[item for item in plan.items if writer[item.index] == rank])
            for rank, plan in enumerate(plans)]


def create_default_global_save_plan(all_plans: list[SavePlan],
                                    rewrite_index_hints: bool = True) -> tuple[list[SavePlan], Metadata]:
    """Return the plans of all ranks, no entry in two of them, and their index.

    https://pytorch.org/docs → create_default_global_save_plan
    """
    entries: dict[str, STORAGE_TYPES] = {}
    plans = []
    for plan in all_plans:
        items = []
        for item in plan.items:
            key, data = item.index.fqn, item.tensor_data
            if item.type is not WriteItemType.SHARD and key in entries:
                raise ValueError(f"Failed to validate global plan: the ranks have unlike entries {key!r}: tensors of "
                                 f"unlike shapes, or a tensor and none")
            if data is None:
                entries[key] = BytesStorageMetadata()
                items.append(item)
                continue
            entry = entries.setdefault(key, TensorStorageMetadata(data.properties, data.size, []))
            assert isinstance(entry, TensorStorageMetadata)
            items.append(replace(item, index=MetadataIndex(key, item.index.offset, len(entry.chunks)))
                         if rewrite_index_hints else item)
            entry.chunks.append(data.chunk)
        plans.append(replace(plan, items=items))
    return plans, Metadata(entries)


def create_default_local_load_plan(state_dict: dict[str, Any], metadata: Metadata, strict: bool = True) -> LoadPlan:
    """Return a plan that reads every entry of a flat state dict.

    https://pytorch.org/docs → create_default_local_load_plan

    RuntimeError for an entry that the checkpoint lacks, ValueError for a tensor of another size.
    """
    items = []
    for key, value in state_dict.items():
        entry = metadata.state_dict_metadata.get(key)
        if entry is None:
            if strict:
                raise RuntimeError(f"Missing key in checkpoint state_dict: {key}.")
        elif isinstance(entry, TensorStorageMetadata) and isinstance(value, tg.Tensor):
            if entry.size != value.shape:
                raise ValueError(f"Size mismatch between saved {entry.size} and current: {value.shape} for {key}")
            for i, chunk in enumerate(entry.chunks):
                index = MetadataIndex(key, chunk.offsets, i)
                items.append(ReadItem(LoadItemType.TENSOR, MetadataIndex(key), chunk.offsets, index,
                                      tg.Size([0] * value.dim()), chunk.sizes))
        elif isinstance(entry, TensorStorageMetadata):
            raise ValueError(f"Invalid checkpoint metadata for {key}, expected BytesStorageMetadata but found "
                             f"{type(entry)}\nThe checkpoint holds a tensor, and the state dict a "
                             f"{type(value).__name__}: put a tensor of shape {tuple(entry.size)} there, to be filled.")
        else:
            none = tg.Size([0])
            items.append(ReadItem(LoadItemType.BYTE_IO, MetadataIndex(key), none, MetadataIndex(key), none, none))
    return LoadPlan(items)


def create_default_global_load_plan(all_plans: list[LoadPlan]) -> list[LoadPlan]:
    """Return the plans of all ranks, as they are. https://pytorch.org/docs → create_default_global_load_plan"""
    return all_plans
