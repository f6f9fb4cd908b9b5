"""Operators whose kernels, shapes and gradients are registered one by one, as in PyTorch 2.1.

New programs use `torch.library.custom_op`.
"""
from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, NoReturn

from .. import library
from .._library.infer_schema import infer_schema
from .._library.schemas import Schema, parse
from .._library.tags import Tag
from .._library.utils import get_source, is_functional_schema
from .._ops import OPERATORS, ops
from .autograd import autograd_kernel_indirection

__all__ = ["CustomOp", "custom_op", "get_ctx", "get_op", "infer_schema"]
get_ctx = library.get_ctx
SUPPORTED_DEVICE_TYPE_TO_KEY = {"cpu": "CPU", "cuda": "CUDA"}
RESERVED_NS = {"aten", "at", "prim", "prims", "pytorch", "torch"}
RESULTS = ("int", "SymInt", "bool", "float", "Tensor", "Tensor[]")      # whose operators may have gradients
global_registry: dict[str, CustomOp] = {}


class FuncAndLocation(NamedTuple):
    """A registered function, and the place in the program that registered it."""

    func: Callable[..., Any]
    location: str


class CustomOp:
    """An operator that a program defines. `custom_op` makes it."""

    def __init__(self, lib: Any, cpp_ns: str, schema: Schema, operator_name: str, ophandle: Any, *,
                 _private_access: bool = False) -> None:
        _warn(3)
        if not _private_access:
            raise RuntimeError("The CustomOp constructor is private and we do not guarantee BC for it. Please use "
                               "custom_op(...) to create a CustomOp object")
        self._lib, self._cpp_ns, self._schema, self._opname = lib, cpp_ns, schema, operator_name
        self._ophandle, self._qualname = ophandle, f"{cpp_ns}::{operator_name}"
        self._impls: dict[str, FuncAndLocation] = {}
        self._output_differentiability: list[bool] | None = None
        self._has_gradients = False
        global_registry[self._qualname] = self

    def __repr__(self) -> str:
        return f'<CustomOp(op="{self._qualname}")>'

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._ophandle(*args, **kwargs)

    def _has_impl(self, kind: str) -> bool:
        return kind in self._impls

    def _get_impl(self, kind: str) -> FuncAndLocation:
        return self._impls[kind]

    def _register_impl(self, kind: str, func: Callable[..., Any], stacklevel: int = 2) -> None:
        if kind in self._impls:
            raise RuntimeError(f"Attempting to register a {kind} impl for operator {self._qualname} that already has a "
                               f"{kind} impl registered from Python at {self._impls[kind].location}. This is not "
                               f"supported.")
        self._impls[kind] = FuncAndLocation(func, get_source(stacklevel + 1))

    def _register_autograd_kernel_indirection(self) -> None:
        self._has_gradients = True
        self._lib.impl(self._opname, autograd_kernel_indirection(self), "Autograd")

    def _destroy(self) -> None:
        """Remove the operator."""
        self._lib._destroy()
        del global_registry[self._qualname]

    def impl(self, device_types: str | Iterable[str], _stacklevel: int = 2) -> Callable[[Any], Any]:
        """Return a decorator that registers a kernel for types of devices."""
        kinds = [device_types] if isinstance(device_types, str) else list(device_types)
        for kind in kinds:
            validate_device_type(kind)

        def register(function: Any) -> Any:
            for kind in dict.fromkeys(kinds):
                key = SUPPORTED_DEVICE_TYPE_TO_KEY[kind]
                if not self._has_impl(kind) and not {key, *GENERAL}.isdisjoint(self._ophandle.kernels):
                    raise RuntimeError(f"impl(..., device_types={kind}): the operator {self._qualname} already has an "
                                       f"implementation for this device type via a pre-existing torch.library or "
                                       f"TORCH_LIBRARY registration.")
                self._register_impl(kind, function, _stacklevel)
                self._lib.impl(self._opname, function, key)
            return function
        return register

    def impl_factory(self) -> Callable[[Any], Any]:
        """Return a decorator that registers the kernel for calls without tensors."""
        def register(function: Any) -> Any:
            self._register_impl("factory", function)
            self._lib.impl(self._opname, function, "BackendSelect")
            return function
        return register

    def impl_abstract(self, _stacklevel: int = 2) -> Callable[[Any], Any]:
        """Return a decorator that registers a function that computes the shapes of results."""
        def register(function: Any) -> Any:
            self._check_meta()
            self._register_impl("abstract", function, _stacklevel)
            self._lib._register_fake(self._opname, function, _stacklevel)
            return function
        return register

    def _check_meta(self) -> None:
        kernels, begins = self._ophandle.kernels, f"impl_abstract(...): the operator {self._qualname} already has "
        if "CompositeImplicitAutograd" in kernels:
            raise RuntimeError(f"{begins}an implementation for this device type via a pre-existing registration to "
                               f"DispatchKey::CompositeImplicitAutograd.CompositeImplicitAutograd operators do not "
                               f"need an abstract impl; instead, the operator will decompose into its constituents and "
                               f"those can have abstract impls defined on them.")
        if "Meta" in kernels and not self._has_impl("abstract"):
            raise RuntimeError(f"{begins}a DispatchKey::Meta implementation via a pre-existing torch.library or "
                               f"TORCH_LIBRARY registration. Please either remove that registration or don't call "
                               f"impl_abstract.")

    def impl_save_for_backward(self, _stacklevel: int = 2) -> Callable[[Any], Any]:
        """Return a decorator that registers a function (inputs, output) → what backward needs."""
        def register(function: Any) -> None:
            self._let_record()
            self._register_impl("save_for_backward", function, _stacklevel)
        return register

    def impl_backward(self, output_differentiability: Any = None, _stacklevel: int = 2) -> Callable[[Any], Any]:
        """Return a decorator that registers a function (ctx, saved, *gradients) → {argument: gradient}."""
        flags = output_differentiability
        if flags is not None and not (isinstance(flags, list) and all(isinstance(flag, bool) for flag in flags)
                                      and len(flags) == len(self._schema.returns)):
            raise RuntimeError("impl_backward(output_differentiability): expected output_differentiability to be a "
                               "list of bools with length equal to the number of outputs of this CustomOp got: "
                               f"{flags}")

        def register(function: Any) -> None:
            self._let_record()
            self._register_impl("backward", function, _stacklevel)
            self._output_differentiability = flags
        return register

    def _let_record(self) -> None:
        """Register the kernel for autograd, unless another library gave the operator one."""
        self._check_differentiable()
        if self._has_gradients:
            return
        kernels, name = self._ophandle.kernels, self._qualname
        if "CompositeImplicitAutograd" in kernels:
            raise RuntimeError(f"impl_backward/impl_save_for_backward: the operator {name} already has an "
                               f"implementation for this device type via a pre-existing registration to DispatchKey::"
                               f"CompositeImplicitAutograd.CompositeImplicitAutograd operators do not need an autograd "
                               f"formula; instead, the operator will decompose into its constituents and those can "
                               f"have autograd formulas defined on them.")
        for key in ("Autograd", "AutogradCPU", "AutogradCUDA"):
            if key in kernels:
                raise RuntimeError(f"impl_backward/impl_save_for_backward: the operator {name} already has an Autograd "
                                   f"kernel registered to DispatchKey::{key} vi a pre-existing torch.library or "
                                   f"TORCH_LIBRARY registration. Please either remove those registrations or don't use "
                                   f"the torch._custom_ops APIs")
        self._register_autograd_kernel_indirection()

    def _check_differentiable(self) -> None:
        returns, detail = self._schema.returns, ""
        if self._schema.is_mutable:
            detail = "non-functional operator"
        elif not returns:
            detail = "operator with no returns"
        elif any(r.alias_info is not None for r in returns):
            detail = "operator that returns views"
        elif any(r.text not in RESULTS for r in returns):
            detail = f"operator with return not in {list(RESULTS)}"
        if detail:
            raise RuntimeError(f"Cannot use torch._custom_ops APIs to register backward formula for {detail}. Got "
                               f"operator {self._qualname} with schema: {self._schema}")


