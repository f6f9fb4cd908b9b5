"""Lower a program to a graph of the table's ops: its computation for inputs of given shapes, without Python's
control flow."""
from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from typing import Any

import numpy as np

from ..api.random import default_generator
from ..core.dispatch import fresh, wrap
from ..core.mode import no_grad
from ..core.tape import Leaf, TensorBase, node_of
from ..interpret.symbol import Symbol
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ..storage.base import standing_in
from ..storage.cpu import NumpyStorage
from ..utils._pytree import tree_flatten, tree_unflatten
from .backend import RecordingStorage
from .graph import Graph
from .inputs import input_names, tensors_in
from .lowered import Lowered
from .recorded import Memory, Recorded, clock
from .recorder import Recorder, Scope, here
from .recording import CLONE, Scalars, argument
from .running import run
from .steps import Draw
from .symbolic_sizes import Shape
from .symbolic_sizes import Sizes as SymbolicSizes

CONSTANTS = "_constant_tensors"                # the attribute of a module that names those of its tensors
Sizes = Mapping[tuple[int, int], int]         # (input, axis) → size
Symbols = tuple[SymbolicSizes, Collection[tuple[int, int]]]


def lower(program: Any, inputs: Any = (), kwargs: dict[str, Any] | None = None, *,
          whole: Callable[..., bool] | None = None, reading: Callable[[str], None] | None = None, fold: bool = True,
          sizes: Sizes | None = None, effects: bool = False, branches: bool = False,
          scalars: Scalars | None = None, symbols: Symbols | None = None,
          gradients: bool = False) -> Lowered:
    """Return the graph of ops of the table that a module, function or graph computes for inputs like these.

    The program runs on tensors with a shape and a dtype but no values; only values that no input affects are computed.
    The graph has a placeholder for each tensor among the arguments, at any depth; a `get_attr` for each parameter,
    buffer and constant; and a node for each application of an op, whose `target` is the op's class. `meta` of a node
    has `shape`, `dtype`, `scope` (the path of the module that ran), `source` (the line of the program) and, if it is
    known, `value`. Writes in place are functions (`set_view`), random numbers are drawn when the graph runs, the model
    is not changed.

    A program that reads values raises ReadsValues, which names the line. With `reading`, it runs on the inputs' values,
    and `reading(line)` is called for each such line: the graph is then that of the path taken. An application of an op
    is one node if `whole(op, operands, params)` is true, else the nodes of its definition. Constants are folded unless
    `fold` is false. `sizes`, {(input, axis): size}, override sizes of the inputs. With `effects` the graph's result is
    (the program's, {buffer: its last value}, {index of an input: its last value}), of those that the program writes to.
    With `symbols`, (a log, {(input, axis)}), these sizes stay symbolic (`symbolic_sizes`), and `Replay` makes graphs.
    With `gradients`, the program may compute gradients by autograd. With `branches`, `torch.cond` and `while_loop` on
    values of the inputs are nodes, else ReadsValues; with `scalars`, so are whole numbers that the program reads.

    >>> import tensorgrad as torch
    >>> from tensorgrad.graph import lower
    >>> graph = lower(torch.nn.Linear(2, 3), torch.ones(4, 2))
    >>> [(node.op, node.name, node.meta["shape"]) for node in graph.nodes if node.op != "output"]
    [('placeholder', 'input_1', (4, 2)), ('get_attr', 'weight', (3, 2)), ('get_attr', 'bias', (3,)), ('call_function',
    'linear', (4, 3))]
    """
    args, kwargs = inputs if isinstance(inputs, tuple) else (inputs,), dict(kwargs or {})
    leaves, spec = tree_flatten((args, kwargs))
    graph = Lowered()
    graph.spec = spec
    with ExitStack() as stack:
        recorder = stack.enter_context(recording(Recorder(graph, RecordingStorage, reading, whole, fold),
                                                gradients))
        call, names, module = _program(program, args, kwargs)
        recorder.branches, recorder.scalars = branches, scalars
        tensors = _placeholders(recorder, names, leaves, sizes or {})
        if symbols is not None:
            recorder.sizes = symbols[0]
            _make_symbolic(recorder.sizes, tensors, symbols[1])
        for tensor, leaf in zip(tensors, (leaf for leaf in leaves if isinstance(leaf, TensorBase)), strict=True):
            if gradients and node_of(leaf) is not None and node_of(leaf).requires_grad:
                tensor._node = Leaf(tensor)
        first, given = [each.array.node for each in tensors], iter(tensors)
        stack.enter_context(recorded(tensors_of(module) if isinstance(module, Module)
                                     else getattr(program, "tensors", {}).items()))
        if isinstance(module, Module):
            stack.enter_context(left_as_it_was(module))
        recorder.begun = next(clock)
        args, kwargs = tree_unflatten([next(given) if isinstance(leaf, TensorBase) else leaf for leaf in leaves], spec)
        result = call(*args, **kwargs)
        if effects:
            result = (result, {name: graph.tensors[name] for name in recorder.written},
                      {i: each for i, (each, node) in enumerate(zip(tensors, first, strict=True))
                       if each.array.node is not node})
        _finish(recorder, result, fold or effects)
    for node in recorder.constants.values():
        graph.tensors[node.target] = fresh(node.meta["value"], NumpyStorage)
    graph.written, graph.relied = tuple(recorder.written), tuple(recorder.relied)
    return graph


