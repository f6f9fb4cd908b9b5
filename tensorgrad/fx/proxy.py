"""Values of a traced program: operations on them become nodes.

https://pytorch.org/docs/stable/fx.html#torch.fx.Proxy
"""
from __future__ import annotations

import collections
import copy
import dis
import enum
import inspect
import operator
import sys
import traceback as stacks
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from .. import overrides
from .._aten import OpOverload, OpOverloadPacket
from .._ops import Operator
from .._tensor.torch_function import CONTAINERS, watch_for
from ..graph.names import in_c, pytorch_name, wanted_name
from ..graph.node import Node, map_arg
from ..graph.schemas import signature_of
from ..graph.targets import MAGIC, REFLECTED
from ..nn import Parameter
from ..nn.modules._tracing import ACTIVE
from ..ops.base import OpType
from ..utils._pytree import tree_leaves
from . import traceback as fx_traceback
from .node import base_types
from .operator_schemas import check_for_mutable_operation

__all__ = ["Attribute", "GraphAppendingTracer", "ParameterProxy", "Proxy", "Scope", "ScopeContextManager",
           "TraceError", "TracerBase"]
PACKAGE = str(Path(__file__).parents[1])


class TraceError(ValueError):
    """A program needs the value of a traced value."""


class Scope:
    """The path and type of the module that runs. https://pytorch.org/docs/stable/fx.html"""

    def __init__(self, module_path: str, module_type: Any) -> None:
        self.module_path, self.module_type = module_path, module_type


class ScopeContextManager:
    """Sets a scope to another until the block ends."""

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._scope, self._before = scope, (scope.module_path, scope.module_type)
        scope.module_path, scope.module_type = current_scope.module_path, current_scope.module_type

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *exception: object) -> None:
        self._scope.module_path, self._scope.module_type = self._before


class TracerBase:
    """Makes the nodes of a graph, and proxies for them; subclasses change how.

    https://pytorch.org/docs/stable/fx.html#torch.fx.Tracer
    """

    graph: Any
    record_stack_traces = False
    _record_forward_stack_traces_only = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False
    traced_func_name = "forward"
    scope: Scope
    module_stack: Any
    node_name_to_scope: dict[str, tuple[str, Any]]

    def create_node(self, kind: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
                    name: str | None = None, type_expr: Any = None) -> Node:
        """Add a node to the graph."""
        if kind == "call_function" and self.check_mutable_operations:
            check_for_mutable_operation(target, args, kwargs)
        node: Node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        self.node_name_to_scope[node.name] = self.scope.module_path, self.scope.module_type
        if fx_traceback.has_preserved_node_meta():
            fx_traceback.given_meta(node)
        elif self.module_stack:
            node.meta["nn_module_stack"] = copy.copy(self.module_stack)
        if self.record_stack_traces and not node.stack_trace:
            frames = self._filter_traceback_frames(stacks.extract_stack(sys._getframe(1)))
            if frames:
                node.stack_trace = "".join(frames.format()).strip()
        return node

    def _filter_traceback_frames(self, user_stack_summary: Any) -> Any:
        """Return the frames of a stack from the first `forward` on, or only those of `forward`, without this
        package's."""
        frames = list(user_stack_summary)
        if self._record_forward_stack_traces_only:
            frames = [frame for frame in frames if frame.name == "forward"]
        else:
            first = next((i for i, frame in enumerate(frames) if frame.name == "forward"), len(frames))
            frames = frames[first:]
        return stacks.StackSummary.from_list([frame for frame in frames if not frame.filename.startswith(PACKAGE)])

    def proxy(self, node: Node) -> Proxy:
        """Return a proxy for a node."""
        return Proxy(node, self)

    def create_proxy(self, kind: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
                     name: str | None = None, type_expr: Any = None,
                     proxy_factory_fn: Callable[[Node], Proxy] | None = None) -> Any:
        """Add a node whose arguments may contain proxies, and return a proxy for it."""
        given, named = self.create_arg(args), self.create_arg(kwargs)
        if not isinstance(given, tuple):
            raise AssertionError(f"Expected args_ to be tuple, got {type(given)}")
        if not isinstance(named, dict):
            raise AssertionError(f"Expected kwargs_ to be dict, got {type(named)}")
        node = self.create_node(kind, target, given, named, name, type_expr)
        return self.proxy(node) if proxy_factory_fn is None else proxy_factory_fn(node)

    def _find_user_frame(self) -> Any:
        """Return the innermost frame outside of this package."""
        frame = inspect.currentframe()
        while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
            frame = frame.f_back
        return frame

    def create_arg(self, a: Any) -> Any:
        """Return a value of the program as an argument of a node: nodes for proxies, at any depth.

        Objects with a method `__fx_create_arg__(tracer)` are asked; NotImplementedError for objects that arguments
        cannot be.
        """
        if isinstance(a, Proxy):
            return a.node
        if type(a) in PLAIN:
            return a
        if not isinstance(a, type) and hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            parts = [self.create_arg(part) for part in a]
            return type(a)(*parts) if hasattr(a, "_fields") else type(a)(parts)
        if isinstance(a, list):
            return [self.create_arg(part) for part in a]
        if isinstance(a, dict):
            return {self._key(key): self.create_arg(part) for key, part in a.items()}
        if isinstance(a, (slice, range)):
            return type(a)(*(self.create_arg(end) for end in (a.start, a.stop, a.step)))
        if is_dataclass(a):
            return self.create_node("call_function", type(a), (), {field.name: self.create_arg(getattr(a, field.name))
                                                                   for field in fields(a)})
        if isinstance(a, (*base_types, enum.Enum, *OPERATORS)) or a is None or a is ...:
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _key(self, key: Any) -> Any:
        """Return a dictionary's key; RuntimeError if it contains a proxy."""
        if isinstance(key, str):
            return key
        key = self.create_arg(key)

        def refuse(node: Node) -> Any:
            raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {node}")
        map_arg(key, refuse)
        return key

    def to_bool(self, obj: Proxy) -> bool:
        """Return the truth of a proxy, if a subclass knows it. TraceError here."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Return an iterator over a proxy, if a subclass knows its length. TraceError here."""
        raise TraceError("Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or "
                         "as a *args or **kwargs function argument. See the torch.fx docs on pytorch.org for a more "
                         "detailed explanation of what types of control flow can be traced, and check out the Proxy "
                         "docstring for help troubleshooting Proxy iteration errors")

    def keys(self, obj: Proxy) -> Any:
        """Return the keys of a proxy, for `**proxy`: a call of its method here."""
        return Attribute(obj, "keys")()


