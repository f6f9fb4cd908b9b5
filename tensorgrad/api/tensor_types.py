"""The old tensor types: one class for each dtype and kind of device. https://pytorch.org/docs/stable/tensors.html

A class makes tensors as `torch.Tensor(…)` does, of its own dtype and device, and isinstance accepts tensors of these.
No tensor has such a class: a call returns a Tensor.
"""
from __future__ import annotations

import copyreg
from typing import Any

import numpy as np

from .._tensor import Tensor
from ..core.tape import TensorBase
from ..device import device as Device
from ..device import set_default_device
from ..dtype import (
    FROM_NUMPY,
    SCALAR_TYPES,
    bfloat16,
    float16,
    float32,
    float64,
    get_default_dtype,
    int8,
    int16,
    int32,
    int64,
    set_default_dtype,
    strided,
    uint8,
)
from ..dtype import bool as bool_
from ..dtype import dtype as _dtype
from ..size import Size
from ..storage.base import backend_of
from ._arguments import warn
from .creation import from_numpy, made, shape_of, tensor
from .shape import alias

DTYPES = {"FloatTensor": float32, "DoubleTensor": float64, "HalfTensor": float16, "BFloat16Tensor": bfloat16,
          "ByteTensor": uint8, "CharTensor": int8, "ShortTensor": int16, "IntTensor": int32, "LongTensor": int64,
          "BoolTensor": bool_}
C_NAMES = {"float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16", "bool": "bool",
           "int8": "signed char", "uint8": "unsigned char", "int16": "short int", "int32": "int", "int64": "long int",
           "uint16": "short unsigned int", "uint32": "unsigned int", "uint64": "long unsigned int",
           "complex32": "c10::complex<c10::Half>", "complex64": "c10::complex<float>",
           "complex128": "c10::complex<double>"}


# ── the classes ───────────────────────────────────────────────────────────────────────────────────────────────────────


class tensortype(type):
    """The class of the tensor types."""

    __module__ = "torch"
    dtype: Any
    is_cuda: bool

    def __new__(cls, name: str, bases: Any, attributes: Any) -> Any:
        if bases:
            raise TypeError(f"type '{_name(bases[0])}' is not an acceptable base type")
        return super().__new__(cls, name, bases, attributes)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return constructed(cls.dtype, cls._backend(), args, kwargs)

    def _backend(cls) -> Any:
        if not cls.is_cuda:
            return backend_of("cpu")
        try:
            return backend_of("cuda")
        except (ImportError, RuntimeError) as error:
            raise TypeError(f"type {_name(cls)} not available. {error}") from error

    def __instancecheck__(cls, thing: Any) -> bool:
        return (isinstance(thing, Tensor) and thing.dtype is cls.dtype
                and thing.device.type == ("cuda" if cls.is_cuda else "cpu"))

    def __getattr__(cls, name: str) -> Any:
        try:
            return getattr(Tensor, name)
        except AttributeError:
            raise AttributeError(f"type object '{_name(cls)}' has no attribute '{name}'") from None

    def __setattr__(cls, name: str, value: Any = None) -> None:
        raise TypeError(f"cannot set '{name}' attribute of immutable type '{_name(cls)}'")

    __delattr__ = __setattr__


def _name(cls: Any) -> str:
    return f"{cls.__module__}.{cls.__name__}"


def _type(name: str, cuda: bool) -> Any:
    module = "torch.cuda" if cuda else "torch"
    return tensortype(name, (), {"__module__": module, "__qualname__": name, "__doc__": None, "dtype": DTYPES[name],
                                 "layout": strided,
                                 "is_cuda": cuda, "is_sparse": False, "is_xpu": False})


TYPES: dict[str, Any] = {_name(cls): cls for name in DTYPES for cls in (_type(name, False), _type(name, True))}
_tensor_classes = set(TYPES.values())


