"""The engine: pulls gradients back along the tape, without recursion.

It owns what formulas must never do: summing over broadcast axes, casting, conjugating, accumulating, skipping inputs that need no
gradient, freeing what is no longer needed. First gradients run on bare arrays; with create_graph the same formulas run on Tensors.
"""
from __future__ import annotations

import warnings
from functools import partial
from math import prod
from operator import add, attrgetter
from typing import Any, NamedTuple

from .._warnings import warn
from ..dtype import FROM_NUMPY
from ..guest import compute, enter, leave, outside
from ..ops.base import OPS, Op
from ..storage.exhausted import memory_error
from . import dispatch
from .accumulating import accumulate, owning
from .aside import Aside
from .dispatch import apply, namespace, wrap, xp
from .fitting import checked, fitted, sum_to, unpulled
from .fused import second_time, stale
from .lanes import lanes
from .mode import mode
from .tape import FREED, Hooks, Leaf, Output, Packed, TensorBase, node_of

by_time = attrgetter("time")
NO_MEMORY = {int, float, bool, complex, tuple, type(None)}      # what a step may keep for another backward, as PyTorch's do: numbers and shapes


# ── one step back ─────────────────────────────────────────────────────────────────────────────────────────────────────


def pull(node: Any, g: Any, useful: Any, late: Any = None) -> list[tuple[Any, Any]]:
    """The gradients of one step's inputs, as arrays: [(edge, gradient)]. That of the edge `late` is not computed: it is a function that will."""
    saved, plan, time = node.saved, node.plan, node.time
    if saved is FREED:
        raise second_time()
    if plan.saves_out and node._storage.written > time:
        check_output(node)
    values: list[Any] = []
    for v in saved:
        if isinstance(v, TensorBase):
            if v._storage.written > time:
                raise outdated(node, len(values), v)
            v = v.array
        elif type(v) is Packed:
            v = v.unpacked().array
        values.append(v)
    for extra in plan.extras:
        values.append(extra(node, values))
    backend_xp, edges = node._storage.xp, node.edges
    if type(g) is list or g.dtype.kind in "cV":
        return _pull_wide(node, g, values, backend_xp, useful)
    pulled = []
    for i, formula, wants in plan.steps:
        edge = edges[i]
        if edge is late:
            pulled.append((edge, partial(formula, backend_xp, g, *[values[w] for w in wants])))
        elif useful is None or edge in useful:
            ge = formula(backend_xp, g, values[wants[0]]) if len(wants) == 1 else formula(backend_xp, g, *[values[w] for w in wants])
            if ge.shape != edge.shape or ge.dtype is not edge.dtype:
                ge = fitted(backend_xp, ge, edge)
            pulled.append((edge, ge))
    return pulled


def pull_aside(node: Any, g: Any, useful: Any) -> list[tuple[Any, Any]]:
    """The same for a step one of whose gradients may be left to another thread."""
    edge, aside = node.edges[type(node).inputs.index(node.aside)], mode.sweep and mode.sweep.aside
    if not aside or not aside.takes(node, edge, g):
        return pull(node, g, useful)
    ((_, formula),) = pull(node, g, (), edge)
    aside.begin(node, edge, formula)
    return pull(node, g, {e for e in node.edges if e is not edge})


def _pull_wide(node: Any, g: Any, values: Any, backend_xp: Any, useful: Any) -> list[tuple[Any, Any]]:
    """`pull` for complex numbers, which are conjugated around analytic formulas, for bfloat16, which computes in float32, and for
    steps with several results."""
    parts = g if type(g) is list else [g]
    conjugate = type(node).analytic and any(part.dtype.kind == "c" for part in parts)
    narrow = None
    if conjugate:
        parts = [part.conj() for part in parts]
    elif any(part.dtype.kind == "V" for part in parts):
        narrow = parts[0].dtype
        parts = [part.astype("float32") for part in parts]
        values = [v.astype("float32") if getattr(getattr(v, "dtype", None), "kind", "") == "V" else v for v in values]
    g = parts if type(g) is list else parts[0]
    pulled = []
    for i, formula, wants in node.plan.steps:
        edge = node.edges[i]
        if useful is None or edge in useful:
            ge = formula(backend_xp, g, *[values[w] for w in wants])
            if narrow is not None and ge.shape != edge.shape:     # as in PyTorch, rounded before it is summed up
                ge = ge.astype(narrow).astype("float32")
            pulled.append((edge, fitted(backend_xp, ge.conj() if conjugate else ge, edge)))
    return pulled


