"""torch.jit: nothing is compiled; functions and modules given to `script` or `trace` run as written.

https://pytorch.org/docs/stable/jit.html

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
from copy import copy, deepcopy
from functools import update_wrapper
from typing import Any, Final, NamedTuple

from .._tensor import Tensor
from ..api.conversion import typename
from ..futures import Future
from ..messages.unsupported import unsupported
from ..nn.modules.module import Module
from ..nn.parameter import is_lazy
from .annotations import BroadcastingList1 as _BroadcastingList1  # makes `torch.jit.annotations` the module

_ABSENT = "CompilationUnit export_opnames load save"
__all__ = ["Attribute", "Error", "Final", "Future", "RecursiveScriptModule", "ScriptFunction", "ScriptModule",
           "TopLevelTracedModule", "TracedModule", "TracerWarning", "TracingCheckError", "annotate",
           "enable_onednn_fusion", "export", "fork", "freeze", "ignore", "interface", "is_scripting", "is_tracing",
           "isinstance", "onednn_fusion_enabled", "optimize_for_inference", "optimized_execution", "script",
           "script_if_tracing", "script_method", "set_fusion_strategy", "strict_fusion", "trace", "trace_module",
           "unused", "wait",
           *_ABSENT.split()]

_isinstance = isinstance


class Error(Exception):
    """PyTorch's error for code that cannot be compiled."""


class Attribute(NamedTuple):
    """A value and its type, for a module's attribute."""

    value: Any
    type: Any


_REASON = "there is no TorchScript; torch.save(module.state_dict(), file) and torch.load keep a module's parameters"


def _nothing_compiled(name: str) -> property:
    def refuse(self: Any) -> Any:
        raise NotImplementedError(f"tensorgrad has no {name} of {type(self).__name__}: {_REASON}")
    return property(refuse, doc=f"Not there: {_REASON}.")


class ScriptFunction:
    """A function that was given to `script` or `trace`: it runs as it is written.

    https://pytorch.org/docs → torch.jit.ScriptFunction
    """

    code, graph, inlined_graph, schema, save, save_to_buffer = map(_nothing_compiled,
                                                                   ("code", "graph", "inlined_graph", "schema", "save",
                                                                    "save_to_buffer"))

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self.name = getattr(function, "__name__", type(function).__name__)
        self.qualified_name = f"__torch__.{self.name}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__wrapped__(*args, **kwargs)        # type: ignore[attr-defined]


class ScriptModule(Module):
    """A module; nothing of it is compiled. https://pytorch.org/docs → torch.jit.ScriptModule"""

    code, graph, inlined_graph, save, save_to_buffer = map(_nothing_compiled,
                                                           ("code", "graph", "inlined_graph", "save", "save_to_buffer"))
    code_with_constants = forward_magic_method = _nothing_compiled("code_with_constants")

    @property
    def original_name(self) -> str:
        """The name of the class that it was."""
        return type(self).__mro__[type(self).__mro__.index(ScriptModule) + 1].__name__

    def extra_repr(self) -> str:
        """Return the original class's name, for repr."""
        return f"original_name={self.original_name}"


class RecursiveScriptModule(ScriptModule):
    """The class of modules that `script` returns: they run as written."""


class TracedModule(ScriptModule):
    """The class of modules that `trace` returns: they run as written."""


class TopLevelTracedModule(TracedModule):
    """The module that was given to `trace`."""


class TracerWarning(Warning):
    """PyTorch's warning that a trace may miss a part of the computation."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Do nothing: the package gives no such warnings."""


class TracingCheckError(Exception):
    """PyTorch's error for a trace that differs from its function."""


def _as(kind: Any, module: Module) -> Any:
    """Return the module as an instance of `kind`, with the very same parameters, buffers, submodules and hooks."""
    if _isinstance(module, ScriptModule):
        return module
    made: Any = object.__new__(type(kind.__name__, (_Made, kind, type(module)), {}))
    object.__setattr__(made, "__dict__", module.__dict__)
    return made


class _Made:
    """Copies and pickles of the modules that `script` and `trace` make, whose classes have no name of their own."""

    def _original(self) -> Any:
        """Return the module as it was, with the very same parameters, buffers and submodules."""
        made: Any = object.__new__(type(self).__bases__[2])
        object.__setattr__(made, "__dict__", self.__dict__)
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        kind = type(self).__bases__[2]
        raise RuntimeError(f"Tried to serialize object __torch__.{kind.__module__}.{kind.__qualname__} which does not "
                           "have a __getstate__ method defined!")

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return _as(type(self).__bases__[1], deepcopy(self._original(), memo))

    def __copy__(self) -> Any:
        return _as(type(self).__bases__[1], copy(self._original()))

    def __reduce_package__(self, exporter: Any) -> Any:
        # as PyTorch's archives have the compiled code of the module, whatever the patterns say of its source
        for name in sorted({type(module).__module__ for module in self._original().modules()}):
            if exporter._action(name) is None:
                exporter.intern(name)
        return _scripted, (self._original(),)


def _scripted(importer: Any, module: Module) -> Any:
    """Return the scripted module of a package."""
    return script(module)


