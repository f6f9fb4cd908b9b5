"""The pickle of an object with its tensors, in PyTorch's words, and the storages that it refers to."""
from __future__ import annotations

import io
import pickle
from collections import OrderedDict
from types import FunctionType
from typing import Any

import numpy as np

from .. import api as tg
from ..api import Size, Tensor, device, dtype, layout, memory_format
from ..nn.parameter import Parameter
from ._names import BY_DTYPE, UNTYPED, StorageType, torch_name


class Global:
    """A name that PyTorch gives to something, to be written as it is."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __call__(self) -> None:
        """Callable, since pickle wants that of what it is to write as a function."""


TENSOR_V2, TENSOR_V3 = Global("torch._utils", "_rebuild_tensor_v2"), Global("torch._utils", "_rebuild_tensor_v3")
PARAMETER, PARAMETER_WITH_STATE = Global("torch._utils", "_rebuild_parameter"), Global("torch._utils", "_rebuild_parameter_with_state")
OF_TYPE = Global("torch._tensor", "_rebuild_from_type_v2")


class Reference:
    """A storage in the file: what the persistent id tells of it."""

    def __init__(self, kind: StorageType, key: str, place: str, count: int) -> None:
        self.id = "storage", Global(kind.module, kind.name), key, place, count


class Pickler(pickle._Pickler):  # type: ignore[name-defined,misc]
    """Writes tensors as references to storages, and everything of this package under PyTorch's names."""

    dispatch = dict(pickle._Pickler.dispatch)  # type: ignore[attr-defined]

    def __init__(self, file: Any, protocol: int) -> None:
        super().__init__(file, protocol)
        self.storages: list[Any] = []
        self._keys: dict[Any, tuple[str, Any, StorageType]] = {}      # the address of a block → its key, the array (kept alive), its type
        self._references: dict[Any, Reference] = {}

    def persistent_id(self, obj: Any) -> Any:
        return obj.id if type(obj) is Reference else None

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Tensor):
            return self._tensor(obj)
        if type(obj) is Size:
            return Size, (tuple(obj),)
        if type(obj) is device:
            return device, (obj.type,) if obj.index is None else (obj.type, obj.index)
        return NotImplemented

    # names

    def _write_global(self, obj: Any, module: str, name: str) -> None:
        self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
        self.memoize(obj)

    def save_global(self, obj: Any, name: Any = None) -> None:
        own = torch_name(obj)
        if own is None:
            super().save_global(obj, name)
        else:
            self._write_global(obj, *own)

    def _save_name(self, obj: Any) -> None:
        self._write_global(obj, obj.module, obj.name)

    def _save_dtype(self, obj: Any) -> None:
        self._write_global(obj, "torch", str(obj).removeprefix("torch."))

    dispatch[FunctionType] = save_global
    dispatch[type] = lambda self, obj: self.save_global(obj) if torch_name(obj) else self.save_type(obj)
    dispatch[Global] = _save_name
    dispatch[dtype] = dispatch[layout] = dispatch[memory_format] = _save_dtype

    # tensors

    def _tensor(self, tensor: Any) -> Any:
        state = {name: value for name, value in tensor.__dict__.items() if not name.startswith("_is_")}
        if isinstance(tensor, Parameter) and type(tensor) is Parameter:
            recipe = tensor.data, tensor.requires_grad, OrderedDict()
            return (PARAMETER_WITH_STATE, (*recipe, state)) if state else (PARAMETER, recipe)
        function, arguments = self._recipe(tensor)
        if type(tensor) is not Tensor or state:
            return OF_TYPE, (function, type(tensor), arguments, state)
        return function, arguments

    def _recipe(self, tensor: Any) -> tuple[Any, tuple[Any, ...]]:
        if not tensor.is_leaf:
            tensor = tensor.detach().requires_grad_(tensor.requires_grad)
        kind = BY_DTYPE.get(tensor.dtype.name, UNTYPED)
        host = type(tensor.storage).host(tensor.array)
        flat, offset, stride = _block(tensor, host)
        reference = self._reference(flat, kind, str(tensor.device))
        common = reference, offset, tuple(tensor.shape), stride, tensor.requires_grad, OrderedDict()
        return (TENSOR_V2, common) if kind is not UNTYPED else (TENSOR_V3, (*common, tensor.dtype))

    def _reference(self, flat: Any, kind: StorageType, place: str) -> Reference:
        address = flat.__array_interface__["data"][0] if flat.size else ("empty", len(self.storages))
        where = place, address
        if where not in self._keys:
            self._keys[where] = str(len(self.storages)), flat, kind
            self.storages.append(memoryview(flat.view(np.uint8)) if flat.size else b"")
        key, whole, first = self._keys[where]
        if first is not kind or whole.nbytes != flat.nbytes:
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
        if where not in self._references:
            self._references[where] = Reference(kind, key, place, flat.nbytes // (flat.itemsize if kind is not UNTYPED else 1))
        return self._references[where]


def _block(tensor: Any, host: Any) -> tuple[Any, int, tuple[int, ...]]:
    """(the block of memory that a tensor lies in, as a line; the tensor's offset and strides in it)."""
    memory = tensor.storage.memory
    if host is tensor.array and memory is not None and memory.dtype == host.dtype and (memory.flags.c_contiguous or memory.flags.f_contiguous):
        return memory.ravel("K"), tensor.storage_offset(), tensor.stride()
    if host.flags.c_contiguous or host.flags.f_contiguous:
        return host.ravel("K"), 0, tensor.stride()
    line = np.ascontiguousarray(host).reshape(-1)
    return line, 0, tg.empty(tensor.shape, dtype=tensor.dtype).stride() if line.size == 0 else tuple(np.empty(host.shape, np.int8).strides)


def pickled(obj: Any, protocol: int) -> tuple[bytes, list[Any]]:
    """(the pickle, the bytes of each storage)."""
    buffer = io.BytesIO()
    writer = Pickler(buffer, protocol)
    writer.dump(obj)
    return buffer.getvalue(), writer.storages
