"""Trace a program: run it on proxies, and record what it does as a graph.

https://pytorch.org/docs/stable/fx.html#torch.fx.symbolic_trace
"""
from __future__ import annotations

import collections
import copy
import inspect
import math
import sys
import warnings
from collections.abc import Callable
from itertools import chain
from types import CodeType, FunctionType, ModuleType
from typing import Any

from ..api import Tensor
from ..api.checks import _assert
from ..graph.graph import Graph
from ..graph.names import PACKAGE, in_c
from ..graph.nesting import leaves
from ..nn import Module, Parameter, Sequential
from ..nn.modules._tracing import traced
from ..utils._pytree import TreeSpec, tree_flatten, tree_map, tree_unflatten
from ._patching import all_reverted as _maybe_revert_all_patches
from ._patching import new_patcher as _new_patcher
from ._patching import wrapped_functions, wrapped_methods
from .graph import _PyTreeCodeGen, _PyTreeInfo
from .graph_module import TRACER, GraphModule
from .node import base_types
from .proxy import ParameterProxy, Proxy, Scope, ScopeContextManager, TracerBase

__all__ = ["PH", "ProxyableClassMeta", "Tracer", "is_fx_symbolic_tracing", "is_fx_tracing", "symbolic_trace", "wrap"]
_wrapped_fns_to_patch, _wrapped_methods_to_patch = wrapped_functions, wrapped_methods
_KEPT = _maybe_revert_all_patches
VARIADIC = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
_proxyable_classes: dict[type, None] = {}
_is_fx_tracing_flag = False


def is_fx_tracing() -> bool:
    """Return True while a program is traced."""
    return _is_fx_tracing_flag


is_fx_symbolic_tracing = is_fx_tracing


