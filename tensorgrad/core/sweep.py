"""The backward sweep along the tape, without recursion: steps are pulled one by one, and their gradients are added up
per node.

The engine does what formulas never do: sum over broadcast axes, cast, conjugate, accumulate, skip inputs that need no
gradient, and free saved values. First gradients run on bare arrays; with create_graph the same formulas run on Tensors.
"""
from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from operator import attrgetter
from typing import Any, NamedTuple

from ..advice import noted, went_back
from ..runtime.numpy_state import enter, leave, outside
from ..storage.base import clock
from ..storage.out_of_memory import memory_error
from .accumulating import accumulate, plus
from .class_hooks import CLASSES
from .class_hooks import hooks as class_hooks
from .fast_path import compiled
from .hooks import hooked, hooked_after, hooked_before, pull_watched, refuse_result
from .mode import mode
from .step import Reading
from .tape import Leaf, Output, TensorBase
from .unbroadcast import added, unpulled
from .vmap_hooks import batches

by_time = attrgetter("time")


def sweep(grads: dict[Any, Any], *, create_graph: bool = False, retain_graph: bool = False, wanted: Any = None,
          adding: bool = False,
          owned: set[Any] | None = None) -> dict[Any, Any]:
    """Pull gradients back along the tape, from {node: gradient}.

    Without `wanted`, leaves accumulate their gradients in .grad. With it, only paths to the wanted nodes are followed,
    and {node: gradient} of these is returned; or, if `adding`, the wanted leaves accumulate them in .grad. `owned`
    collects the leaves whose gradient is memory that nobody else holds.
    """
    began = enter()
    try:
        return _sweep(grads, create_graph, retain_graph, wanted, adding, set() if owned is None else owned)
    finally:
        leave(began)


def _sweep(grads: dict[Any, Any], create_graph: bool, retain_graph: bool, wanted: Any, adding: bool,
           owned: set[Any]) -> dict[Any, Any]:
    order = route(grads, 0 if wanted is None else min([n.time for n in wanted], default=0))
    last = {e: node for node in order for e in node.edges if type(e) is Leaf}
    closing = set(last.values())        # the steps after which nothing more reaches a leaf
    roots = set(grads) if wanted is not None and len(grads) == 1 else ()        # whose hooks run in any case
    useful = None if wanted is None else _useful(order, wanted)
    found: dict[Any, Any] = {}
    before, outer, watched, timed = _modes(), mode.sweep, mode.watching.anomaly, mode.watching.timing
    mode.set_grad(create_graph)
    if mode.tangents.levels:      # gradients have tangents, too, which need the saved values
        create_graph = retain_graph = True
    grads, create_graph, detour = _begun(grads, order, create_graph)
    mode.sweep = Sweep(order, {*last, *grads}, useful, wanted or (), outer, retain_graph, adding)
    plain = compiled is not None and useful is None and not (create_graph or watched or timed)
    undefined = mode.sweep.undefined

    def arrive(e: Leaf) -> None:
        on(e, _arrive)(e, grads.pop(e), owned, create_graph, None if adding and e in wanted else wanted, found)
    try:
        for leaf in [n for n in grads if type(n) is Leaf and n not in last]:
            arrive(leaf)
        for node in order:
            pulled = plain and compiled.step_back(node, grads, owned, retain_graph)
            g = None if pulled else grads.pop(node, None)
            if undefined and g is None and node in undefined and not pulled:
                g = _without_gradient(node, useful, create_graph)
            if g is not None and (useful is None or node in useful or node in roots):
                needed, arrived = True, g
                if (node.hooks is not None and type(g) is not list
                        and (type(node) is not Output or wanted is not None and node in wanted)):
                    g = _hooked(node, g, create_graph)
                if useful is not None:
                    needed = not useful.isdisjoint(node.edges)
                    if node in wanted:
                        found[node] = arrived if needed else g      # PyTorch's rule for hooks on inner tensors
                        needed = needed or adding       # its hooks run, although nothing behind it is wanted
                if needed:
                    if type(node) is Output:
                        wait_at_step(node, g, grads)
                    else:
                        on(node, _step)(node, g, grads, owned, useful, create_graph, retain_graph, watched)
            for e in node.edges if node in closing else ():
                if type(e) is Leaf and last[e] is node and (
                        e in grads or undefined and e in undefined and _hears(e, grads)):
                    arrive(e)
        mode.sweep.end()
    except MemoryError as error:
        raise memory_error(error, "backward") or error from None
    except Exception as error:
        noted(error)
        raise
    finally:
        _restore(*before)
        if order and not retain_graph:
            went_back(order, next(clock))
        if detour is not None:
            found = detour.end(found)
    return found


