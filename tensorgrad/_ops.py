"""torch.ops, as programs see it where torch is this package: operators by `namespace.name`.

`aten` has this package's functions; the other namespaces have the operators that programs register with torch.library.
"""
from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

from . import _unregistered
from ._aten import OpOverload, OpOverloadPacket, function_of
from ._tensor.torch_function import ASKING, asked, overriding, state
from .autograd.function import Function
from .core.class_hooks import CLASSES, among
from .core.class_hooks import hooks as class_hooks

__all__ = ["OPERATORS", "HigherOrderOperator", "OpOverload", "OpOverloadPacket", "Operator", "ops"]
OPERATORS: dict[str, Operator] = {}


class Operator:
    """An operator and its registered kernels.

    Registered gradients apply to kernels of a device and of 'CompositeExplicitAutograd'.
    """

    def __init__(self, name: str, schema: str | None = None, function: Callable[..., Any] | None = None) -> None:
        self.name, self.schema, self.function = name, schema, function
        namespace, _, self.__name__ = name.partition("::")
        self.__module__ = f"torch._ops.{namespace}"
        self.kernels: dict[str, Callable[..., Any]] = {}
        self.backward: Any = None
        self.setup_context: Any = None

    @property
    def defined(self) -> bool:
        """True if the operator has a schema, or kernels for more than autograd and meta tensors.

        A library may add these two to another library's operator, which need not be loaded."""
        return self.schema is not None or any(not key.startswith(("Auto", "Meta")) for key in self.kernels)

    @property
    def default(self) -> Operator:
        """The operator; its only overload."""
        return self

    _op = default

    def __repr__(self) -> str:
        return self.name.replace("::", ".")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if ASKING and state.classes and (found := overriding((*args, *kwargs.values()))):
            return asked(self, found, args, kwargs)
        if CLASSES and among((*args, *kwargs.values())):
            return self._recorded(lambda *args, **kwargs: class_hooks.ask(self, args, kwargs), args, kwargs)
        tensors = _unregistered.tensors_in((*args, *kwargs.values()))
        device = tensors[0].device.type.upper() if tensors else "CPU"
        for key in (device, "CompositeExplicitAutograd"):
            if key in self.kernels:
                return self._recorded(self.kernels[key], args, kwargs)
        if "CompositeImplicitAutograd" in self.kernels:
            return self.kernels["CompositeImplicitAutograd"](*args, **kwargs)
        raise NotImplementedError(f"Could not run '{self.name}' with arguments from the '{device}' backend: no kernel "
                                  f"is registered for it")

    def _recorded(self, kernel: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a kernel as one step of the tape."""
        if self.backward is None and self.function is None:
            if self.kernels.get("Autograd") is _unregistered.fallthrough_kernel:
                return kernel(*args, **kwargs)
            return _unregistered.run(self.name, kernel, args, kwargs)
        bound = signature(kernel).bind(*args, **kwargs)
        bound.apply_defaults()
        args, kwargs = bound.args, bound.kwargs
        operator = self

        class Step(Function):
            @staticmethod
            def forward(ctx: Any, *inputs: Any) -> Any:
                output = kernel(*inputs, **kwargs)
                if operator.setup_context is not None:
                    more = {"keyword_only_inputs": kwargs} if kwargs else {}
                    operator.setup_context(ctx=ctx, inputs=inputs, output=output, **more)
                return output

            @staticmethod
            def backward(ctx: Any, *gradients: Any) -> Any:
                if operator.backward is None:
                    raise RuntimeError(f"Trying to backward through {operator}.default but no autograd formula was "
                                       "registered. Please use register_autograd to add one.")
                return operator.backward(ctx, *gradients)
        return Step.apply(*args)


class HigherOrderOperator:
    """An operator whose arguments include functions: `py_impl` registers what it runs.

    Kernels of autograd, of transforms and of tracers are kept, and not called: the kernel for tensors runs on the tape.
    """

    def __init__(self, name: str, *, cacheable: bool = False) -> None:
        self._name = self.__name__ = name
        self.namespace, self.py_kernels = "higher_order", dict[Any, Callable[..., Any]]()

    def py_impl(self, key: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Return a decorator that registers a function for a dispatch key, a transform or a mode."""
        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            self.py_kernels[key] = function
            return function
        return register

    def fallthrough(self, key: Any) -> None:
        """Accept a key that has no kernel of its own."""

    def name(self) -> str:
        """The operator's name."""
        return self._name

    def __str__(self) -> str:
        return self._name

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        by_name = {getattr(key, "name", key): kernel for key, kernel in self.py_kernels.items()}
        for name in ("CompositeExplicitAutograd", "CompositeImplicitAutograd", "CPU"):
            if name in by_name:
                return by_name[name](*args, **kwargs)
        raise NotImplementedError(f"{self._name} has no kernel for tensors: register one with py_impl")


class _OpNamespace:
    """The operators of one namespace, as attributes."""

    def __init__(self, name: str) -> None:
        self.name = self.__name__ = name

    def __getattr__(self, op: str) -> Any:
        if (operator := OPERATORS.get(f"{self.name}::{op}")) is not None and operator.defined:
            return operator
        if self.name in ("aten", "prim", "prims") and not op.startswith("__"):
            setattr(self, op, OpOverloadPacket(self.name, op, function_of(op)))
            return getattr(self, op)
        raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{op}'")


class _Ops:
    """torch.ops: its attributes are namespaces."""

    loaded_libraries: set[str] = set()

    def __getattr__(self, name: str) -> _OpNamespace:
        if name.startswith("__"):
            raise AttributeError(f"'_Ops' object has no attribute {name!r}")
        setattr(self, name, _OpNamespace(name))
        return getattr(self, name)  # type: ignore[no-any-return]

    def load_library(self, path: Any) -> None:
        """Compiled extensions need PyTorch: OSError."""
        raise OSError(f"Could not load this library: {path}: tensorgrad cannot load extensions that are compiled "
                      f"against PyTorch")


ops = _Ops()
