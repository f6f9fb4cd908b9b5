"""Tensors that belong to a module: parameters, buffers, and uninitialized ones, whose shape is unknown."""
from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from .. import api as tg
from .._tensor.torch_function import disabled
from ..core.dispatch import PLAIN

if TYPE_CHECKING:
    from .._tensor import Tensor
    from ..api._kinds import Device, Dtype

__all__ = ["Parameter", "Buffer", "UninitializedParameter", "UninitializedBuffer", "UninitializedTensorMixin",
           "is_lazy"]


class _Marked(type(tg.Tensor)):
    """A metaclass whose classes count every tensor with their mark among their instances.

    The mark lets a tensor of another subclass be a parameter without changing its class, and a buffer be a plain
    Tensor.
    """

    def __instancecheck__(cls, thing: Any) -> Any:
        if super().__instancecheck__(thing):
            return True
        mark = cls.__dict__.get("_mark")
        return mark is not None and isinstance(thing, tg.Tensor) and getattr(thing, mark, False)


class Parameter(tg.Tensor, metaclass=_Marked):
    """A tensor that a module trains: assigned as an attribute, it shows up in `Module.parameters()`.

    The parameter shares the memory of `data`. Results computed from it are plain Tensors.
    See PyTorch's `torch.nn.parameter.Parameter`.

    >>> import tensorgrad as torch
    >>> torch.nn.Parameter(torch.zeros(2))
    Parameter containing:
    tensor([0., 0.], requires_grad=True)
    """

    _mark = "_is_param"
    __torch_function__ = disabled

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        if data is None:
            data = tg.empty(0)
        if type(data) is tg.Tensor or type(data) is Parameter:
            return tg.Tensor._make_subclass(cls, data, requires_grad)
        return _marked_twin(data, requires_grad)

    def __deepcopy__(self, memo: Any) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.data.clone(), self.requires_grad)
        return memo[id(self)]

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        recipe = self.data, self.requires_grad, OrderedDict()
        if attributes := vars(self):
            return _rebuild_parameter_with_state, (*recipe, dict(attributes))
        return _rebuild_parameter, recipe


PLAIN.add(Parameter)                                # the dispatcher's fast path, and results of class Tensor


def _marked_twin(data, requires_grad):
    """Return a parameter of a tensor subclass: a detached tensor of that class, with the mark."""
    twin = data.detach().requires_grad_(requires_grad)
    if type(twin) is not type(data):
        raise RuntimeError(
            f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns an "
            f"instance of the same type, but return type {type(twin).__name__} was found instead. To use the type as a "
            "Parameter, please correct the detach() semantics defined by its __torch_dispatch__() implementation.")
    twin._is_param = True
    return twin


def _rebuild_parameter(data, requires_grad, backward_hooks):
    """Rebuild a parameter from a pickle. Hooks are never saved: the argument exists for PyTorch's files."""
    return Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    parameter = _rebuild_parameter(data, requires_grad, backward_hooks)
    vars(parameter).update(state)
    return parameter


class Buffer(tg.Tensor, metaclass=_Marked):
    """A tensor that is part of a module's state but is not trained; assigned as an attribute, it becomes a buffer.

    The result is a plain Tensor on the same memory, marked so that `isinstance(x, Buffer)` holds.
    See PyTorch's `torch.nn.parameter.Buffer`.

    >>> import tensorgrad as torch
    >>> module = torch.nn.Module()
    >>> module.scale = torch.nn.Buffer(torch.ones(1))
    >>> module.state_dict()["scale"]
    tensor([1.])
    """

    _mark = "_is_buffer"
    __torch_function__ = disabled

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        if data is None:
            data = tg.empty(0)
        buffer = data.detach().requires_grad_(data.requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer


_ARRAY = tg.Tensor.array                            # the attribute with a tensor's memory


class UninitializedTensorMixin:
    """Base of tensors of unknown shape, which can be moved, cast and materialized, but not computed with.

    All use of a tensor reads its `array`, hence `array` raises. Moves and casts act on an empty tensor of the dtype and
    device.
    """

    __torch_function__ = disabled

    @classmethod
    def _make(cls, requires_grad, device, dtype):
        empty = tg.empty(0, device=device, dtype=dtype)
        tensor = tg.Tensor._make_subclass(cls.cls_to_become, empty, requires_grad)
        tensor.__class__ = cls
        tensor._empty = empty
        return tensor

    def materialize(self, shape: Any, device: Device | None = None, dtype: Dtype | None = None) -> None:
        """Become an ordinary tensor of that shape, in place, with undefined values."""
        self.data = tg.empty(shape, device=device or self.device, dtype=dtype or self.dtype)
        del self._empty
        self.__class__ = self.cls_to_become

    @property
    def array(self) -> Any:
        kind = type(self).__name__
        raise ValueError(
            "Attempted to use an uninitialized parameter in a function of tensors. This error happens when you are "
            f"using a `LazyModule` or explicitly manipulating `torch.nn.parameter.{kind}` objects. When using "
            "LazyModules Call `forward` with a dummy batch to initialize the parameters before calling torch functions")

    @array.setter
    def array(self, array: Any) -> None:
        _ARRAY.__set__(self, array)

    @property
    def data(self) -> Any:
        return self._empty

    @data.setter
    def data(self, value: Tensor) -> None:
        tg.Tensor.data.__set__(self, value)
        self._empty = value

    @property
    def dtype(self) -> Any:
        return self._empty.dtype

    @property
    def shape(self) -> Any:
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` "
            "to initialize the parameters before accessing their attributes.")

    def size(self, dim: Any = None) -> Any:
        return self._empty.size() if dim is None else self._empty.size(dim)

    def to(self, *args: Any, **kwargs: Any) -> Any:
        return self._empty.to(*args, **kwargs)

    def type(self, *args: Any, **kwargs: Any) -> Any:
        return self._empty.type(*args, **kwargs)

    def cpu(self) -> Any:
        return self._empty.cpu()

    def cuda(self, *args: Any, **kwargs: Any) -> Any:
        return self._empty.cuda(*args, **kwargs)

    def float(self) -> Any:
        return self.to(tg.float32)

    def double(self) -> Any:
        return self.to(tg.float64)

    def half(self) -> Any:
        return self.to(tg.float16)

    def copy_(self, source: Any, non_blocking: bool = False) -> Any:
        self._empty.copy_(source.data)
        return self

    def share_memory_(self) -> Any:
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters "
            "before calling `module.share_memory()`.")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (self.requires_grad,)

    def __deepcopy__(self, memo: Any) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.device, self.dtype)
        return memo[id(self)]


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is not known yet. See PyTorch's `torch.nn.parameter.UninitializedParameter`.

    >>> import tensorgrad as torch
    >>> weight = torch.nn.UninitializedParameter()
    >>> weight
    <UninitializedParameter>
    >>> weight.materialize((2, 3))
    >>> weight.shape
    torch.Size([2, 3])
    """

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Device | None = None, dtype: Dtype | None = None) -> None:
        return cls._make(requires_grad, device, dtype)


class UninitializedBuffer(UninitializedTensorMixin, tg.Tensor):
    """A buffer whose shape is not known yet. See PyTorch's `torch.nn.parameter.UninitializedBuffer`."""

    cls_to_become = tg.Tensor

    def __new__(cls, requires_grad: bool = False, device: Device | None = None, dtype: Dtype | None = None,
                persistent: bool = True) -> None:
        buffer = cls._make(requires_grad, device, dtype)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer


def is_lazy(param: Any) -> bool:
    """Return True for a parameter or buffer whose shape is still unknown."""
    return isinstance(param, UninitializedTensorMixin)
