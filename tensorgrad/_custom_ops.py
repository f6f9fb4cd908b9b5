"""torch._custom_ops: the older place of torch.library's functions."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._library.infer_schema import infer_schema
from .library import get_ctx, register_fake

__all__ = ["custom_op", "get_ctx", "impl", "impl_abstract", "impl_backward", "impl_save_for_backward"]


def custom_op(qualname: str, func_or_schema: Any = None) -> Any:
    """Define an operator by its schema, or as a decorator by the annotations of a function that is never called."""
    from ._custom_op.impl import _custom_op_with_schema, check_name, parse_qualname, validate_namespace
    namespace, name = parse_qualname(qualname)
    validate_namespace(namespace)

    def made(function: Callable[..., Any]) -> Callable[..., Any]:
        check_name(qualname, name, function)
        _custom_op_with_schema(qualname, infer_schema(function, mutates_args=()))
        return function
    if isinstance(func_or_schema, str):
        _custom_op_with_schema(qualname, func_or_schema)
        return None
    return made if func_or_schema is None else made(func_or_schema)


def _decorator(qualname: str, name: str, *args: Any, func: Any = None) -> Any:
    """Return a decorator that registers a function by a method of the CustomOp; or register `func`."""
    from ._custom_op.impl import _find_custom_op

    def register(function: Callable[..., Any], stacklevel: int = 3) -> Callable[..., Any]:
        op = _find_custom_op(qualname, also_check_torch_library=True)
        getattr(op, name)(*args, _stacklevel=stacklevel)(function)
        return function
    return register if func is None else register(func, 5)


def impl(qualname: str, *, device_types: Any = ("cpu", "cuda"), func: Any = None) -> Any:
    """Register a kernel of an operator for types of devices, as a decorator unless `func` is given."""
    return _decorator(qualname, "impl", device_types, func=func)


def impl_abstract(qualname: str, *, func: Any = None) -> Any:
    """Register a function that computes the shapes of an operator's results."""
    return register_fake(qualname, func, _stacklevel=2)


def impl_save_for_backward(qualname: str, *, func: Any = None) -> Any:
    """Register a function (inputs, output) → what an operator's backward needs."""
    return _decorator(qualname, "impl_save_for_backward", func=func)


def impl_backward(qualname: str, output_differentiability: Any = None, *, func: Any = None) -> Any:
    """Register a function (ctx, saved, *gradients) → {argument: gradient} of an operator."""
    return _decorator(qualname, "impl_backward", output_differentiability, func=func)


def _destroy(qualname: str) -> None:
    """Remove an operator that `custom_op` defined."""
    from ._custom_op.impl import _find_custom_op
    _find_custom_op(qualname)._destroy()