def _warn(stacklevel: int) -> None:
    warnings.warn("torch._custom_op is deprecated and will be removed in PyTorch 2.6, please use the equivalent "
                  "torch.library API instead.", DeprecationWarning, stacklevel=stacklevel)


GENERAL = ("CompositeExplicitAutograd", "CompositeImplicitAutograd")


def custom_op(qualname: str, manual_schema: str | None = None) -> Callable[[Any], CustomOp]:
    """Return a decorator that makes an operator with the name and annotations of a function that is never called."""
    _warn(3)

    def made(function: Any) -> CustomOp:
        namespace, name = parse_qualname(qualname)
        validate_namespace(namespace)
        check_name(qualname, name, function)
        schema = infer_schema(function, mutates_args=()) if manual_schema is None else manual_schema
        found = parse(f"{name}{schema}")
        validate_schema(found)
        if manual_schema is not None:
            validate_function_matches_schema(found, function)
        op = defined(namespace, found, [])
        op.__name__, op.__module__, op.__doc__ = (      # type: ignore[attr-defined]
            function.__name__, function.__module__, function.__doc__)
        return op
    return made


def check_name(qualname: str, name: str, function: Any) -> None:
    """Raise PyTorch's error unless this is a function of the operator's name."""
    if not inspect.isfunction(function):
        raise ValueError(f"custom_op(...)(func): Expected `func` to be a Python function, got: {type(function)}")
    if function.__name__ != name:
        raise ValueError(f"custom_op(qualname='{qualname}', ...)(func): expected `func` to have name '{name}' but got "
                         f"'{function.__name__}'. Please either change the name of `func` or the qualname that is "
                         f"passed to `custom_op`")


