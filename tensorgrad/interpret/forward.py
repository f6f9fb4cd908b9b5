"""Forward mode: tangents pushed through the steps of the tape, the mirror of the sweep.

A step's tangent is t = Σᵢ Jᵢ tᵢ, with the Jacobians Jᵢ and tangents tᵢ of its inputs. No op needs a formula for it: if
the Jacobian is diagonal, the gradient formula computes it; a view's tangent is the view of the tangent; and otherwise
the gradient formula's result Jᵀu is linear in u, so that the gradient of ⟨Jᵀu, t⟩ by u is J t.

A `Level` holds the tangents of one derivative. While one is open, `see` is called for each new step of the tape, and
pushes the tangents through it at once, those of the outermost level first: tangents of an inner level have tangents in
the outer ones. A step that only has tangents is then dropped: its result's node becomes a `Dual`, which keeps the
tangents and has no edges.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from math import inf
from operator import attrgetter
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from ..autograd.function import FunctionNode
from ..core.class_hooks import hooks as class_hooks
from ..core.class_hooks import is_own
from ..core.dispatch import apply, namespace, shared, wrap, xp
from ..core.engine import grad
from ..core.fused import composed
from ..core.mode import mode
from ..core.step import PlainStep, Step
from ..core.tape import Leaf, Output, TensorBase, node_of, root_of
from ..core.undefined import no_tangent
from ..dtype import holds_complex
from ..ops.base import OPS
from ..storage.base import clock

# ── one step forward ──────────────────────────────────────────────────────────────────────────────────────────────────


def push(node: Any, tangents: list[Any]) -> Any:
    """Return the tangent of a step's result (a list for several), given those of its inputs; None means zeros."""
    if isinstance(node, FunctionNode):
        return _through_function(node, tangents)
    if isinstance(node, PlainStep):
        if node.composite:
            return _through_definition(node, tangents)
        node = node.by_formulas()
        if node.opname == "cast":
            return _cast(tangents[0], node.dtype)
        if node.view and not node.by_memory and not any(node.edges[1:]):
            return apply(OPS[node.opname], tangents[0], **node.params)
        if node.elementwise and not node.several and (node.analytic or _real(node)):
            return _along_diagonal(node, tangents)
        if node.linear and (pushed := _one_by_one(node, tangents)) is not None:
            return pushed
    elif hasattr(node, "push"):
        return node.push(*tangents)
    return _transposed(node, tangents)


def _real(node: Any) -> bool:
    return not any(e is not None and holds_complex(e.dtype) for e in (node, *node.edges))


def _along_diagonal(node: Any, tangents: list[Any]) -> Any:
    """Push through an elementwise step by its gradient formulas, without the conjugation of a backward."""
    backend: Any = type(node._storage)
    values, table, total = node.linked(), namespace(backend), None
    for i, formula, wants in node.plan.steps:
        if (t := tangents[i]) is None:
            continue
        if t.array.shape != node.shape:
            t = xp.broadcast_to(t, shape=node.shape)
        try:
            part = formula(table, t, *[values[w] for w in wants])
        except NotImplementedError:
            raise no_tangent(node.opname) from None
        total = part if total is None else total + part
    return _zeros(node.shape, node.dtype, node._storage) if total is None else _cast(total, node.dtype)


def _one_by_one(node: Any, tangents: list[Any]) -> Any:
    """Push through a linear op by the op itself, for one group of inputs after the other.

    None if it needs a value that was not saved.
    """
    op = OPS[node.opname]
    if op.sequence:
        return None if any(t is None for t in tangents) else apply(op, tangents, **node.params)
    if len(tangents) > len(op.inputs):
        return None
    moving, saved, total = dict(zip(op.inputs, tangents, strict=False)), None, None
    groups = [group.split() for group in op.linear]
    # summands: constant ones do not contribute to the tangent
    added = {name for group in groups for name in group[1:]}
    for group in groups:
        if all(moving.get(name) is None for name in group):
            continue
        if saved is None:
            saved = dict(zip(node.plan.names, node.linked(), strict=False))
        args = [moving[name] if name in group else None if name in added else saved.get(name) for name in moving]
        if any(a is None and name not in added for name, a in zip(moving, args, strict=True)):
            return None
        if node.opname == "linear" and args[-1] is None:
            op, args = OPS["linear_without_bias"], args[:-1]
        part = apply(op, *args, **node.params)
        total, op = part if total is None else total + part, OPS[node.opname]
    return _cast(total, node.dtype)


