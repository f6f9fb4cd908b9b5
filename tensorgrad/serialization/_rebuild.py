"""The functions and classes that any file may name; each checks its arguments."""
from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pickle import UnpicklingError
from typing import Any

from .._tensor.states import restore, slots_of
from ..api import DTYPES, Size, Tensor, device, empty_strided, sparse_compressed_tensor, sparse_coo_tensor
from ..api.tensor_types import TYPES
from ..dtype import dtype as Dtype
from ..dtype import layout as Layout
from ..generator import Generator
from ..nn.parameter import Parameter, _rebuild_parameter, _rebuild_parameter_with_state
from ._allowed import Name, Refused, trusting, user_classes
from ._keys import Keys
from ._names import CLASSES, PACKAGE, STORAGE_TYPES, missing
from ._options import own
from ._storages import LARGEST, check_bounds, tensor_of


def _tensor(storage: Any, offset: Any, size: Any, stride: Any) -> Any:
    return tensor_of(storage, offset, size, stride)


def _tensor_v2(storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, hooks: Any,
               metadata: Any = None) -> Any:
    return _requiring(tensor_of(storage, offset, size, stride, None, metadata), requires_grad)


def _tensor_v3(storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, hooks: Any, dtype: Any,
               metadata: Any = None) -> Any:
    if type(dtype) is not Dtype:
        raise Refused("a tensor's dtype is malformed")
    return _requiring(tensor_of(storage, offset, size, stride, dtype, metadata), requires_grad)


def _meta_tensor(dtype: Any, size: Any, stride: Any, requires_grad: Any) -> Any:
    """Return a tensor of the device 'meta', which has no values."""
    check_bounds(0, size, stride, LARGEST)
    if type(dtype) is not Dtype:
        raise Refused("a tensor's dtype is malformed")
    try:
        made = empty_strided(size, stride, dtype=dtype, device="meta")
    except RuntimeError as error:
        raise Refused(f"a meta tensor: {error}") from None
    return _requiring(made, requires_grad)


def _wrapper(kind: Any, dtype: Any, size: Any, stride: Any, offset: Any, layout: Any, place: Any,
             requires_grad: Any) -> Any:
    """Return a tensor of a class that defines `__torch_dispatch__`, which holds its values as attributes."""
    check_bounds(0, size, stride, LARGEST)
    if isinstance(kind, Name):
        kind = kind.function
    if not (isinstance(kind, type) and issubclass(kind, Tensor) and type(dtype) is Dtype):
        raise Refused("a wrapper's class or dtype is malformed")
    try:
        made = Tensor._make_wrapper_subclass(kind, size, stride, dtype=dtype, device=place)
    except (RuntimeError, TypeError) as error:
        raise Refused(f"a wrapper: {error}") from None
    return _requiring(made, requires_grad)


def _sparse(layout: Any, data: Any) -> Any:
    """Return a sparse tensor of indices, which are checked, and values: an empty one, which is filled later, if the
    values come later in the file."""
    if type(layout) is not Layout or type(data) is not tuple:
        raise Refused("a sparse tensor is made of a layout and its parts")
    count = 1 if layout.name == "sparse_coo" else 2
    tensors, rest = data[:count + 1], data[count + 1:]
    if not (len(tensors) == count + 1 and all(type(t) is Tensor and t.layout.name == "strided" for t in tensors)
            and rest and type(rest[0]) in (Size, tuple) and all(type(n) is int for n in rest[0])
            and all(type(flag) is bool for flag in rest[1:])):
        raise Refused("the parts of a sparse tensor are malformed")
    if own.later is None:
        return _sparse_of(layout, tensors, rest)
    made = _sparse_of(layout, _without_values(tensors), rest)

    def fill() -> None:
        filled = _sparse_of(layout, tensors, rest).array
        made.array.pattern, made.array.values = filled.pattern, filled.values
    own.later.append(fill)
    return made


def _sparse_of(layout: Any, tensors: Any, rest: Any) -> Any:
    try:
        if layout.name == "sparse_coo":
            return sparse_coo_tensor(*tensors, tuple(rest[0]), is_coalesced=bool(rest[1:] and rest[1]))
        return sparse_compressed_tensor(*tensors, tuple(rest[0]), layout=layout)
    except (TypeError, ValueError, IndexError) as error:
        raise Refused(f"a sparse tensor: {error}") from None


def _without_values(tensors: Any) -> Any:
    """Return the parts of a sparse tensor with room for no values."""
    *lines, plain, values = tensors
    axis = plain.ndim - 1 if lines else 0
    if axis < 0 or plain.ndim < 1 or values.ndim <= axis:
        raise RuntimeError("the indices and values of a sparse tensor have too few axes")
    return (*(line.new_zeros(line.shape) for line in lines), plain.narrow(-1, 0, 0), values.narrow(axis, 0, 0))


