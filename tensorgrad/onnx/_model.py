"""A model made ready to be traced, and as it was afterwards: its parameters, buffers, modes and attributes."""
from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from ..api import default_generator
from ..core.dispatch import wrap
from ..core.mode import no_grad
from ..core.tape import TensorBase
from ..nn import Module
from ..storage.base import Storage
from ..utils._pytree import tree_flatten, tree_unflatten
from ._trace import Memory, Trace, Traced, TracedStorage, Value, current, here, named

Axes = Mapping[tuple[int, int], int]         # (input, axis) → size


class Traces:
    """What one run of a model gave: the steps, its inputs and its outputs."""

    def __init__(self, trace: Trace, inputs: list[Value], outputs: list[Value], parameters: list[Value]) -> None:
        self.steps, self.inputs, self.outputs, self.parameters = trace.steps, inputs, outputs, parameters


def trace(model: Any, leaves: Sequence[Any], spec: Any, sizes: Axes) -> Traces:
    """Run a model on example inputs, resized along some axes, and write down what it computes."""
    with ExitStack() as stack:
        stack.enter_context(tracing())
        parameters = stack.enter_context(known(model)) if isinstance(model, Module) else []
        tensors = [leaf for leaf in leaves if isinstance(leaf, TensorBase)]
        arrays = [_resized(t, {axis: n for (i, axis), n in sizes.items() if i == place}) for place, t in enumerate(tensors)]
        inputs = [Value(a, known=False) for a in arrays]
        given = iter([wrap(named(a, value), TracedStorage()) for a, value in zip(arrays, inputs, strict=True)])
        args, kwargs = tree_unflatten([next(given) if isinstance(leaf, TensorBase) else leaf for leaf in leaves], spec)
        made = model(*args, **kwargs)
        outputs = [current(leaf.array) for leaf in tree_flatten(made)[0] if isinstance(leaf, TensorBase)]
        return Traces(here.trace, inputs, outputs, parameters)  # type: ignore[arg-type]


def _resized(tensor: Any, sizes: Mapping[int, int]) -> Any:
    """The values of an example input, repeated or cut to other sizes."""
    array = np.array(type(tensor._storage).host(tensor.array))
    for axis, size in sizes.items():
        array = np.take(array, np.arange(size) % array.shape[axis], axis=axis)
    return np.ascontiguousarray(array) if array.ndim else array


class PerThread(dict[str, Any]):
    """Which backends devices have: for one thread, another for the CPU and for CUDA."""

    def __init__(self, backends: Any, thread: int) -> None:
        super().__init__(backends)
        self.thread = thread

    def get(self, name: str, default: Any = None) -> Any:
        return TracedStorage if name.partition(":")[0] in ("cpu", "cuda") and threading.get_ident() == self.thread else super().get(name, default)


lock = threading.RLock()


@contextmanager
def tracing() -> Iterator[None]:
    """Tensors made in this thread are traced; random numbers do not move on."""
    with lock, no_grad():
        backends, state = Storage.by_device, default_generator._state()
        Storage.by_device = PerThread(backends, threading.get_ident())
        here.trace = Trace()
        try:
            yield
        finally:
            backends.update(Storage.by_device)           # what other threads registered meanwhile
            here.trace, Storage.by_device = None, backends
            default_generator._set_state(state)


@contextmanager
def known(model: Any) -> Iterator[list[Value]]:
    """A model whose tensors are constants of the graph, under the names that its state has, and whose modules tell when they run."""
    kept = [(module, dict(module.__dict__), {k: list(v.items()) for k, v in module.__dict__.items() if isinstance(v, dict)}) for module in model.modules()]
    before, handles, values = [], [], []
    try:
        for tensor, name, parameter in list(_tensors(model)):
            array = np.asarray(type(tensor._storage).host(tensor.array))
            array = array if parameter else array.copy()
            before.append((tensor, tensor.array, tensor._storage))
            values.append(Value(array, name=name))
            tensor.array = named(array, values[-1], memory=Memory(name if parameter else None))
            tensor._storage = TracedStorage()
        for path, module in model.named_modules():
            handles.append(module.register_forward_pre_hook(_entering(path)))
            handles.append(module.register_forward_hook(_leaving, always_call=True))
        yield values
    finally:
        for handle in handles:
            handle.remove()
        for tensor, array, storage in before:
            tensor.array, tensor._storage = array, storage
        for module, attributes, tables in kept:
            for name, table in tables.items():
                attributes[name].clear()
                attributes[name].update(table)
            module.__dict__.clear()
            module.__dict__.update(attributes)


def _entering(path: str) -> Any:
    return lambda module, args: here.trace.scopes.append(path)


def _leaving(module: Any, args: Any, result: Any) -> None:
    here.trace.scopes.pop()


def _tensors(model: Any) -> Iterator[tuple[Any, str, bool]]:
    """All tensors that a model holds, once each: parameters, buffers, and those in attributes and their lists."""
    seen: set[int] = set()

    def within(value: Any, name: str, parameter: bool) -> Iterator[tuple[Any, str, bool]]:
        if isinstance(value, TensorBase):
            if id(value) not in seen and type(value.array) is not Traced and value._storage.device.type != "meta" and not value._storage.rank:
                seen.add(id(value))
                yield value, name, parameter
        elif isinstance(value, (list, tuple)):
            for i, part in enumerate(value):
                yield from within(part, f"{name}.{i}", False)
        elif isinstance(value, dict):
            for key, part in value.items():
                yield from within(part, f"{name}.{key}", False)
    modules = list(model.named_modules())
    for table in ("_parameters", "_buffers"):
        for path, module in modules:
            for name, value in module.__dict__[table].items():
                yield from within(value, f"{path}.{name}" if path else name, table == "_parameters")
    for path, module in modules:
        for name, value in module.__dict__.items():
            if not name.startswith("_") or isinstance(value, TensorBase):
                yield from within(value, f"{path}.{name}" if path else name, False)
