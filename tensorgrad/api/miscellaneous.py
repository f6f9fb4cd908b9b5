"""Methods that programs seldom need, some of them kept from the early days.

https://pytorch.org/docs/stable/tensors.html
"""
from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from .. import dtype as dtypes
from .._tensor import Tensor
from .._tensor.states import HOOKS
from ..core.node import HookDict, Hooks
from ..core.tape import node_of
from ..device import device as torch_device
from ..dtype import FROM_NUMPY
from ..messages.warn_once import warn
from ._arguments import check_tensor, integer, normalize_dim
from ._kinds import Device, Dtype, Ints1, MemoryFormat
from ._register import public
from .activation import check_floating
from .conversion import copy_, refuse_grad
from .creation import empty, empty_like, from_numpy, ones_like
from .norms import norm


@public(method=False)
def detach(input: Tensor) -> Tensor:
    """Return a leaf that shares the memory, without history. https://pytorch.org/docs → torch.detach"""
    check_tensor(input, "detach", "input", 1)
    return input.detach()


@public(method=False)
def get_device(input: Tensor) -> int:
    """The index of the CUDA device, −1 on the CPU. https://pytorch.org/docs → torch.Tensor.get_device"""
    check_tensor(input, "get_device", "input", 1)
    return input.get_device()  # type: ignore[no-any-return]


@public(method=False)
def is_signed(input: Tensor) -> bool:
    """Return True if the dtype has negative numbers. https://pytorch.org/docs → torch.Tensor.is_signed"""
    check_tensor(input, "is_signed", "input", 1)
    return input.is_signed()  # type: ignore[no-any-return]


@public(method=False)
def is_inference(input: Tensor) -> bool:
    """Return True if the tensor was made in inference mode. https://pytorch.org/docs → torch.Tensor.is_inference"""
    check_tensor(input, "is_inference", "input", 1)
    return input.is_inference()  # type: ignore[no-any-return]


@public()
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Return True if two tensors have equal shapes.

    >>> import tensorgrad as torch
    >>> torch.ones(2).is_same_size(torch.ones(2, 1))
    False
    """
    check_tensor(other, "is_same_size", "other", 1)
    return bool(input.array.shape == other.array.shape)


@public(function=False)
def dim_order(self: Tensor, *, ambiguity_check: bool | Sequence[MemoryFormat] = False) -> tuple[int, ...]:
    """The axes from the one with the longest steps in memory to the one with the shortest.

    https://pytorch.org/docs → torch.Tensor.dim_order

    RuntimeError if that is not unique and `ambiguity_check` asks for it: True, or a list of memory formats of which
    exactly one has to fit.

    >>> import tensorgrad as torch
    >>> torch.ones(2, 3).T.dim_order()
    (1, 0)
    """
    formats = ambiguity_check if isinstance(ambiguity_check, list) else []
    if not isinstance(ambiguity_check, (bool, list)) or not all(isinstance(f, dtypes.memory_format) for f in formats):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    shape, strides = self.array.shape, self.stride()
    unclear = any(n == 1 for n in shape) or len(set(strides)) < len(strides)
    fitting = [f for f in formats if self.is_contiguous(memory_format=f)]
    if (ambiguity_check is True and unclear) or (formats and len(fitting) != 1 and unclear):
        raise RuntimeError("The tensor does not have unique dim order, or cannot map to exact one of the given memory "
                           "formats.")
    if fitting and unclear:
        return (0, *range(2, len(shape)), 1) if fitting[0] is not dtypes.contiguous_format else tuple(range(len(shape)))
    # expanded axes stay where they are
    steps = [s or (strides[i + 1] * shape[i + 1] if i + 1 < len(shape) else 0) for i, s in enumerate(strides)]
    return tuple(sorted(range(len(shape)), key=lambda i: (-steps[i], i)))


def _grad_dtype(self: Tensor) -> Any:
    """The dtype that the gradient of this leaf is to have; None: any."""
    if not self.is_leaf:
        raise RuntimeError("grad_dtype can only be accessed on leaf tensors.")
    return self.__dict__.get("_grad_dtype", self.dtype)


def _set_grad_dtype(self: Tensor, value: Any) -> None:
    if not self.is_leaf:
        raise RuntimeError("grad_dtype can only be set on leaf tensors.")
    if value is not None and not isinstance(value, dtypes.dtype):
        raise RuntimeError(f"grad_dtype must be a torch.dtype or None, but got {type(value).__name__}")
    self.__dict__["_grad_dtype"] = value
    if self._node is not None:
        self._node.dtype = (value or self.dtype).numpy


Tensor.grad_dtype = property(_grad_dtype, _set_grad_dtype)  # type: ignore[attr-defined]


def _hooks_of(self: Tensor) -> Any:
    """Return the node's hooks, or those kept for the time when the tensor requires grad again."""
    return self._node.hooks if self._node is not None and self.requires_grad else self.__dict__.get(HOOKS)


