"""Files of tensors: `save` and `load`, in PyTorch's formats. https://pytorch.org/docs/stable/notes/serialization.html

`load` runs no code from the file, unless `weights_only=False` says that the file is trusted.

>>> import tempfile, os
>>> import tensorgrad as torch
>>> path = os.path.join(tempfile.mkdtemp(), "model.pt")
>>> torch.save(torch.nn.Linear(2, 1).state_dict(), path)
>>> list(torch.load(path))
['weight', 'bias']
"""
from __future__ import annotations

import io
import os
import pickle
from collections.abc import Callable
from typing import Any

from . import _legacy
from ._archive import Archive, write_archive
from ._atomic import replacing
from ._names import module_of
from ._pickler import pickled
from ._storages import Location, Records
from ._unpickler import (
    Refused,
    RestrictedUnpickler,
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    safe_globals,
)

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "safe_globals", "save"]

DEFAULT_PROTOCOL = 2
ADVICE = ("Weights only load failed: a file is read without running code from it, and this one asks for more than tensors and plain containers. "
          "`weights_only=False` loads it, and runs whatever code it names: do it only if you trust where the file comes from.\n\n{0}\n\n"
          "Classes of your own can be allowed one by one with `torch.serialization.add_safe_globals`.")


def save(obj: Any, f: Any, pickle_module: Any = pickle, pickle_protocol: int = DEFAULT_PROTOCOL, _use_new_zipfile_serialization: bool = True,
         _disable_byteorder_record: bool = False) -> None:
    """Write an object with its tensors to a file, which PyTorch reads as well. https://pytorch.org/docs → torch.save

    Tensors that share memory go on sharing it. A file given by its path is written beside it and then put in its place: what was there before stays
    whole until the new one is.
    """
    if isinstance(f, (str, os.PathLike)):
        folder = os.path.dirname(os.fspath(f))
        if folder and not os.path.isdir(folder):
            raise RuntimeError(f"Parent directory {folder} does not exist.")
        with replacing(f) as file:
            _write(obj, file, os.path.splitext(os.path.basename(os.fspath(f)))[0], pickle_protocol)
    elif hasattr(f, "write"):
        buffer = io.BytesIO()
        _write(obj, buffer, "archive", pickle_protocol)
        f.write(buffer.getbuffer())
    else:
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")


def _write(obj: Any, file: Any, name: str, protocol: int) -> None:
    data, storages = pickled(obj, protocol)
    write_archive(file, name, data, storages)


def load(f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: bool | None = None, mmap: bool | None = None,
         **pickle_load_args: Any) -> Any:
    """What `save`, here or in PyTorch, wrote to a file. https://pytorch.org/docs → torch.load

    f: a path, or a file that can seek. map_location: the device that tensors go to: a device, a dict from old to new ones, or a function of a storage
    and its old place. weights_only: read tensors and plain containers only (default), or run what the file says (False). mmap: leave tensors in the
    file until they are used. Errors: pickle.UnpicklingError names what was refused; RuntimeError if the file is damaged.
    """
    if weights_only is None:
        weights_only = pickle_module is None
    elif weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    location = Location(map_location)
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            return _read(file, f, location, weights_only, pickle_module, mmap)
    if not all(hasattr(f, method) for method in ("read", "seek", "tell")):
        raise AttributeError(f"'{type(f).__name__}' object has no attribute 'seek'. You can only torch.load from a file that is seekable. Please pre-load "
                             "the data into a buffer like io.BytesIO and try to load from it instead.")
    if mmap:
        raise ValueError("f must be a file path in order to use the mmap argument")
    return _read(f, None, location, weights_only, pickle_module, mmap)


def _read(file: Any, path: Any, location: Location, weights_only: bool, pickle_module: Any, mmap: bool | None) -> Any:
    start = file.tell()
    head = file.read(4)
    file.seek(start)
    if head != b"PK\x03\x04":
        if mmap:
            raise RuntimeError(f"mmap can only be used with files saved with `torch.save({path}, _use_new_zipfile_serialization=True), please torch.save your "
                               "checkpoint with this option in order to use mmap.")
        if not head:
            raise EOFError("Ran out of input")
        return _explained(lambda: _legacy.read(file, location, None if weights_only else pickle_module or pickle))
    if start:       # the archive's offsets count from its own beginning
        file = io.BytesIO(file.read())
    archive = Archive(file, path if mmap else None)
    records = Records(archive, location)
    data = archive.read("data.pkl")
    if weights_only:
        return _explained(lambda: RestrictedUnpickler(io.BytesIO(data), records.of_persistent_id).load())
    return unpickled(io.BytesIO(data), records.of_persistent_id, pickle_module or pickle)


def _explained(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except Refused as error:
        raise pickle.UnpicklingError(ADVICE.format(error)) from None


def unpickled(file: Any, persistent_load: Any, module: Any) -> Any:
    """The object, by the ordinary unpickler: the names of PyTorch's modules stand for those of this package."""
    class Unpickler(module.Unpickler):  # type: ignore[misc,name-defined]
        def find_class(self, module_name: str, name: str) -> Any:
            own = module_of(module_name, name)
            return own if own is not None else super().find_class(module_name, name)
    reader = Unpickler(file)
    reader.persistent_load = persistent_load
    return reader.load()
