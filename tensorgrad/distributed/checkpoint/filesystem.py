"""Checkpoints in a folder, in PyTorch's layout: files `__<rank>_<n>.distcp` of entries one after the other, each as
`torch.save` writes it, and `.metadata`.

A save into a folder that holds a checkpoint writes new files beside the old ones; putting the new index in the place of
the old one, in one step and last of all, makes the new checkpoint the one that is there. Then the old files go.
Whenever a save dies, one of the two checkpoints is there, whole.
"""
from __future__ import annotations

import io
import os
import re
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ... import api as tg
from ... import serialization
from ...futures import Future
from ...serialization._atomic import replacing
from ...serialization._pickler import pickled
from ._reading import StorageInfo as _StorageInfo
from ._reading import read_metadata
from .default_planner import block
from .metadata import Metadata, StorageMeta
from .planner import LoadItemType, LoadPlan, LoadPlanner, ReadItem, SavePlan, SavePlanner, WriteItem, WriteItemType
from .storage import StorageReader, StorageWriter, WriteResult

__all__ = ["FileSystemReader", "FileSystemWriter"]

INDEX, SUFFIX, VERSION = ".metadata", ".distcp", "1.0.0"
OURS = re.compile(r"__\d+_(\w+_)?\d+\.distcp")


@dataclass
class _StoragePrefix:
    """How the names of a rank's files begin."""

    prefix: str


