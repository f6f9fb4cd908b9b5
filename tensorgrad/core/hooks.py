"""Hooks on tensors and steps in a backward, and anomaly mode."""
from __future__ import annotations

import warnings
from typing import Any

from ..advice import advised
from ..dtype import FROM_NUMPY, SCALAR_TYPES
from ..runtime.numpy_state import outside
from ..storage.sparse import pattern_of
from .accumulating import owning
from .dispatch import wrap, xp
from .mode import mode
from .node import Hooks
from .tape import TensorBase


def _as_tensor(node: Any, g: Any) -> Any:
    if g is None or isinstance(g, TensorBase):
        return g
    backend = type(node._storage)
    if type(g) is not backend.array_type:
        backend = backend.home(g)
        g = backend.asarray(g)
    return wrap(g, backend())


def hooked(node: Any, g: Any, create_graph: bool) -> Any:
    """Run the hooks of the tensor that a node made, and leave the gradient with the tensor if that retains it."""
    hooks: Hooks = node.hooks
    seen = _as_tensor(node, g)
    # all hooks get one object, on which they may set attributes, unless a hook before replaced it
    for hook in list(hooks.tensor.values()):
        result = outside(hook, seen)
        g, seen = _replaced(hook, node, result, g, create_graph), seen if result is None else result
    if g is not None and hooks.retained is not None and (tensor := hooks.retained()) is not None:
        kept = xp.clone(g) if create_graph else owning(g, type(node._storage), in_order=True)
        tensor._grad = kept if tensor._grad is None else tensor._grad + kept
    return g


def hooked_before(node: Any, g: Any, create_graph: bool) -> Any:
    """Run the hooks that are called before a step, which may replace its incoming gradients."""
    parts = g if type(g) is list else [g]
    for hook in list(node.hooks.before.values()):
        results = outside(hook, tuple(_as_tensor(node, part) for part in parts))
        if results is not None:
            _check_results(hook, node, results, len(parts))
            parts = [None if result is None else _replaced(hook, node, result, part, create_graph)
                     for result, part in zip(results, parts, strict=True)]
    return parts if type(g) is list else parts[0]


def hooked_after(node: Any, pulled: Any, g: Any, create_graph: bool) -> Any:
    """Run the hooks that are called after a step, which may replace the gradients of its inputs."""
    left = list(pulled)
    inputs: tuple[Any, ...] = ()
    for e in node.edges:
        place = next((k for k, (edge, _) in enumerate(left) if edge is e), None)
        inputs = (*inputs, None if place is None else _as_tensor(e, left.pop(place)[1]))
    outputs = tuple(_as_tensor(node, part) for part in (g if type(g) is list else [g]))
    for hook in list(node.hooks.after.values()):
        results = outside(hook, inputs, outputs)
        if results is not None:
            _check_results(hook, node, results, len(inputs))
            inputs = tuple(result if result is None else _as_tensor(node, _replaced(hook, node, result, given, True))
                           for result, given in zip(results, inputs, strict=True))
    return [(e, i if create_graph else i.array) for e, i in zip(node.edges, inputs, strict=True)
            if e is not None and i is not None]


def _check_results(hook: Any, node: Any, results: Any, count: int) -> None:
    """Raise PyTorch's error unless a hook on a step returned a tuple of as many values as it was given."""
    if not isinstance(results, tuple):
        raise advised(TypeError(f"expected tuple, but hook returned '{type(results).__name__}'"), "of_hook", hook, node)
    if len(results) != count:
        raise advised(RuntimeError(f"hook '{_name(hook)}' has returned an incorrect number of values (got "
                                   f"{len(results)}, but expected {count})"),
                      "of_hook", hook, node)


def _name(hook: Any) -> str:
    return str(getattr(hook, "__name__", type(hook).__name__))


def _replaced(hook: Any, node: Any, result: Any, g: Any, create_graph: bool) -> Any:
    """Return a hook's replacement of a gradient, or the gradient; PyTorch's errors for one that does not fit."""
    if result is None:
        return g
    if not isinstance(result, TensorBase):
        raise advised(TypeError(f"expected Variable, but hook returned '{type(result).__name__}'"), "of_hook", hook,
                      node)
    name, before = _name(hook), getattr(g, "array", g)
    if before is None:
        raise advised(RuntimeError("can't replace a None gradient with a non-None value"), "of_hook", hook, node)
    if result.array.dtype != before.dtype:
        was, got = (f"torch.{SCALAR_TYPES[FROM_NUMPY[a.dtype].name]}Tensor" for a in (before, result.array))
        raise advised(RuntimeError(f"hook '{name}' has changed the type of value (was {was} got {got})"), "of_hook",
                      hook, node)
    if result.array.shape != before.shape:
        raise advised(RuntimeError(f"hook '{name}' has changed the size of value"), "of_hook", hook, node)
    return result if create_graph else result.array


def refuse_result(hook: Any, node: Any, result: Any, tensor: Any) -> None:
    """Raise PyTorch's error for a result of a hook that is called after the gradient was added."""
    if result is not None:
        _replaced(hook, node, result, tensor, True)
        raise RuntimeError("Tensor post accumulate grad hooks should return None.")


def pull_watched(node: Any, g: Any, useful: Any, create_graph: bool) -> Any:
    """Pull in anomaly mode: warn with the stack of the forward call if the step raises an error or returns NaN."""
    try:
        pulled = node.pull_tensors(g, useful) if create_graph else node.pull(g, useful)
        if mode.watching.check_nan:
            positions = {e: i for i, e in enumerate(node.edges) if e is not None}
            for e, ge in pulled:
                array = getattr(ge, "array", ge)
                array = array if pattern_of(array) is None else array.values
                if bool((array != array).any()):
                    raise advised(
                        RuntimeError(f"Function '{node.name()}' returned nan values in its {positions[e]}th output."),
                        "of_nan", node)
        return pulled
    except Exception:
        trace = getattr(node, "trace", None)
        warnings.warn(f"Error detected in {node.name()}. " + (
            f"Traceback of forward call that caused the error:\n{''.join(trace)}" if trace else
            "No forward pass information available. Enable detect anomaly during forward pass for more information."),
                      stacklevel=5)
        raise