def typed(name: str) -> Any:
    """The class of that name, or None.

    >>> typed("torch.LongTensor")([1, 2]).dtype, typed("torch.FooTensor")
    (torch.int64, None)
    """
    return TYPES.get(name)


copyreg.pickle(tensortype, lambda cls: (typed, (_name(cls),)))


def __getattr__(name: str) -> Any:
    if (found := TYPES.get(f"torch.{name}")) is not None:
        return found
    raise AttributeError(f"module 'torch' has no attribute '{name}'")


# ── construction ──────────────────────────────────────────────────────────────────────────────────────────────────────


def constructed(dtype: Any, backend: Any, args: Any, kwargs: Any, form: str = "typed") -> Any:
    """Make a tensor as the old constructors do.

    Sizes give uninitialized memory, a sequence or array its values; a storage or a tensor is shared.

    form: "typed", "Tensor" (which takes a tensor of any dtype), or "new", the method.
    """
    device = kwargs.get("device")
    names = kwargs.keys() - {"device"}
    if names and (args or len(names) > 1 or not names <= {"data", "other", "size", "storage"}):
        raise invalid(args, kwargs)
    given = args or tuple(kwargs[name] for name in names)
    if device is not None:
        backend = _asked_for(device, backend)
    if not given:
        return made("empty", (0,), dtype, backend.device, False)
    first = given[0]
    if len(given) == 1 and not isinstance(first, Size) and "size" not in names and not _counts(first):
        if isinstance(first, TensorBase):
            return _shared(first, dtype, backend, device, form)
        return _stored(first, dtype, backend) if hasattr(first, "_as_tensor") else _valued(first, dtype, backend)
    if isinstance(first, Size) or "size" in names:
        given = tuple(first)
    if not _counts(given[0] if given else 0, several=len(given) > 1):
        raise invalid(args, kwargs)
    for place, n in enumerate(given, 1):
        if not _counts(n, several=True):
            raise TypeError(f"new(): argument 'size' failed to unpack the object at pos {place} with error \"type must "
                            f"be tuple of ints,but got {type(n).__name__}\"")
    return made("empty", shape_of((tuple(given),)), dtype, backend.device, False)


def _counts(n: Any, several: bool = False) -> bool:
    """Return True if a value is a size: an integer, or, among several, a 0-d integer tensor."""
    if isinstance(n, TensorBase):
        return several and not n.array.ndim and n.array.dtype.kind in "iu"
    return isinstance(n, (int, np.integer)) and not isinstance(n, bool)


def _asked_for(device: Any, backend: Any) -> Any:
    """The backend of the device in the call, which must be of the type's kind."""
    where, kind = Device(device), backend.device.type
    if where.type != kind:
        raise RuntimeError(f"legacy constructor expects device type: {kind} but device type: {where.type} was passed")
    return backend_of(where) if where.index is not None else backend


def _shared(other: Any, dtype: Any, backend: Any, device: Any, form: str) -> Any:
    """Return a view of the tensor."""
    if device is not None:
        raise RuntimeError("Legacy tensor new of the form tensor.new(tensor, device=device) is not supported.  Use "
                           "torch.as_tensor(...) instead."
                           if form == "new" else "Legacy tensor constructor of the form torch.Tensor(tensor, "
                           "device=device) is not supported.  Use torch.tensor(...) or torch.as_tensor(...) instead.")
    if form != "Tensor" and (other.dtype is not dtype or other.device.type != backend.device.type):
        raise TypeError(f"expected {_options(dtype, backend.device)} (got {_options(other.dtype, other.device)})")
    return alias(other)


def _options(dtype: Any, device: Any) -> str:
    return (f"TensorOptions(dtype={C_NAMES[dtype.name]}, device={device}, layout=Strided, requires_grad=false "
            "(default), pinned_memory=false (default), memory_format=(nullopt))")


