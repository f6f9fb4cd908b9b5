"""Batches on the tape: the steps in which `vmap` hides an axis of a tensor and shows it again, and operands get equal
levels.

Each of these steps is linear, and its gradient is another of them: hiding and showing an axis are adjoint, and so are
repeating a tensor for all examples and summing over them.
"""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import zip_longest
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from ..core import dispatch
from ..core.dispatch import apply, wrap
from ..core.mode import mode
from ..core.step import Step
from ..core.tape import TensorBase, new, node_of, show
from ..core.vmap_hooks import batches as asked
from ..ops.base import OPS
from ..storage.base import clock
from . import batched as batches
from .batch_views import Crossed, axis_of, be_view, parent_of


class Level:
    """A running vmap: the length of its batch, its mode for random functions, and True if it is the first vmap's.

    Batches of gradients belong to the first vmap: it takes autograd.Functions that have no `setup_context`.
    """

    __slots__ = ("size", "randomness", "first")

    def __init__(self, size: int, randomness: str = "error", first: bool = False) -> None:
        self.size, self.randomness, self.first = size, randomness, first


@contextmanager
def level(size: int, randomness: str = "error", first: bool = False) -> Iterator[int]:
    """Open a batch for the length of a `with` block, and yield its depth."""
    mode.batches = (*mode.batches, Level(size, randomness, first))
    try:
        yield len(mode.batches)
    finally:
        mode.batches = mode.batches[:-1]


class Crossing(Step):
    """A step from one backend to another.

    Its parameters are `there(array)` forward, `back(array)` for gradients, and its name.
    """

    __slots__ = ()
    shares = True

    def name(self) -> str:
        return f"{self.params[2]}Backward0"

    def pull(self, g: Any, useful: Any) -> Any:
        (edge,) = self.edges
        return [(edge, self.params[1](g))]

    def pull_tensors(self, g: Any, useful: Any) -> Any:
        (edge,) = self.edges
        there, back, label = self.params
        return [(edge, cross(g, back, there, label))]

    def push(self, tangent: Any) -> Any:
        """Return the tangent of the result, given that of the input."""
        return cross(tangent, *self.params)


def cross(tensor: Any, there: Any, back: Any, label: str, storage: Any = None) -> Any:
    """Convert a tensor to another backend by `there`, recorded, with `back` for gradients."""
    array = there(tensor.array)
    target = (getattr(type(array), "storage", None)
              or (base_of(type(tensor._storage)) if storage is None else type(storage)))
    out = wrap(array, target() if storage is None else storage)
    edge = node_of(tensor)
    if edge is not None and mode.record:
        out._node = node = new(Crossing)
        node.params, node.edges, node.saved, node.hooks = (there, back, label), (edge,), (), None
        node._storage, node.shape, node.dtype, node.time = target.nowhere, array.shape, array.dtype, next(clock)
        show(node, (out,))
    elif mode.inference:
        out._storage.inference = True
    return out


def base_of(backend: Any) -> Any:
    """The backend under all levels."""
    return getattr(backend, "inner", backend)


def lend(storage: Any, lender: Any) -> Any:
    """Let a storage share the dates of writes of `lender`, whose memory it shares."""
    storage.lender = lender
    return storage


def hidden(tensor: Any, axis: int, depth: int) -> Any:
    """Hide an axis of a tensor as the batch of a level."""
    inner, size = base_of(type(tensor._storage)), tensor.array.shape[axis]
    storage = lend(batches.batched_backend(inner, depth)(), tensor._storage)
    out = cross(tensor, lambda x: batches.hide(x, axis, depth, inner),
                lambda x: batches.show(x, axis, depth, size, inner), "AddBatchDim", storage)
    storage.crossed = Crossed(tensor, axis, out, lambda batch: crossed_back(batch, axis, depth, size))
    return out


def shown(tensor: Any, axis: int, depth: int, size: int) -> Any:
    """Show the batch of a level as an axis of the tensor: a view of the tensor that the batch was made of, or that
    tensor itself, if it shares its memory."""
    parent, whole = parent_of(tensor, axis)
    if whole:
        return parent
    out = crossed_back(tensor, axis, depth, size)
    if parent is not None:
        be_view(out, parent)
    return out


def crossed_back(tensor: Any, axis: int, depth: int, size: int) -> Any:
    """Show the batch of a level in a new tensor."""
    inner, storage = base_of(type(tensor._storage)), tensor._storage
    target = batches.batched_backend(inner, depth - 1) if depth > 1 else inner
    if storage.lender is None:
        lender = target()
        for name in ("written", "rebased", "version", "dates"):
            setattr(lender, name, getattr(storage, name))
        storage.lender = lender
    kept = storage.lender if type(storage.lender) is target else target()
    return cross(tensor, lambda x: batches.show(x, axis, depth, size, inner),
                 lambda x: batches.hide(x, axis, depth, inner), "RemoveBatchDim", kept)