def script(obj: Any, *args: Any, **kwargs: Any) -> Any:
    """The function or module, which runs as it is written.

    Classes are given back. https://pytorch.org/docs → torch.jit.script
    """
    if _isinstance(obj, Module):
        _check_initialized(obj)
        return _as(RecursiveScriptModule, obj)
    if _isinstance(obj, type):
        if issubclass(obj, Module):
            raise RuntimeError(f"Type '{obj}' cannot be compiled since it inherits from nn.Module, pass an instance "
                               f"instead")
        return obj
    if callable(obj):
        return obj if _isinstance(obj, ScriptFunction) else ScriptFunction(obj)
    if _isinstance(obj, (dict, list)):
        return obj
    raise TypeError(f"{type(obj)} is a built-in class")


def _check_initialized(module: Module) -> None:
    """Raise PyTorch's error for a lazy module that has not run."""
    for part in reversed(list(module.modules())):
        lazy = [name for name, tensor in (*part._parameters.items(), *part._buffers.items()) if is_lazy(tensor)]
        if lazy:
            raise RuntimeError(f"'{typename(type(part))}' has uninitialized parameters {lazy[0]}. Did you "
                               "forget to run a forward pass?")


def trace(func: Any, example_inputs: Any = None, *args: Any, strict: bool = True, example_kwarg_inputs: Any = None,
          **kwargs: Any) -> Any:
    """The function or module, which runs as it is written; it is run once on the examples.

    https://pytorch.org/docs → torch.jit.trace
    """
    if example_inputs is None:
        if not _isinstance(example_kwarg_inputs, dict):
            raise RuntimeError("example_kwarg_inputs should be a dict")
        result = func(**example_kwarg_inputs)
    else:
        result = func(*((example_inputs,) if _isinstance(example_inputs, (Tensor, dict)) else tuple(example_inputs)))
    _check_traced(result, strict)
    return (_as(TopLevelTracedModule, func) if _isinstance(func, Module) else func if _isinstance(func, ScriptFunction)
            else ScriptFunction(func))


def _check_traced(result: Any, strict: bool) -> None:
    if _isinstance(result, (list, tuple)):
        for part in result:
            _check_traced(part, strict)
    elif _isinstance(result, dict):
        if strict:
            raise RuntimeError(
                "Encountering a dict at the output of the tracer might cause the trace to be incorrect, this is only "
                "valid if the container structure does not change based on the module's inputs. Consider using a "
                "constant container instead (e.g. for `list`, use a `tuple` instead. for `dict`, use a `NamedTuple` "
                "instead). If you absolutely need this and know the side effects, pass strict=False to trace() to "
                "allow this behavior.")
        _check_traced(list(result.values()), strict)
    elif not _isinstance(result, Tensor):
        raise RuntimeError("Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from traced "
                           "functions")


def freeze(mod: Any, *args: Any, **kwargs: Any) -> Any:
    """The module, which is to be in evaluation mode. https://pytorch.org/docs → torch.jit.freeze"""
    if not _isinstance(mod, ScriptModule):
        raise RuntimeError("Freezing expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace "
                           "to script your 'nn.Module'.")
    if mod.training:
        raise RuntimeError("Freezing is currently only implemented for modules in eval mode. Please call .eval() on "
                           "your module before freezing.")
    return mod


def trace_module(mod: Module, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Module:
    """The module itself; its methods are run once on the examples. https://pytorch.org/docs → torch.jit.trace_module"""
    for name, values in inputs.items():
        getattr(mod, name)(*(values if _isinstance(values, (tuple, list)) else (values,)))
    return mod


def _itself(fn: Any, *args: Any, **kwargs: Any) -> Any:
    """Return `fn`."""
    return fn


script_method = script_if_tracing = _script_if_tracing = export = unused = _itself
interface = optimize_for_inference = _overload = _overload_method = _itself


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Return the function unchanged: a decorator with or without arguments.

    https://pytorch.org/docs → torch.jit.ignore
    """
    return drop if callable(drop) else _itself


def is_scripting() -> bool:
    """Return False: nothing is compiled. https://pytorch.org/docs → torch.jit.is_scripting"""
    return False


def is_tracing() -> bool:
    """Return False: nothing is traced. https://pytorch.org/docs → torch.jit.is_tracing"""
    return False


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value. https://pytorch.org/docs → torch.jit.annotate"""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Return True if a value is of a type, which may be a container of typed elements.

    https://pytorch.org/docs → torch.jit.isinstance
    """
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
    """Call the function at once, and return a Future of its result. https://pytorch.org/docs → torch.jit.fork"""
    future: Future = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future) -> Any:
    """Return the result of the Future. https://pytorch.org/docs → torch.jit.wait"""
    if future is None:
        raise RuntimeError("Future can't be None")
    return future.wait()


_fork, _wait = fork, wait       # the names of earlier versions of PyTorch


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
    """Return []: no kernels are fused."""
    return []


enable_onednn_fusion = set_fusion_strategy


def onednn_fusion_enabled() -> bool:
    """Return False: no kernels are fused."""
    return False


globals().update(unsupported(f"{_ABSENT} _get_trace_graph", "torch.jit", _REASON))
