"""torch.jit: a program runs as it is written, so what would be compiled is given back as it is. https://pytorch.org/docs/stable/jit.html

>>> import tensorgrad as torch
>>> @torch.jit.script
... def double(x):
...     return x + x
>>> double(torch.ones(2))
tensor([2., 2.])
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from ._unsupported import unsupported
from .futures import Future
from .nn.modules.module import Module

_ABSENT = "CompilationUnit export_opnames load save"
__all__ = ["Attribute", "Error", "Final", "Future", "ScriptFunction", "ScriptModule", "annotate", "enable_onednn_fusion", "export", "fork", "freeze",
           "ignore", "interface", "is_scripting", "is_tracing", "isinstance", "onednn_fusion_enabled", "optimize_for_inference", "optimized_execution",
           "script", "script_if_tracing", "script_method", "set_fusion_strategy", "strict_fusion", "trace", "trace_module", "unused", "wait",
           *_ABSENT.split()]

_isinstance = isinstance


class Error(Exception):
    """What PyTorch raises for code that it cannot compile."""


class Attribute(NamedTuple):
    """A value and its type, for a module's attribute."""

    value: Any
    type: Any


class ScriptFunction:
    """The class of PyTorch's compiled functions: nothing here is one."""


class ScriptModule(Module):
    """A module; nothing of it is compiled. https://pytorch.org/docs → torch.jit.ScriptModule"""


def script(obj: Any, *args: Any, **kwargs: Any) -> Any:
    """The function, class or module itself: it is not compiled. https://pytorch.org/docs → torch.jit.script"""
    return obj


def trace(func: Any, example_inputs: Any = None, *args: Any, example_kwarg_inputs: Any = None, **kwargs: Any) -> Any:
    """The function or module itself; it is run once on the examples, as tracing does. https://pytorch.org/docs → torch.jit.trace"""
    if example_kwarg_inputs is not None:
        func(**example_kwarg_inputs)
    elif example_inputs is not None:
        func(*(example_inputs if _isinstance(example_inputs, (tuple, list)) else (example_inputs,)))
    return func


def trace_module(mod: Module, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Module:
    """The module itself; its methods are run once on the examples. https://pytorch.org/docs → torch.jit.trace_module"""
    for name, values in inputs.items():
        getattr(mod, name)(*(values if _isinstance(values, (tuple, list)) else (values,)))
    return mod


def _itself(fn: Any, *args: Any, **kwargs: Any) -> Any:
    """What it is given."""
    return fn


script_method = script_if_tracing = export = unused = interface = freeze = optimize_for_inference = _overload = _overload_method = _itself


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """A decorator, with or without arguments, that changes nothing. https://pytorch.org/docs → torch.jit.ignore"""
    return drop if callable(drop) else _itself


def is_scripting() -> bool:
    """Whether this is being compiled: never. https://pytorch.org/docs → torch.jit.is_scripting"""
    return False


def is_tracing() -> bool:
    """Whether this is being traced: never. https://pytorch.org/docs → torch.jit.is_tracing"""
    return False


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value. https://pytorch.org/docs → torch.jit.annotate"""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether a value is of a type, which may be a container of typed elements. https://pytorch.org/docs → torch.jit.isinstance"""
    from types import UnionType
    from typing import Union, get_args, get_origin
    kinds = target_type if _isinstance(target_type, tuple) else (target_type,)
    return any(_is(obj, get_origin(kind), get_args(kind), kind, (Union, UnionType)) for kind in kinds)


def _is(obj: Any, origin: Any, inner: Any, kind: Any, unions: Any) -> bool:
    if origin is None:
        return _isinstance(obj, kind or type(None))
    if origin in unions:
        return isinstance(obj, inner)
    if not _isinstance(obj, origin):
        return False
    if origin is dict:
        return all(isinstance(k, inner[0]) and isinstance(v, inner[1]) for k, v in obj.items())
    if origin is tuple and inner[-1:] != (...,):
        return len(obj) == len(inner) and all(map(isinstance, obj, inner))
    return all(isinstance(v, inner[0]) for v in obj)


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future:
    """A Future of what the function gives; it is called at once. https://pytorch.org/docs → torch.jit.fork"""
    future: Future = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future) -> Any:
    """What the function gave. https://pytorch.org/docs → torch.jit.wait"""
    return future.wait()


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """A `with` block; nothing is optimized."""
    yield


class strict_fusion:
    """A `with` block; nothing is fused."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: Any) -> None:
        pass


def set_fusion_strategy(strategy: Any) -> list[Any]:
    """Nothing is fused."""
    return []


enable_onednn_fusion = set_fusion_strategy


def onednn_fusion_enabled() -> bool:
    """Nothing is fused."""
    return False


globals().update(unsupported(_ABSENT, "torch.jit",
                             "there is no TorchScript; torch.save(module.state_dict(), file) and torch.load keep a module's parameters"))
