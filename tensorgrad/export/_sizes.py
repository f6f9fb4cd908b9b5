"""Make one graph for all sizes of a program's inputs, from its graphs for some of them.

The program is lowered at the sizes of the example, at the bounds, and between them. Graphs must have the same steps;
numbers that differ become formulas of the sizes, which the graph computes from the shapes of its inputs.
"""
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from .._dynamo.exc import UserError
from .._ops import ops
from ..graph.graph import Graph
from ..graph.lines import ReadsValues
from ..graph.nesting import leaves, mapped
from ..graph.node import Node
from ._formulas import Formula, Point, formula_of, fraction_of
from .dynamic_shapes import Dim, _DimHint

Axes = dict[tuple[int, int], Any]       # (tensor among the arguments, axis) → Dim
LEAST, FAR = 2, 2053                    # 0 and 1 are sizes of their own, as in PyTorch; the largest size that is tried
VIOLATED = 'Constraints violated ({})! For more information, run with TORCH_LOGS="+dynamic".\n  - {}'


class Varying(Exception):
    """A graph differs from that of the example in its steps, or in a number that has no formula."""


class Family:
    """The graphs of a program: `build(sizes, scalars)` makes that for {(tensor, axis): size}, and whole numbers that
    the program reads from tensors."""

    def __init__(self, build: Callable[[dict[tuple[int, int], int], list[int]], Graph], axes: Axes, tensors: list[Any],
                 scalars: list[int] | None = None) -> None:
        self.build, self.tensors = build, tensors
        self.axes, self.hints = named(axes)
        self.scalars = {f"u{k}": Dim(f"u{k}") for k in range(len(scalars or ()))}
        self.hints.update(dict.fromkeys(self.scalars, _DimHint.AUTO))
        self.points = [{**self._example(), **dict(zip(self.scalars, scalars or (), strict=True))}]
        self.graphs = [build({}, scalars or [])]
        self.read, self.checked = len(self.scalars), Point()    # lower limits of numbers
        self.told, self.fixed = "", Point()     # why the last sizes failed; numbers that turn out to be constants
        self.varies = False                     # True if they failed because other steps ran

    def _example(self) -> Point:
        """Return the sizes of the example. UserError if they are not those of the Dims."""
        point: Point = {}
        for (i, axis), dim in self.axes.items():
            size = self.tensors[i].shape[axis]
            if size < dim.min or dim.max is not None and size > dim.max:
                raise UserError(f"{size} not in range [{dim.min}, {'int_oo' if dim.max is None else dim.max}]")
            root, rest = divmod(size - dim.offset, dim.factor)
            first = point.setdefault(dim.root.__name__, root)
            if first != root or rest:
                raise UserError(f"the sizes of axes with the Dim {dim.root.__name__} differ: axis {axis} of input {i} "
                                f"has the size {size}, not {dim.sized(first)}")
        return point

    # ── which sizes there are ─────────────────────────────────────────────────────────────────────────────────────────

    roots = property(lambda self: {**{dim.root.__name__: dim.root for dim in self.axes.values()}, **self.scalars})

    def bounds(self, name: str) -> tuple[int, int]:
        """Return the least and the largest size that are tried."""
        root, example = self.roots[name], self.points[0][name]
        if name in self.scalars:
            return min(-FAR, example), max(FAR, example)
        return min(max(root.min, LEAST), example), max(min(root.max or FAR, FAR), example)

    def add(self, point: Point) -> bool:
        """Return True if the program has the same steps at other sizes; its graph is kept then."""
        self.varies = False
        if point in self.points:
            return True
        try:
            graph = self.build({place: dim.sized(point[dim.root.__name__]) for place, dim in self.axes.items()},
                               [{**self.points[0], **self.fixed, **point}[f"u{k}"] for k in range(self.read)])
        except Exception as error:      # the program's own: sizes that it does not serve
            self.told = str(error)
            return False
        try:
            alike(self.graphs[0], graph)
        except Varying as error:
            self.told, self.varies = str(error), True
            return False
        self.points.append(point)
        self.graphs.append(graph)
        return True

    def settle(self) -> Graph:
        """Return the graph for all sizes. UserError for a Dim that the program does not serve."""
        if not self.points[0]:
            return self.graphs[0]
        self._join()
        for name in list(self.roots):
            self._limit(name)
        found = None
        for steps in (2, 6, 24):                # more sizes where these have no formula, or several
            for step in range(steps):
                self.add({name: between(*self.bounds(name), step * (7 if steps < 24 else 1) + 5 * k)
                          for k, name in enumerate(self.roots)})
            if None not in (found := formulas(self)).values():
                break
        return unified(self, found)

    def _join(self) -> None:
        """Make symbols of the axes that vary together, and numbers of those that do not vary."""
        near, apart = {}, {}
        for k, (name, n) in enumerate(self.points[0].items()):
            low, high = self.bounds(name)
            near[name] = n + 1 if n < high else max(n - 1, low)
            apart[name] = n + 1 + 2 * k if n + 1 + 2 * k <= high else near[name]
        if self.add(apart):
            return
        stuck = [name for name in near if not self.add({**self.points[0], name: near[name]})]
        together: dict[int, list[str]] = {}
        for name in stuck:
            if name in self.hints:
                together.setdefault(self.points[0][name], []).append(name)
        for names in together.values():
            if len(names) > 1 and self.add({**self.points[0], **{name: near[name] for name in names}}):
                self._replace(set(names), self.roots[names[0]])
                stuck = [name for name in stuck if name not in names]
        for name in stuck:
            if self.hints.get(name) is not _DimHint.AUTO:
                size = self.points[0][name]
                raise UserError(f"{VIOLATED.format(name, 'You marked')} {name} as dynamic but your code specialized it "
                                f"to be a constant ({size}). If you're using Dim.DYNAMIC, replace it with either "
                                f"Dim.STATIC or Dim.AUTO.\n    {self.told}\n\nSuggested fixes:\n  {name} = {size}")
            self._replace({name}, None)

    def _replace(self, names: set[str], root: Any) -> None:
        """Give axes another Dim, or none."""
        self.fixed.update({name: self.points[0][name] for name in names & set(self.scalars)})
        self.scalars = {name: dim for name, dim in self.scalars.items() if name not in names}
        self.axes = {place: root if dim.root.__name__ in names else dim for place, dim in self.axes.items()
                     if root is not None or dim.root.__name__ not in names}
        keep = list(self.roots)
        self.points = [{name: point[name] for name in keep} for point in self.points[:1]]
        self.graphs = self.graphs[:1]

    def _limit(self, name: str) -> None:
        """Narrow the bounds of a size to those that the program serves."""
        limits = []
        for end in self.bounds(name):
            good, bad = self.points[0][name], end
            if not self.add({**self.points[0], name: end}):
                while abs(good - bad) > 1:
                    if self.varies and name in self.scalars:
                        raise ReadsValues("a condition on a number that depends on the inputs", self.told)
                    middle = (good + bad) // 2
                    if self.add({**self.points[0], name: middle}):
                        good = middle
                    else:
                        bad = middle
                end = good
            limits.append(end)
        low, high = limits
        if (low, high) == self.bounds(name):
            return
        root, (least, most) = self.roots[name], self.bounds(name)
        if name not in self.hints:
            told = f"Dim('{name}', min={low}" + (f", max={high})" if high != most or root.max is not None else ")")
            raise UserError(f"{VIOLATED.format(name, 'Not all values of')} {name} in the specified range satisfy the "
                            f"generated guard {low} <= {name}"
                            + (f" and {name} <= {high}" if high != most else "")
                            + f"\n    {self.told}\nSuggested fixes:\n  {name} = {told}")
        root.min, root.max = low if low != least else root.min, high if high != most else root.max
        if name in self.scalars and low != least:
            self.checked[name] = low


