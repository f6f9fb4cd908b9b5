"""Formulas of the op table as trees that a program in another language evaluates: those of `reading`, for arrays of
known shapes.

    formula = Formula(OPS["mean"].forward, {"x": array, "axis": None, "keepdims": False})
    formula.tree            # JSON-able: ["op", "/", ["call", "sum", [["name", "x"]], {"axis": None, …}], ["is", 6]]
    formula.value           # what it comes to for these arrays

A tree is a list whose first element says what it is:

- `["is", value]`: a number, a bool, None, a string, or a list of these; `["name", name]`; `["array", array]`, as
  `packed` writes it
- `["op", sign, left, right]`, `["not" | "negative" | "invert", tree]`, `["and" | "or", trees…]`, `["if", test, then,
  else]`
- `["call", function, trees, options]`; `["list", trees…]`; `["item", tree, position]` of several results
- `["take", tree, places, shape]`: elements by their places in row-major order, zero (or a last part of the tree) at −1
- `["add", tree, places, shape]`: zeros, and the elements added at these places
- `["put", tree, tree, places]`: the first, with the elements of the second at these places; `["put", …, True]` adds
  them
- `["mix", tree, rows, columns, weights, shape]`: out[row] = Σ weight · x[column]

What depends on shapes and options alone is worked out here; a function that is no op of the reader's, such as `mean`,
is read in its turn.
"""
from __future__ import annotations

import ast
import builtins
import math
import warnings
from types import FunctionType
from typing import Any

import numpy as np

from ..ops.base import OPS, Op, arguments
from ..storage.base import backend_of
from .notation import is_namespace
from .reading import FLOAT, NoFormula, Placed, Reader, Reading, bound, duplicate, tidied
from .tracing import traced

SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
         ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<",
         ast.LtE: "<=",
         ast.Gt: ">", ast.GtE: ">="}
UNARY = {ast.USub: "negative", ast.Not: "not", ast.Invert: "invert"}
ABOUT = ("shape", "ndim", "size", "dtype", "itemsize", "kind")         # attributes that say nothing of values
DEEPEST = 12            # helpers within helpers
MOST_ENTRIES = 40_000   # of a linear map that is written out
MOVING = {"pad_constant", "restride", "index_select"}      # beside those that the table calls linear
# functions that leave real numbers as they are
UNREAD = {"asarray", "astype", "cast", "channels_last", "contiguous", "copy", "clone", "real", "conj"}

# Functions that evaluators know, by the names of the op table; the functions of NumPy beside them have their arguments
# listed.
ELEMENTWISE = set("""absolute add arccos arccosh arcsin arcsinh arctan arctan2 arctanh ceil copysign cos cosh deg2rad
    digamma divide entr equal erf erfc exp exp2 expm1 floor floor_divide fmax fmin fmod greater greater_equal hypot
    isfinite isinf isnan less less_equal lgamma log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not
    logical_or logical_xor logit
    maximum minimum multiply ndtr negative
    not_equal power rad2deg reciprocal
    remainder round rsqrt sgn sigmoid sign sin sinc sinh sqrt square subtract tan tanh trunc where xlog1py
    xlogy""".split())
REDUCING = set("sum prod amax amin max min any all argmax argmin".split())
OTHERS = set("""broadcast_to concat cummax cummin cumprod cumsum embedding expand_dims gather matmul order
    place_along_axis recurrence reshape scatter
    scatter_add squeeze stack take_along_axis window_max""".split())
MAKING = {"zeros": ("shape", "dtype"), "ones": ("shape", "dtype"), "full": ("shape", "value", "dtype"),
          "zeros_like": ("x", "dtype"),
          "ones_like": ("x", "dtype"), "full_like": ("x", "value", "dtype")}
MATRICES = set("""cholesky_factor cofactors determinant eigh_pairs eigh_values inverse_matrix log_determinant
    matrix_exponential qr_factor singular_values
    solve_linear solve_triangular svd_factor""".split())
# functions that may turn the sign of vectors: they are told the result whose signs those found had
LIKE = {"eigh_pairs": 1, "svd_factor": 0}
FUNCTIONS = ELEMENTWISE | REDUCING | OTHERS | MATRICES | MAKING.keys()


MOST_READINGS = 4096
# {(function, sorts of its arguments): (its expression, or why it has none; its globals)}
READINGS: dict[Any, tuple[Any, dict[str, Any]]] = {}


class Unable(Exception):
    """The formula is none that can be evaluated elsewhere; the message says why."""


