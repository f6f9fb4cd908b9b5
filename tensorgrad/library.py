"""torch.library: operators that a program defines, called as `torch.ops.namespace.name`.

https://pytorch.org/docs/stable/library.html

Operators run eagerly, as all functions here do: rules for a compiler's shapes (`register_fake`) are accepted and not
used.

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

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ._ops import OPERATORS, Operator
from ._unregistered import fallthrough_kernel
from .messages.unsupported import unsupported

_ABSENT = "opcheck triton_op wrap_triton"
__all__ = ["CustomOpDef", "Library", "custom_op", "define", "fallthrough_kernel", "get_ctx", "impl", "impl_abstract",
           "register_autograd",
           "register_fake", "register_kernel",
           "register_vmap", *_ABSENT.split()]
globals().update(unsupported(_ABSENT, "torch.library",
                             "operators run as they are written, and nothing checks or compiles them"))


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
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self.m: Any = _Registrations()

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Make an operator `name(arguments) -> results` of the namespace; its name."""
        if self.kind == "IMPL":
            raise RuntimeError("def(): cannot define an operator in a library of the kind 'IMPL'")
        name = schema.partition("(")[0].strip()
        full = f"{self.ns}::{name}"
        if (known := OPERATORS.get(full)) is not None and known.schema is not None:
            raise RuntimeError(f"Tried to register an operator ({self.ns}::{schema}) with the same name and overload "
                               "name multiple times. Each overload's schema should only be registered with a single "
                               "call to def().")
        OPERATORS.setdefault(full, Operator(full, schema)).schema = schema
        self.m.defined.append(full)
        return name

    def impl(self, op_name: Any, fn: Callable[..., Any], dispatch_key: str = "", *, with_keyset: bool = False,
             allow_override: bool = False) -> None:
        """Register a kernel for one device ('CPU', 'CUDA'), or for all of them.

        The keys for all are 'CompositeImplicitAutograd' and 'CompositeExplicitAutograd'.
        """
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        name = op_name if isinstance(op_name, str) else op_name.name
        name, key = (name if "::" in name else f"{self.ns}::{name}",
                     dispatch_key or self.dispatch_key or "CompositeImplicitAutograd")
        OPERATORS.setdefault(name, Operator(name)).kernels[key] = fn
        self.m.registered.append((name, key))

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
        self._operator, self._init_fn, self._qualname = operator, function, operator.name
        self._opoverload = operator             # PyTorch's name for it
        self._namespace, _, self._name = operator.name.partition("::")
        self._opoverload = operator
        self.__name__, self.__doc__ = function.__name__, function.__doc__

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._operator(*args, **kwargs)

    def register_kernel(self, device_types: Any, fn: Any = None, /) -> Any:
        """Register another function for some devices."""
        return register_kernel(self._qualname, device_types, fn)

    def register_fake(self, fn: Any, /) -> Any:
        """Accept a function that computes the shapes of results: nothing here calls it."""
        return register_fake(self._qualname, fn)

    def register_autograd(self, backward: Callable[..., Any], /, *, setup_context: Any = None) -> None:
        """The gradients: backward(ctx, *gradients), setup_context(ctx, inputs, output)."""
        register_autograd(self._qualname, backward, setup_context=setup_context)

    def register_vmap(self, func: Any = None, /) -> Any:
        """Accept a rule for batches: vmap runs the ops that the operator calls."""
        return register_vmap(self._qualname, func)


def custom_op(name: str, fn: Any = None, /, *, mutates_args: Any, device_types: Any = None, schema: str | None = None,
              tags: Any = None) -> Any:
    """Make a function an operator, which autograd does not look into.

    https://pytorch.org/docs → torch.library.custom_op
    """
    def made(function: Callable[..., Any]) -> CustomOpDef:
        if name.count("::") != 1:
            raise ValueError(f"Expected `name` to be of the form `namespace::name`, got {name}")
        operator = OPERATORS[name] = Operator(name, schema, function)
        for key in _keys(device_types):
            operator.kernels[key] = function
        return CustomOpDef(operator, function)
    return made if fn is None else made(fn)


def define(qualname: str, schema: Any, *, lib: Any = None, tags: Any = ()) -> Any:
    """Make an operator `namespace::name` without a kernel. https://pytorch.org/docs → torch.library.define"""
    if not isinstance(qualname, str):
        raise ValueError(f"define(qualname, schema): expected qualname to be instance of str, got {type(qualname)}")
    namespace, _, name = qualname.partition("::")
    if isinstance(schema, str):
        _kept(lib, namespace).define(name + schema)
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
    """Accept a function that computes the shapes of results: nothing here calls it.

    https://pytorch.org/docs → torch.library.register_fake
    """
    return (lambda function: function) if func is None else func


impl_abstract = register_fake


def register_vmap(op: Any, func: Any = None, /, *, lib: Any = None) -> Any:
    """Accept a rule for batches: vmap runs the ops that the operator calls instead.

    https://pytorch.org/docs → torch.library.register_vmap
    """
    return (lambda function: function) if func is None else func


def register_autograd(op: Any, backward: Callable[..., Any], /, *, setup_context: Any = None, lib: Any = None) -> None:
    """The gradients of an operator. https://pytorch.org/docs → torch.library.register_autograd"""
    name = _name(op)
    # which may be in a compiled library that is not loaded
    operator = OPERATORS.setdefault(name, Operator(name))
    operator.backward, operator.setup_context = backward, setup_context


def get_ctx() -> Any:
    """The context of a `register_fake` function, which never runs."""
    raise RuntimeError("get_ctx() can only be called inside of a register_fake function")


def _name(op: Any) -> str:
    return op if isinstance(op, str) else getattr(op, "_qualname", None) or op.name


def _operator(name: str) -> Operator:
    if name not in OPERATORS:
        raise RuntimeError(f"operator {name} does not exist")
    return OPERATORS[name]


def _keys(device_types: Any) -> list[str]:
    types = [device_types] if isinstance(device_types, str) else device_types
    return ["CompositeExplicitAutograd"] if types is None else [device.upper() for device in types]


def _registering(name: str, keys: list[str], function: Any) -> Any:
    def registered(function: Callable[..., Any]) -> Callable[..., Any]:
        operator = _operator(name)
        operator.kernels.update(dict.fromkeys(keys, function))
        return function
    return registered if function is None else registered(function)
