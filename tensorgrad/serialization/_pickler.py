"""Pickle an object with its tensors under PyTorch's names, and collect the storages that the pickle refers to."""
from __future__ import annotations

import io
import pickle
from collections import OrderedDict
from itertools import count
from types import FunctionType
from typing import Any

import numpy as np

from .._tensor.states import state_of
from ..api import DTYPES, Size, Tensor, device, dtype, layout, memory_format
from ..api.storage_objects import TypedStorage, UntypedStorage, line_of
from ..api.tensor_types import tensortype
from ..core.class_hooks import is_own
from ..core.dispatch import shared
from ..core.inplace import address
from ..dtype import sparse_bsr, sparse_coo, sparse_csr, strided
from ..generator import Generator
from ..messages.warn_once import warn
from ..nn.parameter import Parameter, is_lazy
from ..utils.hooks import warn_if_has_hooks
from ._map_location import location_tag
from ._names import BY_DTYPE, UNTYPED, StorageType, torch_name
from ._options import own
from ._rebuild import OURS


class Global:
    """A global name of PyTorch, to be written unchanged."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __call__(self) -> None:
        """Do nothing; pickle requires functions to be callable."""


TENSOR_V2, TENSOR_V3 = Global("torch._utils", "_rebuild_tensor_v2"), Global("torch._utils", "_rebuild_tensor_v3")
PARAMETER, PARAMETER_WITH_STATE = (Global("torch._utils", "_rebuild_parameter"),
                                   Global("torch._utils", "_rebuild_parameter_with_state"))
OF_TYPE, META = (Global("torch._tensor", "_rebuild_from_type_v2"),
                 Global("torch._utils", "_rebuild_meta_tensor_no_storage"))
WRAPPER = Global("torch._utils", "_rebuild_wrapper_subclass")
SPARSE = Global("torch._utils", "_rebuild_sparse_tensor")
LAYOUT = Global("torch.serialization", "_get_layout")


BY_SIZE = {name: DTYPES[name].itemsize for name in BY_DTYPE}


class Reference:
    """A storage in the file: the parts of its persistent id."""

    def __init__(self, *parts: Any) -> None:
        self.id = "storage", *parts


class Pickler(pickle._Pickler):  # type: ignore[name-defined,misc]
    """Writes tensors as references to storages, and everything of this package under PyTorch's names."""

    dispatch = dict(pickle._Pickler.dispatch)  # type: ignore[attr-defined]

    def __init__(self, file: Any, protocol: int, legacy: bool = False) -> None:
        super().__init__(file, protocol)
        self._legacy = legacy
        self.storages: list[Any] = []       # bytes of each storage
        self.sizes: list[int] = []          # sizes of their elements
        self._references: dict[Any, Reference] = {}                 # address of a block → its reference
        # address of a block → its type, and the array, kept alive
        self._kinds: dict[Any, tuple[StorageType, Any]] = {}
        self._empty = count(1)
        self._globals: dict[StorageType, Global] = {}

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, (UntypedStorage, TypedStorage)):
            untyped, kind = ((obj, UNTYPED) if isinstance(obj, UntypedStorage)
                             else (obj.untyped(), BY_DTYPE.get(obj.dtype.name, UNTYPED)))
            return self._reference(untyped._line, untyped._host(), kind, location_tag(untyped)).id
        return obj.id if type(obj) is Reference else None

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Tensor):
            if obj.is_nested:       # its class says how it is pickled
                if own.skip_data:
                    raise RuntimeError("Cannot serialize nested tensor under skip_data context manager, file an issue "
                                       "if you need this feature")
                return NotImplemented
            return (type(obj), (obj.requires_grad,)) if is_lazy(obj) else self._tensor(obj)
        if type(obj) is Size:
            return Size, (tuple(obj),)
        if type(obj) is device:
            return device, (obj.type,) if obj.index is None else (obj.type, obj.index)
        if type(obj) is layout:
            return LAYOUT, (str(obj),)
        if isinstance(obj, tensortype):
            return obj.__name__
        if type(obj) is Generator:
            return Generator, (obj.device,), (obj.initial_seed(), None, obj.get_state())
        return NotImplemented

    # names

    def _write_global(self, obj: Any, module: str, name: str) -> None:
        self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
        self.memoize(obj)

    def save_global(self, obj: Any, name: Any = None) -> None:
        own = torch_name(obj)
        if own is not None:
            self._write_global(obj, *own)
            return
        try:
            super().save_global(obj, name)
        except pickle.PicklingError:
            pickle.dumps(obj)       # raises pickle's own error
            raise

    def _save_name(self, obj: Any) -> None:
        self._write_global(obj, obj.module, obj.name)

    def _save_dtype(self, obj: Any) -> None:
        self._write_global(obj, "torch", str(obj).removeprefix("torch."))

    dispatch[FunctionType] = save_global
    dispatch[type] = lambda self, obj: self.save_global(obj) if torch_name(obj) else self.save_type(obj)
    own = {Global: _save_name, dtype: _save_dtype, memory_format: _save_dtype}
    dispatch.update(own)

    # tensors

    def _tensor(self, tensor: Any) -> Any:
        state = state_of(tensor, OURS)
        if isinstance(tensor, Parameter) and type(tensor) is Parameter:
            recipe = tensor.data, tensor.requires_grad, OrderedDict()
            return (PARAMETER_WITH_STATE, (*recipe, state)) if state else (PARAMETER, recipe)
        warn_if_has_hooks(tensor)
        function, arguments = self._recipe(tensor)
        if type(tensor) is not Tensor or state:
            return OF_TYPE, (function, type(tensor), arguments, state)
        return function, arguments

    def _recipe(self, tensor: Any) -> tuple[Any, tuple[Any, ...]]:
        if is_own(tensor) and tensor._storage.hollow:
            return WRAPPER, (type(tensor), tensor.dtype, tuple(tensor.shape), tensor.stride(), 0, strided,
                             tensor.device, tensor.requires_grad)
        if not tensor.is_leaf:
            tensor = tensor.detach().requires_grad_(tensor.requires_grad)
        if tensor.is_meta:
            if own.skip_data:
                warn("Serializing tensors on the meta device under skip_data context manager is a no-op")
            return META, (tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.requires_grad)
        if tensor._storage.dense is not None:
            return SPARSE, (tensor.layout, _parts(tensor.as_subclass(Tensor)))
        kind = BY_DTYPE.get(tensor.dtype.name, UNTYPED)
        if own.materialize_fake_tensors and type(tensor._storage).label == "FakeTensor":
            memory, offset, stride = shared(tensor).memory, tensor.storage_offset(), tensor.stride()
            reference = self._stored((id(memory), "fake"), memory, kind, location_tag(tensor), memory.nbytes,
                                     lambda: np.zeros(memory.nbytes, np.uint8))
        else:
            block, offset, stride = _block(tensor)
            line = line_of(block)
            reference = self._reference(line, type(tensor._storage).host(line), kind, location_tag(tensor))
        common = reference, offset, tuple(tensor.shape), stride, tensor.requires_grad, OrderedDict()
        return (TENSOR_V2, common) if kind is not UNTYPED else (TENSOR_V3, (*common, tensor.dtype))

    def _reference(self, line: Any, host: Any, kind: StorageType, place: str) -> Reference:
        """Return the reference to a block of bytes: `line` is the block on its device, `host` its copy in main
        memory.
        """
        start = (place, address(line)) if line.size else ("empty", next(self._empty))
        return self._stored(start, line, kind, place, int(line.size),
                            lambda: np.zeros_like(host) if own.skip_data else host)

    def _stored(self, start: Any, memory: Any, kind: StorageType, place: str, nbytes: int, values: Any) -> Reference:
        """Return the reference to the block at `start`, and keep its values for the file when it is the first one."""
        if self._kinds.setdefault(start, (kind, memory))[0] is not kind:
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
        where = *start, nbytes
        if where not in self._references:
            itemsize = 1 if kind.element is None else BY_SIZE[kind.element]
            if kind not in self._globals:
                self._globals[kind] = Global(kind.module, kind.name)
            parts = self._globals[kind], str(len(self.storages)), place, nbytes // itemsize
            self._references[where] = Reference(*parts, None) if self._legacy else Reference(*parts)
            self.storages.append(memoryview(values()) if nbytes else b"")
            self.sizes.append(itemsize)
        return self._references[where]


