"""Files of compiled programs: `torch.compiler.save` and `load`.

A file is a ZIP archive of `program.json` (the lowered graph, how arguments and results are nested) and one entry of
bytes per tensor. Nothing in it is code: nodes name ops of the table, and a loaded graph is lowered again, so that each
op checks its parameters and infers its shapes before anything runs.
"""
from __future__ import annotations

import json
import operator
import zipfile
from collections.abc import Callable
from io import BytesIO
from math import prod
from os import PathLike
from typing import Any

import numpy as np

from ..api.creation import as_tensor
from ..core.dispatch import wrap
from ..core.mode import mode, no_grad
from ..core.tape import TensorBase
from ..dtype import FROM_NUMPY
from ..dtype import dtype as Dtype
from ..graph.lowered import Lowered
from ..graph.lowering import lower
from ..graph.node import Node
from ..ops.base import OPS, Op
from ..ops.indexing import ARRAY
from ..serialization._atomic import replacing
from ..storage.base import lock
from ..storage.cpu import NumpyStorage
from ..utils._pytree import tree_flatten, treespec_dumps, treespec_loads
from .compiled import GRAD, described, name_of
from .entries import Entry
from .executable import build
from .tracing import trace

FORMAT, MOST_BYTES = "tensorgrad program 1", 1 << 30        # of program.json
DTYPES = {kind.name: held for held, kind in FROM_NUMPY.items()}
NUMBERS = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}