class ProxyableClassMeta(type):
    """The metaclass of classes whose construction from proxies is recorded as a call.

    https://pytorch.org/docs/stable/fx.html#torch.fx.ProxyableClassMeta

    >>> import tensorgrad as torch
    >>> class Pair(metaclass=torch.fx.ProxyableClassMeta):
    ...     def __init__(self, left, right):
    ...         self.left, self.right = left, right
    >>> traced = torch.fx.symbolic_trace(lambda x: Pair(x, x).left)
    >>> [node.op for node in traced.graph.nodes]
    ['placeholder', 'call_function', 'call_function', 'output']
    """

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        _proxyable_classes.setdefault(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if is_fx_tracing():
            proxy = next((leaf for leaf in leaves((args, kwargs)) if isinstance(leaf, Proxy)), None)
            if proxy is not None:
                return proxy.tracer.create_proxy("call_function", cls, args, kwargs)
        instance = cls.__new__(cls)         # type: ignore[call-overload]
        cls.__init__(instance, *args, **kwargs)     # type: ignore[misc]
        return instance


class PHBase:
    """Represents an input in `concrete_args`."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


class PHWithMeta(PHBase):
    """An input in `concrete_args` whose attributes its node gets."""

    def __init__(self, ph_key: str | None = None) -> None:
        super().__init__()
        self.ph_key = ph_key


def _transfer_attrs(fr: Any, to: Any) -> None:
    """Give an object the plain attributes of another that it lacks."""
    for name in dir(fr):
        value = getattr(fr, name)
        if not callable(value) and not name.startswith("__") and not hasattr(to, name):
            setattr(to, name, value)


def _patch_function(fn: Any, nargs: int) -> Any:
    """Return a function of `nargs` positional arguments with the code of one with *args, **kwargs or keywords."""
    code: CodeType = fn.__code__.replace(co_argcount=nargs, co_posonlyargcount=0, co_kwonlyargcount=0,
                                         co_flags=fn.__code__.co_flags & ~VARIADIC)
    return FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)


def annotation(function: Any, name: str) -> Any:
    """Return the annotation of a parameter; of this package's functions those that say Tensor, if parameters do."""
    found = function.__annotations__.get(name)
    if found is None or (function.__module__ or "").partition(".")[0] != PACKAGE:
        return found
    tensors = [each for each, kind in function.__annotations__.items() if kind in ("Tensor", Tensor)]
    return Tensor if name in tensors and tensors != ["return"] else None


def _is_named_here(fn: Any) -> bool:
    """Return True for a function that a module of this package has under its name."""
    home = fn.__module__ or ""
    return home.partition(".")[0] == PACKAGE and getattr(sys.modules.get(home), fn.__qualname__, None) is fn


class Tracer(TracerBase):
    """Traces programs; subclasses decide which modules are steps, and what their calls and attributes give.

    Functions of `autowrap_modules` and `autowrap_functions` that are called with proxies are steps; with
    `param_shapes_constant` a program may branch on shapes of parameters.
    https://pytorch.org/docs/stable/fx.html#torch.fx.Tracer

    >>> import tensorgrad as torch
    >>> class Steps(torch.fx.Tracer):
    ...     def is_leaf_module(self, m, module_qualified_name):
    ...         return False
    >>> print([node.name for node in Steps().trace(torch.nn.ReLU()).nodes])
    ['input_1', 'relu', 'output']
    """

    _qualname_counter: dict[str, int] = collections.defaultdict(int)

    def __init__(self, autowrap_modules: tuple[ModuleType, ...] = (math,),
                 autowrap_functions: tuple[Callable[..., Any], ...] = (), param_shapes_constant: bool = False) -> None:
        super().__init__()
        self._autowrap_function_ids = {id(value) for name, value
                                       in chain.from_iterable(vars(module).items() for module in autowrap_modules)
                                       if not name.startswith("_") and callable(value)} | set(map(id,
                                                                                                  autowrap_functions))
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Any, str] | None = None
        self.root_module_name = ""
        self.scope = Scope("", None)
        self.module_stack = collections.OrderedDict()
        self.num_calls: dict[str, int] = {}
        self.node_name_to_scope = {}

    def get_fresh_qualname(self, prefix: str) -> str:
        """Return a name with this prefix that the root has no attribute of."""
        number = self._qualname_counter[prefix] if hasattr(self.root, f"{prefix}0") else 0
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        self._qualname_counter[prefix] = 0 if number == 0 else number + 1
        return f"{prefix}{number}"

    # ── arguments ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def create_arg(self, a: Any) -> Any:
        """Return a value of the program as an argument of a node.

        Parameters, buffers and modules of the root become `get_attr` nodes; so do other tensors, which become
        attributes of the root. NameError for a parameter that the root does not have.
        """
        if isinstance(a, Parameter):
            for name, parameter in self.root.named_parameters():
                if a is parameter:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(a, (Tensor, Module)):
            table = self.root.named_buffers() if isinstance(a, Tensor) else self.root.named_modules()
            for name, value in table:
                if a is value:
                    return self.create_node("get_attr", name, (), {})
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return self.create_node("call_function", type(a), tuple(self.create_arg(part) for part in a), {})
        if isinstance(a, (Tensor, TreeSpec)):
            name = self.tensor_attrs.get(a)
            if not name:
                name = self._kept("_tensor_constant" if isinstance(a, Tensor) else "_tree_spec_constant", a)
                self.tensor_attrs[a] = name
            return self.create_node("get_attr", name, (), {})
        if type(a) in _proxyable_classes:
            return self.create_node("get_attr", self._kept(f"_{type(a).__name__}_constant_", a), (), {})
        return super().create_arg(a)

    def _kept(self, prefix: str, value: Any) -> str:
        """Make a constant an attribute of the root, and return its name."""
        name = self.get_fresh_qualname(prefix)
        setattr(self.root, name, value)
        return name

    # ── modules ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
        """Return True if a call of the module is a step: for those of this package's nn but Sequential."""
        home, _, rest = type(m).__module__.partition(".")
        return (home in (PACKAGE, "torch") and f"{rest}.".startswith(("nn.", "ao.nn."))
                and not isinstance(m, Sequential))

    def path_of_module(self, mod: Any) -> str:
        """Return the dotted path of a module of the root. NameError for others."""
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
        else:
            path = next((name for name, module in self.root.named_modules() if module is mod), None)
        if path is None:
            raise NameError("module is not installed as a submodule")
        return path

    def call_module(self, m: Any, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a module's call: a step if `is_leaf_module`, else that of its `forward`, which is
        traced."""
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))) as scope:
            calls = self.num_calls.get(path, 0)
            key = f"{scope.module_path}@{calls}" if calls else scope.module_path
            self.module_stack[key] = path, scope.module_type
            self.num_calls[path] = calls + 1
            try:
                if self.is_leaf_module(m, path):
                    return self.create_proxy("call_module", path, args, kwargs)
                return forward(*args, **kwargs)
            finally:
                self.module_stack.popitem(last=True)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """Return the value of a module's attribute: a proxy for a parameter of the root, and for a buffer if
        `proxy_buffer_attributes`. The cache has the proxies made before."""
        if isinstance(attr_val, Parameter):
            table = self.root.named_parameters()
        elif self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            table = self.root.named_buffers()
        else:
            return attr_val
        name = next((name for name, value in table if value is attr_val), None)
        if name is None:
            return attr_val
        if name not in parameter_proxy_cache:
            more: dict[str, Any] = {}
            if self.param_shapes_constant and "proxy_factory_fn" in inspect.signature(self.create_proxy).parameters:
                more["proxy_factory_fn"] = lambda node: ParameterProxy(self, node, name, attr_val)
            parameter_proxy_cache[name] = self.create_proxy("get_attr", name, (), {}, **more)
        return parameter_proxy_cache[name]

    def module_called(self, module: Any, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Take over the call of a module, see `nn.modules._tracing`."""
        self._patcher.autowrap(getattr(getattr(module, "forward", module), "__globals__", {}),
                               self._autowrap_function_ids)
        return self.call_module(module, forward, args, kwargs)

    def module_read(self, module: Any, name: str, value: Any) -> Any:
        """Return the value of an attribute that a program reads from a module."""
        return self.getattr(name, value, self._parameter_proxies)

    # ── the trace ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def create_args_for_root(self, root_fn: Callable[..., Any], is_module: bool,
                             concrete_args: Any = None) -> tuple[Any, list[Any]]:
        """Return the function to run and its arguments: placeholders, or values of `concrete_args`.

        Containers among these values are flattened, and each leaf is an input.
        """
        function: Any = inspect.unwrap(root_fn)
        code = function.__code__
        total, names = code.co_argcount + code.co_kwonlyargcount, iter(code.co_varnames)
        args: list[Any] = []
        if is_module:
            if total == 0:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            next(names)
            args.append(self.root)
        signature = inspect.signature(function)
        if isinstance(concrete_args, tuple) and concrete_args and code.co_flags & VARIADIC and total == 1:
            return root_fn, args + [self._flat_input(i, value) for i, value in enumerate(concrete_args)]
        wanted = [next(names) for _ in range(len(args), total)]
        if isinstance(concrete_args, tuple):
            if len(wanted) != len(concrete_args):
                raise RuntimeError(f"Tracing expected {len(wanted)} arguments but got {len(concrete_args)} concrete "
                                   f"arguments")
            concrete_args = dict(zip(wanted, concrete_args, strict=True))
        if code.co_kwonlyargcount or code.co_flags & VARIADIC:
            wanted += [f"*{next(names)}"] if code.co_flags & inspect.CO_VARARGS else []
            wanted += [f"**{next(names)}"] if code.co_flags & inspect.CO_VARKEYWORDS else []
        args += [self._proxy_placeholder(name, concrete_args, signature, function) for name in wanted]
        if code.co_kwonlyargcount or code.co_flags & VARIADIC:
            root_fn = _patch_function(root_fn, len(args))
        flat, spec = tree_flatten(tuple(args))
        if all(child.is_leaf() for child in spec.children()):
            return root_fn, args
        return self._flattening(root_fn, spec, list(code.co_varnames)[:total]), flat

    def _flattening(self, root_fn: Callable[..., Any], spec: TreeSpec, names: list[str]) -> Callable[..., Any]:
        """Return a function of flat arguments, with a flat result, and let the generated code flatten."""
        codegen = self.graph._codegen = _PyTreeCodeGen(_PyTreeInfo(names, spec, None))

        def flatten_fn(*args: Any) -> Any:
            result, out_spec = tree_flatten(root_fn(*tree_unflatten(list(args), spec)))
            codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_spec)
            return result
        return flatten_fn

    def _flat_input(self, index: int, value: Any) -> Any:
        proxy = self.create_proxy("placeholder", f"input_{index}", (), {})
        if isinstance(value, PHBase) and value is not PH:
            _transfer_attrs(fr=value, to=proxy.node)
        return proxy

    def _proxy_placeholder(self, name: str, concrete_args: Any, sig: Any, fn_for_analysis: Any) -> Any:
        """Return the proxy of a parameter, or its value in `concrete_args`, with steps that check it."""
        default: Any = ()
        if name[0] != "*" and sig.parameters[name].default is not inspect.Parameter.empty:
            default = (sig.parameters[name].default,)
        if concrete_args is None or name not in concrete_args:
            return self.create_proxy("placeholder", name, default, {},
                                     type_expr=annotation(fn_for_analysis, name))
        count = 0

        def given(x: Any) -> Any:
            nonlocal count
            count += 1
            out = self.create_proxy("placeholder", f"{name}_{count}", default, {})
            if isinstance(x, PHBase):
                if x is not PH:
                    _transfer_attrs(fr=x, to=out.node)
                return out
            if type(x) is bool or type(x) in base_types and type(x) is not Tensor:
                _assert(out == x, f"{name} has been specialized to have value {x} but got another value")
            elif x is None:
                self.create_proxy("call_function", _assert_is_none,
                                  (out, f"{name} has been specialized to have value None but got another value"), {})
            else:
                warnings.warn(f"Was not able to add assertion to guarantee correct input {name} to specialized "
                              f"function. It is up to the user to make sure that your inputs match the inputs you "
                              f"specialized the function with.", stacklevel=2)
            return x
        return tree_map(given, concrete_args[name])

    def trace(self, root: Any, concrete_args: Any = None) -> Graph:
        """Return the graph of a module's `forward`, or of a function.

        `concrete_args` has values that parameters are fixed to, by name. TraceError if the program needs the value of
        a traced one.
        """
        global _is_fx_tracing_flag
        before, _is_fx_tracing_flag = _is_fx_tracing_flag, True
        try:
            is_module = isinstance(root, Module)
            fn = self._begin(root)
            if isinstance(fn, FunctionType) and _is_named_here(fn) and in_c(fn):
                raise AssertionError(f"Expected FunctionType, got {type(len)}")         # PyTorch's own is of C
            if not isinstance(fn, FunctionType):
                raise AssertionError(f"Expected FunctionType, got {type(fn)}")
            namespace = fn.__globals__
            fn, args = self.create_args_for_root(fn, is_module, concrete_args)
            self._parameter_proxies: dict[str, Any] = {}
            with _new_patcher() as self._patcher, traced(self):
                self._patcher.wrap_registered()
                for each in (namespace, *map(vars, self._autowrap_search)):
                    self._patcher.autowrap(each, self._autowrap_function_ids)
                kind = annotation(inspect.unwrap(fn), "return")
                self.create_node("output", "output", (self.create_arg(fn(*args)),), {}, type_expr=kind)
            self.submodule_paths = None
            return self.graph
        finally:
            _is_fx_tracing_flag = before

    def _begin(self, root: Any) -> Any:
        """Begin an empty graph for a root; return the function to trace."""
        if isinstance(root, Module):
            self.root = root
            if not hasattr(type(root), self.traced_func_name):
                raise AssertionError(f"traced_func_name={self.traced_func_name} doesn't exist in {type(root).__name__}")
            fn = getattr(type(root), self.traced_func_name)
            self.root_module_name = root._get_name()
            self.submodule_paths = {module: name for name, module in root.named_modules()}
        else:
            self.root, fn = Module(), root
        self.graph = Graph(tracer_cls=type(self))
        if hasattr(fn, "__code__"):
            code = fn.__code__
            self.graph._co_fields = {"co_name": code.co_name, "co_filename": code.co_filename,
                                     "co_firstlineno": code.co_firstlineno}
        self.tensor_attrs: dict[Any, str] = {}
        for path, module in self.root.named_modules():
            self.tensor_attrs.update({value: f"{path}.{name}" if path else name
                                      for name, value in vars(module).items() if isinstance(value, (Tensor, TreeSpec))})
        return fn

    def __deepcopy__(self, memo: dict[int, Any]) -> Tracer:
        new = type(self).__new__(type(self))
        for name, value in self.__dict__.items():       # modules of Python cannot be copied
            new.__dict__[name] = copy.copy(value) if name == "_autowrap_search" else copy.deepcopy(value, memo)
        return new


