"""Which rank writes and reads what: plans, and the classes that make them.

https://pytorch.org/docs → torch.distributed.checkpoint.SavePlanner
"""
from __future__ import annotations

import io
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum, auto
from math import prod
from typing import Any

from ... import api as tg
from .metadata import STATE_DICT_TYPE, ChunkStorageMetadata, Metadata, MetadataIndex, StorageMeta, TensorProperties

__all__ = ["BytesIOWriteData", "LoadItemType", "LoadPlan", "LoadPlanner", "ReadItem", "SavePlan", "SavePlanner",
           "TensorWriteData", "WriteItem",
           "WriteItemType"]


class WriteItemType(Enum):
    """The kind of an entry that is written: a tensor, a block of one, or bytes."""

    TENSOR = auto()
    SHARD = auto()
    BYTE_IO = auto()


class LoadItemType(Enum):
    """The kind of an entry that is read: a block of a tensor, or bytes."""

    TENSOR = auto()
    BYTE_IO = auto()


@dataclass(frozen=True)
class BytesIOWriteData:
    """The number of bytes of something that is no tensor."""

    nbytes: int


@dataclass(frozen=True)
class TensorWriteData:
    """A block of a tensor, and the tensor."""

    chunk: ChunkStorageMetadata
    properties: TensorProperties
    size: tg.Size


@dataclass(frozen=True)
class WriteItem:
    """An entry that a rank writes."""

    index: MetadataIndex
    type: WriteItemType
    bytes_io_data: BytesIOWriteData | None = None
    tensor_data: TensorWriteData | None = None

    def tensor_storage_size(self) -> int | None:
        """Return the number of bytes of the tensor; None for what is none."""
        return (None if self.tensor_data is None else prod(self.tensor_data.size)
                * self.tensor_data.properties.dtype.itemsize)


@dataclass(frozen=True)
class ReadItem:
    """An entry that a rank reads: a block of `lengths` elements, from the offsets in the file's block to those in the
    tensor.
    """

    type: LoadItemType
    dest_index: MetadataIndex
    dest_offsets: tg.Size
    storage_index: MetadataIndex
    storage_offsets: tg.Size
    lengths: tg.Size


@dataclass(frozen=True)
class SavePlan:
    """All that a rank writes."""

    items: list[WriteItem]
    storage_data: Any = None
    planner_data: Any = None
    usable: bool = True


@dataclass
class LoadPlan:
    """All that a rank reads."""

    items: list[ReadItem]
    storage_data: Any = None
    planner_data: Any = None


class SavePlanner(ABC):
    """Decides what each rank writes. On all ranks `set_up_planner`, `create_local_plan`; on the first
    `create_global_plan`; on all `finish_plan` and, for each item, `resolve_data`. Derive from `DefaultSavePlanner` to
    change one of them."""

    @abstractmethod
    def set_up_planner(self, state_dict: STATE_DICT_TYPE, storage_meta: StorageMeta | None = None,
                       is_coordinator: bool = False) -> None:
        """Take the state dict that is to be saved."""

    @abstractmethod
    def create_local_plan(self) -> SavePlan:
        """Return what this rank could write."""

    @abstractmethod
    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """Return what each rank is to write, and the index of it all."""

    @abstractmethod
    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """Return this rank's plan, as it will be carried out."""

    @abstractmethod
    def resolve_data(self, write_item: WriteItem) -> Any:
        """Return the tensor, or the bytes in an io.BytesIO, of one item."""


class LoadPlanner(ABC):
    """Decides what each rank reads. On all ranks `set_up_planner`, `create_local_plan`; on the first
    `create_global_plan`; on all `finish_plan`, then `load_bytes` for each item that is bytes, `resolve_tensor` and
    `commit_tensor` for each block of a tensor."""

    @abstractmethod
    def set_up_planner(self, state_dict: STATE_DICT_TYPE, metadata: Metadata | None = None,
                       is_coordinator: bool = False) -> None:
        """Take the state dict that is to be filled, and the index of the checkpoint."""

    @abstractmethod
    def create_local_plan(self) -> LoadPlan:
        """Return what this rank reads."""

    @abstractmethod
    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """Return what each rank reads, after a look at all plans."""

    @abstractmethod
    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """Return this rank's plan, as it will be carried out."""

    @abstractmethod
    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Take over something that is no tensor, as `torch.save` wrote it."""

    @abstractmethod
    def resolve_tensor(self, read_item: ReadItem) -> Any:
        """Return the block of a tensor that is to be filled."""

    @abstractmethod
    def commit_tensor(self, read_item: ReadItem, tensor: Any) -> None:
        """Say that what `resolve_tensor` gave has been filled."""