def named(axes: Axes) -> tuple[Axes, dict[str, Any]]:
    """Return the axes with a Dim of its own for each hint, and the hints by the names of these."""
    taken = {dim.root.__name__ for dim in axes.values() if isinstance(dim, Dim)}
    hints: dict[str, Any] = {}
    found: Axes = {}
    for k, (place, dim) in enumerate(axes.items()):
        if not isinstance(dim, Dim):
            name = f"s{k}"
            while name in taken:
                name += "_"
            hints[name], dim = dim, Dim(name, min=LEAST)
        found[place] = dim
    return found, hints


def between(low: int, high: int, step: int) -> int:
    """Return a size between two, near the lower one."""
    return low + step % max(min(high - low, 61), 1)


# ── graphs for several sizes as one ───────────────────────────────────────────────────────────────────────────────────


def alike(first: Graph, other: Graph, numbers: bool = True) -> None:
    """Check that two graphs have the same steps, but for numbers if `numbers`. Varying if they have not."""
    if len(first) != len(other):
        raise Varying("the steps of the program depend on a size that dynamic_shapes lets vary")
    pairs = dict(zip(first.nodes, other.nodes, strict=True))
    for a, b in pairs.items():
        same = a.op == b.op and (a.op == "placeholder" or a.target == b.target) and list(a.kwargs) == list(b.kwargs)
        told = list(leaves((a.args, dict(a.kwargs)))), list(leaves((b.args, dict(b.kwargs))))
        if not same or len(told[0]) != len(told[1]) or not all(
                pairs[one] is two if isinstance(one, Node) else fits(one, two, numbers)
                for one, two in zip(*told, strict=True)):
            raise Varying(f"{a.meta.get('source')}: {a.target} depends on the value of a size that dynamic_shapes lets "
                          f"vary")
        if "constant" in a.meta and not alike_tensors(a.meta["constant"], b.meta.get("constant")):
            raise Varying("a constant of the program depends on a size that dynamic_shapes lets vary")
        if "graph" in a.meta:                   # a branch
            alike(a.meta["graph"], b.meta["graph"], False)


