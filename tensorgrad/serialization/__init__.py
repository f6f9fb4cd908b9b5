"""Files of tensors: `save` and `load`, in PyTorch's formats. https://pytorch.org/docs/stable/notes/serialization.html

`load` runs no code from the file. `weights_only=False` runs any code that the file names, with the rights of the
program: use it for files that you trust like a program that you run. Files are written atomically.

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
import struct
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from ..api.storage_objects import ELEMENTS
from ..device import device as Device
from ..messages.escaping import escape_error, escaped
from ..storage.out_of_memory import check_error
from . import _legacy, _tar
from ._allowed import Passed, Refused, Unlisted, add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals
from ._archive import Archive, damaged, write_archive
from ._atomic import replacing
from ._kinds import told
from ._map_location import Location, default_restore_location, location_tag, register_package, validate_cuda_device
from ._options import (
    LoadEndianness,
    decoding,
    get_crc32_options,
    get_default_load_endianness,
    get_default_mmap_options,
    options,
    set_crc32_options,
    set_default_load_endianness,
    set_default_mmap_options,
    skip_data,
)
from ._options import own as _serialization_tls
from ._pickler import pickled
from ._rebuild import _layout as _get_layout
from ._rebuild import module_of
from ._storages import Records
from ._unpickler import RestrictedUnpickler, unsafe_names
from ._zip_files import _is_zipfile, _open_file_like, _open_zipfile_reader, _open_zipfile_writer

__all__ = ["LoadEndianness", "SourceChangeWarning", "StorageType", "add_safe_globals",
           "check_module_version_greater_or_equal", "clear_safe_globals",
           "default_restore_location", "get_crc32_options", "get_default_load_endianness", "get_default_mmap_options",
           "get_safe_globals", "get_unsafe_globals_in_checkpoint", "load", "location_tag", "normalize_storage_type",
           "register_package", "safe_globals", "save", "set_crc32_options", "set_default_load_endianness",
           "set_default_mmap_options",
           "skip_data",
           "validate_cuda_device", "_is_zipfile", "_open_file_like", "_open_zipfile_reader", "_open_zipfile_writer"]

MAP_LOCATION = Callable[[Any, str], Any] | Device | str | dict[str, str] | None
DEFAULT_PROTOCOL = 2
CHUNK = 1 << 24
UNSAFE = ("In PyTorch 2.6, we changed the default value of the `weights_only` argument in `torch.load` from `False` to "
          "`True`. Re-running `torch.load` with `weights_only` set to `False` will likely succeed, but it can result "
          "in arbitrary code execution. Do it only if you got the file from a trusted source.")
UNLISTED = ("Weights only load failed. This file can still be loaded, to do so you have two options, \033[1mdo those "
            f"steps only if you trust the source of the checkpoint\033[0m. \n\t(1) {UNSAFE}\n\t(2) Alternatively, to "
            "load with `weights_only=True` please check the recommended steps in the following error "
            "message.\n\tWeightsUnpickler error: {0}")
REFUSED = f"Weights only load failed. {UNSAFE}\nWeightsUnpickler error: {{0}}"


def save(obj: Any, f: Any, pickle_module: Any = pickle, pickle_protocol: int = DEFAULT_PROTOCOL,
         _use_new_zipfile_serialization: bool = True,
         _disable_byteorder_record: bool = False) -> None:
    """Write an object with its tensors to a file, which PyTorch reads as well. https://pytorch.org/docs → torch.save

    Tensors that share memory continue to share it. A path is replaced atomically: an existing file remains intact until
    the new one is complete. An open file is flushed.
    """
    how = pickle_protocol, _use_new_zipfile_serialization, pickle_module, not _disable_byteorder_record
    try:
        _save(obj, f, how)
    except (MemoryError, ValueError) as error:      # ValueError: closing an archive after memory ran out
        check_error(error if isinstance(error, MemoryError) else error.__context__, "save")
        raise


def _save(obj: Any, f: Any, how: Any) -> None:
    if isinstance(f, (str, os.PathLike)):
        folder = os.path.dirname(os.fspath(f))
        if folder and not os.path.isdir(folder):
            raise RuntimeError(f"Parent directory {folder} does not exist.")
        if os.fsdecode(f).endswith(".safetensors"):
            warnings.warn("torch.save writes PyTorch's format, whatever the file is called, and readers of "
                          ".safetensors refuse it: safetensors.torch.save_file, or "
                          "tensorgrad.utils.safetensors.save_file, writes that format", UserWarning,
                          stacklevel=4)
        with replacing(f) as file:
            _write(obj, file, _top_of(os.fsdecode(f)), *how)
    elif hasattr(f, "write"):
        buffer = io.BytesIO()
        _write(obj, buffer, "archive", *how)
        _write_all(f, buffer.getbuffer())
        if hasattr(f, "flush"):         # so that others who read the file by its name find all of it
            f.flush()
    else:
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")


def _top_of(path: str) -> str:
    """Return the name of the folder in the archive: the file's name, if it is valid on all systems."""
    stem = os.path.splitext(os.path.basename(path))[0]
    return stem if stem.isascii() and stem.isprintable() and "\\" not in stem and stem.strip(".") else "archive"


