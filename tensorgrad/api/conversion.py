"""Tensors in another dtype or on another device. https://pytorch.org/docs/stable/tensors.html"""
from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from .. import dtype as dtypes
from .._tensor import Tensor
from ..core import inplace as _inplace
from ..core.dispatch import SCALAR_TYPES, apply, move, shared, xp
from ..core.formats import in_channels_last
from ..core.mode import mode
from ..core.tape import Leaf, TensorBase, node_of, renew_leaf
from ..device import device as Device
from ..dtype import FROM_NUMPY, as_dtype
from ..ops.base import OPS
from ..storage.base import backend_of
from ._arguments import C_NAMES, warn
from ._kinds import Dtype, Index, Ints, MemoryFormat, Operand, Storage
from ._register import public
from .shape import channels_last


def cast(input: Any, dtype: dtypes.dtype, copy: bool = False) -> Any:
    """The tensor in another dtype; itself if it has it already."""
    if FROM_NUMPY[input.array.dtype] is dtype:
        return xp.clone(input) if copy else input
    if input.dtype.is_complex and not dtype.is_complex and dtype is not dtypes.bool:
        import warnings
        warnings.warn("Casting complex values to real discards the imaginary part", UserWarning, stacklevel=4)
        input = xp.real(input)
    op = OPS["cast"]
    out = apply(op, input, dtype=dtype.numpy)
    if out._node is not None and dtype.category < dtypes.FLOATING:
        out._node = None
    return out


@public(function=False)
def to(input: Tensor, *args: Any, device: Device | None = None, dtype: Dtype | None = None, non_blocking: bool = False,
       copy: bool = False, memory_format: MemoryFormat | None = None, other: Tensor | None = None,
       inplace: bool = False) -> Tensor:
    """The tensor with another dtype or on another device; itself if nothing changes.

    With `inplace`, which PyTorch does not take, this tensor itself, and its gradient, become so.

    Output: the input's shape
    Errors: RuntimeError for an unknown device, or with inplace for a tensor that has a grad_fn; TypeError for other
        arguments; ImportError for CUDA without CuPy
    https://pytorch.org/docs → torch.Tensor.to

    >>> import tensorgrad as torch
    >>> torch.tensor([1, 2]).to(torch.float64)
    tensor([1., 2.], dtype=torch.float64)
    """
    if inplace:
        return become(input, lambda tensor: to(tensor, *args, device=device, dtype=dtype, copy=copy,
                                               memory_format=memory_format, other=other))
    flags = [a for a in args if isinstance(a, bool)]       # non_blocking, copy
    copy = copy or flags[1:] == [True]
    for a in args:
        if isinstance(a, TensorBase):
            device, dtype = a.device, FROM_NUMPY[a.array.dtype]  # type: ignore[attr-defined]
        elif isinstance(a, dtypes.dtype):
            dtype = a
        elif isinstance(a, (str, Device)) and not (isinstance(a, str) and a in dtypes.NAMED):
            device = a
        elif isinstance(a, int) and not isinstance(a, bool):
            device = Device("cuda", a)
        elif a is not None and not isinstance(a, (bool, dtypes.memory_format)):
            dtype = as_dtype(a)
    out = input
    if device is not None:
        target = backend_of(device)
        if target is not input._storage.__class__ and target.device != input._storage.device:
            out, copy = move(input, target), False
    if dtype is not None:
        out = cast(out, as_dtype(dtype), copy)
        copy = copy and out is input
    if copy and out is input:
        out = xp.clone(input)
    return in_format(out, input, memory_format)


def in_format(out: Any, source: Any, memory_format: Any) -> Any:
    """Return a conversion of `source` in a memory format; without a conversion, the source, which may have gaps."""
    if memory_format in (None, dtypes.preserve_format):
        return out
    if out is source and memory_format is dtypes.contiguous_format and not any(
            out.is_contiguous(memory_format=kind) for kind in (dtypes.channels_last, dtypes.channels_last_3d)):
        return out
    if memory_format in (dtypes.channels_last, dtypes.channels_last_3d):
        return out if in_channels_last(out, 5) else channels_last(out, memory_format)
    if in_channels_last(out, 5):            # `out.contiguous` looks at axes of more than one element only
        return xp.contiguous(out)
    return out.contiguous(memory_format=memory_format)