def pull_tensors(node: Any, g: Any, useful: Any) -> list[tuple[Any, Any]]:
    """The same on Tensors: the formulas are recorded, so the gradients can be differentiated again."""
    plan, values = node.plan, linked_values(node)
    conjugate = type(node).analytic and any(part.array.dtype.kind == "c" for part in (g if type(g) is list else [g]))
    if conjugate:
        g = [xp.conj(part) for part in g] if type(g) is list else xp.conj(g)
    backend: Any = type(node._storage)
    table = namespace(backend)
    pulled = []
    for i, formula, wants in plan.steps:
        edge = node.edges[i]
        if useful is None or edge in useful:
            ge = formula(table, g, *[values[w] for w in wants])
            ge = fitted_tensor(xp.conj(ge) if conjugate else ge, edge)
            pulled.append((edge, _tied(ge, node.edges) if node.flat else ge))
    return pulled


def linked_values(node: Any) -> list[Any]:
    """What a step's formulas ask for: what it saved, on the tape again."""
    saved, plan = node.saved, node.plan
    if saved is FREED:
        raise second_time()
    if plan.saves_out and node._storage.written > node.time:
        check_output(node)
    values: list[Any] = []
    for place, v in enumerate(saved):
        values.append(_relinked(node, plan, place, v) if place < len(plan.origins) else v)
    for extra in plan.extras:
        values.append(extra(node, values))
    return values


def _tied(ge: Any, edges: Any) -> Any:
    """A gradient that does not vary with the step's inputs, as a function of them: their own gradients will be zeros, not None."""
    for edge in edges:
        if edge is not None:
            ge = xp.copied(wrap(ge.array, ge._storage, edge), ge)
    return ge


def _relinked(node: Any, plan: Any, place: int, v: Any) -> Any:
    """A saved value as the Tensor that it was at the time, on the tape again."""
    origin, arity = plan.origins[place], len(node.edges)
    if type(v) is Packed:
        v = v.unpacked()
    elif isinstance(v, TensorBase) and v._storage.written > node.time:
        raise outdated(node, place, v)
    if origin < arity:
        if not isinstance(v, TensorBase) or v._node is node.edges[origin] and type(v) is not TensorBase:
            return v      # the very tensor
        return wrap(v.array, v._storage, node.edges[origin])
    if type(node.dtype) is not tuple:
        return wrap(getattr(v, "array", v), node._storage, node)
    result = node.results[origin - arity]      # as long as it lives, the very one that has the hooks
    return wrap(v.array, v._storage, None if result is None else result() or Output(node, origin - arity, v.array))


def saved_value(node: Any, name: str) -> Any:
    """`_saved_self`, `_saved_other`, `_saved_result` of a step: what it keeps of its inputs and its result, under PyTorch's names or our own."""
    if not name.startswith(("_saved_", "_raw_saved_")):
        raise AttributeError(f"'{type(node).__name__}' object has no attribute {name!r}")
    plan, inputs, asked = node.plan, type(node).inputs, name.partition("saved_")[2]
    if not name.startswith("_raw") and (parameter := PARAMETERS.get(asked, asked)) in type(node).parameters and asked not in inputs:
        return node.params.get(parameter, type(node).parameters[parameter])
    if node.saved is FREED and not name.startswith("_raw"):
        raise second_time()
    wanted = {"self": inputs[0], "result": "out", **dict.fromkeys(("other", "exponent", "mat2", "tensor"), inputs[-1])}.get(asked, asked)
    if plan is None or wanted not in plan.names:
        raise AttributeError(f"'{type(node).__name__}' object has no attribute {name!r}")
    place = plan.names.index(wanted)
    return SavedTensor(node, place) if name.startswith("_raw") else _relinked(node, plan, place, node.saved[place])


