"""torch.library: operators that a program defines, called as `torch.ops.namespace.name`.

https://pytorch.org/docs/stable/library.html

Operators run eagerly, as all functions here do: rules for shapes (`register_fake`) run for tensors of device 'meta',
and in `opcheck`.

>>> import tensorgrad as torch
>>> @torch.library.custom_op("doc::square", mutates_args=())
... def square(x: torch.Tensor) -> torch.Tensor:
...     return x * x
>>> square.register_autograd(lambda ctx, g: 2 * g * ctx.saved_tensors[0], setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs))
>>> x = torch.tensor([3.], requires_grad=True)
>>> square(x).backward()
>>> x.grad
tensor([6.])
"""  # noqa: E501
from __future__ import annotations

import logging
import re
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ._library.infer_schema import infer_schema
from ._library.opcheck import opcheck
from ._library.schemas import parse
from ._ops import OPERATORS, Operator
from ._unregistered import fallthrough_kernel
from .device import device as torch_device
from .messages.unsupported import unsupported

_ABSENT = "triton_op wrap_triton"
__all__ = ["CustomOpDef", "Library", "custom_op", "define", "fallthrough_kernel", "get_ctx", "get_kernel", "impl",
           "impl_abstract", "infer_schema", "opcheck", "register_autograd", "register_fake", "register_kernel",
           "register_torch_dispatch", "register_vmap", *_ABSENT.split()]
globals().update(unsupported(_ABSENT, "torch.library", "there is no Triton here: its kernels are compiled for a GPU"))


# PyTorch's dispatch keys, of which those for devices, shapes, autograd and all of them have an effect here
KEY = re.compile("(Auto(grad|cast)|Sparse(Csr)?|Quantized|NestedTensor)?(CPU|CUDA|HIP|XLA|MPS|IPU|XPU|HPU|VE|Lazy|MTIA|"
                 "MAIA|PrivateUse[123]|Meta|Other|NestedTensor|Functionality)?|Composite(Im|Ex)plicitAutograd("
                 "NonFunctional|NestedTensor)?|BackendSelect|Python(TLSSnapshot|Dispatcher)?|PreDispatch|Functionalize|"
                 "ADInplaceOrView|Named|Conjugate|Negative|ZeroTensor|Tracer|(FuncTorch)?(Batched|VmapMode|"
                 "BatchedDecomposition|DynamicLayer(Front|Back)Mode)|FuncTorchGradWrapper|Dense|Undefined")


class _Registrations:
    """The definitions and registrations of a library, which are removed with this object."""

    def __init__(self) -> None:
        self.defined: list[str] = []
        self.registered: list[tuple[str, str]] = []
        self.remove = weakref.finalize(self, _remove, self.defined, self.registered)
        self.remove.atexit = False


def _remove(defined: list[str], registered: list[tuple[str, str]]) -> None:
    for name, key in registered:
        if (operator := OPERATORS.get(name)) is not None:
            operator.kernels.pop(key, None)
    for name in defined:
        OPERATORS.pop(name, None)


_KEPT: list[Any] = []       # libraries of operators that `define` made, which stay