def _nested(buffer: Any, sizes: Any, strides: Any, offsets: Any) -> Any:
    """Return a strided nested tensor of a buffer, in which its components must be: checked when both are read."""
    if not all(type(t) is Tensor and t.layout.name == "strided" for t in (buffer, sizes, strides, offsets)):
        raise Refused("a nested tensor is made of four tensors")
    of_buffer = import_module(f"{PACKAGE}.nested.functions")._nested_view_from_buffer

    def view() -> Any:
        try:
            return of_buffer(buffer, sizes, strides, offsets)
        except (RuntimeError, TypeError, ValueError) as error:
            raise Refused(f"a nested tensor: {error}") from None
    if own.later is None:
        return view()
    none = ((sizes, (0, 0)), (strides, (0, 0)), (offsets, 0))
    made = of_buffer(buffer, *(part.new_zeros(shape) for part, shape in none))

    def fill() -> None:
        found = view()
        made._sizes, made._steps, made._starts = found._sizes, found._steps, found._starts
    own.later.append(fill)
    return made


def _requiring(tensor: Any, requires_grad: Any) -> Any:
    if requires_grad is True:
        if tensor.array.dtype.kind not in "fcV":
            raise Refused("only floating point and complex tensors can require gradients")
        tensor.requires_grad_()
    elif requires_grad is not False:
        raise Refused("requires_grad is a bool")
    return tensor


def new_parameter(data: Any, requires_grad: Any = True) -> Any:
    return _parameter(data, requires_grad, None)


def _parameter(data: Any, requires_grad: Any, hooks: Any) -> Any:
    _check_tensor(data)
    return _rebuild_parameter(data, bool(requires_grad), OrderedDict())


def _parameter_with_state(data: Any, requires_grad: Any, hooks: Any, state: Any) -> Any:
    _check_tensor(data)
    return _rebuild_parameter_with_state(data, bool(requires_grad), OrderedDict(), attributes_of(state))


def _of_type(function: Any, kind: Any, arguments: Any, state: Any) -> Any:
    """Rebuild a tensor with attributes, or of a subclass of Tensor."""
    if not isinstance(function, Name) or function.function not in RECIPES or not isinstance(arguments, tuple):
        raise Refused("a tensor's recipe is malformed")
    tensor = function.function(*arguments)
    _check_tensor(tensor)
    if isinstance(kind, Name):
        kind = kind.function
    if kind is not Tensor and not isinstance(tensor, kind):
        if not (isinstance(kind, type) and issubclass(kind, Tensor) and kind in user_classes.values()):
            raise Refused("a tensor's class is malformed")
        tensor = tensor.as_subclass(kind)
    hides = function.function is _wrapper           # what such a tensor holds may have the name of a method
    trusting(restore, tensor, _checked_state(type(tensor), state, hides))
    return tensor


def of_any_type(function: Any, kind: Any, arguments: Any, state: Any) -> Any:
    """Like `_of_type`, for trusted files, which may name any class."""
    tensor = function(*arguments)
    if type(tensor) is not kind:
        tensor = tensor.as_subclass(kind)
    if state:
        restore(tensor, state)
    return tensor


def _checked_state(kind: Any, state: Any, hides: bool) -> Any:
    """Return the state for a tensor of a class, after checking what the class does not take itself.

    hides: whether an attribute may have the name of a method.
    """
    if hasattr(kind, "__setstate__"):
        return state
    attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, {})
    if slots and (type(slots) is not dict or not slots.keys() <= set(slots_of(kind))):
        raise Refused("the slots of a tensor are malformed")
    return attributes_of(attributes, hides), slots


def _check_tensor(value: Any) -> None:
    if not isinstance(value, Tensor):
        raise Refused("a tensor is expected here")


OURS = ("_hooks_at_rest", "_grad_dtype")       # this package's own entries among a tensor's attributes


def attributes_of(state: Any, hides: bool = False) -> dict[str, Any]:
    """Return the checked attributes that a file gives a tensor or an OrderedDict. They may hide methods if `hides`."""
    if state is None:
        return {}
    if type(state) is not dict or any(type(key) is not str or key.startswith("__") or key in OURS for key in state):
        raise Refused("the attributes of a tensor are malformed")
    if not hides and (hidden := methods() & state.keys()):
        raise Refused(f"the attribute {sorted(hidden)[0]!r} would hide a method")
    return state


@cache
def methods() -> frozenset[str]:
    """The names of methods of tensors and OrderedDicts."""
    return frozenset(name for kind in (Parameter, OrderedDict) for name in dir(kind)
                     if callable(getattr(kind, name, None)))


def _encode(text: Any, encoding: Any = "latin1") -> bytes:
    if type(text) is not str or type(encoding) is not str or encoding not in ("latin1", "latin-1"):
        raise Refused("_codecs.encode is for bytes only")
    return text.encode("latin1")