class Formula:
    """The result of a function of formulas, or of an expression, as a tree and as a value.

    `values` are its arguments by name: arrays, lists of arrays, options.
    """

    def __init__(self, function: Any, values: dict[str, Any]) -> None:
        self.scope: dict[str, Any] = {"xp": backend_of("cpu").xp, "__builtins__": vars(builtins), "math": math}
        self.values = values
        self.groups = {name: len(v) for name, v in values.items() if isinstance(v, (tuple, list))
                       and any(isinstance(part, np.ndarray) for part in v)}
        for name in self.groups:
            self.values = {**self.values, **{f"{name}[{i}]": part for i, part in enumerate(values[name])}}
        self.given = set(self.values)
        self.constants: dict[str, Any] = {}         # names of values that do not depend on those of the arguments
        self.locals: list[Any] = []                 # [names, tree]
        try:
            self.write(Reading(function, []) if isinstance(function, ast.expr) else self.read(function))
        except Unable as error:
            if isinstance(function, ast.expr):
                raise
            try:                # as it runs: a loop, or a helper that is no expression
                reading, self.constants = traced(function, values, self.scope["xp"], stays)
            except NoFormula:
                raise Unable(str(error)) from None
            self.values |= self.constants
            self.locals.clear()
            self.write(reading)

    def read(self, function: Any) -> Reading:
        """Return a function's expression, read once per shapes and options. Unable if it is no expression."""
        key = function, tuple((name, sort_of(value)) for name, value in self.values.items())
        if key not in READINGS:
            if len(READINGS) >= MOST_READINGS:
                READINGS.clear()
            lists: dict[str, ast.expr] = {name: ast.Tuple([loaded(f"{name}[{i}]") for i in range(n)], ast.Load())
                                          for name, n in self.groups.items()}
            try:
                reader = ExactReader(self, function)
                READINGS[key] = tidied(reader.returned(lists), reader.locals), self.scope
            except (NoFormula, RecursionError, Unable) as error:
                READINGS[key] = str(error), self.scope
        found, self.scope = READINGS[key]
        if isinstance(found, str):
            raise Unable(found)
        return found

    def write(self, reading: Reading) -> None:
        """The trees of a reading, line by line."""
        self.reading = reading
        for names, expression in reading.locals:
            value = self.evaluated(expression)
            self.values.update(zip(names, (value,) if len(names) == 1 else value, strict=True))
            if self.varies(expression):
                self.locals.append([list(names), self.written(expression)])
        self.value, self.tree = self.evaluated(reading.value), self.written(reading.value)

    def evaluated(self, node: ast.expr) -> Any:
        """Return an expression's value. Unable if it raises an error."""
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore", SyntaxWarning)          # `None is None`, where a name was
                return eval(compile(ast.fix_missing_locations(ast.Expression(node)), "<formula>", "eval"),
                            {**self.scope, **self.values})
        except Exception as error:
            raise Unable(f"{type(error).__name__}: {error}") from None

    def varies(self, node: ast.AST) -> bool:
        """Return True if an expression depends on values of arrays, not only on shapes and options."""
        if isinstance(node, ast.Name):
            return node.id not in self.constants and isinstance(self.values.get(node.id), (np.ndarray, np.generic))
        if isinstance(node, ast.Attribute) and node.attr in ABOUT:
            return False
        if (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
                and node.func.id in ("len", "isinstance", *FLOAT)):
            return False
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            return False
        return any(map(self.varies, ast.iter_child_nodes(node)))

    # ── trees ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def written(self, node: ast.expr) -> Any:
        """The tree of an expression."""
        if not self.varies(node):
            value = self.evaluated(node)
            if simple(value):
                return ["is", plain(value)]
            if isinstance(value, (np.ndarray, np.generic)):
                return ["array", packed(value)]
        writer = getattr(self, f"write_{type(node).__name__}", None)
        if writer is None:
            raise Unable(f"{type(node).__name__} has no counterpart")
        return writer(node)

    def write_Name(self, node: ast.Name) -> Any:
        return ["name", node.id]

    def write_BinOp(self, node: ast.BinOp) -> Any:
        if type(node.op) not in SIGNS:
            raise Unable(f"{type(node.op).__name__} has no counterpart")
        return ["op", SIGNS[type(node.op)], self.written(node.left), self.written(node.right)]

    def write_UnaryOp(self, node: ast.UnaryOp) -> Any:
        return ([UNARY[type(node.op)], self.written(node.operand)] if type(node.op) in UNARY
                else self.written(node.operand))

    def write_BoolOp(self, node: ast.BoolOp) -> Any:
        return ["and" if isinstance(node.op, ast.And) else "or", *map(self.written, node.values)]

    def write_Compare(self, node: ast.Compare) -> Any:
        if len(node.ops) > 1 or type(node.ops[0]) not in SIGNS:
            raise Unable("a chain of comparisons has no counterpart")
        return ["op", SIGNS[type(node.ops[0])], self.written(node.left), self.written(node.comparators[0])]

    def write_IfExp(self, node: ast.IfExp) -> Any:
        if not self.varies(node.test):
            return self.written(node.body if self.evaluated(node.test) else node.orelse)
        return ["if", *map(self.written, (node.test, node.body, node.orelse))]

    def write_Tuple(self, node: ast.Tuple | ast.List) -> Any:
        return ["list", *map(self.written, node.elts)]

    write_List = write_Tuple

    def write_Subscript(self, node: ast.Subscript) -> Any:
        value = self.evaluated(node.value)
        if self.varies(node.slice):
            raise Unable("an index is computed")
        index = self.evaluated(node.slice)
        if isinstance(value, (tuple, list)):
            return (self.written(node.value.elts[index]) if isinstance(node.value, (ast.Tuple, ast.List))
                    else ["item", self.written(node.value), index])
        return self.taken(node.value, value, lambda x: x[index])

    def write_Attribute(self, node: ast.Attribute) -> Any:
        if node.attr not in ("T", "real"):
            raise Unable(f".{node.attr} has no counterpart")
        return self.taken(node.value, self.evaluated(node.value), lambda x: getattr(x, node.attr))

    def write_Call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Attribute):
            owner = [] if is_namespace(node.func.value) else [node.func.value]
            args = [*owner, *spread(node.args)]
            args = args[1:] if args and isinstance(args[0], ast.Name) and args[0].id == "xp" else args
            return self.call(node.func.attr, args, {k.arg: k.value for k in node.keywords if k.arg})
        listed = unrolled(node, self) if isinstance(node.func, ast.Name) and node.func.id in ("tuple", "list") else None
        if listed is None:
            raise Unable(f"{ast.unparse(node.func)}() has no counterpart")
        return self.written(listed)

    def call(self, name: str, args: list[ast.expr], keywords: dict[str, ast.expr]) -> Any:
        """A call of an op of the table, or of one of the functions that make arrays."""
        if name in MAKING:
            given = dict(zip(MAKING[name], args, strict=False)) | keywords
            options = {k: self.written(v) for k, v in given.items() if k not in ("x", "dtype")}
            inputs = [self.written(given["x"])] if "x" in given else []
            if any(option[0] != "is" for option in options.values()):
                raise Unable(f"an option of {name} is computed")
            return ["call", name, inputs, {k: v[1] for k, v in options.items()}]
        if name in UNREAD or name == "copied":
            return self.unread(name, args, keywords)
        if name not in OPS:
            raise Unable(f"xp.{name} has no counterpart")
        op = OPS[name]
        inputs, options = sorted_out(op, args, keywords)
        if any(map(self.varies, options.values())):
            raise Unable(f"an option of {name} is computed")
        settings = {k: v for k, v in op.parameters.items()} | {k: self.evaluated(v) for k, v in options.items()}
        if name in ("index_put", "set_view"):
            return self.put(name, inputs, settings)
        if name in FUNCTIONS:
            parts = spread(inputs[0].elts) if op.sequence and isinstance(inputs[0], (ast.Tuple, ast.List)) else inputs
            if op.sequence and parts is inputs:
                raise Unable(f"{name} of a list that is not written out")
            arrays = [self.written(a) for a in parts]
            if name in LIKE:
                arrays.append(["array",
                               packed(getattr(self.scope["xp"], name)(self.evaluated(parts[0]),
                                                                      **settings)[LIKE[name]])])
            return ["call", name, arrays, {k: plain(v) for k, v in settings.items() if simple(v)}]
        return self.linear(op, inputs, settings)

    def unread(self, name: str, args: list[ast.expr], keywords: dict[str, ast.expr]) -> Any:
        """Write a call that leaves real numbers as they are, apart from a cast of bools to numbers, or of numbers to
        integers.
        """
        if name == "copied":
            return self.written(args[1])
        if name in ("cast", "astype", "asarray"):
            kind = self.evaluated(ast.Call(ast.Attribute(ast.Name("xp", ast.Load()), name, ast.Load()), args,
                                           [ast.keyword(k, v) for k, v in keywords.items()])).dtype.kind
            return ["call", "cast", [self.written(args[0])], {"kind": kind_of(kind)}]
        return self.written(args[0])

    # ── movements ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def taken(self, node: ast.expr, value: Any, function: Any) -> Any:
        """A choice of elements, by their places."""
        places = np.asarray(function(numbered(value)))
        return ["take", self.written(node), (places - 1).ravel().tolist(), list(places.shape)]

    def put(self, name: str, inputs: list[ast.expr], settings: dict[str, Any]) -> Any:
        """Elements written into an array at places that do not depend on values."""
        x, value, *others = inputs
        whole, rest = self.evaluated(x), [self.evaluated(o) for o in others]
        xp = self.scope["xp"]
        if name == "set_view":
            places = xp.view(numbered(whole), view=settings["view"], order=settings.get("order")) - 1
        else:
            places = xp.index(numbered(whole), *rest, template=settings["template"]) - 1
        spread_value = np.broadcast_to(numbered(np.asarray(self.evaluated(value))), places.shape)
        part = ["take", self.written(value), (spread_value - 1).ravel().tolist(), list(places.shape)]
        return ["put", self.written(x), part, places.ravel().tolist(), bool(settings.get("accumulate", False))]

    def linear(self, op: type[Op], inputs: list[ast.expr], settings: dict[str, Any]) -> Any:
        """A linear op of its first input, the others known: as a choice of elements, as the sum of elements at places,
        or as a matrix.
        """
        rest = [self.evaluated(i) for i in inputs[1:]]
        if any(self.varies(i) and not (isinstance(i, ast.Name) and i.id in self.given
                                       and np.asarray(v).dtype.kind in "iub") for i, v in zip(inputs[1:], rest)):
            raise Unable(f"xp.{op.opname} of two arrays has no counterpart")
        if not op.linear and op.opname not in MOVING and not op.view:
            raise Unable(f"xp.{op.opname} has no counterpart")
        border = settings.pop("value", 0) if op.opname == "pad_constant" else 0
        x = self.evaluated(inputs[0])
        run = getattr(self.scope["xp"], op.opname)
        settings = {k: v for k, v in settings.items() if repr(v) != "required"}

        def function(values: Any) -> Any:
            return np.asarray(run(values, *rest, **settings))
        draw = np.random.default_rng(0).standard_normal(np.shape(x))
        try:
            places, there = function(numbered(x).astype("float64")), function(draw)
        except Exception as error:
            raise Unable(f"xp.{op.opname}: {error}") from None
        if (chosen := whole_places(places, draw, there)) is not None:
            return ["take", self.written(inputs[0]), chosen, list(places.shape), *([border] if border else [])]
        if draw.size * there.size > MOST_ENTRIES * 50:
            raise Unable(f"xp.{op.opname} is too large to be written out")
        matrix = np.stack([function(row.reshape(np.shape(x))).ravel() for row in np.eye(draw.size)], axis=1)
        rows, columns = np.nonzero(matrix)
        if rows.size > MOST_ENTRIES:
            raise Unable(f"xp.{op.opname} is too large to be written out")
        weights = matrix[rows, columns]
        if function(np.zeros_like(draw)).any():
            raise Unable(f"xp.{op.opname} is not linear")
        if np.all(weights == 1) and np.array_equal(columns[np.argsort(columns, kind="stable")], np.arange(draw.size)):
            return ["add", self.written(inputs[0]), rows[np.argsort(columns, kind="stable")].tolist(),
                    list(there.shape)]
        return ["mix", self.written(inputs[0]), rows.tolist(), columns.tolist(), weights.tolist(), list(there.shape)]