def _transposed(node: Any, tangents: list[Any]) -> Any:
    """Push through any other step: Jᵀu is linear in u, and the gradient of ⟨Jᵀu, t⟩ with respect to u is J t."""
    several, recording = type(node.dtype) is tuple, mode.grad
    shapes, dtypes = (node.shape, node.dtype) if several else ((node.shape,), (node.dtype,))
    deepest = max((node._storage, *(t._storage for t in tangents if t is not None)), key=attrgetter("rank"))
    starts = [None if dtype is None or dtype.kind not in "fcV" else _zeros(shape, dtype, deepest)
              for shape, dtype in zip(shapes, dtypes, strict=True)]
    for u in starts:
        if u is not None:
            u._node = Leaf(u)
    by_edge = {e: t for e, t in zip(node.edges, tangents, strict=True) if t is not None}
    mode.set_grad(True)
    try:
        u = [_zeros(shape, dtype, deepest) if u is None and dtype is not None else u
             for u, shape, dtype in zip(starts, shapes, dtypes, strict=True)]
        pulled = [(ge, by_edge[e]) for e, ge in node.pull_tensors(u if several else u[0], by_edge)
                  if node_of(ge) is not None]
    finally:
        mode.set_grad(recording)
    wanted = [u for u in starts if u is not None]
    found: Iterable[Any] = (None,) * len(wanted)
    if pulled:
        outs, seeds = zip(*pulled, strict=True)
        differentiable = recording and not all(map(quiet, (*node.edges, *map(node_of, seeds))))
        found = grad(outs, wanted, [_cast(t, ge.array.dtype) for ge, t in pulled], create_graph=differentiable,
                     allow_unused=True)
    results = iter([_zeros(u.array.shape, u.array.dtype, u._storage) if t is None else t
                    for u, t in zip(wanted, found, strict=True)])
    pushed = [None if u is None else next(results) for u in starts]
    return pushed if several else pushed[0]


def _through_definition(node: Any, tangents: list[Any]) -> Any:
    """Push through a composite step by way of the ops that define it."""
    passing, keep, mode.tangents.keep = mode.tangents.passing, mode.tangents.keep, True
    try:
        outs = composed(node)
        mode.tangents.keep = keep
        if node in passing:
            mode.tangents.passing = passing.union(_between(node.time, [out._node for out in outs]))
        pushed = push_forward({e: t for e, t in zip(node.edges, tangents, strict=True) if t is not None}, outs)
    finally:
        mode.tangents.passing, mode.tangents.keep = passing, keep
    return pushed if node.several else pushed[0]


def _through_function(node: Any, tangents: list[Any]) -> list[Any]:
    """Push through a Function by its `jvp`."""
    ctx, given = node.ctx, [None] * node.arity
    for place, t, (shape, dtype, backend) in zip(node.given, tangents,
                                                 node.inputs or [(None, None, None)] * len(tangents), strict=True):
        zeros = t is None and ctx._materialize and dtype is not None and dtype.kind in "fcV"
        given[place] = _zeros(shape, dtype, backend()) if zeros else t
    ctx._pushing = True
    versions = {i: None if given[at] is None else given[at]._storage.version for i, at in node.written.items()}
    try:
        results = node.function.jvp(ctx, *given)
    finally:
        ctx._pushing = False
    results = results if isinstance(results, tuple) else (results,)
    if len(results) != len(node.shape):
        raise RuntimeError(f"Function's jvp returned an invalid number of forward gradients (expected "
                           f"{len(node.shape)} but got {len(results)})")
    for i, t in enumerate(results):
        if t is not None and node.dtype[i] is not None:
            _check_tangent(node, i, t, given, versions)
    return list(results)