def _block(tensor: Any) -> tuple[Any, int, tuple[int, ...]]:
    """Return (the block of memory of a tensor; the tensor's offset and strides in it, in elements)."""
    memory = shared(tensor).memory
    if line_of(memory) is not None and memory.nbytes % tensor.array.itemsize == 0:
        return memory, tensor.storage_offset(), tensor.stride()
    dense = tensor.detach().clone().contiguous()
    return dense.array, 0, dense.stride()


def _parts(tensor: Any) -> tuple[Any, ...]:
    """Return what a sparse tensor is made of: indices, values, size, and whether it is coalesced."""
    if tensor.layout is sparse_coo:
        return tensor._indices(), tensor._values(), tensor.shape, tensor.is_coalesced()
    by_rows = tensor.layout in (sparse_csr, sparse_bsr)
    indices = ((tensor.crow_indices(), tensor.col_indices()) if by_rows
               else (tensor.ccol_indices(), tensor.row_indices()))
    return *indices, tensor.detach().values(), tensor.shape


def pickler_of(module: Any) -> type[Pickler]:
    """Return a Pickler that also inherits from the module's pickler, if that is written in Python."""
    base = module.Pickler
    if not isinstance(base, type) or not issubclass(base, pickle._Pickler):  # type: ignore[attr-defined]
        return Pickler
    return type("Pickler", (Pickler, base), {"dispatch": {**base.dispatch, **Pickler.own}})  # type: ignore[attr-defined]


def pickled(obj: Any, protocol: int, legacy: bool = False, module: Any = pickle) -> tuple[bytes, list[Any], list[int]]:
    """Return (the pickle, the bytes of each storage, the sizes of their elements)."""
    buffer = io.BytesIO()
    writer = pickler_of(module)(buffer, protocol, legacy)
    writer.dump(obj)
    return buffer.getvalue(), writer.storages, writer.sizes
