"""Making tensors from values, filled or copied. https://pytorch.org/docs/stable/torch.html#creation-ops"""
from __future__ import annotations

import math as _math
from typing import Any

import numpy as np

from .. import dtype as dtypes
from .._tensor import Tensor
from .._tensor.copying import DLPACK
from ..core.class_hooks import hooks as class_hooks
from ..core.class_hooks import is_own
from ..core.dispatch import fresh, level_of, wrap, xp
from ..core.mode import mode
from ..core.tape import TensorBase, new
from ..device import device as Device
from ..dtype import FROM_NUMPY, SCALAR_TYPES, as_dtype
from ..runtime.numpy_state import compute
from ..runtime.small_floats import EXPERIMENTAL, convert, known
from ..size import whole
from ..storage.base import backend_of
from ..storage.layout import is_channels_last, slowest_first
from ..storage.out_of_memory import memory_error
from ._arguments import check_format, converted, warn
from ._kinds import Dtype, Ints, Ints1, Layout, MemoryFormat, Number
from ._nested import READERS, array_of
from ._register import check_layout, public
from ._sparse import empty_sparse, like_sparse

# ── from values ───────────────────────────────────────────────────────────────────────────────────────────────────────


@public(method=False)
def tensor(data: object, *, dtype: Dtype | None = None, device: Device | None = None, requires_grad: bool = False,
           pin_memory: bool = False, name: str | None = None) -> Tensor:
    """A tensor with a copy of the data.

    `name`, which PyTorch does not take, is a label for drawings.

    Input: data: a number, an array or nested sequences of equal lengths; the dtype follows from them: floats give the
        default dtype, integers int64; or a storage, whose memory the tensor shares
    Output: a leaf of the data's shape
    Errors: ValueError for sequences of unequal lengths or too large an integer; TypeError for strings or arrays of
        other dtypes; RuntimeError for other objects, numbers outside the dtype's range, or integers that require grad
    https://pytorch.org/docs → torch.tensor

    >>> import tensorgrad as torch
    >>> torch.tensor([[1, 2], [3, 4]]), torch.tensor(0.5)
    (tensor([[1, 2],
            [3, 4]]), tensor(0.5000))
    """
    if isinstance(data, TensorBase):
        warn("To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
             "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
             again=True)
        device = data.device if device is None else device  # type: ignore[attr-defined]
        if data._storage.hollow or data._storage.dense is not None:
            return as_leaf(data.detach().to(device, dtype or data.dtype, copy=True), requires_grad)
    out = as_leaf(_placed(_host_array(data, dtype, copy=True), device), requires_grad)
    if name is not None:
        out.name = name
    return out


def as_leaf(made: Any, requires_grad: bool) -> Any:
    """Set requires_grad of a new tensor; RuntimeError if its dtype cannot have gradients."""
    if requires_grad:
        if made.array.dtype.kind not in "fcV":
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        made.requires_grad = True
    return made


def _check_array(array: np.ndarray[Any, Any]) -> None:
    """Raise unless PyTorch has a tensor of such a NumPy array."""
    FROM_NUMPY[array.dtype]      # raises TypeError for dtypes that PyTorch lacks
    if any(s % array.itemsize for s in array.strides):
        raise ValueError("given numpy array strides not a multiple of the element byte size. Copy the numpy array to "
                         "reallocate the memory.")
    if any(s < 0 for s in array.strides):
        raise ValueError("At least one stride in the given numpy array is negative, and tensors with negative strides "
                         "are not currently supported. (You can probably work around this by making a copy of your "
                         "array  with array.copy().) ")
    if not array.dtype.isnative:
        raise ValueError("given numpy array has byte order different from the native byte order. Conversion between "
                         "byte orders is currently not supported.")


def _host_array(data: Any, dtype: Any, copy: bool = False) -> Any:
    """A host array of the dtype that PyTorch infers."""
    wanted = None if dtype is None else as_dtype(dtype)
    if isinstance(data, TensorBase):
        array = type(data._storage).host(data.array)
    elif isinstance(data, (np.ndarray, np.generic)):
        array = known(np.asarray(data))
        _check_array(array)
    elif hasattr(data, "__array_interface__") or hasattr(data, "__array__"):
        return _host_array(np.asarray(data), wanted, copy=True)
    elif hasattr(data, "_given"):       # a storage, whose memory the tensor shares
        return data._given(wanted)
    elif isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    else:
        return array_of(data, wanted)
    if wanted is not None and array.dtype != wanted.numpy:
        return compute(convert, array, wanted.numpy)
    return array.copy() if copy else array


