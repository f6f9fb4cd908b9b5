"""Steps that a program defines itself: `autograd.Function`, with PyTorch's context API."""
from __future__ import annotations

import warnings
import weakref
from functools import wraps
from inspect import signature
from typing import Any

from ..advice import advised
from ..core.class_hooks import CLASSES, among, is_own
from ..core.class_hooks import hooks as class_hooks
from ..core.dispatch import wrap
from ..core.inplace import adopt, check
from ..core.mode import mode
from ..core.node import Node
from ..core.stale import second_time, stale
from ..core.step import Operand, Packed, Reading, SavedTensor, Step, fitted_tensor, is_packed
from ..core.tape import FREED, Leaf, Origin, Output, TensorBase, node_of, show
from ..core.undefined import failing
from ..core.vmap_hooks import batches
from ..dtype import holds_complex
from ..runtime.numpy_state import outside
from ..storage.base import clock


class FunctionCtx:
    """The context that forward leaves for backward. Programs may set further attributes."""

    needs_input_grad: tuple[bool, ...] = ()
    _given: tuple[Any, ...] = ()            # the arguments of save_for_backward, while forward runs
    _saved: Any = ()                        # the `Saved` made of them
    _dirty: tuple[Any, ...] = ()
    _plain: tuple[Any, ...] = ()
    _materialize = True
    _materialize_non_diff_grads = True      # False if results without a gradient get None even so
    _pushing = False                        # True while `jvp` runs
    saved_for_forward: Any = None
    _step: Any = None                       # weakly: the tape step

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for the backward; a later write to them is noticed."""
        for i, t in enumerate(tensors):
            if t is not None and not isinstance(t, TensorBase):
                raise TypeError(f"save_for_backward can only save variables, but argument {i} is of type "
                                f"{type(t).__name__}")
        self._given = tensors

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
        """Choose how gradients of unused results reach the backward: as zeros (True, the default) or as None."""
        self._materialize = value

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The saved tensors; an error if one was modified or freed since. In `jvp`, those of `save_for_forward`."""
        if self._pushing:
            return tuple(self.saved_for_forward or ())
        if self._saved is FREED:
            raise second_time(self._step() if self._step is not None else None)
        step = self._step() if self._step is not None else None
        return tuple(saved and saved.restored(step) for saved in self._saved)

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """`saved_tensors` by an older name."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors


class Saved:
    """A tensor of save_for_backward.

    For a result, `place` is its position; it is kept without its node, since that leads back to this object.
    """

    __slots__ = ("tensor", "edge", "place", "version")

    def __init__(self, tensor: Any, place: int | None) -> None:
        self.place, self.version = place, tensor._storage.version
        self.edge = None if place is not None else node_of(tensor)
        kept = (tensor if place is None else class_hooks.detached(tensor) if is_own(tensor)
                else wrap(tensor.array, tensor._storage))
        self.tensor: Any = Packed.by(mode.watching.hooks[-1], kept) if mode.watching.hooks else kept

    def restored(self, step: Any) -> Any:
        tensor = self.tensor
        if is_packed(tensor):
            tensor = tensor.unpacked()
            if self.edge is self.place is None and node_of(tensor) is None:
                return tensor
        elif tensor._storage.version != self.version:
            raise stale(step, tensor.array, tensor._storage, step if self.place is not None else tensor._node,
                        self.version)
        elif self.place is None:
            return tensor
        edge = self.edge if step is None or self.place is None else step.place(self.place, tensor.array)
        if is_own(tensor):
            return class_hooks.relinked(tensor, edge)
        return wrap(tensor.array, tensor._storage, edge)

    def read(self, number: int, step: Any, unpack: bool) -> Operand:
        """Describe the saved value as an operand of the step, for inspection: the `number`th value that was saved."""
        tensor, name = self.tensor, f"saved {number}"
        changed = not is_packed(tensor) and tensor._storage.version != self.version
        value = tensor if not is_packed(tensor) else tensor.unpacked() if unpack else None
        if self.place is not None:
            return Operand(name, len(step.edges) + self.place, step.places()[self.place], value, changed)
        position = next((i for i, e in enumerate(step.edges) if e is self.edge is not None), -1)
        return Operand(name, position, self.edge, value, changed)


class FunctionNode(Step):
    """The tape step of a Function. Each Function has a subclass, which programs may give attributes, like contexts."""

    __slots__ = ()
    function: Any
    ctx: FunctionCtx
    given: list[int]     # which of the arguments are tensors
    arity: int
    backends: tuple[Any, ...]        # of the results, which may be on several devices
    written: dict[int, int]          # of the results that are inputs written to: the argument
    views: tuple[int, ...]           # the results that are views
    inputs: tuple[Any, ...] = ()     # if there is a `jvp`: shape, dtype and backend of each tensor argument
    shares = True

    saved = property(lambda self: self.ctx._saved, lambda self, value: setattr(self.ctx, "_saved", value))

    def __getattr__(self, name: str) -> Any:
        """Return an attribute that the program set on the context."""
        if name.startswith("__") or name in Node.__slots__ or name == "ctx":
            raise AttributeError(f"'{type(self).__name__}' object has no attribute {name!r}")
        return getattr(self.ctx, name)

    @property
    def _raw_saved_tensors(self) -> tuple[SavedTensor, ...]:
        """The saved tensors as objects that take hooks."""
        if self.freed:
            raise second_time(self)
        return tuple(SavedTensor.of(self, place) for place in range(len(self.saved)))

    def kept_at(self, place: int) -> Any:
        """Return a saved tensor, or as a hook packed it; None if None was saved."""
        return self.saved[place] and self.saved[place].tensor

    def keep_at(self, place: int, value: Any) -> None:
        """Replace a saved tensor."""
        self.saved[place].tensor = value

    def __repr__(self) -> str:
        return f"<torch.autograd.function.{self.name()} object at {id(self):#x}>"

    def read(self, unpack: bool = True) -> Reading:
        saved = [] if self.freed else [s.read(i, self, unpack) for i, s in enumerate(self.saved) if s is not None]
        inputs = [Operand(f"input {place}", i, e)
                  for i, (place, e) in enumerate(zip(self.given, self.edges, strict=True))]
        for s in saved:
            if 0 <= s.position < len(inputs):
                inputs[s.position] = inputs[s.position]._replace(value=s.value, stale=s.stale)
        return Reading(None, tuple(inputs), {s.name: s for s in saved}, self.places())

    def completed(self, g: list[Any], create_graph: bool) -> list[Any]:
        """The gradients of the results as they are: the context decides which become zeros."""
        return g

    def pull(self, g: Any, useful: Any) -> Any:
        tensors = [None if part is None else wrap(part, backend())
                   for part, backend in zip(g, self.backends, strict=True)]
        return [(e, ge.array) for e, ge in self._backward(tensors, useful)]

    def pull_tensors(self, g: Any, useful: Any) -> Any:
        return self._backward(g, useful)

    def _backward(self, gradients: list[Any], useful: Any) -> list[tuple[Any, Any]]:
        if self.ctx._materialize:
            every = self.ctx._materialize_non_diff_grads
            gradients = [wrap(b.xp.zeros(shape, dtype=dtype), b())
                         if g is None and dtype is not None and (every or result is not None) else g
                         for g, shape, dtype, b, result in zip(gradients, self.shape, self.dtype, self.backends,
                                                               self.results, strict=True)]
        results = outside(self._rule(), self.ctx, *gradients)
        results = results if isinstance(results, tuple) else (results,)
        if len(results) < self.arity or any(r is not None for r in results[self.arity:]):
            raise advised(RuntimeError(f"function {self.name()} returned an incorrect number of gradients (expected "
                                       f"{self.arity}, got {len(results)})"),
                          "of_function", self)
        for i, r in enumerate(results[:self.arity]):
            if r is not None and i not in self.given:
                raise advised(RuntimeError(f"function {self.name()} returned a gradient different than None at "
                                           f"position {i + 1}, but the corresponding forward input was not a Variable"),
                              "of_function", self)
        wanted = [(i, e, results[i]) for i, e in zip(self.given, self.edges, strict=True)
                  if results[i] is not None and e is not None]
        if mode.sweep is not None and len(wanted) < len(self.edges):
            mode.sweep.undefined.update(e for i, e in zip(self.given, self.edges, strict=True)
                                        if results[i] is None and e is not None)
        return [(e, self._fitted(i, r, e)) for i, e, r in wanted if useful is None or e in useful]

    def _rule(self) -> Any:
        """Return the Function's `backward`, or its `vjp`, another name for it; RuntimeError if it has both."""
        f = self.function
        if f.backward is not Function.backward and f.vjp is not Function.vjp:
            raise RuntimeError("Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You "
                               "should only implement one of them.")
        return f.backward if f.vjp is Function.vjp else f.vjp

    def _fitted(self, place: int, result: Any, edge: Any) -> Any:
        """A gradient in the form of the input that it belongs to."""
        if not isinstance(result, TensorBase):
            raise advised(RuntimeError(f"expected Variable or None (got {type(result).__name__})"), "of_function", self)
        got, shape = result.array.shape, edge.shape
        if len(got) < len(shape) or any(n not in (1, m) for n, m in zip(shape[::-1], got[::-1], strict=False)):
            raise advised(RuntimeError(f"Function {self.name()} returned an invalid gradient at index {place} - got "
                                       f"{list(got)} but expected shape compatible with {list(shape)}"), "of_function",
                          self)
        if holds_complex(result.array.dtype) and not holds_complex(edge.dtype):
            raise RuntimeError("Expected isFloatingType(grad.scalar_type()) || (input_is_complex == grad_is_complex) "
                               "to be true, but got false.  (Could this error message be improved?  If so, please "
                               "report an enhancement request to PyTorch.)")
        return fitted_tensor(result, edge)