def lifted(tensor: Any, target: Any, sizes: tuple[int, ...] = ()) -> Any:
    """Convert a tensor to a backend with more levels: examples of these batches share its values."""
    inner = target.inner
    sizes = tuple(n if n != 1 else m for n, m in zip_longest(sizes, [each.size for each in mode.batches], fillvalue=1))
    if base_of(type(tensor._storage)) is not inner:
        tensor = dispatch.move(tensor, inner)
    low, high = type(tensor._storage).rank, target.rank
    return cross(tensor, lambda x: batches.lift(x, high, inner), lambda g: batches.total(g, low, high, sizes, inner),
                 "Expand",
                 lend(target(), tensor._storage))


def moved(tensor: Any, target: Any) -> Any:
    """Copy a batch to another device, recorded."""
    source = base_of(type(tensor._storage))

    def carrier(one: Any, other: Any) -> Any:
        def carry(array: Any) -> Any:
            values, depth, *_ = batches.layers(array)
            return batches.built(OPS["to_device"].forward(one.xp, values, source=one, target=other), depth, other)
        return carry
    return cross(tensor, carrier(source, target), carrier(target, source), "ToCopy")


def for_each_example(tensor: Any) -> Any:
    """Convert a tensor to all current levels, so that derivatives by it are per example, not summed over examples."""
    depth = len(mode.batches)
    if type(tensor._storage).rank >= depth:
        return tensor
    return lifted(tensor, batches.batched_backend(base_of(type(tensor._storage)), depth))


def gathered(args: Any) -> list[Any]:
    """Convert operands of several levels to the backend that has all of them."""
    tensors = [a for a in args if isinstance(a, TensorBase)]
    deepest = max((type(t._storage) for t in tensors), key=attrgetter("rank"))
    bases = [base_of(type(t._storage)) for t in tensors if t.array.ndim or str(t._storage.device) != "cpu"]
    target = batches.batched_backend(bases[0] if bases else base_of(deepest), deepest.rank)
    sizes = np.broadcast_shapes(*(t.array.hidden for t in tensors if type(t._storage).rank == target.rank))
    return [lifted(a, target, sizes) if isinstance(a, TensorBase) and type(a._storage) is not target else a
            for a in args]


