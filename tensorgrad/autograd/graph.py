"""Looking at the tape, and hooks on it. https://pytorch.org/docs/stable/autograd.html#autograd-graph"""
from ..ops.base import Node
from .anomaly import save_on_cpu, saved_tensors_hooks
from .tape import RemovableHandle, node_of


def get_gradient_edge(tensor):  # type: ignore[no-untyped-def]
    """The step of the tape, and the number of its result, that a tensor stands for."""
    node = node_of(tensor)
    if node is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return node.as_function()


__all__ = ["Node", "RemovableHandle", "get_gradient_edge", "save_on_cpu", "saved_tensors_hooks"]