class FunctionMeta(type):
    """Gives each Function a class of tape nodes under its own name."""

    def __init__(cls, name: str, bases: Any, attrs: Any) -> None:
        known = {"function": cls, "_forward_cls": cls, "__module__": "torch.autograd.function"}
        cls._node_class = cls._backward_cls = type(f"{name}Backward", (FunctionNode,), known)
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
        warnings.warn(f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you "
                      "should invoke them on the class itself. Instantiating an autograd function will raise an error "
                      "in a future version of PyTorch.",
                      DeprecationWarning, stacklevel=2)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raise RuntimeError: old Functions were called; `apply` replaces it."""
        raise RuntimeError("Legacy autograd function with non-static forward method is deprecated. Please use "
                           "new-style autograd function with static forward method. (Example: "
                           "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)")

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
        """Return the gradients of the inputs, given those of the outputs."""
        raise NotImplementedError("You must implement either the backward or vjp method for your custom "
                                  "autograd.Function to use it with backward mode AD.")

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Return the tangents of the outputs, given those of the inputs."""
        raise NotImplementedError("You must implement the jvp function for custom autograd.Function to use it with "
                                  "forward mode AD.")

    generate_vmap_rule = False

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> Any:
        """Run the function on a batch along axes `in_dims` of the arguments; return results and their batch axes."""
        raise NotImplementedError("To use autograd.Function with vmap, you must either override the vmap static method "
                                  "or set generate_vmap_rule=True.")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward, and write the step on the tape."""
        for a in args:
            # a node of a graph that is being built: the whole function is a step of it
            if hasattr(type(a), "_joined_by"):
                return type(a).__torch_function__(cls.apply, (type(a),), args, kwargs)
        ctx = FunctionCtx()
        apart = cls.setup_context is not Function.setup_context
        if apart:
            bound = signature(cls.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            args, kwargs = bound.args, bound.kwargs
        if mode.transforming:
            if not apart:
                raise RuntimeError("In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, "
                                   "jacrev, ...), it must override the setup_context staticmethod. For more details, "
                                   "please see https://pytorch.org/docs/main/notes/extending.func.html")
            if mode.batches and (found := batches.by_own_rule(cls, args, kwargs)) is not NotImplemented:
                return found
        nodes = [node_of(a) if isinstance(a, TensorBase) else None for a in args]
        ctx.needs_input_grad = tuple(node is not None and node.requires_grad for node in nodes)
        before, mode.tangents.on, forward = mode.grad, False, mode.tangents.on
        mode.set_grad(False)
        try:
            if apart:
                result = cls.forward(*args, **kwargs)
                cls.setup_context(ctx, args, result)
            else:
                result = cls.forward(ctx, *args, **kwargs)
        finally:
            mode.tangents.on = forward
            mode.set_grad(before)
        outputs = result if isinstance(result, tuple) else (result,)
        for t in ctx._dirty:
            if not any(t is o for o in outputs):
                raise RuntimeError("Some elements marked as dirty during the forward method were not returned as "
                                   "output. The inputs that are modified inplace must all be outputs of the Function.")
            t._storage.wrote()
        if mode.record is None or not any(nodes) or not any(isinstance(o, TensorBase) for o in outputs):
            # return views of inputs with grad
            if any(o is a and node is not None for o in outputs for a, node in zip(args, nodes, strict=True)):
                outputs = tuple(o.detach() if any(o is a for a in args) and not any(o is t for t in ctx._dirty)
                                and node_of(o) is not None else o
                                for o in outputs)
                return outputs if isinstance(result, tuple) else outputs[0]
            for o in outputs if mode.grad else ():
                if isinstance(o, TensorBase) and o.origin is not None and not any(o is a for a in args):
                    o.origin.kind = "function" if len(outputs) == 1 else "several"
            return result
        outputs = _recorded(cls, ctx, args, outputs)
        return outputs if isinstance(result, tuple) else outputs[0]


def _recorded(cls: Any, ctx: FunctionCtx, args: tuple[Any, ...], outputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Write the step on the tape, and make the results lead to it."""
    for t in ctx._dirty:
        if not any(t is a for a in args):
            warnings.warn("ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been "
                          "mutated should be passed to ctx.mark_dirty().", UserWarning, stacklevel=4)
            continue
        if t.origin is not None and len(outputs) > 1:
            raise RuntimeError("If your Function modifies inplace an input that is a view of another Tensor, your "
                               "Function cannot return more than one Tensor. This is not supported by the current "
                               "autograd engine. You should either make sure the input is not a view (using .clone() "
                               "for example) or make your Function only return one Tensor (potentially splitting it "
                               "into two Functions: one doing the inplace that returns a single Tensor and a second "
                               "one that does the other operations). You can ask on the forum "
                               "https://discuss.pytorch.org/ if you need help to do this change.")
        if type(node_of(t)) is Leaf:
            raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
        check(t)
    node = cls._node_class()
    node.given = [i for i, a in enumerate(args) if isinstance(a, TensorBase)]
    node.arity, node.edges, node.hooks = len(args), [node_of(args[i]) for i in node.given], None
    if cls.jvp is not Function.jvp:
        node.inputs = tuple((args[i].array.shape, args[i].array.dtype, type(args[i]._storage)) for i in node.given)
    plain = [i for i, o in enumerate(outputs) if any(o is t for t in ctx._plain)]     # before inputs become views
    outputs = tuple(_result(o, args, ctx, len(outputs)) for o in outputs)
    tensors = [o if isinstance(o, TensorBase) else None for o in outputs]
    node._storage = next(o._storage.nowhere for o in tensors if o is not None)
    node.shape = tuple(None if o is None else o.array.shape for o in tensors)
    node.dtype = tuple(None if o is None else o.array.dtype for o in tensors)
    node.backends = tuple(None if o is None else type(o._storage) for o in tensors)
    places = {id(o): i for i, o in enumerate(tensors) if o is not None}
    node.written = {i: place for place, a in enumerate(args) for i, o in enumerate(tensors)
                    if o is a is not None and any(o is t for t in ctx._dirty)}
    node.views = tuple(i for i, o in enumerate(tensors) if o is not None and o.origin is not None
                       and i not in node.written)
    node.ctx, node.time, ctx._step = ctx, next(clock), weakref.ref(node)
    ctx._saved, ctx._given = tuple(None if t is None else Saved(t, places.get(id(t))) for t in ctx._given), ()
    node.results, dirty = [None] * len(outputs), [id(t) for t in ctx._dirty]
    ctx._dirty = ctx._plain = ()             # they lead to the results, which lead here
    for i, o in enumerate(tensors):
        if o is None or o.array.dtype.kind not in "fcV" or i in plain:
            continue
        output = Output(node, i, o.array)
        output._storage, node.results[i] = o._storage.nowhere, weakref.ref(output)
        if id(o) in dirty:
            adopt(o, wrap(o.array, o._storage, output))
        else:
            o._node = output
    if CLASSES and among((*args, *outputs)):
        node.backends = tuple(None if o is None else o._storage.beside() for o in tensors)
        class_hooks.note(node)
    show(node, outputs)
    return outputs


