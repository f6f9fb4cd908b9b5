"""Run a graph node by node, and change it on the way. https://pytorch.org/docs/stable/fx.html#torch.fx.Interpreter"""
from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..graph.graph import Graph
from ..graph.nesting import aggregate
from ..graph.node import Node, map_arg
from ..graph.uses import last_uses
from . import traceback as fx_traceback
from ._symbolic_trace import Tracer
from .graph_module import GraphModule
from .proxy import Proxy

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs a module's graph; each kind of node has a method, which subclasses override.

    Values are freed after their last use unless `garbage_collect_values` is false. An error tells the node.
    https://pytorch.org/docs/stable/fx.html#torch.fx.Interpreter

    >>> import tensorgrad as torch
    >>> class Told(torch.fx.Interpreter):
    ...     def call_function(self, target, args, kwargs):
    ...         print(target.__name__, *args)
    ...         return super().call_function(target, args, kwargs)
    >>> Told(torch.fx.symbolic_trace(lambda x: torch.add(x, 1) * 2)).run(torch.tensor(3))
    add tensor(3) 1
    mul tensor(4) 2
    tensor(8)
    """

    def __init__(self, module: Any, garbage_collect_values: bool = True, graph: Graph | None = None) -> None:
        self.module, self.graph = module, module.graph if graph is None else graph
        self.submodules = dict(module.named_modules())
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values, self.extra_traceback = garbage_collect_values, True
        if garbage_collect_values:
            self.user_to_last_uses = {node: [other for other in ended if other is not node]
                                      for node, ended in last_uses(self.graph).items()}

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True) -> Any:
        """Run the graph on these arguments, and return its result; nodes in `initial_env` have their values."""
        self.env = {} if initial_env is None else initial_env
        self.args_iter: Iterator[Any] = iter(self.graph.process_inputs(*args) if enable_io_processing else args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    told = _told(error, node)
                    if isinstance(error, KeyError):         # whose message would be quoted
                        raise RuntimeError(*told) from error
                    error.args = told
                raise
            if self.garbage_collect_values:
                for each in self.user_to_last_uses.get(node, ()):
                    del self.env[each]
            if node.op == "output":
                result = self.env[node]
                return self.graph.process_outputs(result) if enable_io_processing else result
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """Run the graph on a list of arguments, which is cleared. RuntimeError if their number is wrong."""
        inputs = [node for node in self.graph.nodes if node.op == "placeholder"]
        if len(args_list) != len(inputs):
            raise RuntimeError(f"Interpreter.boxed_run expected {len(inputs)} arguments for placeholders but received "
                               f"{len(args_list)} ({'extra' if len(args_list) > len(inputs) else 'missing'} arguments)")
        env = dict(zip(inputs, args_list, strict=True))
        args_list.clear()
        return self.run(initial_env=env)

    @contextmanager
    def _set_current_node(self, node: Node) -> Iterator[None]:
        with fx_traceback.set_current_meta(node, f"Interpreter_{type(self).__name__}"):
            yield

    def run_node(self, n: Node) -> Any:
        """Return the value of a node: the result of the method of its kind."""
        with self._set_current_node(n):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return getattr(self, n.op)(n.target, args, kwargs)

    # ── kinds of nodes ────────────────────────────────────────────────────────────────────────────────────────────────

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the next argument, all others for `*args`, or the default. RuntimeError if there is none."""
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration as end:
            if args:
                return args[0]
            raise RuntimeError(f"Expected positional argument for parameter {target}, but one was not passed "
                               f"in!") from end

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return an attribute of the module."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function."""
        if isinstance(target, str):
            raise AssertionError("target should not be a string for call_function")
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a method of the first argument."""
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a layer of the module."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result."""
        return args[0]

    # ── values ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def fetch_attr(self, target: str) -> Any:
        """Return the attribute at a dotted path of the module. RuntimeError if there is none."""
        found, path = self.module, target.split(".")
        for i, name in enumerate(path):
            if not hasattr(found, name):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(path[:i + 1])}")
            found = getattr(found, name)
        return found

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[Any, Any]:
        """Return the arguments of a node, with values for nodes."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """Return nested arguments with the values of the nodes among them. RuntimeError for one without a value."""
        def value(node: Node) -> Any:
            if node not in self.env:
                raise RuntimeError(f"Node {n} referenced nonexistent value {node}! Run Graph.lint() to diagnose such "
                                   f"issues")
            return self.env[node]
        return map_arg(args, value)


def _told(error: Exception, node: Node) -> tuple[Any, ...]:
    """Return the arguments of an error, with the node added to its message."""
    note = f"While executing {node.format_node()}\nOriginal traceback:\n{node.stack_trace}"
    return (f"{error.args[0]}\n\n{note}" if error.args else note, *error.args[1:])


class Transformer(Interpreter):
    """Makes a new module of a module's graph: what the methods of kinds of nodes return becomes the new graph.

    https://pytorch.org/docs/stable/fx.html#torch.fx.Transformer

    >>> import tensorgrad as torch
    >>> class Softer(torch.fx.Transformer):
    ...     def call_function(self, target, args, kwargs):
    ...         return super().call_function(torch.sigmoid if target is torch.relu else target, args, kwargs)
    >>> Softer(torch.fx.symbolic_trace(lambda x: torch.relu(x))).transform()(torch.zeros(2))
    tensor([0.5000, 0.5000])
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)

        class TransformerTracer(Tracer):
            def __init__(self, graph: Graph) -> None:
                super().__init__()
                self.graph, self.tensor_attrs = graph, {}

            def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
                return True
        self.tracer = TransformerTracer(self.new_graph)
        self.tracer.root = module

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return a proxy for a new input."""
        default = args[0] if args else inspect.Signature.empty
        return Proxy(self.new_graph.placeholder(target, default_value=default), self.tracer)

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return a proxy for an attribute."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return a proxy for the call of a layer."""
        layer = self.fetch_attr(target)
        return self.tracer.call_module(layer, layer.forward, args, kwargs)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return a proxy for the call of a function."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """Run the graph on proxies, and return the module of the new graph."""
        with fx_traceback.preserve_node_meta():
            result = self.run(enable_io_processing=False)
        if result is not None:
            output = self.new_graph.output(aggregate(result, lambda a: a.node if isinstance(a, Proxy) else a))
            output.meta.update(self.graph.output_node().meta)
        return GraphModule(self.module, self.new_graph)