def _placed(host: Any, device: Any) -> Any:
    backend = backend_of(device)
    if isinstance(host, TensorBase):
        return host if device is None else host.to(device)  # type: ignore[attr-defined]
    return fresh(host if type(host) is backend.array_type else backend.asarray(host), backend)


@public(method=False)
def as_tensor(data: object, *, dtype: Dtype | None = None, device: Device | None = None) -> Tensor:
    """A tensor of the data, in the same memory where that is possible.

    Input: data as for `tensor`; a tensor of the wanted dtype and device is itself the result, a NumPy array keeps its
        memory
    Output: the data's shape
    Errors: ValueError for sequences of unequal lengths or arrays with negative strides; TypeError for strings or arrays
        of other dtypes
    https://pytorch.org/docs → torch.as_tensor

    >>> import numpy as np, tensorgrad as torch
    >>> a = np.zeros(2)
    >>> torch.as_tensor(a)[0] = 1; a
    array([1., 0.])
    """
    if isinstance(data, TensorBase):
        return data.to(device=device, dtype=None if dtype is None else as_dtype(dtype))  # type: ignore[attr-defined]
    if isinstance(data, np.ndarray):
        if str(backend_of(device).device) != "cpu" or (dtype is not None and as_dtype(dtype).numpy != data.dtype):
            return _placed(_host_array(data, dtype), device)
        return from_numpy(data)
    return tensor(data, dtype=dtype, device=device)


@public(method=False)
def asarray(obj: object, *, dtype: Dtype | None = None, device: Device | None = None, copy: bool | None = None,
            requires_grad: bool = False) -> Tensor:
    """A tensor of an array, tensor, DLPack or buffer object or nested sequence; `copy` forces or forbids copying.

    Input: data as for `tensor`, an object or capsule of DLPack, or a buffer, whose bytes are read as elements of the
        dtype
    Output: the data's shape
    Errors: ValueError if copy is False and a copy is needed; RuntimeError for integers that require grad; TypeError for
        strings
    https://pytorch.org/docs → torch.asarray

    >>> import tensorgrad as torch
    >>> x = torch.zeros(2)
    >>> torch.asarray(x) is x, torch.asarray(x, copy=True) is x
    (True, False)
    """
    if copy is False and isinstance(obj, np.generic):
        raise RuntimeError("can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray. ")
    if not isinstance(obj, (TensorBase, np.ndarray, np.generic)):
        if hasattr(obj, "__dlpack__") or type(obj).__name__ == "PyCapsule":
            obj = from_dlpack(obj)
        elif _is_buffer(obj):
            obj = frombuffer(obj, dtype=dtypes.get_default_dtype() if dtype is None else dtype)
    shares = isinstance(obj, (TensorBase, np.ndarray))
    if copy is False and not shares:
        raise ValueError("can't alias arbitrary sequence into a tensor.")
    tracked = isinstance(obj, TensorBase) and obj.requires_grad  # type: ignore[attr-defined]
    wanted = tracked if requires_grad is None else requires_grad
    if tracked and requires_grad is None:
        warn("torch.asarray: unspecified requires_grad now defaults to obj.requires_grad instead of False. Pass "
             "requires_grad=False explicitly to get the old behavior and silence this warning.")
    source = obj.detach() if isinstance(obj, TensorBase) and (obj.is_leaf or not wanted) else obj  # type: ignore[attr-defined]
    out = as_tensor(source, dtype=dtype, device=device)
    if copy:
        out = out.clone() if shares else out
    elif copy is False and isinstance(obj, TensorBase) and out.array.dtype != obj.array.dtype:
        names = [SCALAR_TYPES[FROM_NUMPY[t.array.dtype].name] for t in (obj, out)]
        raise ValueError(f"can't alias tensor with dtype '{names[0]}' into dtype '{names[1]}'.")
    elif copy is False and out.array.__array_interface__["data"] != getattr(obj, "array",
                                                                            obj).__array_interface__["data"]:
        raise ValueError("can't alias tensor with a different dtype or device")
    elif isinstance(obj, TensorBase) and out is source and obj.is_leaf:  # type: ignore[attr-defined]
        obj.requires_grad = wanted  # type: ignore[attr-defined]
        return obj
    return as_leaf(out, wanted and not out.requires_grad)