def _backward_hooks(self: Tensor) -> Any:
    """The hooks of `register_hook`, by number, as a copy; None if there are none."""
    hooks = _hooks_of(self)
    return None if hooks is None else OrderedDict(hooks.tensor)


def _set_backward_hooks(self: Tensor, value: Any) -> None:
    if value is not None and not isinstance(value, dict):
        raise RuntimeError("_backward_hooks has to be a dict of hooks, or None")
    hooks = _hooks_of(self)
    if hooks is None and value is not None:
        hooks = Hooks()
        if self.requires_grad:
            node_of(self).hooks = hooks
        else:
            self.__dict__[HOOKS] = hooks
    if hooks is not None:
        hooks.tensor = HookDict(value or {})


def _refuse_deletion(message: str) -> Any:
    def refuse(self: Tensor) -> None:
        raise RuntimeError(message)
    return refuse


def _set_grad_fn(self: Tensor, value: Any) -> None:
    if value is not None:
        raise RuntimeError("_grad_fn can be only set to None")
    self.detach_()


Tensor._backward_hooks = property(  # type: ignore[attr-defined]
    _backward_hooks, _set_backward_hooks, _refuse_deletion("Deletion of _backwards_hooks not allowed!"))
Tensor._grad_fn = property(  # type: ignore[attr-defined]
    lambda self: self.grad_fn, _set_grad_fn,
    _refuse_deletion("Deletion of _grad_fn not allowed. Detach tensor instead!"), "`grad_fn`, which None detaches.")


def _volatile(self: Tensor) -> bool:
    """Return False, with a warning: PyTorch 0.3 had inputs whose graph was not recorded."""
    warnings.warn("volatile was removed (Variable.volatile is always False)", stacklevel=2)
    return False


def _set_volatile(self: Tensor, value: Any) -> None:
    warnings.warn("volatile was removed and now has no effect. Use `with torch.no_grad():` instead.", stacklevel=2)


def _cuda_array_interface(self: Tensor) -> Any:
    """The array on a CUDA device, as other libraries read it: CuPy's description.

    Errors: AttributeError for tensors of other devices and for sparse ones, RuntimeError if a gradient is required
    """
    if self.device.type != "cuda" or self.is_sparse:
        kind, advice = (("sparse", "Use Tensor.to_dense() to convert to a dense tensor first.")
                        if self.device.type == "cuda" else
                        ("non-CUDA", "If CUDA data is required use tensor.cuda() to copy tensor to device memory."))
        raise AttributeError(f"Can't get __cuda_array_interface__ on {kind} tensor type: {self.type()} {advice}")
    if self.requires_grad:
        raise RuntimeError("Can't get __cuda_array_interface__ on Variable that requires grad. If gradients aren't "
                           "required, use var.detach() to get Variable that doesn't require grad.")
    return self.array.__cuda_array_interface__


# identifies the tensor among those that exist
Tensor._cdata = property(lambda self: id(self))  # type: ignore[attr-defined]
Tensor.volatile = property(_volatile, _set_volatile)  # type: ignore[attr-defined]
Tensor.__cuda_array_interface__ = property(_cuda_array_interface)  # type: ignore[attr-defined]


def _names(self: Tensor) -> list[str]:
    """The names of attributes, without those that only tensors on a GPU have."""
    names = set(object.__dir__(self))
    return sorted(names if self.device.type == "cuda" else names - {"__cuda_array_interface__"})