OPERATORS = Operator, OpOverload, OpOverloadPacket, OpType
PLAIN = frozenset({str, int, float, bool, complex, type(None), type(...), *base_types[5:]}) - {base_types[6]}


class GraphAppendingTracer(TracerBase):
    """Appends operations on proxies of a graph's nodes to the graph, outside of a trace."""

    def __init__(self, graph: Any) -> None:
        super().__init__()
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack = collections.OrderedDict()
        self.node_name_to_scope = {}


def assert_fn(x: object) -> None:
    """Raise AssertionError unless a value is true: asserts of a traced program call this."""
    if not x:
        raise AssertionError("Assertion failed")


def instruction(frame: Any) -> tuple[list[dis.Instruction], int]:
    """Return a frame's instructions, and the index of the present one."""
    instructions = list(dis.get_instructions(frame.f_code))
    return instructions, bisect_left(instructions, frame.f_lasti, key=lambda each: each.offset)


class Proxy:
    """A value of a traced program. Operators, attributes, methods and functions of the package add nodes to its graph.

    A proxy has no value: TraceError if the program branches on it or iterates over it, but for unpacking into names.
    https://pytorch.org/docs/stable/fx.html#torch.fx.Proxy

    >>> import tensorgrad as torch
    >>> graph = torch.fx.Graph()
    >>> x = torch.fx.Proxy(graph.placeholder("x"))
    >>> y = torch.relu(x[0] * 2).sum()
    >>> print(graph)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %getitem : [num_users=1] = call_function[target=operator.getitem](args = (%x, 0), kwargs = {})
        %mul : [num_users=1] = call_function[target=operator.mul](args = (%getitem, 2), kwargs = {})
        %relu : [num_users=1] = call_function[target=torch.relu](args = (%mul,), kwargs = {})
        %sum_1 : [num_users=0] = call_method[target=sum](args = (%relu,), kwargs = {})
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls not in CONTAINERS:
            watch_for(cls, modules=False, lasting=not ACTIVE)
        return object.__new__(cls)

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        return Attribute(self, k)

    def __getstate__(self) -> Any:
        return self.__dict__

    def __setstate__(self, state: Any) -> None:
        self.__dict__ = state

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        new = Proxy.__new__(Proxy)
        for name, value in self.__dict__.items():
            try:
                new.__dict__[name] = copy.deepcopy(value, memo)
            except Exception:               # a tracer may hold anything
                new.__dict__[name] = copy.copy(value)
        return new

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        instructions, index = instruction(sys._getframe(1))
        if instructions[index].opname == "UNPACK_SEQUENCE":
            return (self[i] for i in range(instructions[index].argval))     # type: ignore[index]
        return self.tracer.iter(self)

    def __abs__(self) -> Any:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts:
            instructions, index = instruction(sys._getframe(1))
            if (instructions[index].opname.startswith("POP_JUMP") and "TRUE" in instructions[index].opname
                    and any(each.opname == "LOAD_ASSERTION_ERROR" for each in instructions[index + 1:index + 3])):
                self.tracer.create_proxy("call_function", assert_fn, (self,), {})
                return True
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """Return the keys, for `**proxy`."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError("'len' is not supported in symbolic tracing by default. If you want this call to be "
                           "recorded, please call torch.fx.wrap('len') at module scope")

    @classmethod
    def __torch_function__(cls, orig_method: Any, types: Any, args: Any = None, kwargs: Any = None) -> Any:
        args, kwargs = args or (), kwargs or {}
        tracers = {leaf.tracer: None for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, cls)}
        if len(tracers) > 1:
            raise RuntimeError(f"Found multiple different tracers {list(tracers)} while trying to trace operations "
                               f"{orig_method}")
        tracer = next(iter(tracers))
        name = orig_method.__name__
        if overrides.is_tensor_method_or_property(orig_method):
            return tracer.create_proxy("call_method", name, args, kwargs)
        if orig_method.__module__.endswith(".functional") and name in ("sigmoid", "tanh"):
            return tracer.create_proxy("call_method", name, args, kwargs)
        return tracer.create_proxy("call_function", orig_method, *as_named(orig_method, args, kwargs),
                                   name=wanted_name(pytorch_name(orig_method)[1]))


