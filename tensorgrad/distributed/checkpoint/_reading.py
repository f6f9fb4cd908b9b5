"""The safe reader of `.metadata`: PyTorch writes it as a pickle, and this runs nothing of it.

Only the classes of `metadata` and `filesystem` are made, their fields are checked one by one, and what the index
promises is compared with the files: a block may not be larger than what a file holds of it, and no path leads out of
    the folder.
"""
from __future__ import annotations

import io
import os
import pickle
from dataclasses import dataclass
from math import prod
from typing import Any

from ... import api as tg
from ...dtype import dtype as Dtype
from ...messages.escaping import escape_error, escaped
from ...serialization._allowed import Name, Refused
from ...serialization._rebuild import size_of
from ...serialization._unpickler import RestrictedUnpickler
from .metadata import (
    FORMATS,
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)

__all__ = ["StorageInfo", "read_metadata"]

LONGEST = 1 << 30       # bytes of a `.metadata`
DEEPEST = 200           # dicts and lists in each other
NONE = type(None)


@dataclass
class StorageInfo:
    """Where one entry is: in which file of the folder, from which byte on, and how long."""

    relative_path: str
    offset: int
    length: int
    transform_descriptors: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if value is not None}


StorageInfo.__module__, StorageInfo.__qualname__ = f"{__package__}.filesystem", "_StorageInfo"      # as files name it

FIELDS: dict[type, dict[str, tuple[type, ...]]] = {
    ChunkStorageMetadata: {"offsets": (tg.Size,), "sizes": (tg.Size,)}, BytesStorageMetadata: {},
    TensorStorageMetadata: {"properties": (TensorProperties,), "size": (tg.Size,), "chunks": (list,)},
    StorageMeta: {"checkpoint_id": (str, NONE), "save_id": (str, NONE), "load_id": (str, NONE), "modules": (list,)},
    Metadata: {"state_dict_metadata": (dict,), "planner_data": (dict, NONE), "storage_data": (dict,),
               "storage_meta": (StorageMeta, NONE),
               "version": (str, NONE)},
    MetadataIndex: {"fqn": (str,), "offset": (tg.Size, NONE), "index": (int, NONE)},
    StorageInfo: {"relative_path": (str,), "offset": (int,), "length": (int,),
                  "transform_descriptors": (list, tuple, NONE)},
}


def _path(*parts: Any) -> str:
    if not all(type(part) is str for part in parts):
        raise Refused("a path is made of texts")
    return os.path.join(*parts) if parts else ""


def _encoding(code: Any) -> Any:
    found = [known for known in FORMATS if type(code) is int and known.value == code]
    if not found:
        raise Refused("there is no such memory format")
    return found[0]


def _properties(state: Any) -> tuple[Any, ...]:
    """Return the state of TensorProperties, checked."""
    if type(state) is not tuple or len(state) != 5 or type(state[0]) is not Dtype or state[3] not in list(FORMATS):
        raise Refused("the properties of a tensor are malformed")
    return state


def _fields(kind: type, state: Any) -> dict[str, Any]:
    """Return the state of an object of one of the classes, checked."""
    allowed = FIELDS[kind]
    if type(state) is not dict or not state.keys() <= allowed.keys():
        raise Refused(f"the fields of {kind.__name__} are malformed")
    for name, value in state.items():
        if type(value) not in allowed[name]:
            raise Refused(f"the field {name} of {kind.__name__} is malformed")
    return state


METADATA, FILESYSTEM = "torch.distributed.checkpoint.metadata", "torch.distributed.checkpoint.filesystem"
NAMES: dict[tuple[str, str], Any] = {(METADATA, kind.__name__): kind for kind in FIELDS if kind is not StorageInfo} | {
    (METADATA, "TensorProperties"): TensorProperties, (FILESYSTEM, "_StorageInfo"): StorageInfo,
    (METADATA, "_MEM_FORMAT_ENCODING"): Name("_MEM_FORMAT_ENCODING", _encoding),
} | {(module, kind): Name(kind, _path) for module in ("pathlib", "pathlib._local")
     for kind in ("Path", "PosixPath", "PurePath", "PurePosixPath", "PureWindowsPath", "WindowsPath")}


class MetadataUnpickler(RestrictedUnpickler):
    """Reads the pickle of a `Metadata`."""

    def _new(self) -> None:
        arguments, kind = self._stack.pop(), self._stack.pop()
        if not isinstance(kind, type) or kind not in FIELDS and kind is not TensorProperties or arguments != ():
            raise Refused("an object is made of a class that no index has")
        self._push(object.__new__(kind))

    def _build(self) -> None:
        state = self._stack.pop()
        target = self._stack[-1]
        if type(target) is TensorProperties:
            target.__setstate__(_properties(state))
        elif type(target) in FIELDS:
            vars(target).update(_fields(type(target), state))
        else:
            raise Refused("an object gets a state whose class no index has")

    _opcodes = {**RestrictedUnpickler._opcodes, b"\x81": _new, b"b": _build}