def _is_buffer(obj: object) -> bool:
    try:
        memoryview(obj).release()       # type: ignore[arg-type]
    except (TypeError, BufferError):
        return False
    return True


@public(method=False)
def from_numpy(ndarray: np.ndarray) -> Tensor:
    """A tensor in the memory of a NumPy array.

    Input: an array of native byte order without negative strides
    Output: the array's shape and dtype
    Errors: TypeError for other objects, or for a dtype that tensors lack; ValueError for negative strides or a foreign
        byte order
    https://pytorch.org/docs → torch.from_numpy

    >>> import numpy as np, tensorgrad as torch
    >>> torch.from_numpy(np.arange(3))
    tensor([0, 1, 2])
    """
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {_type_name(ndarray)})")
    _check_array(ndarray)
    if not ndarray.flags.writeable:
        warn("The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This "
             "means writing to this tensor will result in undefined behavior. You may want to copy the array "
             "to protect its data or make it writable before converting it to a tensor.",
             again=True)
    backend = backend_of("cpu")
    storage = backend()
    plain = known(ndarray if type(ndarray) is np.ndarray else ndarray.view(np.ndarray))
    storage.memory, storage.fixed = plain, True
    return wrap(plain, storage)


def _type_name(value: Any) -> str:
    """Return the name of a value's class as in Python's errors: with its module, unless it is a builtin."""
    cls = type(value)
    return cls.__name__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__name__}"


CONSUMED = ("from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you "
            "might have already constructed a tensor from it once.")