class Artefact:
    """A compiled program from a file: called like the program, with inputs of the shapes and dtypes it was saved for.

    Inputs that require gradients are refused while gradients are recorded.
    """

    def __init__(self, entry: Entry, graph: Lowered, name: str, inputs: list[tuple[Any, ...]], leaves: list[Any],
                 spec: Any) -> None:
        self.entry, self.graph, self.name, self.inputs, self.leaves, self.spec = (entry, graph, name, inputs, leaves,
                                                                                  spec)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, spec = tree_flatten((args, kwargs))
        tensors = [leaf for leaf in leaves if isinstance(leaf, TensorBase)]
        others = [None if isinstance(leaf, TensorBase) else [leaf] for leaf in leaves]
        if spec != self.spec or others != self.leaves:
            raise RuntimeError(f"{self.name} was saved for arguments that are nested otherwise, or for other constants")
        for tensor, (shape, dtype) in zip(tensors, self.inputs, strict=True):
            if type(tensor._storage) is not NumpyStorage or (tensor.array.shape, tensor.array.dtype) != (shape, dtype):
                raise RuntimeError(f"{self.name} was saved for an input {FROM_NUMPY[dtype]}{list(shape)}, not "
                                   f"{described(tensor)} on {tensor.device}")
        if mode.grad and any(tensor.requires_grad for tensor in tensors):
            raise RuntimeError(f"{self.name}: {GRAD.text}")
        return self.entry.results([tensor.array for tensor in tensors], tensors)

    def __repr__(self) -> str:
        return f"Artefact({self.name}: {self.entry.inputs})"


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def save(compiled: Any, path: str | PathLike[str] | Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> None:
    """Write what a function or module computes for arguments like these to a file, with its tensors.

    The file serves inputs of these shapes, also if the program was compiled for many sizes.

    Input: a program, compiled or not; a path, or a file that is open for writing; its arguments, a tuple
    Errors: RuntimeError, with the reason, for a program that a graph cannot hold, or that draws random numbers;
        NotImplementedError for steps, arguments and results that files do not have

    >>> import tensorgrad as torch
    >>> from io import BytesIO
    >>> file = BytesIO()
    >>> torch.compiler.save(torch.nn.ReLU(), file, (torch.ones(2),))
    >>> torch.compiler.load(file)(torch.tensor([-1., 2.]))
    tensor([0., 2.])
    """
    from .._dynamo.eval_frame import OptimizedModule, innermost_fn
    program = compiled._orig_mod if isinstance(compiled, OptimizedModule) else innermost_fn(compiled)
    args = args if isinstance(args, tuple) else (args,)
    with lock, no_grad():
        traced = trace(program, args, kwargs or {})
    if traced.graph is None:
        raise RuntimeError(f"{name_of(program)} cannot be saved as one graph: it {traced.reason}")
    leaves, spec = tree_flatten((args, kwargs or {}))
    tensors = [np.ascontiguousarray(type(t._storage).host(t.array)) for t in traced.graph.tensors.values()]
    told = {
        "format": FORMAT, "name": name_of(program), "arguments": json.loads(treespec_dumps(spec)),
        "leaves": [None if isinstance(leaf, TensorBase) else [encoded(leaf)] for leaf in leaves],
        "inputs": [[list(leaf.array.shape), FROM_NUMPY[leaf.array.dtype].name] for leaf in leaves
                   if isinstance(leaf, TensorBase)],
        "result": json.loads(treespec_dumps(traced.spec)), "slots": [[kind, encoded(value)] for kind, value in
                                                                     traced.slots],
        "strides": traced.strides, "nodes": [_written(node) for node in traced.graph.nodes],
        "tensors": [[name, list(array.shape), FROM_NUMPY[array.dtype].name]
                    for name, array in zip(traced.graph.tensors, tensors, strict=True)]}
    data = BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("program.json", json.dumps(told, allow_nan=False))
        for i, array in enumerate(tensors):
            archive.writestr(f"tensors/{i}", _little(array).tobytes())
    if isinstance(path, (str, PathLike)):
        with replacing(path) as file:
            file.write(data.getvalue())
    else:
        path.write(data.getvalue())


def _written(node: Node) -> list[Any]:
    """Return a node as JSON: [name, kind, target, arguments, parameters]."""
    target = node.target
    if node.op == "call_function":
        if isinstance(target, type) and issubclass(target, Op) and not target.by_memory:
            target = {"op": target.opname}
        elif target is operator.getitem:
            target = {"op": None}
        else:
            raise NotImplementedError(f"torch.compiler.save: files have no {getattr(target, '__name__', target)}, "
                                      f"at {node.meta.get('source')}")
    return [node.name, node.op, target, encoded(tuple(node.args)), encoded(dict(node.kwargs))]


def encoded(value: Any) -> Any:
    """Return a value of a graph as JSON has it: itself, or an object with one key that names its kind."""
    if value is None or type(value) in (bool, str, int):
        return value
    if type(value) is float:
        return value if abs(value) < float("inf") else {"float": str(value)}
    if isinstance(value, Node):
        return {"node": value.name}
    if isinstance(value, (tuple, list)):
        return {"tuple" if isinstance(value, tuple) else "list": [encoded(part) for part in value]}
    if isinstance(value, dict) and all(type(key) is str for key in value):
        return {"dict": {key: encoded(part) for key, part in value.items()}}
    if isinstance(value, slice):
        return {"slice": [encoded(part) for part in (value.start, value.stop, value.step)]}
    if value is Ellipsis or value is ARRAY:
        return {"mark": "..." if value is Ellipsis else "array"}
    if isinstance(value, np.dtype):
        return {"dtype": FROM_NUMPY[value].name}
    if isinstance(value, Dtype):
        return {"tensor dtype": value.name}
    if isinstance(value, type) and issubclass(value, Op):
        return {"op": value.opname}
    if type(value) is complex:
        return {"complex": [encoded(value.real), encoded(value.imag)]}
    raise NotImplementedError(f"torch.compiler.save: files have no values of class {type(value).__name__}")


def _little(array: np.ndarray) -> np.ndarray:
    """Return an array in little-endian order; those of bfloat16 and float8 are bytes in the machine's."""
    return array.astype(array.dtype.newbyteorder("<"), copy=False) if array.dtype.kind != "V" else array


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def load(path: str | PathLike[str] | Any) -> Artefact:
    """Return the compiled program in a file that `save` wrote. No code from the file runs.

    Input: a path, or a file that is open for reading
    Errors: ValueError for a file that is no such archive, damaged or malformed
    """
    if not isinstance(path, (str, PathLike)):
        path.seek(0)
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.getinfo("program.json").file_size > MOST_BYTES:
                raise ValueError("program.json is too large")
            told = json.loads(archive.read("program.json"))
            if not isinstance(told, dict) or told.get("format") != FORMAT:
                raise ValueError("the format is another one")
            return _read(told, archive)
    except (OSError, NotImplementedError) as error:
        if isinstance(error, OSError):
            raise
        raise ValueError(f"torch.compiler.load: {error}") from None
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RuntimeError, AssertionError, RecursionError,
            MemoryError, OverflowError, zipfile.BadZipFile, ArithmeticError) as error:
        raise ValueError(f"torch.compiler.load: this is no valid program: {error}") from error


