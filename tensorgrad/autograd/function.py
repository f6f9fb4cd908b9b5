"""Steps that a program defines itself: `autograd.Function`, with PyTorch's context API."""
from __future__ import annotations

from functools import wraps
from typing import Any

from .. import dispatch
from ..dispatch import wrap, xp
from ..ops.base import Node
from ..storage.base import clock
from .fused import second_time, stale
from .inplace import check
from .mode import mode
from .tape import FREED, Leaf, Output, TensorBase, node_of

once = "trying to differentiate twice a function that was marked with @once_differentiable"


class FunctionCtx:
    """What the forward of a Function leaves for its backward."""

    _saved: tuple[Any, ...] = ()
    _dirty: tuple[Any, ...] = ()
    _plain: tuple[Any, ...] = ()
    _materialize = True
    needs_input_grad: tuple[bool, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for the backward; a later write to them is noticed."""
        for t in tensors:
            if t is not None and not isinstance(t, TensorBase):
                raise TypeError(f"save_for_backward can only save variables, but argument is of type {type(t).__name__}")
        self._to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors for `jvp`."""
        self.saved_for_forward = tensors

    def mark_dirty(self, *tensors: Any) -> None:
        """Say which inputs the forward changed in place. They have to be among its results."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Say which results have no gradient."""
        self._plain = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether gradients of unused results reach the backward as zeros (the default) or as None."""
        self._materialize = value

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What was saved, unless it was changed or freed since."""
        return self._unpacked()

    saved_variables = saved_tensors

    def _unpacked(self) -> tuple[Any, ...]:
        return getattr(self, "_to_save", ())


class FunctionNode(Node, FunctionCtx):
    """The tape step of a Function; to its backward, it is `ctx`."""

    function: Any
    saved: Any = ()
    several = True

    def name(self) -> str:
        return f"{self.function.__name__}Backward"

    def _seal(self, outputs: dict[int, Any]) -> None:
        """After the forward: keep what was saved, results without the way they came (it would lead back here)."""
        kept = []
        for t in getattr(self, "_to_save", ()):
            if t is None:
                kept.append(None)
            else:
                kept.append((t.array, t.storage, outputs.get(id(t), node_of(t)), t.storage.version))
        self.saved = tuple(kept)
        self.__dict__.pop("_to_save", None)

    def _unpacked(self) -> tuple[Any, ...]:
        if self.saved is FREED:
            raise second_time()
        tensors: list[Any] = []
        for entry in self.saved:
            if entry is None:
                tensors.append(None)
                continue
            array, storage, node, version = entry
            if storage.version != version:
                raise stale(self, "a saved tensor", array.shape, array.dtype, storage)
            node = Output(self, node, array) if isinstance(node, int) else node
            tensors.append(wrap(array, storage, node))
        return tuple(tensors)

    def pull(self, g: Any, useful: Any) -> Any:
        tensors = [None if part is None else wrap(part, type(self.storage)()) for part in g]
        return [(e, ge.array) for e, ge in self._backward(tensors)]

    def pull_tensors(self, g: Any, useful: Any) -> Any:
        return self._backward(g)

    def _backward(self, gradients: list[Any]) -> list[tuple[Any, Any]]:
        from .engine import fitted_tensor
        if self.saved is FREED:
            raise second_time()
        if self.function.backward is not Function.backward and self.function.vjp is not Function.vjp:
            raise RuntimeError("Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one "
                               "of them.")
        rule = self.function.backward if self.function.backward is not Function.backward else self.function.vjp
        results = rule(self, *gradients)
        results = results if isinstance(results, tuple) else tuple(results) if isinstance(results, list) else (results,)
        if len(results) > len(self.edges):
            if any(r is not None for r in results[len(self.edges):]):
                raise RuntimeError(f"function {self.name()} returned an incorrect number of gradients (expected {len(self.edges)}, got "
                                   f"{len(results)})")
        elif len(results) < len(self.edges):
            raise RuntimeError(f"function {self.name()} returned an incorrect number of gradients (expected {len(self.edges)}, got "
                               f"{len(results)})")
        pulled = []
        for i, (e, r) in enumerate(zip(self.edges, results, strict=False)):
            if r is None or e is None:
                continue
            if not isinstance(r, TensorBase):
                raise TypeError(f"expected Variable or None (got {type(r).__name__})")
            try:
                pulled.append((e, fitted_tensor(r, e)))
            except Exception:
                raise RuntimeError(f"Function {self.name()} returned an invalid gradient at index {i} - got {list(r.array.shape)} but "
                                   f"expected shape compatible with {list(e.shape)}") from None
        return pulled


class FunctionMeta(type):
    """Gives each Function a class of tape nodes under its own name."""

    def __init__(cls, name: str, bases: Any, attrs: Any) -> None:
        cls._node_class = type(f"{name}Backward", (FunctionNode,), {"function": cls, "__module__": attrs.get("__module__")})
        super().__init__(name, bases, attrs)


class Function(metaclass=FunctionMeta):
    """An operation with a backward of its own. https://pytorch.org/docs → torch.autograd.Function

    >>> import tensorgrad as torch
    >>> class Cube(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x ** 3
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         x, = ctx.saved_tensors
    ...         return 3 * x ** 2 * g
    >>> x = torch.tensor(2., requires_grad=True)
    >>> Cube.apply(x).backward(); x.grad
    tensor(12.)
    """

    _node_class: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should invoke "
                           "them on the class itself. Instantiating an autograd function will raise an error in a future version of PyTorch.")

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute. Takes ctx first, unless `setup_context` is defined."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Prepare ctx after a forward that does not take it."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The gradients of the inputs, given those of the outputs."""
        raise NotImplementedError("You must implement either the backward or vjp method for your custom autograd.Function to use it with "
                                  "backward mode AD.")

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """The tangents of the outputs, given those of the inputs."""
        raise NotImplementedError("You must implement the jvp function for custom autograd.Function to use it with forward mode AD.")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward, and write the step on the tape."""
        node = cls._node_class()
        tensors = [a if isinstance(a, TensorBase) else None for a in args]
        edges = [None if t is None else node_of(t) for t in tensors]
        node.edges, node.hooks, node.needs_input_grad = edges, None, tuple(e is not None for e in edges)
        before = mode.grad
        mode.set_grad(False)
        try:
            if cls.setup_context is not Function.setup_context:
                result = cls.forward(*args, **kwargs)
                cls.setup_context(node, args, result)
            else:
                result = cls.forward(node, *args, **kwargs)
        finally:
            mode.set_grad(before)
        outputs = result if isinstance(result, tuple) else tuple(result) if isinstance(result, list) else (result,)
        recording = mode.record is not None and any(e is not None for e in edges)
        if recording or node._dirty:
            outputs = _attach(cls, node, tensors, outputs, recording)
        return type(result)(outputs) if isinstance(result, (tuple, list)) else outputs[0]