def become(input: Any, convert: Any) -> Any:
    """Convert a leaf and its gradient in place. Raises RuntimeError for a tensor with a grad_fn."""
    if input.grad_fn is not None:
        raise RuntimeError("a tensor that has a grad_fn cannot change its dtype or device in place: leave out "
                           "inplace=True")
    grad = input.grad
    made = convert(input.detach())
    if made.dtype != input.dtype or made.device != input.device:
        input.data = made
        if grad is not None:
            input.grad = None
            input.grad = convert(grad)
    return input


@public(function=False)
def cpu(input: Tensor, *, memory_format: MemoryFormat | None = None, inplace: bool = False) -> Tensor:
    """The tensor in host memory. https://pytorch.org/docs → torch.Tensor.cpu"""
    return to(input, "cpu", memory_format=memory_format, inplace=inplace)


@public(function=False)
def cuda(input: Tensor, device: Device | None = None, non_blocking: bool = False, *,
         memory_format: MemoryFormat | None = None, inplace: bool = False) -> Tensor:
    """The tensor on a CUDA device: the current one, unless another is named.

    Errors: RuntimeError for another kind of device; ImportError without CuPy
    https://pytorch.org/docs → torch.Tensor.cuda
    """
    target = Device("cuda", device) if isinstance(device, int) else Device("cuda" if device is None else device)
    if target.type != "cuda":
        raise RuntimeError("Invalid device, must be cuda device")
    return to(input, target, memory_format=memory_format, inplace=inplace)


def _caster(name: str, dtype: dtypes.dtype) -> None:
    def method(input: Tensor, *, memory_format: MemoryFormat | None = None, inplace: bool = False) -> Tensor:
        if inplace:
            return become(input, lambda tensor: cast(tensor, dtype))
        out = cast(input, dtype)
        return in_format(out, input, memory_format)
    method.__name__ = method.__qualname__ = name
    method.__doc__ = (f"The tensor in {dtype}; itself if it is that already.\n\nOutput: the input's shape\n"
                      "Errors: RuntimeError with inplace for a tensor that has a grad_fn\n"
                      f"https://pytorch.org/docs → torch.Tensor.{name}")
    public(function=False)(method)


for _name, _dtype in {"float": dtypes.float32, "double": dtypes.float64, "half": dtypes.float16,
                      "bfloat16": dtypes.bfloat16,
                      "long": dtypes.int64, "int": dtypes.int32, "short": dtypes.int16, "char": dtypes.int8,
                      "byte": dtypes.uint8, "bool": dtypes.bool, "chalf": dtypes.complex32,
                      "cfloat": dtypes.complex64,
                      "cdouble": dtypes.complex128}.items():
    _caster(_name, _dtype)


@public(function=False)
def type_as(input: Tensor, other: Tensor) -> Tensor:
    """The tensor in the dtype and on the device of another.

    Output: the input's shape
    Errors: TypeError if other is not a tensor
    https://pytorch.org/docs → torch.Tensor.type_as

    >>> import tensorgrad as torch
    >>> torch.tensor([1, 2]).type_as(torch.zeros(1))
    tensor([1., 2.])
    """
    return to(input, other)


LEGACY_TYPES = {f"torch.{SCALAR_TYPES[d.name]}Tensor": d for d in dtypes.ALL} | {"torch.ByteTensor": dtypes.uint8}