def _read(told: Any, archive: zipfile.ZipFile) -> Artefact:
    inputs = [(tuple(_sizes(shape)), DTYPES[dtype]) for shape, dtype in told["inputs"]]
    decode = _Decoder()
    leaves = [None if leaf is None else [decode(part) for part in leaf] for leaf in told["leaves"]]
    tensors = {}
    for i, (name, shape, dtype) in enumerate(told["tensors"]):
        tensors[_text(name)] = _tensor(archive, f"tensors/{i}", _sizes(shape), DTYPES[dtype])
    graph = _graph(told["nodes"], tensors, decode)
    examples = [wrap(np.broadcast_to(np.zeros((), dtype), shape), NumpyStorage()) for shape, dtype in inputs]
    graph.spec = tree_flatten((tuple(examples), {}))[1]
    with lock, no_grad():
        lowered = lower(graph, tuple(examples))         # infers all shapes, and checks parameters
    if not all(isinstance(leaf, Node) for leaf in lowered.output_node().args[0]):
        raise ValueError("a result is no tensor")
    slots = [(_one_of(kind, ("made", "given", "held")), decode(value)) for kind, value in told["slots"]]
    counts = {"made": sum(isinstance(leaf, Node) for leaf in lowered.output_node().args[0]), "given": len(inputs)}
    if any(kind != "held" and not (type(value) is int and 0 <= value < counts[kind]) for kind, value in slots):
        raise ValueError("a result is none of the graph's")
    spec, arguments = _spec(told["result"]), _spec(told["arguments"])
    if spec.num_leaves != len(slots) or arguments.num_leaves != len(leaves) or (
            sum(leaf is None for leaf in leaves) != len(inputs)):
        raise ValueError("leaves are missing")
    strides = [tuple(map(int, steps)) for steps in told["strides"]]
    shapes = [node.meta["shape"] for node in lowered.output_node().args[0]]
    if [len(steps) for steps in strides] != [len(shape) for shape in shapes]:
        raise ValueError("strides do not fit the results")
    entry = Entry(build(lowered), slots, spec, strides, lowered.tensors)
    entry.inputs = ", ".join(described(example) for example in examples)
    return Artefact(entry, lowered, _text(told["name"]), inputs, leaves, arguments)


def _tensor(archive: zipfile.ZipFile, place: str, shape: list[int], dtype: Any) -> Any:
    nbytes = prod(shape) * dtype.itemsize
    if archive.getinfo(place).file_size != nbytes:
        raise ValueError(f"{place} does not have {nbytes} bytes")
    stored = dtype if dtype.kind == "V" else dtype.newbyteorder("<")
    array = np.frombuffer(bytearray(archive.read(place)), stored).reshape(shape)
    return as_tensor(array.astype(dtype, copy=False))


def _graph(nodes: Any, tensors: dict[str, Any], decode: Callable[[Any], Any]) -> Lowered:
    """Return a graph whose nodes name ops of the table, in the file's order."""
    graph = Lowered()
    graph.tensors = tensors
    known: dict[str, Node] = decode.nodes  # type: ignore[attr-defined]
    for name, kind, target, args, kwargs in nodes:
        args, kwargs = decode(args), decode(kwargs)
        if kind == "placeholder":
            node = graph.placeholder(_text(target))
        elif kind == "get_attr":
            tensors[target]
            node = graph.get_attr(target)
        elif kind == "output":
            if not all(isinstance(leaf, Node) for leaf in args[0]):
                raise ValueError("a result is no node")
            node = graph.output(tuple(args[0]))
        elif kind == "call_function":
            op = operator.getitem if target["op"] is None else OPS[target["op"]]
            if op is operator.getitem:
                if type(args[1]) is not int:
                    raise ValueError("an index of results is no integer")
            elif op.by_memory:
                raise ValueError(f"{op.opname} is not read from files")
            node = graph.call_function(op, args, kwargs)
        else:
            raise ValueError(f"a node is {kind!r:.40}")
        known[_text(name)] = node
    graph.lint()
    return graph


class _Decoder:
    """Returns values from what `encoded` made of them. Nodes are those that were read before."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}

    def __call__(self, value: Any) -> Any:
        if value is None or type(value) in (bool, str, int, float):
            return value
        (kind, told), = value.items()
        if kind in ("tuple", "list", "slice"):
            return {"tuple": tuple, "list": list, "slice": lambda parts: slice(*parts)}[kind](list(map(self, told)))
        if kind == "complex":
            return complex(*map(self, told))
        if kind == "dict":
            return {_text(key): self(part) for key, part in told.items()}
        tables = {"node": self.nodes, "float": NUMBERS, "mark": {"...": Ellipsis, "array": ARRAY}, "dtype": DTYPES,
                  "tensor dtype": {each.name: each for each in FROM_NUMPY.values()}, "op": OPS}
        return tables[kind][told]  # type: ignore[index]


def _spec(told: Any) -> Any:
    if "defaultdict" in json.dumps(told):                # its factory would be named by the file
        raise ValueError("a defaultdict is not read from files")
    return treespec_loads(json.dumps(told))


def _sizes(shape: Any) -> list[int]:
    if not isinstance(shape, list) or not all(type(n) is int and 0 <= n < 1 << 48 for n in shape):
        raise ValueError("a shape is no list of sizes")
    return shape


def _text(value: Any) -> str:
    if type(value) is not str:
        raise ValueError("a name is no text")
    return value


def _one_of(value: Any, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise ValueError(f"{value!r:.40} is none of {', '.join(allowed)}")
    return str(value)