def _begun(grads: dict[Any, Any], order: Any, create_graph: bool) -> tuple[dict[Any, Any], bool, Any]:
    """Return the gradients to begin with, whether to record, and the detour of a batch of gradients, or None.

    The detour bypasses steps that cannot take a batch of gradients.
    """
    if CLASSES and not create_graph and (tensors := class_hooks.back(order, grads)) is not None:
        grads, create_graph = tensors, True
    if not mode.batches or not any(isinstance(g, TensorBase) for g in grads.values()):
        return grads, create_graph, None
    detour = batches.detour(grads, order)
    return (detour.begin(grads), True, detour) if detour.needed else (grads, True, None)


def _without_gradient(node: Any, useful: Any, create_graph: bool) -> Any:
    """Visit a node to which a Function returned None: its hooks see None, and so do the steps behind it.

    A Function runs all the same: return a list of None, the gradients of its results; else return None.
    """
    if useful is not None and node not in useful:
        return None
    if type(node) is Output:
        if node.hooks is not None:
            _hooked(node, None, create_graph)
        mode.sweep.undefined.add(node.node)
        return None
    if node.op is None and type(node.dtype) is tuple:
        return [None] * len(node.dtype)
    if node.hooks is not None:
        _hooked(node, None, create_graph)
        hooked_before(node, None, create_graph)
        hooked_after(node, [], None, create_graph)
    mode.sweep.undefined.update(e for e in node.edges if e is not None)
    return None


def _hears(leaf: Leaf, grads: dict[Any, Any]) -> bool:
    """Return True if this sweep calls hooks of a leaf that gets no gradient, with None."""
    useful = mode.sweep.useful
    heard = leaf.hooks is not None and (useful is None or leaf in useful)
    if heard:
        grads[leaf] = None
    return heard


def _modes() -> tuple[Any, ...]:
    """Return the modes that `_restore` restores."""
    return mode.grad, mode.sweep, mode.watching.hooks, mode.watching.watchers


def _restore(grad: bool, outer: Any, hooks: Any, watchers: Any) -> None:
    """Restore the modes that were set before a sweep: a step may have entered saved_tensors_hooks and not left it."""
    mode.sweep = outer
    if mode.watching.hooks is not hooks:
        mode.watching.hooks, mode.watching.watchers = hooks, watchers
    mode.set_grad(grad)


def on(node: Any, function: Any) -> Any:
    """Return the function, made to run with the node's device as the current device, and timed in a profile."""
    guard, timing = node._storage.guard, mode.watching.timing
    function = function if guard is None else guard(function)
    if timing is None:
        return function

    def call(*args: Any) -> Any:
        with timing(node):
            return function(*args)
    return call


def wait_at_step(place: Output, g: Any, grads: dict[Any, Any]) -> None:
    """Add a gradient to those of the step's other results, which wait until the step is pulled."""
    parts = grads.setdefault(place.node, [None] * len(place.node.shape))
    before = parts[place.index]      # a formula that uses the result adds another gradient to it
    parts[place.index] = g if before is None else added(place.node._storage.xp, before, g)


