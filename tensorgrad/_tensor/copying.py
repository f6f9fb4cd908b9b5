"""Copies of tensors, pickling, and exchange with other libraries.

A deep copy keeps strides, and which tensors share memory.
"""
from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np

from .. import dtype as dtypes
from ..core import dispatch
from ..core.class_hooks import is_own
from ..core.tape import Leaf, new
from ..ops.base import OPS
from ..storage.base import backend_of
from . import sparse_copying
from .states import restore, slots_in, state_of

# the latest version that NumPy supports
DLPACK = (1, 0) if np.lib.NumpyVersion(np.__version__) >= "2.1.0" else (0, 8)


def made(cls: Any, array: Any, storage: Any, requires_grad: bool, state: Any = None) -> Any:
    """Return a leaf of this class, with the state that `state_of` returned."""
    out = new(cls)
    out.array, out._storage, out._node, out._grad, out.origin = array, storage, None, None, None
    if requires_grad:
        out._node = Leaf(out)
    if state:
        restore(out, state)
    return out


def warn_if_has_hooks(tensor: Any) -> None:
    """Warn of the hooks of a tensor, which are not saved with it."""
    hooks = getattr(tensor._node, "hooks", None)
    for hook in [] if hooks is None else hooks.tensor.values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can "
                          "decorate the function with @torch.utils.hooks.unserializable_hook to suppress this warning",
                          stacklevel=2)


def shallow(tensor: Any) -> Any:
    """Return another tensor that shares the memory."""
    storage = tensor._storage
    if storage.memory is None:
        storage.memory = tensor.array
    return made(type(tensor), tensor.array, storage, tensor.requires_grad, state_of(tensor, ()))


def deep(tensor: Any, memo: dict[int, Any]) -> Any:
    """Return a copy of a leaf with its own memory, gradient and attributes."""
    if id(tensor) in memo:
        return memo[id(tensor)]
    if not tensor.is_leaf:
        raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol "
                           "at the moment.  If you were attempting to deepcopy a module, this may be because of a "
                           "torch.nn.utils.weight_norm usage, see https://github.com/pytorch/pytorch/pull/103001")
    out = (_copied_by_class(tensor, memo) if is_own(tensor) and tensor._storage.hollow else
           made(type(tensor), *copied_memory(tensor, memo), tensor.requires_grad))
    memo[id(tensor)] = out
    if tensor._grad is not None:
        out._grad = copy.deepcopy(tensor._grad, memo)
    if tensor.__dict__:
        out.__dict__.update(copy.deepcopy(tensor.__dict__, memo))
    for name, value in slots_in(tensor).items():
        setattr(out, name, copy.deepcopy(value, memo))
    return out


def _copied_by_class(tensor: Any, memo: dict[int, Any]) -> Any:
    """Return a copy of a wrapper subclass, which copies what it holds in `clone`."""
    out = tensor.detach().clone()
    if type(out) is not type(tensor):
        raise RuntimeError("The default implementation of __deepcopy__() for wrapper subclasses only works for "
                           "subclass types that properly implement clone() such that it returns an instance of the "
                           "same type. Either properly implement clone() for your subclass or override __deepcopy__().")
    if tensor.requires_grad:
        out._node = Leaf(out)
    return out


def copied_memory(tensor: Any, memo: dict[int, Any]) -> tuple[Any, Any]:
    """The array copied, and its storage; a block that several tensors share is copied once for all of them."""
    storage, memory = tensor._storage, tensor._storage.memory
    if storage.dense is not None:
        return tensor.array.copy(), type(storage)()
    if memory is None or not memory.size or not (memory.flags.c_contiguous or memory.flags.f_contiguous):
        return tensor.array.copy(order="K"), type(storage)()
    if id(storage) not in memo:
        memo[id(storage)] = copied = type(storage)()
        copied.memory = memory.copy(order="K")
    copied = memo[id(storage)]
    view = {"size": tensor.array.shape, "stride": tensor.stride(), "offset": tensor.storage_offset(), "layout": None,
            "length": memory.size}
    return OPS["as_strided"].kernels[type(storage)](copied.memory, **view), copied