TRACER.append(Tracer)


# ── functions ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def wrap(fn_or_name: Any) -> Any:
    """Let calls of a function of a module with proxies be steps, which are not traced into.

    Called at the top of the module, with the function, as a decorator, or with its name: also one of Python's, such as
    "len". RuntimeError for other arguments, NotImplementedError elsewhere.
    https://pytorch.org/docs/stable/fx.html#torch.fx.wrap
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    wrapped_functions[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


def symbolic_trace(root: Any, concrete_args: Any = None) -> GraphModule:
    """Return a module whose graph records what a module or function does, for arguments of any shape.

    `concrete_args` has values that parameters are fixed to, by name; nested `PH` in them are inputs. TraceError if the
    program branches on a value. https://pytorch.org/docs/stable/fx.html#torch.fx.symbolic_trace

    >>> import tensorgrad as torch
    >>> traced = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU()))
    >>> print(traced.code.strip())
    def forward(self, input):
        input_1 = input
        _0 = getattr(self, "0")(input_1);  input_1 = None
        _1 = getattr(self, "1")(_0);  _0 = None
        return _1
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    return GraphModule(tracer.root, graph, type(root).__name__ if isinstance(root, Module) else root.__name__)


@wrap
def _assert_is_none(value: Any, msg: str) -> None:
    """Raise AssertionError unless a value is None: specialized programs check their arguments by it."""
    if value is not None:
        raise AssertionError(msg)