def _write(obj: Any, file: Any, name: str, protocol: int, archive: bool, module: Any, order: bool) -> None:
    data, storages, sizes = pickled(obj, protocol, not archive, module)
    if archive:
        write_archive(file, name, data, storages, order)
    else:
        _legacy.write(file, data, storages, sizes, protocol)


def _write_all(file: Any, data: memoryview) -> None:
    """Write to a file that may take less than it is given, and need not be able to seek."""
    done = 0
    while done < len(data):
        taken = file.write(bytes(data[done:done + CHUNK]))
        done += taken if isinstance(taken, int) else min(CHUNK, len(data) - done)


def load(f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: bool | None = None,
         mmap: bool | None = None,
         **pickle_load_args: Any) -> Any:
    """Read a file that `save`, here or in PyTorch, wrote. https://pytorch.org/docs → torch.load

    f: a path, or a seekable file. map_location: the device of the tensors: a device, a dict from old to new ones, or a
    function of a storage and its old location. weights_only: read tensors and plain containers only (default), or call
    every class and function that the file names, with the rights of this program (False). mmap: map the file, so that
    tensors are read when they are used. A path that ends in .safetensors is read as such. Errors:
    pickle.UnpicklingError names what was refused; RuntimeError if the file is damaged.
    """
    unpickle = _unpickle(weights_only, pickle_module, pickle_load_args)
    location = Location(map_location)
    try:
        with _explaining(safe=unpickle is None), decoding(pickle_load_args.get("encoding", "utf-8")):
            return _load(f, location, unpickle, options.mmap if mmap is None else mmap)
    except (pickle.UnpicklingError, RuntimeError, ValueError) as error:
        if unpickle is None and (kind := told(f)) and error.args and isinstance(error.args[0], str):
            error.args = (f"{error.args[0]}\n{kind}", *error.args[1:])
        raise


@contextmanager
def _explaining(safe: bool) -> Iterator[None]:
    """Translate errors of reading a file, and escape text from the file in them; errors of the program's own classes
    and functions pass unchanged. safe: no code in the file is run."""
    try:
        yield
    except Passed as passed:
        raise passed.error from None
    except Refused as error:
        advice = "{0}" if not safe else UNLISTED if isinstance(error, Unlisted) else REFUSED
        raise pickle.UnpicklingError(advice.format(escaped(error))) from None
    except Exception as error:
        check_error(error, "load")
        if safe and isinstance(error, pickle.UnpicklingError):
            raise pickle.UnpicklingError(REFUSED.format(escaped(error))) from None
        if safe and isinstance(error, (struct.error, OverflowError)):
            raise damaged(escaped(error)) from None
        escape_error(error, keep="" if safe else "\n\t")
        raise


def _load(f: Any, location: Location, unpickle: Any, mmap: bool) -> Any:
    if isinstance(f, (str, os.PathLike)):
        if os.fsdecode(f).endswith(".safetensors"):
            return _safetensors(f, location.given)
        with open(f, "rb") as file:
            return _read(file, f, location, unpickle, mmap)
    try:
        f.seek(f.tell())
    except (io.UnsupportedOperation, AttributeError) as error:
        raise type(error)(f"{error}. You can only torch.load from a file that is seekable. Please pre-load the data "
                          "into a buffer like io.BytesIO and try to load from it instead.") from None
    if mmap:
        raise ValueError("f must be a file path in order to use the mmap argument")
    return _read(f, None, location, unpickle, mmap)


def _unpickle(weights_only: bool | None, pickle_module: Any, arguments: dict[str, Any]) -> Any:
    """Return the function that reads a pickle and runs its code; None for the restricted reader."""
    only, anything = (os.environ.get(f"TORCH_FORCE_{name}WEIGHTS_ONLY_LOAD", "0").lower() in ("1", "y", "yes", "true")
                      for name in ("", "NO_"))
    if only and anything:
        raise RuntimeError("Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` should "
                           "be set, but both were set.")
    if only:
        weights_only = True
    elif weights_only is None:
        weights_only = pickle_module is None and not anything
        if anything:
            warnings.warn("Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected, since the`weights_only` "
                          "argument was not explicitly passed to `torch.load`, forcing weights_only=False.",
                          UserWarning, stacklevel=3)
    if not weights_only:
        return partial(unpickled, module=pickle_module or pickle, arguments={"encoding": "utf-8"} | arguments)
    if pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if arguments:
        warnings.warn("pickle_load_args only works if `weights_only=False`.", stacklevel=3)
        for name in arguments.keys() - {"encoding"}:
            raise TypeError(f"Unpickler.__init__() got an unexpected keyword argument '{name}'")
    return None


