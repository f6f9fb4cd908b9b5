"""The graph of a program that was recorded with symbolic sizes, for any sizes at which the program takes the same path.

Shapes are inferred anew by the ops themselves; parameters that the program computed from sizes are computed again.
"""
from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from ..interpret.symbol import Symbol
from .lowered import Lowered
from .nesting import NESTS, leaves, mapped
from .node import Node
from .steps import Draw
from .symbolic_sizes import Formulas, Point, Sizes, numbers, sources, symbolic


class OtherPath(Exception):
    """The program takes another path for these sizes."""


class Replay:
    """A recorded program: `trace` is its graph with symbolic numbers, `sizes` has the questions that chose the path.

    `simplify` rewrites a copy of the graph, with numbers and questions of its own; the trace is taken as it is if it
    fails, or fixes a size. `also` is a nest of further numbers that are needed.
    """

    def __init__(self, trace: Lowered, sizes: Sizes, simplify: Callable[[Lowered], Any], also: Any = ()) -> None:
        self.trace, self.sizes = trace, sizes
        self.graph = self._simplified(simplify)
        self.asked = list(sizes.asked.values())
        own = [(node, numbers((node.args, node.kwargs))) for node in self.graph.nodes]
        needed = [a for _, args, _ in self.asked for a in args] + numbers(also)
        for node, found in own:
            needed += found + numbers(node.meta.get("shape"))
        of = {node: numbers((node.args, node.kwargs)) for node in trace.nodes if "infer" in node.meta}
        of.update((node, numbers((args, params, [leaf.meta["shape"] for leaf in leaves((args, params))
                                                 if isinstance(leaf, Node)])))
                  for node, (_, args, params) in sizes.added.items())
        self.inferred, self.added = self._closure(needed, of)
        for node in (*self.inferred, *self.added):
            needed += of.get(node, ())
        self.formulas = Formulas(needed, sizes, [*self.inferred, *self.added])
        self.questions = [(function, self.formulas.places(args), answer) for function, args, answer in self.asked]
        self.calls = {node: self._call(node) for node in self.inferred if "infer" in node.meta}
        self.steps = [(node, bool(found), flat(node), self._places(node.meta.get("shape"))) for node, found in own]

    def _simplified(self, simplify: Callable[[Lowered], Any]) -> Lowered:
        """Return a copy of the trace, simplified if that is possible for all sizes."""
        made, fixed, asked = self._copy(), self.sizes.fixings, dict(self.sizes.asked)
        made.sizes = self.sizes
        try:
            simplify(made)
        except Exception:                       # a pass that needs numbers
            made.simplified = False
        if made.simplified and self.sizes.fixings == fixed:
            return made
        self.sizes.asked = asked
        self.sizes.added.clear()
        return self._copy()

    def _copy(self) -> Lowered:
        """Return a copy of what the results of the trace need, and of its random numbers."""
        waiting = [node for node in self.trace.nodes if node.op in ("placeholder", "output")
                   or isinstance(node.target, Draw)]
        found = set[Node]()
        while waiting:
            if (node := waiting.pop()) not in found:
                found.add(node)
                waiting += node._input_nodes
        made, now = Lowered(), dict[Node, Any]()
        self._tell(made)
        for node in self.trace.nodes:
            if node in found and "copies" in node.meta:
                now[node] = now[node.args[-1]]
            elif node in found:
                new = now[node] = made._create(node.op, node.target, node.args, node.kwargs, node.name, None,
                                               lambda leaf: now[leaf] if isinstance(leaf, Node) else leaf)
                new.meta.update((key, value) for key, value in node.meta.items() if key not in TRACED)
        return made

    def _tell(self, made: Lowered) -> None:
        trace = self.trace
        made.tensors, made.spec = dict(trace.tensors), trace.spec
        made.written, made.relied = trace.written, trace.relied

    def _closure(self, needed: list[Any], of: dict[Node, list[Any]]) -> tuple[list[Node], list[Node]]:
        """Return the nodes of the trace, and those that were added, whose shapes decide on these numbers, in order.

        `of` are the numbers among the arguments of nodes.
        """
        found: set[Node] = set()
        waiting = sources(needed)
        while waiting:
            node = waiting.pop()
            if node not in found:
                found.add(node)
                waiting += sources(of.get(node, []))
                if node not in self.sizes.added:
                    waiting += node._input_nodes
        return ([node for node in self.trace.nodes if node in found or node.op == "placeholder"],
                [node for node in self.sizes.added if node in found])

    def _call(self, node: Node) -> tuple[Callable[..., Any], list[Node] | None, dict[str, Any] | None]:
        """Return how to infer a node, its arguments if they are nodes, and its parameters if no size affects them."""
        flat = list(node.args) if all(isinstance(a, Node) for a in node.args) else None
        kwargs = dict(node.kwargs)
        plain = not symbolic(kwargs) and not any(isinstance(leaf, Node) for leaf in leaves(kwargs))
        return node.meta["infer"], flat, mapped(lambda leaf: leaf, kwargs) if plain else None

    def _places(self, shape: Any) -> Any:
        """Return where a shape, or a list of shapes, is among the values; None if it is the same for all sizes."""
        if not symbolic(shape):
            return None
        return self.formulas.places(shape) if isinstance(shape, tuple) else [*map(self.formulas.places, shape)]

    # ── other sizes ───────────────────────────────────────────────────────────────────────────────────────────────────

    def at(self, inputs: Sequence[Any]) -> tuple[Lowered, Point]:
        """Return the graph for inputs with these shapes and strides, and the values of numbers. Raises OtherPath."""
        point, given, known = self.formulas.begun(), iter(inputs), self.formulas.known
        values = point.values
        try:
            for node in self.inferred:
                known(node, self._array(node, given, point), point)
            for node in self.added:
                infer, args, params = self.sizes.added[node]
                known(node, infer(args, params, point), point)
            if not all(function(*[values[i] for i in places]) == answer for function, places, answer in self.questions):
                raise OtherPath
        except OtherPath:
            raise
        except Exception as error:              # an op refuses the sizes
            raise OtherPath from error
        return self._graph(point), point

    def _array(self, node: Node, given: Any, point: Point) -> Any:
        """Return the array of a node: a symbol, or its values if no size affects them."""
        if node.op == "placeholder":
            like = next(given)
            return Symbol(like.shape, like.dtype, like.strides)
        if node.op == "get_attr":
            tensor = self.trace.tensors[node.target]
            return type(tensor._storage).host(tensor.array)
        if node.target is operator.getitem:
            return point.arrays[node.args[0]][node.args[1]]
        if (call := self.calls.get(node)) is None:
            return node.meta["results"]
        infer, flat, params = call
        arrays = point.arrays

        def array(leaf: Any) -> Any:
            return arrays[leaf] if isinstance(leaf, Node) else point(leaf)
        return infer([arrays[a] for a in flat] if flat is not None else mapped(array, tuple(node.args)),
                     params if params is not None else mapped(array, dict(node.kwargs)))

    def _graph(self, point: Point) -> Lowered:
        made, now = Lowered(), dict[Node, Any]()
        self._tell(made)
        made.tensors, made.simplified = dict(self.graph.tensors), self.graph.simplified
        made.postponed = self.graph.postponed

        def here(leaf: Any) -> Any:
            return now[leaf] if isinstance(leaf, Node) else leaf

        def there(leaf: Any) -> Any:
            return now[leaf] if isinstance(leaf, Node) else point(leaf)
        values = point.values
        made._graph_namespace = self.graph._graph_namespace.copy()
        for node, varies, simple, shape in self.steps:
            new = now[node] = made._clone(node, now, there if varies else None if simple else here)
            new.meta.update(node.meta)
            if shape is not None:
                new.meta["shape"] = ([tuple([values[i] for i in each]) for each in shape] if type(shape[0]) is list
                                     else tuple([values[i] for i in shape]))
        return made


def flat(node: Node) -> bool:
    """Return True if no node is in a list among the arguments, nor among the parameters."""
    return not any(isinstance(leaf, Node) for part in (*node.args, node.kwargs) if isinstance(part, NESTS)
                   for leaf in leaves(part))


TRACED = frozenset({"infer", "results"})                # what only the trace needs of `meta`
