"""Steps that cannot be pulled: a backward that reaches them raises an error."""
from __future__ import annotations

from functools import cache
from typing import Any

from ..storage.base import clock
from .dispatch import wrap
from .mode import mode
from .step import Step
from .tape import TensorBase, link, node_of, show


class Undefined(Step):
    """A step that cannot be pulled: `params` has the name of the function, and that of PyTorch's step."""

    __slots__ = ()

    def name(self) -> str:
        return self.params[1] or "torch::autograd::NotImplemented"

    def pull(self, g: Any, useful: Any) -> Any:
        function, step = self.params
        raise (NotImplementedError(f"the derivative for '{function}' is not implemented.") if step
               else RuntimeError(f"derivative for aten::{function} is not implemented"))

    pull_tensors = pull

    def push(self, *tangents: Any) -> Any:
        function, step = self.params
        raise no_tangent(function) if step else NotImplementedError(
            f"Trying to use forward AD with aten::{function} that does not support it.")


def no_tangent(function: str) -> NotImplementedError:
    """Return PyTorch's error for a function that has no formula for tangents."""
    return NotImplementedError(
        f"Trying to use forward AD with {function} that does not support it because it has not been implemented yet.\n"
        "tensorgrad has no formula for its derivative.")


class Error(Step):
    """A step whose backward raises RuntimeError with the text in `params`."""

    __slots__ = ()

    def name(self) -> str:
        return "torch::autograd::Error"

    def pull(self, g: Any, useful: Any) -> Any:
        raise RuntimeError(self.params)

    pull_tensors = pull


@cache
def _kind(step: str) -> Any:
    return type(step or "NotImplemented", (Undefined,), {"__slots__": ()})


def undefined(function: str, results: Any, *inputs: Any, step: str = "") -> Any:
    """Record the floating-point results of a function without a derivative, if one of its inputs is on the tape.

    step: the name of PyTorch's step, "Unique2Backward0"; functions for which it has none share one.
    """
    edges = () if mode.record is None else tuple(node_of(x) if isinstance(x, TensorBase) else None for x in inputs)
    if any(edges):
        _attach(_kind(step)(), results if isinstance(results, (tuple, list)) else (results,), edges,
                (function, step))
    return results


def failing(message: str, *inputs: Any) -> tuple[Any, ...]:
    """Return the tensors as the results of a step whose backward raises RuntimeError; other values as they are."""
    outs = [wrap(x.array, x._storage) if isinstance(x, TensorBase) else x for x in inputs]
    if tensors := [x for x in outs if isinstance(x, TensorBase)]:
        _attach(Error(), tensors, tuple(node_of(x) if isinstance(x, TensorBase) else None for x in inputs), message)
    return tuple(outs)


def _attach(node: Any, outs: Any, edges: Any, params: Any) -> None:
    node.edges, node.params, node.hooks, node.calls, node.plan, node.saved = edges, params, None, None, None, ()
    node.time, node._storage = next(clock), outs[0]._storage.nowhere
    node.shape, node.dtype = tuple(o.array.shape for o in outs), tuple(o.array.dtype for o in outs)
    link(node, outs)
    show(node, outs)
