"""Generate the source of a function from a graph: flat, a line for each step, as fast as handwritten code.

A value reuses the variable of an operand after its last use, and other dead variables are deleted, so that no value is
kept alive longer than needed.
"""
from __future__ import annotations

import keyword
import linecache
import math
import operator
import re
import weakref
from itertools import count
from typing import Any

from .. import api as tg
from .graph import Graph
from .nesting import immutable_dict, immutable_list
from .node import Node
from .targets import OPERATORS, SIGNS, Unpack, public_name
from .uses import last_uses

RESERVED = {"self", "layers", "layer", "torch", "nn", "F", "getattr", "tuple", "slice", "float", "complex", "callables",
            *keyword.kwlist}
VARIABLE = re.compile(r"[ix]\d+")                # names of values in the source
written = count(1)


class Writer:
    """Writes a graph as source. Subclasses define how functions and layers are written."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.ends = graph, last_uses(graph)
        self.steps = [node for node in graph.nodes if node.op in ("call_function", "call_method", "call_module")]
        self.names: dict[Node, str] = {}            # value → variable
        self.lines: list[str] = []
        self.made, self.width = 0, len(str(max(len(self.steps) - 1, 0)))
        inputs = graph.find_nodes(op="placeholder")
        self.arguments = tuple(node.target for node in inputs)
        self.names.update(zip(inputs, self.arguments, strict=True))

    def held(self, name: str) -> str:
        """Return the source that reads an attribute of the model."""
        return f"self.{name}" if name.isidentifier() and name not in RESERVED else f"getattr(self, {name!r})"

    def layer(self, name: str) -> str:
        """Return the source that names a layer of the model."""
        return self.held(name)

    def thing(self, thing: Any) -> str:
        """Return the source of a function, or of a constant that is no literal."""
        name = public_name(thing)
        return self.foreign(thing) if name is None or name in self.arguments else name

    def foreign(self, thing: Any) -> str:
        """Return the source of a function, or of a constant that is no literal, from outside of the package."""
        raise ValueError(f"the model cannot be written as source: {thing!r} is neither a literal nor a function of the "
                         f"package")

    def runs(self) -> dict[Node, tuple[int, int, int]]:
        """Return the first steps of loops: {step: (number of steps, first layer, last layer)}."""
        return {}

    # ── expressions ───────────────────────────────────────────────────────────────────────────────────────────────────

    def value(self, tree: Any) -> str:
        """Return the source of an argument."""
        kind = type(tree)
        if isinstance(tree, Node):
            return self.held(tree.target) if tree.op == "get_attr" else self.names[tree]
        if tree is ...:
            return "..."
        if kind is float:
            return repr(tree) if math.isfinite(tree) else f'float("{tree}")'
        if kind is complex:
            return f"complex({self.value(tree.real)}, {self.value(tree.imag)})"
        if kind in (tuple, tg.Size):
            return f"({', '.join(map(self.value, tree))}{',' if len(tree) == 1 else ''})"
        if kind in (list, immutable_list):
            return f"[{', '.join(map(self.value, tree))}]"
        if kind in (dict, immutable_dict):
            return f"{{{', '.join(f'{self.value(k)}: {self.value(v)}' for k, v in tree.items())}}}"
        if isinstance(tree, dict) or isinstance(tree, tuple) and hasattr(tree, "_fields"):
            return (f"{self.thing(kind)}("
                    f"{self.value(dict(tree)) if isinstance(tree, dict) else ', '.join(map(self.value, tree))})")
        if kind is slice:
            return f"slice({', '.join(map(self.value, (tree.start, tree.stop, tree.step)))})"
        if kind is tg.device:
            return f"torch.device({str(tree)!r})"
        if kind in (tg.dtype, tg.layout, tg.memory_format):
            return str(tree)
        return repr(tree) if kind in (bool, int, str, bytes, type(None)) else self.thing(tree)

    def index(self, tree: Any) -> str:
        """Return the source of an index, without brackets."""
        if type(tree) is slice:
            start, stop, step = ("" if v is None else self.value(v) for v in (tree.start, tree.stop, tree.step))
            return f"{start}:{stop}" + (f":{step}" if step else "")
        if type(tree) is tuple and tree:
            return ", ".join(map(self.index, tree)) + ("," if len(tree) == 1 else "")
        return self.value(tree)

    def call(self, node: Node) -> str:
        """Return a step as an expression."""
        target, args = node.target, node.args
        given = [*map(self.value, args),
                 *(f"{k}={self.value(v)}" if is_name(k) else f"**{{{k!r}: {self.value(v)}}}"
                   for k, v in node.kwargs.items())]
        if node.op == "call_module":
            return f"{self.layer(target)}({', '.join(given)})"
        if node.op == "call_method" or target is operator.call or attribute_of(node) is not None:
            first = given[0] if type(args[0]) is not int else f"({given[0]})"
            if (attribute := attribute_of(node)) is not None:
                return f"{first}.{attribute}"
            return (f"{first}.{target}({', '.join(given[1:])})" if node.op == "call_method"
                    else f"{first}({', '.join(given[1:])})")
        if type(target) is Unpack:
            return f"tuple({given[0]})"
        if target is operator.getitem:
            return f"{given[0]}[{self.index(args[1])}]"
        if target in OPERATORS:
            return f"{_operand(given[0])} {OPERATORS[target]} {_operand(given[1])}"
        if target in SIGNS:
            return f"{SIGNS[target]}{_operand(given[0])}"
        return f"{self.thing(target)}({', '.join(given)})"

    # ── statements ────────────────────────────────────────────────────────────────────────────────────────────────────

    def body(self) -> list[str]:
        """Return the statements of the function."""
        steps, runs, unpacked = self.steps, self.runs(), self.unpacked()
        position = 0
        while position < len(steps):
            step, position = steps[position], position + 1
            if step in self.names:                              # it was unpacked before
                continue
            dying = [name for node in self.ends[step] if (name := self.names.get(node)) is not None
                     and name not in self.arguments]
            if step in runs:
                count, first, stop = runs[step]
                operand = self.value(step.args[0])
                name = self.named(steps[position + count - 2], dying)
                self.lines += [f"{name} = {operand}"] * (name != operand)
                self.lines += [f"for layer in layers[{first}:{stop}]:", f"    {name} = layer({name})"]
                position += count - 1
            elif step in unpacked:
                parts, operand = unpacked[step], self.value(step.args[0])
                names = [self.named(parts[k], dying) if k in parts else "_" for k in range(step.target.count)]
                self.lines.append(f"{', '.join(names)}{',' if len(names) == 1 else ''} = {operand}")
            else:
                text = self.call(step)
                self.lines.append(f"{self.named(step, dying)} = {text}")
            if dying:
                self.lines.append(f"del {', '.join(dying)}")
        result = self.value(self.graph.output_node().args[0])
        if self.lines and self.lines[-1].startswith(f"{result} = "):
            result = self.lines.pop().removeprefix(f"{result} = ")
        self.lines.append(f"return {result}")
        return self.lines

    def named(self, node: Node, dying: list[str]) -> str:
        """Return a variable for a new value: that of an operand whose last use this is, or a new one."""
        if dying:
            name = dying.pop(0)
        else:
            name = f"x{self.made:0{self.width}}"
            self.made += 1
        self.names[node] = name
        return name

    def unpacked(self) -> dict[Node, dict[int, Node]]:
        """Return the values that are only unpacked: {node: {index of the part: its node}}."""
        found: dict[Node, dict[int, Node]] = {}
        for step in self.steps:
            if type(step.target) is Unpack and all(map(_is_part, step.users)):
                parts = {user.args[1]: user for user in step.users}
                if len(parts) == len(step.users) > 0:
                    found[step] = parts
        return found


def attribute_of(node: Node) -> str | None:
    """Return the attribute that a node `getattr(value, "name")` reads; None for other nodes."""
    if node.target is not getattr or len(node.args) != 2 or node.kwargs:
        return None
    name = node.args[1]
    return name if type(name) is str and is_name(name) else None


def _is_part(node: Node) -> bool:
    return node.target is operator.getitem and type(node.args[1]) is int


def is_name(text: Any) -> bool:
    """Return True if a text is a valid Python name."""
    return text.isidentifier() and not keyword.iskeyword(text)


def _operand(text: str) -> str:
    return f"({text})" if text[0] in "-+~" else text


def compiled(source: str, namespace: dict[str, Any], function_name: str = "forward", name: str | None = None) -> Any:
    """Return the function that the source defines. Tracebacks show its lines, under a file's name, as long as it
    exists."""
    name = f"<generated forward {next(written)}>" if name is None else name
    exec(compile(source, name, "exec", dont_inherit=True), namespace)
    function = namespace.pop(function_name)
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    weakref.finalize(function, linecache.cache.pop, name, None)
    return function


__all__ = ["RESERVED", "VARIABLE", "Writer", "attribute_of", "compiled", "is_name"]