class _Capsule:
    """A DLPack capsule as an object that hands it over."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


class _Writable:
    """The memory of an array that NumPy holds for read-only, since its capsule's old version cannot tell, as writable
    memory.
    """

    def __init__(self, array: Any) -> None:
        interface = array.__array_interface__
        self.array, self.__array_interface__ = array, {**interface, "data": (interface["data"][0], False)}


@public(method=False)
def from_dlpack(ext_tensor: Any, *, device: Device | None = None, copy: bool | None = None) -> Tensor:
    """A tensor in the memory of an object of another library, or of a capsule.

    Input: an object with __dlpack__, or a capsule, which can be taken once
    Output: the object's shape and dtype
    Errors: RuntimeError for other objects and used capsules; BufferError for a tensor that requires grad; ValueError
        for a tensor of another device if copy is False
    https://pytorch.org/docs → torch.from_dlpack

    >>> import numpy as np, tensorgrad as torch
    >>> torch.from_dlpack(np.arange(3))
    tensor([0, 1, 2])
    """
    place = None if device is None else Device(device)
    if isinstance(ext_tensor, TensorBase):
        if ext_tensor.requires_grad:  # type: ignore[attr-defined]
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        out = ext_tensor.detach()  # type: ignore[attr-defined]
        if place is not None and place != out.device:
            if copy is False:
                raise ValueError(f"cannot move (i.e. copy=False) tensor from {out.device} to {place} without copying.")
            return out.to(place)
        return out.clone() if copy else out
    if hasattr(ext_tensor, "__dlpack__"):
        if int(ext_tensor.__dlpack_device__()[0]) == 2:
            backend = backend_of("cuda")
            return fresh(backend.module.from_dlpack(ext_tensor), backend)
        options = {} if copy is None else {"copy": copy}
        if place is not None:
            options["dl_device"] = (2, place.index or 0) if place.type == "cuda" else (1, 0)
        try:
            capsule = ext_tensor.__dlpack__(max_version=DLPACK, **options)
        except TypeError:       # from before version 1
            capsule = ext_tensor.__dlpack__(**options)
    else:
        capsule = ext_tensor
    from .._tensor.dlpack import taken
    old = repr(capsule).startswith('<capsule object "dltensor"')
    if not old and not repr(capsule).startswith('<capsule object "dltensor_versioned"'):
        raise RuntimeError(CONSUMED)
    dtype = taken(capsule)
    array = np.from_dlpack(_Capsule(capsule))
    if old and array.size:
        array = np.asarray(_Writable(array))
    if dtype is not None:
        array = array.view(dtype.numpy)
    storage = backend_of("cpu")()
    storage.memory = array
    out = wrap(array, storage)
    return out if place is None or place.type == "cpu" else out.to(place)


READERS["__dlpack__"] = from_dlpack


@public(method=False)
def frombuffer(buffer: object, *, dtype: Dtype, count: int = -1, offset: int = 0,
               requires_grad: bool = False) -> Tensor:
    """A tensor in the memory of a buffer.

    Input: an object with Python's buffer protocol; offset in bytes, count in elements (−1: all)
    Output: (count)
    Errors: ValueError if the object is no buffer or is empty, the offset is outside it, its bytes are too few for
        count, or no multiple of the element's size
    https://pytorch.org/docs → torch.frombuffer

    >>> import tensorgrad as torch
    >>> torch.frombuffer(bytearray([1, 2, 3]), dtype=torch.uint8, offset=1)
    tensor([2, 3], dtype=torch.uint8)
    """
    try:
        view = memoryview(buffer)
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    size, item = view.nbytes, as_dtype(dtype).itemsize
    if size == 0 or count == 0:
        raise ValueError(f"both buffer length ({size}) and count ({count}) must not be 0")
    if not 0 <= offset < size:
        raise ValueError(f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({size} "
                         f"bytes) minus 1")
    if count < 0 and (size - offset) % item:
        raise ValueError(f"buffer length ({size - offset} bytes) after offset ({offset} bytes) must be a multiple of "
                         f"element size ({item})")
    if count >= 0 and offset + count * item > size:
        raise ValueError(f"requested buffer length ({count} * {item} bytes) after offset ({offset} bytes) must not be "
                         f"greater than actual buffer length ({size} bytes)")
    if view.readonly:
        warn("The given buffer is not writable, and PyTorch does not support non-writable tensors. This means you can "
             "write to the underlying (supposedly non-writable) buffer using the tensor. You may want to copy the "
             "buffer to protect its data or make it writable before converting it to a tensor. This type of warning "
             "will be suppressed for the rest of this program.")
    storage = backend_of("cpu")()
    storage.memory = np.frombuffer(view, as_dtype(dtype).numpy, count, offset)
    storage.fixed = True
    out = wrap(storage.memory, storage)
    return as_leaf(out, requires_grad)


@public(method=False)
def from_file(filename: str, shared: bool | None = None, size: int | None = 0, *, dtype: Dtype | None = None,
              layout: Layout | None = None, device: Device | None = None, requires_grad: bool = False,
              pin_memory: bool | None = False) -> Tensor:
    """A tensor in the memory of a mapped file; with `shared`, writes go to the file, which is made or extended.

    Output: (size)
    Errors: RuntimeError if the file cannot be opened, or is too short and not shared
    https://pytorch.org/docs → torch.from_file

    >>> import tempfile, tensorgrad as torch
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     torch.from_file(file.name, shared=True, size=2, dtype=torch.int32)
    tensor([0, 0], dtype=torch.int32)
    """
    if not isinstance(filename, str):
        raise TypeError(f"from_file(): argument 'filename' (position 1) must be str, not {type(filename).__name__}")
    from .storage_objects import UntypedStorage
    kind = dtypes.get_default_dtype() if dtype is None else as_dtype(dtype)
    made = UntypedStorage.from_file(filename, bool(shared), (size or 0) * kind.itemsize)
    array, storage = made.block(kind)
    storage.fixed, storage.filename = True, made.filename  # type: ignore[attr-defined]
    return as_leaf(wrap(array, storage), requires_grad)


# ── filled ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def shape_of(size: Any, function: str = "") -> tuple[int, ...]:
    """The shape meant by `f(2, 3)` or `f((2, 3))`."""
    shape = size[0] if len(size) == 1 and not isinstance(size[0], (int, np.integer)) and not (
        isinstance(size[0], TensorBase) and size[0].array.ndim == 0) else size
    try:
        shape = tuple(n if type(n) is int else length(n) for n in shape)
    except TypeError:
        raise TypeError(_no_size(shape, function or "empty")) from None
    if any(n < 0 for n in shape):
        raise RuntimeError("zeros: Dimension size must be non-negative." if function == "zeros" else
                           f"Trying to create tensor with negative dimension {min(shape)}: {list(shape)}")
    return shape


def _no_size(size: Any, function: str) -> str:
    """Return PyTorch's message for a value that is no size."""
    start = f"{function}(): argument 'size' "
    if not isinstance(size, (tuple, list)) or len(size) == 1 and isinstance(size[0], (str, type(None))):
        return f"{start}(position 1) must be tuple of ints, not {type(size).__name__}"
    place, kind = next((i, type(n).__name__) for i, n in enumerate(size)
                       if isinstance(n, bool) or not hasattr(n, "__index__"))
    return (f'{start}failed to unpack the object at pos {place + 1} with error "type must be tuple of ints,but got '
            f'{kind}"' if place else
            f"{start}(position 1) must be tuple of ints, but found element of type {kind} at pos 0")