def definition(op: type[Op], values: dict[str, Any]) -> Formula:
    """The formula of what an op computes: its definition, or its name where evaluators know that alone."""
    try:
        return Formula(op.forward, values)
    except Unable:
        if op.opname not in FUNCTIONS:
            raise
    options = [ast.keyword(name, loaded(name)) for name in op.parameters]
    return Formula(ast.Call(ast.Attribute(loaded("xp"), op.opname, ast.Load()), list(map(loaded, op.inputs)), options),
                   values)


class ExactReader(Reader):
    """Reads a function as it runs for arrays of known shapes, with every helper in the place of its call."""

    def __init__(self, formula: Formula, function: Any, above: Reader | None = None) -> None:
        super().__init__(function, {}, True, above)
        self.formula = formula
        for node in ast.walk(self.node):
            if isinstance(node, ast.Name) and node.id in function.__globals__ and node.id != "xp":
                known = formula.scope.setdefault(node.id, function.__globals__[node.id])
                if known is not function.__globals__[node.id]:
                    formula.scope[node.id] = None         # two helpers of one name: neither can stay a call

    def assign(self, target: ast.expr, value: ast.expr, values: dict[str, ast.expr], rest: list[ast.stmt]) -> None:
        if isinstance(target, ast.Tuple) and len(target.elts) == 1 and not isinstance(value, ast.Tuple):
            target, value = target.elts[0], ast.Subscript(value, ast.Constant(0), ast.Load())
        super().assign(target, value, values, rest)

    def define(self, names: tuple[str, ...], value: ast.expr) -> list[ast.expr]:
        shown = super().define(names, value)
        if isinstance(value, ast.AST):
            try:
                found = self.formula.evaluated(value)
            except Unable as error:
                raise NoFormula(str(error)) from None
            kept = [name.id for name in shown if isinstance(name, ast.Name)]
            self.formula.values.update(zip(kept, (found,) if len(kept) == 1 else found, strict=True))
        return shown

    def choice(self, test: ast.expr) -> bool | ast.expr:
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self.choice(test.operand)
            return not inner if isinstance(inner, bool) else ast.UnaryOp(test.op, inner)
        if isinstance(test, ast.BoolOp):
            decisive = isinstance(test.op, ast.Or)
            left: list[ast.expr] = []
            for part in map(self.choice, test.values):
                if part is decisive and not left:
                    return decisive             # what follows may make no sense then
                if not isinstance(part, bool) or part is decisive:
                    left.append(part if isinstance(part, ast.expr) else ast.Constant(part))
            return not decisive if not left else left[0] if len(left) == 1 else ast.BoolOp(test.op, left)
        if self.formula.varies(test):
            return test
        try:
            return bool(self.formula.evaluated(test))
        except Unable as error:
            raise NoFormula(str(error)) from None

    def called(self, call: ast.Call) -> ast.expr:
        if isinstance(call.func, ast.Lambda):
            return self.put(call.func.body, dict(zip((a.arg for a in call.func.args.args), call.args, strict=True)))
        call.args = spread(call.args)
        function = self.helper(call.func)
        if function is None or not self.formula.varies(call) and not uses_arrays(call):
            return call
        if self.depth >= DEEPEST or any(isinstance(a, ast.Starred) for a in call.args):
            return call
        reader = ExactReader(self.formula, function, above=self)
        kept = len(self.locals)
        args, keywords = call.args, call.keywords
        try:
            if isinstance(call.func, ast.Attribute):
                op = OPS[call.func.attr]
                inputs, options = sorted_out(op, args, {k.arg: k.value for k in keywords if k.arg})
                args, keywords = [loaded("xp"), *inputs], [ast.keyword(k, v) for k, v in options.items()]
            return reader.returned(bound(reader.node, function, args, keywords))
        except NoFormula:
            del self.locals[kept:]
            return call

    def helper(self, name: ast.expr) -> Any:
        """The function behind a name: a helper, or the definition of an op that evaluators do not know."""
        if isinstance(name, ast.Attribute) and isinstance(name.value, ast.Name) and name.value.id == "xp":
            return None if stays(name.attr) else OPS[name.attr].forward
        found = self.globals.get(name.id) if isinstance(name, ast.Name) else None
        return found if isinstance(found, FunctionType) and name.id not in FLOAT else None     # type: ignore[attr-defined]