def _attach(cls: Any, node: Any, tensors: list[Any], outputs: tuple[Any, ...], recording: bool) -> tuple[Any, ...]:
    """Make the results of a Function lead to its tape step."""
    for t in node._dirty:
        if not any(t is o for o in outputs):
            raise RuntimeError("Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
                               "modified inplace must all be outputs of the Function.")
        if recording:
            check(t)
    if not recording:
        return outputs
    finished = []
    for o in outputs:
        if isinstance(o, TensorBase) and not any(o is t for t in node._dirty) and any(o is t for t in tensors):
            o_new = wrap(o.array, o.storage)          # an input returned as it is: a result of its own, that shares its memory
            finished.append(o_new)
        else:
            finished.append(o)
    places = {id(o): i for i, o in enumerate(finished) if isinstance(o, TensorBase)}
    node.storage = next(o.storage for o in finished if isinstance(o, TensorBase))
    node.shape = tuple(o.array.shape if isinstance(o, TensorBase) else () for o in finished)
    node.dtype = tuple(o.array.dtype if isinstance(o, TensorBase) else None for o in finished)
    node._seal({i: p for i, p in places.items() if not any(id(t) == i for t in tensors if t is not None) or
                any(id(t) == i for t in node._dirty)})
    node.time = next(clock)
    for i, o in enumerate(finished):
        if not isinstance(o, TensorBase) or o.array.dtype.kind not in "fcV" or any(outputs[i] is p for p in node._plain):
            continue
        output = Output(node, i, o.array)
        if any(o is t for t in node._dirty):
            o.storage.rebased = next(clock)
            output.time = next(clock)
        o._node = output
    return tuple(finished)


def once_differentiable(backward: Any) -> Any:
    """A decorator for a backward that cannot itself be differentiated: doing so raises an error."""
    @wraps(backward)
    def guarded(ctx: Any, *gradients: Any) -> Any:
        recording = mode.grad
        mode.set_grad(False)
        try:
            results = backward(ctx, *gradients)
        finally:
            mode.set_grad(recording)
        if not recording or not any(isinstance(g, TensorBase) and node_of(g) is not None for g in gradients):
            return results
        several = isinstance(results, tuple)
        marked = [_Undifferentiable.apply(*[g for g in gradients if isinstance(g, TensorBase)], r) if isinstance(r, TensorBase) else r
                  for r in (results if several else (results,))]
        return tuple(marked) if several else marked[0]
    return guarded


class _Undifferentiable(Function):
    """Passes its last argument on; its backward refuses."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        return wrap(args[-1].array, args[-1].storage)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise RuntimeError(once)


__all__ = ["Function", "FunctionCtx", "Leaf", "dispatch", "once_differentiable", "xp"]