Tensor.__dir__ = _names  # type: ignore[method-assign]
Tensor.const_data_ptr = Tensor.data_ptr  # type: ignore[attr-defined]
Tensor.__long__, Tensor.__nonzero__ = Tensor.__int__, Tensor.__bool__  # type: ignore[attr-defined]


@public()
def dequantize(input: Tensor) -> Tensor:
    """The values in float32. PyTorch has tensors of quantized values, for which this is made.

    https://pytorch.org/docs → torch.dequantize

    >>> import tensorgrad as torch
    >>> torch.dequantize(torch.tensor([1, 2]))
    tensor([1., 2.])
    """
    check_tensor(input, "dequantize", "input", 1)
    return input.to(dtypes.float32)


@public(function=False)
def hash_tensor(input: Tensor, dim: Any = (), *, keepdim: bool = False, mode: int = 0) -> Tensor:
    """`torch.hash_tensor` of this tensor. https://pytorch.org/docs → torch.hash_tensor"""
    from . import hashing
    return hashing.hash_tensor(input, dim, keepdim=keepdim, mode=mode)


def _casts(x: Tensor, cuda_enabled: bool, cpu_enabled: bool) -> bool:
    return x.is_floating_point() and (x.is_cuda and cuda_enabled or x.is_cpu and cpu_enabled)


@public(function=False)
def _autocast_to_full_precision(input: Tensor, cuda_enabled: bool, cpu_enabled: bool) -> Tensor:
    """A half in float32 where autocast is on for its device; all else as it is."""
    halves = (dtypes.float16, dtypes.bfloat16)
    return input.to(dtypes.float32) if _casts(input, cuda_enabled, cpu_enabled) and input.dtype in halves else input


@public(function=False)
def _autocast_to_reduced_precision(input: Tensor, cuda_enabled: bool, cpu_enabled: bool, cuda_dtype: Dtype,
                                   cpu_dtype: Dtype) -> Tensor:
    """A float32 in the device's dtype of autocast where this is on; all else as it is."""
    if not _casts(input, cuda_enabled, cpu_enabled) or input.dtype is not dtypes.float32:
        return input
    return input.to(cuda_dtype if input.is_cuda else cpu_dtype)


def _mover(kind: str) -> None:
    def move(input: Tensor, device: Device | None = None, non_blocking: bool = False, *,
             memory_format: MemoryFormat | None = None) -> Tensor:
        target = torch_device(kind, device) if isinstance(device, int) else torch_device(device or kind)
        return input.to(target, non_blocking=non_blocking, memory_format=memory_format)
    move.__name__ = move.__qualname__ = kind
    move.__doc__ = f"The tensor on a device of type {kind!r}; none is here: PyTorch's error for a missing one."
    public(function=False)(move)


for _kind in ("ipu", "mtia", "xpu"):
    _mover(_kind)


@public(function=False)
def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[..., Any]) -> Tensor:
    """Replace each element by a Python function of it and elements of two other tensors: slow.

    https://pytorch.org/docs → torch.Tensor.map_
    """
    refuse_grad("map2_", self, x, y)
    for name, other in (("x", x), ("y", y)):
        if other.array.dtype != self.array.dtype:
            raise TypeError(f"map2_: expected {self.type()} for argument '{name}' (got {other.type()})")
    columns = (t.detach().expand_as(self).reshape(-1).tolist() for t in (self, x, y))
    return copy_(self,
                 self.new_tensor([callable(*values) for values in zip(*columns, strict=True)]).reshape(self.shape))


@public(function=False)
def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """Return the tensor that `Module.load_state_dict` stores in place of this one.

    https://pytorch.org/docs → torch.Tensor.module_load
    """
    return other.detach() if assign else self.copy_(other).detach()


@public(function=False)
def record_stream(self: Tensor, stream: Any) -> None:
    """Keep the memory until the work of a CUDA stream is done: CuPy's memory pool sees to that.

    https://pytorch.org/docs → torch.Tensor.record_stream
    """
    if not hasattr(stream, "synchronize"):
        raise RuntimeError("unknown parameter type")


