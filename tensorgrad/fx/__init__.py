"""torch.fx: programs traced into graphs, which are read, changed and run. https://pytorch.org/docs/stable/fx.html

>>> import tensorgrad as torch
>>> traced = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1)
>>> print(traced.code.strip())
def forward(self, x):
    relu = torch.relu(x);  x = None
    add = relu + 1;  relu = None
    return add
"""
from ..graph.codegen import CodeGen
from ..graph.graph import Graph
from ..graph.node import Node, map_arg
from . import _pytree, annotate, config, immutable_collections, traceback
from ._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace, wrap
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import has_side_effect
from .proxy import Proxy
from .subgraph_rewriter import replace_pattern

__all__ = ["CodeGen", "Graph", "GraphModule", "Interpreter", "Node", "PH", "Proxy", "ProxyableClassMeta", "Tracer",
           "Transformer", "has_side_effect", "map_arg", "replace_pattern", "symbolic_trace", "wrap"]
