"""torch.ops, as programs see it where torch is this package: operators by `namespace.name`.

`aten` has this package's functions; the other namespaces have the operators that programs register with torch.library.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property
from importlib import import_module
from typing import Any

from . import _unregistered
from ._aten import OpOverload, OpOverloadPacket, function_of
from ._library.infer_schema import infer_schema
from ._library.schemas import Schema, parse
from ._tensor.torch_function import ASKING, asked, overriding, state
from .autograd.function import Function
from .core.class_hooks import CLASSES, among
from .core.class_hooks import hooks as class_hooks
from .core.mode import mode
from .core.tape import node_of
from .graph.recorder import here
from .interpret.batching import one_by_one

below = _unregistered.below
__all__ = ["OPERATORS", "HigherOrderOperator", "OpOverload", "OpOverloadPacket", "Operator", "ops"]
OPERATORS: dict[str, Operator] = {}
OPERATORS_OF_PYTHON = frozenset("and iand ilshift ior irshift ixor lshift or rshift xor".split())     # aten::__and__ …


class Operator(OpOverload):
    """An overload of an operator, and its registered kernels.

    Registered gradients apply to kernels of a device and of 'CompositeExplicitAutograd'. A kernel for 'Autograd' is
    called first, and calls the operator again for that of a device, inside of `torch._C._AutoDispatchBelowAutograd`.
    """

    _defined_in_python = True

    def __init__(self, name: str, schema: str | None = None, function: Callable[..., Any] | None = None) -> None:
        self._name, self.schema, self.function = name, schema, function
        self.namespace, _, full = name.partition("::")
        self._opname, _, overload = full.partition(".")
        self._overloadname = overload or "default"
        self.__name__ = f"{self._opname}.{self._overloadname}"
        self.__module__ = f"torch._ops.{self.namespace}"
        self.kernels: dict[str, Callable[..., Any]] = {}
        self.disabled: set[str] = set()         # keys of kernels that are switched off
        self.dispatch_rules: dict[type, Callable[..., Any]] = {}    # of classes and modes with __torch_dispatch__
        self.backward: Any = None
        self.setup_context: Any = None
        self.vmap: Any = None
        self.missing: Callable[[str], None] | None = None       # raises for a device without a kernel
        self.refusal: Any = None                                # the kernel for shapes of an operator that has none
        self.sources: dict[str, str] = {}                       # the places where kernels were registered
        self.labels: list[Any] = []

    @property
    def defined(self) -> bool:
        """True if the operator has a schema, or kernels for more than autograd and meta tensors.

        A library may add these two to another library's operator, which need not be loaded."""
        return self.schema is not None or any(not key.startswith(("Auto", "Meta")) for key in self.kernels)

    @property
    def default(self) -> Operator:
        """The operator itself."""
        return self

    @property
    def overloadpacket(self) -> OperatorPacket:     # type: ignore[override]
        """The operator of all overloads."""
        return packet_of(self.namespace, self._opname)

    _op, _overloadpacket = default, overloadpacket

    @property
    def tags(self) -> list[Any]:
        """The tags that the operator was defined with."""
        return self.labels

    @tags.setter
    def tags(self, tags: list[Any]) -> None:
        self.labels = tags

    @property
    def is_mutable(self) -> bool:
        """True if the schema says that an argument is written to."""
        return self._schema.is_mutable

    def name(self) -> str:
        """Return `namespace::name`."""
        return self._name

    @cached_property
    def _schema(self) -> Schema:
        """The operator's name, arguments and results, of the text it was defined by or of a kernel's annotations."""
        text = self.schema
        if text is None:
            text = infer_schema(self.function or next(iter(self.kernels.values())), mutates_args=())
        return parse(f"{self.namespace}::{text.strip()}" if not text.lstrip().startswith("(") else self._name + text)

    def __reduce__(self) -> Any:
        return overload_of, (self.namespace, self._opname, self._overloadname)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        values = (*args, *kwargs.values())
        if ASKING and (state.classes or state.modes) and ((found := overriding(values)) or state.modes):
            return asked(self, found if state.classes else [], args, kwargs)
        if self.schema is not None:
            args, kwargs = import_module("._library.arguments", __package__).checked(self._schema, args, kwargs)
        if CLASSES and among(values):
            return self._recorded(lambda *args, **kwargs: class_hooks.ask(self, args, kwargs), args, kwargs)
        device = self._device(args, kwargs)
        kernel = self.kernels.get("Autograd") or self.kernels.get(f"Autograd{device}")
        if kernel is not None and not below.depth and kernel is not _unregistered.fallthrough_kernel:
            return kernel(*args, **kwargs)
        return self._run(device, args, kwargs)

    def _device(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """Return the type of the device whose kernel a call is for: of its first tensor, or of the argument `device`.
        """
        if tensors := _unregistered.tensors_in((*args, *kwargs.values())):
            return "META" if tensors[0]._storage.hollow else tensors[0].device.type.upper()
        names = [argument.name for argument in self._schema.arguments] if self.schema is not None else []
        chosen = {**dict(zip(names, args)), **kwargs}.get("device")
        return "CPU" if chosen is None else str(chosen).partition(":")[0].upper()

    def _run(self, device: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the kernel for a type of devices."""
        for key in ("Meta" if device == "META" else device, "CompositeExplicitAutograd"):
            if key in self.kernels and key not in self.disabled:
                kernel = self.kernels[key]
                if here.recorder is not None:
                    kernel = import_module("._library.recording", __package__).recorded(self, kernel)
                return self._recorded(kernel, args, kwargs)
        if "CompositeImplicitAutograd" in self.kernels:
            return self.kernels["CompositeImplicitAutograd"](*args, **kwargs)
        if self.function is not None and not _unregistered.tensors_in((*args, *kwargs.values())):
            raise RuntimeError(f"{self._opname} does not have a kernel registered for {device.lower()}. Please use "
                               f"register_kernel to do so.")
        if self.schema is not None:
            self._schema.bound(args, kwargs)
        if not _unregistered.tensors_in((*args, *kwargs.values())):
            if "BackendSelect" in self.kernels:
                return self.kernels["BackendSelect"](*args, **kwargs)
            device = "Undefined"
        if device == "META":
            raise NotImplementedError(
                f"{self._name}: attempted to run this operator with Meta tensors, but there was no fake impl or Meta "
                f"kernel registered. You may have run into this message while using an operator with PT2 compilation "
                f"APIs (torch.compile/torch.export); in order to use this operator with those APIs you'll need to add "
                f"a fake impl. Please register one with torch.library.register_fake.")
        if self.missing is not None:
            self.missing(device)
        raise NotImplementedError(f"Could not run '{self._name}' with arguments from the '{device}' backend: no kernel "
                                  f"is registered for it")

    def _recorded(self, kernel: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a kernel as one step of the tape."""
        if self.backward is None and self.function is None and self.vmap is None:
            if self.kernels.get("Autograd") is _unregistered.fallthrough_kernel:
                return kernel(*args, **kwargs)
            return _unregistered.run(self._name, kernel, args, kwargs)
        if self.schema is not None and kwargs:
            names = [a.name for a in self._schema.arguments if not a.kwarg_only]
            while len(args) < len(names) and names[len(args)] in kwargs:        # by position, as autograd wants them
                args, kwargs = (*args, kwargs[names[len(args)]]), {k: v for k, v in kwargs.items()
                                                                   if k != names[len(args)]}
        tensors = _unregistered.tensors_in(args)
        if not (mode.batches or mode.record and any(node_of(t) is not None for t in tensors)):
            return self._checked(kernel(*args, **kwargs), args, kwargs)
        if (self.vmap is None and not self.is_mutable and any(type(t._storage).rank for t in tensors)
                and not any(isinstance(arg, (list, tuple)) and _unregistered.tensors_in(arg) for arg in args)):
            return one_by_one(self, args, kwargs)       # a kernel may look at memory
        return step_of(self, kernel, kwargs).apply(*args)

    def _checked(self, output: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what a kernel returned, or raise if it shares memory; date the writes that the schema tells of."""
        if self.function is None:
            return output
        given, made = _unregistered.tensors_in((*args, *kwargs.values())), _unregistered.tensors_in((output,))
        seen = {id(t._storage) for t in given}
        for tensor in made:
            if id(tensor._storage) in seen:
                raise RuntimeError(
                    f"{self.function.__name__} (with implementation in {self.function.__module__}): The output of this "
                    f"custom operator (1) must not also be an input to this custom operator and (2) may not alias any "
                    f"inputs to this custom operator or other returns. The most common way to trigger this error is if "
                    f"we have y = custom_op(x) and y and x are the same Tensor. Please instead return a clone of the "
                    f"offending output tensor(s) (e.g. return x.clone()) or refactor the custom operator to not return "
                    f"y.")
            seen.add(id(tensor._storage))
        if self._schema.is_mutable:
            by_place, by_name = self._schema.bound(args, kwargs)
            values = {**dict(zip((a.name for a in self._schema.arguments), by_place)), **by_name}
            for argument in self._schema.arguments:
                if argument.alias_info is not None and argument.alias_info.is_write:
                    for tensor in _unregistered.tensors_in((values[argument.name],)):
                        tensor._storage.wrote()
        return output


class OperatorPacket(OpOverloadPacket):
    """An operator that a program defines: its overloads are attributes. A call chooses the first that takes the
    arguments.
    """

    def __init__(self, namespace: str, name: str) -> None:
        super().__init__(namespace, name, self.__call__)
        self._opname = name

    def __getattr__(self, overload: str) -> Operator:
        name = vars(self)["_qualified_op_name"]
        found = OPERATORS.get(name if overload == "default" else f"{name}.{overload}")
        if found is None or not found.defined:
            raise AttributeError(f"The underlying op of '{self}' has no overload name '{overload}'")
        return found

    def __reduce__(self) -> Any:
        return packet_of, (self.namespace, self.__name__)

    def overloads(self) -> list[str]:
        """Return the names of all overloads."""
        return [operator._overloadname for operator in self._overloads()]

    def _overloads(self) -> list[Operator]:
        first = self._qualified_op_name
        return [operator for name, operator in OPERATORS.items()
                if (name == first or name.startswith(f"{first}.")) and operator.defined]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if ASKING and state.classes and (found := overriding((*args, *kwargs.values()))):
            return asked(self, found, args, kwargs)
        overloads = self._overloads()
        if len(overloads) == 1 or any(operator.schema is None for operator in overloads):
            return overloads[0](*args, **kwargs)
        takes = import_module("._library.arguments", __package__).takes
        for operator in overloads:
            if takes(operator._schema, args, kwargs):
                return operator(*args, **kwargs)
        schemas = "\n\n".join(f"Declaration: {operator._schema}" for operator in overloads)
        raise RuntimeError(f"Overloaded torch operator invoked from Python failed to match any schema:\n{schemas}")


@cache
def packet_of(namespace: str, name: str) -> OperatorPacket:
    """Return the operator of a name, with all its overloads."""
    return OperatorPacket(namespace, name)


def overload_of(namespace: str, name: str, overload: str) -> Operator:
    """Return an overload of an operator."""
    return getattr(packet_of(namespace, name), overload)  # type: ignore[no-any-return]


def step_of(operator: Operator, kernel: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
    """Return the Function that runs an operator's kernel, and has its registered gradients and rule for batches."""

    class Step(Function):
        generate_vmap_rule = operator.vmap is None

        @staticmethod
        def forward(*inputs: Any) -> Any:
            return operator._checked(kernel(*inputs, **kwargs), inputs, kwargs)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            if operator.setup_context is None:
                return
            ctx.argument_count_, by_name = len(inputs), kwargs
            if operator.schema is not None:
                inputs, by_name = operator._schema.bound(inputs, kwargs)
            more = {"keyword_only_inputs": by_name} if by_name else {}
            operator.setup_context(ctx=ctx, inputs=inputs, output=output, **more)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            if operator.backward is None:
                raise RuntimeError(f"Trying to backward through {operator} but no autograd formula was "
                                   "registered. Please use register_autograd to add one.")
            found = operator.backward(ctx, *gradients)
            count = getattr(ctx, "argument_count_", None)
            return found[:count] if isinstance(found, tuple) else found     # not for arguments that were left out

    if operator.vmap is not None:
        def vmap(info: Any, in_dims: Any, *inputs: Any) -> Any:
            return operator.vmap(info, in_dims, *inputs, **kwargs)
        Step.vmap = staticmethod(vmap)      # type: ignore[method-assign]
    Step._node_class.__name__ = f"GeneratedBackwardFor_{str(operator).replace('.', '_')}Backward"
    return Step


class HigherOrderOperator:
    """An operator whose arguments include functions: `py_impl` registers what it runs.

    Kernels of transforms and of tracers are kept, and not called: the kernel for tensors runs on the tape. A kernel of
    autograd is called where there is no other.
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
        for name in ("CompositeExplicitAutograd", "CompositeImplicitAutograd", "CPU", "Autograd", "AutogradCPU"):
            if name in by_name:
                return by_name[name](*args, **kwargs)
        raise NotImplementedError(f"{self._name} has no kernel for tensors: register one with py_impl")


class _OpNamespace:
    """The operators of one namespace, as attributes."""

    def __init__(self, name: str) -> None:
        self.name = self.__name__ = name

    def __getattr__(self, op: str) -> Any:
        if (packet := packet_of(self.name, op))._overloads():
            return packet
        if self.name == "higher_order":
            operators = import_module(".operators", f"{__name__.rpartition('.')[0]}._higher_order_ops")
            if op in operators.__all__:
                return getattr(operators, op)
        if self.name in ("aten", "prim", "prims") and (not op.startswith("__") or op.strip("_") in OPERATORS_OF_PYTHON):
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
