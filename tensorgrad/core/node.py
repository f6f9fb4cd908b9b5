"""The nodes of the tape, and the hooks that programs hang on them."""
from __future__ import annotations

import weakref
from typing import Any, NamedTuple

from ..dtype import FROM_NUMPY
from ..size import Size


class RemovableHandle:
    """A handle that removes a hook, by hand or at the end of a `with` block, with its entries in extra dicts.

    https://pytorch.org/docs → torch.utils.hooks.RemovableHandle
    """

    next_id = 0

    def __init__(self, hooks_dict: dict[int, Any], *, extra_dict: Any = None) -> None:
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        others = [] if extra_dict is None else [extra_dict] if isinstance(extra_dict, dict) else list(extra_dict)
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.extra_dict_ref = tuple(map(weakref.ref, others))

    def remove(self) -> None:
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            if (hooks := reference()) is not None:
                hooks.pop(self.id, None)

    def __getstate__(self) -> Any:
        return self.hooks_dict_ref(), self.id, tuple(reference() for reference in self.extra_dict_ref)

    def __setstate__(self, state: Any) -> None:
        hooks, self.id, *others = state
        self.hooks_dict_ref = weakref.ref(HookDict() if hooks is None else hooks)
        self.extra_dict_ref = tuple(weakref.ref(HookDict() if d is None else d) for d in (others[0] if others else ()))
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


class HookDict(dict[int, Any]):
    """Hooks in order; a dict that can be referred to weakly."""

    __slots__ = ("__weakref__",)

    def add(self, hook: Any, first: bool = False) -> RemovableHandle:
        handle = RemovableHandle(self)
        if first:
            others = dict(self)
            self.clear()
            self[handle.id] = hook
            self.update(others)
        else:
            self[handle.id] = hook
        return handle


class Hooks:
    """The hooks of one node: on the tensor it made, before and after the step, and tensors that retain their
    gradient.
    """

    __slots__ = ("tensor", "before", "after", "accumulated", "retained")

    def __init__(self) -> None:
        self.tensor, self.before, self.after, self.accumulated = HookDict(), HookDict(), HookDict(), HookDict()
        self.retained: Any = None       # a weak reference to the tensor that retains its gradient

    @staticmethod
    def hand_on(old: Node, new: Node) -> None:
        """Move the retained .grad of a tensor with a new history to the new node."""
        if old.hooks is not None and old.hooks.retained is not None and old is not new:
            Hooks.of(new).retained, old.hooks.retained = old.hooks.retained, None

    @staticmethod
    def of(node: Node) -> Hooks:
        if node.hooks is None:
            node.hooks = Hooks()
        return node.hooks  # type: ignore[no-any-return]


class InputMetadata(NamedTuple):
    """The form of the gradient of one result of a step."""

    shape: Any
    dtype: Any
    device: Any
    is_nested_tensor: bool = False
    is_cpp_nested_tensor: bool = False


class Node:
    """A node of the tape: what `Tensor.grad_fn` shows.

    `edges` are the nodes of its inputs, None where no gradient flows.

    All slots are here, also those of steps (see step.py): steps of every kind have one layout, which the compiled fast
    path learns once.
    """

    __slots__ = ("edges", "hooks", "time", "since", "shape", "dtype", "_storage", "saved", "params", "plan", "residual",
                 "results", "trace", "calls",
                 "title", "_metadata", "__weakref__")
    edges: tuple[Any, ...] | list[Any]
    hooks: Any
    time: int
    since: int                        # when the result was written into another tensor
    shape: Any
    dtype: Any
    _storage: Any
    saved: Any                        # of a step: the values that its gradients need
    params: Any
    plan: Any                         # of a step of the table's ops: its plan, see plan.py
    residual: Any                     # of a step of a kernel pair: the values that the kernel keeps (see fused.py)
    results: Any                      # of a step with several: weak references to their places on the tape
    trace: Any
    title: str                        # of a step: its name where the op's is not PyTorch's (see step_names.py)
    calls: Any                        # calls of modules that this was a result of (see module_calls.py)
    requires_grad: bool = True        # False for duals of forward mode through which no gradient flows

    def name(self) -> str:
        """PyTorch's name of the step, such as 'MulBackward0'."""
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The steps that gradients flow on to, each with the number of the output that it was."""
        order = getattr(self, "order", None)        # of an op's steps
        edges = [self.edges[i] for i in order] if order else self.edges
        return tuple((None, 0) if e is None else e.as_function() for e in edges)

    def as_function(self) -> tuple[Node, int]:
        return self, 0

    @property
    def _input_metadata(self) -> tuple[InputMetadata, ...]:
        """The form of the gradient of each result, which backward gives the step."""
        results = zip(self.shape, self.dtype) if type(self.dtype) is tuple else [(self.shape, self.dtype)]
        return tuple(InputMetadata(Size(shape), FROM_NUMPY[dtype], self._storage.device)
                     for shape, dtype in results if dtype is not None and dtype.kind in "fcV")

    def register_hook(self, hook: Any) -> RemovableHandle:
        """Call `hook(grad_inputs, grad_outputs)` after this step was pulled; its result, if any, replaces
        grad_inputs.
        """
        return Hooks.of(self).after.add(hook)

    def register_prehook(self, hook: Any) -> RemovableHandle:
        """Call `hook(grad_outputs)` before this step is pulled; its result, if any, replaces grad_outputs."""
        return Hooks.of(self).before.add(hook)

    def _sequence_nr(self) -> int:
        """When the step was taken: later steps have greater numbers."""
        return self.time

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for whatever a program wants to note about this step; in anomaly mode, with its traceback."""
        try:
            return self._metadata
        except AttributeError:
            trace = getattr(self, "trace", None)
            self._metadata: dict[Any, Any] = {} if trace is None else {"traceback_": trace}
            return self._metadata

    def without_hooks(self) -> Node:
        """Return a node of the same step without hooks."""
        twin = type(self)()
        for name in Node.__slots__:
            if name not in ("hooks", "__weakref__") and hasattr(self, name):
                setattr(twin, name, getattr(self, name))
        twin.hooks = None
        return twin

    def __repr__(self) -> str:
        return f"<{self.name().rpartition('::')[2]} object at {id(self):#x}>"