def alike_tensors(a: Any, b: Any) -> bool:
    """Return True for tensors of equal shapes, dtypes and values."""
    return b is not None and a.shape == b.shape and a.dtype == b.dtype and bool(((a == b) | (a != a)).all())


def fits(a: Any, b: Any, numbers: bool) -> bool:
    """Return True if two arguments are equal, or if `numbers`, are numbers."""
    return type(a) is type(b) and (numbers and type(a) in (int, float) or bool(a == b))


def formulas(family: Family) -> dict[Any, Any]:
    """Return {values of a number in the graphs: its formula, or None if it has none}."""
    found: dict[Any, Any] = {}
    for nodes in zip(*(list(graph.nodes) for graph in family.graphs), strict=True):
        for values in zip(*(list(leaves((node.args, dict(node.kwargs)))) for node in nodes), strict=True):
            if values not in found and type(values[0]) in (int, float) and len(set(map(repr, values))) > 1:
                found[values] = (formula_of if type(values[0]) is int else fraction_of)(values, family.points)
    return found


def inferred(node: Node, found: dict[Any, Any]) -> bool:
    """Return True if the node is a reshape, which infers one size that has no formula."""
    return node.target is ops.aten.reshape.default and list(found.values()).count(None) >= 1 and -1 not in node.args[1]


def unified(family: Family, found: dict[Any, Any]) -> Graph:
    """Return the example's graph, with formulas in place of the numbers that differ between the graphs.

    UserError for a number that has none.
    """
    first, sizes = family.graphs[0], Sizes(family)
    for node, *others in zip(*(list(graph.nodes) for graph in family.graphs), strict=True):
        def number(*values: Any, node: Node = node) -> Any:
            if values not in found:
                return values[0]
            if (formula := found[values]) is None:
                if inferred(node, found):
                    return -1
                raise UserError(f"{node.meta.get('source')}: {node.target} depends on the value of a size that "
                                f"dynamic_shapes lets vary")
            with first.inserting_before(node):
                sizes.scope = node.meta.get("scope", "")
                return sizes.node(formula)
        if not found or node.op not in ("call_function", "output"):
            continue
        args = mapped(number, node.args, *(each.args for each in others))
        kwargs = mapped(number, dict(node.kwargs), *(dict(each.kwargs) for each in others))
        if any(isinstance(leaf, Node) for leaf in leaves((args, kwargs))):
            node.args, node.kwargs = args, kwargs
    for name, dim in family.scalars.items():
        if dim.max is not None:
            sizes.limit(name, operator.le, "<=", dim.max)
        if name in family.checked:
            sizes.limit(name, operator.ge, ">=", family.checked[name])
    for node in sizes.items:
        if not node.users:
            first.erase_node(node)
    return first


