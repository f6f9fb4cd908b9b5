"""Tape steps of kernel pairs: a fast kernel's own shortcut back, and the op's definition for higher derivatives."""
from __future__ import annotations

from typing import Any

from ..dtype import FROM_NUMPY
from ..ops.base import OPS, Op, Pair, node_type
from ..storage.base import clock
from .fitting import fitted
from .mode import mode
from .tape import FREED, TensorBase, alias, link, show


class Residual:
    """What a node of a pair remembers: what the forward kernel kept for the backward kernel, and what the op's definition needs.

    `needed` is what its gradient formulas ask for, or, of a composite, the arguments. `checked` are the arguments and results among what was kept:
    they must not be written to. Arguments are read from their tensors, which get other memory when an op in place takes theirs.
    """

    __slots__ = ("pair", "needed", "kept", "checked", "borrowed")

    def __init__(self, pair: Pair, args: Any, outs: Any, kept: Any, needed: Any) -> None:
        self.pair, self.needed, self.kept = pair, needed, kept
        parts = kept if isinstance(kept, (tuple, list)) else (kept,)
        held = set(map(id, parts))
        self.borrowed = tuple([(i, a) for a in args if isinstance(a, TensorBase) and id(a.array) in held
                               for i, part in enumerate(parts) if a.array is part])
        self.checked = tuple([a for _, a in self.borrowed] + [alias(o) for o in outs if id(o.array) in held])

    def values(self) -> Any:
        """The values that the forward kernel kept; None if an argument has other memory now, whose shape, dtype or layout no longer fit the backward kernel."""
        if not self.borrowed:
            return self.kept
        several = isinstance(self.kept, (tuple, list))
        values = list(self.kept) if several else [self.kept]
        for i, tensor in self.borrowed:
            before, now = values[i], tensor.array
            if now is not before:
                if type(now) is not type(before) or now.shape != before.shape or now.dtype != before.dtype or \
                        getattr(now, "strides", None) != getattr(before, "strides", None):
                    return None
                values[i] = now
        return tuple(values) if several else values[0]


def record_pair(op: type[Op], pair: Pair, needs: int, args: Any, edges: Any, params: Any, outs: Any, kept: Any) -> None:
    """Write one application of a kernel pair on the tape."""
    node = _fused_type(op)()
    node.edges, node.params, node.hooks, node._storage, node.plan = edges, params, None, outs[0]._storage.nowhere, None
    needed = args
    if not op.composite:
        plan = op.plans.of(needs, args)
        needed = plan.save(args, tuple(map(alias, outs)) if op.several else (outs[0].array,))
        if plan.saves_out:
            node._storage = outs[0]._storage
    node.time, node.saved = next(clock), Residual(pair, args, outs, kept, needed)
    if op.several:
        node.shape, node.dtype = tuple(o.array.shape for o in outs), tuple(o.array.dtype for o in outs)
        link(node, outs)
    else:
        (out,) = outs
        node.shape, node.dtype = out.array.shape, out.array.dtype
        out._node = node
    show(node, outs)


def _pull(node: Any, g: Any, useful: Any) -> Any:
    """First gradients, through the kernel's own way back."""
    residual = node.saved
    if residual is FREED:
        raise second_time()
    if type(residual) is tuple:         # another thread has redefined the step meanwhile
        return node_type(OPS[node.opname]).pull(node, g, useful)  # type: ignore[attr-defined]
    for tensor in residual.checked:
        _check(node, tensor)
    values = residual.values()
    if values is None:
        return _pull_tensors(node, g, useful) if node.composite else redefined(node).pull(g, useful)
    needs = tuple(e is not None and (useful is None or e in useful) for e in node.edges)
    gradients = residual.pair.backward(g, values, needs)
    xp = node._storage.xp
    return [(e, ge if ge.shape == e.shape and ge.dtype is e.dtype else fitted(xp, ge, e))
            for e, ge in zip(node.edges, gradients, strict=False) if e is not None and ge is not None]


