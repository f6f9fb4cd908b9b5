"""Move a module to another device or dtype, in place: parameters keep their identity, buffers their names."""
from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Self

from ... import api as tg
from ..parameter import is_lazy

if TYPE_CHECKING:
    from ...api._kinds import Device


class ConvertMixin:
    """The part of `Module` that changes devices and dtypes. Every method returns the module."""

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move and cast all parameters and buffers: `to(device)`, `to(dtype)`, `to(device, dtype)`, `to(tensor)`.

        A dtype must be floating point or complex, and only tensors of such dtypes are cast. Parameters keep their
        identity, so an optimizer remains valid. See PyTorch's `torch.nn.Module.to`.

        >>> import tensorgrad as torch
        >>> torch.nn.Linear(1, 1).to(torch.float64).weight.dtype
        torch.float64
        """
        device, dtype, non_blocking, memory_format = parse_to(*args, **kwargs)
        if dtype is not None:
            _check_dtype(dtype)

        def convert(tensor):
            options = {}
            if tensor.is_meta and device is not None and device.type != "meta":
                raise NotImplementedError("Cannot copy out of meta tensor; no data! Please use "
                                          "torch.nn.Module.to_empty() instead of torch.nn.Module.to() when moving "
                                          "module from meta to a different device.")
            if device is not None:
                options["device"] = device
            if dtype is not None and (tensor.is_floating_point() or tensor.is_complex()):
                options["dtype"] = dtype
            if memory_format is not None and tensor.dim() in (4, 5):
                options["memory_format"] = memory_format
            return tensor.to(**options, non_blocking=non_blocking) if options else tensor

        return self._apply(convert)

    def cuda(self, device: Device | None = None) -> Self:
        """Move to the GPU."""
        return self._apply(lambda tensor: tensor.cuda(device))

    def cpu(self) -> Self:
        """Move to the CPU."""
        return self._apply(lambda tensor: tensor.cpu())

    def type(self, dst_type: Any) -> Self:
        """Cast all parameters and buffers, integers too."""
        return self._apply(lambda tensor: tensor.type(dst_type))

    def float(self) -> Self:
        """Cast floating-point parameters and buffers to float32."""
        return self._cast(tg.float32)

    def double(self) -> Self:
        """Cast floating-point parameters and buffers to float64."""
        return self._cast(tg.float64)

    def half(self) -> Self:
        """Cast floating-point parameters and buffers to float16."""
        return self._cast(tg.float16)

    def bfloat16(self) -> Self:
        """Cast floating-point parameters and buffers to bfloat16."""
        return self._cast(tg.bfloat16)

    def _cast(self, dtype):
        return self._apply(lambda tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor)

    def to_empty(self, *, device: Device | None, recurse: bool = True) -> Self:
        """Move to a device without copying: all values are undefined afterwards."""
        return self._apply(lambda tensor: tg.empty_like(tensor, device=device), recurse=recurse)

    def share_memory(self) -> Self:
        """Move to shared memory. See PyTorch's `torch.Tensor.share_memory_`."""
        return self._apply(lambda tensor: tensor.share_memory_())

    def _apply(self, fn, recurse=True):
        """Replace the contents of every parameter, its gradient, and every buffer by `fn(tensor)`."""
        if recurse:
            for child in self.children():
                child._apply(fn)
        for key, parameter in self._parameters.items():
            if parameter is not None:
                converted = conversion.of_parameter(parameter, fn, f"{self._get_name()}.{key}")
                if converted is not parameter:
                    self._parameters[key] = converted
        for name, buffer in self._buffers.items():
            if is_lazy(buffer):
                _replace_contents(buffer, fn)
            elif buffer is not None:
                self._buffers[name] = fn(buffer)
        return self