@public(name="_lazy_clone")
def lazy_clone(input: Tensor) -> Tensor:
    """A copy that shares the input's memory until one of both is written to (torch._lazy_clone).

    Input: any tensor; memory that NumPy or another process can reach is copied at once
    Output: the input's shape, strides and dtype

    >>> import tensorgrad as torch
    >>> x = torch.tensor([1., 2.])
    >>> y = torch._lazy_clone(x)
    >>> x.add_(1), y
    (tensor([2., 3.]), tensor([1., 2.]))
    """
    from ..core.lazy_copies import lazy_clone
    return lazy_clone(input)  # type: ignore[no-any-return]


# ── NumPy's functions on tensors ──────────────────────────────────────────────────────────────────────────────────────


def _array_wrap(self: Tensor, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
    """Convert the result of a NumPy function of this tensor to a tensor."""
    return from_numpy(array.astype("uint8") if array.dtype == "bool" else array)


Tensor.__array_wrap__ = _array_wrap  # type: ignore[attr-defined]


# ── the array API standard ────────────────────────────────────────────────────────────────────────────────────────────


VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")


def _array_namespace(self: Tensor, *, api_version: str | None = None) -> Any:
    """The namespace of the array API standard. https://data-apis.org/array-api/2024.12/

    >>> import tensorgrad as torch
    >>> torch.ones(2).__array_namespace__().__array_api_version__
    '2024.12'
    """
    if api_version not in (None, *VERSIONS):
        raise ValueError(f"unrecognized version of the array API standard: {api_version!r}; known are "
                         f"{', '.join(VERSIONS)}")
    from .. import array_api
    return array_api


def _to_device(self: Tensor, device: Device, /, *, stream: Any = None) -> Tensor:
    """`to`, as the standard calls it."""
    if stream is not None:
        raise ValueError("The stream argument to to_device() is not supported")
    return self.to(device)


Tensor.__array_namespace__, Tensor.to_device = _array_namespace, _to_device  # type: ignore[attr-defined]


def offer_standard(wanted: bool) -> None:
    """Give Tensor the method by which packages find the array API standard, or take it away.

    PyTorch's Tensor has none: packages convert it to NumPy's arrays, or know it by its class.
    """
    if wanted:
        Tensor.__array_namespace__ = _array_namespace           # type: ignore[attr-defined]
    elif hasattr(Tensor, "__array_namespace__"):
        del Tensor.__array_namespace__


# ── from the early days ───────────────────────────────────────────────────────────────────────────────────────────────


@public(function=False)
def new(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Return a tensor of this dtype and device: sizes give uninitialized memory, a list or array its values."""
    from .tensor_types import constructed
    if self._storage.dense is not None:
        from .sparse import new_sparse
        return new_sparse(self, args)  # type: ignore[no-any-return]
    return constructed(FROM_NUMPY[self.array.dtype], self._storage.__class__, args, kwargs, "new")


@public(function=False)
def resize(self: Tensor, *sizes: Ints1) -> Tensor:
    """`reshape` by an older name."""
    warn("non-inplace resize is deprecated", again=True)
    wanted = empty(*sizes).shape
    if wanted.numel() != self.array.size:
        raise RuntimeError(f"requested resize to {' x '.join(map(str, wanted))} ({wanted.numel()} elements in total), "
                           f"but the given tensor has a size of {'x'.join(map(str, self.array.shape))} "
                           f"({self.array.size} elements). autograd's resize can only change the shape of a given "
                           f"tensor, while preserving the number of elements. ")
    return self.reshape(wanted)


@public(function=False)
def resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """`reshape` to the shape of another tensor, by an older name."""
    warn("non-inplace resize_as is deprecated", again=True)
    return self.reshape(tensor.array.shape)


@public(function=False)
def reinforce(self: Tensor, reward: Any) -> None:
    """Raise RuntimeError that names the replacement."""
    raise RuntimeError("reinforce() was removed.\nUse torch.distributions instead: add -m.log_prob(action) * reward of "
                       "a distribution m to the loss.")


@public(method=False)
def is_storage(obj: object, /) -> bool:
    """Return True if the object is a tensor's storage. https://pytorch.org/docs → torch.is_storage"""
    return type(obj).__name__ in ("UntypedStorage", "TypedStorage") and not isinstance(obj, Tensor)


@public(method=False)
def to_dlpack(tensor: Tensor) -> Any:
    """The tensor's memory as a DLPack capsule, for other libraries.

    https://pytorch.org/docs → torch.utils.dlpack.to_dlpack
    """
    return tensor.detach().__dlpack__()


# ── functions that PyTorch's own composites are made of ───────────────────────────────────────────────────────────────


@public(method=False, out=True)
def frobenius_norm(input: Tensor, dim: Ints1, keepdim: bool = False) -> Tensor:
    """√Σ |x|² over axes. https://pytorch.org/docs → torch.linalg.matrix_norm"""
    _warn_of_norm("frobenius_norm", "vector_norm(A, 2., dim, keepdim)")
    return norm(input, "fro", (int(dim),) if isinstance(dim, Tensor) and dim.array.dtype.kind in "iu" else dim, keepdim)


@public(method=False, out=True)
def nuclear_norm(input: Tensor, dim: Ints1 | None = None, keepdim: bool = False) -> Tensor:
    """The sum of the singular values. https://pytorch.org/docs → torch.linalg.matrix_norm"""
    _warn_of_norm("nuclear_norm", "matrix_norm(A, 'nuc', dim, keepdim)")
    if isinstance(dim, int) and not isinstance(dim, bool):
        dim = (dim, dim)            # one number for both axes
    if isinstance(dim, bool):       # the first of two signatures: (input, keepdim)
        dim, keepdim = None, dim
    return norm(input, "nuc", (-2, -1) if dim is None else dim, keepdim)


def _warn_of_norm(name: str, successor: str) -> None:
    warnings.warn(f"at::{name} is deprecated and it is just left for JIT compatibility. It will be removed in a future "
                  f"PyTorch release. Please use `linalg.{successor}` instead", UserWarning, stacklevel=3)


@public(method=False)
def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """Norms over all axes but one, kept with length 1; over all axes for dim = −1. Used by weight normalization."""
    pow = integer(pow, "pow")
    if dim == -1:
        return norm(v, pow)
    if not v.array.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    dim = normalize_dim(dim, v.array.ndim)
    if not v.array.size:
        v.reshape(v.array.shape[dim], -1)       # raises PyTorch's error for an ambiguous -1
    return norm(v, pow, [d for d in range(v.array.ndim) if d != dim], True)


@public(method=False)
def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """`dropout`, and the mask of the elements that are left. https://pytorch.org/docs → torch.nn.functional.dropout"""
    if train is False or p == 0:
        return input.clone(), ones_like(input, dtype=dtypes.bool)
    check_floating(input)
    mask = empty_like(input).bernoulli_(1 - p)
    return input * mask * (0.0 if p == 1 else 1 / (1 - p)), mask.bool()


@public()
def is_distributed(input: Tensor) -> bool:
    """Return False: no tensor is spread over several processes."""
    return False


@public(method=False)
def set_flush_denormal(mode: bool) -> bool:
    """Return False: the processor's switch that flushes denormal numbers to zero is not available here."""
    return False


@public(method=False)
def get_file_path(*path_components: str) -> str:
    """The path of a file of this package."""
    from os.path import dirname, join
    return join(dirname(dirname(__file__)), *path_components)


# Numbers in place of symbolic sizes: only PyTorch's tracer makes symbols of them.


@public(method=False)
def sym_int(a: Any) -> int:
    """Return int(a)."""
    return int(a)


@public(method=False)
def sym_float(a: Any) -> float:
    """Return float(a)."""
    return float(a)


@public(method=False)
def sym_not(a: Any) -> bool:
    """Return not a."""
    return not a


@public(method=False)
def sym_max(a: Any, b: Any) -> Any:
    """The greater of two numbers."""
    return max(a, b)


@public(method=False)
def sym_min(a: Any, b: Any) -> Any:
    """The smaller of two numbers."""
    return min(a, b)


@public(method=False)
def sym_sum(args: Any) -> Any:
    """The sum of numbers."""
    return sum(args)


@public(method=False)
def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """t if b, else f."""
    return t if b else f
