"""Queries of the engine, under the names of PyTorch's compiled modules `torch._C` and `torch._C._autograd`.

>>> import tensorgrad as torch
>>> from tensorgrad._C import _autograd
>>> x = torch.tensor(2., requires_grad=True).exp()
>>> _ = x.register_hook(lambda g: print(_autograd._current_autograd_node().name()))
>>> x.backward()
ExpBackward0
"""
from __future__ import annotations

import weakref
from typing import Any

from ..core.anomaly import saved_tensors_hooks
from ..core.mode import is_grad_enabled, mode
from ..core.node import Node
from ..core.step import SavedTensor
from ..core.tape import Leaf, Output

__all__ = ["SavedTensor", "is_grad_enabled"]


def _current_graph_task_id() -> int:
    """Return the number of the running backward; −1 outside of one."""
    return -1 if mode.sweep is None else mode.sweep.number


def _current_autograd_node() -> Any:
    """Return the step that is being pulled; None outside of a backward."""
    return None if mode.sweep is None else mode.sweep.node


def _get_current_graph_task_keep_graph() -> bool:
    """Return True unless the running backward frees saved values."""
    return mode.sweep is None or bool(mode.sweep.keeps)


def _current_graph_task_execution_order() -> list[Any]:
    """Return the nodes that the running backward visits, in order."""
    sweep = mode.sweep
    if sweep is None:
        raise RuntimeError("_current_graph_task_execution_order should only be called during the backward pass")
    steps = [node for node in sweep.order if type(node) is not Output
             and (sweep.useful is None or node in sweep.useful)]
    last = {e: node for node in sweep.order for e in node.edges if type(e) is Leaf}
    order = []
    for node in steps:
        order += [node, *(e for e in dict.fromkeys(node.edges) if last.get(e) is node)]
    return order


def _will_engine_execute_node(node: Any) -> bool:
    """Return True if the running backward pulls a step, or adds up the gradient of a leaf."""
    if not isinstance(node, Node):
        raise RuntimeError(f"_will_engine_execute_node expects an grad_fn, but got {type(node).__name__}")
    sweep = mode.sweep
    if sweep is None:
        raise RuntimeError("_get_should_execute_nodes should only be called during the backward pass")
    if type(node) is not Leaf:
        return sweep.reaches(node) and (sweep.useful is None or sweep.adds and node in sweep.wanted
                                        or not sweep.useful.isdisjoint(node.edges))
    if sweep.useful is not None and not sweep.adds:
        raise RuntimeError("A leaf node was passed to _will_engine_execute_node but we are currently running "
                           "autograd.grad(). This is currently not supported.")
    return bool(sweep.reaches(node))


def _set_fwd_grad_enabled(enabled: bool) -> None:
    """Turn the propagation of tangents on or off."""
    mode.set_forward(enabled)


class _WeakTensorRef:
    """A weak reference to a tensor."""

    def __init__(self, tensor: Any) -> None:
        self.reference = weakref.ref(tensor)

    def expired(self) -> bool:
        """Return True if the tensor is gone."""
        return self.reference() is None


# ── hooks on saved tensors ────────────────────────────────────────────────────────────────────────────────────────────


def _saved_tensors_hooks_is_enabled() -> bool:
    """Return False inside of `disable_saved_tensors_hooks`."""
    return mode.watching.refused is None


def _saved_tensors_hooks_disable(message: str) -> None:
    """Refuse hooks with this message; RuntimeError if some are in force."""
    if mode.watching.hooks:
        raise RuntimeError(message)
    mode.watching.refused = message


def _saved_tensors_hooks_enable() -> None:
    """Accept hooks again."""
    mode.watching.refused = None


def _saved_tensors_hooks_get_disabled_error_message() -> str | None:
    """Return the message with which hooks are refused; None if they are accepted."""
    return mode.watching.refused


def _push_saved_tensors_default_hooks(pack_hook: Any, unpack_hook: Any) -> None:
    """Put a pair of hooks in force."""
    saved_tensors_hooks(pack_hook, unpack_hook).__enter__()


def _pop_saved_tensors_default_hooks() -> None:
    """Put the innermost pair of hooks out of force."""
    saved_tensors_hooks(None, None).__exit__()


def _top_saved_tensors_default_hooks(ignore_is_tracing: bool = False) -> Any:
    """Return the innermost pair of hooks; None if there is none."""
    return mode.watching.hooks[-1] if mode.watching.hooks else None


def _unsafe_set_version_counter(tensors: Any, versions: Any) -> None:
    """Set the numbers of writes that tensors have seen."""
    for t, count in zip(tensors, versions, strict=True):
        if count < 0:
            raise RuntimeError(f"Cannot set a version_counter to a value below 0: {count}")
        t._storage.version = count