class SavedTensor:
    """One of the values that a step saved, to hang hooks of its own on: `y.grad_fn._raw_saved_self.register_hooks(pack, unpack)`."""

    def __init__(self, node: Any, place: int) -> None:
        self.node, self.place = node, place

    def register_hooks(self, pack_hook: Any, unpack_hook: Any) -> None:
        """What was saved goes through `pack_hook` now, and through `unpack_hook` when it is needed."""
        from .anomaly import packed_by
        saved, place = self.node.saved, self.place
        if saved is FREED:
            raise RuntimeError("Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph are freed when "
                               "you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second "
                               "time or if you need to access saved variables after calling backward.")
        if type(saved[place]) is Packed:
            raise RuntimeError("Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks is allowed at a "
                               "time.")
        tensor = _relinked(self.node, self.node.plan, place, saved[place])
        self.node.saved = (*saved[:place], packed_by((pack_hook, unpack_hook), tensor), *saved[place + 1:])


PARAMETERS = {"dim": "axis", "keepdim": "keepdims"}      # PyTorch's names of what steps remember


def call(node: Any, *gradients: Any, **keywords: Any) -> Any:
    """The gradients of a step's inputs, given those of its results: one step of a backward, by hand."""
    if keywords:
        raise TypeError("keyword arguments are not supported")
    several = type(node.dtype) is tuple
    if len(gradients) != (count := len(node.dtype) if several else 1):
        raise TypeError(f"expected {count} arguments, got {len(gradients)} instead")
    found = {}
    if any(g is not None for g in gradients):
        g = _all_results(node, list(gradients), True) if several else gradients[0]
        found = {id(edge): g for edge, g in node.pull_tensors(g, None)}
    results = tuple(found.get(id(edge)) for edge in node.edges)
    return results[0] if len(results) == 1 or not any(edge is not None for edge in node.edges[1:]) else results


Op.__call__ = call  # type: ignore[method-assign]
Op.__getattr__ = saved_value  # type: ignore[attr-defined]
Op.pull = pull  # type: ignore[attr-defined]
for op in OPS.values():
    if op.aside:
        op.pull = pull_aside  # type: ignore[attr-defined]
Op.pull_tensors = pull_tensors  # type: ignore[attr-defined]


def check_output(node: Any) -> None:
    """Raise unless the result that was saved is still what it was; a write in place that made it is no harm."""
    if node._storage.written > getattr(node, "since", node.time):
        out = next(v for v, origin in zip(node.saved, node.plan.origins) if origin >= len(node.edges))
        raise stale(node, out, node._storage, node, node._storage.version_at(getattr(node, "since", node.time)))


def outdated(node: Any, place: int, v: TensorBase) -> RuntimeError:
    """The error for a saved tensor that was written to since."""
    result = node.plan.origins[place] - len(node.edges)
    source = v._node if result < 0 else Output(node, result, v.array) if v.array.dtype.kind in "fcV" else None
    return stale(node, v.array, v._storage, source, v._storage.version_at(node.time))


def fitted_tensor(ge: Any, edge: Any) -> Any:
    """The same for a Tensor, recorded."""
    if ge.array.shape != edge.shape:
        ge = checked(sum_to(xp, ge, edge.shape), edge)
    if ge.array.dtype.kind == "c" and edge.dtype.kind != "c":
        ge = xp.real(ge)
    return ge if ge.array.dtype == edge.dtype else apply(OPS["cast"], ge, dtype=edge.dtype)


# ── the whole way back ────────────────────────────────────────────────────────────────────────────────────────────────


def sweep(grads: dict[Any, Any], *, create_graph: bool = False, retain_graph: bool = False, wanted: Any = None, adding: bool = False,
          owned: set[Any] | None = None) -> dict[Any, Any]:
    """Pull gradients back along the tape, from {node: gradient}.

    Without `wanted`, leaves add what reaches them to their .grad. With it, only the ways to the wanted nodes are gone, and
    {node: gradient} of what reached them is returned; or, if `adding`, the wanted leaves add it to their .grad.
    `owned` collects the leaves whose gradient is memory that nobody else holds.
    """
    began = enter()
    try:
        return _sweep(grads, create_graph, retain_graph, wanted, adding, set() if owned is None else owned)
    finally:
        leave(began)