def length(n: Any) -> int:
    """Return an axis's length; TypeError for values that are no integer."""
    if isinstance(n, bool):
        raise TypeError("the length of an axis must be int, not bool")
    return whole(n)


fill_memory = False     # use_deterministic_algorithms(True): nothing is left unfilled


def made(maker: str, shape: tuple[int, ...], dtype: Any, device: Any, requires_grad: bool, *args: Any) -> Any:
    """Make a tensor by one of the backend's own functions: zeros, ones, empty, full."""
    backend = backend_of(device)
    kind = dtypes.get_default_dtype() if dtype is None else dtype if type(dtype) is dtypes.dtype else as_dtype(dtype)
    if kind is dtypes.complex32:
        warn(EXPERIMENTAL)
    storage = backend()
    if mode.inference:
        storage.inference = True
    out = new(Tensor)
    try:
        out.array = compute(getattr(backend.xp, maker), shape, *args, dtype=kind.numpy)
    except (ValueError, MemoryError) as error:
        raise unmade(error, maker, shape) from None
    out._storage, out._node, out._grad, out.origin = storage, None, None, None
    if fill_memory and maker == "empty":
        backend.assign(out.array, unlikely(kind))
    return as_leaf(out, requires_grad)


def unlikely(kind: Any) -> Any:
    """Return the value that fills uninitialized memory: NaN, True or the greatest integer."""
    return (np.nan if kind.is_floating_point or kind.is_complex
            else True if kind is dtypes.bool else dtypes.iinfo(kind).max)


def unmade(error: Exception, function: str, shape: tuple[int, ...]) -> Exception:
    """PyTorch's error for a tensor that is too large to be made, or the error itself."""
    for place, n in enumerate(shape, 1):
        if n >= 1 << 63:
            return TypeError(f"{function}(): argument 'size' failed to unpack the object at pos {place} with error "
                             f"\"Overflow when unpacking long long\"")
    return memory_error(error, function, shape) or error


def _filler(name: str) -> Any:
    def make(*size: Ints1, dtype: Dtype | None = None, layout: Layout | None = None, device: Device | None = None,
             requires_grad: bool | None = False, pin_memory: bool | None = False,
             memory_format: MemoryFormat | None = None, **keywords: Any) -> Tensor:
        if "size" in keywords:
            if size:
                raise TypeError(f"{name}() got multiple values for argument 'size'")
            size = (keywords.pop("size"),)
        if keywords:
            raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(keywords))}'")
        if not size:
            raise TypeError(f"{name}() received an invalid combination of arguments - got (), but expected (tuple of "
                            f"ints size)")
        if layout is not None and layout is not dtypes.strided:
            return as_leaf(empty_sparse(shape_of(size, name), layout, dtype, device, name), requires_grad)
        if memory_format in (None, dtypes.contiguous_format):
            return made(name, shape_of(size, name), dtype, device, requires_grad)
        new = made(name, shape_of(size, name), dtype, device, False).contiguous(memory_format=memory_format)
        return as_leaf(new.detach(), requires_grad)
    make.__name__ = make.__qualname__ = name
    what = {"zeros": "zeros", "ones": "ones", "empty": "memory that nobody filled"}[name]
    make.__doc__ = (f"A tensor of {what}.\n\n"
                    "Input: the size, as numbers or as one sequence\n"
                    "Output: size, of the default dtype unless another is given\n"
                    "Errors: RuntimeError for a negative size, or integers that require grad; TypeError without a "
                    "size, or for one\n    that is not of integers\n"
                    f"https://pytorch.org/docs → torch.{name}\n\n"
                    f">>> import tensorgrad as torch\n>>> torch.{name}(2, 3).shape\ntorch.Size([2, 3])\n")
    return public(method=False, out="given")(make)


zeros, ones, empty = _filler("zeros"), _filler("ones"), _filler("empty")


