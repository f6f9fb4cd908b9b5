"""The tape: the attributes of tensors, the recording of steps, and the leaves."""
from __future__ import annotations

import weakref
from typing import Any

from ..ops.base import Pair
from ..storage.base import clock
from .class_hooks import disabled_dispatch
from .mode import mode, refuse_inference, writers
from .node import Hooks, Node
from .plan import Plan, plans_of

new = object.__new__
FREED: Any = ("the saved values of this step were freed",)


class TensorBase:
    """An array, the memory it lives in, and where it came from. `Tensor` adds everything that a user sees."""

    __slots__ = ("array", "_storage", "_node", "_grad", "origin", "__dict__", "__weakref__")
    array: Any
    _storage: Any
    _node: Any      # the tape node; may be out of date in a view: read it with `node_of`
    _grad: Any
    origin: Any     # of a view, see Origin
    _of_gradient: Any = None        # of a class whose gradients are more than arrays: the method that makes one of them
    __torch_dispatch__ = staticmethod(disabled_dispatch)


class Origin:
    """The origin of a view: one application of a view op to `parent`."""

    __slots__ = ("parent", "op", "args", "params", "kind")

    def __init__(self, parent: TensorBase, op: Any, args: tuple[Any, ...], params: dict[str, Any],
                 kind: str | None) -> None:
        self.parent, self.op, self.args, self.params, self.kind = parent, op, args, params, kind


class Leaf(Node):
    """The end of the tape: adds up the gradient of a tensor that the user made (PyTorch's AccumulateGrad)."""

    __slots__ = ("_tensor",)
    edges = ()

    def __init__(self, tensor: TensorBase, array: Any = None) -> None:
        self._tensor = weakref.ref(tensor)
        array = tensor.array if array is None else array
        self.shape, self.dtype, self.hooks, self.time = array.shape, array.dtype, None, next(clock)
        self._storage = tensor._storage.nowhere

    @property
    def tensor(self) -> Any:
        return self._tensor()

    variable = tensor

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"


def renew_leaf(tensor: Any, array: Any = None) -> None:
    """Give a leaf whose memory was replaced a new node; recorded steps keep the previous node."""
    before = tensor._node
    tensor._node = Leaf(tensor, array)
    tensor._node.hooks = before.hooks


# programs that walk the graph look for this name
Leaf.__name__ = Leaf.__qualname__ = "AccumulateGrad"


class Output(Node):
    """A result among several of a step. Its gradient waits here until the step is pulled."""

    __slots__ = ("node", "index")

    def __init__(self, node: Node, index: int, array: Any) -> None:
        self.node, self.index, self.edges, self._storage = node, index, (node,), node._storage
        self.shape, self.dtype, self.hooks, self.calls, self.time = array.shape, array.dtype, None, None, next(clock)

    def as_function(self) -> tuple[Node, int]:
        return self.node.as_function()[0], self.index

    def name(self) -> str:
        return self.node.name()


def record(plan: Plan, args: tuple[Any, ...], edges: Any, params: dict[str, Any], out: TensorBase) -> None:
    """Record one application of an op on the tape, by its plan: `out` was computed from `args`."""
    y, storage = out.array, out._storage
    out._node = node = plan.node_type()
    node.edges, node.params, node.plan, node.hooks, node.calls = edges, params, plan, None, None
    node._storage = storage if plan.saves_out else storage.nowhere
    node.shape, node.dtype, node.time, node.saved = y.shape, y.dtype, next(clock), plan.save(args, (y,))


def record_several(plan: Plan, args: tuple[Any, ...], edges: Any, params: dict[str, Any], outs: Any) -> None:
    """Record an op with several results; results of integers or bools stay off the tape."""
    node = plan.node_type()
    node.edges, node.params, node.plan, node.hooks, node.calls, node._storage = (edges, params, plan, None, None,
                                                                                 outs[0]._storage.nowhere)
    node.shape, node.dtype, node.time = (tuple(o.array.shape for o in outs), tuple(o.array.dtype for o in outs),
                                         next(clock))
    node.saved = plan.save(args, tuple(map(alias, outs)))
    link(node, outs)
    show(node, outs)


def record_fused(plan: Plan, pair: Pair, args: tuple[Any, ...], edges: Any, params: dict[str, Any], outs: Any,
                 kept: Any) -> None:
    """Record one application of a kernel pair on the tape: `kept` is passed from its forward to its backward.

    Arguments and results in `kept` are watched: they must not be modified.
    """
    node, several = plan.fused_type(), plan.several
    node.edges, node.params, node.plan, node.hooks, node.calls = edges, params, plan, None, None
    node._storage = outs[0]._storage if plan.saves_out else outs[0]._storage.nowhere
    node.saved = plan.save(args, tuple(map(alias, outs)) if several else (outs[0].array,))
    parts = kept if isinstance(kept, (tuple, list)) else (kept,)
    watched = []
    for place, part in enumerate(parts):
        for a in args:
            if isinstance(a, TensorBase) and a.array is part:
                watched.append((place, a))
        for o in outs:
            if o.array is part:
                watched.append((-1, alias(o)))
    node.residual, node.time = (pair, kept, watched), next(clock)
    if several:
        node.shape, node.dtype = tuple(o.array.shape for o in outs), tuple(o.array.dtype for o in outs)
        link(node, outs)
    else:
        y = outs[0].array
        node.shape, node.dtype, outs[0]._node = y.shape, y.dtype, node
    show(node, outs)