@public(function=False)
def type(input: Tensor, dtype: Dtype | None = None, non_blocking: bool = False, **kwargs: Any) -> Tensor | str:
    """The name of the tensor's type, or the tensor in another.

    Output: a string without a dtype, else the input's shape
    Errors: ValueError for an unknown name; TypeError for an object that is neither name, dtype nor type
    https://pytorch.org/docs → torch.Tensor.type

    >>> import tensorgrad as torch
    >>> torch.zeros(1).type(), torch.zeros(1).type("torch.LongTensor")
    ('torch.FloatTensor', tensor([0]))
    """
    if dtype is None:
        name = f"{SCALAR_TYPES[FROM_NUMPY[input.array.dtype].name]}Tensor"
        if input.is_sparse:
            return f"torch.{'cuda.' if input.is_cuda else ''}sparse.{name}"
        return f"torch.{'cuda.' if input.is_cuda else 'meta.' if input.is_meta else ''}{name}"
    memory_format = kwargs.get("memory_format")
    if isinstance(dtype, dtypes.dtype):
        return in_format(cast(input, dtype), input, memory_format)
    if not isinstance(dtype, (str, object.__class__)):
        raise TypeError("dtype must be a type, str, or dtype object")
    name = (dtype if isinstance(dtype, str) else "torch.Tensor" if dtype is Tensor
            else f"{dtype.__module__}.{dtype.__qualname__}")
    kind = name.replace("torch.cuda.", "torch.").replace("torch.sparse.", "torch.")
    cuda = name.startswith("torch.cuda.")
    if kind not in LEGACY_TYPES and name != "torch.Tensor":
        raise ValueError(f"invalid type: '{dtype if isinstance(dtype, str) else dtype.__name__}'")
    out = in_format(cast(input, LEGACY_TYPES.get(kind) or dtypes.get_default_dtype()), input, memory_format)
    return out if out.is_cuda == cuda else out.cuda() if cuda else out.cpu()


@public(method=False)
def is_tensor(obj: object) -> bool:
    """Return True if the object is a Tensor. https://pytorch.org/docs → torch.is_tensor"""
    return isinstance(obj, Tensor)


@public(method=False)
def is_floating_point(input: Tensor) -> bool:
    """Return True if the dtype is a floating point dtype.

    Errors: TypeError if the input is not a tensor
    https://pytorch.org/docs → torch.is_floating_point

    >>> import tensorgrad as torch
    >>> torch.is_floating_point(torch.zeros(1)), torch.is_floating_point(torch.zeros(1, dtype=torch.int32))
    (True, False)
    """
    return input.dtype.is_floating_point  # type: ignore[no-any-return]


@public(method=False)
def is_complex(input: Tensor) -> bool:
    """Return True if the dtype is complex.

    Errors: TypeError if the input is not a tensor
    https://pytorch.org/docs → torch.is_complex

    >>> import tensorgrad as torch
    >>> torch.is_complex(torch.tensor(1j))
    True
    """
    return input.dtype.is_complex  # type: ignore[no-any-return]


@public(method=False)
def numel(input: Tensor) -> int:
    """The number of elements.

    Errors: TypeError if the input is not a tensor
    https://pytorch.org/docs → torch.numel

    >>> import tensorgrad as torch
    >>> torch.numel(torch.zeros(2, 3))
    6
    """
    return input.array.size  # type: ignore[no-any-return]


@public(function=False)
def copy_(input: Tensor, src: Operand, non_blocking: bool = False) -> Tensor:
    """Take the values of `src`, broadcast and cast to this tensor.

    Input: src: a number, or a tensor broadcastable to this one
    Output: the tensor itself, changed
    Errors: RuntimeError if src does not broadcast, or for a leaf that requires grad; TypeError for other objects
    https://pytorch.org/docs → torch.Tensor.copy_

    >>> import tensorgrad as torch
    >>> torch.zeros(2, 2).copy_(torch.tensor([1, 2]))
    tensor([[1., 2.],
            [1., 2.]])
    """
    if isinstance(src, complex):
        src = input.new_tensor(src, dtype=dtypes.in_complex(input.dtype))  # type: ignore[attr-defined]
    if isinstance(src, (bool, int, float)):
        return input.fill_(src)  # type: ignore[attr-defined]
    if not isinstance(src, TensorBase):
        raise TypeError(f"copy_(): argument 'other' (position 1) must be Tensor, not {src.__class__.__name__}")
    if src._storage is input._storage and src.array.size == input.array.size:
        _inplace.check_overlap(input.array, src.array, copying=True)
    return _inplace.in_place(input, copied, src=src)


def copied(input: Any, src: Any) -> Any:
    backend = input._storage.__class__
    if src._storage.__class__ is not backend and src._storage.device != input._storage.device:
        src = move(src, backend)
    if src.array.dtype != input.array.dtype:
        src = cast(src, FROM_NUMPY[input.array.dtype])
    if src.array.shape != input.array.shape and not hasattr(src.array, "pattern"):
        try:
            src = xp.broadcast_to(src, shape=input.array.shape)
        except ValueError:
            raise RuntimeError(f"The size of tensor a ({input.array.shape[-1] if input.array.ndim else 1}) must match "
                               f"the size of tensor b ({src.array.shape[-1] if src.array.ndim else 1}) at "
                               f"non-singleton dimension {max(input.array.ndim - 1, 0)}") from None
    return xp.copied(input, src)


