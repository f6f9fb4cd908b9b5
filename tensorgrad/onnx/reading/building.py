"""Turn the graph of an ONNX file into a program.

A node becomes a call of the operator's function. Values keep their names. Initializers become parameters, buffers or
constants of the module; graphs in attributes become bodies with their own module; functions that the file defines are
written out where they are called.
"""
from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Mapping
from operator import getitem
from typing import Any

import numpy as np

from ...core.dispatch import wrap
from ...graph import Graph, Node
from ...graph.lowering import CONSTANTS
from ...nn import Module, Parameter
from ...storage.cpu import NumpyStorage
from ..errors import InvalidModelError, UnsupportedModelError
from ..operators import find
from ..operators._table import Operator
from .messages import Message
from .model import BatchNorm, Body, Bound, Dropout, OnnxModel
from .tensors import Files
from .types import signature

MOST = 1_000_000        # nodes of a function, once those that it calls are written out
DEEPEST = 64            # functions that call each other
LAYERS = {"BatchNormalization": BatchNorm, "Dropout": Dropout}


class Scope:
    """The values that nodes of a graph can name: its own, then those of the graphs around it."""

    def __init__(self, graph: Graph, module: Any, outer: Scope | None = None) -> None:
        self.graph, self.module, self.outer = graph, module, outer
        self.values: dict[str, Any] = {"": None}
        self.taken: dict[str, Node] = {}        # {name in a graph around this one: the input with its value}
        self.last: Node | None = None           # the graph's last input

    def find(self, name: str) -> Any:
        """Return the node of a value. InvalidModelError if no node before gives it."""
        if name in self.values:
            return self.values[name]
        if self.outer is None or not self.outer.knows(name):
            raise InvalidModelError(f"the value {name!r} is used before a node gives it: the nodes are not in order, "
                                    f"depend on each other, or one is missing")
        with self.graph.inserting_after(self.last):
            self.last = self.values[name] = self.taken[name] = self.graph.placeholder(f"outer_{len(self.taken)}")
        return self.last

    def knows(self, name: str) -> bool:
        return name in self.values or self.outer is not None and self.outer.knows(name)

    def define(self, name: str, value: Any) -> None:
        if name in self.values and name:
            raise InvalidModelError(f"the value {name!r} is given twice")
        if name:
            self.values[name] = value