def _program(program: Any, args: Any, kwargs: Any) -> tuple[Any, list[str], Any]:
    """Return (the callable to run, the names of its inputs, the module that owns its tensors)."""
    if not isinstance(program, Graph) or isinstance(program, Lowered):
        owner = getattr(program, "__self__", program)           # of a module's method: its parameters are the graph's
        return program, input_names(program, args, kwargs), owner if isinstance(owner, Module) else program
    inputs = tensors_in(args)
    names = [node.target for node in program.nodes if node.op == "placeholder"]
    return (partial(run, program), names if len(names) == len(inputs) else [f"input_{i}" for i in range(len(inputs))],
            program.owning_module)


def _placeholders(recorder: Recorder, names: Sequence[str], leaves: Any, sizes: Sizes) -> list[Any]:
    """Return recorded tensors in place of the inputs, with example values, or with shapes only."""
    tensors = [leaf for leaf in leaves if isinstance(leaf, TensorBase)]
    made = []
    for place, (name, tensor) in enumerate(zip(names, tensors, strict=True)):
        axes = {axis: n for (i, axis), n in sizes.items() if i == place}
        if recorder.reading is None:
            strides = None if axes else getattr(tensor.array, "strides", None)
            array: Any = Symbol(tuple(axes.get(axis, n) for axis, n in enumerate(tensor.array.shape)),
                                tensor.array.dtype, strides)
        else:
            array = _resized(np.array(type(tensor._storage).host(tensor.array)), axes)
        node = recorder.described(recorder.graph.placeholder(name), array, False)
        made.append(wrap(Recorded(array, node, False), RecordingStorage()))
    return made


def _make_symbolic(sizes: SymbolicSizes, tensors: Sequence[Any], axes: Collection[tuple[int, int]]) -> None:
    """Make these sizes of recorded inputs symbolic."""
    for i, tensor in enumerate(tensors):
        if any(place == i for place, _ in axes):
            array = tensor.array
            array.shape = array.node.meta["shape"] = Shape(
                sizes.of(array.node, "shape", axis, n) if (i, axis) in axes else n
                for axis, n in enumerate(array.shape))


def _resized(array: Any, sizes: Mapping[int, int]) -> Any:
    """Repeat or cut example values to other sizes."""
    for axis, size in sizes.items():
        array = np.take(array, np.arange(size) % array.shape[axis], axis=axis)
    return np.ascontiguousarray(array) if array.ndim else array


def _finish(recorder: Recorder, result: Any, aliases: bool) -> None:
    """Record the outputs, and drop steps that they do not need, except random numbers: later ones depend on them.

    A new tensor that equals an input or constant gets its own node if `aliases`.
    """
    leaves, spec = tree_flatten(result)
    seen: dict[Any, Any] = {}
    for i, leaf in enumerate(leaves):
        if not isinstance(leaf, TensorBase):
            continue
        array = leaf.array if type(leaf.array) is Recorded else RecordingStorage.asarray(leaf.array)
        node = argument(array)
        if aliases and (node.op != "call_function" and array.made > recorder.begun
                        or seen.setdefault(node, array) is not array):
            node = recorder.step(CLONE, (node,), {}, [array.inner], array.known)[0]
        leaves[i] = node
    recorder.graph.output(tree_unflatten(leaves, spec))
    if recorder.fold and recorder.sizes is None:
        for node in reversed(list(recorder.graph.nodes)):
            if not node.users and node.op in ("call_function", "get_attr") and not isinstance(node.target, Draw):
                recorder.graph.erase_node(node)


