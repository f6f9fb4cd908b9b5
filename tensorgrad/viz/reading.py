"""Read a function of formulas, such as an op's `grad_a`, from its source as one expression, with helpers inlined.

The reader assumes the ordinary case: real numbers, arrays that are neither empty nor vectors instead of matrices,
optional inputs that are given. Branches on options (`reduction`, `ord`) become conditional expressions.
"""
from __future__ import annotations

import ast
import operator
import tokenize
from collections.abc import Callable, Sequence
from functools import lru_cache
from types import FunctionType
from typing import Any, NamedTuple

from ..ops.base import OPS, Op

SHORT = 3           # size, see `size`, up to which locals are inlined however often they are used
LONG = 40           # helpers stay calls if inlining them adds more than this size
DEPTH = 4           # nesting of inlined helpers
# answers to queries of dtypes: those of floats
FLOAT: dict[str, Any] = {"kind": "f", "itemsize": 4, "is_complex": False, "is_number": False}


def duplicate(node: Any) -> Any:
    """Copy an expression deeply, several times faster than copy.deepcopy."""
    if isinstance(node, list):
        return [duplicate(part) for part in node]
    if not isinstance(node, ast.AST):
        return node
    made = type(node).__new__(type(node))
    for name, value in vars(node).items():
        setattr(made, name, duplicate(value) if isinstance(value, (ast.AST, list)) else value)
    return made


class NoFormula(Exception):
    """A function that is no formula: it loops or writes in place, or has no source."""


class Reading(NamedTuple):
    """A function's result as an expression of its locals, which are listed in order: [(names, expression)]."""

    value: ast.expr
    locals: list[tuple[tuple[str, ...], ast.expr]]


def read(function: Any, options: dict[str, Any], helpers: bool = True) -> Reading:
    """Read the expression that a function returns, with branches decided by `options`. Errors: NoFormula."""
    reader = Reader(function, options, helpers)
    return tidied(reader.returned({}), reader.locals)


# ── where the source is ───────────────────────────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=256)
def definitions(path: str) -> dict[Any, Any]:
    """Return a file's definitions: {(name, line): function} and {name: line} for classes. {} if it cannot be read."""
    try:
        with tokenize.open(path) as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, UnicodeDecodeError):
        return {}
    found: dict[Any, Any] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            first = node.decorator_list[0].lineno if node.decorator_list else node.lineno
            found[node.name, first] = node
        elif isinstance(node, ast.ClassDef):
            found.setdefault(node.name, node.lineno)
    return found


def definition(function: Any) -> ast.FunctionDef:
    code = getattr(function, "__code__", None)
    found = code and definitions(code.co_filename).get((code.co_name, code.co_firstlineno))
    if not found:
        raise NoFormula("its source is not there")
    node: ast.FunctionDef = found
    return node


# ── the reader ────────────────────────────────────────────────────────────────────────────────────────────────────────


