"""torch.fx: programs are not traced into graphs. https://pytorch.org/docs/stable/fx.html"""
from ..messages.unsupported import unsupported
from ._absent import REASON, absent
from .graph_module import GraphModule
from .node import Node
from .proxy import Proxy

_NAMES = "replace_pattern symbolic_trace"
__all__ = ["Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer", "wrap", *_NAMES.split()]


Graph, Interpreter, Tracer, Transformer = map(absent, ("Graph", "Interpreter", "Tracer", "Transformer"))


def wrap(fn_or_name):
    """Return the function, which tracing would not enter."""
    return fn_or_name


globals().update(unsupported(_NAMES, "torch.fx", REASON))
