"""Split an op that other ops define into steps of those ops, which have their own rules, read from its definition."""
from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..ops.base import OPS, Op
from .expression_trees import MAKING, UNREAD, Formula, Unable, copied, sorted_out, spread
from .reading import NoFormula
from .tracing import traced

OPERATORS = {ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide", ast.Pow: "power",
             ast.MatMult: "matmul", ast.BitAnd: "logical_and", ast.BitOr: "logical_or", ast.Eq: "equal",
             ast.NotEq: "not_equal", ast.Lt: "less", ast.LtE: "less_equal",
             ast.Gt: "greater", ast.GtE: "greater_equal"}


class Step(NamedTuple):
    """A step of a program: inputs are ("place", key), ("value", array, number or None), or ("missing", name), which the
    tape does not keep.
    """

    number: int
    op: type[Op]
    params: dict[str, Any]
    inputs: tuple[tuple[str, Any], ...]
    results: tuple[str, ...]
    wanted: tuple[bool, ...]            # for each input, whether it gets a gradient


def primitives(step: Step, formula: Formula) -> list[Step]:
    """Return steps that compute a step's results by its formula. Errors: Unable if that is not made of ops."""
    return Splitter(step, formula).steps


class Lines(Formula):
    """A function's lines as it runs, with every op of the table a call: no trees, since steps have their own."""

    def __init__(self, function: Any, values: dict[str, Any]) -> None:
        super().__init__(ast.Constant(None), values)
        try:
            reading, self.constants = traced(function, values, self.scope["xp"], lambda name: True)
        except NoFormula as error:
            raise Unable(str(error)) from None
        self.values = self.values | self.constants
        self.write(reading)

    def written(self, node: ast.expr) -> Any:
        return None


def recomputed(recorded: Any, op: type[Op], function: Any, params: dict[str, Any],
               inputs: list[tuple[str, Any]]) -> Any:
    """Return the recorded steps of a definition, with masks and indices computed from the inputs.

    `recorded` comes from the tape, which holds masks and indices as constants; it is returned unchanged where the
    definition does not lead to the same steps. `inputs` are those of the op, as in `Step`.
    """
    if isinstance(recorded, str) or op.arity is None:
        return recorded
    try:
        inputs = [(kind, value if kind == "place" else copied(value)) for kind, value in inputs]
        values = dict(zip(op.inputs, [recorded.leaves[value] if kind == "place" else value for kind, value in inputs],
                          strict=True))
        lines = Lines(function, values | params)
        results = tuple(f"result.{i}" for i in range(len(lines.value))) if op.several else ("result",)
        step = Step(1, op, params, tuple(inputs), results, tuple(kind == "place" for kind, _ in inputs))
        parts = Splitter(step, lines).steps
    except Unable:
        return recorded
    parts = parts[:len(parts) - len(step.results)]          # without the final copies to the keys of the results
    keys: dict[str, str] = {}
    rest, steps = list(recorded.steps), list[Step]()
    for part in parts:
        names = tuple((kind, keys.get(value, value) if kind == "place" else value) for kind, value in part.inputs)
        if not any(part.wanted):
            steps.append(part._replace(inputs=names, number=rest[0].number if rest else 1))
            continue
        if (not rest or rest[0].op is not part.op or len(rest[0].inputs) != len(names)
                or len(rest[0].results) != len(part.results)):
            return recorded
        own = rest.pop(0)
        if any(wanted and kind != "place" for wanted, (kind, _) in zip(own.wanted, names, strict=True)):
            return recorded
        keys.update(zip(part.results, own.results, strict=True))
        steps.append(own._replace(inputs=names))
    return recorded._replace(steps=[*steps, *rest])


