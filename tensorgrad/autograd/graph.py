"""Looking at the tape, and hooks on it. https://pytorch.org/docs/stable/autograd.html#autograd-graph"""
from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..core.anomaly import disable_saved_tensors_hooks, save_on_cpu, saved_tensors_hooks
from ..core.engine import GradientEdge
from ..core.engine import edge_of as get_gradient_edge
from ..core.mode import mode as autograd
from ..core.node import Node, RemovableHandle
from ..core.tape import TensorBase, node_of


class MultiHandle:
    """Removes several hooks at once."""

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> MultiHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def register_multi_grad_hook(tensors: Sequence[Any], fn: Callable[..., Any], *, mode: str = "all") -> MultiHandle:
    """Call `fn` with the gradients of all these tensors when they are known (None for those that one backward does not
    reach), or, in mode "any", with the first of them. https://pytorch.org/docs →
    torch.autograd.graph.register_multi_grad_hook
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    return MultiHandle(_all_known(tuple(tensors), fn) if mode == "all" else _first_known(tuple(tensors), fn))


def _all_known(tensors: tuple[Any, ...], fn: Callable[..., Any]) -> list[RemovableHandle]:
    if not all(tensor.requires_grad for tensor in tensors):
        raise AssertionError("Expected gradient function to be set")
    nodes = [weakref.ref(node_of(tensor)) for tensor in tensors]      # the hooks hang on them

    def note(i: int, g: Any) -> None:
        notes = autograd.sweep.notes
        if fn not in notes:
            notes[fn] = [None] * len(nodes), sum(autograd.sweep.reaches(node()) for node in nodes)
        gradients, missing = notes[fn]
        gradients[i] = g
        notes[fn] = gradients, missing - 1
        if missing == 1:
            fn(gradients)
    return [tensor.register_hook(partial(note, i)) for i, tensor in enumerate(tensors)]


def _first_known(tensors: tuple[Any, ...], fn: Callable[..., Any]) -> list[RemovableHandle]:
    def note(g: Any) -> None:
        if autograd.sweep.notes.setdefault(fn, g) is g:
            fn(g)
    return [tensor.register_hook(note) for tensor in tensors if tensor.requires_grad]


def increment_version(tensor: Any) -> None:
    """Count a write that happened behind autograd's back.

    https://pytorch.org/docs → torch.autograd.graph.increment_version
    """
    for t in (tensor,) if isinstance(tensor, TensorBase) else tensor:
        t._storage.wrote()


class allow_mutation_on_saved_tensors:
    """Let steps save copies of their tensors: backward uses the old values after in-place writes.

    https://pytorch.org/docs → allow_mutation_on_saved_tensors

    >>> import tensorgrad as torch
    >>> x = torch.tensor(3., requires_grad=True)
    >>> with torch.autograd.graph.allow_mutation_on_saved_tensors():
    ...     y = x * 1
    ...     z = y ** 2
    ...     _ = y.zero_()
    ...     z.backward()
    >>> x.grad
    tensor(6.)
    """

    running = threading.local()

    def __enter__(self) -> allow_mutation_on_saved_tensors:
        if getattr(self.running, "on", False):
            raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
        self.running.on = True
        self.hooks = saved_tensors_hooks(self._copy, self._kept)
        self.hooks.__enter__()
        self.copies: list[Any] = []
        self.open = True
        return self

    def __exit__(self, *exception: object) -> None:
        self.running.on = False
        self.hooks.__exit__(*exception)
        self.clear()
        self.open = False

    def clear(self) -> None:
        """Forget the copies."""
        for copy in self.copies:
            copy.clear()
        self.copies.clear()

    def _copy(self, tensor: Any) -> list[Any]:
        copy = [tensor.clone()]
        self.copies.append(copy)
        return copy

    def _kept(self, copy: list[Any]) -> Any:
        if not self.open:
            raise AssertionError("Trying to backward outside of the 'allow_mutation_on_saved_tensors' contextin which "
                                 "the graph was originally recorded.")
        if not copy:
            raise AssertionError("Trying to backward outside of the 'allow_mutation_on_saved_tensors' contextin which "
                                 "the graph was originally recorded.")
        return copy[0]


__all__ = ["GradientEdge", "Node", "RemovableHandle", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks",
           "get_gradient_edge", "increment_version", "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks"]