def _check_tangent(node: Any, i: int, t: Any, given: list[Any], versions: dict[int, Any]) -> None:
    """Raise PyTorch's error for a tangent that does not fit the i-th result of a Function."""
    if node.results[i] is None:
        raise RuntimeError(f"Function's jvp returned a gradient at position {i}, but  the corresponding forward output "
                           "is not a differentiable Tensor.You should return None at that position instead.")
    check_size(node.shape[i], t)
    if i in node.written and (given[node.written[i]] is not t or t._storage.version == versions[i]):
        raise RuntimeError("An inplace custom Function is not modifying the forward mode gradients inplace. If the "
                           "forward is modifying an input inplace, then the jvp function must modify the corresponding "
                           "gradient inplace.")
    if i in node.views:
        _check_view(t, given)


def _check_view(t: Any, given: list[Any]) -> None:
    """Raise PyTorch's error unless a tangent of a view is a view of the same input's tangent."""
    if t.origin is None:
        raise RuntimeError("A custom Function's forward is returning a view (or an input as-is) but the jvp is not "
                           "returning a view.")
    sources = [g for g in given if isinstance(g, TensorBase)]
    if not any(root_of(t) is root_of(g) for g in sources):
        which = "the given" if any(g.origin is None for g in sources) else "the same base as the given"
        raise RuntimeError("A custom Function is returning a view but the jvp is not returning a view of "
                           f"{which} grad input.")


def check_continuous(primal: Any, tangent: Any) -> None:
    """Raise PyTorch's error unless both are of floating point or complex numbers."""
    for what, given in (("primal", primal), ("tangent", tangent)):
        if not (given.is_floating_point() or given.is_complex()):
            raise ValueError(f"Expected {what} to be floating point or complex, but got: {given.dtype}")


def check_size(shape: Any, tangent: Any) -> None:
    """Raise PyTorch's error unless a tangent has its tensor's shape."""
    if tuple(shape) != tangent.array.shape:
        raise RuntimeError("Trying to set a forward gradient that has a different size than that of the original "
                           f"Tensor, this is not supported. Tensor is of size {list(shape)} while the given forward "
                           f"gradient is of size {list(tangent.array.shape)}.")


def _alias(tensor: Any) -> Any:
    """Return a tensor that shares the memory, without history."""
    return class_hooks.detached(tensor) if is_own(tensor) else wrap(tensor.array, shared(tensor))


def _zeros(shape: Any, dtype: Any, storage: Any) -> Any:
    backend = storage.beside()
    return wrap(backend.xp.zeros(shape, dtype=dtype), backend())


def _cast(t: Any, dtype: Any) -> Any:
    if t.array.dtype == dtype:
        return t
    return apply(OPS["cast"], xp.real(t) if t.dtype.is_complex and not holds_complex(dtype) else t, dtype=dtype)


# ── levels ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Dual(Step):
    """A node that holds tangents.

    Gradients pass through to the node of the tensor that it was made from, if that requires grad.
    """

    __slots__ = ("requires_grad",)
    shares = True

    def __init__(self, tensor: Any, edge: Any = None, requires_grad: bool = False) -> None:
        self.edges, self.requires_grad = () if edge is None else (edge,), requires_grad or edge is not None
        self.shape, self.dtype, self._storage = tensor.array.shape, tensor.array.dtype, tensor._storage.nowhere
        self.saved, self.hooks, self.time = (), None, next(clock)

    def pull(self, g: Any, useful: Any) -> list[Any]:
        return [(e, g) for e in self.edges if useful is None or e in useful]

    pull_tensors = pull

    def as_function(self) -> Any:
        return (self, 0) if self.requires_grad else (None, 0)

    def name(self) -> str:
        return "ViewBackward0"