def read_metadata(path: str) -> Metadata:
    """Return the index of the checkpoint in the folder of this file, checked. pickle.UnpicklingError says what is wrong
    with it.
    """
    if os.path.getsize(path) > LONGEST:
        raise pickle.UnpicklingError(f"the index of a checkpoint is longer than {LONGEST} bytes")
    with open(path, "rb") as file:
        data = file.read()
    try:
        metadata = MetadataUnpickler(io.BytesIO(data), _no_storages, len(data), NAMES).load()
        if type(metadata) is not Metadata:
            raise Refused("the file holds no index of a checkpoint")
        _fill_in(metadata)
        _check(metadata, os.path.dirname(path))
    except AttributeError as error:         # an object without its fields is used as a key
        raise pickle.UnpicklingError(f"the index of a checkpoint is malformed: {escaped(error, 200)}") from None
    except Exception as error:
        escape_error(error)
        raise
    return metadata


def _no_storages(pid: Any) -> Any:
    raise Refused("the index of a checkpoint refers to no storages")


def _fill_in(metadata: Metadata) -> None:
    """Give what older versions did not write its default; refuse what has to be there."""
    for name in ("state_dict_metadata", "storage_data"):
        if name not in vars(metadata):
            raise Refused(f"the index has no {name}")
    for name in ("planner_data", "storage_meta", "version"):
        vars(metadata).setdefault(name, None)


def _check(metadata: Metadata, folder: str) -> None:
    """Compare the parts of an index with each other, and with the files."""
    lengths: dict[str, int] = {}
    for index, info in metadata.storage_data.items():
        if (type(index) is not MetadataIndex or type(info) is not StorageInfo
                or not {"relative_path", "offset", "length"} <= vars(info).keys()):
            raise Refused("an entry of the index is malformed")
        _check_place(info, folder, lengths)
    for key, entry in metadata.state_dict_metadata.items():
        if type(key) is not str or type(entry) not in (TensorStorageMetadata, BytesStorageMetadata):
            raise Refused("an entry of the index is malformed")
        if type(entry) is TensorStorageMetadata:
            _check_tensor(key, entry, metadata.storage_data)
        elif MetadataIndex(key) not in metadata.storage_data:
            raise Refused(f"no file holds the entry {key!r:.80}")
    _check_paths(metadata.planner_data or {})


def _check_paths(paths: dict[Any, Any]) -> None:
    """Refuse paths that are not made of texts and places in lists, and lists much longer than there are entries."""
    tree: dict[Any, Any] = {}
    longest: dict[int, int] = {}        # of each list, the last place
    for key, path in paths.items():
        if type(key) is not str or type(path) is not tuple or not 0 < len(path) <= DEEPEST:
            raise Refused("the path of an entry is malformed")
        node = tree
        for part in path:
            if type(part) is int and part >= 0:
                longest[id(node)] = max(part, longest.get(id(node), 0))
            elif type(part) is not str:
                raise Refused("the path of an entry is malformed")
            node = node.setdefault(part, {})
    if sum(longest.values()) > 10 * len(paths) + 100_000:
        raise Refused("the lists of the state dict are longer than there are entries")


def _check_place(info: StorageInfo, folder: str, lengths: dict[str, int]) -> None:
    name = info.relative_path
    if not name or name in (".", "..") or any(c in name for c in "/\\:\0"):
        raise Refused(f"the file name {name!r:.80} is not allowed")
    if name not in lengths:
        path = os.path.join(folder, name)
        lengths[name] = os.path.getsize(path) if os.path.isfile(path) else -1
    if lengths[name] < 0:
        raise FileNotFoundError(f"the checkpoint in {folder} lacks its file {name:.80}")
    if not 0 <= info.offset <= info.offset + info.length <= lengths[name]:
        raise Refused(f"the file {name!r:.80} is cut off: it has {lengths[name]} bytes")
    if info.transform_descriptors:
        raise Refused("the files are compressed or encrypted by an extension, which is not there")


def _check_tensor(key: str, entry: TensorStorageMetadata, places: dict[Any, Any]) -> None:
    """Refuse blocks that are not within the tensor and in a file, or that are more or fewer elements than it has."""
    size = _size(getattr(entry, "size", None))
    element = getattr(getattr(entry, "properties", None), "dtype", None)
    if type(element) is not Dtype:
        raise Refused(f"the tensor {key!r:.80} has no dtype")
    covered, seen = 0, set()
    for chunk in getattr(entry, "chunks", ()):
        if type(chunk) is not ChunkStorageMetadata:
            raise Refused(f"the tensor {key!r:.80} is malformed")
        offsets, sizes = _size(getattr(chunk, "offsets", None)), _size(getattr(chunk, "sizes", None))
        place = places.get(MetadataIndex(key, offsets))
        if (offsets in seen or place is None or len(offsets) != len(size) or len(sizes) != len(size)
                or any(o + n > s for o, n, s in zip(offsets, sizes, size))):
            raise Refused(f"a block of the tensor {key!r:.80} is not in a file, or not in the tensor")
        if prod(sizes) * element.itemsize > place.length:
            raise Refused(f"a block of the tensor {key!r:.80} is larger than what the file holds of it")
        seen.add(offsets)
        covered += prod(sizes)
    if covered != prod(size):
        raise Refused(f"the blocks of the tensor {key!r:.80} hold {covered} of its {prod(size)} elements")


def _size(value: Any) -> Any:
    if type(value) is not tg.Size or any(n < 0 for n in value):
        raise Refused("the shape of a tensor is malformed")
    return size_of(tuple(value))