@public(method=False, out="given")
def full(size: Ints, fill_value: Number, *, dtype: Dtype | None = None, layout: Layout | None = None,
         device: Device | None = None, requires_grad: bool | None = False, pin_memory: bool | None = False) -> Tensor:
    """A tensor of one value, of the value's dtype.

    Output: size, of the value's dtype unless another is given
    Errors: TypeError if size is not a sequence, or the value is not a number; RuntimeError for a negative size or a
        value outside the dtype's range
    https://pytorch.org/docs → torch.full

    >>> import tensorgrad as torch
    >>> torch.full((2,), 7)
    tensor([7, 7])
    """
    if isinstance(fill_value, TensorBase):
        fill_value = fill_value.item()  # type: ignore[attr-defined]
    if isinstance(fill_value, np.integer):
        fill_value = int(fill_value)
    kind = dtypes.of_number(fill_value.__class__) if dtype is None and fill_value.__class__ in dtypes.PYTHON else dtype
    if not isinstance(size, (tuple, list)):
        raise TypeError(f"full(): argument 'size' (position 1) must be tuple of ints, not {type(size).__name__}")
    shape = shape_of((size,))
    value = fill_value if kind is None else converted(fill_value, as_dtype(kind), single=_math.prod(shape) == 1)
    return made("full", shape, kind, device, requires_grad, value)


def _like(input: Any, dtype: Any, device: Any) -> tuple[Any, Any]:
    return FROM_NUMPY[input.array.dtype] if dtype is None else dtype, input.device if device is None else device


def like_by_class(name: str, tensor: Any, *args: Any, **options: Any) -> Any:
    """Return a tensor that a class with `__torch_dispatch__` makes like another; options that are None are left out."""
    return class_hooks.like(name, tensor, *args, **{key: value for key, value in options.items() if value is not None})


def _beside(source: Any, made: Any) -> Any:
    """A tensor that was made like another: inside vmap, with memory for each example if the other has that."""
    if not type(source._storage).rank:
        return made
    return as_leaf(level_of(source, made.detach()), made.requires_grad)


def axes_in_memory(array: Any) -> list[int]:
    """The axes of an array by decreasing stride."""
    return slowest_first(array.shape, (array,))


def laid_out(tensor: Any, like: Any, memory_format: Any = None) -> Any:
    """Rearrange the axes in memory of a new tensor of equal elements: as in the array `like`, or by a memory format."""
    ndim, array = like.ndim, tensor.array
    if memory_format in (dtypes.channels_last, dtypes.channels_last_3d):
        check_format(ndim, memory_format)
        axes = [0, *range(2, ndim), 1]
    elif memory_format is dtypes.contiguous_format or not hasattr(like, "flags"):
        return tensor
    elif like.flags.c_contiguous:
        if not is_channels_last(like):
            return tensor
        axes = [0, *range(2, ndim), 1]
    else:
        axes = axes_in_memory(like)
    tensor.array = array.reshape([array.shape[a] for a in axes]).transpose([axes.index(i) for i in range(ndim)])
    return tensor


def _filler_like(name: str) -> Any:
    def make(input: Tensor, *, dtype: Dtype | None = None, layout: Layout | None = None, device: Device | None = None,
             requires_grad: bool | None = False, pin_memory: bool | None = False,
             memory_format: MemoryFormat | None = None) -> Tensor:
        if is_own(input):
            return as_leaf(like_by_class(f"{name}_like", input, dtype=dtype, layout=layout, device=device,
                                         memory_format=memory_format, pin_memory=pin_memory), requires_grad)
        kind, place = _like(input, dtype, device)
        if layout is not None and layout is not dtypes.strided or input._storage.dense is not None:
            return as_leaf(like_sparse(name, input, layout, kind, place,
                                       lambda shape: made(name, shape, kind, place, False), memory_format),
                           requires_grad)
        return _beside(input, laid_out(made(name, input.array.shape, kind, place, requires_grad), input.array,
                                       memory_format))
    make.__name__ = make.__qualname__ = f"{name}_like"
    make.__doc__ = (f"`{name}` in the shape, dtype and device of a tensor.\n\n"
                    "Output: the input's shape, its axes in memory in the input's order\n"
                    "Errors: TypeError if the input is not a tensor; RuntimeError for integers that require grad\n"
                    f"https://pytorch.org/docs → torch.{name}_like\n\n"
                    f">>> import tensorgrad as torch\n>>> torch.{name}_like(torch.tensor([[1, "
                    f"2]])).shape\ntorch.Size([1, 2])\n")
    return public(method=name != "empty")(make)


