"""The plan of a graph: kernel calls on memory that is planned for all of them, with nodes that Python runs in between.

An emitter (compiler/emit/) gets a `Build` and `Value`s, arrays of the plan without memory of their own: a shape, a
dtype, strides and an offset in a `Buffer`. The emitter asks for calls of kernels; each is checked against its row of
native/kernels.rows at once, with arrays in templates, memory that nobody touches. When all nodes are emitted, buffers
that are used at different times share memory in one arena (compiler/memory.py), and `native.program` keeps the calls.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from ..graph.nesting import leaves, mapped
from ..graph.node import Node
from ..graph.records import Record
from ..graph.uses import last_uses
from ..runtime.native import native
from .emit import emitters_of
from .memory import ARENA, CONSTANT, INPUT, OUTPUT, WEAK, Buffer, Value, arranged, in_order, template
from .passes.rewriting import settled
from .values import computed

COPIED = 5              # axes that the kernel `copy` has
MOST_COPIES = 64        # calls of it for one copy
NUMBERS = {4: np.dtype(np.float32), 8: np.dtype(np.float64)}      # dtypes that are copied, and not computed with


class Refused(Exception):
    """A kernel refused its arguments: another emitter, or Python, computes the node."""


class Step(Record):
    """A node that Python runs: `computed` on arrays of the plan's memory, copied to where the plan has its results."""

    node: Node
    target: Any
    args: Any
    kwargs: Any
    results: Any

    def run(self, memory: Sequence[Any]) -> None:
        def array(leaf: Any) -> Any:
            return leaf.among(memory) if isinstance(leaf, Value) else leaf
        found = computed(self.target, [mapped(array, a) for a in self.args],
                         {key: mapped(array, a) for key, a in self.kwargs.items()})
        results = self.results if isinstance(self.results, tuple) else (self.results,)
        found = found if isinstance(self.results, tuple) else (found,)
        for value, result in zip(results, map(np.asarray, found), strict=True):
            if result.shape != value.shape or result.dtype != value.dtype:
                raise Changed(f"{self.node.name} is {result.shape} of {result.dtype}, not {value.shape} of "
                              f"{value.dtype}")
            array(value)[...] = result


class Changed(Exception):
    """A step of Python returned an array whose shape or dtype differs from the graph's."""


class Plan(Record):
    """A program for a graph, and what Python adds to it.

    `parts` are ranges of steps of the program, and steps of Python between them. `constants` are nodes, or arrays of
    the plan. `outputs` are the values of the results: in output buffers, by their numbers.
    """

    program: Any
    parts: list[tuple[int, int] | Step]
    places: list[tuple[int, int]]                       # of each buffer: its kind and number
    constants: list[Any]
    outputs: list[Value]
    arena: int
    unplanned: int                                      # bytes of the arena's buffers, if none shared memory
    left: list[tuple[str, str]]

    @cached_property
    def in_c(self) -> bool:
        """Return True if Python runs no step."""
        return not any(isinstance(part, Step) for part in self.parts)

    @cached_property
    def simple(self) -> bool:
        """Return True if the program computes everything, and its output arrays are the results."""
        return self.in_c and all(value.is_whole and self.places[value.buffer.place] == (OUTPUT, i)
                                 for i, value in enumerate(self.outputs))

    def results(self, arrays: Sequence[Any]) -> list[Any]:
        """Return the results: the output arrays of the program, or views of them."""
        found = []
        for value in self.outputs:
            array = arrays[self.places[value.buffer.place][1]]
            found.append(array if value.is_whole else value.within(in_bytes(array)))
        return found