@public(function=False)
def set_(input: Tensor, source: Storage | Tensor | None = None, storage_offset: Index | None = None,
         size: Ints | None = None, stride: Ints | None = None) -> Tensor:
    """Look at other memory.

    Input: source: a tensor or a storage; storage_offset and stride in elements
    Output: the tensor itself, of the source's shape or the given size
    Errors: RuntimeError for a leaf that requires grad; TypeError for other objects
    https://pytorch.org/docs → torch.Tensor.set_

    >>> import tensorgrad as torch
    >>> torch.zeros(0).set_(torch.arange(4.))
    tensor([0., 1., 2., 3.])
    """
    if source is None:
        source = input.new_empty(0)
    node = node_of(input)
    if node is not None and mode.grad:
        _inplace.check(input)
    tensor = source if isinstance(source, TensorBase) else source._as_tensor(input)
    if tensor.array.dtype != input.array.dtype:
        raise RuntimeError(f"Could not set tensor of type {C_NAMES[FROM_NUMPY[tensor.array.dtype].name]} to a tensor "
                           f"of type {C_NAMES[input.dtype.name]}")
    if size is not None:
        if stride is None:
            stride = [prod(size[axis + 1:]) for axis in range(len(size))]
        tensor = tensor.detach().as_strided(size, stride, storage_offset)  # type: ignore[attr-defined]
    if tensor._storage.memory is None:
        tensor._storage.memory = tensor.array
    input.array, input._storage, input.origin = tensor.array, tensor._storage, None
    input._storage.wrote()
    if isinstance(node, Leaf):
        renew_leaf(input)
    return input


@public(function=False)
def is_set_to(input: Tensor, tensor: Tensor) -> bool:
    """Return True if both tensors have the same memory, offset, shape and strides.

    https://pytorch.org/docs → torch.Tensor.is_set_to

    >>> import tensorgrad as torch
    >>> x = torch.ones(2, 3)
    >>> x.is_set_to(torch.empty(0).set_(x)), x.is_set_to(x.t())
    (True, False)
    """
    a, b = input, tensor
    return (shared(a).memory is shared(b).memory and a.dtype is b.dtype and a.shape == b.shape
            and a.stride() == b.stride() and a.storage_offset() == b.storage_offset())


@public(function=False)
def apply_(input: Tensor, callable: Callable[..., Any]) -> Tensor:
    """Replace each element by a Python function of it: slow.

    Output: the tensor itself, changed
    Errors: RuntimeError for a tensor that requires grad
    https://pytorch.org/docs → torch.Tensor.apply_

    >>> import tensorgrad as torch
    >>> torch.tensor([1., 2.]).apply_(lambda v: v * v)
    tensor([1., 4.])
    """
    refuse_grad("apply_", input)
    return _put_numbers(input, [callable(v) for v in input.detach().reshape(-1).tolist()])


def _put_numbers(input: Any, values: list[Any]) -> Any:
    """Copy numbers into a tensor; TypeError for other objects."""
    whole = input.array.dtype.kind in "biu"
    for value in values:
        if not hasattr(value, "__index__" if whole else "__complex__" if input.is_complex() else "__float__") and (
                not isinstance(value, (int, float, complex))):
            kind = value.__class__.__name__
            raise TypeError(f"'{kind}' object cannot be interpreted as an integer" if whole else
                            f"must be real number, not {kind}")
    return copy_(input, input.new_tensor(values).reshape(input.shape))


def refuse_grad(name: str, *tensors: Any) -> None:
    """Raise PyTorch's error for a tensor that requires grad, in a method that calls a Python function of elements."""
    if any(t.requires_grad for t in tensors):
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")


