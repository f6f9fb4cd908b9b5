"""The index of a checkpoint, the file `.metadata`: PyTorch's classes, by their names and fields.

https://pytorch.org/docs → torch.distributed.checkpoint
"""
from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ... import api as tg

__all__ = ["BytesStorageMetadata", "ChunkStorageMetadata", "Metadata", "MetadataIndex", "StorageMeta",
           "TensorProperties", "TensorStorageMetadata"]


@dataclass
class ChunkStorageMetadata:
    """A block of a tensor: where it begins along each axis, and its shape."""

    offsets: tg.Size
    sizes: tg.Size


class _MEM_FORMAT_ENCODING(Enum):
    """A memory format as files hold it."""

    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


FORMATS = dict(zip(_MEM_FORMAT_ENCODING, (tg.contiguous_format, tg.channels_last, tg.preserve_format)))


@dataclass
class TensorProperties:
    """The properties of a tensor besides its shape and values; only the dtype is read."""

    dtype: Any = field(default_factory=tg.get_default_dtype)
    layout: Any = tg.strided
    requires_grad: bool = False
    memory_format: Any = tg.contiguous_format
    pin_memory: bool = False

    def __getstate__(self) -> tuple[Any, ...]:
        encoding = next(code for code, memory_format in FORMATS.items() if memory_format is self.memory_format)
        return self.dtype, self.layout, self.requires_grad, encoding, self.pin_memory

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dtype, self.layout, self.requires_grad, encoding, self.pin_memory = state
        self.memory_format = FORMATS[encoding]

    @staticmethod
    def create_from_tensor(tensor: Any) -> TensorProperties:
        """Return the properties of a tensor."""
        return TensorProperties(tensor.dtype, tensor.layout, tensor.requires_grad, tg.contiguous_format,
                                tensor.is_pinned())


@dataclass
class TensorStorageMetadata:
    """A tensor, and the blocks that files hold of it."""

    properties: TensorProperties
    size: tg.Size
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """Anything but a tensor, as `torch.save` writes it."""


STORAGE_TYPES = TensorStorageMetadata | BytesStorageMetadata
STATE_DICT_TYPE = dict[str, Any]


@dataclass
class StorageMeta:
    """Which checkpoint it is, and which save wrote it."""

    checkpoint_id: str | os.PathLike[str] | None = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list[str] = field(default_factory=list)


@dataclass
class Metadata:
    """The index of a checkpoint: under each flat key what is there, the path in the nested dict, and which file holds
    it.
    """

    state_dict_metadata: dict[str, STORAGE_TYPES]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: StorageMeta | None = None
    version: str | None = None


@dataclass(frozen=True, init=False)
class MetadataIndex:
    """The key of one entry: its flat key, and for a block of a tensor where it begins.

    `index` is a hint that is not compared.
    """

    fqn: str
    offset: tg.Size | None = None
    index: int | None = field(hash=False, compare=False, default=None)

    def __init__(self, fqn: str, offset: Sequence[int] | None = None, index: int | None = None) -> None:
        vars(self).update(fqn=fqn, index=index, **({} if offset is None else {"offset": tg.Size(offset)}))