def _sweep(grads: dict[Any, Any], create_graph: bool, retain_graph: bool, wanted: Any, adding: bool, owned: set[Any]) -> dict[Any, Any]:
    order = _route(grads, 0 if wanted is None else min([n.time for n in wanted], default=0))
    last = {e: node for node in order for e in node.edges if type(e) is Leaf}      # the steps after which nothing more reaches a leaf
    closing = set(last.values())
    roots = set(grads) if wanted is not None and len(grads) == 1 else ()     # PyTorch runs the hooks of a single root in any case
    useful = None if wanted is None else _useful(order, wanted)
    found: dict[Any, Any] = {}
    before, outer = mode.grad, mode.sweep
    mode.set_grad(create_graph)
    if mode.tangents.levels:      # tangents go on into gradients, and what they are computed from is not freed
        create_graph = retain_graph = True
    detour = aside = None
    if mode.batches and any(isinstance(g, TensorBase) for g in grads.values()):      # a batch of gradients, for steps that know of none
        from ..interpret.batching import Detour
        create_graph = True
        if (detour := Detour(grads, order)).needed:
            grads = detour.begin(grads)
    mode.sweep, watched = Sweep(order, {*last, *grads}, useful, wanted or ()), mode.watching.anomaly
    usual = useful is None and not (create_graph or watched)
    plain = usual and lanes is not None
    if usual and lanes is None:
        mode.sweep.aside = aside = Aside(order, last, grads)
    try:
        for leaf in [n for n in grads if type(n) is Leaf and n not in last]:
            on(leaf, _arrive)(leaf, grads.pop(leaf), owned, create_graph, None if adding and leaf in wanted else wanted, found)
        for node in order:
            g = None if plain and lanes.step_back(node, grads, owned, retain_graph) else grads.pop(node, None)
            if g is not None and (useful is None or node in useful or node in roots):
                needed, arrived = True, g
                if node.hooks is not None and type(g) is not list and (type(node) is not Output or wanted is not None and node in wanted):
                    g = hooked(node, g, create_graph)
                if useful is not None:
                    needed = not useful.isdisjoint(node.edges)
                    if node in wanted:
                        found[node] = arrived if needed else g      # PyTorch's rule for hooks on inner tensors
                if needed:
                    if type(node) is Output:
                        parts = grads.setdefault(node.node, [None] * len(node.node.shape))
                        before_it = parts[node.index]      # a result that a formula asked for comes back by a way of its own
                        parts[node.index] = g if before_it is None else before_it + g
                    else:
                        step = _step if (guard := node._storage.guard) is None else guard(_step)
                        step(node, g, grads, owned, useful, create_graph, retain_graph, watched)
            if node in closing:
                for e in node.edges:
                    if type(e) is Leaf and last[e] is node and e in grads:
                        on(e, _arrive)(e, grads.pop(e), owned, create_graph, None if adding and e in wanted else wanted, found)
        if aside is not None:
            for leaf, g in aside.results():
                if _fresh(g, None, None):
                    owned.add(leaf)
                _arrive(leaf, g, owned, create_graph, wanted, found)
        for callback in mode.sweep.callbacks if outer is None else ():
            outside(callback)
        if outer is not None:
            outer.callbacks.extend(mode.sweep.callbacks)
    except MemoryError as error:
        raise memory_error(error, "backward") or error from None
    finally:
        if aside is not None:
            aside.close()
        mode.set_grad(before)
        mode.sweep = outer
        if detour is not None and detour.needed:
            found = detour.end(found)
    return found


def on(node: Any, function: Any) -> Any:
    """The function, run with the node's device as the current one."""
    guard = node._storage.guard
    return function if guard is None else guard(function)


def _step(node: Any, g: Any, grads: dict[Any, Any], owned: set[Any], useful: Any, create_graph: bool, retain_graph: bool, watched: bool) -> None:
    """Pull one node, and add what it gives to what waits at its edges."""
    hooks, saved = node.hooks, node.saved
    if hooks is not None and hooks.before:
        g = hooked_before(node, g, create_graph)
        if g is None:      # a hook took the gradient away
            return
    seen = g
    if type(g) is list:
        _hook_results(node, g, create_graph)
        seen, g = list(g), _all_results(node, g, create_graph)
    if watched:
        pulled = _pull_watched(node, g, useful, create_graph)
    else:
        try:
            pulled = node.pull_tensors(g, useful) if create_graph else node.pull(g, useful)
        except (ValueError, TypeError, IndexError, MemoryError) as error:
            raise unpulled(node, error) from None
    if not retain_graph and (type(saved) is not tuple or not all(type(v) in NO_MEMORY for v in saved)):
        node.saved = FREED
    shared = create_graph or node.shares
    if hooks is not None and hooks.after:
        pulled, shared = hooked_after(node, pulled, seen, create_graph), True
    for e, ge in pulled:
        if e not in grads:
            grads[e] = ge
            if type(e) is Leaf and not shared and _fresh(ge, g, saved):
                owned.add(e)
        elif e in owned and not create_graph:
            grads[e] += ge
        else:
            grads[e] = grads[e] + ge
            owned.add(e)


