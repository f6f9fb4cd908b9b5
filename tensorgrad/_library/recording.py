"""Operators of a program's own as steps of the graphs that `make_fx` and `torch.export` record."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from .._unregistered import tensors_in
from ..api import Tensor
from ..core.dispatch import fresh, wrap
from ..graph.backend import RecordingStorage
from ..graph.recorded import Recorded
from ..graph.recorder import here
from ..graph.recording import argument
from ..interpret.symbol import Symbol
from ..storage.base import Backends, Storage, backend_of
from ..storage.cpu import NumpyStorage
from ..utils._pytree import tree_flatten, tree_map, tree_map_only, tree_unflatten


def recorded(operator: Any, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that adds a step to the graph, in place of one that runs.

    Operators without a rule for shapes, and those that write to arguments, are recorded as what their kernels compute.
    """
    shapes = operator.kernels.get("Meta", operator.kernels.get("CompositeExplicitAutograd"))
    if not here.recorder.branches or shapes is None or shapes is operator.refusal or operator.is_mutable:
        return kernel
    return partial(_step, operator, kernel, shapes)


def _step(operator: Any, kernel: Callable[..., Any], shapes: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    tensors = tensors_in((*args, *kwargs.values()))
    if not any(type(t.array) is Recorded and not t.array.known for t in tensors):
        return kernel(*args, **kwargs)
    recorder = here.recorder
    made, spec = tree_flatten(_shaped(shapes, args, kwargs) if recorder.reading is None
                              else _computed(kernel, args, kwargs))
    if not made or not all(isinstance(leaf, Tensor) for leaf in made):
        return kernel(*args, **kwargs)
    inner = [Symbol(tuple(leaf.shape), leaf.array.dtype, None) if recorder.reading is None else leaf.array
             for leaf in made]
    args, kwargs = tree_map(_node, (args, kwargs))
    nodes = recorder.step(operator, args, kwargs, inner, False, several=not spec.is_leaf())
    results = [wrap(Recorded(array, node, False), RecordingStorage()) for array, node in zip(inner, nodes, strict=True)]
    return tree_unflatten(results, spec)


def _node(leaf: Any) -> Any:
    return argument(RecordingStorage.asarray(leaf.array)) if isinstance(leaf, Tensor) else leaf


def _shaped(shapes: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Return the results as tensors of device "meta"."""
    backend = backend_of("meta")

    def hollow(t: Any) -> Any:
        return wrap(backend.asarray(t.array.inner if type(t.array) is Recorded else t.array), backend())
    args, kwargs = tree_map_only(Tensor, hollow, (args, kwargs))
    return shapes(*args, **kwargs)


def _computed(kernel: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Return the results for the example values."""
    def real(t: Any) -> Any:
        return fresh(t.array.inner.copy() if type(t.array) is Recorded else t.array, NumpyStorage)
    with _aside():
        args, kwargs = tree_map_only(Tensor, real, (args, kwargs))
        return kernel(*args, **kwargs)


@contextmanager
def _aside() -> Iterator[None]:
    """Compute in a `with` block as if nothing were recorded."""
    recorder, table = here.recorder, Storage.by_device
    plain = table
    while isinstance(plain, Backends):
        plain = plain.before
    here.recorder, Storage.by_device = None, plain
    try:
        yield
    finally:
        here.recorder, Storage.by_device = recorder, table