class Splitter:
    def __init__(self, step: Step, formula: Formula) -> None:
        self.step, self.formula, self.steps = step, formula, list[Step]()
        self.known: dict[str, tuple[str, Any]] = dict(zip(step.op.inputs, step.inputs, strict=True))
        self.gradients = {value for (kind, value), wanted in zip(step.inputs, step.wanted, strict=True)
                          if wanted and kind == "place"}
        for names, expression in formula.reading.locals:
            parts = self.several(expression) if len(names) > 1 else [self.one(expression)]
            self.known.update(zip(names, parts, strict=True))
        results = self.several(formula.reading.value) if step.op.several else [self.one(formula.reading.value)]
        for reference, key in zip(results, step.results, strict=True):
            self.add(OPS["contiguous"], [reference], {}, (key,))

    def one(self, node: ast.expr) -> tuple[str, Any]:
        """Return a reference to the value of an expression: a step's result, an input or a constant."""
        if (not self.formula.varies(node) or not any(isinstance(n, ast.Name) and n.id in self.known
                                                     for n in ast.walk(node))):
            value = self.formula.evaluated(node)
            return "value", value if value is None or isinstance(value, (bool, int, float)) else np.asarray(value)
        if isinstance(node, ast.Name):
            return self.known[node.id]
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            return self.add(OPS[OPERATORS[type(node.op)]], [self.one(node.left), self.one(node.right)], {})[0]
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in OPERATORS:
            return self.add(OPS[OPERATORS[type(node.ops[0])]], [self.one(node.left), self.one(node.comparators[0])],
                            {})[0]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return self.add(OPS["negative"], [self.one(node.operand)], {})[0]
        if isinstance(node, ast.IfExp) and not self.formula.varies(node.test):
            return self.one(node.body if self.formula.evaluated(node.test) else node.orelse)
        if isinstance(node, ast.Subscript) and not self.formula.varies(node.slice):
            return self.subscript(node, self.formula.evaluated(node.slice))
        if isinstance(node, ast.Call):
            return self.several(node)[0]
        raise Unable(f"{type(node).__name__} is no step")

    def several(self, node: ast.expr) -> list[tuple[str, Any]]:
        """Return references to the values of an expression with one or several results."""
        if isinstance(node, (ast.Tuple, ast.List)):
            return list(map(self.one, node.elts))
        if (not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute)
                or not isinstance(node.func.value, ast.Name) or node.func.value.id != "xp"):
            raise Unable(f"{ast.unparse(node)[:60]} is no step")
        name, args, keywords = node.func.attr, spread(node.args), {k.arg: k.value for k in node.keywords if k.arg}
        if name in UNREAD:
            return [self.one(args[0])]
        if name in MAKING:
            return [("value", np.asarray(self.formula.evaluated(node)))]
        if name not in OPS:
            raise Unable(f"xp.{name} is no step")
        op = OPS[name]
        inputs, options = sorted_out(op, args, keywords)
        listed = spread(inputs[0].elts) if op.sequence and isinstance(inputs[0], (ast.Tuple, ast.List)) else inputs
        params = {k: self.formula.evaluated(v) for k, v in options.items()}
        count = len(self.formula.evaluated(node)) if op.several else 1
        return self.add(op, list(map(self.one, listed)), params, count=count)

    def subscript(self, node: ast.Subscript, index: Any) -> tuple[str, Any]:
        if isinstance(index, int) and isinstance(self.formula.evaluated(node.value), (tuple, list)):
            return self.several(node.value)[index]
        whole = index if isinstance(index, tuple) else (index,)
        name = "get_item" if all(isinstance(part, int) for part in whole) else "get_slice"
        return self.add(OPS[name], [self.one(node.value)], {"index": whole})[0]

    def add(self, op: type[Op], inputs: list[tuple[str, Any]], params: dict[str, Any], results: tuple[str, ...] = (),
            count: int = 1) -> list[tuple[str, Any]]:
        """Add a step and return references to its results."""
        made = results or tuple(self.keys(count))
        wanted = tuple(kind == "place" and value in self.gradients and op.differentiable for kind, value in inputs)
        if any(wanted):
            self.gradients.update(made)
        self.steps.append(Step(self.step.number, op, params, tuple(inputs), made, wanted))
        return [("place", key) for key in made]

    def keys(self, count: int) -> Iterator[str]:
        """Yield keys of new places within the step."""
        for i in range(count):
            yield f"{self.step.results[0]}/{len(self.steps)}{f'.{i}' if count > 1 else ''}"