def defined(namespace: str, schema: Schema, tags: list[Any]) -> CustomOp:
    """Define an operator without kernels, whose calls are refused until it has some."""
    lib = library.Library(namespace, "FRAGMENT")
    lib.define(str(schema), tags=tags)
    op = CustomOp(lib, namespace, schema, schema.name, OPERATORS[f"{namespace}::{schema.name}"], _private_access=True)
    op._register_autograd_kernel_indirection()
    op._ophandle.missing = lambda key: report_error_callback(op, key)
    return op


def _custom_op_with_schema(qualname: str, schema: str, needs_fixed_stride_order: bool = True) -> Any:
    """Define an operator of a schema without a name, and return it."""
    namespace, name = parse_qualname(qualname)
    found = parse(f"{name}{schema}")
    validate_schema(found)
    tags = [Tag["needs_fixed_stride_order"]] if needs_fixed_stride_order else []
    return defined(namespace, found, tags)._ophandle


def validate_namespace(ns: str) -> None:
    """Raise PyTorch's error for a namespace that an operator may not have."""
    if "." in ns:
        raise ValueError(f'custom_op(..., ns="{ns}"): expected ns to not contain any . (and be a valid variable name)')
    if ns in RESERVED_NS:
        raise ValueError(f"custom_op(..., ns='{ns}'): '{ns}' is a reserved namespace, please choose something else. ")


def validate_schema(schema: Schema) -> None:
    """Raise PyTorch's error for a schema that an operator may not have."""
    if not is_functional_schema(schema):
        raise ValueError(f"custom_op only supports functional operators (ops that do not mutate any inputs, do not "
                         f"return views of the inputs, and has at least one return). Got the following non-functional "
                         f"schema: {schema}")
    if any(a.name == "self" for a in schema.arguments):
        raise ValueError(f"custom_op does not support arguments named 'self'. Please rename your argument. Got: "
                         f"{schema}")


def parse_qualname(qualname: str) -> tuple[str, str]:
    """Split `namespace::name`. Errors: ValueError without a namespace, or for a name with an overload's."""
    namespace, colons, name = qualname.partition("::")
    if not colons:
        raise ValueError(f"Expected there to be a namespace in {qualname}, i.e. The operator name should look "
                         f"something like ns::foo")
    if "." in name:
        raise ValueError(f"The torch.custom_ops APIs do not handle overloads, i.e. operator names with '.' in them. "
                         f"Please name your operator something like ns::foo. Got: {qualname}")
    return namespace, name