class Level:
    """The tangents of one derivative, by tape node; a step with several results has a list of them."""

    wraps = True        # its tensors have no values for NumPy, whose results would lose their tangents

    def __init__(self) -> None:
        self.tangents: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        # tensors that lead to a Dual: they forget it when the level ends
        self.duals: WeakValueDictionary[int, Any] = WeakValueDictionary()

    def __getitem__(self, node: Any) -> Any:
        """Return the tangent of a node's tensor, or None."""
        t = self.tangents.get(node) if node is not None else None
        if t is None and type(node) is Output and (parts := self.tangents.get(node.node)) is not None:
            return parts[node.index]
        return t

    def dual(self, tensor: Any, tangent: Any) -> Any:
        """Return a tensor that shares the memory and has this tangent in this level."""
        check_size(tensor.array.shape, tangent)
        out, node = _alias(tensor), node_of(tensor)
        out._node = Dual(out, None if quiet(node) else node)
        see.hand_on(node, out._node)
        self.tangents[out._node] = tangent
        see.track(out)
        return out

    def primal(self, tensor: Any, before: float = inf) -> Any:
        """Return a tensor that shares the memory, without a tangent in this level. (`before`: see `settled`.)"""
        out, node = _alias(tensor), node_of(tensor)
        leads = leads_somewhere(node, before)
        held = [(level, t) for level in mode.tangents.levels if level is not self and (t := level[node]) is not None]
        if leads or held:
            out._node = Dual(out, node if leads else None)
            for level, t in held:
                level.tangents[out._node] = t
            see.track(out)
        return out

    def __enter__(self) -> Level:
        mode.tangents.levels, mode.tangents.see = (*mode.tangents.levels, self), see
        mode.set_grad(mode.grad)
        return self

    def __exit__(self, *exception: object) -> None:
        mode.tangents.levels = tuple(level for level in mode.tangents.levels if level is not self)
        mode.tangents.see = see if mode.tangents.levels else None
        mode.set_grad(mode.grad)
        for tensor in list(self.duals.values()):
            node = tensor._node
            if (type(node) is Dual and not node.requires_grad
                    and all(level[node] is None for level in mode.tangents.levels)):
                tensor._node = None
                if tensor._storage.memory is not None:
                    tensor._storage.rebased = next(clock)      # its views must derive their nodes again
        self.tangents.clear()


def quiet(node: Any) -> bool:
    """Return True if no gradient flows through a node."""
    return (node is None or not node.requires_grad
            or (node.node if type(node) is Output else node) in mode.tangents.passing)


def leads_somewhere(node: Any, before: float = inf) -> bool:
    """Return True if a gradient pulled from a node would reach a leaf or a stand-in that is older than `before`."""
    todo = [] if quiet(node) else [node]
    seen = set(todo)
    while todo:
        node = todo.pop()
        ahead = [e for e in node.edges if not quiet(e)]
        if not ahead and node.time < before:
            return True
        todo += [e for e in ahead if e not in seen]
        seen.update(ahead)
    return False


def stand_in(tensor: Any, recorded: bool) -> Any:
    """Return an alias whose later steps stay on the tape; its edge leads to the tensor's history only if `recorded`."""
    out, node = _alias(tensor), node_of(tensor)
    out._node = Dual(out, node if recorded and not quiet(node) else None, requires_grad=True)
    if mode.tangents.see is not None:
        see.hand_on(node, out._node)
    return out