def _fresh(ge: Any, g: Any, saved: Any) -> bool:
    """Whether a gradient is an array that nobody else holds: neither g itself nor a saved value (d(a·b)/da is b)."""
    if ge is g or getattr(ge, "base", ge) is not None:
        return False
    return not (type(saved) is tuple and any(ge is v or ge is getattr(v, "array", None) for v in saved)
                or type(g) is list and any(ge is part for part in g))


class Sweep:
    """A backward that is under way: which steps it will pull, and what hooks note about it."""

    __slots__ = ("order", "leaves", "useful", "wanted", "notes", "callbacks", "aside")

    def __init__(self, order: list[Any], leaves: Any, useful: set[Any] | None, wanted: Any) -> None:
        self.order, self.leaves, self.useful, self.wanted, self.notes, self.callbacks, self.aside = order, leaves, useful, wanted, {}, [], None

    notes: dict[Any, Any]
    callbacks: list[Any]      # what a hook asked to be called in the end
    aside: Any                # gradients that other threads compute

    def reaches(self, node: Any) -> bool:
        return node in self.useful if self.useful is not None else node in self.leaves or node in self.order


def _route(roots: dict[Any, Any], oldest: int = 0) -> list[Any]:
    """The steps in the order in which to pull them.

    Creation order is topological order: the latest node first. Nothing that is older than all that is wanted leads there.
    """
    order = [n for n in roots if type(n) is not Leaf]
    seen = {None, *order}
    for node in order:          # which grows
        for e in node.edges:
            if e not in seen and type(e) is not Leaf and e.time >= oldest:
                seen.add(e)
                order.append(e)
    order.sort(key=by_time, reverse=True)
    return order


def _useful(order: list[Any], wanted: Any) -> set[Any]:
    """The nodes from which a wanted one can be reached."""
    useful = {n for n in wanted if type(n) is Leaf}
    for node in reversed(order):
        if node in wanted or not useful.isdisjoint(node.edges):
            useful.add(node)
    return useful


def _hook_results(node: Any, g: list[Any], create_graph: bool) -> None:
    """Run the hooks of a step's results, in order: those of results that nobody used see None. (Those of wanted results have run.)"""
    for i, reference in enumerate(getattr(node, "results", ())):
        if reference is not None and (output := reference()) is not None and output.hooks is not None and output not in mode.sweep.wanted:
            g[i] = hooked(output, g[i], create_graph)


def _all_results(node: Any, g: list[Any], create_graph: bool) -> list[Any]:
    """The gradients of all of a step's results: zeros for those that nobody used."""
    if not getattr(node, "_materialize", True):      # a Function that wants to see None
        return g
    backend = type(node._storage)
    for i, part in enumerate(g):
        if part is None and node.materialize and node.dtype[i] is not None:
            zeros = backend.xp.zeros(node.shape[i], dtype=node.dtype[i])
            g[i] = wrap(zeros, backend()) if create_graph else zeros
    return g


# ── where gradients end ───────────────────────────────────────────────────────────────────────────────────────────────


def _arrive(leaf: Leaf, g: Any, owned: set[Any], create_graph: bool, wanted: Any, found: dict[Any, Any]) -> None:
    if leaf.hooks is not None:
        owned.discard(leaf)
        g = hooked(leaf, g, create_graph)
    if wanted is not None:
        if leaf in wanted:
            found[leaf] = g
        return
    tensor = leaf.tensor
    if tensor is not None and tensor._node is not None:
        if type(tensor._node) is not Leaf:
            raise RuntimeError("leaf variable has been moved into the graph interior")
        if leaf.hooks is not None and leaf.hooks.before:
            g = hooked_before(leaf, g, create_graph)
            if g is None:
                return
        accumulate(tensor, g, leaf in owned)
        if leaf.hooks is not None:
            for hook in list(leaf.hooks.accumulated.values()):
                if (result := outside(hook, tensor)) is not None:
                    raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'")
            if leaf.hooks.after:
                hooked_after(leaf, [], g, create_graph)


# ── hooks, and anomaly mode ───────────────────────────────────────────────────────────────────────────────────────────