class FileSystemWriter(StorageWriter):
    """Write checkpoints to a folder. https://pytorch.org/docs → torch.distributed.checkpoint.FileSystemWriter

    single_file_per_rank: rather than a file for each entry. sync_files: see to it that all is on the disk before the
        index is. thread_count: write so
    many files at a time. overwrite: whether there may be a checkpoint already, which stays whole until the new one is.
        All ranks see the folder.
    """

    def __init__(self, path: str | os.PathLike[str], single_file_per_rank: bool = True, sync_files: bool = True,
                 thread_count: int = 1, per_thread_copy_ahead: int = 10_000_000, cache_staged_state_dict: bool = False,
                 overwrite: bool = True) -> None:
        self.path, self.single_file_per_rank, self.sync_files = Path(path), single_file_per_rank, sync_files
        self.thread_count, self.overwrite = thread_count, overwrite
        self.save_id = str(uuid.uuid4())

    @property
    def checkpoint_id(self) -> Path:
        """The folder."""
        return self.path

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        if checkpoint_id:
            self.path = Path(checkpoint_id)
        self.save_id = str(uuid.uuid4())

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Do nothing."""

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        self.path.mkdir(parents=True, exist_ok=True)
        if not self.overwrite and (self.path / INDEX).exists():
            raise RuntimeError(f"Checkpoint already exists and {self.overwrite=}.")
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        mark = f"{self.save_id[:8]}_" if any(map(OURS.fullmatch, os.listdir(self.path))) else ""
        return [replace(plan, storage_data=_StoragePrefix(f"__{rank}_{mark}")) for rank, plan in enumerate(plans)]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        parts = _shares(plan.items, self.thread_count) if self.single_file_per_rank else [[item] for item in plan.items]
        jobs = [partial(self._write_file, f"{plan.storage_data.prefix}{n}{SUFFIX}", items, planner)
                for n, items in enumerate(parts)]
        if self.thread_count > 1 and len(jobs) > 1:
            with ThreadPoolExecutor(self.thread_count) as pool:
                written = list(pool.map(lambda job: job(), jobs))
        else:
            written = [job() for job in jobs]
        return _done([result for results in written for result in results])

    def _write_file(self, name: str, items: list[WriteItem], planner: SavePlanner) -> list[WriteResult]:
        """Write one file, what is no tensor first."""
        results = []
        with open(self.path / name, "wb") as file:
            for item in sorted(items, key=lambda item: item.type is not WriteItemType.BYTE_IO):
                begin, data = file.tell(), planner.resolve_data(item)
                if item.type is WriteItemType.BYTE_IO:
                    file.write(data.getbuffer())
                else:
                    serialization.save(_compact(data), file)
                length = file.tell() - begin
                results.append(WriteResult(item.index, length, _StorageInfo(name, begin, length)))
            if self.sync_files:
                file.flush()
                os.fsync(file.fileno())
        return results

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        metadata.version, metadata.storage_meta = VERSION, self.storage_meta()
        metadata.storage_data = {result.index: result.storage_data for of_rank in results for result in of_rank}
        with replacing(self.path / INDEX) as file:
            file.write(pickled(metadata, 2)[0])
        used = {info.relative_path for info in metadata.storage_data.values()}
        for name in os.listdir(self.path):
            if OURS.fullmatch(name) and name not in used:
                with suppress(OSError):         # a file of the checkpoint before, or of a save that died
                    os.unlink(self.path / name)

    def storage_meta(self) -> StorageMeta | None:
        return StorageMeta(checkpoint_id=str(self.path), save_id=self.save_id)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        return isinstance(checkpoint_id, Path) or "://" not in str(checkpoint_id)

    def stage(self, state_dict: dict[str, Any]) -> dict[str, Any]:
        """Return a copy of a state dict on the CPU, which training does not change."""
        from .staging import staged
        return staged(state_dict)  # type: ignore[no-any-return]


class FileSystemReader(StorageReader):
    """Read checkpoints from a folder, ours and PyTorch's, running nothing that is in them.

    https://pytorch.org/docs → torch.distributed.checkpoint.FileSystemReader

    Errors: FileNotFoundError if there is none, pickle.UnpicklingError and RuntimeError for one that is damaged or that
        asks for more than tensors, numbers,
    texts and containers.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path, self.storage_data = Path(path), {}   # type: ignore[var-annotated]
        self.load_id = str(uuid.uuid4())

    @property
    def checkpoint_id(self) -> Path:
        """The folder."""
        return self.path

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        if checkpoint_id:
            self.path = Path(checkpoint_id)
        self.storage_data, self.load_id = {}, str(uuid.uuid4())

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        metadata = read_metadata(str(self.path / INDEX))
        metadata.storage_meta = metadata.storage_meta or StorageMeta()
        metadata.storage_meta.load_id = self.load_id
        return metadata

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        self.storage_data = metadata.storage_data

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        files: dict[str, list[ReadItem]] = {}
        for item in plan.items:
            files.setdefault(self.storage_data[item.storage_index].relative_path, []).append(item)
        for name, items in files.items():
            with open(self.path / name, "rb") as file:
                for item in sorted(items, key=lambda item: self.storage_data[item.storage_index].offset):
                    self._read_item(file, item, planner)
        return _done(None)

    def _read_item(self, file: Any, item: ReadItem, planner: LoadPlanner) -> None:
        place = self.storage_data[item.storage_index]
        if item.type is LoadItemType.BYTE_IO:
            file.seek(place.offset)
            planner.load_bytes(item, io.BytesIO(file.read(place.length)))
            return
        tensor = serialization.load(Section(file, place.offset, place.length), map_location="cpu", weights_only=True)
        if not isinstance(tensor, tg.Tensor):
            raise RuntimeError(f"the checkpoint holds a {type(tensor).__name__} where its index says a tensor: "
                               f"{item.storage_index.fqn:.80}")
        for n, (have, offset, length) in enumerate(zip(tensor.shape, item.storage_offsets, item.lengths)):
            if have < offset + length:
                raise RuntimeError(f"the tensor {item.storage_index.fqn:.80} has {have} elements along axis {n} in its "
                                   f"file, its index says {length}")
        tensor = block(tensor, item.storage_offsets, item.lengths)
        target = planner.resolve_tensor(item).detach()
        if target.shape != tensor.shape:
            raise AssertionError(f"req {item.storage_index} mismatch sizes {target.shape} vs {tensor.shape}")
        target.copy_(tensor)
        planner.commit_tensor(item, target)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        return isinstance(checkpoint_id, Path) or "://" not in str(checkpoint_id)


class Section(io.RawIOBase):
    """A part of a file, as a file that can be read."""

    def __init__(self, file: Any, begin: int, length: int) -> None:
        self._file, self._begin, self._length, self._at = file, begin, length, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = max(0, offset + (0, self._at, self._length)[whence])
        return self._at

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)[:max(0, self._length - self._at)]
        self._file.seek(self._begin + self._at)
        count: int = self._file.readinto(view)
        self._at += count
        return count


def _done(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return future


def _compact(tensor: Any) -> Any:
    """Return a tensor on the CPU in memory that is no larger than it: a file would hold all of it."""
    tensor = tensor.detach().cpu().contiguous()
    return tensor if tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size() else tensor.clone()


def _size(item: WriteItem) -> int:
    return item.tensor_storage_size() or 1


def _shares(items: list[WriteItem], count: int) -> list[list[WriteItem]]:
    """Share the items out to so many lists of about as many bytes each, the largest first."""
    shares: list[list[WriteItem]] = [[] for _ in range(min(count, len(items)) or 1)]
    loads = [0] * len(shares)
    for item in sorted(items, key=_size, reverse=True):
        least = loads.index(min(loads))
        shares[least].append(item)
        loads[least] += _size(item)
    return shares