zeros_like, ones_like, empty_like = _filler_like("zeros"), _filler_like("ones"), _filler_like("empty")


@public(method=False)
def full_like(input: Tensor, fill_value: Number, *, dtype: Dtype | None = None, layout: Layout | None = None,
              device: Device | None = None, requires_grad: bool | None = False, pin_memory: bool | None = False,
              memory_format: MemoryFormat | None = None) -> Tensor:
    """`full` in the shape, dtype and device of a tensor.

    Output: the input's shape
    Errors: RuntimeError for a value that the dtype cannot hold, such as a complex one
    https://pytorch.org/docs → torch.full_like

    >>> import tensorgrad as torch
    >>> torch.full_like(torch.zeros(2), 7)
    tensor([7., 7.])
    """
    if is_own(input):
        made: Tensor = as_leaf(like_by_class("full_like", input, fill_value, dtype=dtype, layout=layout, device=device,
                                             memory_format=memory_format, pin_memory=pin_memory), requires_grad)
        return made
    kind, place = _like(input, dtype, device)
    if layout is not None and layout is not dtypes.strided or input._storage.dense is not None:
        return as_leaf(like_sparse("full", input, layout, kind, place,         # type: ignore[no-any-return]
                                   lambda shape: full(shape, fill_value, dtype=kind, device=place)), requires_grad)
    return _beside(input,
                   laid_out(full(input.array.shape, fill_value, dtype=kind, device=place, requires_grad=requires_grad),
                            input.array, memory_format))


def _new(maker: Any, name: str) -> None:
    def method(self: Tensor, *args: Any, dtype: Dtype | None = None, device: Device | None = None,
               requires_grad: bool | None = False, layout: Layout | None = None, pin_memory: bool | None = False,
               **keywords: Any) -> Tensor:
        if maker is not tensor and is_own(self):
            count = 1 if maker is not full else 2
            size = [list(args[0]) if isinstance(args[0], (tuple, list)) else list(args), *args[1:count]] if args else []
            return as_leaf(like_by_class(name, self, *size, dtype=dtype, device=device, layout=layout, **keywords,
                                         pin_memory=pin_memory), requires_grad)
        kind, place = _like(self, dtype, device)
        if self._storage.dense is not None and layout is None and maker in (zeros, empty):
            layout = self.layout
        if layout is not None and layout is not dtypes.strided and maker in (zeros, empty):
            return maker(*args, dtype=kind, device=place, requires_grad=requires_grad, layout=layout)  # type: ignore[no-any-return]
        check_layout(layout)
        out = maker(*args, dtype=kind, device=place, requires_grad=requires_grad, **keywords)
        return out if maker is tensor else _beside(self, out)
    method.__name__, method.__qualname__ = name, f"Tensor.{name}"
    plain = name.removeprefix("new_")
    method.__doc__ = (f"`{plain}` with the dtype and device of this tensor.\n\nErrors: as for `{plain}`\n"
                      f"https://pytorch.org/docs → torch.Tensor.{name}")
    setattr(Tensor, name, method)


for _maker in (zeros, ones, empty, full, tensor):
    _new(_maker, f"new_{_maker.__name__}")


@public(method=False)
def empty_strided(size: Ints, stride: Ints, *, dtype: Dtype | None = None, layout: Layout | None = None,
                  device: Device | None = None, requires_grad: bool | None = False,
                  pin_memory: bool | None = False) -> Tensor:
    """Unfilled memory with given steps along the axes.

    Input: size (d₁, …, dₙ) and stride, in elements, of equal lengths
    Output: size
    Errors: RuntimeError if a size or a stride is negative
    https://pytorch.org/docs → torch.empty_strided

    >>> import tensorgrad as torch
    >>> torch.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    if len(size) != len(stride):
        raise RuntimeError(f"dimensionality of sizes ({len(size)}) must match dimensionality of strides "
                           f"({len(stride)})")
    shape_of((size,))
    if any(step < 0 for step in stride):
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(size)} and strides={list(stride)}")
    length = 1 + sum((n - 1) * s for n, s in zip(size, stride)) if all(size) else 0
    if length >= 1 << 60:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(size)} and strides={list(stride)}")
    out = empty(length, dtype=dtype, device=device).as_strided(size, stride)
    out.origin = None
    return as_leaf(out, requires_grad)


@public(function=False)
def new_empty_strided(self: Tensor, size: Ints, stride: Ints, *, dtype: Dtype | None = None,
                      device: Device | None = None, requires_grad: bool | None = False, layout: Layout | None = None,
                      pin_memory: bool | None = False) -> Tensor:
    """`empty_strided` with this tensor's dtype and device.

    Output: size
    Errors: RuntimeError if a size or a stride is negative
    https://pytorch.org/docs → torch.Tensor.new_empty_strided

    >>> import tensorgrad as torch
    >>> torch.ones(1).new_empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    kind, place = _like(self, dtype, device)
    return _beside(self, empty_strided(size, stride, dtype=kind, device=place, requires_grad=requires_grad))