def _pull_tensors(node: Any, g: Any, useful: Any) -> Any:
    """Gradients that can be differentiated again: those of the op's definition."""
    from .engine import sweep
    if node.saved is FREED:
        raise second_time()
    if not node.composite:
        return redefined(node).pull_tensors(g, useful)
    y = composed(node)
    roots = {o._node: gi for o, gi in zip(y, g if node.several else [g], strict=True) if o._node is not None}
    wanted = frozenset(e for e in node.edges if e is not None and (useful is None or e in useful))
    return list(sweep(roots, create_graph=mode.grad, retain_graph=True, wanted=wanted).items())


def composed(node: Any) -> Any:
    """The results of a step once more, on the tape, from the ops that define it."""
    from .dispatch import defined, wrap
    op, residual, before = type(node), node.saved, mode.grad
    args = [a if e is None else wrap(a.array, a._storage, e) for a, e in zip(residual.needed, node.edges, strict=True)]
    for tensor in residual.needed:
        _check(node, tensor)
    mode.set_grad(True)
    try:
        y = defined(op, type(node._storage), args, node.edges, node.params)
    finally:
        mode.set_grad(before)
    return y if op.several else [y]


def redefined(node: Any) -> Any:
    """The step, from now on one of the op's own formulas. It stays the same step: what these ask of its results leads to it, and to its hooks."""
    residual, op = node.saved, OPS[node.opname]
    node.plan = plan_of(op, node.edges)         # first what other threads need once they see the rest
    if type(residual) is Residual:
        node.saved = residual.needed
    node.__class__ = node_type(op)
    return node


def plan_of(op: type[Op], edges: Any) -> Any:
    return op.plans.of(sum(1 << i for i, e in enumerate(edges) if e is not None), edges)


def _check(node: Any, tensor: Any) -> None:
    if isinstance(tensor, TensorBase) and tensor._storage.written > node.time:
        result = type(tensor) is TensorBase        # one of the aliases that stand for results
        raise stale(node, tensor.array, tensor._storage, node if result else tensor._node, tensor._storage.version_at(node.time))


def _fused_type(op: type[Op]) -> type[Op]:
    try:
        found: type[Op] = op.__dict__["_fused_type"]
    except KeyError:
        base = node_type(op)
        found = type(base.__name__, (base,), {"__slots__": (), "__module__": op.__module__, "__doc__": op.__doc__,
                                              "pull": _pull, "pull_tensors": _pull_tensors})
        op._fused_type = found  # type: ignore[attr-defined]
    return found


def second_time() -> RuntimeError:
    return RuntimeError(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). "
        "Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if "
        "you need to backward through the graph a second time or if you need to access saved tensors after calling backward.")


def stale(node: Any, array: Any, storage: Any, source: Any, expected: int | None) -> RuntimeError:
    """The error for a saved value that was overwritten since. `source` is the step that it was a result of."""
    from .dispatch import SCALAR_TYPES
    kind = f"{'torch' if storage.device.type == 'cpu' else 'torch.cuda'}.{SCALAR_TYPES[FROM_NUMPY[array.dtype].name]}Tensor"
    step, place = (None, 0) if source is None else source.as_function()
    came_from = f", which is output {place} of {step.name().rpartition('Backward')[0]}," if step is not None and step.edges else ""
    return RuntimeError(
        f"one of the variables needed for gradient computation has been modified by an inplace operation: [{kind} {list(array.shape)}]"
        f"{came_from} is at version {storage.version}; expected {'an earlier version' if expected is None else f'version {expected}'} "
        "instead. Hint: " + (
            "the backtrace further above shows the operation that failed to compute its gradient. The variable in question was changed in "
            "there or anywhere later. Good luck!" if mode.watching.anomaly else
            "enable anomaly detection to find the operation that failed to compute its gradient, with "
            "torch.autograd.set_detect_anomaly(True, check_nan=False)."))
