"""Compute equal calls once. https://pytorch.org/docs/stable/fx.html"""
from __future__ import annotations

from typing import Any

from ....._tensor.torch_function import PUBLIC
from .....graph.effects import RANDOM
from .....graph.graph import Graph
from .....graph.node import Node, map_arg
from .....utils._pytree import tree_flatten
from ....graph_module import GraphModule
from ...infra.pass_base import PassBase, PassResult

__all__ = ["CSEPass", "get_CSE_banned_ops"]


def get_CSE_banned_ops() -> set[Any]:            # noqa: N802  PyTorch's name
    """Return functions that are not to be merged: their results differ from call to call."""
    from ....._ops import ops
    names = ("dropout bernoulli multinomial native_dropout normal poisson rrelu rand_like rand randint randn randperm "
             "add_ sub_ mul_ div_ pow_ lerp_ relu_ sigmoid_ tanh_").split()
    return ({getattr(ops.aten, name) for name in names if hasattr(ops.aten, name)}
            | {PUBLIC[function.__name__] for function in RANDOM})


def hashable(leaf: Any) -> Any:
    """Return a key of an argument."""
    return ("slice", leaf.start, leaf.stop, leaf.step) if isinstance(leaf, slice) else leaf


class CSEPass(PassBase):
    """Merges calls of a target with equal arguments, except of those in `banned_ops`.

    >>> import tensorgrad as torch
    >>> result = CSEPass()(torch.fx.symbolic_trace(lambda x: x.cos() + x.cos()))
    >>> print(result.graph_module.code.strip())
    def forward(self, x):
        cos = x.cos();  x = None
        add = cos + cos;  cos = None
        return add
    """

    def __init__(self, banned_ops: set[Any] | None = None) -> None:
        self.banned_ops = banned_ops or set()
        super().__init__()

    def call(self, graph_module: Any) -> PassResult:
        """Return a module with each call once."""
        new, copies, seen = Graph(), dict[Node, Node](), dict[Any, Node]()
        modified = False
        for node in graph_module.graph.nodes:
            key: Any = None
            if (node.op not in ("placeholder", "output", "get_attr")
                    and getattr(node.target, "overloadpacket", node.target) not in self.banned_ops):
                leaves, spec = tree_flatten(map_arg((node.args, dict(node.kwargs)), copies.__getitem__))
                key = node.op, node.target, tuple((type(leaf), hashable(leaf)) for leaf in leaves), str(spec)
                if key in seen:
                    copies[node], modified = seen[key], True
                    continue
            copies[node] = new.node_copy(node, copies.__getitem__)
            if key is not None:
                seen[key] = copies[node]
        return PassResult(GraphModule(graph_module, new) if modified else graph_module, modified)