def _as_tensor(node: Any, g: Any) -> Any:
    if g is None or isinstance(g, TensorBase):
        return g
    backend = type(node._storage)
    return wrap(g if type(g) is backend.array_type else backend.asarray(g), backend())


def hooked(node: Any, g: Any, create_graph: bool) -> Any:
    """Run the hooks of the tensor that a node made, and leave the gradient with the tensor if that retains it."""
    hooks: Hooks = node.hooks
    seen = _as_tensor(node, g)
    for hook in list(hooks.tensor.values()):        # all see one object, or what the one before returned: they may leave notes on it
        result = outside(hook, seen)
        g, seen = _replaced(hook, result, g, create_graph), seen if result is None else result
    if g is not None and hooks.retained is not None and (tensor := hooks.retained()) is not None:
        kept = xp.clone(g) if create_graph else owning(g, type(node._storage))
        tensor._grad = kept if tensor._grad is None else tensor._grad + kept
    return g


def hooked_before(node: Any, g: Any, create_graph: bool) -> Any:
    """Run the hooks that stand before a step."""
    parts = g if type(g) is list else [g]
    for hook in list(node.hooks.before.values()):
        results = outside(hook, tuple(_as_tensor(node, part) for part in parts))
        if results is not None:
            _check_results(hook, results, len(parts))
            parts = [None if result is None else _replaced(hook, result, part, create_graph) for result, part in zip(results, parts, strict=True)]
    return parts if type(g) is list else parts[0]


def hooked_after(node: Any, pulled: Any, g: Any, create_graph: bool) -> Any:
    """Run the hooks that stand after a step."""
    left = list(pulled)
    inputs: tuple[Any, ...] = ()
    for e in node.edges:
        place = next((k for k, (edge, _) in enumerate(left) if edge is e), None)
        inputs = (*inputs, None if place is None else _as_tensor(e, left.pop(place)[1]))
    outputs = tuple(_as_tensor(node, part) for part in (g if type(g) is list else [g]))
    for hook in list(node.hooks.after.values()):
        results = outside(hook, inputs, outputs)
        if results is not None:
            _check_results(hook, results, len(inputs))
            inputs = tuple(result if result is None else _as_tensor(node, _replaced(hook, result, given, True))
                           for result, given in zip(results, inputs, strict=True))
    return [(e, i if create_graph else i.array) for e, i in zip(node.edges, inputs, strict=True) if e is not None and i is not None]


def _check_results(hook: Any, results: Any, count: int) -> None:
    """Raise PyTorch's error unless a hook on a step returned a tuple of as many values as it was given."""
    if not isinstance(results, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(results).__name__}'")
    if len(results) != count:
        raise RuntimeError(f"hook '{_name(hook)}' has returned an incorrect number of values (got {len(results)}, but expected {count})")


def _name(hook: Any) -> str:
    return str(getattr(hook, "__name__", type(hook).__name__))


def _replaced(hook: Any, result: Any, g: Any, create_graph: bool) -> Any:
    """What a hook returned in the place of a gradient, or the gradient."""
    if result is None:
        return g
    if not isinstance(result, TensorBase):
        raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'")
    name, before = _name(hook), getattr(g, "array", g)
    if before is not None and result.array.dtype != before.dtype:
        was, got = (f"torch.{dispatch.SCALAR_TYPES[FROM_NUMPY[a.dtype].name]}Tensor" for a in (before, result.array))
        raise RuntimeError(f"hook '{name}' has changed the type of value (was {was} got {got})")
    if before is not None and result.array.shape != before.shape:
        raise RuntimeError(f"hook '{name}' has changed the size of value")
    return result if create_graph else result.array


def _pull_watched(node: Any, g: Any, useful: Any, create_graph: bool) -> Any:
    """Anomaly mode: an error in a step shows where its forward call stood, and so does a NaN that it makes."""
    try:
        pulled = node.pull_tensors(g, useful) if create_graph else node.pull(g, useful)
        if mode.watching.check_nan:
            positions = {e: i for i, e in enumerate(node.edges) if e is not None}
            for e, ge in pulled:
                array = getattr(ge, "array", ge)
                if bool((array != array).any()):
                    raise RuntimeError(f"Function '{node.name()}' returned nan values in its {positions[e]}th output.")
        return pulled
    except Exception:
        trace = getattr(node, "trace", None)
        warnings.warn(f"Error detected in {node.name()}. " + (
            f"Traceback of forward call that caused the error:\n{''.join(trace)}" if trace else
            "No forward pass information available. Enable detect anomaly during forward pass for more information."), stacklevel=5)
        raise