def size(node: ast.AST) -> int:
    """Return the number of names, numbers and operators of an expression, without keyword arguments."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "xp":
        return 1
    parts = list(ast.iter_child_nodes(node)) if not isinstance(node, ast.Call) else [node.func, *node.args]
    return (isinstance(node, (ast.Name, ast.Constant, ast.operator, ast.unaryop, ast.cmpop, ast.Attribute))
            + sum(map(size, parts)))


def uses(name: str, statements: Sequence[ast.AST]) -> int:
    return sum(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) for s in statements
               for n in ast.walk(s))


class Reader:
    """Reads one function. Its helpers have readers of their own, which share the list of locals."""

    def __init__(self, function: Any, options: dict[str, Any], helpers: bool = True,
                 above: Reader | None = None) -> None:
        self.node, self.globals, self.options, self.helpers = (definition(function), function.__globals__, options,
                                                               helpers)
        self.locals: list[tuple[tuple[str, ...], ast.expr]] = above.locals if above else []
        self.depth: int = above.depth + 1 if above else 0
        arguments = self.node.args
        self.taken: set[str] = above.taken if above else {a.arg for a in (*arguments.args, *arguments.kwonlyargs)}

    def returned(self, values: dict[str, ast.expr]) -> ast.expr:
        return self.result(self.node.body, values)

    # ── statements ──

    def result(self, statements: list[ast.stmt], values: dict[str, ast.expr]) -> ast.expr:
        """Return the expression that the statements return, given {local name: value}. Errors: NoFormula."""
        for i, statement in enumerate(statements):
            rest = statements[i + 1:]
            if isinstance(statement, ast.Return) and statement.value is not None:
                return self.put(statement.value, values)
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                self.assign(statement.targets[0], statement.value, values, rest)
            elif isinstance(statement, ast.If):
                if isinstance(statement.body[-1], ast.Raise):
                    continue
                test = self.choice(self.put(statement.test, values))
                if isinstance(test, bool):
                    return self.result([*(statement.body if test else statement.orelse), *rest], values)
                return ast.IfExp(test, self.result([*statement.body, *rest], dict(values)),
                                 self.result([*statement.orelse, *rest], dict(values)))
            elif isinstance(statement, ast.Try):
                return self.result([*statement.body, *rest], values)
            elif isinstance(statement, ast.Expr):
                if isinstance(statement.value, ast.Call) and isinstance(statement.value.func, ast.Attribute):
                    # as xp.add.at does; other expression statements are docstrings and checks
                    raise NoFormula("it writes in place")
            elif not (isinstance(statement, (ast.Pass, ast.ImportFrom)) or isinstance(statement, ast.For)
                      and raises(statement)):
                raise NoFormula("it is more than an expression")
        raise NoFormula("it returns nothing")

    def assign(self, target: ast.expr, value: ast.expr, values: dict[str, ast.expr], rest: list[ast.stmt]) -> None:
        if isinstance(target, ast.Name):
            new = self.put(value, values)
            short = size(new) <= SHORT or isinstance(new, (ast.Lambda, ast.Tuple))
            values[target.id] = new if short or uses(target.id, rest) <= 1 else self.define((target.id,), new)[0]
            return
        if not isinstance(target, ast.Tuple) or not all(isinstance(t, ast.Name) for t in target.elts):
            raise NoFormula("it writes in place")
        names = tuple(t.id for t in target.elts if isinstance(t, ast.Name))
        new = each(value, lambda e: self.put(e, values)) or self.put(value, values)
        if isinstance(new, ast.Name):
            new = ast.Tuple([ast.Subscript(new, ast.Constant(i), ast.Load()) for i in range(len(names))], ast.Load())
        if isinstance(new, ast.Tuple) and len(new.elts) == len(names):
            for name, part in zip(names, new.elts, strict=True):
                values[name] = part if size(part) <= SHORT or uses(name, rest) <= 1 else self.define((name,), part)[0]
        else:
            values.update(zip(names, self.define(names, new), strict=True))

    def define(self, names: tuple[str, ...], value: ast.expr) -> list[ast.expr]:
        """List a local value under its names, primed where these are taken; return the names."""
        shown = []
        for name in names:
            while name in self.taken:
                name += "′"
            self.taken.add(name)
            shown.append(name)
        self.locals.append((tuple(shown), value))
        return [ast.Name(name, ast.Load()) for name in shown]

    # ── expressions ──

    def put(self, node: ast.expr, values: dict[str, ast.expr]) -> ast.expr:
        """Return the expression with local values and helpers inlined, and branches decided for the ordinary case."""
        placed: ast.expr = Placing(self, values).visit(duplicate(node))
        return placed

    def choice(self, test: ast.expr) -> bool | ast.expr:
        """Decide a condition by the options and the ordinary case, see `ordinary`."""
        for name, value in self.options.items():
            test = Placed(name, ast.Constant(value)).visit(test)
        return ordinary(test)

    def called(self, call: ast.Call) -> ast.expr:
        """Return the expression of the called helper; the call itself if that would be long or is no formula."""
        if isinstance(call.func, ast.Lambda):
            return self.put(call.func.body, dict(zip((a.arg for a in call.func.args.args), call.args, strict=True)))
        if isinstance(call.func, ast.Name) and call.func.id in TRANSPARENT:
            return next(a for a in call.args if not (isinstance(a, ast.Name) and a.id == "xp"))
        function = self.helper(call.func)
        if (function is None or not self.helpers or self.depth >= DEPTH
                or any(isinstance(a, ast.Starred) for a in call.args)):
            return call
        kept = len(self.locals)
        try:
            reader = Reader(function, self.options, above=self)
            args = call.args if isinstance(call.func, ast.Name) else [ast.Name("xp", ast.Load()), *call.args]
            value = reader.returned(bound(reader.node, function, args, call.keywords))
        except NoFormula:
            value = call
        if value is call or size(value) + sum(size(v) for _, v in self.locals[kept:]) > LONG + size(call):
            for names, _ in self.locals[kept:]:
                self.taken.difference_update(names)
            del self.locals[kept:]
            return call
        return value

    def helper(self, name: ast.expr) -> Any:
        """Return the function to inline for a name, a helper or the formula of a `_gradient` op; else None."""
        if (isinstance(name, ast.Attribute) and isinstance(name.value, ast.Name) and name.value.id == "xp"
                and name.attr.endswith("_gradient")):
            return OPS[name.attr].forward if name.attr in OPS else None
        if (not isinstance(name, ast.Name) or name.id in FLOAT or name.id in SPELLED
                and not (name.id == "reduced" and "reduction" in self.options)):
            return None
        found = self.globals.get(name.id)
        return found if isinstance(found, FunctionType) and not found.__module__.startswith(NUMERICS) else None


# modules of numerical methods: their functions are known by name
NUMERICS = f"{Op.__module__.rpartition('.')[0]}._"
# Helpers that arrange memory and axes, or check their argument: formulas have the argument instead.
TRANSPARENT = {"restored", "rounded", "writeable", "nonzero", "per_matrix", "grown", "rows", "real", "per_channel",
               "per_class", "of_kept", "as_given"}
# helpers with a notation of their own
SPELLED = {"transposed", "count_of", "reduced", "affine", "biased", "kept", "axes_of", "last",
           "softmax", "onehot", "group_mean", "only_earlier", "targets_counted"}


class Placing(ast.NodeTransformer):
    def __init__(self, reader: Reader, values: dict[str, ast.expr]) -> None:
        self.reader, self.values = reader, values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return duplicate(self.values[node.id]) if node.id in self.values else node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        own = {a.arg for a in node.args.args}
        return ast.Lambda(node.args,
                          Placing(self.reader, {k: v for k, v in self.values.items() if k not in own}).visit(node.body))

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        return self.reader.called(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        test = self.reader.choice(self.visit(node.test))
        if isinstance(test, bool):
            return self.visit(node.body if test else node.orelse)  # type: ignore[no-any-return]
        return ast.IfExp(test, self.visit(node.body), self.visit(node.orelse))


def each(value: ast.expr, put: Any) -> ast.expr | None:
    """Unroll `(f(y) for y in (a, b))` into a tuple; None for other expressions."""
    if (not isinstance(value, (ast.GeneratorExp, ast.ListComp)) or len(value.generators) != 1
            or not isinstance(value.generators[0].iter, ast.Tuple)
            or not isinstance(value.generators[0].target, ast.Name)):
        return None
    name = value.generators[0].target.id
    return ast.Tuple([put(Placed(name, part).visit(duplicate(value.elt))) for part in value.generators[0].iter.elts],
                     ast.Load())


def raises(loop: ast.For) -> bool:
    """Return True if a loop only checks its elements and raises."""
    return all(isinstance(s, ast.If) and isinstance(s.body[-1], ast.Raise) for s in loop.body)


def bound(node: ast.FunctionDef, function: Any, args: list[ast.expr], keywords: list[ast.keyword]) -> dict[str,
                                                                                                           ast.expr]:
    """Return {parameter: expression} for a call of a helper. Errors: NoFormula for *args and too many arguments."""
    names = [a.arg for a in node.args.args]
    if len(args) > len(names) or node.args.vararg:
        raise NoFormula("it takes any number of arguments")
    defaults = (dict(zip(reversed(names), reversed(function.__defaults__ or ()), strict=False))
                | (function.__kwdefaults__ or {}))
    values: dict[str, ast.expr] = {n: ast.Constant(v) for n, v in defaults.items()}
    values |= dict(zip(names, args, strict=False)) | {k.arg: k.value for k in keywords if k.arg}
    return values


# ── simplification ────────────────────────────────────────────────────────────────────────────────────────────────────


def tidied(value: ast.expr, locals: list[tuple[tuple[str, ...], ast.expr]]) -> Reading:
    """Inline locals that are used once; remove unused ones and guards of branches that are not taken."""
    value, kept = decided(value), [(names, decided(v)) for names, v in locals]
    for i in range(len(kept) - 1, -1, -1):
        names, own = kept[i]
        later = [value, *(v for _, v in kept[i + 1:])]
        times = sum(uses(name, later) for name in names)
        if times == 1 and len(names) == 1:
            put = Placed(names[0], own)
            value, kept[i + 1:] = put.visit(value), [(n, put.visit(v)) for n, v in kept[i + 1:]]
        if times == 0 or times == 1 and len(names) == 1:
            del kept[i]
    return Reading(decided(value), kept)


def decided(node: ast.expr) -> ast.expr:
    """Simplify `where(c, a, f(where(c, 1, b)))` to `where(c, a, f(b))`: the inner guard is for the other branch."""
    return Decided().visit(node)  # type: ignore[no-any-return]


class Placed(ast.NodeTransformer):
    """Replaces a name by an expression."""

    def __init__(self, name: str, value: ast.expr) -> None:
        self.name, self.value = name, value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return duplicate(self.value) if node.id == self.name else node


class Decided(ast.NodeTransformer):
    def __init__(self) -> None:
        self.facts: dict[str, bool] = {}

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if not (isinstance(node.func, ast.Attribute) and node.func.attr == "where" and len(node.args) == 3):
            return self.generic_visit(node)  # type: ignore[return-value]
        test = ast.dump(node.args[0])
        if test in self.facts:
            return self.visit(node.args[1] if self.facts[test] else node.args[2])  # type: ignore[no-any-return]
        for place, fact in ((1, True), (2, False)):
            self.facts[test] = fact
            node.args[place] = self.visit(node.args[place])
        del self.facts[test]
        return node


# ── the ordinary case ─────────────────────────────────────────────────────────────────────────────────────────────────


def ordinary(test: ast.expr) -> bool | ast.expr:
    """Decide a condition for the ordinary case; return the undecided rest of it if readers should see the branch."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        left = ordinary(test.operand)
        return not left if isinstance(left, bool) else ast.UnaryOp(test.op, left)
    if isinstance(test, ast.BoolOp):
        decisive, parts = isinstance(test.op, ast.Or), [ordinary(part) for part in test.values]
        if decisive in [part for part in parts if isinstance(part, bool)]:
            return decisive
        choices = [part for part in parts if not isinstance(part, bool)]
        return not decisive if not choices else ast.BoolOp(test.op, choices) if len(choices) > 1 else choices[0]
    if isinstance(test, ast.Compare):
        return compared(test)
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id in FLOAT:
        return bool(FLOAT[test.func.id]) or test.func.id == "is_number" and isinstance(test.args[0], ast.Constant)
    return True if geometric(test) or isinstance(test, ast.Name) and test.id == "keepdims" else test


