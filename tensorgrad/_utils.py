"""Functions and classes that pickles and packages import from torch._utils."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from importlib import import_module
from typing import Any

from .cuda import current_device, device_count, is_available
from .dtype import dtype as _dtype
from .nn.parallel._errors import ExceptionWrapper, KeyErrorMessage
from .nn.parameter import _rebuild_parameter, _rebuild_parameter_with_state
from .serialization._rebuild import _meta_tensor as _rebuild_meta_tensor_no_storage
from .serialization._rebuild import _nested as _rebuild_nested_tensor
from .serialization._rebuild import _sparse as _rebuild_sparse_csr_tensor
from .serialization._rebuild import _sparse as _rebuild_sparse_tensor
from .serialization._rebuild import _tensor as _rebuild_tensor
from .serialization._rebuild import _tensor_v2 as _rebuild_tensor_v2
from .serialization._rebuild import _tensor_v3 as _rebuild_tensor_v3
from .serialization._rebuild import _wrapper as _rebuild_wrapper_subclass

__all__ = ["ExceptionWrapper", "KeyErrorMessage", "_element_size", "_flatten_dense_tensors",
           "_rebuild_meta_tensor_no_storage", "_rebuild_nested_tensor", "_rebuild_parameter",
           "_rebuild_parameter_with_state", "_rebuild_sparse_csr_tensor", "_rebuild_sparse_tensor", "_rebuild_tensor",
           "_rebuild_tensor_v2", "_rebuild_tensor_v3", "_rebuild_wrapper_subclass", "_unflatten_dense_tensors"]


def __getattr__(name: str) -> Any:
    """Return the package as `torch`: pickles of PyTorch name memory formats by way of this module's import of it."""
    if name == "torch":
        return import_module(__package__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _flatten_dense_tensors(tensors):
    """Concatenate all elements to one vector."""
    from .api import FUNCTIONS
    return FUNCTIONS["cat"]([t.contiguous().view(-1) for t in tensors], dim=0)


def _unflatten_dense_tensors(flat, tensors):
    """Pieces of a vector in the shapes of tensors."""
    pieces, offset = [], 0
    for t in tensors:
        pieces.append(flat.narrow(0, offset, t.numel()).view(t.shape))
        offset += t.numel()
    return tuple(pieces)


def _take_tensors(tensors: Any, size_limit: int) -> Iterator[Any]:
    """Yield lists of tensors of one type, of no more than `size_limit` bytes each where more than one tensor is in
    them: a list when it is full, and what is left at the end.
    """
    waiting: dict[str, tuple[list[Any], int]] = {}
    for tensor in tensors:
        chunk, size = waiting.get(tensor.type(), ([], 0))
        more = tensor.numel() * tensor.element_size()
        if chunk and size + more > size_limit:
            yield chunk
            chunk, size = [], 0
        waiting[tensor.type()] = [*chunk, tensor], size + more
    yield from (chunk for chunk, _ in waiting.values())


def _reorder_tensors_as(tensors: Any, ordered_tensors: Any) -> tuple[Any, ...]:
    """Return tensors, which are sorted by their type, in the order of the types of others."""
    by_type: dict[str, list[Any]] = {}
    for tensor in tensors:
        by_type.setdefault(tensor.type(), []).append(tensor)
    following = {kind: iter(found) for kind, found in by_type.items()}
    return tuple(next(following[tensor.type()]) for tensor in ordered_tensors)


def _element_size(dtype: Any) -> int:
    """Return the bytes of an element of a dtype."""
    if not isinstance(dtype, _dtype):
        raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
    return dtype.itemsize


def _handle_complex(tensor: Any) -> Any:
    """Return complex numbers as pairs of real ones, other tensors as they are."""
    from .api import FUNCTIONS
    return FUNCTIONS["view_as_real"](tensor) if tensor.is_complex() else tensor


# ── devices ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int | None:
    """Return the number of a device, −1 for the CPU; with `optional`, the current device if it has no number, None if
    there is no GPU.
    """
    from .device import device as kind
    if isinstance(device, str):
        device = kind(device)
    index = None
    if isinstance(device, kind):
        if device.type == "cpu" and not allow_cpu:
            raise ValueError(f"Expected a non cpu device, but got: {device}")
        index = -1 if device.type == "cpu" else device.index
    if isinstance(device, int):
        index = device
    if index is None and optional:
        return _get_current_device_index()
    if index is None:
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
    return index


def _get_available_device_type() -> str | None:
    """Return "cuda" if there is a GPU."""
    return "cuda" if is_available() else None


def _get_device_attr(get_member: Callable[[Any], Any]) -> Any:
    """Return what a function finds in the module of the available kind of device; None if there is no GPU."""
    return get_member(import_module(".cuda", __package__)) if is_available() else None


def _get_current_device_index() -> int | None:
    return current_device() if is_available() else None


def _get_all_device_indices() -> list[int] | None:
    return list(range(device_count())) if is_available() else None


def _get_device_module(device_type: str) -> Any:
    """Return the module of a kind of device, such as `torch.cuda`."""
    try:
        return import_module(f".{device_type}", __package__)
    except ImportError:
        raise RuntimeError(f"Device '{device_type}' does not have a corresponding module registered as "
                           f"'torch.{device_type}'.") from None


# ── names ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


class classproperty:
    """A property of a class: `get` is called with the class.

    >>> class Named:
    ...     label = classproperty(lambda cls: cls.__name__)
    >>> Named.label
    'Named'
    """

    def __init__(self, get: Callable[[Any], Any]) -> None:
        self.get = get

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self.get(type(instance) if owner is None else owner)


def _import_dotted_name(name: str) -> Any:
    """Return the object of a name such as "torch.nn.Linear", of which the first part is a module."""
    top, *rest = name.split(".")
    return reduce(getattr, rest, import_module(top))


def is_compiling() -> bool:
    """Return True while `torch.compile` or `torch.export` traces a program."""
    from .compiler.state import state
    return state.trace is not None or state.exporting


def _is_privateuse1_backend_available():
    """Return False: no package has brought a backend for the device type that PyTorch leaves to others."""
    return False