class ExecutionEngine:
    """What programs that schedule work around a backward ask for, as `Variable._execution_engine`."""

    @staticmethod
    def queue_callback(callback: Any) -> None:
        """Call a function when the backward that is under way has ended."""
        if mode.sweep is None:
            raise RuntimeError("Final callbacks can only be installed during backward pass.")
        mode.sweep.callbacks.append(callback)


# ── what programs call ────────────────────────────────────────────────────────────────────────────────────────────────


class GradientEdge(NamedTuple):
    """A place on the tape: a step, and the number of its result. It may stand for a tensor in `grad` and `backward`."""

    node: Any
    output_nr: int
    ownership_token: Any = None     # of one of several results: its own place, where its gradient waits


def edge_of(tensor: Any) -> GradientEdge:
    """The place on the tape that a tensor stands for. https://pytorch.org/docs → torch.autograd.graph.get_gradient_edge"""
    node = node_of(tensor)
    if node is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    step, number = node.as_function()
    return GradientEdge(step, number, node if type(node) is Output else None)


def place_of(target: Any) -> Any:
    """The tape node of a tensor or edge."""
    if isinstance(target, GradientEdge):
        return target.node if target.ownership_token is None else target.ownership_token
    if not isinstance(target, TensorBase):
        raise RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {type(target).__name__}")
    return node_of(target)


def _roots(outputs: tuple[Any, ...], gradients: Any, create_graph: bool) -> dict[Any, Any]:
    """{node: gradient} to start from."""
    given = (None,) * len(outputs) if gradients is None else _tuple(gradients)
    tensors = create_graph or mode.tangents.levels or \
        mode.batches and any(type(g._storage).rank for g in given if isinstance(g, TensorBase))
    roots: dict[Any, Any] = {}
    for i, (out, g) in enumerate(zip(outputs, given, strict=False)):
        node = place_of(out)
        if g is not None and not isinstance(g, TensorBase):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
        if node is None or not node.requires_grad:
            raise RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn")
        g = _start(i, node, g)
        g = fitted_tensor(g, node) if tensors else g.array if g.array.dtype == node.dtype else compute(g.array.astype, node.dtype)
        roots[node] = compute(add, roots[node], g) if node in roots else g
    if len(given) < len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(given)} gradients")
    return roots


def _start(i: int, node: Any, g: Any) -> Any:
    """The gradient of output i: 1, or what is given, which must fit."""
    shape, dtype, names = node.shape, node.dtype, FROM_NUMPY
    if g is None:
        if prod(shape) != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        if dtype.kind == "c":
            raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {names[dtype]}")
        backend = type(node._storage)
        return wrap(backend.xp.ones(shape, dtype=dtype), backend())
    if g.array.shape != shape:
        raise RuntimeError(f"Mismatch in shape: grad_output[{i}] has a shape of {_size(g.array.shape)} and output[{i}] has a shape of "
                           f"{_size(shape)}.")
    if (g.array.dtype.kind == "c") != (dtype.kind == "c"):
        raise RuntimeError("For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
                           f"grad_output[{i}] has a dtype of {names[g.array.dtype]} and output[{i}] has a dtype of {names[dtype]}.")
    if g._storage.device != node._storage.device:
        raise RuntimeError(f"invalid gradient at index {i} - expected device {node._storage.device} but got {g._storage.device}")
    if type(g._storage).rank < node._storage.rank:
        from ..interpret.batching import lifted
        return lifted(g, type(node._storage))
    return g


def _size(shape: tuple[int, ...]) -> str:
    return f"torch.Size({list(shape)})"


def _tuple(tensors: Any) -> tuple[Any, ...]:
    return (tensors,) if isinstance(tensors, (TensorBase, GradientEdge)) else tuple(tensors)