def _result(o: Any, args: tuple[Any, ...], ctx: FunctionCtx, count: int) -> Any:
    """Return a result for the caller: an input returned unchanged becomes a view of itself; views cannot be written
    to.
    """
    if not isinstance(o, TensorBase) or any(o is t for t in ctx._dirty):
        return o
    if any(o is a for a in args):
        returned = wrap(o.array, o._storage)
        returned.origin = Origin(o, None, (o,), {}, None)
        o = returned
    if (origin := o.origin) is not None:        # which other parts of a view may share
        o.origin = Origin(origin.parent, origin.op, origin.args, origin.params, "function" if count == 1 else "several")
    return o


def once_differentiable(backward: Any) -> Any:
    """Decorate a backward that cannot itself be differentiated: doing so raises an error."""
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
        return _refusing(results)
    return guarded


def _refusing(results: Any) -> Any:
    """Return the values as the results of a step whose backward raises an error."""
    given = results if isinstance(results, tuple) else (results,)
    ends = [wrap(r.array, r._storage) if isinstance(r, TensorBase) else r for r in given]
    for end in ends:
        if isinstance(end, TensorBase):
            end._node = Leaf(end)
    marked = failing("trying to differentiate twice a function that was marked with @once_differentiable", *ends)
    return marked if isinstance(results, tuple) else marked[0]


class InplaceFunction(Function):
    """The class that functions written for PyTorch 0.4 and before derive from; `Function` is enough."""

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace


BackwardCFunction = FunctionNode        # PyTorch's name of the steps of Functions


__all__ = ["Function", "FunctionCtx", "InplaceFunction", "once_differentiable"]