def as_named(function: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Return arguments as PyTorch's functions hand them to overrides: those written in Python give their options by
    name, with defaults."""
    signature = None if in_c(function) else signature_of(function)
    if signature is None:
        return args, kwargs
    try:
        found = signature.bind(*args, **kwargs)
    except TypeError:
        return args, kwargs
    found.apply_defaults()
    given: list[Any] = []
    named: dict[str, Any] = {}
    for name, parameter in signature.parameters.items():
        value = found.arguments[name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            alone = (bool(value) and isinstance(value[-1], (list, tuple))
                     and all(isinstance(each, str) for each in value[:-1]))
            given += (*value[:-1], *value[-1]) if alone else value
        elif parameter.kind is parameter.VAR_KEYWORD:
            named.update(value)
        elif name == "weight" and value is None and function.__name__ == "l1_loss":
            continue                        # PyTorch does not hand these on
        elif parameter.default is parameter.empty and parameter.kind is not parameter.KEYWORD_ONLY:
            given.append(value)
        else:
            named[name] = value
    return tuple(given), named


class Attribute(Proxy):
    """An attribute of a proxy: it becomes a node once it is used other than by a call, which is a method's."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:     # type: ignore[override]
        """The node of `getattr`."""
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """A proxy for a parameter, which knows its shape: programs may branch on that."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Any) -> None:
        super().__init__(node, tracer)
        if not isinstance(param, Parameter):
            raise AssertionError(f"Expected Parameter, got {type(param)}")
        self.param, self.name = param, name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        """The shape."""
        return self.param.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return int(self.param.ndim)

    def size(self) -> Any:
        """Return the shape."""
        return self.param.size()

    def dim(self) -> int:
        """Return the number of axes."""
        return int(self.param.dim())

    def numel(self) -> int:
        """Return the number of elements."""
        return int(self.param.numel())

    nelement = numel


def _attach(name: str) -> None:
    """Give proxies an operator, and its reflected form if it has one."""
    function = getattr(operator, name)

    def method(*args: Any, **kwargs: Any) -> Any:
        return args[0].tracer.create_proxy("call_function", function, args, kwargs)

    def reflected(self: Proxy, other: Any) -> Any:
        return self.tracer.create_proxy("call_function", function, (other, self), {})
    method.__name__ = method.__qualname__ = f"__{name.strip('_')}__"
    setattr(Proxy, method.__name__, method)
    if name in REFLECTED:
        reflected.__name__ = reflected.__qualname__ = f"__r{name.strip('_')}__"
        setattr(Proxy, reflected.__name__, reflected)


for _name in MAGIC:
    _attach(_name)