def backward(tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
             grad_variables: Any = None, inputs: Any = None) -> None:
    """Add the gradients of `tensors` to the .grad of the leaves. https://pytorch.org/docs → torch.autograd.backward

    dL/dx = Σ over the ways from L to x of the product of the steps' derivatives.
    """
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError("`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only use "
                               "`grad_tensors`.")
        grad_tensors = grad_variables
    roots = _roots(_tuple(tensors), grad_tensors, create_graph)
    keep = create_graph if retain_graph is None else retain_graph
    if create_graph:
        _warn_of_cycle()
    if inputs is None:
        sweep(roots, create_graph=create_graph, retain_graph=keep)
        return
    targets = _tuple(inputs)
    if not targets:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    for target in targets:
        if isinstance(target, TensorBase):
            target.retain_grad()  # type: ignore[attr-defined]
    sweep(roots, create_graph=create_graph, retain_graph=keep, wanted=frozenset(map(place_of, targets)), adding=True)   # inner tensors retain theirs


def _warn_of_cycle() -> None:
    """Once in the life of a program, or after set_warn_always each time."""
    warn("Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient which can cause a memory "
         "leak. We recommend using autograd.grad when creating the graph to avoid this. If you have to use this function, make sure to reset the "
         ".grad fields of your parameters to None after use to break the cycle and avoid the leak.")


def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
         only_inputs: bool = True, allow_unused: bool | None = None, is_grads_batched: bool = False,
         materialize_grads: bool = False) -> tuple[Any, ...]:
    """The gradients of `outputs` with respect to `inputs`; no .grad is touched. https://pytorch.org/docs → torch.autograd.grad

    >>> import tensorgrad as torch
    >>> x = torch.tensor(3., requires_grad=True)
    >>> torch.autograd.grad(x ** 2, x)
    (tensor(6.),)
    """
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False.")
    if not only_inputs:
        warnings.warn("only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for other parts of "
                      "the graph, please use torch.autograd.backward.", FutureWarning, stacklevel=2)
    results, targets = _tuple(outputs), _tuple(inputs)
    if is_grads_batched:
        for i, (out, g) in enumerate(zip(results, (None,) * len(results) if grad_outputs is None else _tuple(grad_outputs), strict=False)):
            if isinstance(out, TensorBase) and isinstance(g, TensorBase) and g.array.shape[1:] != out.array.shape:
                raise RuntimeError(
                    "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. The sizes of the remaining "
                    f"dimensions are expected to match the shape of corresponding output, but a mismatch was detected: grad_output[{i}] has a shape of "
                    f"{_size(g.array.shape[2:])} and output[{i}] has a shape of {_size(out.array.shape)}. If you only want some tensors in `grad_output` to be "
                    "considered batched, consider using vmap.")
        return _batched_grad(results, targets, _tuple(grad_outputs), retain_graph, create_graph, bool(allow_unused), materialize_grads)
    roots = _roots(results, grad_outputs, create_graph)
    if not targets:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    nodes = [place_of(target) for target in targets]
    if any(node is None or not node.requires_grad for node in nodes):
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    owned: set[Any] = set()
    found = sweep(roots, create_graph=create_graph, retain_graph=create_graph if retain_graph is None else retain_graph,
                  wanted=frozenset(nodes), owned=owned)
    gradients = []
    for i, node in enumerate(nodes):
        g, backend = found.get(node), type(node._storage)
        if g is None and materialize_grads:
            g = wrap(backend.xp.zeros(node.shape, dtype=node.dtype), backend())
        elif g is None and not allow_unused:
            raise RuntimeError(f"The differentiated Tensor at index {i} appears to not have been used in the graph. Set allow_unused=True if "
                               "this is the desired behavior.")
        if g is not None and not isinstance(g, TensorBase):
            g = owning(g, backend, node in owned)
            owned.discard(node)         # asked for twice, it is given in two pieces of memory
        gradients.append(g)
    return tuple(gradients)


def _batched_grad(outputs: Any, inputs: Any, given: Any, retain_graph: Any, create_graph: bool, allow_unused: bool,
                  materialize: bool) -> tuple[Any, ...]:
    """One sweep for a batch of gradients, along the first axis of each."""
    from ..interpret.batching import hidden, level, shown
    count = len(next(g for g in given if g is not None).array)
    with level(count) as depth:
        found = grad(outputs, inputs, [None if g is None else hidden(g, 0, depth) for g in given], retain_graph, create_graph,
                     allow_unused=None if materialize else allow_unused, materialize_grads=materialize)
        return tuple(None if g is None else shown(g, 0, depth, count) if type(g._storage).rank == depth else
                     xp.stack([g] * count, axis=0) for g in found)
