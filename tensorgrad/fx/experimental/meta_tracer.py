"""Traces whose proxies know shapes and dtypes: each carries a tensor without values.

https://pytorch.org/docs/stable/fx.html
"""
from __future__ import annotations

from typing import Any

from ...api import Tensor, empty_like
from ...nn import Module, Parameter
from ...nn.modules._tracing import state
from ...nn.utils.stateless import _reparametrize_module
from ...utils._pytree import tree_map
from .._symbolic_trace import Tracer
from ..graph_module import GraphModule
from ..proxy import Attribute, Proxy

__all__ = ["MetaProxy", "MetaTracer", "proxys_to_metas", "symbolic_trace"]


class MetaProxy(Proxy):
    """A proxy with a tensor without values, which answers for shape, dtype and number of axes."""

    _tensor_meta: Any = None

    def install_tensor_meta(self, tensor_meta: Any) -> None:
        """Set the tensor without values."""
        self._tensor_meta = tensor_meta

    def size(self, dim: int | None = None) -> Any:
        """Return the shape, or the length of an axis."""
        if self._tensor_meta is None:
            return self.tracer.create_proxy("call_method", "size", (self,) if dim is None else (self, dim), {})
        return self._tensor_meta.size() if dim is None else self._tensor_meta.size(dim)

    def dim(self) -> Any:
        """Return the number of axes."""
        if self._tensor_meta is None:
            return self.tracer.create_proxy("call_method", "dim", (self,), {})
        return self._tensor_meta.dim()

    def _fact(self, name: str) -> Any:
        if self._tensor_meta is None:
            return self.tracer.create_proxy("call_function", getattr, (self, name), {})
        return getattr(self._tensor_meta, name)

    shape = property(lambda self: self._fact("shape"))
    dtype = property(lambda self: self._fact("dtype"))
    ndim = property(lambda self: self.dim())

    def __len__(self) -> int:
        return super().__len__() if self._tensor_meta is None else len(self._tensor_meta)

    @property
    def device(self) -> Any:
        """The device of the value when the program runs: a node."""
        return MetaAttribute(self, "device")

    def __getattr__(self, k: str) -> Any:
        if k == "_tensor_meta":
            raise AttributeError(k)
        return MetaAttribute(self, k)


class MetaAttribute(MetaProxy, Attribute):
    """An attribute of a proxy: it becomes a node once it is used other than by a call, which is a method's."""

    def __init__(self, root: MetaProxy, attr: str) -> None:
        Attribute.__init__(self, root, attr)


def proxys_to_metas(v: Any) -> Any:
    """Return the tensor without values of a proxy, and other values as they are."""
    if isinstance(v, MetaAttribute) and v.attr == "device":
        return "meta"
    if not isinstance(v, Proxy):
        return v
    meta = getattr(v, "_tensor_meta", None)
    if meta is None:
        raise AssertionError("MetaProxy does not have an associated meta")
    return meta


class MetaTracer(Tracer):
    """A tracer that runs each step also on tensors without values.

    The proxy of a step that cannot run on them knows no shape.
    """

    def create_proxy(self, kind: str, target: Any, args: Any, kwargs: Any, name: str | None = None,
                     type_expr: Any = None, proxy_factory_fn: Any = None) -> Any:
        """Add a node, and return a proxy for it with its shape."""
        made = super().create_proxy(kind, target, args, kwargs, name, type_expr, proxy_factory_fn)
        if kind == "placeholder" and target in self.meta_args:
            made.install_tensor_meta(self.meta_args[target])
        elif kind not in ("placeholder", "output"):
            try:
                found = self._inferred(kind, target, tree_map(proxys_to_metas, args), tree_map(proxys_to_metas, kwargs))
            except (AssertionError, NotImplementedError, RuntimeError, TypeError, ValueError):
                return made
            if isinstance(found, Tensor):
                made.install_tensor_meta(found)
        return made

    def _inferred(self, kind: str, target: Any, args: Any, kwargs: Any) -> Any:
        if kind == "call_function":
            if _makes(target, args):
                kwargs = {**kwargs, "device": "meta"}
            return target(*args, **kwargs)
        if kind == "call_method":
            return getattr(args[0], target)(*args[1:], **kwargs)
        value: Any = self.root
        for part in target.split("."):
            value = getattr(value, part)
        if kind == "get_attr":
            return empty_like(value, device="meta") if isinstance(value, Tensor) else value
        return _run_without_values(value, args, kwargs)

    def proxy(self, node: Any) -> Any:
        """Return a proxy for a node."""
        return MetaProxy(node, self)

    def trace(self, root: Any, meta_args: dict[str, Any] | None = None,     # type: ignore[override]
              concrete_args: Any = None) -> Any:
        """Return the graph of a module or function, given tensors of the meta device for its arguments by name."""
        meta_args = {} if meta_args is None else meta_args
        if not isinstance(meta_args, dict):
            raise AssertionError(f"Expected dict for meta_args, got {type(meta_args)}")
        self.meta_args = meta_args
        return super().trace(root, concrete_args)


def _makes(target: Any, args: Any) -> bool:
    """Return True for a function that makes a tensor without being given one."""
    return (getattr(target, "__name__", "") in ("arange", "empty", "eye", "full", "linspace", "ones", "rand", "randint",
                                                "randn", "randperm", "tensor", "zeros")
            and not any(isinstance(arg, Tensor) for arg in args))


def _run_without_values(module: Module, args: Any, kwargs: Any) -> Any:
    """Call a layer with tensors without values in place of its own."""
    metas = {}
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        meta = empty_like(tensor, device="meta")
        metas[name] = Parameter(meta) if isinstance(tensor, Parameter) else meta
    tracer, state.tracer = state.tracer, None           # the layer's own steps are not traced
    try:
        with _reparametrize_module(module, metas):
            return module(*args, **kwargs)
    finally:
        state.tracer = tracer


def symbolic_trace(root: Any, meta_args: dict[str, Any] | None = None, concrete_args: Any = None) -> GraphModule:
    """Trace a module or function, given tensors of the meta device for its arguments by name.

    Programs may branch on shapes: the graph is that of the given ones.

    >>> import tensorgrad as torch
    >>> f = lambda x: torch.relu(x) if (x @ x).shape[0] < 30 else torch.sigmoid(x)
    >>> print(symbolic_trace(f, {"x": torch.empty(3, 3, device="meta")}).code.strip().splitlines()[2].strip())
    relu = torch.relu(x);  x = None
    """
    tracer = MetaTracer()
    graph = tracer.trace(root, meta_args or {}, concrete_args)
    name = root.__class__.__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