def link(node: Any, outs: Any) -> None:
    """Hang the results of a step on it; it knows them weakly."""
    for i, out in enumerate(outs):
        if out.array.dtype.kind in "fcV":
            out._node = Output(node, i, out.array)
    node.results = [None if out._node is None else weakref.ref(out._node) for out in outs]


def alias(tensor: TensorBase) -> TensorBase:
    """Make a tensor of the same values without their history: a node that held its own output would be a cycle."""
    same = new(TensorBase)
    same.array, same._storage, same._node, same._grad, same.origin = tensor.array, tensor._storage, None, None, None
    return same


def record_watched(plan: Plan, args: tuple[Any, ...], edges: Any, params: dict[str, Any], out: TensorBase) -> None:
    """`record`, while somebody watches."""
    record(plan, args, edges, params, out)
    show(out._node, (out,))


def record_careful(plan: Plan, args: tuple[Any, ...], edges: Any, params: dict[str, Any], out: TensorBase) -> None:
    """`record`, where saved values may be inference tensors."""
    record(plan, args, edges, params, out)
    refuse_inference(out._node)


def show(node: Node, outs: Any) -> None:
    """Let the watchers see a new step, and forward mode push its tangents through it."""
    for watcher in mode.watching.watchers:
        watcher(node)
    if mode.tangents.see is not None:
        mode.tangents.see(node, outs)


writers.register(plain=record, careful=record_careful, watched=record_watched)


def node_of(tensor: Any) -> Any:
    """Return a tensor's tape node. A view whose base was modified since derives its node again from its parent."""
    node, origin = tensor._node, tensor.origin
    if origin is None or tensor._storage.rebased < (node.time if node is not None else 1):
        return node
    return _rederived(tensor)


VIEW_OF_INFERENCE = (
    "A view was created in inference mode and its base or another view of its base has been modified inplace in normal "
    "mode. Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving "
    "both the view and the inplace either both inside the inference_mode block (if you don't want the inplace to be "
    "tracked) or both outside (if you want the inplace to be tracked).")


def _rederived(tensor: Any) -> Any:
    chain = []
    while ((origin := tensor.origin) is not None and tensor._storage.rebased
           >= (tensor._node.time if tensor._node is not None else 1)):
        if (origin.kind in ("several", "function", "inference") and tensor._node is not None
                and tensor._storage.written < tensor._node.time):
            break           # the base requires grad since, but nothing was written
        if origin.kind == "no_grad":
            above = node_of(origin.parent)
            if above is not None and tensor._storage.watched and mode.grad:
                raise RuntimeError("A view was created in no_grad mode and its base or another view of its base has "
                                   "been modified inplace with grad mode enabled. Given that this use case is "
                                   "ambiguous and error-prone, it is forbidden. You can clarify your code by moving "
                                   "both the view and the inplace either both inside the no_grad block (if you don't "
                                   "want the inplace to be tracked) or both outside (if you want the inplace to be "
                                   "tracked).")
            if type(above) is Leaf and tensor._node is None:
                tensor._node = Leaf(tensor)
            break
        if origin.kind == "function":
            if type(tensor._node) is not Output or not mode.grad:
                break
            raise RuntimeError(f"Output 0 of {tensor._node.name().rpartition('Backward')[0]} is a view and its base or "
                               "another view of its base has been modified inplace. This view was created inside a "
                               "custom Function (or because an input was returned as-is) and the autograd logic to "
                               "handle view+inplace would override the custom backward associated with the custom "
                               "Function, leading to incorrect gradients. This behavior is forbidden. You can fix this "
                               "by cloning the output of the custom Function.")
        if origin.kind == "inference" and node_of(origin.parent) is not None and mode.grad and not mode.inference:
            raise RuntimeError(VIEW_OF_INFERENCE)
        if origin.kind == "several":
            if tensor._node is None and node_of(root_of(tensor)) is None:
                break
            name = (tensor._node.name().rpartition("Backward")[0] if type(tensor._node) is Output
                    else origin.op.torch_name)
            raise RuntimeError(f"Output {getattr(tensor._node, 'index', 0)} of {name} is a view and its base or "
                               "another view of its base has been modified inplace. This view is the output of a "
                               "function that returns multiple views. Such functions do not allow the output views to "
                               "be modified inplace. You should replace the inplace operation by an out-of-place one.")
        chain.append(tensor)
        tensor = origin.parent
    for view in reversed(chain):
        origin = view.origin
        node = origin.parent._node
        if type(node) is Leaf and view._node is None:      # the base was asked to require grad after the view was made
            view._node = Leaf(view)
            continue
        if view._node is not None and type(view._node) is not Leaf and view._node.edges[:1] == (node,):
            continue            # another tensor in this memory got a new history: this view's is still valid
        before, view._node = view._node, None
        if node is not None and view.array.dtype.kind in "fcV":
            record(plans_of(origin.op).of(1, origin.args), origin.args, (node, *[None] * (len(origin.args) - 1)),
                   origin.params, view)
            if view.array.dtype is origin.parent.array.dtype:
                view._node.title = "AsStridedBackward0"     # PyTorch's step from the base to the view
            if before is not None:
                Hooks.hand_on(before, view._node)
            if mode.tangents.see is not None:
                mode.tangents.see(view._node, (view,), cut=False)
    return chain[0]._node if chain else tensor._node


def root_of(tensor: Any) -> Any:
    """The tensor that a view is ultimately a view of."""
    while tensor.origin is not None:
        tensor = tensor.origin.parent
    return tensor