class See:
    """The watcher of new tape steps for the levels of this thread."""

    def __call__(self, node: Any, outs: Any, cut: bool | None = None) -> None:
        """Push tangents through a new step; drop the step if no gradient flows through it, or if `cut`, as in no_grad
        mode.
        """
        still = all(map(quiet, node.edges))
        if mode.tangents.on:
            for depth, level in enumerate(mode.tangents.levels):
                tangents = [level[e] for e in node.edges]
                if any(t is not None for t in tangents):
                    with _outside(depth, node if still else None):
                        level.tangents[node] = push(node, tangents)
        if not mode.tangents.keep and (still or (not mode.grad if cut is None else cut)):
            for out in outs:
                if (isinstance(out, TensorBase) and (node_ := out._node) is not None
                        and (node_ is node or getattr(node_, "node", None) is node)):
                    self._forget(out, node)

    def _forget(self, out: Any, node: Any) -> None:
        before, out._node = out._node, None
        if any(level[before] is not None for level in mode.tangents.levels):
            out._node = Dual(out)
            self.hand_on(before, out._node)
            self.track(out)
        elif out.origin is not None and not all(map(quiet, node.edges)):
            # a view made in no_grad mode is a leaf that requires grad
            out._node = Leaf(out)
            out._storage.watched = True

    def hand_on(self, old: Any, new: Any) -> None:
        """Copy the tangents of one node to another, replacing those it has."""
        for level in mode.tangents.levels:
            if (t := level[old]) is not None:
                level.tangents[new] = t
            else:
                level.tangents.pop(new, None)

    def track(self, tensor: Any) -> None:
        """Register a tensor whose node is a Dual with the levels, which remove the node when they end."""
        node = tensor._node
        if type(node) is Dual and not node.requires_grad:
            for level in mode.tangents.levels:
                if level[node] is not None:
                    level.duals[id(tensor)] = tensor

    @staticmethod
    def settled(tensor: Any, before: float) -> Any:
        """Return a tensor for outside: with tangents, and with its history if that leads to a leaf older than
        `before`.
        """
        return Level().primal(tensor, before)

    def notes(self, tensor: Any) -> list[str]:
        """Return the notes that printing adds for a tensor's tangent."""
        t = mode.tangents.levels[-1][node_of(tensor)] if mode.tangents.levels else None
        return [] if t is None else [f"tangent={t!r}"]


see = See()


@contextmanager
def _outside(depth: int, passing: Any) -> Iterator[None]:
    """Enter the context in which the tangents of one level are pushed: only outer levels are on, and its duals have no
    gradient.
    """
    levels, before = mode.tangents.levels, mode.tangents.passing
    mode.tangents.levels = levels[:depth]
    mode.tangents.passing = before if passing is None else before | {passing}
    mode.set_grad(mode.grad)
    try:
        yield
    finally:
        mode.tangents.levels, mode.tangents.passing = levels, before
        mode.set_grad(mode.grad)


# ── the whole way forward ─────────────────────────────────────────────────────────────────────────────────────────────


def push_forward(tangents: dict[Any, Any], outputs: Any) -> list[Any]:
    """Push tangents along the recorded tape, oldest step first: return those of `outputs`, given {node: tangent}.

    None for an output that does not depend on any of these nodes.
    """
    oldest = min((node.time for node in tangents), default=0)
    order, found = _between(oldest, [node_of(out) for out in outputs]), Level()
    found.tangents.update(tangents)
    for node in order:
        if node not in tangents and type(node) not in (Output, Leaf):
            known = [found[e] for e in node.edges]
            if any(t is not None for t in known):
                found.tangents[node] = push(node, known)
    return [found[node_of(out)] for out in outputs]


def _between(oldest: int, roots: list[Any]) -> list[Any]:
    """Return the nodes that lead to the roots and are not older than `oldest`, the oldest first."""
    seen = {node for node in roots if node is not None}
    todo = list(seen)
    while todo:
        for e in todo.pop().edges:
            if e is not None and e.time >= oldest and e not in seen:
                seen.add(e)
                todo.append(e)
    return sorted(seen, key=lambda node: node.time)