def _stored(storage: Any, dtype: Any, backend: Any) -> Any:
    """A tensor of all that is in a storage."""
    held = getattr(storage, "dtype", None) or dtype
    if held is not dtype:
        raise RuntimeError(f"Expected a Storage of type {SCALAR_TYPES[dtype.name]} or an UntypedStorage, but got type "
                           f"{SCALAR_TYPES[held.name]} for argument 1 'storage'")
    return made("empty", (0,), dtype, backend.device, False).set_(storage)


def _valued(data: Any, dtype: Any, backend: Any) -> Any:
    """A tensor of the values in a sequence; in the memory of an array of that dtype."""
    if isinstance(data, np.ndarray):
        cpu = backend.device.type == "cpu"
        return (from_numpy(data) if cpu and FROM_NUMPY.get(data.dtype) is dtype
                else tensor(data, dtype=dtype, device=backend.device))
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    if not hasattr(data, "__len__") or not hasattr(data, "__getitem__") or isinstance(data, (dict, np.generic)):
        kind = type(data)
        raise TypeError(f"new(): data must be a sequence (got "
                        f"{'numpy.' * isinstance(data, np.generic)}{kind.__name__})")
    return tensor(data if isinstance(data, (list, tuple)) else list(data), dtype=dtype, device=backend.device)


def invalid(args: Any, kwargs: Any) -> TypeError:
    """Return the error for arguments that fit none of the constructor's forms."""
    got = [_shown(a) for a in args] + [f"{name}={_shown(value)}" for name, value in kwargs.items()]
    return TypeError(f"new() received an invalid combination of arguments - got "
                     f"({', '.join(got)}{', ' if kwargs and not args else ''}), but expected one of:\n * (*, "
                     "torch.device device = None)\n * (torch.Storage storage)\n * (Tensor other)\n * (tuple of ints "
                     "size, *, torch.device device = None)\n * (object data, *, torch.device device = None)\n")


def _shown(value: Any) -> str:
    kind = type(value)
    module = {"builtins": "", "numpy": "numpy."}.get(kind.__module__, "torch." if kind in (_dtype, Device) else "")
    return module + kind.__name__


# ── the default type ──────────────────────────────────────────────────────────────────────────────────────────────────

_default: dict[str, Any] = {"device": "cpu"}      # where torch.Tensor(…) makes tensors


def legacy_tensor(*args: Any, **kwargs: Any) -> Any:
    """Make a tensor like `torch.Tensor(…)`: sizes give uninitialized memory, anything else its values, in the default
    dtype.
    """
    return constructed(get_default_dtype(), default_backend(), args, kwargs, "Tensor")


def default_backend() -> Any:
    """Return the backend of `torch.Tensor(…)`, which follows the default type, not the default device."""
    return backend_of(_default["device"])


def set_default_tensor_type(t: Any, /) -> None:
    """Choose the dtype, and the kind of device, that new tensors have (deprecated).

    https://pytorch.org/docs → torch.set_default_tensor_type

    >>> import warnings
    >>> import tensorgrad as torch
    >>> with warnings.catch_warnings(action="ignore"):
    ...     torch.set_default_tensor_type(torch.DoubleTensor)
    ...     torch.tensor(1.).dtype
    ...     torch.set_default_tensor_type("torch.FloatTensor")
    torch.float64
    """
    found = t
    if isinstance(t, str):
        if (found := TYPES.get(t)) is None:
            raise AttributeError(f"module '{t.rpartition('.')[0]}' has no attribute '{t.rpartition('.')[2]}'")
    warn("torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
         "torch.set_default_device() as alternatives.")
    if not isinstance(found, tensortype):
        raise TypeError("invalid type object: only floating-point types are supported as the default type")
    found._backend()
    if not found.dtype.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    set_default_dtype(found.dtype)
    _default["device"] = "cuda" if found.is_cuda else "cpu"
    set_default_device("cuda" if found.is_cuda else None)


__all__ = ["set_default_tensor_type", *DTYPES]