@public(function=False)
def map_(input: Tensor, tensor: Tensor, callable: Callable[..., Any]) -> Tensor:
    """Replace each element by a Python function of it and an element of `tensor`: slow.

    Input: a tensor broadcastable to this one
    Output: the tensor itself, changed
    Errors: RuntimeError if it does not broadcast, or for a tensor that requires grad
    https://pytorch.org/docs → torch.Tensor.map_

    >>> import tensorgrad as torch
    >>> torch.tensor([1., 2.]).map_(torch.tensor([3., 4.]), lambda a, b: a * b)
    tensor([3., 8.])
    """
    refuse_grad("map_", input, tensor)
    if tensor.array.dtype != input.array.dtype:
        raise TypeError(f"map_: expected {input.type()} for 'other' (got {tensor.type()})")
    pairs = zip(input.detach().reshape(-1).tolist(), tensor.detach().expand_as(input).reshape(-1).tolist(), strict=True)
    return _put_numbers(input, [callable(a, b) for a, b in pairs])


for _same in ("resolve_conj", "resolve_neg"):
    def _itself(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        """The tensor itself: there is nothing to do here."""
        return self
    setattr(Tensor, _same, _itself)


@public(function=False)
def pin_memory(input: Tensor, device: Device | None = None) -> Tensor:
    """The tensor itself: copies from it to a GPU are as fast as they get.

    RuntimeError without a GPU. https://pytorch.org/docs → torch.Tensor.pin_memory
    """
    from ..storage.cuda import device_count
    if not device_count():
        raise RuntimeError("Cannot access accelerator device when none is available.")
    return input


@public(function=False)
def is_pinned(input: Tensor, device: Device | None = None) -> bool:
    """False: memory is never page-locked. https://pytorch.org/docs → torch.Tensor.is_pinned"""
    return False
Tensor.is_shared = lambda self: self._storage.shared is not None or self.is_cuda  # type: ignore[attr-defined]


def share_memory_(input: Tensor) -> Tensor:
    """Move the tensor to memory that processes share.

    Output: the tensor itself
    https://pytorch.org/docs → torch.Tensor.share_memory_

    >>> import tensorgrad as torch
    >>> torch.zeros(2).share_memory_().is_shared()
    True
    """
    from ..multiprocessing.reductions import init_reductions, share
    if input._storage.dense is not None:
        untyped_storage(input)
    init_reductions()
    return share(input)


def untyped_storage(input: Tensor) -> Any:
    """Return the tensor's memory block, as bytes. https://pytorch.org/docs → torch.Tensor.untyped_storage"""
    from .storage_objects import storage_of
    return storage_of(input)


def typed_storage(input: Tensor) -> Any:
    """Return the tensor's memory block, as elements of its dtype. https://pytorch.org/docs → torch.Tensor.storage"""
    from .storage_objects import TypedStorage, storage_of
    return TypedStorage(wrap_storage=storage_of(input), dtype=input.dtype, _internal=True)


def storage(input: Tensor) -> Any:
    """Return the tensor's memory block, as elements of its dtype. https://pytorch.org/docs → torch.Tensor.storage

    >>> import tensorgrad as torch
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     torch.arange(6.).reshape(2, 3)[1].storage().size()
    6
    """
    from .storage_objects import OLD
    warn(OLD)
    return typed_storage(input)


def storage_type(input: Tensor) -> Any:
    """The old class of the storage: `torch.FloatStorage` and its like.

    https://pytorch.org/docs → torch.Tensor.storage_type
    """
    return input.storage()._get_legacy_storage_class()


Tensor.untyped_storage, Tensor._typed_storage, Tensor.storage = untyped_storage, typed_storage, storage  # type: ignore[attr-defined]
Tensor.storage_type = storage_type  # type: ignore[attr-defined]
Tensor.share_memory_ = share_memory_  # type: ignore[attr-defined]


@public(method=False)
def typename(obj: object, /) -> str:
    """The name of an object's type; of a tensor, with its dtype.

    https://pytorch.org/docs → torch.typename

    >>> import tensorgrad as torch
    >>> torch.typename(torch.zeros(1)), torch.typename(1)
    ('torch.FloatTensor', 'int')
    """
    if isinstance(obj, Tensor):
        return obj.type()  # type: ignore[attr-defined,no-any-return]
    kind = obj if hasattr(obj, "__qualname__") else obj.__class__
    module = getattr(kind, "__module__", None) or ""
    return kind.__qualname__ if module in ("", "builtins") else f"{module}.{kind.__qualname__}"
