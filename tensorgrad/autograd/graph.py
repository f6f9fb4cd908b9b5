"""Looking at the tape, and hooks on it. https://pytorch.org/docs/stable/autograd.html#autograd-graph"""
from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..core.anomaly import disable_saved_tensors_hooks, save_on_cpu, saved_tensors_hooks
from ..core.engine import GradientEdge
from ..core.engine import edge_of as get_gradient_edge
from ..core.mode import mode as autograd
from ..core.node import Node as Step
from ..core.node import RemovableHandle
from ..core.tape import Leaf, TensorBase, node_of
from .function import FunctionCtx


class Node(ABC):
    """The abstract class of all `grad_fn`, of the ends of the tape and of the contexts of Functions.

    https://pytorch.org/docs → torch.autograd.graph.Node

    >>> import tensorgrad as torch
    >>> isinstance(torch.ones(1, requires_grad=True).exp().grad_fn, Node)
    True
    """

    @abstractmethod
    def name(self) -> str:
        """The name of the step."""

    @property
    @abstractmethod
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The steps that gradients flow on to, each with the number of the output that it was."""

    @abstractmethod
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for notes about the step."""

    @abstractmethod
    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_inputs, grad_outputs)` after the step was pulled."""

    @abstractmethod
    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_outputs)` before the step is pulled."""

    @classmethod
    def __subclasshook__(cls, other: type) -> Any:
        return issubclass(other, (Step, FunctionCtx)) or NotImplemented


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


class _Handle:
    """The tape's placeholder for a saved tensor that may be written to."""


class _Saved:
    """The saved tensors of a block: the tensors themselves until their memory is written to, then copies.

    Handles on the tape keep entries alive. Attributes have PyTorch's names.
    """

    def __init__(self) -> None:
        self.open = True
        self.original: weakref.WeakKeyDictionary[_Handle, Any] = weakref.WeakKeyDictionary()
        self.cloned: weakref.WeakKeyDictionary[_Handle, Any] = weakref.WeakKeyDictionary()
        # by storage, version, and place in memory
        self.tid_to_weakhandle: weakref.WeakValueDictionary[Any, _Handle] = weakref.WeakValueDictionary()
        self.by_storage: dict[int, weakref.WeakSet[_Handle]] = {}

    def pack(self, tensor: Any) -> _Handle:
        storage = tensor._storage
        place = (id(storage), storage.version, *((tensor.storage_offset(), tensor.shape, tensor.stride())
                                                 if storage.dense is None else (id(tensor.array),)))
        handle = self.tid_to_weakhandle.get(place)
        if handle is None or handle in self.cloned:
            self.tid_to_weakhandle[place] = handle = _Handle()
            self.original[handle] = tensor if type(tensor._node) is Leaf else tensor.detach()
            self.by_storage.setdefault(id(storage), weakref.WeakSet()).add(handle)
        return handle

    def unpack(self, handle: _Handle) -> Any:
        found = self.cloned.get(handle, self.original.get(handle)) if self.open else None
        if found is None:
            raise AssertionError("Trying to backward outside of the 'allow_mutation_on_saved_tensors' contextin which "
                                 "the graph was originally recorded.")
        return found

    def before_write(self, target: Any) -> None:
        """Copy the saved tensors in the memory of a tensor that is about to be written to."""
        for handle in self.by_storage.pop(id(target._storage), ()):
            self.cloned[handle] = self.original.pop(handle).detach().clone()

    def clear(self) -> None:
        """Forget all tensors."""
        self.open = False
        for kept in (self.original, self.cloned, self.tid_to_weakhandle, self.by_storage):
            kept.clear()


class allow_mutation_on_saved_tensors:
    """Let tensors that steps saved be written to: a write copies their values first, for the backward.

    The block has to contain the backward as well. https://pytorch.org/docs → allow_mutation_on_saved_tensors

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

    def __enter__(self) -> _Saved:
        if autograd.watching.writing is not None:
            raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
        self.saved = _Saved()
        self.hooks = saved_tensors_hooks(self.saved.pack, self.saved.unpack)
        self.hooks.__enter__()
        autograd.watching.writing = self.saved.before_write
        return self.saved

    def __exit__(self, *exception: object) -> None:
        autograd.watching.writing = None
        self.hooks.__exit__(*exception)
        self.saved.clear()


__all__ = ["GradientEdge", "Node", "RemovableHandle", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks",
           "get_gradient_edge", "increment_version", "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks"]
