"""Storages as objects: the memory of a tensor as bytes, and as elements of one dtype.

https://pytorch.org/docs/stable/storage.html

>>> import tensorgrad as torch
>>> x = torch.arange(6.).reshape(2, 3)
>>> x[1].untyped_storage().data_ptr() == x.untyped_storage().data_ptr(), x.untyped_storage().nbytes()
(True, 24)
"""
from __future__ import annotations

import os
import struct
import sys
import weakref
from operator import index as integer
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .._tensor.copying import copied_memory
from ..core.dispatch import shared, wrap
from ..core.inplace import address
from ..device import device as Device
from ..dtype import SCALAR_TYPES, get_default_dtype
from ..dtype import dtype as Dtype
from ..messages.warn_once import WARNED, warn
from ..storage.base import backend_of
from . import DTYPES

OLD = ("TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage "
       "class. This should only matter to you if you are using storages directly.  To access UntypedStorage directly, "
       "use tensor.untyped_storage() instead of tensor.storage()")
_always_warn = [False]      # of typed storages; else once per process
NOT_RESIZABLE = "Trying to resize storage that is not resizable"


def _get_always_warn_typed_storage_removal() -> bool:
    """Return True if each typed storage that a program makes gives a warning."""
    return _always_warn[0]


def _set_always_warn_typed_storage_removal(always_warn: bool) -> None:
    """Set whether each typed storage that a program makes gives a warning, or the first alone."""
    if not isinstance(always_warn, bool):
        raise AssertionError(f"always_warn must be bool, got {type(always_warn).__name__}")
    _always_warn[0] = always_warn


def line_of(array: Any) -> Any:
    """Return a 1-d view of the bytes from an array's first element to its last; None for negative or fractional
    strides.
    """
    if not array.size:
        return array.reshape(-1).view(np.uint8)
    order = sorted(range(array.ndim), key=lambda axis: -array.strides[axis])
    dense = array.transpose(order)
    if dense.flags.c_contiguous:
        return dense.reshape(-1).view(np.uint8)
    if not isinstance(array, np.ndarray) or any(step < 0 or step % array.itemsize for step in array.strides):
        return None
    count = sum((n - 1) * step for n, step in zip(array.shape, array.strides)) // array.itemsize + 1
    return as_strided(array, (count,), (array.itemsize,)).view(np.uint8)


def storage_of(tensor: Any) -> UntypedStorage:
    """Return the memory block of a tensor: the same object for all its views, as long as somebody holds it."""
    if type(tensor._storage).rank:
        raise NotImplementedError("Cannot access storage of BatchedTensorImpl")
    if tensor._storage.dense is not None:
        raise NotImplementedError(f"Cannot access storage of Sparse{'' if tensor.is_sparse else 'Csr'}TensorImpl")
    storage = shared(tensor)
    if storage.lazy is not None:
        storage.lazy.part()
    known = storage.__dict__.get("bytes")
    found = None if known is None else known()
    if found is None:
        line = line_of(storage.memory)
        if line is None:
            raise RuntimeError("the tensor's memory is no block of whole elements")
        found = UntypedStorage._over(line, type(storage))
        found._owner = storage
        storage.bytes = weakref.ref(found)
    if tensor.dtype not in found._blocks and line_of(tensor.array) is not None:
        found._blocks[tensor.dtype] = found._elements(tensor.dtype), storage
    return found