class Builder:
    """Builds the module of a model."""

    def __init__(self, model: Message, files: Files, operators: Mapping[str, Callable[..., Any]]) -> None:
        self.files, self.own = files, operators
        self.versions = versions(model.opset_import)
        self.functions = {(f.domain, f.name, f.overload): f for f in model.functions}
        self.signatures: dict[int, inspect.Signature] = {}      # of operators, by the function's identity
        self.lengths: dict[tuple[str, str, str], int] = {}
        self.unsupported: Counter[str] = Counter()
        self.count = 0

    def build(self, main: Message) -> OnnxModel:
        """Return the module of the main graph."""
        given = {t.name for t in main.initializer} | {s.values.name for s in main.sparse_initializer if s.values}
        inputs = [value for value in main.input if value.name not in given]
        module = OnnxModel(Graph(), [signature(value) for value in inputs], [value.name for value in main.output])
        self.fill(Scope(module.graph, module), main, inputs)
        if self.unsupported:
            raise UnsupportedModelError(self.unsupported)
        return module.eval()

    def fill(self, scope: Scope, graph: Message, inputs: list[Message]) -> None:
        """Write a graph's inputs, tensors, nodes and outputs into the scope's graph."""
        for value in inputs:
            scope.last = scope.graph.placeholder(value.name)
            scope.define(value.name, scope.last)
        self.tensors(scope, graph)
        for node in graph.node:
            self.node(scope, node, self.versions, {})
        scope.graph.output([scope.find(value.name) for value in graph.output])
        scope.module.complete()

    # ── tensors ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def tensors(self, scope: Scope, graph: Message) -> None:
        """Give the module the initializers of its graph."""
        arrays = {t.name: self.files.array(t) for t in graph.initializer}
        arrays |= {s.values.name: self.files.sparse(s) for s in graph.sparse_initializer if s.values}
        uses = self.uses(graph)
        for name, array in arrays.items():
            if name in scope.values:
                raise InvalidModelError(f"the value {name!r} is given twice")
            scope.define(name, self.tensor(scope, name, array, uses.get(name, set())))

    def uses(self, graph: Message) -> dict[str, set[str]]:
        """Return {value: how it is used}: "fixed", "buffer" for statistics, or "free"."""
        found: dict[str, set[str]] = {}
        for node in graph.node:
            known = find(node.domain, node.op_type, self.versions.get(node.domain, 1))
            for place, name in enumerate(node.input):
                fixed = known is not None and place in known.fixed
                found.setdefault(name, set()).add(("buffer" if node.op_type == "BatchNormalization" else "fixed")
                                                  if fixed else "free")
        return found

    def tensor(self, scope: Scope, name: str, array: Any, uses: set[str]) -> Node:
        """Add a tensor to the module: a parameter, a buffer or a constant."""
        tensor = wrap(array, NumpyStorage())
        learnt = array.dtype.kind == "f" and array.ndim and uses <= {"free"} and finite(array)
        owner, last, path = place_of(scope.module, name)
        if learnt:
            owner.register_parameter(last, Parameter(tensor))
        else:
            owner.register_buffer(last, tensor, persistent="buffer" in uses)
            if "buffer" not in uses:
                owner.__dict__.setdefault(CONSTANTS, set()).add(last)
        return scope.graph.get_attr(path)

    # ── nodes ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def node(self, scope: Scope, node: Message, opsets: dict[str, int], given: Mapping[str, Message]) -> None:
        """Write a node: a call of its operator, or the nodes of its function.

        given: the attributes of the function that the node is in.
        """
        self.count += 1
        values = [scope.find(name) for name in node.input]
        domain = "" if node.domain == "ai.onnx" else node.domain
        function = self.functions.get((node.domain, node.op_type, node.overload))
        attributes = {a.name: a for a in (resolved(a, given) for a in node.attribute) if a is not None}
        if function is not None:
            self.write_out(scope, function, values, node.output, attributes)
            return
        own = self.own.get(f"{domain}::{node.op_type}" if domain else node.op_type)
        known = (Operator(own, 1, (), False) if own is not None
                 else find(domain, node.op_type, opsets.get(domain, opsets.get(node.domain, 1))))
        if known is None:
            self.unsupported[f"{domain}::{node.op_type}" if domain else node.op_type] += 1
            results: list[Any] = [None] * len(node.output)
        else:
            keywords = {name: self.attribute(scope, a) for name, a in attributes.items()}
            results = self.results(scope, node, self.called(scope, node, known, values, keywords))
        for name, result in zip(node.output, results, strict=True):
            scope.define(name, result)

    def called(self, scope: Scope, node: Message, known: Operator, values: list[Any], keywords: dict[str, Any]) -> Node:
        """Write the call of an operator."""
        layer = LAYERS.get(node.op_type)
        used = sum(map(bool, node.output))
        plain = used <= 1 and not keywords.get("training_mode") and not any(values[2:3] * (node.op_type == "Dropout"))
        if layer is not None and plain and not node.domain:
            owner, last, path = place_of(scope.module, node.name or f"{node.op_type}_{self.count}")
            owner.add_module(last, layer(**keywords))
            return scope.graph.call_module(path, tuple(values))
        if known.outputs:
            keywords["outputs"] = len(node.output)
        self.check(node, known, values, keywords)
        return scope.graph.call_function(known.function, tuple(values), keywords)

    def check(self, node: Message, known: Operator, values: list[Any], keywords: dict[str, Any]) -> None:
        """Raise InvalidModelError if the operator has no such inputs or attributes."""
        try:
            self.signature(known.function).bind(*values, **keywords)
        except TypeError as error:
            raise InvalidModelError(f"the node {node.name or node.output[0]!r} calls {node.op_type} as it cannot be "
                                    f"called: {error}") from None
        except ValueError:          # a function of C without a signature
            return

    def signature(self, function: Any) -> inspect.Signature:
        if id(function) not in self.signatures:
            self.signatures[id(function)] = inspect.signature(function)
        return self.signatures[id(function)]

    def results(self, scope: Scope, node: Message, made: Node) -> list[Node]:
        """Return the nodes of an operator's results."""
        if len(node.output) == 1:
            return [made]
        return [scope.graph.call_function(getitem, (made, i)) if name else made for i, name in enumerate(node.output)]

    def write_out(self, scope: Scope, function: Message, values: list[Any], outputs: list[str],
                  attributes: dict[str, Any]) -> None:
        """Write the nodes of a function in place of its call."""
        self.length(function, ())
        given = {**{a.name: a for a in function.attribute_proto}, **attributes}
        body = Scope(scope.graph, scope.module)
        if len(values) > len(function.input):
            raise InvalidModelError(f"the function {function.name!r} has {len(function.input)} inputs, and is given "
                                    f"{len(values)}")
        for label, value in zip(function.input, [*values, *[None] * len(function.input)], strict=False):
            body.define(label, value)
        opsets = {**self.versions, **versions(function.opset_import)}
        for node in function.node:
            self.node(body, node, opsets, given)
        for label, result in zip(outputs, function.output, strict=False):
            scope.define(label, body.find(result))

    def length(self, function: Message, callers: tuple[tuple[str, str, str], ...]) -> int:
        """Return how many nodes a function has once those that it calls are written out. InvalidModelError if it calls
        itself, or has too many."""
        name = (function.domain, function.name, function.overload)
        if name in callers or len(callers) > DEEPEST:
            raise InvalidModelError(f"the function {function.name!r} calls itself, or calls are nested too deep")
        if name not in self.lengths:
            called = (self.functions.get((node.domain, node.op_type, node.overload)) for node in function.node)
            total = sum(1 if each is None else self.length(each, (*callers, name)) for each in called)
            if total > MOST:
                raise InvalidModelError(f"the function {function.name!r} has more than {MOST:,} nodes")
            self.lengths[name] = total
        return self.lengths[name]

    # ── attributes ────────────────────────────────────────────────────────────────────────────────────────────────────

    def attribute(self, scope: Scope, attribute: Message) -> Any:
        """Return an attribute's value: a number, text, list, tensor, or the node of a callable for a graph."""
        kind = attribute.type or kind_of(attribute)
        plain: dict[int, Callable[[], Any]] = {
            1: lambda: attribute.f, 2: lambda: attribute.i, 3: lambda: text(attribute.s),
            6: lambda: list(attribute.floats), 7: lambda: list(attribute.ints),
            8: lambda: [text(s) for s in attribute.strings], 13: lambda: attribute.tp,
            5: lambda: self.body(scope, attribute.g), 4: lambda: self.constant(scope, attribute.t),
            11: lambda: self.constant(scope, attribute.sparse_tensor)}
        missing = {4: attribute.t, 5: attribute.g, 11: attribute.sparse_tensor}
        if kind not in plain or missing.get(kind, attribute) is None:
            raise InvalidModelError(f"the attribute {attribute.name!r} has the type {kind}, which is not supported")
        return plain[kind]()

    def constant(self, scope: Scope, tensor: Message) -> Node:
        array = self.files.array(tensor) if tensor.kind == "Tensor" else self.files.sparse(tensor)
        return self.tensor(scope, f"constant_{self.count}", array, {"fixed"})

    def body(self, scope: Scope, graph: Message) -> Node:
        """Return the node of a graph with the values that it takes from this one."""
        module = Body(Graph(), [value.name for value in graph.output])
        inner = Scope(module.graph, module, scope)
        self.fill(inner, graph, list(graph.input))
        path = f"body_{self.count}_{len(scope.module._modules)}"
        scope.module.add_module(path, module)
        owner = scope.graph.get_attr(path)
        return scope.graph.call_function(Bound, (owner, *[scope.find(name) for name in inner.taken]))