def _step(node: Any, g: Any, grads: dict[Any, Any], owned: set[Any], useful: Any, create_graph: bool,
          retain_graph: bool, watched: bool) -> None:
    """Pull one node, and add its gradients to those of its edges so far."""
    mode.sweep.node = node
    hooks, saved = node.hooks, node.saved
    if hooks is not None and hooks.before:
        g = hooked_before(node, g, create_graph)
        if g is None:      # a hook took the gradient away
            return
    seen = g
    if type(g) is list:
        _hook_results(node, g, create_graph)
        seen, g = list(g), node.completed(g, create_graph)
    if watched:
        pulled = pull_watched(node, g, useful, create_graph)
    else:
        try:
            pulled = node.pull_tensors(g, useful) if create_graph else node.pull(g, useful)
        except (ValueError, TypeError, IndexError, MemoryError) as error:
            raise unpulled(node, error) from None
    if not retain_graph:
        node.free()
    shared = create_graph or node.shares
    if (hooks := node.hooks) is not None and hooks.after:       # a hook on saved values may have added the first
        pulled, shared = hooked_after(node, pulled, seen, create_graph), True
    for e, ge in pulled:
        if e not in grads:
            grads[e] = ge
            if type(e) is Leaf and not shared and _fresh(ge, g, saved):
                owned.add(e)
        elif e in owned and not create_graph:
            try:
                grads[e] += ge
            except TypeError:                   # NumPy does not add bfloat16
                grads[e] = added(e._storage.xp, grads[e], ge)
        else:
            grads[e] = plus(grads[e], ge) if create_graph else added(e._storage.xp, grads[e], ge)
            owned.add(e)


def _fresh(ge: Any, g: Any, saved: Any) -> bool:
    """Return True if a gradient is an array that nobody else holds: neither g nor a saved value (d(a·b)/da is b)."""
    if ge is g or getattr(ge, "base", ge) is not None:
        return False
    return not (type(saved) is tuple and any(ge is v or ge is getattr(v, "array", None) for v in saved)
                or type(g) is list and any(ge is part for part in g))


class Sweep:
    """A backward in progress: the steps that it will pull, and notes of hooks about it."""

    __slots__ = ("order", "leaves", "useful", "wanted", "outer", "notes", "callbacks", "number", "node", "keeps",
                 "adds", "undefined")
    numbers = count()

    def __init__(self, order: list[Any], leaves: Any, useful: set[Any] | None, wanted: Any, outer: Any = None,
                 keeps: bool = False, adds: bool = False) -> None:
        self.order, self.leaves, self.useful, self.wanted, self.outer = order, leaves, useful, wanted, outer
        self.notes, self.callbacks, self.number, self.node = {}, [], next(self.numbers), None
        self.keeps, self.adds, self.undefined = keeps, adds, set()

    outer: Any                # the backward that runs this one inside a step
    number: int
    node: Any                 # the step that is being pulled
    keeps: bool               # True if saved values stay
    adds: bool                # True if the wanted leaves accumulate their gradients
    undefined: set[Any]       # the nodes to which Functions returned None

    notes: dict[Any, Any]
    callbacks: list[Any]      # functions to call at the end, queued by hooks

    def end(self) -> None:
        """Call the queued functions, or leave them to the backward that runs this one."""
        if self.outer is not None:
            self.outer.callbacks.extend(self.callbacks)
            return
        for callback in self.callbacks:
            outside(callback)

    def reaches(self, node: Any) -> bool:
        return node in self.useful if self.useful is not None else node in self.leaves or node in self.order


def route(roots: dict[Any, Any], oldest: int = 0) -> list[Any]:
    """The steps in the order in which to pull them.

    Creation order is topological order: the latest node first. Nothing that is older than all that is wanted leads
        there.
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
    """Return the nodes from which a wanted node can be reached."""
    useful = {n for n in wanted if type(n) is Leaf}
    for node in reversed(order):
        if node in wanted or not useful.isdisjoint(node.edges):
            useful.add(node)
    return useful


def _hook_results(node: Any, g: list[Any], create_graph: bool) -> None:
    """Run the hooks of a step's results, in order; unused results pass None. (Hooks of wanted results have run.)"""
    for i, reference in enumerate(getattr(node, "results", ())):
        if (reference is not None and (output := reference()) is not None and output.hooks is not None
                and output not in mode.sweep.wanted):
            g[i] = hooked(output, g[i], create_graph)


# ── where gradients end ───────────────────────────────────────────────────────────────────────────────────────────────