def reduced(tensor: Any) -> Any:
    """Return what pickle writes for a tensor: its values on the host, ordered by their strides."""
    state = state_of(tensor)
    # None is Tensor itself, which is `torch.Tensor` at times
    kind = None if type(tensor) is dispatch.Tensor else type(tensor)
    if tensor._storage.dense is not None:
        return sparse_copying.reduced(tensor, state)
    if is_own(tensor) and tensor._storage.hollow:
        return rebuild_wrapper, (type(tensor), tensor.array.shape, tensor.stride(), tensor.dtype.name,
                                 str(tensor.device), tensor.requires_grad, state)
    if tensor.is_meta:
        layout = tensor.array.shape, tensor.array.strides
        return rebuild_meta, (kind, *layout, tensor.dtype.name, tensor.requires_grad, state)
    host = type(tensor._storage).host(tensor.detach().array)
    axes = tuple(sorted(range(host.ndim), key=lambda i: -host.strides[i]))
    values = np.ascontiguousarray(host.transpose(axes)).reshape([host.shape[i] for i in axes])
    if values.dtype.kind == "V":
        values = values.view(f"u{values.itemsize}")
    return rebuild, (kind, values, axes, tensor.dtype.name, str(tensor.device), tensor.requires_grad,
                     state)


def rebuild(cls: Any, values: Any, axes: tuple[int, ...], dtype_name: str, device: str, requires_grad: bool,
            state: Any) -> Any:
    """Make a pickled tensor again."""
    backend = backend_of(device)
    values = values.view(dtypes.NAMED[dtype_name].numpy).transpose([axes.index(i) for i in range(len(axes))])
    return made(cls or dispatch.Tensor, backend.asarray(values), backend(), requires_grad, state)


def rebuild_meta(cls: Any, shape: Any, strides: Any, dtype_name: str, requires_grad: bool, state: Any) -> Any:
    """Make a pickled tensor of the device "meta" again."""
    backend = backend_of("meta")
    array = backend.array_type(shape, dtypes.NAMED[dtype_name].numpy, strides)
    return made(cls or dispatch.Tensor, array, backend(), requires_grad, state)


def rebuild_wrapper(cls: Any, shape: Any, strides: Any, dtype_name: str, device: str, requires_grad: bool,
                    state: Any) -> Any:
    """Make a pickled wrapper subclass again."""
    out = dispatch.Tensor._make_wrapper_subclass(cls, shape, strides, dtype=dtypes.NAMED[dtype_name], device=device,
                                                 requires_grad=requires_grad)
    restore(out, state)
    return out


def capsule(tensor: Any, stream: Any, max_version: Any, dl_device: Any, copy: Any) -> Any:
    """The tensor's memory as a DLPack capsule, for another library."""
    if tensor.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if tensor.is_meta:
        raise BufferError("Cannot pack tensors on meta")
    if stream is not None and type(stream) is not int:
        raise TypeError("stream must be ``int`` or ``none``")
    if dl_device is not None and not isinstance(dl_device, tuple):
        raise TypeError(f"_to_dlpack(): argument 'dl_device' must be tuple of ints, not {type(dl_device).__name__}")
    if dl_device is not None and tuple(map(int, dl_device)) != tuple(map(int, tensor.__dlpack_device__())):
        place = f"cuda:{int(dl_device[1])}" if int(dl_device[0]) == 2 else "cpu"
        if copy is False:
            raise ValueError(f"cannot move (i.e. copy=False) tensor from {tensor.device} to {place} without copying.")
        return tensor.to(place).__dlpack__(max_version=max_version)
    if tensor.device.type == "cuda":
        return (tensor.array.copy() if copy else tensor.array).__dlpack__(**{} if stream in (None, -1)
                                                                          else {"stream": stream})
    if stream not in (None, -1):
        raise AssertionError("stream should be None on cpu.")
    options = {} if max_version is None or max_version[0] < 1 or DLPACK[0] < 1 else {"max_version": max_version}
    if tensor.array.dtype.kind == "V":
        from .dlpack import exported
        dispatch.shared(tensor).hand_out()
        return exported(tensor.array.copy() if copy else tensor.array, tensor.dtype, **options)
    return (tensor.numpy().copy() if copy else tensor.numpy()).__dlpack__(**options)