# ── the run ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def recording(recorder: Recorder, gradients: bool = False) -> Iterator[Recorder]:
    """Record tensors made in this thread until the block ends; random generators do not advance."""
    with standing_in(RecordingStorage, "cpu", "cuda"), nullcontext() if gradients else no_grad():
        before, state = here.recorder, default_generator._place()
        here.recorder = recorder
        try:
            yield recorder
        finally:
            here.recorder = before
            default_generator._return_to(state)


@contextmanager
def recorded(tensors: Iterable[tuple[str, Any]]) -> Iterator[None]:
    """Replace a program's tensors, by name, by known arrays of the graph until the block ends.

    Writes to parameters are refused.
    """
    recorder, before = here.recorder, []
    try:
        for name, tensor in list(tensors):
            known = tensor._storage.device.type != "meta"
            array = (np.asarray(type(tensor._storage).host(tensor.array)) if known
                     else Symbol(tensor.array.shape, tensor.array.dtype, None))
            before.append((tensor, tensor.array, tensor._storage, tensor._node))
            recorder.graph.tensors[name] = tensor
            node = recorder.described(recorder.graph.get_attr(name), array, known)
            node.meta["state"] = True
            tensor.array = Recorded(array, node, known, memory=Memory(name, fixed=isinstance(tensor, Parameter)))
            tensor._storage = RecordingStorage()
            if type(tensor._node) is Leaf:
                tensor._node = Leaf(tensor)
        yield
    finally:
        for tensor, array, storage, step in before:
            tensor.array, tensor._storage, tensor._node = array, storage, step


@contextmanager
def left_as_it_was(model: Any) -> Iterator[None]:
    """Let a model's modules report when they run, and restore their attributes, parameters and hooks after the
    block.
    """
    kept = [(module, dict(module.__dict__),
             {k: list(v.items()) for k, v in module.__dict__.items() if isinstance(v, dict)})
            for module in model.modules()]
    handles = []
    try:
        for path, module in model.named_modules():
            handles.append(module.register_forward_pre_hook(_entering(path)))
            handles.append(module.register_forward_hook(_leaving, always_call=True))
        yield
    finally:
        for handle in handles:
            handle.remove()
        for module, attributes, tables in kept:
            for name, table in tables.items():
                attributes[name].clear()
                attributes[name].update(table)
            module.__dict__.clear()
            module.__dict__.update(attributes)


def _entering(path: str) -> Any:
    def enter(module: Any, args: Any) -> None:
        recorder = here.recorder
        recorder.scopes.append(Scope(path, recorder.calls.get(path, 0), recorder.scopes[-1]))
        recorder.calls[path] = recorder.calls.get(path, 0) + 1
    return enter


def _leaving(module: Any, args: Any, result: Any) -> None:
    here.recorder.scopes.pop()


def tensors_of(model: Any) -> Iterator[tuple[str, Any]]:
    """Yield (name, tensor) of the distinct tensors of a model: parameters, buffers, and tensors in attributes and
    their lists. Tensors that a module lists as its CONSTANTS are left out."""
    seen: set[int] = set()

    def within(value: Any, name: str) -> Iterator[tuple[str, Any]]:
        if isinstance(value, TensorBase):
            if (id(value) not in seen and type(value.array) is not Recorded and not value._storage.rank
                    and (value._storage.device.type != "meta" or here.recorder is not None and here.recorder.branches)):
                seen.add(id(value))
                yield name, value
        elif isinstance(value, (list, tuple)):
            for i, part in enumerate(value):
                yield from within(part, f"{name}.{i}")
        elif isinstance(value, dict):
            for key, part in value.items():
                yield from within(part, f"{name}.{key}")
    modules = list(model.named_modules())
    for table in ("_parameters", "_buffers"):
        for path, module in modules:
            fixed = module.__dict__.get(CONSTANTS, ())
            for name, value in module.__dict__[table].items():
                if name in fixed:
                    continue
                yield from within(value, f"{path}.{name}" if path else name)
    for path, module in modules:
        for name, value in module.__dict__.items():
            if not name.startswith("_") or isinstance(value, TensorBase):
                yield from within(value, f"{path}.{name}" if path else name)
