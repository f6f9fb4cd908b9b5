"""Trace a function on example values into a module of the table's ops. https://pytorch.org/docs/stable/fx.html"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import unwrap
from typing import Any

from ..._ops import ops
from ...api import Tensor
from ...graph.graph import Graph
from ...graph.inputs import input_names
from ...graph.lowering import lower
from ...graph.node import Node
from ...types import SymBool, SymFloat, SymInt
from ...utils._pytree import tree_flatten
from .. import table
from ..graph import _PyTreeCodeGen, _PyTreeInfo
from ..graph_module import GraphModule

__all__ = ["disable_proxy_modes_tracing", "get_proxy_mode", "make_fx", "maybe_disable_fake_tensor_mode"]
py_sym_types = SymInt, SymFloat, SymBool


def make_fx(f: Callable[..., Any], decomposition_table: Any = None, tracing_mode: str = "real",
            _allow_non_fake_inputs: bool = False, *, pre_dispatch: bool = False, record_module_stack: bool = False,
            _allow_fake_constant: bool = False, _error_on_data_dependent_ops: bool = True) -> Callable[..., Any]:
    """Return a function that traces `f` on example arguments, and returns a module of the steps that it took.

    Steps are PyTorch's operators, `ops.aten`, or ops of `fx.table` that it has no operator for; sizes, and values that
    the program branches on, are those of the examples. In the modes "fake" and "symbolic" no values are computed, and
    reading one is an error. Writes in place to arguments come last, as `copy_`. https://pytorch.org/docs/stable/fx.html

    >>> import tensorgrad as torch
    >>> traced = make_fx(lambda x, y: torch.relu(x) @ y + 1)(torch.ones(2, 3), torch.ones(3, 2))
    >>> print(traced.code.strip())
    def forward(self, x_1, y_1):
        relu = torch.ops.aten.relu.default(x_1);  x_1 = None
        matmul = torch.ops.aten.matmul.default(relu, y_1);  relu = y_1 = None
        add = torch.ops.aten.add.Tensor(matmul, 1);  matmul = None
        return add
    """
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise AssertionError(f"tracing_mode must be 'real', 'fake', or 'symbolic', got {tracing_mode}")

    @wraps(f)
    def wrapped(*args: Any) -> GraphModule:
        reading = (lambda line: None) if tracing_mode == "real" else None
        lowered = lower(f, args, reading=reading, fold=False, effects=True, branches=True, gradients=True)
        leaves, spec = tree_flatten(args)
        names = iter(input_names(f, args, {}))
        graph, copies = Graph(), dict[Node, Node]()
        inputs = iter(lowered.find_nodes(op="placeholder"))
        for i, leaf in enumerate(leaves):
            if isinstance(leaf, Tensor):
                node = next(inputs)
                copies[node] = graph.placeholder(f"{next(names)}_1")
                copies[node].meta["val"] = table.shaped(node)
            else:
                graph.placeholder(f"arg{i}_1")
        root = {}
        for node in lowered.find_nodes(op="get_attr"):
            copies[node] = graph.get_attr(node.target)
            copies[node].meta["val"] = table.shaped(node)
            root[node.target] = lowered.tensors[node.target]
        kind = getattr(unwrap(f), "__annotations__", {}).get("return")
        result, buffers, written = table.copied(lowered, copies, graph, root)
        tensors: dict[Any, Node] = {node.target: copies[node] for node in lowered.find_nodes(op="get_attr")}
        tensors.update(enumerate(node for node in graph.find_nodes(op="placeholder") if "val" in node.meta))
        for key, value in [*buffers.items(), *written.items()]:
            graph.call_function(ops.aten.copy_.default, (tensors[key], value)).meta["val"] = value.meta["val"]
        graph.output(result, kind if kind is Tensor else None)
        for node in reversed(list(graph.nodes)):
            if node.op == "get_attr" and not node.users or node.op == "call_function" and not node.users and not (
                    node.is_impure()):
                graph.erase_node(node)
        if not all(child.is_leaf() for child in spec.children()):
            graph.set_codegen(_PyTreeCodeGen(_PyTreeInfo([f"arg{i}" for i in range(len(args))], spec, None)))
        return GraphModule(root, graph, getattr(f, "__name__", type(f).__name__))
    return wrapped


def get_proxy_mode() -> None:
    """Return None: functions are traced by their arrays, without a mode."""
    return None


@contextmanager
def disable_proxy_modes_tracing() -> Iterator[None]:
    """Change nothing in the block: no mode traces."""
    yield


@contextmanager
def maybe_disable_fake_tensor_mode() -> Iterator[None]:
    """Change nothing in the block: no mode makes fake tensors."""
    yield