@public(method=False)
def empty_permuted(size: Ints, physical_layout: Ints, *, dtype: Dtype | None = None, layout: Layout | None = None,
                   device: Device | None = None, requires_grad: bool | None = False,
                   pin_memory: bool | None = False) -> Tensor:
    """Uninitialized memory whose axes have a given order.

    Input: physical_layout: the axes from the slowest to the fastest in memory
    Output: size
    Errors: RuntimeError if the axes are not a permutation of all, or a size is negative
    https://pytorch.org/docs → torch.empty_permuted

    >>> import tensorgrad as torch
    >>> torch.empty_permuted((2, 3), (1, 0)).stride()
    (1, 2)
    """
    order, ndim = tuple(physical_layout), len(size)
    if len(order) != ndim:
        raise RuntimeError("Number of dimensions in size does not match the length of the physical_layout; i.e. "
                           f"len(size) = {ndim} is not equal to len(physical_layout) = {len(order)}")
    for i, axis in enumerate(order):
        if not 0 <= axis < ndim:
            raise RuntimeError(f"Dimension out of range (expected to be between 0 and {ndim - 1}, but got {axis} at "
                               f"index {i}).  NB: negative dims not currently supported; file an issue if you want it.")
        if axis in order[:i]:
            raise RuntimeError("Duplicate dim not allowed")
    shape_of((size,))
    stride, step = [0] * len(order), 1
    for axis in reversed(order):
        stride[axis] = step
        step *= max(size[axis], 1)
    return empty_strided(size, stride, dtype=dtype, device=device, requires_grad=requires_grad)


@public(method=False)
def scalar_tensor(s: Number, *, dtype: Dtype | None = None, layout: Layout | None = None, device: Device | None = None,
                  pin_memory: bool | None = False, requires_grad: bool | None = False) -> Tensor:
    """A 0-d tensor of a number.

    Output: (), of the default dtype unless another is given
    Errors: TypeError if s is a tensor with axes
    https://pytorch.org/docs → torch.scalar_tensor

    >>> import tensorgrad as torch
    >>> torch.scalar_tensor(2)
    tensor(2.)
    """
    if isinstance(s, TensorBase) and (s.array.ndim or s.requires_grad):  # type: ignore[attr-defined]
        raise TypeError("scalar_tensor(): argument 's' (position 1) must be Number, not Tensor")
    kind = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    if isinstance(s, complex):
        s = converted(s, kind)
    return full((), s, dtype=kind, device=device, requires_grad=requires_grad)


@public(method=True, inplace=False)
def clone(input: Tensor, *, memory_format: MemoryFormat | None = None) -> Tensor:
    """A copy, recorded.

    Output: the input's shape and dtype; the gradient flows to the input
    https://pytorch.org/docs → torch.clone

    >>> import tensorgrad as torch
    >>> torch.clone(torch.tensor([1., 2.], requires_grad=True))
    tensor([1., 2.], grad_fn=<CloneBackward0>)
    """
    if memory_format in (dtypes.channels_last, dtypes.channels_last_3d) and type(input._storage).rank:
        name = "ChannelsLast" if memory_format is dtypes.channels_last else "ChannelsLast3d"
        raise RuntimeError(f"NYI: Tensor.clone(memory_format) inside vmap is only supported with memory_format "
                           f"torch.preserve_format or torch.contiguous_format (got {name})")
    copied = xp.clone(input)
    return copied if memory_format in (None, dtypes.preserve_format) else copied.contiguous(memory_format=memory_format)