class Library:
    """The operators of one namespace; kind: 'DEF', 'FRAGMENT' or 'IMPL'.

    https://pytorch.org/docs → torch.library.Library
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("DEF", "FRAGMENT", "IMPL"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns == "prim" and kind != "IMPL":
            raise ValueError(f"{ns} is a reserved namespace. Please try creating a library with another name.")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self.m: Any = _Registrations()

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Make an operator `name(arguments) -> results` of the namespace; its name."""
        if self.kind == "IMPL":
            raise RuntimeError("def(): cannot define an operator in a library of the kind 'IMPL'")
        name = schema.partition("(")[0].strip()
        parse(schema)
        full = f"{self.ns}::{name}"
        if (known := OPERATORS.get(full)) is not None and known.schema is not None:
            raise RuntimeError(f"Tried to register an operator ({self.ns}::{schema}) with the same name and overload "
                               "name multiple times. Each overload's schema should only be registered with a single "
                               "call to def().")
        operator = OPERATORS.setdefault(full, Operator(full, schema))
        operator.schema, operator.tags = schema, list(tags) if isinstance(tags, (tuple, list, set)) else [tags]
        self.m.defined.append(full)
        return name

    def impl(self, op_name: Any, fn: Callable[..., Any], dispatch_key: str = "", *, with_keyset: bool = False,
             allow_override: bool = False) -> None:
        """Register a kernel for one device ('CPU', 'CUDA'), or for all of them.

        The keys for all are 'CompositeImplicitAutograd' and 'CompositeExplicitAutograd'.
        """
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        if dispatch_key and self.dispatch_key not in ("", dispatch_key):
            raise RuntimeError(f"Explicitly provided dispatch key ({dispatch_key}) is inconsistent with the dispatch "
                               f"key of the enclosing TORCH_LIBRARY_IMPL block ({self.dispatch_key}).")
        name = op_name if isinstance(op_name, str) else op_name._name
        name, key = (name if "::" in name else f"{self.ns}::{name}",
                     dispatch_key or self.dispatch_key or "CompositeImplicitAutograd")
        if KEY.fullmatch(key) is None:
            raise RuntimeError(f"could not parse dispatch key: {key}")
        OPERATORS.setdefault(name, Operator(name)).kernels[key] = fn
        self.m.registered.append((name, key))

    def _register_fake(self, op_name: str, fn: Callable[..., Any], _stacklevel: int = 1, *,
                       allow_override: bool = False) -> None:
        """Register a function that computes the shapes of results."""
        from ._library.fake_impl import without_context
        from ._library.utils import get_source
        name, source = op_name if "::" in op_name else f"{self.ns}::{op_name}", get_source(_stacklevel + 1)
        self.impl(op_name, without_context(name, fn, source), "Meta")
        OPERATORS[name].sources["Meta"] = source

    def _register_torch_dispatch_rule(self, op_name: str, torch_dispatch_class: type, fn: Callable[..., Any]) -> None:
        """Register what an operator does for a class, or in a mode, that defines `__torch_dispatch__`."""
        _operator(op_name if "::" in op_name else f"{self.ns}::{op_name}").dispatch_rules[torch_dispatch_class] = fn

    def fallback(self, fn: Any, dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        """Accept a fallback kernel and ignore it: it is never called."""

    def _destroy(self) -> None:
        """Remove what this library defined and registered; so does the end of the object."""
        self.m.remove()


@contextmanager
def _scoped_library(ns: str, kind: str, dispatch_key: str = "") -> Iterator[Library]:
    """Make a library whose operators are removed at the end of the `with` block."""
    library = Library(ns, kind, dispatch_key)
    try:
        yield library
    finally:
        library._destroy()


class CustomOpDef:
    """An operator made from a function by `custom_op`. https://pytorch.org/docs → torch.library.custom_op"""

    def __init__(self, operator: Operator, function: Callable[..., Any]) -> None:
        self._opoverload, self._init_fn, self._qualname = operator, function, operator._name
        self._namespace, _, self._name = operator._name.partition("::")
        self.__name__, self.__doc__ = function.__name__, function.__doc__

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._opoverload(*args, **kwargs)

    @property
    def _schema(self) -> str:
        return self._opoverload.schema or ""

    def register_kernel(self, device_types: Any, fn: Any = None, /) -> Any:
        """Register another function for some devices."""
        _check_devices(self._opoverload, device_types)
        return register_kernel(self._qualname, device_types, fn)

    @contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """Switch the kernel that `register_kernel` registered for a device on or off, for a `with` block."""
        operator, key = self._opoverload, device_type.upper()
        before = set(operator.disabled)
        if key not in operator.kernels:
            _warn("Attempted to set kernel enabled=%s for device type %s, but no kernel was registered for this device "
                  "type.", enabled, device_type)
        elif enabled is (key not in before):
            _warn("Attempted to set kernel enabled=%s for device type %s, but it is already %s.", enabled, device_type,
                  "enabled" if enabled else "disabled")
        operator.disabled = before - {key} if enabled else before | {key}
        try:
            yield
        finally:
            operator.disabled = before

    def register_fake(self, fn: Any, /) -> Any:
        """Register a function that computes the shapes of results, from tensors of device 'meta'."""
        return register_fake(self._qualname, fn, _stacklevel=2)

    def register_torch_dispatch(self, torch_dispatch_class: type, fn: Any = None, /) -> Any:
        """Register what the operator does for a class, or in a mode, that defines `__torch_dispatch__`."""
        return register_torch_dispatch(self._qualname, torch_dispatch_class, fn)

    def register_autograd(self, backward: Callable[..., Any], /, *, setup_context: Any = None) -> None:
        """The gradients: backward(ctx, *gradients), setup_context(ctx, inputs, output)."""
        register_autograd(self._qualname, backward, setup_context=setup_context)

    def register_vmap(self, func: Any = None, /) -> Any:
        """Register a rule for batches: func(info, in_dims, *args) returns results and their batch axes."""
        return register_vmap(self._qualname, func)


def _warn(text: str, *values: Any) -> None:
    """Log as PyTorch does, whose programs may look for the logger's name."""
    logging.getLogger("torch._library.custom_ops").warning(text, *values)


def custom_op(name: str, fn: Any = None, /, *, mutates_args: Any, device_types: Any = None, schema: str | None = None,
              tags: Any = None) -> Any:
    """Make a function an operator, which autograd does not look into.

    The function's annotations say the schema, unless `schema` does.

    Errors: ValueError for a name without a namespace, annotations that are missing or that no schema has, writes other
        than to `mutates_args`, and device types for a function that takes no tensor and no `device`;
        NotImplementedError for tensors that are passed by name alone
    https://pytorch.org/docs → torch.library.custom_op
    """
    def made(function: Callable[..., Any]) -> CustomOpDef:
        if name.count("::") != 1:
            raise ValueError(f"Expected `name` to be of the form `namespace::name`, got {name}")
        text = schema if schema is not None else infer_schema(function, mutates_args=mutates_args)
        operator = Operator(name, text, function)
        _check_schema(operator, mutates_args, schema)
        operator.tags = [] if tags is None else list(tags) if isinstance(tags, (tuple, list, set)) else [tags]
        _check_devices(operator, device_types)
        OPERATORS[name] = operator
        for key in _keys(device_types):
            operator.kernels[key] = function
        if operator._schema.returns:
            operator.kernels["Meta"] = operator.refusal = _without_shapes(operator)
        else:                                       # nothing has a shape
            operator.kernels["Meta"] = lambda *args, **kwargs: None
        return CustomOpDef(operator, function)
    return made if fn is None else made(fn)


def _without_shapes(operator: Operator) -> Callable[..., Any]:
    """Return the kernel for shapes of an operator that has none: an error."""
    def refuse(*args: Any, **kwargs: Any) -> Any:
        function: Any = operator.function
        raise RuntimeError(f"There was no fake impl registered for <CustomOpDef({operator._name})>. This is necessary "
                           f"for torch.compile/export/fx tracing to work. Please use "
                           f"`{function.__name__}.register_fake` to add an fake impl.")
    return refuse


def _check_schema(operator: Operator, mutates_args: Any, given: str | None) -> None:
    """Raise PyTorch's error for arguments that a custom operator may not have."""
    found = operator._schema
    if any(a.kwarg_only and a.of_tensors for a in found.arguments):
        raise NotImplementedError(f"custom_op with kwarg-only Tensor args. Please make your tensors not kwarg-only. "
                                  f"Got: {operator._opname}{operator.schema}")
    written = {a.name for a in found.arguments if a.alias_info is not None and a.alias_info.is_write}
    if given is not None and mutates_args != "unknown" and written != set(mutates_args):
        raise ValueError(f"Attempted to create a custom op with `mutates_args={mutates_args}` and `schema={given}. The "
                         f"schema suggests that the op mutates {written}which is different from what was provided to "
                         f"us in `mutates_args`. Please make these consistent.")


def _check_devices(operator: Operator, device_types: Any) -> None:
    """Raise PyTorch's error for a kernel of some devices whose arguments do not tell the device."""
    arguments = operator._schema.arguments
    if device_types is not None and not any(a.of_tensors or a.text == "Device" and a.name == "device"
                                            for a in arguments):
        raise ValueError("Functions without tensor inputs are required to have a `device: torch.device` argument")


SCHEMA = re.compile(r"\(.*\) -> .*")


def define(qualname: Any, schema: Any, *, lib: Any = None, tags: Any = ()) -> Any:
    """Make an operator `namespace::name` without a kernel. https://pytorch.org/docs → torch.library.define"""
    if isinstance(qualname, Library):               # define(library, schema): a decorator
        def first(function: Callable[..., Any]) -> Callable[..., Any]:
            qualname.impl(qualname.define(schema, tags=tags), function)
            return function
        return first
    if not isinstance(qualname, str):
        raise ValueError(f"define(qualname, schema): expected qualname to be instance of str, got {type(qualname)}")
    namespace, colons, name = qualname.partition("::")
    if not colons:
        raise ValueError(f'Expected `qualname` to be of the form "namespace::name", but got {qualname}. The qualname '
                         f"passed to the torch.library APIs must consist of a namespace and a name, e.g. aten::sin")
    if isinstance(schema, str):
        if SCHEMA.fullmatch(schema) is None:
            raise ValueError(f'define(qualname, schema, ...): expected schema to look like e.g. "(Tensor x) -> Tensor" '
                             f'but got "{schema}"')
        _kept(lib, namespace).define(name + schema, tags=tags)
        return None

    # the older form: a decorator without a schema
    def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
        _kept(lib, namespace).define(name)
        return function
    return wrapped


def _kept(library: Any, namespace: str) -> Any:
    """Return the library, or a new one of the namespace, which stays."""
    if library is None:
        _KEPT.append(library := Library(namespace, "FRAGMENT"))
    return library


def impl(qualname: Any, types: Any, func: Any = None, *, lib: Any = None) -> Any:
    """A kernel of an operator for device types, or for 'default'. https://pytorch.org/docs → torch.library.impl"""
    if isinstance(qualname, Library):                                           # impl(library, name, key): a decorator
        library, name, key = qualname, types, func or ""

        def registered(function: Any) -> Any:
            library.impl(name, function, key)
            return function
        return registered
    return _registering(qualname, ["CompositeExplicitAutograd"] if types == "default" else _keys(types), func)


def register_kernel(op: Any, device_types: Any, func: Any = None, /, *, lib: Any = None) -> Any:
    """A kernel of an operator for device types. https://pytorch.org/docs → torch.library.register_kernel"""
    return _registering(_name(op), _keys(device_types), func)


def register_fake(op: Any, func: Any = None, /, *, lib: Any = None, _stacklevel: int = 1,
                  allow_override: bool = False) -> Any:
    """Register a function that computes the shapes of an operator's results, from tensors of device 'meta'.

    https://pytorch.org/docs → torch.library.register_fake

    >>> import tensorgrad as torch
    >>> @torch.library.custom_op("doc::pairs", mutates_args=())
    ... def pairs(x: torch.Tensor) -> torch.Tensor:
    ...     return torch.from_numpy(x.numpy().reshape(-1, 2).copy())
    >>> @pairs.register_fake
    ... def _(x):
    ...     return x.new_empty(x.numel() // 2, 2)
    >>> pairs(torch.empty(6, device="meta")).shape
    torch.Size([3, 2])
    """
    if not isinstance(op, str) and not hasattr(op, "_name") and not hasattr(op, "_qualname"):
        raise ValueError(f"register_fake({op}): got unexpected type for op: {type(op)}")
    name = _name(op)
    from ._library.fake_impl import without_context
    from ._library.utils import get_source
    operator = OPERATORS.setdefault(name, Operator(name))    # which may be in a compiled library that is not loaded
    if "CompositeImplicitAutograd" in operator.kernels:
        raise RuntimeError(f"{name}: the operator is already registered with a CompositeImplicitAutograd kernel, which "
                           f"computes the shapes of its results")

    def registered(function: Callable[..., Any], stacklevel: int = 2) -> Callable[..., Any]:
        operator.sources["Meta"] = source = get_source(stacklevel)
        operator.kernels["Meta"] = without_context(name, function, source)
        return function
    return registered if func is None else registered(func, _stacklevel + 2)


def impl_abstract(qualname: Any, func: Any = None, *, lib: Any = None, _stacklevel: int = 1) -> Any:
    """`register_fake`, by its older name. https://pytorch.org/docs → torch.library.register_fake"""
    return register_fake(qualname, func, lib=lib, _stacklevel=_stacklevel + 1)


def register_vmap(op: Any, func: Any = None, /, *, lib: Any = None) -> Any:
    """Register a rule for batches: func(info, in_dims, *args) returns results and their batch axes.

    Without one, vmap runs what the operator calls.

    https://pytorch.org/docs → torch.library.register_vmap
    """
    operator = _operator(_name(op))
    _refuse_named_tensors("register_vmap", operator)

    def registered(function: Callable[..., Any]) -> Callable[..., Any]:
        operator.vmap = function
        return function
    return registered if func is None else registered(func)


def register_torch_dispatch(op: Any, torch_dispatch_class: type, func: Any = None, /, *, lib: Any = None) -> Any:
    """Register what an operator does for a class, or in a mode, that defines `__torch_dispatch__`.

    func(class or mode, operator, types, args, kwargs) is called in its place.

    https://pytorch.org/docs → torch.library.register_torch_dispatch
    """
    operator = _operator(_name(op))

    def registered(function: Callable[..., Any]) -> Callable[..., Any]:
        operator.dispatch_rules[torch_dispatch_class] = function
        return function
    return registered if func is None else registered(func)


def get_kernel(op: Any, dispatch_key: str) -> Callable[..., Any]:
    """The kernel that is registered for a key, as 'CPU'. https://pytorch.org/docs → torch.library.get_kernel"""
    kernels = _operator(_name(op)).kernels
    if dispatch_key not in kernels:
        raise RuntimeError(f"No kernel registered for {_name(op)} and the dispatch key {dispatch_key}")
    return kernels[dispatch_key]


def _refuse_named_tensors(caller: str, operator: Operator) -> None:
    """Raise PyTorch's error for an operator whose tensors are passed by name."""
    if operator.schema is not None and any(a.kwarg_only and a.of_tensors for a in operator._schema.arguments):
        raise NotImplementedError(f"{caller} with kwarg-only Tensor args. In the original definition of the op, please "
                                  f"make your tensors not kwarg-only. Got: {operator._schema}")


def register_autograd(op: Any, backward: Callable[..., Any], /, *, setup_context: Any = None, lib: Any = None) -> None:
    """The gradients of an operator. https://pytorch.org/docs → torch.library.register_autograd"""
    name = _name(op)
    # which may be in a compiled library that is not loaded
    operator = OPERATORS.setdefault(name, Operator(name))
    _refuse_named_tensors("register_autograd", operator)
    operator.backward, operator.setup_context = backward, setup_context


def get_ctx() -> Any:
    """The context of a `register_fake` function; None outside of one. https://pytorch.org/docs → torch.library.get_ctx

    Errors: RuntimeError inside of one: on device 'meta' no size depends on values
    """
    from ._library.fake_impl import state
    return state.getter()


def _name(op: Any) -> str:
    return op if isinstance(op, str) else getattr(op, "_qualname", None) or op._name


def _operator(name: str) -> Operator:
    if name not in OPERATORS:
        raise RuntimeError(f"operator {name} does not exist")
    return OPERATORS[name]


def _keys(device_types: Any) -> list[str]:
    """Return the dispatch keys of kernels: of types of devices, or keys themselves, which begin with a capital."""
    types = [device_types] if isinstance(device_types, str) else device_types
    return ["CompositeExplicitAutograd"] if types is None else [
        kind if kind[:1].isupper() else torch_device(kind).type.upper() for kind in types]


def _registering(name: str, keys: list[str], function: Any) -> Any:
    def registered(function: Callable[..., Any]) -> Callable[..., Any]:
        operator = _operator(name)
        operator.kernels.update(dict.fromkeys(keys, function))
        return function
    return registered if function is None else registered(function)