class Conversion:
    """How the parameters of converted and loaded modules get their new values: see `torch.__future__`."""

    overwrite = False       # there are new parameters
    swap = False            # parameters are swapped with their new values

    def of_parameter(self, parameter: Any, fn: Any, name: str) -> Any:
        """Return the parameter that `fn` converts, with its gradient: itself, unless there is to be a new one."""
        grad = parameter.grad
        if self.swap:
            return self._swapped(parameter, grad, fn, name)
        if not self.overwrite:
            _replace_contents(parameter, fn)
            if grad is not None:
                _replace_contents(grad, fn)
            return parameter
        with tg.no_grad():
            converted = type(parameter)(fn(parameter), parameter.requires_grad)
            if grad is not None:
                converted.grad = fn(grad).requires_grad_(grad.requires_grad)
        return converted

    def _swapped(self, parameter: Any, grad: Any, fn: Any, name: str) -> Any:
        from ...utils._swapping import swap_tensors
        from ..parameter import Parameter
        for tensor, what in ((parameter, name), (grad, f"{name}.grad")):
            if tensor is None:
                continue
            with tg.no_grad():
                converted = fn(tensor)
            converted = (Parameter(converted, tensor.requires_grad) if tensor is parameter
                         else converted.requires_grad_(tensor.requires_grad))
            parameter.grad = None
            try:
                swap_tensors(tensor, converted)
            except Exception as error:
                parameter.grad = grad
                raise RuntimeError(f"_apply(): Couldn't swap {what}") from error
        parameter.grad = grad
        return parameter


conversion = Conversion()


def _replace_contents(tensor, fn):
    with tg.no_grad():
        replacement = fn(tensor)
    if replacement is not tensor:
        tensor.data = replacement


def parse_to(*args: Any, **kwargs: Any) -> Any:
    """Return the arguments of `to` as (device, dtype, non_blocking, memory_format), None or False for missing ones.

    TypeError for other arguments, RuntimeError for `copy`.
    """
    first = args[0] if args else kwargs.get("other", kwargs.get("tensor"))
    if isinstance(first, tg.Tensor):
        given = _bind(("other" if "other" in kwargs else "tensor", "non_blocking", "copy"), args, kwargs)
        given |= {"device": first.device, "dtype": first.dtype}
    elif isinstance(first, tg.dtype):
        given = _bind(("dtype", "non_blocking", "copy"), args, kwargs)
    else:
        given = _bind(("device", "dtype", "non_blocking", "copy"), args, kwargs)
    if given.get("copy"):
        raise RuntimeError(".to() does not accept copy argument")
    device = given.get("device")
    if device is not None and not isinstance(device, tg.device):
        device = tg.device(device)
    return device, given.get("dtype"), bool(given.get("non_blocking")), given.get("memory_format")


KINDS: dict[str, tuple[type, ...]] = {"dtype": (tg.dtype, type(None)), "non_blocking": (bool,), "copy": (bool,)}


def _bind(names, args, kwargs):
    """Return the arguments by name; memory_format is keyword-only."""
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    if (len(args) > len(names) or not kwargs.keys() <= {*names[len(args):], "device", "dtype", "memory_format"}
            or not all(isinstance(value, KINDS.get(name, object)) for name, value in given.items())):
        from ...api._parsing import typename
        got = ", ".join([*map(typename, args), *(f"{name}={typename(value)}" for name, value in kwargs.items())])
        raise TypeError(f"to() received an invalid combination of arguments - got ({got}), but expected one of:\n"
                        " * (torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, bool copy"
                        " = False, *, torch.memory_format memory_format = None)\n"
                        " * (torch.dtype dtype, bool non_blocking = False, bool copy = False, *, torch.memory_format "
                        "memory_format = None)\n"
                        " * (Tensor tensor, bool non_blocking = False, bool copy = False, *, torch.memory_format "
                        "memory_format = None)")
    return given


def _check_dtype(dtype):
    if not (dtype.is_floating_point or dtype.is_complex):
        raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}")
    if dtype.is_complex:
        warnings.warn(
            "Complex modules are a new feature under active development whose design may change, and some modules "
            "might not work as expected when using complex tensors as parameters or buffers. ", stacklevel=3)