def one_by_one(function: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Run a function of tensors for each example of the innermost batch, and make its results a batch."""
    depth = max(type(a._storage).rank for a in (*args, *params.values()) if isinstance(a, TensorBase))
    outer, size = mode.batches, mode.batches[depth - 1].size
    mode.batches = outer[:depth - 1]
    try:
        rows = {id(a): shown(a, 0, depth, size) for a in (*args, *params.values())
                if isinstance(a, TensorBase) and type(a._storage).rank == depth}

        def example(a: Any, i: int) -> Any:
            return apply(OPS["get_item"], rows[id(a)], index=(i,)) if id(a) in rows else a
        results = [function(*(example(a, i) for a in args), **{name: example(a, i) for name, a in params.items()})
                   for i in range(size)]
        several = isinstance(results[0], (tuple, list))
        columns = list(zip(*results, strict=True)) if several else [results]
        outs = [hidden(apply(OPS["stack"], list(column), axis=0), 0, depth) for column in columns]
    finally:
        mode.batches = outer
    kind = type(results[0])
    return outs[0] if not several else kind(*outs) if hasattr(kind, "_fields") else kind(outs)


def with_memory(tensor: Any, other: Any) -> Any:
    """Copy a tensor to the levels of another, with memory for each example, so that it can hold the other's values."""
    one, two = gathered((tensor, other))
    sizes = np.broadcast_shapes(one.array.hidden, two.array.hidden,
                                tuple(each.size for each in mode.batches[:one.array.depth]))
    return wrap(one.array.repeated(sizes).copy(), type(one._storage)(), node_of(one))


class VmapInfo(NamedTuple):
    """The first argument of a Function's `vmap`."""

    batch_size: int
    randomness: str


SEE = "For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"


def by_own_rule(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a Function's `vmap` on batches; NotImplemented if its forward should run on batched tensors instead."""
    depth = max((type(a._storage).rank for a in _tensors(args)), default=0)
    if any(True for _ in _tensors(tuple(kwargs.values()))):
        raise NotImplementedError("Run vmap on autograd.Function with kwarg-only Tensor args. Please do not pass "
                                  f"kwarg-only Tensors to autograd.Function. Got: {kwargs}")
    if not depth:
        return NotImplemented
    name, own = function.__name__, "vmap" in {attribute for cls in function.__mro__[:-2] for attribute in cls.__dict__}
    if function.generate_vmap_rule and own:
        raise RuntimeError(f"You tried to vmap over {name}, but it has both generate_vmap_rule=True and an overridden "
                           f"vmap staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap "
                           f"staticmethod to avoid ambiguity. {SEE}")
    if function.generate_vmap_rule:
        return NotImplemented
    if not own:
        raise RuntimeError(f"You tried to vmap over {name}, but it does not have vmap support. Please override and "
                           f"implement the vmap staticmethod or set generate_vmap_rule=True. {SEE}")
    outer, inside = mode.batches, mode.batches[depth - 1]

    def axis(a: Any) -> Any:
        return axis_of(a) if isinstance(a, TensorBase) and type(a._storage).rank == depth else None

    def whole(a: Any) -> Any:
        return a if (dim := axis(a)) is None else shown(a, dim, depth, inside.size)
    mode.batches = outer[:depth - 1]
    try:
        found = function.vmap(VmapInfo(inside.size, inside.randomness), _mapped(axis, args), *_mapped(whole, args),
                              **kwargs)
        if not (isinstance(found, tuple) and len(found) == 2):
            raise RuntimeError("Expected the vmap staticmethod to have two returns, an output and out_dims with pytree "
                               f"structure compatible with the output. Got a {type(found)} instead")
        results, places = found
        several = isinstance(results, tuple)
        count = len(results) if several else 1
        if isinstance(places, list) or isinstance(places, tuple) and (not several or len(places) != count):
            raise RuntimeError(f"The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) "
                               f"tuple. Expected out_dims={places} to be compatible with the structure of `output`. "
                               f"{SEE}")
        places = places if isinstance(places, tuple) else (places,) * count
        outs = tuple(_hidden(r, place, depth)
                     for r, place in zip(results if several else (results,), places, strict=True))
    finally:
        mode.batches = outer
    return outs if several else outs[0]


def _tensors(values: Any) -> Iterator[Any]:
    """Yield the tensors among arguments, and in their lists, tuples and dicts."""
    for value in values:
        if isinstance(value, TensorBase):
            yield value
        elif isinstance(value, (list, tuple, dict)):
            yield from _tensors(value.values() if isinstance(value, dict) else value)


def _hidden(result: Any, place: Any, depth: int) -> Any:
    """Hide the batch axis of a result, or of each in a list; None: it has none."""
    if isinstance(result, (list, tuple)):
        places = place if isinstance(place, (list, tuple)) else [place] * len(result)
        return type(result)(_hidden(r, p, depth) for r, p in zip(result, places, strict=True))
    return result if place is None else hidden(result, place % result.array.ndim, depth)


def _mapped(function: Any, value: Any) -> Any:
    """Return a structure of lists, tuples and dicts with the function of each value in it."""
    if isinstance(value, dict):
        return {key: _mapped(function, part) for key, part in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_mapped(function, part) for part in value)
    return function(value)


class Detour:
    """A sweep from batched gradients: levels that only gradients have are moved after all levels of its steps."""

    def __init__(self, roots: dict[Any, Any], order: list[Any]) -> None:
        self.low = max(node._storage.rank for node in roots)
        self.high = max(type(g._storage).rank for g in roots.values())
        self.by = max((node._storage.rank for node in order), default=0) - self.low
        self.needed = self.high > self.low and self.by > 0
        self.batches = mode.batches

    def begin(self, grads: dict[Any, Any]) -> dict[Any, Any]:
        grads = {node: self._along(g, batches.make_room, batches.take_room) for node, g in grads.items()}
        mode.batches = (*self.batches[:self.low], *[Level(1)] * self.by, *self.batches[self.low:])
        return grads

    def end(self, found: dict[Any, Any]) -> dict[Any, Any]:
        mode.batches = self.batches
        return {node: self._along(g, batches.take_room, batches.make_room) for node, g in found.items()}

    def _along(self, g: Any, one: Any, other: Any) -> Any:
        low, high, by, inner = self.low, self.high, self.by, base_of(type(g._storage))
        return cross(g, lambda x: one(x, low, high, by, inner), lambda x: other(x, low, high, by, inner), "Permute")


asked.register(gathered=gathered, with_memory=with_memory, moved=moved, lifted=lifted, detour=Detour,
               by_own_rule=by_own_rule)