class Sizes:
    """The nodes of a graph that compute formulas of the sizes of its inputs."""

    def __init__(self, family: Family) -> None:
        self.family, self.graph = family, family.graphs[0]
        self.made: dict[Any, Node] = {}
        self.scope = ""                         # of the node that the formula is for
        inputs = [node for node in self.graph.find_nodes(op="placeholder") if "user" in node.meta]
        self.places = {place: (inputs[place[0]], place[1], dim) for place, dim in family.axes.items()}
        self.items = [node for node in self.graph.nodes if node.target is ops.aten.item.default]
        self.last = self.graph.find_nodes(op="placeholder")[-1]

    def node(self, formula: Any) -> Any:
        """Return the node of a formula or fraction, made where the graph is being written."""
        if not isinstance(formula, Formula):
            above, below = formula
            return self._step(operator.truediv, self.node(above), self.node(below))
        if not formula.terms:
            return formula.offset
        total: Any = None
        for factor, names in formula.terms:
            term: Any = self._symbol(names[0])
            for name in names[1:]:
                term = self._step(operator.mul, term, self._symbol(name))
            if factor != 1:
                term = self._step(operator.mul, term, factor)
            total = term if total is None else self._step(operator.add, total, term)
        if formula.offset:
            total = self._step(operator.add if formula.offset > 0 else operator.sub, total, abs(formula.offset))
        return total if formula.divisor == 1 else self._step(operator.floordiv, total, formula.divisor)

    def limit(self, name: str, function: Any, sign: str, bound: int) -> None:
        """Add a check of a number that the program reads."""
        item = self._symbol(name)
        with self.graph.inserting_after(item):
            holds = self.graph.call_function(function, (item, bound))
        with self.graph.inserting_after(holds):
            text = f"Runtime assertion failed for expression {name} {sign} {bound} on node '{holds.name}'"
            self.graph.call_function(ops.aten._assert_scalar.default, (holds, text))
        holds.meta["val"] = True

    def _symbol(self, name: str) -> Any:
        """Return the node of a size, read from an input."""
        if name in self.family.scalars:
            return self.items[int(name[1:])]
        if ("size", name) not in self.made:
            own = [place for place in self.places.values() if place[2].root.__name__ == name]
            node, axis, dim = min(own, key=lambda place: (place[2].factor != 1, place[2].offset != 0))
            with self.graph.inserting_after(self.last):
                made = self.last = self.graph.create_node("call_function", ops.aten.sym_size.int, (node, axis), {},
                                                          f"sym_size_int_{axis}")
                made.meta["val"] = dim.sized(self.family.points[0][name])
            with self.graph.inserting_after(self.last):
                if dim.offset:
                    made = self.last = self._step(operator.sub, made, dim.offset)
            with self.graph.inserting_after(self.last):
                if dim.factor != 1:
                    made = self.last = self._step(operator.floordiv, made, dim.factor)
            self.made["size", name] = made
        return self.made["size", name]

    def _step(self, function: Any, a: Any, b: Any) -> Node:
        """Return the node of an operation on sizes, made once."""
        key = function, a, b
        if key not in self.made:
            node = self.made[key] = self.graph.call_function(function, (a, b))
            node.meta["scope"] = self.scope
            node.meta["val"] = function(*(each.meta["val"] if isinstance(each, Node) else each for each in (a, b)))
        return self.made[key]
