"""Expressions of the op table as mathematics in plain text: `xp.multiply(g, xp.exp(x))` is `g · exp(x)`."""
from __future__ import annotations

import ast
import re
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from typing import NamedTuple

from ..ops.base import OPS
from ..ops.shape import Movement
from .reading import Placed
from .torch_names import public

# Levels of precedence, the loosest first.
CASES, OR, AND, NOT, COMPARE, SUM, PRODUCT, MATMUL, POWER, ATOM = range(10)

OPEN = "⋯"          # in the place of a detail without a notation
GREEK = {"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "eps": "ε", "lambd": "λ", "pi": "π",
         "LN2": "log(2)", "LN10": "log(10)", "ROOT_PI": "√π", "inf": "∞", "nan": "NaN"}
SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
# Notations of functions that are no ops of the table; ops have their own in `Op.notation`.
OTHERS = {"abs": "|{}|", "inv": "{}⁻¹", "affine": "{} · {} + {}", "biased": "{} + {}",
          "concatenate": "cat", "transpose": "permute", "reduced": "reduction"}
SIGNS = {ast.Eq: "=", ast.NotEq: "≠", ast.Lt: "<", ast.LtE: "≤", ast.Gt: ">", ast.GtE: "≥", ast.In: "in",
         ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not"}
# Notations of reads and writes at an index: `step_texts` replaces `[index]` by the index of a step.
INDEXED = (dict.fromkeys(("get_item", "get_slice", "index", "view"), "{}[index]")
           | dict.fromkeys(("index_put", "set_view"), "{} with [index] = {}") | {
    "place_slice": "{} at [index], 0 elsewhere", "index_add_into": "{} added at [index], 0 elsewhere",
    "embedding_add": "{} added at rows {}, 0 elsewhere", "place_along_axis": "{} at {}, 0 elsewhere"})
SAME = {"asarray", "astype", "copy", "ravel", "tuple"}
PLUMBING = {"keepdims", "dtype", "strict"}         # keyword arguments without an influence on the formula


class Text(NamedTuple):
    """A printed expression and its level of precedence."""

    text: str
    level: int

    def within(self, level: int) -> str:
        """Return the text, in brackets if its level is below this one."""
        return self.text if self.level >= level else f"({self.text})"


class Unspeakable(Exception):
    """An expression without a notation."""


def notation(node: ast.expr) -> str:
    """Write an expression as mathematics. Errors: Unspeakable if it has no notation.

    Calls that only arrange memory or dtypes are left out, unless there is nothing else.
    """
    if (isinstance(node, ast.Call) and is_left_out(called(node)) and isinstance(node.func, ast.Attribute)
            and isinstance(operands(node)[0], ast.Name)):
        return spelled_out(node).text
    return printed(node).text


def printed(node: ast.expr) -> Text:
    node = plain(node)
    if type(node) not in WRITERS:
        raise Unspeakable(type(node).__name__)
    return WRITERS[type(node)](node)


def detail(node: ast.expr) -> Text:
    """Write an argument, or OPEN if it has no notation."""
    try:
        return printed(node)
    except Unspeakable:
        return Text(OPEN, ATOM)


# ── operators for functions ───────────────────────────────────────────────────────────────────────────────────────────


def called(call: ast.Call) -> str:
    """Return the last part of the called name: `exp` of `xp.exp`, `det` of `xp.linalg.det`."""
    return (call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id if isinstance(call.func, ast.Name)
            else "")


def operands(call: ast.Call) -> list[ast.expr]:
    """Return the operands of a call: the array whose method it is, then the arguments, without `xp`."""
    first = call.args[:1] if call.args and isinstance(call.args[0], ast.Name) and call.args[0].id == "xp" else []
    own = [call.func.value] if isinstance(call.func, ast.Attribute) and not is_namespace(call.func.value) else []
    return [*own, *call.args[len(first):]]


def is_namespace(node: ast.expr) -> bool:
    """Return True if an expression is a module, such as xp, xp.linalg or special."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in ("xp", "special", "bessel", "airy")


def plain(node: ast.expr) -> ast.expr:
    """Replace a function by its operator, if it has one."""
    while isinstance(node, ast.Call) and (simpler := simplified(node)) is not node:
        node = simpler
    return node


def simplified(call: ast.Call) -> ast.expr:
    name, args = called(call), operands(call)
    if (name in ("max", "min") and isinstance(call.func, ast.Name) and len(args) == 2
            and isinstance(args[1], ast.Constant)):
        return args[0]          # Python's own max or min only guards a count that may be zero
    if name in MADE and len(args) == 1:
        return MADE[name](args[0])
    template = template_of(name)
    found = written(template) if len(args) == template.count("{}") > 0 else None
    return call if found is None else Filled(args).visit(deepcopy(found))  # type: ignore[no-any-return]


MADE: dict[str, Callable[[ast.expr], ast.expr]] = {
    "zeros_like": lambda x: ast.Constant(0), "ones_like": lambda x: ast.Constant(1), "float": lambda x: number(x),
}
MARKS = ("ᵀ", "⁻¹", "\u0304")        # that follow their operand
BRACKETS = {"|": "|", "⌊": "⌋", "⌈": "⌉"}
IN_PYTHON = {" = ": " == ", "≠": "!=", "≤": "<=", "≥": ">=", "·": "*", "−": "-", "^": "**", "²": "**2"}


def template_of(name: str) -> str:
    """Return the notation of a function: "{} · {}", or a name or sign; "" if it has none."""
    return OPS[name].notation if name in OPS else OTHERS.get(name, "")


def is_left_out(name: str) -> bool:
    """Return True if a function only arranges memory or dtypes."""
    return name in SAME or template_of(name) == "{}"


def sign_of(name: str) -> str:
    """Return the name or sign of a function whose arguments follow in brackets."""
    template = template_of(name)
    return template if template and "{}" not in template else public(name)


@cache
def written(template: str) -> ast.expr | None:
    """Parse a notation into an expression of operands _0, _1, …; None if it has brackets or marks."""
    if template[0] in BRACKETS or template.endswith(MARKS) or template == "√{}":
        return None
    for ours, pythons in IN_PYTHON.items():
        template = template.replace(ours, pythons)
    return ast.parse(re.sub("√(_[0-9])", r"sqrt(\1)", template.format("_0", "_1", "_2")), mode="eval").body


class Filled(ast.NodeTransformer):
    """Replaces _0, _1, … by operands."""

    def __init__(self, operands: list[ast.expr]) -> None:
        self.operands = operands

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.operands[int(node.id[1:])] if node.id.startswith("_") else node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        assert isinstance(node.func, ast.Name)
        return function(node.func.id, *map(self.visit, node.args))


def function(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(ast.Name("xp"), name), [*args], [])


def number(x: ast.expr) -> ast.expr:
    """Return the constant that `float("-inf")` makes; anything but a text as it is."""
    return ast.Constant(float(x.value)) if isinstance(x, ast.Constant) and isinstance(x.value, str) else x


# ── sums and products ─────────────────────────────────────────────────────────────────────────────────────────────────


def terms(node: ast.expr, sign: int = 1) -> list[tuple[int, ast.expr]]:
    """Return the terms of a sum, with their signs."""
    node = plain(node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [*terms(node.left, sign), *terms(node.right, sign)] if sign > 0 else [(sign, node)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        return [*terms(node.left, sign), *terms(node.right, -sign)] if sign > 0 else [(sign, node)]
    return [(sign, node)]


def summed(node: ast.BinOp) -> Text:
    out = ""
    for sign, term in terms(node):
        text = printed(term)
        negative = text.text.startswith("−") and text.level >= PRODUCT
        body = text.text[1:] if negative else text.within(PRODUCT)
        minus = negative != (sign < 0)
        out += (" − " if minus else " + ") + body if out else f"{'−' if minus else ''}{body}"
    return Text(out, SUM)


class Product:
    """A product being collected: its sign, its numbers, and the factors above and below the fraction line."""

    def __init__(self) -> None:
        self.sign, self.numbers = 1, ""
        self.above: list[str] = []
        self.below: list[str] = []
        self.only: ast.expr | None = None           # the last factor, printed by itself if it is the only one

    def times(self, node: ast.expr) -> None:
        node = plain(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            self.times(node.left)
            self.times(node.right)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            self.times(node.left)
            self.over(node.right)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            self.sign = -self.sign
            self.times(node.operand)
        elif (isinstance(node, ast.Constant) and isinstance(node.value, (int, float))
              and not isinstance(node.value, bool)):
            self.sign *= -1 if node.value < 0 else 1
            text = printed(ast.Constant(abs(node.value))).text
            if text != "1":
                self.numbers += f"{text} · "
        else:
            self.only = node
            self.above.append(printed(node).within(POWER))

    def over(self, node: ast.expr) -> None:
        """Divide by an expression: by each factor of a product; a quotient counts as one factor."""
        node = plain(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            self.over(node.left)
            self.over(node.right)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            self.sign = -self.sign
            self.over(node.operand)
        else:
            text = printed(node).within(POWER)
            if text != "1":
                self.below.append(text)

    def text(self) -> Text:
        if self.only is not None and len(self.above) == 1 and self.sign > 0 and not self.numbers and not self.below:
            return printed(self.only)
        if self.numbers.startswith("0 · "):
            return Text("0", ATOM)
        for factor in [*self.below]:
            if factor in self.above:
                self.above.remove(factor)
                self.below.remove(factor)
        numbers, above, below = self.numbers, powers(self.above), powers(self.below)
        top = numbers + " · ".join(above) if above else numbers.removesuffix(" · ") or "1"
        minus = "−" if self.sign < 0 else ""
        if not below:
            return Text(minus + top, PRODUCT if minus or " · " in top else POWER)
        return Text(f"{minus}{top} / {below[0] if len(below) == 1 else '(' + ' · '.join(below) + ')'}", PRODUCT)


def powers(factors: list[str]) -> list[str]:
    """Write x · x · x as x³."""
    found: list[list[str]] = []
    for factor in factors:
        if (found and found[-1][0] == factor and not factor.endswith(tuple("⁰¹²³⁴⁵⁶⁷⁸⁹ᵀ̄")) and "^" not in factor
                and "√" not in factor):
            found[-1].append(factor)
        else:
            found.append([factor])
    return [same[0] + (str(len(same)).translate(SUPERSCRIPTS) if len(same) > 1 else "") for same in found]


def multiplied(node: ast.expr) -> Text:
    product = Product()
    product.times(node)
    return product.text()


def binary(node: ast.BinOp) -> Text:
    if isinstance(node.op, (ast.Add, ast.Sub)):
        return summed(node)
    if isinstance(node.op, (ast.Mult, ast.Div)):
        return multiplied(node)
    if isinstance(node.op, ast.MatMult):
        return Text(f"{printed(node.left).within(MATMUL)} @ {printed(node.right).within(MATMUL)}", MATMUL)
    if isinstance(node.op, ast.Pow):
        return power(node.left, plain(node.right))
    if isinstance(node.op, ast.FloorDiv):
        return Text(f"⌊{multiplied(ast.BinOp(node.left, ast.Div(), node.right)).text}⌋", ATOM)
    if isinstance(node.op, ast.Mod):
        return Text(f"{printed(node.left).within(POWER)} mod {printed(node.right).within(POWER)}", PRODUCT)
    if isinstance(node.op, (ast.BitAnd, ast.BitOr)):
        return joined([node.left, node.right], isinstance(node.op, ast.BitAnd))
    raise Unspeakable(type(node.op).__name__)


def power(base: ast.expr, exponent: ast.expr) -> Text:
    below, above = printed(base).within(ATOM), printed(exponent)
    digits = above.text.replace("−", "-")
    if digits.removeprefix("-").isascii() and digits.removeprefix("-").isdigit():
        return Text(below + digits.translate(SUPERSCRIPTS), POWER)
    return Text(f"{below}^{above.within(ATOM)}", POWER)


def unary(node: ast.UnaryOp) -> Text:
    if isinstance(node.op, ast.USub):
        return multiplied(node)
    if isinstance(node.op, (ast.Not, ast.Invert)):
        return Text(f"not {printed(node.operand).within(NOT)}", NOT)
    return printed(node.operand)


# ── conditions and cases ──────────────────────────────────────────────────────────────────────────────────────────────


def joined(parts: list[ast.expr], both: bool) -> Text:
    level = AND if both else OR
    return Text((" and " if both else " or ").join(printed(p).within(level) for p in parts), level)


def comparison(node: ast.Compare) -> Text:
    left, right = printed(node.left).within(SUM), printed(node.comparators[0]).within(SUM)
    if left == right and isinstance(node.ops[0], (ast.NotEq, ast.Eq)):
        return Text(f"{left} is {'NaN' if isinstance(node.ops[0], ast.NotEq) else 'a number'}", COMPARE)
    return Text(f"{left} {SIGNS[type(node.ops[0])]} {right}", COMPARE)


def cases(first: ast.expr, word: str, condition: ast.expr, other: ast.expr) -> Text:
    return Text(f"{printed(first).within(OR)} {word} {printed(condition).within(OR)}, else {printed(other).text}",
                CASES)


# ── functions ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def call(node: ast.Call) -> Text:
    name, args = called(node), operands(node)
    if name == "where" and len(args) == 3:
        return cases(args[1], "where", args[0], args[2])
    if marked := with_marks(template_of(name), args):
        return marked
    if (name == "swapaxes" and [printed(a).text for a in args[1:]] in (["−1", "−2"], ["−2", "−1"])
            or name == "transposed"):
        return Text(f"{printed(args[0]).within(ATOM)}ᵀ", POWER)
    if name in ("count_of", "targets_counted") or name == "prod" and isinstance(node.func, ast.Name):
        if name == "prod" and not is_shape(args[0]):
            raise Unspeakable(name)
        return Text("n", ATOM)
    # without their options
    if isinstance(node.func, ast.Name) and name in ("reduced", "softmax", "onehot", "group_mean", "only_earlier"):
        return spelled_out(ast.Call(ast.Name(name), [args[0]], []))
    if name in SAME and args:
        return printed(args[0])
    if name in ("slice", "zip", "map", "range", "len", ""):
        raise Unspeakable(name)
    return indexed(INDEXED[name], node) if name in INDEXED else spelled_out(node)


def indexed(template: str, node: ast.Call) -> Text:
    """Write a read or write at an index: that of the step, a named array, or OPEN."""
    count, args = template.count("{}"), operands(node)
    arrays = [a for a in args[count:] if not isinstance(a, ast.Starred)]
    own = any(names_itself(k) for k in node.keywords if k.arg in ("index", "template", "view"))
    where = ", ".join(detail(a).text for a in arrays) or ("index" if own else OPEN)
    template = template.replace("[index]", f"[{where}]")
    if template.startswith("{}["):
        return Text(template.format(printed(args[0]).within(ATOM)), ATOM)
    shown = [detail(a).within(OR) for a in args[:count]]
    return Text(template.format(*["0" if text.startswith("zeros(") and i else text for i, text in enumerate(shown)]),
                CASES)


def with_marks(template: str, args: list[ast.expr]) -> Text | None:
    """Write a function with brackets, a root, or a mark after its operand; None for others."""
    if not args or len(args) != template.count("{}"):
        return None
    if template[0] in BRACKETS and (inner := written(template[1:-1])):
        return Text(template[0] + printed(Filled(args).visit(deepcopy(inner))).text + template[-1], ATOM)
    text = printed(args[0])
    if template == "√{}":
        return Text(f"√{text.text if text.text.replace('.', '').isalnum() else f'({text.text})'}", POWER)
    if template == "{}\u0304":
        return Text(f"{text.text}\u0304" if len(text.text) == 1 else f"conj({text.text})", ATOM)
    return Text(text.within(ATOM) + template[2:], POWER)


def spelled_out(node: ast.Call) -> Text:
    """Write f(x, y, option=value), without None and options passed on under their own name."""
    name, args = called(node), [a for a in operands(node) if not is_nothing(a)]
    options = [k for k in node.keywords if k.arg and k.arg not in PLUMBING and not is_nothing(k.value)
               and not names_itself(k)
               and not (k.arg == "axis" and name in OPS and OPS[name].batch == "along"
                        and not issubclass(OPS[name], Movement) and not is_constant(k.value))]
    several = len(args) + len(options) > 1
    shown = [detail(a).within(OR) if several else printed(a).text for a in args]
    shown += [f"{GREEK.get(k.arg or '', k.arg)}={detail(k.value).within(OR)}" for k in options]
    return Text(f"{sign_of(name)}({', '.join(shown)})", ATOM)


def is_nothing(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def is_shape(node: ast.expr) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "shape" or isinstance(node, ast.Name)
            and node.id.endswith("shape"))


def is_constant(node: ast.expr) -> bool:
    return all(isinstance(n, (ast.Constant, ast.UnaryOp, ast.USub, ast.Tuple, ast.Load)) for n in ast.walk(node))


def names_itself(keyword: ast.keyword) -> bool:
    return isinstance(keyword.value, ast.Name) and keyword.value.id == keyword.arg


# ── names, numbers and the rest ───────────────────────────────────────────────────────────────────────────────────────


def name(node: ast.Name) -> Text:
    if node.id.endswith("_shape"):
        return Text(f"shape({GREEK.get(owner := node.id.removesuffix('_shape'), owner)})", ATOM)
    return Text(GREEK.get(node.id, node.id), ATOM)


def constant(node: ast.Constant) -> Text:
    value = node.value
    if value is Ellipsis:
        return Text("…", ATOM)
    if isinstance(value, complex) and not value.real:
        value = value.imag
        return Text("i" if value == 1 else f"{value:g}i", ATOM)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        text = str(int(value)) if value == value and abs(value) < 1e9 and value == int(value) else repr(value)
        text = text.replace("inf", "∞").replace("nan", "NaN").replace("-", "−")
        return Text(text, PRODUCT if text.startswith("−") else ATOM)
    return Text(str(value), ATOM)


def attribute(node: ast.Attribute) -> Text:
    if is_namespace(node.value):
        return Text(GREEK.get(node.attr, node.attr), ATOM)
    inner = printed(node.value)
    if node.attr == "T":
        return Text(f"{inner.within(ATOM)}ᵀ", POWER)
    return Text(f"{sign_of(node.attr)}({inner.text})", ATOM)


def subscript(node: ast.Subscript) -> Text:
    inner = printed(node.value).within(ATOM)
    index = node.slice
    if (isinstance(node.value, ast.Name) and not is_shape(node.value) and isinstance(index, ast.Constant)
            and isinstance(index.value, int)):
        return Text(inner + str(index.value).translate(SUBSCRIPTS), ATOM)
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return Text(f"{inner}[{', '.join(map(place, parts))}]", ATOM)


def place(part: ast.expr) -> str:
    if isinstance(part, ast.Slice):
        start, stop, step = (printed(p).text if p else "" for p in (part.lower, part.upper, part.step))
        return f"{start}:{stop}" + (f":{step}" if step else "")
    return printed(part).text


def mapped(node: ast.GeneratorExp) -> Text:
    """Write `(-s for s in shift)` as −shift."""
    loop = node.generators[0]
    if (len(node.generators) > 1 or loop.ifs or not isinstance(loop.target, ast.Name)
            or not isinstance(loop.iter, ast.Name)):
        raise Unspeakable("comprehension")
    return printed(Placed(loop.target.id, loop.iter).visit(deepcopy(node.elt)))


def several(node: ast.Tuple | ast.List) -> Text:
    if len(node.elts) == 1:
        return printed(node.elts[0])
    return Text(f"({', '.join(printed(e).within(OR) for e in node.elts)})", ATOM)


WRITERS: dict[type, Callable[..., Text]] = {
    ast.BinOp: binary, ast.UnaryOp: unary, ast.Call: call, ast.Name: name, ast.Constant: constant,
    ast.Attribute: attribute, ast.Subscript: subscript, ast.Tuple: several, ast.List: several, ast.Compare: comparison,
    ast.BoolOp: lambda node: joined(node.values, isinstance(node.op, ast.And)),
    ast.IfExp: lambda node: cases(node.body, "if", node.test, node.orelse), ast.GeneratorExp: mapped,
    ast.NamedExpr: lambda node: printed(node.value),
}