def validate_device_type(device_type: str) -> None:
    """Raise PyTorch's error for a type of devices that has no kernels."""
    if device_type not in SUPPORTED_DEVICE_TYPE_TO_KEY:
        raise ValueError(f"CustomOp.impl(device_types=[{device_type}, ...]): we only support device_type in "
                         f"{SUPPORTED_DEVICE_TYPE_TO_KEY.keys()}.")


def validate_function_matches_schema(schema: Schema, func: Callable[..., Any]) -> None:
    """Raise PyTorch's error unless a function without annotations has the arguments of a schema."""
    found, begins = inspect.signature(func), "custom_op(..., manual_schema)(func): "
    kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    given = list(found.parameters.values())
    if any(p.kind not in kinds for p in given):
        raise ValueError(f"{begins}positional-only args, varargs, and kwargs are not supported. Please rewrite `func` "
                         f"to not have them. Got `func` with signature: {found}")
    empty = inspect.Parameter.empty
    if found.return_annotation is not empty or any(p.annotation is not empty for p in given):
        raise ValueError(f"{begins}When passing in a manual schema, we expect `func` to have no type annotations to "
                         f"avoid ambiguity. Got `func` with signature: {found}")
    if [(p.name, p.kind is kinds[1]) for p in given] != [(a.name, a.kwarg_only) for a in schema.arguments]:
        raise ValueError(f"{begins}When passing in a manual schema, we expect `func`'s signature to match "
                         f"`manual_schema` (aside from type annotations). func's signature: {found}, manual_schema: "
                         f"{schema}")
    if any(p.default is not empty for p in given) or any(a.optional for a in schema.arguments):
        raise ValueError(f"{begins}neither func nor manual_schema should have default arguments. Got func's signature: "
                         f"{found}, manual_schema: {schema}")


def report_error_callback(custom_op: Any, key: str) -> NoReturn:
    """Raise PyTorch's error for a call that no kernel is registered for."""
    if key == "Undefined":
        raise NotImplementedError(f"{custom_op}: There were no Tensor inputs to this operator (e.g. you passed an "
                                  f"empty list of Tensors). If your operator is a factory function (that is, it takes "
                                  f"no Tensors and constructs a new one), then please use CustomOp.impl_factory to "
                                  f"register an implementation for it")
    begins = f"{custom_op}: when running with device='{key if key == 'Meta' else key.lower()}' tensors: there is no "
    if key == "Meta":
        raise NotImplementedError(f"{begins}abstract impl registered for this CustomOp. Please register one via "
                                  f"CustomOp.impl_abstract to get this CustomOp to work with Meta tensors")
    raise NotImplementedError(f"{begins}{key.lower()} impl registered for this CustomOp. Please register one via "
                              f"CustomOp.impl(device_type='{key.lower()}')")


def get_op(qualname: str) -> Any:
    """Return the overload without a name of an operator. Errors: ValueError if there is none."""
    namespace, name = parse_qualname(qualname)
    found = getattr(getattr(ops, namespace), name, None)
    if found is None:
        raise ValueError(f"Could not find the operator {qualname}. Please make sure you have already registered the "
                         f"operator and (if registered from C++) loaded it via torch.ops.load_library.")
    return found.default


def _find_custom_op(qualname: str, also_check_torch_library: bool = False) -> CustomOp:
    """Return the CustomOp of a name; also one for an operator that another library defined, if asked."""
    if qualname in global_registry:
        return global_registry[qualname]
    if not also_check_torch_library:
        raise RuntimeError(f'Could not find custom op "{qualname}". Did you register it via the torch._custom_ops API?')
    operator = get_op(qualname)
    namespace, name = parse_qualname(qualname)
    return CustomOp(library.Library(namespace, "FRAGMENT"), namespace, operator._schema, name, operator,
                    _private_access=True)