def compared(test: ast.Compare) -> bool | ast.expr:
    left, op, right = known(test.left), test.ops[0], known(test.comparators[0])
    if isinstance(op, (ast.Is, ast.IsNot)) and isinstance(right, ast.Constant) and right.value is None:
        absent = isinstance(left, ast.Constant) and left.value is None
        return absent if isinstance(op, ast.Is) else not absent
    if isinstance(left, ast.Constant) and isinstance(right, ast.Constant):
        relation = RELATIONS.get(type(op))
        return bool(relation(left.value, right.value)) if relation else test
    if geometric(left) or geometric(right):
        # assume that shapes agree, and that lengths are large and equal no constant
        same = geometric(left) and geometric(right)
        return {ast.Eq: same, ast.NotEq: not same, ast.Gt: geometric(left), ast.GtE: geometric(left)}.get(type(op),
                                                                                                          False)
    return test


RELATIONS: dict[type, Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.Gt: operator.gt, ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b}


def known(node: ast.expr) -> ast.expr:
    """Replace queries of dtypes by the answers of floats, and fold expressions of constants."""
    if isinstance(node, ast.Attribute) and node.attr in FLOAT:
        return ast.Constant(FLOAT[node.attr])
    if (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "float"
            and isinstance(node.args[0], ast.Constant)):
        return ast.Constant(float(node.args[0].value))      # type: ignore[arg-type]
    if (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
            and isinstance(inner := known(node.operand), ast.Constant)):
        return ast.Constant(-inner.value)                   # type: ignore[operator]
    if isinstance(node, ast.Tuple):
        values = [part.value for part in map(known, node.elts) if isinstance(part, ast.Constant)]
        return ast.Constant(tuple(values)) if len(values) == len(node.elts) else node       # type: ignore[arg-type]
    return node


def geometric(node: ast.AST) -> bool:
    """Return True if an expression is about shapes."""
    return any(isinstance(n, ast.Attribute) and n.attr in ("shape", "ndim", "size") or isinstance(n, ast.Name) and
               (n.id.endswith("_shape") or n.id in ("count_of", "padding", "length", "widths")) for n in ast.walk(node))
