"""torch.fx: programs are not traced into graphs. https://pytorch.org/docs/stable/fx.html"""
from ._unsupported import unsupported
from .nn.modules.module import Module

_NAMES = "Graph Interpreter Tracer Transformer replace_pattern symbolic_trace"
__all__ = ["GraphModule", "Node", "Proxy", "wrap", *_NAMES.split()]


class GraphModule(Module):
    """The class of PyTorch's traced modules: nothing here is one."""


class Node:
    """The class of the nodes of a traced graph: nothing here is one."""


class Proxy:
    """The class of the values while a program is traced: nothing here is one."""


def wrap(fn_or_name):
    """A function that tracing leaves whole: it is given back."""
    return fn_or_name


globals().update(unsupported(_NAMES, "torch.fx", "programs are not traced into graphs; Tensor.render draws what autograd recorded"))