class UntypedStorage:
    """A block of bytes on a device. https://pytorch.org/docs → torch.UntypedStorage

    >>> import tensorgrad as torch
    >>> torch.UntypedStorage([1, 2, 3])[1:].tolist()
    [2, 3]
    """

    __module__ = "torch.storage"
    is_sparse = is_sparse_csr = is_hpu = False

    def __init__(self, *arguments: Any, device: Any = None) -> None:
        if len(arguments) > 1:
            raise RuntimeError("torch.UntypedStorage(): takes a size or a sequence of bytes")
        given = arguments[0] if arguments else 0
        backend = backend_of("cpu" if device is None else device)
        if isinstance(given, (int, np.integer)):
            if given < 0:
                raise RuntimeError(f"a storage cannot have {given} bytes")
            values = np.zeros(int(given), np.uint8)
        else:
            if not hasattr(given, "__len__") or not all(isinstance(item, (int, np.integer)) for item in given):
                kind = (next((type(item).__name__ for item in given if not isinstance(item, (int, np.integer))), "")
                        if hasattr(given, "__iter__") else "")
                raise RuntimeError(f"torch.UntypedStorage(): tried to construct a storage from a sequence "
                                   f"({type(given).__name__}), but one of the items was of type {kind} instead of int"
                                   if kind
                                   else f"torch.UntypedStorage(): a storage is no {type(given).__name__}")
            values = np.array([int(item) & 255 for item in given], np.uint8)
        self._start(backend.asarray(values), backend)

    def _start(self, line: Any, backend: Any) -> None:
        self._line, self._backend = line, backend                # all the bytes, as an array of uint8
        # dtype → (the elements, the storage of tensors of them), so that tensors share them
        self._blocks: dict[Dtype, tuple[Any, Any]] = {}
        self._owner: Any = None                                  # the first storage of a tensor in this memory

    @classmethod
    def _over(cls, line: Any, backend: Any = None) -> UntypedStorage:
        """The storage of these bytes."""
        made = cls.__new__(cls)
        made._start(line, backend or backend_of("cpu"))
        return made

    @classmethod
    def from_buffer(cls, buffer: Any, byte_order: str | None = None, count: int = -1, offset: int = 0,
                    dtype: Any = None) -> UntypedStorage:
        """A copy of the bytes of a buffer. https://pytorch.org/docs → torch.UntypedStorage"""
        itemsize = 1 if dtype is None else dtype.itemsize
        made = cls._over(np.frombuffer(buffer, np.uint8, count if count < 0 else count * itemsize, offset).copy())
        if byte_order in ("little", "big") and byte_order != sys.byteorder and dtype is not None:
            made.byteswap(dtype)
        return made

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, nbytes: int = 0, *,
                  size: int | None = None) -> UntypedStorage:
        """Map the bytes of a file; if it is shared, writes go to the file.

        https://pytorch.org/docs → torch.UntypedStorage.from_file
        """
        made = cls._over(mapped(filename, shared, nbytes if size is None else size))
        made._file = filename if shared else None
        return made

    _file: str | None = None

    @property
    def filename(self) -> str | None:
        """Return the name of the file whose bytes these are, if writes go there."""
        return self._file if self._owner is None else self._owner.__dict__.get("filename", self._file)

    # properties

    device = property(lambda self: self._backend.device)
    is_cuda = property(lambda self: self.device.type == "cuda")
    is_cpu = property(lambda self: self.device.type == "cpu")
    _cdata = property(lambda self: id(self) if self._owner is None else id(self._owner.memory))

    def nbytes(self) -> int:
        """The number of bytes."""
        whole = int(self._line.size)
        return whole if self._owner is None else min(whole, self._owner.__dict__.get("cut", whole))

    size = __len__ = nbytes

    def element_size(self) -> int:
        """Return the bytes of an element: 1."""
        return 1

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return address(self._line) if self.nbytes() and self.device.type != "meta" else 0

    def get_device(self) -> int:
        """The index of the CUDA device, -1 on the CPU."""
        return self.device.index or 0 if self.is_cuda else -1

    def is_shared(self) -> bool:
        """Return True if other processes can access the memory."""
        return self.is_cuda or any(storage.shared is not None for _, storage in self._blocks.values())

    def share_memory_(self) -> UntypedStorage:
        """Move it, and tensors in it, to memory that processes share.

        https://pytorch.org/docs → torch.UntypedStorage.share_memory_
        """
        if self.device.type == "meta":
            self._share_fd_cpu_()
        if self.device.type == "cpu":
            wrap(*self.block(DTYPES["uint8"])).share_memory_()
        return self

    def _share_fd_cpu_(self) -> Any:
        raise self._no_handle("fd")

    def _share_filename_cpu_(self) -> Any:
        raise self._no_handle("filename")

    def _write_file(self, file: Any, is_real_file: bool, save_size: bool, element_size: int) -> None:
        """Write the bytes to an open file, after the number of elements if `save_size` is True."""
        data = self._host().tobytes()
        file.write((struct.pack("<q", len(data) // element_size) if save_size else b"") + data)

    def _no_handle(self, kind: str) -> Exception:
        if self.device.type != "cpu":
            return RuntimeError(f"_share_{kind}_: only available on CPU")
        return NotImplementedError(f"_share_{kind}_cpu_(): storages hand out no handles: share_memory_() moves the "
                                   "memory to where processes share it")

    def is_pinned(self, device: Any = "cuda") -> bool:
        """Return False: memory is never pinned."""
        return False

    def resizable(self) -> bool:
        """Return True unless the memory is a NumPy array's, a buffer's or shared between processes."""
        return self._owner is None or not (self._owner.fixed or self._owner.shared)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def __repr__(self) -> str:
        shown = "..." if self.device.type == "meta" else "\n".join(f" {byte}" for byte in self.tolist()) or " "
        return f"{shown}\n[torch.storage.UntypedStorage(device={self.device}) of size {self.nbytes()}]"

    # contents

    def _host(self) -> Any:
        return self._backend.host(self._line)[:self.nbytes()]

    def tolist(self) -> list[int]:
        """The bytes."""
        self._check_bytes()
        return self._host().tolist()  # type: ignore[no-any-return]

    def __iter__(self) -> Any:
        return iter(self.tolist())

    def _check_bytes(self) -> None:
        """Raise PyTorch's error for a storage without memory."""
        if self.device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type")

    def __getitem__(self, index: Any) -> Any:
        self._check_bytes()
        if isinstance(index, slice):
            if index.step not in (None, 1):
                raise RuntimeError(f"Trying to slice with a step of {index.step}, but only a step of 1 is supported")
            return UntypedStorage._over(self._line[:self.nbytes()][index], self._backend)
        return int(self._host()[self._place(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        self._line[index if isinstance(index, slice) else self._place(index)] = int(value) & 255
        self._wrote()

    def _place(self, index: Any) -> int:
        try:
            place = integer(index)
        except TypeError:
            raise TypeError(f"can't index a torch.UntypedStorage with {type(index).__name__}") from None
        if not -self.nbytes() <= place < self.nbytes():
            raise IndexError(f"index {place} out of range for storage of size {self.nbytes()}")
        return place % self.nbytes()

    def _wrote(self) -> None:
        for _, storage in self._blocks.values():
            storage.wrote()

    def fill_(self, value: Any) -> UntypedStorage:
        """Write a byte everywhere."""
        self._line[:self.nbytes()] = int(value) & 255
        self._wrote()
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> UntypedStorage:
        """Write the bytes of another storage of the same size."""
        source = getattr(source, "_untyped_storage", source)
        if source.nbytes() != self.nbytes():
            raise RuntimeError(f"size does not match, self was {self.nbytes()} bytes but src was {source.nbytes()} "
                               f"bytes")
        self._line[:self.nbytes()] = self._backend.asarray(source._host())
        self._wrote()
        return self

    def byteswap(self, dtype: Any) -> None:
        """Reverse the bytes of each element; of complex numbers, those of each part."""
        itemsize = dtype.itemsize // (2 if dtype.is_complex else 1)
        if itemsize > 1 and self.nbytes():
            self._line[...] = self._backend.asarray(
                np.ascontiguousarray(self._host().reshape(-1, itemsize)[:, ::-1]).reshape(-1))
            self._wrote()

    def resize_(self, size: Any) -> UntypedStorage:
        """Set the size in bytes, keeping the contents.

        Raises RuntimeError for a negative size, and for one beyond the memory while tensors use it.
        """
        size = integer(size)
        if size < 0:
            raise RuntimeError(f"Storage resize size is negative: {size}")
        if self._owner is not None:
            if size > self._line.size:
                raise RuntimeError(NOT_RESIZABLE)
            self._owner.cut = size
        elif self.device.type == "meta":
            self._line = self._backend.asarray(np.zeros(size, np.uint8))
        else:
            line = np.zeros(size, np.uint8)
            kept = min(size, self.nbytes())
            line[:kept] = self._host()[:kept]
            self._line = self._backend.asarray(line)
        return self

    # copies

    def clone(self) -> UntypedStorage:
        """A copy."""
        return UntypedStorage._over(self._line[:self.nbytes()].copy(), self._backend)

    __copy__ = clone

    def __deepcopy__(self, memo: Any) -> UntypedStorage:
        if id(self) not in memo:
            memo[id(self)] = self.clone() if self._owner is None else storage_of(
                wrap(*copied_memory(wrap(self._owner.memory, self._owner), memo)))     # tensors in it are copied once
        return memo[id(self)]  # type: ignore[no-any-return]

    def __reduce__(self) -> Any:
        return _unpickled, (self._host().tobytes(),)

    def new(self) -> UntypedStorage:
        """Return an empty storage on the same device."""
        return UntypedStorage(device=self.device)

    def to(self, device: Any = None, non_blocking: bool = False) -> UntypedStorage:
        """Return the bytes on a device: this storage itself if they are there."""
        backend = backend_of(Device(device))
        return (self if backend is self._backend else UntypedStorage._over(backend.asarray(np.array(self._host())),
                                                                           backend))

    def cpu(self) -> UntypedStorage:
        """Return the bytes on the CPU."""
        return self.to("cpu")

    def cuda(self, device: Any = None, non_blocking: bool = False) -> UntypedStorage:
        """Return the bytes on a CUDA device."""
        return self.to(Device("cuda", device) if isinstance(device, int) else device or "cuda")

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of the class."""
        return ("torch.storage.UntypedStorage" if dtype is None
                else TypedStorage(wrap_storage=self, dtype=dtype.dtype, _internal=True))

    def untyped(self) -> UntypedStorage:
        """The storage itself."""
        return self

    def _to(self, dtype: Any) -> TypedStorage:
        return TypedStorage._over(self, DTYPES["uint8"])._cast(dtype)

    # tensors in it

    def _elements(self, dtype: Any) -> Any:
        whole = self._line[:self._line.size // dtype.itemsize * dtype.itemsize]
        return whole.view(self._backend.held(dtype.numpy))

    def block(self, dtype: Any) -> tuple[Any, Any]:
        """(array, storage) of the bytes as elements of a dtype."""
        if dtype not in self._blocks:
            storage = self._backend() if self._owner is None else self._owner.another()
            storage.memory, storage.bytes = self._elements(dtype), weakref.ref(self)
            if self._owner is None:
                self._owner = storage
            else:
                storage.shared = self._owner.shared
            self._blocks[dtype] = storage.memory, storage
        return self._blocks[dtype]

    def _as_tensor(self, like: Any) -> Any:
        return wrap(*self.block(like.dtype))

    def _given(self, dtype: Any) -> Any:
        """Return the tensor that `torch.tensor` makes of the storage: of int64 unless a dtype is asked for."""
        return wrap(*self.block(dtype or DTYPES["int64"]))


def mapped(filename: str, shared: bool, nbytes: int) -> Any:
    """Map the bytes of a file; if shared, it is made or extended to this size."""
    try:
        if shared:
            with open(filename, "ab") as file:
                if file.tell() < nbytes:
                    file.truncate(nbytes)
        held = os.stat(filename).st_size
    except OSError as error:
        raise RuntimeError(f"unable to open file <{filename}> in {'read-write' if shared else 'read-only'} mode: "
                           f"{error.strerror} ({error.errno})") from None
    if nbytes < 0:
        raise RuntimeError(f"unable to mmap {nbytes} bytes from file <{filename}>: Cannot allocate memory (12)")
    if held < nbytes:
        raise RuntimeError(f"file <{filename}> size <{held}> is smaller than the required mapping size <{nbytes}>")
    if not nbytes:
        return np.zeros(0, np.uint8)
    return np.memmap(filename, np.uint8, "r+" if shared else "c", shape=(nbytes,)).view(np.ndarray)


def _unpickled(data: bytes) -> UntypedStorage:
    return UntypedStorage._over(np.frombuffer(bytearray(data), np.uint8))


class TypedStorage:
    """A storage as elements of one dtype. https://pytorch.org/docs → torch.TypedStorage"""

    __module__ = "torch.storage"
    is_sparse = is_hpu = False
    filename = property(lambda self: self._untyped_storage.filename)

    def __init__(self, *arguments: Any, wrap_storage: Any = None, dtype: Any = None, device: Any = None,
                 _internal: bool = False) -> None:
        if not _internal:
            if _always_warn[0]:
                WARNED.discard(OLD)
            warn(OLD)
        self.dtype = dtype or get_default_dtype()
        if wrap_storage is not None:
            if arguments or not isinstance(wrap_storage, UntypedStorage) or dtype is None:
                raise TypeError("Argument 'wrap_storage' must be UntypedStorage, given with 'dtype' alone")
            self._untyped_storage = wrap_storage
            return
        given = arguments[0] if arguments else 0
        if len(arguments) > 1 or isinstance(given, str):
            raise TypeError("Argument type not recognized")
        if isinstance(given, (int, np.integer)):
            self._untyped_storage = UntypedStorage(int(given) * self.dtype.itemsize, device=device)
        elif isinstance(given, (UntypedStorage, TypedStorage)):
            self._untyped_storage = given._untyped_storage if isinstance(given, TypedStorage) else given
        else:
            from . import tensor
            self._untyped_storage = storage_of(tensor(list(given), dtype=self.dtype, device=device)).clone()

    @classmethod
    def _over(cls, untyped: UntypedStorage, dtype: Any) -> TypedStorage:
        return TypedStorage(wrap_storage=untyped, dtype=dtype, _internal=True)

    @classmethod
    def from_buffer(cls, *arguments: Any, dtype: Any = None, **options: Any) -> TypedStorage:
        """A copy of the bytes of a buffer, as elements."""
        kind: Any = dtype or getattr(cls, "dtype", None) or get_default_dtype()
        return cls._over(UntypedStorage.from_buffer(*arguments, dtype=kind, **options), kind)  # type: ignore[misc]

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, size: int = 0) -> TypedStorage:
        """The elements of a file, mapped. https://pytorch.org/docs → torch.UntypedStorage.from_file"""
        kind = getattr(cls, "dtype", None)
        if kind is None:
            raise RuntimeError("from_file can only be called on derived classes")
        return cls._over(UntypedStorage.from_file(filename, shared, size * kind.itemsize), kind)

    device = property(lambda self: self._untyped_storage.device)
    is_cuda = property(lambda self: self._untyped_storage.is_cuda)
    _cdata = property(lambda self: self._untyped_storage._cdata)

    def untyped(self) -> UntypedStorage:
        """The bytes."""
        return self._untyped_storage

    def _as_tensor(self, like: Any = None) -> Any:
        if like is not None and like.dtype is not self.dtype:
            raise RuntimeError(f"Expected a Storage of type {SCALAR_TYPES[like.dtype.name].lower()} or an "
                               f"UntypedStorage, but got type {SCALAR_TYPES[self.dtype.name]} for argument 1 'storage'")
        return wrap(*self._untyped_storage.block(self.dtype))

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def _given(self, dtype: Any) -> Any:
        """Return the tensor that `torch.tensor` makes of the storage, whose dtype must be the one that is asked for."""
        dtype = dtype or get_default_dtype()
        if dtype is not self.dtype:
            raise RuntimeError(f"Expected a Storage of type {SCALAR_TYPES[dtype.name]} or an UntypedStorage, but got "
                               f"{SCALAR_TYPES[self.dtype.name]}")
        return self._as_tensor()

    def size(self) -> int:
        """The number of elements."""
        return self._untyped_storage.nbytes() // self.dtype.itemsize  # type: ignore[no-any-return]

    __len__ = size

    def nbytes(self) -> int:
        """The number of bytes."""
        return self._untyped_storage.nbytes()

    def element_size(self) -> int:
        """The bytes of an element."""
        return self.dtype.itemsize  # type: ignore[no-any-return]

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._untyped_storage.data_ptr()

    def is_shared(self) -> bool:
        """Return True if other processes can access the memory."""
        return self._untyped_storage.is_shared()

    def share_memory_(self) -> TypedStorage:
        """Move it, and tensors in it, to memory that processes share."""
        self._untyped_storage.share_memory_()
        return self

    def is_pinned(self, device: Any = "cuda") -> bool:
        """Return False: memory is never pinned."""
        return False

    def resizable(self) -> bool:
        """Return True unless the memory is a NumPy array's, a buffer's or shared between processes."""
        return self._untyped_storage.resizable()

    def _share_fd_cpu_(self) -> Any:
        return self._untyped_storage._share_fd_cpu_()

    def _write_file(self, *arguments: Any) -> None:
        self._untyped_storage._write_file(*arguments)

    def _share_filename_cpu_(self) -> Any:
        return self._untyped_storage._share_filename_cpu_()

    def get_device(self) -> int:
        """The index of the CUDA device, -1 on the CPU."""
        return self._untyped_storage.get_device()

    def tolist(self) -> list[Any]:
        """The elements."""
        self._untyped_storage._check_bytes()
        return self._as_tensor()[:self.size()].tolist()  # type: ignore[no-any-return]

    def __iter__(self) -> Any:
        return iter(self.tolist())

    def __getitem__(self, index: Any) -> Any:
        self._untyped_storage._check_bytes()
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        if not isinstance(index, int):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        if not -self.size() <= index < self.size():
            raise IndexError(f"index {index} out of range for storage of size {self.size()}")
        return self._as_tensor()[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(index, (int, slice)):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        self._as_tensor()[index] = value

    def fill_(self, value: Any) -> TypedStorage:
        """Write a number everywhere."""
        self._as_tensor().fill_(value)
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> TypedStorage:
        """Write the bytes of another storage of the same size."""
        self._untyped_storage.copy_(source)
        return self

    def resize_(self, size: int) -> TypedStorage:
        """Change the number of elements."""
        self._untyped_storage.resize_(integer(size) * self.dtype.itemsize)
        return self

    def clone(self) -> TypedStorage:
        """A copy."""
        return self._over(self._untyped_storage.clone(), self.dtype)

    __copy__ = clone

    def __deepcopy__(self, memo: Any) -> TypedStorage:
        return self._over(self._untyped_storage.__deepcopy__(memo), self.dtype)

    def __reduce__(self) -> Any:
        return _typed, (self._untyped_storage, self.dtype.name)

    def to(self, device: Any, non_blocking: bool = False) -> TypedStorage:
        """Return the elements on a device."""
        return self._over(self._untyped_storage.to(device), self.dtype)

    def cpu(self) -> TypedStorage:
        """Return the elements on the CPU."""
        return self.to("cpu")

    def cuda(self, device: Any = None, non_blocking: bool = False) -> TypedStorage:
        """Return the elements on a CUDA device."""
        return self._over(self._untyped_storage.cuda(device), self.dtype)

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of the old class of these elements."""
        return (f"torch.{'cuda.' if self.is_cuda else ''}{self.pickle_storage_type()}" if dtype is None
                else self._cast(dtype.dtype))

    def pickle_storage_type(self) -> str:
        """The name of the storage type in files."""
        return next(name for name, element in ELEMENTS.items() if element == self.dtype.name)

    def _get_legacy_storage_class(self) -> Any:
        name = next((name for name, element in ELEMENTS.items() if element == self.dtype.name), "")
        return globals().get(name)

    def _cast(self, dtype: Any) -> TypedStorage:
        return self._over(storage_of(self._as_tensor()[:self.size()].to(dtype, copy=True)), dtype)

    def __repr__(self) -> str:
        shown = "\n".join(f" {value}" for value in self.tolist()) or " "
        return f"{shown}\n[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {self.size()}]"


for _name, _dtype in {"double": "float64", "float": "float32", "half": "float16", "bfloat16": "bfloat16",
                      "long": "int64", "int": "int32", "short": "int16",
                      "char": "int8", "byte": "uint8", "bool": "bool", "complex_double": "complex128",
                      "complex_float": "complex64"}.items():
    setattr(TypedStorage, _name, lambda self, _dtype=DTYPES[_dtype]: self._cast(_dtype))
    setattr(UntypedStorage, _name, lambda self, _dtype=DTYPES[_dtype]: self._to(_dtype))


def _typed(untyped: UntypedStorage, dtype: str) -> TypedStorage:
    return TypedStorage._over(untyped, DTYPES[dtype])


class _Old(type):
    """The metaclass of `FloatStorage` and others: calls make TypedStorages; isinstance accepts those of the dtype."""

    def __call__(cls, *arguments: Any, wrap_storage: Any = None) -> Any:
        return TypedStorage(*arguments, wrap_storage=wrap_storage, dtype=cls.dtype)      # type: ignore[attr-defined]

    def __instancecheck__(cls, thing: Any) -> bool:
        return type(thing) is TypedStorage and thing.dtype is cls.dtype      # type: ignore[attr-defined]


ELEMENTS = {"DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16",
            "BFloat16Storage": "bfloat16", "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16",
            "CharStorage": "int8", "ByteStorage": "uint8",
            "BoolStorage": "bool",
            "ComplexDoubleStorage": "complex128", "ComplexFloatStorage": "complex64"}
for _name, _dtype in ELEMENTS.items():
    globals()[_name] = _Old(_name, (TypedStorage,),
                            {"dtype": DTYPES[_dtype], "__module__": "torch", "__doc__": f"Makes storages of {_dtype}. "
                             f"https://pytorch.org/docs → torch.{_name}"})


def __getattr__(name: str) -> Any:
    """Return, as `Storage`, the old storage class of the default dtype."""
    if name == "Storage":
        return globals()[next(old for old, element in ELEMENTS.items() if element == get_default_dtype().name)]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_storage_classes = {TypedStorage, UntypedStorage, *(globals()[_name] for _name in ELEMENTS)}


def _storage_type_to_dtype_map() -> dict[str, Any]:
    """The dtype of each old storage class, by the name of the class."""
    return {name: DTYPES[element] for name, element in ELEMENTS.items()}


def _dtype_to_storage_type_map() -> dict[Any, str]:
    """The name of the old storage class of each dtype."""
    return {dtype: name for name, dtype in _storage_type_to_dtype_map().items()}


__all__ = ["TypedStorage", "UntypedStorage", *ELEMENTS]
