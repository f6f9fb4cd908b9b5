"""Gradients of operators that have kernels but no rule for autograd, as `torch.library.Library.impl` makes them.

A kernel for a device runs like any function, and its ops are recorded. A backward through its results warns, because
gradients may be wrong or missing.
"""
from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

from .api import Tensor
from .autograd.function import Function
from .core.mode import mode
from .core.tape import Leaf, node_of

MODES = ["warn"]        # "warn", or "nothing"


class _Below(threading.local):
    depth = 0           # guards of this thread in which kernels for autograd are not called


below = _Below()
MISSING = (
    "{}: an autograd kernel was not registered to the Autograd key(s) but we are trying to backprop through it. This "
    "may lead to silently incorrect behavior. This behavior is deprecated and will be removed in a future version of "
    "PyTorch. If your operator is differentiable, please ensure you have registered an autograd kernel to the correct "
    "Autograd key (e.g. DispatchKey::Autograd, DispatchKey::CompositeImplicitAutograd). If your operator is not "
    "differentiable, or to squash this warning and use the previous behavior, please register "
    "torch::CppFunction::makeFallthrough() to DispatchKey::Autograd.")


def _get_autograd_fallback_mode() -> str:
    """Return "warn" if backward warns of operators without a rule for autograd, else "nothing"."""
    return MODES[0]


def _set_autograd_fallback_mode(name: str) -> None:
    """Choose whether backward warns of operators without a rule for autograd: "warn" or "nothing"."""
    if name not in ("warn", "nothing"):
        raise RuntimeError(f"Unsupported AutogradFallbackMode: {name}")
    MODES[0] = name


def fallthrough_kernel() -> None:
    """The kernel to register for "Autograd" so that nothing warns: it is never called."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


class _Missing(Function):
    """The step of a result that has no gradient: its backward warns, and hands on none."""

    @staticmethod
    def forward(ctx: Any, name: str, result: Any, *inputs: Any) -> Any:
        ctx.name = name
        return result.view_as(result)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        warnings.warn(MISSING.format(ctx.name), UserWarning, stacklevel=2)
        return (None,) * ctx.count


def tensors_in(values: Any) -> list[Any]:
    """Return the tensors among values, and in lists and tuples among them."""
    found: list[Any] = []
    for value in values:
        if isinstance(value, (list, tuple)):
            found += tensors_in(value)
        elif isinstance(value, Tensor):
            found.append(value)
    return found


def run(name: str, kernel: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Run a kernel, and let backward through its results warn."""
    given = tensors_in((*args, *kwargs.values()))
    inputs = [t for t in given if t.requires_grad]
    output = kernel(*args, **kwargs)
    return _watched(name, output, given, inputs) if inputs and mode.grad and MODES[0] == "warn" else output


def _watched(name: str, output: Any, given: list[Any], inputs: list[Any]) -> Any:
    if isinstance(output, (list, tuple)):
        return type(output)(_watched(name, part, given, inputs) for part in output)
    if not isinstance(output, Tensor) or output.array.dtype.kind not in "fcV":
        return output
    node = node_of(output)
    if node is None:        # an argument that was written to stays as it is
        return output if any(output is t for t in given) else _without_gradient(name, output, inputs)
    if type(node) is not Leaf or output.requires_grad:
        def warn(g: Any) -> None:
            warnings.warn(MISSING.format(name), UserWarning, stacklevel=2)
        output.register_hook(warn)
    return output


def _without_gradient(name: str, output: Any, inputs: list[Any]) -> Any:
    """Make a result the output of a step without a gradient, so that a backward through it warns."""
    made = _Missing.apply(name, output, *inputs)
    made.origin, output._node = None, made._node
    node_of(output).as_function()[0].ctx.count = 2 + len(inputs)
    return output
