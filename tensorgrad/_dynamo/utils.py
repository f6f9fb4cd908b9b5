"""PyTorch's queries about compilation, and what was counted."""
import warnings

from .._tensor import Tensor
from ..api import empty_strided, no_grad
from ..compiler.stances import counters

__all__ = ["clone_input", "clone_inputs", "counters", "is_compile_supported", "warn_once"]


def is_compile_supported(device_type):
    """Return True for the CPU: functions of tensors elsewhere run as they are."""
    return str(device_type).partition(":")[0] == "cpu"


def warn_once(msg, stacklevel=1):
    """Warn, unless this function has warned with the message before."""
    if msg not in _WARNED:
        _WARNED.add(msg)
        warnings.warn(msg, stacklevel=stacklevel + 1)


_WARNED = set()


def clone_input(x, *, dtype=None):
    """Return a leaf with the values, strides and gradient of a tensor, in memory of its own."""
    with no_grad():
        if x.layout.name != "strided":
            made = x.clone()
        else:
            made = empty_strided(x.shape, x.stride(), dtype=dtype or x.dtype, device=x.device)
            made.copy_(x)
    if x.is_leaf:
        made.requires_grad_(x.requires_grad)
        if x.grad is not None:
            made.grad = clone_input(x.grad, dtype=dtype)
    return made


def clone_inputs(example_inputs):
    """Return copies of the tensors of a sequence, or of a dict of tensors and sequences of them."""
    if type(example_inputs) is dict:
        return {name: clone_inputs(value) if isinstance(value, tuple) else clone_input(value)
                for name, value in example_inputs.items()}
    return [clone_input(value) if isinstance(value, Tensor) else value for value in example_inputs]
