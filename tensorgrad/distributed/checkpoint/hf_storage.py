"""Checkpoints in a folder of .safetensors files, as model hubs lay them out.

https://pytorch.org/docs → torch.distributed.checkpoint.HuggingFaceStorageWriter
"""
from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from typing import Any

from ... import api as tg
from ...futures import Future
from ...serialization._atomic import replacing
from ...utils.safetensors import DTYPES, NAMES, safe_open, save
from .filesystem import FileSystemReader, FileSystemWriter, _compact, _done, _StorageInfo
from .metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from .planner import LoadPlan, LoadPlanner, ReadItem, SavePlan, SavePlanner, WriteItem, WriteItemType
from .storage import WriteResult

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]

INDEX, SUFFIX, SHARDING = "model.safetensors.index.json", ".safetensors", "DCP_SHARDING_INFO"


@dataclass
class _HFStorageInfo:
    """Which file holds a block, and the block's shape and dtype."""

    relative_path: str
    shape: tg.Size
    dtype: tg.dtype


class HuggingFaceStorageWriter(FileSystemWriter):
    """Write a state dict to .safetensors files and their index `model.safetensors.index.json`.

    https://pytorch.org/docs → torch.distributed.checkpoint.HuggingFaceStorageWriter

    fqn_to_index_mapping: the number of the file of each key, from 1 on; all keys share one file without it.
    save_distributed: each rank writes files of its own blocks, `shard-…`, without an index.
    Errors: NotImplementedError for enable_consolidation, which would join the ranks' blocks.
    """

    def __init__(self, path: str, fqn_to_index_mapping: dict[str, int] | None = None, thread_count: int = 1,
                 save_distributed: bool = False, enable_consolidation: bool = False,
                 thread_count_consolidation: int = 1) -> None:
        if enable_consolidation:
            raise NotImplementedError("tensorgrad does not consolidate sharded .safetensors files: load the folder "
                                      "and save the state dict on one rank")
        super().__init__(path, thread_count=thread_count)
        self.fqn_to_index_mapping, self.save_distributed = fqn_to_index_mapping, save_distributed

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        return [replace(plan, storage_data=f"shard-{rank:05}-" if self.save_distributed else "")
                for rank, plan in enumerate(plans, 1)]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        files: dict[int, list[WriteItem]] = {}
        for item in plan.items:
            files.setdefault((self.fqn_to_index_mapping or {item.index.fqn: 1})[item.index.fqn], []).append(item)
        largest = max((self.fqn_to_index_mapping or {"": 1}).values())
        return _done([result for n, items in files.items() for result in
                      self._write_tensors(f"{plan.storage_data}model-{n:05}-of-{largest:05}{SUFFIX}", items, planner)])

    def _write_tensors(self, name: str, items: list[WriteItem], planner: SavePlanner) -> list[WriteResult]:
        results, tensors, begins = [], {}, {}
        for item in items:
            key = item.index.fqn
            if item.type is WriteItemType.BYTE_IO:
                raise ValueError(f"a .safetensors file holds tensors alone, and {key!r} is none")
            tensors[key] = _compact(planner.resolve_data(item))
            begins[key] = {"saved_offsets": list(item.tensor_data.chunk.offsets)}
            size = tensors[key].numel() * tensors[key].element_size()
            results.append(WriteResult(item.index, size, _StorageInfo(name, 0, size)))
        notes = {SHARDING: json.dumps(begins), "DCP_VERSION": "1.0", "format": "pt"}
        with replacing(self.path / name) as file:
            file.write(save(tensors, notes))
        return results

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        if self.save_distributed:
            return
        written = [result for of_rank in results for result in of_rank]
        index = {"metadata": {"total_size": sum(result.size_in_bytes for result in written)},
                 "weight_map": {result.index.fqn: result.storage_data.relative_path for result in written}}
        with replacing(self.path / INDEX) as file:
            file.write(json.dumps(index, indent=2).encode())


class HuggingFaceStorageReader(FileSystemReader):
    """Read a state dict from the .safetensors files of a folder; blocks of a tensor are put together.

    https://pytorch.org/docs → torch.distributed.checkpoint.HuggingFaceStorageReader
    """

    def __init__(self, path: str, thread_count: int = 1) -> None:
        super().__init__(path)
        self.thread_count = thread_count

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        metadata = Metadata({}, storage_data={}, storage_meta=StorageMeta(load_id=self.load_id))
        for name in sorted(os.listdir(self.path)):
            if name.endswith(SUFFIX):
                self._add_file(name, metadata)
        return metadata

    def _add_file(self, name: str, metadata: Metadata) -> None:
        """Enter the blocks of one file into the index."""
        with safe_open(self.path / name, framework="pt") as file:
            begins = json.loads((file.metadata() or {}).get(SHARDING, "{}"))
            for key in file.keys():
                part = file.get_slice(key)
                shape, dtype = tg.Size(part.get_shape()), DTYPES[NAMES[part.get_dtype()]]
                begin = tg.Size(_checked(begins[key], shape) if key in begins else [0] * len(shape))
                end = [a + n for a, n in zip(begin, shape)]
                whole = metadata.state_dict_metadata.setdefault(
                    key, TensorStorageMetadata(TensorProperties(dtype=dtype), tg.Size(end), []))
                whole.chunks.append(ChunkStorageMetadata(begin, shape))                 # type: ignore[union-attr]
                whole.size = tg.Size(map(max, whole.size, end))                         # type: ignore[union-attr]
                metadata.storage_data[MetadataIndex(key, begin)] = _HFStorageInfo(name, shape, dtype)

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        files: dict[str, list[ReadItem]] = {}
        for item in plan.items:
            files.setdefault(self.storage_data[item.storage_index].relative_path, []).append(item)
        for name, items in files.items():
            with safe_open(self.path / name, framework="pt") as file:
                for item in items:
                    part = tuple(slice(a, a + n) for a, n in zip(item.storage_offsets, item.lengths))
                    tensor = file.get_slice(item.storage_index.fqn)[part]
                    target = planner.resolve_tensor(item).detach()
                    if target.shape != tensor.shape:
                        raise AssertionError(f"req {item.storage_index} mismatch sizes {target.shape} vs "
                                             f"{tensor.shape}")
                    target.copy_(tensor)
                    planner.commit_tensor(item, target)
        return _done(None)


def _checked(note: Any, shape: tg.Size) -> list[int]:
    """Return where a block begins, as a file notes it."""
    begin = note.get("saved_offsets") if isinstance(note, dict) else None
    if not (isinstance(begin, list) and len(begin) == len(shape) and all(type(n) is int and n >= 0 for n in begin)):
        raise RuntimeError(f"a .safetensors file notes no place for a block of {len(shape)} axes: {note!r:.80}")
    return begin