def _bytearray(data: Any = b"", encoding: Any = None) -> bytearray:
    if isinstance(data, str):
        data = _encode(data, encoding or "latin1")
    if not isinstance(data, bytes):
        raise Refused("a bytearray is made of bytes")
    return bytearray(data)


def _layout(name: Any) -> Any:
    found = DTYPES.get(name.removeprefix("torch.")) if type(name) is str else None
    if type(found) is not Layout:
        raise Refused("there is no such layout")
    return found


def size_of(items: Any = ()) -> Any:
    if not isinstance(items, (tuple, list)) or len(items) > 64 or not all(type(n) is int for n in items):
        raise Refused("a size is made of at most 64 integers")
    return Size(items)


def ordered(items: Any = ()) -> Any:
    if type(items) not in (tuple, list) or not all(type(pair) in (tuple, list) and len(pair) == 2 for pair in items):
        raise Refused("an OrderedDict is made of pairs")
    keys = Keys()
    return OrderedDict((keys.checked(key), value) for key, value in items)


def counter(items: Any = None) -> Any:
    if items is not None and type(items) is not dict:
        raise Refused("a Counter is made of a dict")
    return Counter(items or {})


def set_of(items: Any = ()) -> Any:
    if type(items) not in (tuple, list):
        raise Refused("a set is made of a list")
    return set(map(Keys().checked, items))


def _complex(real: Any = 0, imag: Any = 0) -> complex:
    if not all(type(n) in (int, float) for n in (real, imag)):
        raise Refused("a complex number is made of numbers")
    return complex(real, imag)


def _device(*arguments: Any) -> Any:
    if not arguments or type(arguments[0]) is not str or not all(type(n) is int for n in arguments[1:]):
        raise Refused("a device is malformed")
    return device(*arguments)


COPYING = (_encode, _bytearray, set_of, ordered, counter)
STATEFUL, LEAST_ATTRIBUTE = (_parameter_with_state, _of_type), 7
RECIPES = (_tensor, _tensor_v2, _tensor_v3, _meta_tensor, _wrapper, _sparse, _parameter, _parameter_with_state)


CALLABLE: dict[tuple[str, str], Callable[..., Any]] = {
    ("torch._utils", "_rebuild_tensor"): _tensor, ("torch._utils", "_rebuild_tensor_v2"): _tensor_v2,
    ("torch._utils", "_rebuild_tensor_v3"): _tensor_v3,
    ("torch._utils", "_rebuild_meta_tensor_no_storage"): _meta_tensor,
    ("torch._utils", "_rebuild_wrapper_subclass"): _wrapper,
    ("torch._utils", "_rebuild_sparse_tensor"): _sparse, ("torch._utils", "_rebuild_sparse_csr_tensor"): _sparse,
    ("torch._utils", "_rebuild_nested_tensor"): _nested, ("torch._utils", "_rebuild_parameter"): _parameter,
    ("torch._utils", "_rebuild_parameter_with_state"): _parameter_with_state,
    ("torch._tensor", "_rebuild_from_type_v2"): _of_type, ("torch", "Size"): size_of, ("torch", "device"): _device,
    ("torch.serialization", "_get_layout"): _layout, ("_codecs", "encode"): _encode,
    ("collections", "OrderedDict"): ordered, ("collections", "Counter"): counter, ("builtins", "set"): set_of,
    ("builtins", "complex"): _complex,
    ("builtins", "bytearray"): _bytearray,
}
CLASSES.update((function, key) for key, function in reversed(CALLABLE.items()) if key[0].startswith("torch._"))
VALUES: dict[tuple[str, str], Any] = {**STORAGE_TYPES, ("torch", "Tensor"): Tensor,
                                      ("torch.nn.parameter", "Parameter"): Parameter,
                                      ("torch.nn", "Parameter"): Parameter,
                                      **{tuple(name.rsplit(".", 1)): kind for name, kind in TYPES.items()},
                                      **{("torch", name): value for name, value in DTYPES.items()
                                         if not name.startswith("_")}}
# PyTorch's names in trusted files, and their replacements.
ALLOWED: dict[tuple[str, str], Any] = {key: f for key, f in CALLABLE.items()
                                       if key[0].startswith(("torch._", "torch.serialization"))} | {
    **STORAGE_TYPES, ("torch._tensor", "_rebuild_from_type_v2"): of_any_type}


def module_of(module: str, name: str) -> Any:
    """Return this package's class or function for PyTorch's (module, name); None if the module is not PyTorch's."""
    if module != "torch" and not module.startswith("torch."):
        return None
    if (module, name) in ALLOWED:
        return ALLOWED[module, name]
    if module == "torch" and name in DTYPES:
        return DTYPES[name]
    if (module, name) == CLASSES[Generator]:
        return Generator
    if reason := missing(module, name):
        raise UnpicklingError(reason)
    found: Any = import_module(f"{PACKAGE}{module.removeprefix('torch')}")
    for part in name.split("."):
        found = getattr(found, part)
    return found