def _safetensors(path: Any, map_location: Any) -> Any:
    from ..utils.safetensors import load_file
    if isinstance(map_location, dict) or callable(map_location) and not isinstance(map_location, Device):
        raise RuntimeError(f"Loading safetensors file with {'dict' if isinstance(map_location, dict) else 'callable'} "
                           "map_location is not supported. Use a device string or torch.device instead.")
    return load_file(path, "cpu" if map_location is None else map_location)


def _read(file: Any, path: Any, location: Location, unpickle: Any, mmap: bool) -> Any:
    start = file.tell()
    head = file.read(_tar.BLOCK)
    file.seek(start)
    if head[:4] != b"PK\x03\x04":
        if mmap:
            raise RuntimeError(f"mmap can only be used with files saved with `torch.save({path}, "
                               "_use_new_zipfile_serialization=True), please torch.save your checkpoint with this "
                               "option in order to use mmap.")
        if not head:
            raise EOFError("Ran out of input")
        return (_tar if _tar.is_tar(head) else _legacy).read(file, location, unpickle)
    archive = Archive(file, path if mmap else None)
    if archive.has("constants.pkl"):
        raise RuntimeError("Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``."
                           if unpickle is None else
                           "the file is a TorchScript archive, which only PyTorch runs")
    records = Records(archive, location)
    data = archive.read("data.pkl")
    if unpickle is None:
        return RestrictedUnpickler(io.BytesIO(data), records.of_persistent_id, len(data)).load()
    return unpickle(io.BytesIO(data), records.of_persistent_id)


def unpickled(file: Any, persistent_load: Any, module: Any, arguments: dict[str, Any]) -> Any:
    """Read the object with the ordinary unpickler; names of PyTorch's modules are mapped to this package's."""
    class Unpickler(module.Unpickler):  # type: ignore[misc,name-defined]
        def find_class(self, module_name: str, name: str) -> Any:
            own = module_of(module_name, name)
            return own if own is not None else super().find_class(module_name, name)
    reader = Unpickler(file, **arguments)
    reader.persistent_load = persistent_load
    return reader.load()


# ── smaller names ─────────────────────────────────────────────────────────────────────────────────────────────────────


class SourceChangeWarning(Warning):
    """PyTorch's warning that a class's source has changed since a file was written; never issued here."""


class StorageType:
    """A storage class by its name in files. https://pytorch.org/docs → torch.serialization.StorageType"""

    def __init__(self, name: str) -> None:
        from ..api import DTYPES
        if name not in ELEMENTS:
            raise KeyError(f'pickle storage type "{name}" is not recognized')
        self.dtype = DTYPES[ELEMENTS[name]]

    def __str__(self) -> str:
        return f"StorageType(dtype={self.dtype})"


def storage_of_bytes(data: bytes) -> Any:
    """Return the storage in the bytes of a file: what a pickle of PyTorch holds for a tensor's memory."""
    return load(io.BytesIO(data), weights_only=False)


def normalize_storage_type(storage_type: Any) -> Any:
    """Return the storage class of that name in the root package.
    https://pytorch.org/docs → torch.serialization.normalize_storage_type
    """
    from ..api import storage_objects
    return getattr(storage_objects, storage_type.__name__)


def check_module_version_greater_or_equal(module: Any, req_version_tuple: tuple[int, ...],
                                          error_if_malformed: bool = True) -> bool:
    """Return True if a module's version is at least this one.
    https://pytorch.org/docs → torch.serialization.check_module_version_greater_or_equal
    """
    try:
        return tuple(type(required)(field) for required, field in zip(req_version_tuple,
                                                                      module.__version__.split(
                                                                          "."))) >= req_version_tuple
    except Exception as error:
        message = (f"'{module.__name__}' module version string is malformed '{module.__version__}' and cannot be "
                   f"compared with tuple {req_version_tuple}")
        if error_if_malformed:
            raise RuntimeError(message) from error
        warnings.warn(message + ", but continuing assuming that requirement is met", stacklevel=2)
        return True


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """Return the names in a file that `load` refuses.
    https://pytorch.org/docs → torch.serialization.get_unsafe_globals_in_checkpoint
    """
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            return get_unsafe_globals_in_checkpoint(file)
    start = f.tell()
    head = f.read(4)
    f.seek(start)
    if head != b"PK\x03\x04":
        raise ValueError("Expected input to be a checkpoint returned by torch.save")
    with _explaining(safe=True):
        return unsafe_names(bytes(Archive(f).read("data.pkl")))