def _hooked(node: Any, g: Any, create_graph: bool) -> Any:
    """Run the hooks of a step's result, which may ask what is being pulled."""
    mode.sweep.node = node
    return hooked(node, g, create_graph)


def _arrive(leaf: Leaf, g: Any, owned: set[Any], create_graph: bool, wanted: Any, found: dict[Any, Any]) -> None:
    hooks = leaf.hooks
    # whoever sees the gradient may keep it
    if hooks is not None and (hooks.tensor or hooks.retained is not None or hooks.before or hooks.after):
        owned.discard(leaf)
        g = hooked(leaf, g, create_graph)
    if wanted is not None:
        if leaf in wanted and g is not None:
            found[leaf] = g
        return
    tensor = leaf.tensor
    if tensor is not None and tensor._node is not None:
        if type(tensor._node) is not Leaf:
            raise RuntimeError("leaf variable has been moved into the graph interior")
        if hooks is not None and hooks.before:
            g = hooked_before(leaf, g, create_graph)
            if g is None:
                return
        first = hooks is not None and tensor._grad is None
        if g is not None:
            accumulate(tensor, g, leaf in owned)
        if hooks is not None:
            if g is not None and first and not create_graph:
                g = tensor._grad        # hooks behind the sum see the memory of .grad, as in PyTorch
            for hook in list(hooks.accumulated.values()):
                refuse_result(hook, leaf, outside(hook, tensor), tensor)
            if hooks.after:
                hooked_after(leaf, [], g, create_graph)


# ── a way back that changes nothing ───────────────────────────────────────────────────────────────────────────────────


class Share(NamedTuple):
    """The gradient of a step for one input. `total` is its sum with `before`, the earlier gradients of that input."""

    position: int         # which of the inputs
    edge: Any             # its node on the tape
    gradient: Any
    before: Any
    total: Any


class StepBack(NamedTuple):
    """A step of a backward."""

    node: Any
    incoming: tuple[Any, ...]       # the gradient of each result; None where nothing came back
    reading: Reading
    shares: tuple[Share, ...]


def steps_back(grads: dict[Any, Any]) -> Iterator[StepBack]:
    """Yield the steps of a sweep from {node: gradient} (see `engine.starts`), in order, with array gradients.

    The sweep changes no .grad, runs no hooks and frees no saved values. In the end `grads` holds the gradients of the
    leaves.
    """
    order = route(grads)
    useful = {*grads, *order, *(e for node in order for e in node.edges)}
    pulling = Sweep(order, useful, useful, ())       # as in autograd.grad: Functions that check must not touch .grad
    reading = Sweep(order, useful, useful, ())       # a checkpoint hands out recomputed values once per sweep
    for node in order:
        g = grads.pop(node, None)
        if g is None:
            continue
        if type(node) is Output:
            wait_at_step(node, g, grads)
            continue
        yield on(node, _looked_at)(node, g, grads, pulling, reading)


def _looked_at(node: Any, g: Any, grads: dict[Any, Any], pulling: Sweep, reading: Sweep) -> StepBack:
    incoming = tuple(g) if type(g) is list else (g,)
    with during(pulling):
        pulled = node.pull(node.completed(list(g), False) if type(g) is list else g, None)
    with during(reading):
        read = node.read()
    shares, position = [], -1
    for edge, ge in pulled:
        position = next(i for i, e in enumerate(node.edges) if i > position and e is edge)
        before = grads.get(edge)
        grads[edge] = ge if before is None else added(edge._storage.xp, before, ge)
        shares.append(Share(position, edge, ge, before, grads[edge]))
    return StepBack(node, incoming, read, tuple(shares))


class during:
    """A `with` block in which a sweep is under way, and nothing is recorded."""

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep

    def __enter__(self) -> None:
        self.before = mode.grad, mode.sweep
        if mode.grad:
            mode.set_grad(False)
        mode.sweep = self.sweep

    def __exit__(self, *exception: object) -> None:
        grad, mode.sweep = self.before
        if mode.grad is not grad:
            mode.set_grad(grad)