class Build:
    """Plans a graph. `known` has the arrays of the nodes that are computed ahead and used: constants of the plan."""

    def __init__(self, graph: Any, known: dict[Node, Any]) -> None:
        self.items: list[tuple[Any, ...] | Step] = []
        self.buffers: list[Buffer] = []
        self.left: list[tuple[str, str]] = []
        self.node: Any = None
        self._graph, self._known = graph, known
        self._values: dict[Node, Any] = {}
        self._ended: set[Node] = set()
        self._reason = ""

    # ── for emitters ──────────────────────────────────────────────────────────────────────────────────────────────────

    def new(self, shape: Sequence[int], dtype: Any) -> Value:
        """Return a new contiguous array, whose values are arbitrary at first."""
        return self._kept(Buffer(ARENA, shape, dtype))

    def view(self, value: Value, shape: Sequence[int], strides: Sequence[int], offset: int = 0,
             dtype: Any = None) -> Value:
        """Return a view: `offset` and `strides` count elements, the former from the value's first."""
        return Value(tuple(shape), value.dtype if dtype is None else np.dtype(dtype), tuple(strides),
                     value.offset + offset, value.buffer)

    def whole(self, value: Value) -> Value:
        """Return a contiguous array of these values: itself, or a copy."""
        if value.contiguous:
            return value
        copy = self.new(value.shape, value.dtype)
        self.copy(value, copy)
        return copy

    def reuse(self, value: Value, shape: Sequence[int], dtype: Any) -> Value:
        """Return memory for a result that a kernel may write over `value`: that of `value`, if this node is the last to
        use it and nothing else is in its buffer, or new memory."""
        shape, dtype = tuple(shape), np.dtype(dtype)
        if (value.buffer.kind == ARENA and value.contiguous and dtype.itemsize == value.dtype.itemsize
                and prod(shape) == value.size and value.buffer.holders <= self._ended):
            return Value(shape, dtype, in_order(shape), value.offset, value.buffer)
        return self.new(shape, dtype)

    def constant(self, array: Any) -> Value:
        """Return an array of the plan with these values."""
        array = np.ascontiguousarray(array).reshape(np.shape(array))
        return self._kept(Buffer(CONSTANT, array.shape, array.dtype, array))

    @contextmanager
    def keeping(self, *values: Value) -> Iterator[None]:
        """Let nothing reuse the memory of these values until the block ends."""
        keeper = object()
        for value in values:
            value.buffer.holders.add(keeper)
        yield
        for value in values:
            value.buffer.holders.discard(keeper)

    def call(self, kernel: str, *arguments: Any) -> None:
        """Call a kernel with the arguments of its row: values, None, numbers.

        An array is allowed for an argument that the row marks with `&`: its contents are copied. Raises Refused, which
        makes the result of the emitter NotImplemented, if the row refuses.
        """
        try:
            served = native.fits(kernel, *[a.within(a.buffer.memory) if isinstance(a, Value) else a for a in arguments])
        except ValueError as error:
            raise Refused(str(error)) from None
        if not served:
            raise Refused(f"{kernel} refuses its arguments")
        self.items.append((kernel, *arguments))

    def copy(self, value: Value, to: Value) -> None:
        """Copy between arrays of one shape and dtype, with any strides."""
        if (number := NUMBERS.get(value.dtype.itemsize)) is None:
            raise Refused(f"no kernel copies {value.dtype}")
        axes: list[tuple[int, int, int]] = []
        for n, a, b in zip(value.shape, value.strides, to.strides, strict=True):
            if n == 1:
                continue
            if axes and axes[-1][1:] == (n * a, n * b):
                n *= axes.pop()[0]
            axes.append((n, a, b))
        outer = [axes.pop(min(range(len(axes) - 1), key=lambda i: axes[i][0])) for _ in range(len(axes) - COPIED)]
        if prod(n for n, _, _ in outer) > MOST_COPIES:
            raise Refused(f"no kernel copies along more than {COPIED} axes")
        shape, steps, into = zip(*[(1, 0, 0)] * (COPIED - len(axes)), *axes, strict=True)
        for place in np.ndindex(*(n for n, _, _ in outer)):
            start, there = (sum(i * axis[which] for i, axis in zip(place, outer, strict=True)) for which in (1, 2))
            self.call("copy", self.view(value, shape, steps, start, dtype=number),
                      self.view(to, shape, into, there, dtype=number), *shape, *steps, *into)

    def fill(self, value: Value, number: Any) -> None:
        """Fill an array with one number."""
        self.copy(self.view(self.constant(np.full(1, number, value.dtype)), value.shape, (0,) * value.ndim), value)

    def emit(self, target: Any, node: Any, /, *operands: Any, **params: Any) -> Any:
        """Return what the emitters of a target make of operands; NotImplemented if none serves.

        `target` is an op's name, or the target of a node.
        """
        self._reason = "no kernel computes it"
        for emitter in emitters_of(target):
            mark = len(self.items)
            try:
                found = emitter(self, node, *operands, **params)
            except Refused as error:
                found, self._reason = NotImplemented, str(error)
            if found is not NotImplemented:
                return found
            del self.items[mark:]
        return NotImplemented

    # ── the plan ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def plan(self) -> Plan:
        """Plan all nodes that are not computed ahead."""
        ahead = settled(self._graph)
        for node, ended in last_uses(self._graph).items():
            if node.op == "output":
                return self._finished(node)
            self.node, self._ended = node, set(ended)
            if node.op == "placeholder":
                self._values[node] = self._kept(Buffer(INPUT, node.meta["shape"], node.meta["dtype"]))
            elif node in self._known:
                found = self._known[node]
                self._values[node] = (tuple(self._constant_of(part, node, i) for i, part in enumerate(found))
                                      if isinstance(found, (tuple, list)) else self._constant_of(found, node, None))
            elif node not in ahead:
                self._values[node] = self._emitted(node)
            for value in self._parts(node):
                value.buffer.holders.add(node)
            for other in ended:
                for value in self._parts(other):
                    value.buffer.holders.discard(other)
        raise AssertionError("a graph ends with its output")

    def _parts(self, node: Node) -> tuple[Value, ...]:
        """Return the arrays of a node's value, of which there may be none."""
        value: Any = self._values.get(node, ())
        return tuple(value) if isinstance(value, (tuple, list)) else (value,)

    def _kept(self, buffer: Buffer) -> Value:
        self.buffers.append(buffer)
        return buffer.whole

    def _constant_of(self, array: Any, node: Node, part: int | None) -> Value:
        array = np.asarray(array)
        return self._kept(Buffer(CONSTANT, array.shape, array.dtype, (node, part)))

    def _emitted(self, node: Node) -> Any:
        def value(leaf: Any) -> Any:
            return self._values[leaf] if isinstance(leaf, Node) else leaf
        args = [mapped(value, a) for a in node.args]
        kwargs = {key: mapped(value, a) for key, a in node.kwargs.items()}
        found = self.emit(node.target, node, *args, **kwargs)
        if found is not NotImplemented:
            return found
        shape, dtype = node.meta["shape"], node.meta["dtype"]
        results = (tuple(map(self.new, shape, dtype)) if isinstance(dtype, list) else self.new(shape, dtype))
        self.left.append((node.name, self._reason))
        self.items.append(Step(node, node.target, args, kwargs, results))
        return results

    def _finished(self, node: Node) -> Plan:
        outputs = [self._result(self._values[leaf]) for leaf in leaves(node.args[0]) if isinstance(leaf, Node)]
        for place, item in enumerate(self.items):
            for value in values_in(item):
                value.buffer.touch(place)
        for value in reversed(outputs):
            value.buffer.kind = OUTPUT
            if value.fills:
                value.buffer.shape, value.buffer.dtype = value.shape, value.dtype
        inside = [b for b in self.buffers if b.kind == ARENA and b.used is not None]
        offsets, size = arranged([(b.bytes, *b.used) for b in inside if b.used is not None])
        for buffer in inside:
            buffer.memory = None
        arena = Buffer(ARENA, (size,), np.uint8)
        arena.place = 0
        for buffer, offset in zip(inside, offsets, strict=True):
            buffer.memory, buffer.place, buffer.shift = arena.memory[offset:offset + buffer.bytes], 0, offset
        outside = [b for b in self.buffers if b.kind == INPUT or b.kind == CONSTANT and b.used is not None]
        outside += dict.fromkeys(value.buffer for value in outputs)
        for place, buffer in enumerate(outside, 1):
            buffer.place = place
            if buffer.kind == OUTPUT:                       # planned as memory of ours
                buffer.memory = template(buffer.bytes, WEAK)
        program, parts = self._programmed([arena, *outside])
        kinds = [buffer.kind for buffer in (arena, *outside)]
        for buffer in self.buffers:
            buffer.memory = None
        return Plan(program, parts, [(kind, kinds[:i].count(kind)) for i, kind in enumerate(kinds)],
                    [b.source for b in outside if b.kind == CONSTANT], outputs, size, sum(b.bytes for b in inside),
                    self.left)

    def _programmed(self, buffers: list[Buffer]) -> tuple[Any, list[Any]]:
        """Return the program of all kernel calls, and the parts: ranges of its calls, and steps of Python."""
        calls: list[tuple[Any, ...]] = []
        parts: list[Any] = []
        for item in self.items:
            if isinstance(item, Step):
                parts.append(item)
                continue
            calls.append(tuple(a.within(a.buffer.memory) if isinstance(a, Value) else a for a in item))
            if parts and isinstance(parts[-1], tuple):
                parts[-1] = parts[-1][0], len(calls)
            else:
                parts.append((len(calls) - 1, len(calls)))
        return native.program([(b.kind, b.memory.view(b.dtype).reshape(b.shape)) for b in buffers], calls), parts

    def _result(self, value: Value) -> Value:
        """Return a result in memory that neither the caller nor a constant uses."""
        if value.buffer.kind not in (INPUT, CONSTANT):
            return value
        copy = self.new(value.shape, value.dtype)
        mark = len(self.items)
        try:
            self.copy(value, copy)
        except Refused:
            del self.items[mark:]
            self.items.append(Step(self.node, _same, [value], {}, copy))
        return copy


def in_bytes(array: Any) -> Any:
    """View a contiguous array as bytes."""
    return array.reshape(-1).view(np.uint8)


def _same(x: Any) -> Any:
    return x


def values_in(item: tuple[Any, ...] | Step) -> list[Value]:
    """Return the arrays that a step of a plan touches."""
    parts = leaves([item.args, item.kwargs, item.results]) if isinstance(item, Step) else item
    return [part for part in parts if isinstance(part, Value)]
