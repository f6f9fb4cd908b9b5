"""Modes that intercept operators. https://pytorch.org/docs/stable/notes/extending.html → Modes

A `TorchDispatchMode` gets each public function that a program calls, as an operator of `torch.ops.aten`. There is no
layer below autograd for modes: a function of several steps comes as one operator, and results have their gradients.
A linear map comes as its product of matrices and a convolution as `aten.convolution`, for packages count these two.
Where PyTorch's operator takes other arguments than the function, the operator that the mode gets takes the function's.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from inspect import signature
from math import prod
from types import FunctionType
from typing import Any

from .._tensor import Tensor
from .._tensor.torch_function import METHODS, state
from ..core.class_hooks import among
from ..core.class_hooks import hooks as class_hooks
from ..device import device as Device
from ..device import get_default_device
from ..overrides import TorchFunctionMode, resolve_name
from ._pytree import tree_leaves

__all__ = ["TorchDispatchMode", "is_in_torch_dispatch_mode", "is_traceable_wrapper_subclass",
           "is_traceable_wrapper_subclass_type", "return_and_correct_aliasing", "transform_subclass"]

PACKAGE = __name__.partition(".")[0]
# Methods that read metadata of a tensor, or set its place on the tape: they are no operators.
NO_OPERATORS = frozenset(
    "backward data_ptr dim element_size get_device has_names ndimension nelement numel numpy register_hook "
    "register_post_accumulate_grad_hook requires_grad_ retain_grad size storage storage_offset stride tolist type "
    "untyped_storage".split())
OPERATORS = METHODS | {"__eq__": "eq", "__pow__": "pow", "__invert__": "bitwise_not",
                       "__floordiv__": "floor_divide", "__rsub__": "rsub"}
# Overloads by the second operand: (for a tensor, for a number). Arithmetic makes tensors of numbers.
OF_TWO = {name: ("Tensor", "Scalar") for name in "remainder fmod eq ne lt le gt ge bitwise_and bitwise_or bitwise_xor "
          "rsub".split()} | {name: ("Tensor", "Tensor") for name in ("add", "sub", "mul", "div")}
OF_TWO["pow"] = "Tensor_Tensor", "Tensor_Scalar"
# Overloads of reductions along dimensions.
ALONG = {"sum": "dim_IntList", "mean": "dim", "max": "dim", "min": "dim", "all": "dim", "any": "dim", "prod": "dim_int"}


# Functions of nn.functional whose operators have other arguments.
OTHER_ARGUMENTS = frozenset("batch_norm elu embedding embedding_bag unfold".split())
OF_SIZES = frozenset("empty ones rand randn zeros".split())
# {a function that makes a tensor: its overloads for one argument, two, three}
FACTORIES = {**dict.fromkeys(OF_SIZES - {"empty"}, ("default",)), "empty": ("memory_format",), "full": ("default",),
             "arange": ("default", "start", "start_step"), "eye": ("default", "m"), "randperm": ("default",),
             "randint": ("default", "default", "low"), "linspace": ("default",), "empty_strided": ("default",),
             "scalar_tensor": ("default",)}
# Operators whose results share memory with their first argument.
VIEWS = frozenset("_reshape_alias alias as_strided chunk detach diagonal expand expand_as narrow permute select slice "
                  "split split_with_sizes squeeze t transpose unbind unfold unsqueeze view view_as view_as_complex "
                  "view_as_real".split())


class TorchDispatchMode:
    """A mode whose `__torch_dispatch__` gets the functions that are called, as operators.

    >>> import tensorgrad as torch
    >>> class Names(torch.utils._python_dispatch.TorchDispatchMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         print(func)
    ...         return func(*args, **(kwargs or {}))
    >>> x = torch.ones(2)
    >>> with Names():
    ...     y = torch.exp(x) + 2 * x
    aten.exp.default
    aten.mul.Tensor
    aten.add.Tensor
    """

    def __init__(self, _dispatch_key: Any = None) -> None:
        pass

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not define __torch_dispatch__")

    def __enter__(self) -> Any:
        _Functions(self).__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        state.modes = state.modes[:-1]

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Return False; a mode that only serves others overrides it."""
        return False

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """Return an instance, by an older spelling."""
        return cls(*args, **kwargs)


class _Functions(TorchFunctionMode):
    """The mode of functions that hands them to a mode of operators."""

    def __init__(self, mode: TorchDispatchMode) -> None:
        self.mode = mode

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is Tensor.__getitem__ and type(args[1]) is int:
            func, args = import_module(PACKAGE).select, (args[0], 0, args[1])
        elif func is Tensor.__rpow__:
            func, args = import_module(PACKAGE).pow, args[::-1]
        elif func is Tensor.backward or (resolve_name(func) or "").startswith("torch.nn.init."):
            with self:                          # no operator, but it calls operators
                return func.__wrapped__(*args, **kwargs)
        elif (steps := _steps(func)) is not None:
            with self:
                found = steps(*args, **kwargs)
            if found is not None:
                return found
        elif func.__class__ is FunctionType and func.__name__ in FACTORIES and "out" not in kwargs:
            return self._made(func.__name__, types, args, dict(kwargs))
        if rule := getattr(func, "dispatch_rules", {}).get(type(self.mode)):
            return rule(self.mode, func, types, args, kwargs)
        operator = func if hasattr(func, "dispatch_rules") else _operator(func, args, kwargs)
        if operator is None:
            return func(*args, **kwargs)
        if getattr(method := self.mode.__torch_dispatch__, "__self__", self.mode) is not self.mode:
            raise RuntimeError(f"Defining your mode's `__torch_dispatch__` as a classmethod is not supported, please "
                               f"make it a plain method: {type(self.mode).__name__}")
        found = method(operator, types, args, kwargs)
        if found is NotImplemented and among((*args, *kwargs.values())):
            with self.mode:                     # the class's own calls come to the mode
                return class_hooks.ask(operator, args, kwargs)
        return found

    def _made(self, name: str, types: Any, args: Any, kwargs: Any) -> Any:
        """Call the mode for a function that makes a tensor, with a list of sizes and the device, without a gradient."""
        gradient = kwargs.pop("requires_grad", False)
        device, pinned = kwargs.pop("device", None), bool(kwargs.pop("pin_memory", False))
        kwargs |= {"device": get_default_device() if device is None else Device(device), "pin_memory": pinned}
        if name in OF_SIZES and (args or "size" in kwargs):
            sizes = kwargs.pop("size", args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args)
            args = (sizes,)
        args = tuple(list(a) if isinstance(a, (tuple, list)) else a for a in args)
        packet = getattr(import_module(f"{PACKAGE}._ops").ops.aten, name)
        overload = FACTORIES[name][min(len(args), len(FACTORIES[name])) - 1]
        made = self.mode.__torch_dispatch__(getattr(packet, overload), types, args, kwargs)
        return made.requires_grad_() if gradient else made


def _steps(func: Any) -> Any:
    """Return a function of the steps that PyTorch's dispatcher sees of products: packages count their operations."""
    name = getattr(func, "__name__", "")
    if name == "linear":
        return _linear
    return _convolution if name in ("conv1d", "conv2d", "conv3d") else None


def _linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """Return input @ weight.t() + bias as a product of matrices; None for vectors."""
    if input.dim() < 2 or weight.dim() != 2:
        return None
    across, flat = weight.t(), input if input.dim() == 2 else input.reshape(prod(input.shape[:-1]), input.shape[-1])
    out = flat.mm(across) if bias is None else import_module(PACKAGE).addmm(bias, flat, across)
    return out if input.dim() == 2 else out.view(*input.shape[:-1], weight.shape[0])


def _convolution(input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
                 groups: int = 1) -> Any:
    """Return a convolution by the operator of all; None for what it does not take."""
    n = weight.dim() - 2
    if isinstance(padding, str) or input.dim() != weight.dim():
        return None
    lists = [[value] * n if isinstance(value, int) else list(value) for value in (stride, padding, dilation)]
    return import_module(PACKAGE).convolution(input, weight, bias, *lists, False, [0] * n, groups)


def _operator(func: Any, args: Any, kwargs: Any) -> Any:
    """Return the operator of a function; None if it has none, or for an index of several parts."""
    if getattr(func, "__name__", "") in ("__get__", "__set__"):
        return None
    name = (resolve_name(func) or getattr(func, "__name__", "")).rpartition(".")[2]
    name = OPERATORS.get(name, name)
    if name in NO_OPERATORS or name.startswith(("is_", "__")):
        return None
    if name == "matmul" and all(isinstance(a, Tensor) and a.dim() == 2 for a in args):
        name = "mm"
    packet = getattr(import_module(f"{PACKAGE}._ops").ops.aten, name)
    if not _takes(packet, func, name, args, kwargs):
        packet = _of_function(packet.namespace, name, func)
    return getattr(packet, _overload(name, args, kwargs))


def _takes(packet: Any, func: Any, name: str, args: Any, kwargs: Any) -> bool:
    """Return True if the operator takes the arguments of the function that the program called."""
    function = packet._function
    if function is func or function.__module__ == f"{PACKAGE}.messages.unsupported":
        return function is func
    if not (resolve_name(func) or "").startswith("torch.nn.functional."):
        return True
    if name in OTHER_ARGUMENTS:
        return False
    try:
        signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


@cache
def _of_function(namespace: str, name: str, func: Any) -> Any:
    """Return an operator of this name that calls the function, with the function's arguments."""
    return import_module(f"{PACKAGE}._aten").OpOverloadPacket(namespace, name, func)


def _overload(name: str, args: Any, kwargs: Any) -> str:
    """Return the overload of an operator for these arguments; the default if its overloads are not known here.

    """
    tensors = [isinstance(a, Tensor) for a in args[:2]]
    if (of_two := OF_TWO.get(name.removesuffix("_"))) and len(args) > 1:
        return "Scalar" if name == "pow" and not tensors[0] else of_two[not all(tensors)]
    if name in ALONG and ("dim" in kwargs or tensors[1:] == [False]):
        return ALONG[name]
    return {"select": "int", "where": "self"}.get(name, "default")


BaseTorchDispatchMode = TorchDispatchMode


def _get_current_dispatch_mode_stack() -> list[Any]:
    """Return the modes that are on, the innermost last."""
    return [mode.mode for mode in state.modes if isinstance(mode, _Functions)]


def _get_current_dispatch_mode() -> Any:
    """Return the innermost mode; None if there is none."""
    return (_get_current_dispatch_mode_stack() or [None])[-1]


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Return True if a mode is on, of those that serve others only if they are included."""
    return any(include_infra_modes or not mode.is_infra_mode() for mode in _get_current_dispatch_mode_stack())


@contextmanager
def _disable_current_modes() -> Iterator[list[Any]]:
    """Turn the modes of operators off in a `with` block."""
    before = state.modes
    state.modes = tuple(mode for mode in before if not isinstance(mode, _Functions))
    try:
        yield [mode.mode for mode in before if isinstance(mode, _Functions)]
    finally:
        state.modes = before


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Return True for a class of tensors that says which tensors its instances hold."""
    return (isinstance(t, type) and issubclass(t, Tensor) and t is not Tensor
            and hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__"))


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Return True for an instance of such a class."""
    return is_traceable_wrapper_subclass_type(type(t))


def transform_subclass(t: Any, callback: Callable[[str, Any], Any], outer_size: Any = None,
                       outer_stride: Any = None) -> Any:
    """Return a tensor of the same class, of what a function makes of the name and value of each tensor in it."""
    names, context = t.__tensor_flatten__()
    parts = {name: callback(name, getattr(t, name)) for name in names}
    return type(t).__tensor_unflatten__(parts, context, t.size() if outer_size is None else outer_size,
                                        t.stride() if outer_stride is None else outer_stride)


def return_and_correct_aliasing(func: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """Return the result of an operator: the tensor it wrote to, for one in place or with `out=`.

    A wrapper that a view returns shares the storage of the tensor viewed.
    """
    if (kwargs or {}).get("out") is not None:
        return kwargs["out"]
    name = getattr(func, "_opname", getattr(func, "__name__", ""))
    if name in VIEWS:
        for part in tree_leaves(out):
            if is_traceable_wrapper_subclass(part) and type(part._storage) is type(args[0]._storage):
                part._storage = args[0]._storage
    return args[0] if name.endswith("_") and not name.endswith("__") else out