def sort_of(value: Any) -> Any:
    """Return the properties that expressions depend on: the shape and the dtype of an array, an option's value."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.shape, value.dtype.str
    return tuple(map(sort_of, value)) if isinstance(value, (tuple, list)) else repr(value)


def stays(name: str) -> bool:
    """Return True if a call stays one: evaluators know the function, or the table has no definition by other ops."""
    return name not in OPS or name in FUNCTIONS or name in UNREAD or bool(OPS[name].kernels.primitive)


def unrolled(node: ast.Call, formula: Formula) -> ast.expr | None:
    """`tuple(f(i) for i in range(3))` as `(f(0), f(1), f(2))`."""
    loop = node.args[0] if node.args else node
    if isinstance(loop, (ast.Tuple, ast.List)):
        return loop
    if not isinstance(loop, (ast.GeneratorExp, ast.ListComp)) or len(loop.generators) > 1 or loop.generators[0].ifs:
        return None
    target: Any = loop.generators[0].target
    over: Any = loop.generators[0].iter
    names: list[str] = [name.id for name in (target.elts if isinstance(target, ast.Tuple) else [target])]  # type: ignore[union-attr]
    parts: Any = over.elts if isinstance(over, (ast.Tuple, ast.List)) else None
    if parts is None and not formula.varies(over):
        parts = [ast.Tuple([ast.Constant(v) for v in value], ast.Load()) if isinstance(target, ast.Tuple)
                 else ast.Constant(value)
                 for value in formula.evaluated(over)]
    if parts is None:
        return None
    found = []
    for part in parts:
        element = duplicate(loop.elt)
        for name, value in zip(names, part.elts if isinstance(target, ast.Tuple) else [part], strict=True):
            element = Placed(name, value).visit(element)
        found.append(element)
    return ast.Tuple(found, ast.Load())


def uses_arrays(call: ast.Call) -> bool:
    return any(isinstance(n, ast.Name) and n.id == "xp" for n in ast.walk(call))


def loaded(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def spread(args: list[ast.expr]) -> list[ast.expr]:
    """Arguments, with `*(a, b)` as `a, b`."""
    found: list[ast.expr] = []
    for a in args:
        found += a.value.elts if isinstance(a, ast.Starred) and isinstance(a.value, (ast.Tuple, ast.List)) else [a]
    return found


def sorted_out(op: type[Op], args: list[ast.expr], keywords: dict[str, ast.expr]) -> tuple[list[ast.expr],
                                                                                           dict[str, ast.expr]]:
    """The inputs and the options of a call of an op: options may follow the inputs, as in NumPy."""
    options = {k: v for k, v in keywords.items() if k in op.parameters}
    if op.arity is None and not op.sequence:
        return args, options
    count = 1 if op.sequence else len(op.inputs)
    named = [keywords[name] for name in op.inputs[len(args):] if name in keywords]
    return [*args[:count], *named], dict(zip(op.parameters, args[count:], strict=False)) | options


def numbered(value: Any) -> Any:
    """Numbers from 1 in the shape of an array."""
    return np.arange(1, np.size(value) + 1).reshape(np.shape(value))


def whole_places(places: Any, draw: Any, there: Any) -> list[int] | None:
    """The places that a function chose, if it did no more than choose: −1 for zeros."""
    at = np.rint(places).astype(int).ravel() - 1
    if np.any(at < -1) or np.any(at >= draw.size) or not np.array_equal(at + 1, places.ravel()):
        return None
    padded = np.append(draw.ravel(), 0.0)
    return at.tolist() if np.array_equal(padded[at], there.ravel()) else None


# ── values as JSON ────────────────────────────────────────────────────────────────────────────────────────────────────


def simple(value: Any) -> bool:
    """Return True if a tree can hold a value as it is."""
    return (value is None or isinstance(value, (bool, int, float, str)) or isinstance(value, (tuple, list))
            and all(map(simple, value)))


def plain(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [plain(part) for part in value]
    return {"number": str(value)} if isinstance(value, float) and not math.isfinite(value) else value


def copied(value: Any) -> Any:
    """A tensor's or an array's numbers, in double precision; numbers and None as they are.

    Unable if they are not real.
    """
    value = getattr(value, "array", value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if not isinstance(value, (np.ndarray, np.generic)):     # as arrays of other devices are
        raise Unable("its numbers are on another device, or not real")
    if value.dtype.kind not in "fiub" or value.dtype.kind == "f" and value.dtype.itemsize == 2:
        raise Unable("its numbers are complex, or in half precision")
    return np.array(value, "float64" if value.dtype.kind == "f" else value.dtype)


def kind_of(kind: str) -> str:
    """The kind of an array: floating point numbers, whole ones, bools."""
    if kind not in "fiub":
        raise Unable("it has numbers that are not real")
    return "i" if kind == "u" else kind


def packed(array: Any) -> dict[str, Any]:
    """An array: its shape, its kind, its elements in row-major order; those that are no finite numbers as strings."""
    array = np.asarray(array)
    kind = kind_of(array.dtype.kind)
    data = array.ravel().astype({"f": "float64", "i": "int64", "b": "int64"}[kind])
    return {"shape": list(array.shape), "kind": kind,
            "data": [v if math.isfinite(v) else str(v) for v in data.tolist()]}


def argument_names(function: Any) -> tuple[str, ...]:
    """Return the names that a gradient asks for, after `xp` and `g`."""
    positional, _, options = arguments(function)
    return (*positional[2:], *options)