# ── parts ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def finite(array: np.ndarray) -> bool:
    """Return True if all numbers are finite: their sum is, or else each is looked at."""
    with np.errstate(all="ignore"):
        return bool(np.isfinite(array.sum()) or np.isfinite(array).all())


def versions(opsets: list[Message]) -> dict[str, int]:
    """Return {domain: version of its operators}."""
    return {"" if each.domain == "ai.onnx" else each.domain: each.version for each in opsets}


def resolved(attribute: Message, given: Mapping[str, Message]) -> Message | None:
    """Return an attribute; for a reference, the attribute of the function's call, or None if the call has none."""
    if not attribute.ref_attr_name:
        return attribute
    found = given.get(attribute.ref_attr_name)
    if found is None:
        return None
    renamed = Message("Attribute")
    vars(renamed).update(vars(found), name=attribute.name)
    return renamed


def kind_of(attribute: Message) -> int:
    """Return the type of an attribute in a file that does not say it."""
    for kind, name in ((4, "t"), (5, "g"), (6, "floats"), (7, "ints"), (8, "strings"), (3, "s"), (2, "i")):
        if getattr(attribute, name):
            return kind
    return 1


def text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def place_of(module: Module, name: str) -> tuple[Module, str, str]:
    """Return (the module that owns the tensor of a name, its name there, its path): dots are modules, as PyTorch writes
    them. A name whose path is taken, or has empty parts, becomes one without dots.
    """
    *path, last = name.split(".")
    owner = module
    for part in path:
        found = owner._modules.get(part)
        if not part or not last or found is None and hasattr(owner, part):
            return module, (own := free(module, name.replace(".", "_"))), own
        if found is None:
            found = Module()
            owner.add_module(part, found)
        owner = found
    last = free(owner, last or "value")
    return owner, last, ".".join([*path, last])


def free(module: Module, name: str) -> str:
    """Return the name, or the name with a number if the module has such an attribute."""
    found, number = name, 0
    while hasattr(module, found):
        number += 1
        found = f"{name}_{number}"
    return found
