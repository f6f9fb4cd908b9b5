"""torch.fx: programs are not traced into graphs. https://pytorch.org/docs/stable/fx.html"""
from .._unsupported import unsupported
from ..nn.modules.module import Module

_NAMES = "replace_pattern symbolic_trace"
_REASON = "programs are not traced into graphs; Tensor.render draws what autograd recorded"
__all__ = ["Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer", "wrap", *_NAMES.split()]


class GraphModule(Module):
    """The class of PyTorch's traced modules: nothing here is one."""


class Node:
    """The class of the nodes of a traced graph: nothing here is one."""


class Proxy:
    """The class of the values while a program is traced: nothing here is one."""


def _absent(name):
    """A class that packages may derive others from, but not make."""
    def __init__(self, *args, **kwargs):
        raise NotImplementedError(f"tensorgrad has no torch.fx.{name}: {_REASON}")
    return type(name, (), {"__init__": __init__, "__module__": __name__, "__doc__": f"Not there: {_REASON}. https://pytorch.org/docs → torch.fx.{name}"})


Graph, Interpreter, Tracer, Transformer = map(_absent, ("Graph", "Interpreter", "Tracer", "Transformer"))


def wrap(fn_or_name):
    """A function that tracing leaves whole: it is given back."""
    return fn_or_name


globals().update(unsupported(_NAMES, "torch.fx", _REASON))

from . import graph_module, node, proxy  # noqa: E402, F401  they have the classes above
