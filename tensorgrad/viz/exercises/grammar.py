"""Formulas as students type them: `g · (1 − out²)`, `g.T @ x`, `sum(g) / 2`.

Read without running anything, and computed with NumPy.

The page reads them by the same grammar (grammar.js):
    sum = product (("+" | "-") product)*; product = sign (("*" | "/" | "@") sign)*; sign = "-" sign | power;
    power = atom (("^" | "**") sign | "²" | "³" | "ᵀ" | ".T")*; atom = number | name | function "(" sum ("," sum)* ")" |
    "(" comparison ")" | "|" sum "|"
"""
from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

LONGEST, DEEPEST = 200, 40
FUNCTIONS: dict[str, Any] = {
    "exp": np.exp, "log": np.log, "ln": np.log, "sqrt": np.sqrt, "tanh": np.tanh, "sin": np.sin, "cos": np.cos,
    "abs": np.abs, "sign": np.sign,
    "relu": lambda x: np.maximum(x, 0.0), "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "sum": np.sum, "mean": np.mean,
    "size": lambda x: float(np.size(x)), "transpose": lambda x: np.swapaxes(x, -1, -2) if np.ndim(x) > 1 else x}
COMPARISONS: dict[str, Any] = {">": np.greater, "<": np.less, ">=": np.greater_equal, "<=": np.less_equal,
                               "≥": np.greater_equal, "≤": np.less_equal}
BINARY: dict[str, Any] = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "@": np.matmul}
SAME = str.maketrans({"−": "-", "–": "-", "·": "*", "×": "*", "∗": "*", "÷": "/", "Σ": "sum"})
OTHER = re.compile(r"\s*(?:(\d+\.?\d*(?:e[+-]?\d+)?|\.\d+)|([^\W\d]\w*)|(\*\*|>=|<=|\.T(?!\w)|[-+*/@^(),|²³ᵀ<>≥≤]))",
                   re.ASCII | re.IGNORECASE)

WITHIN = re.compile(r"(?![²³ᵀ])\w")           # characters that would continue a name


class Unread(ValueError):
    """The text is no formula; the message says why."""


def parsed(text: str, names: Any) -> Any:
    """Parse a formula into a tree: ["number", 2.0], ["name", "g"], ["call", "exp", tree, …]. Errors: Unread.

    >>> parsed("g * x²", ["g", "x"])
    ['*', ['name', 'g'], ['^', ['name', 'x'], ['number', 2.0]]]
    """
    if len(text) > LONGEST:
        raise Unread(f"it is longer than {LONGEST} letters")
    parser = Parser(tokens(text, names))
    tree = parser.comparison()
    if parser.rest:
        raise Unread(f"{parser.rest[0][1]} is not expected there")
    return tree


def tokens(text: str, names: Any) -> list[tuple[str, str]]:
    text, known = text.translate(SAME).rstrip(), sorted(names, key=len, reverse=True)
    found, at = [], 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        own = next((n for n in known if text.startswith(n, at) and not WITHIN.match(text, at + len(n))), None)
        if own is not None:
            found.append(("name", own))
            at += len(own)
            continue
        match = OTHER.match(text, at)
        if match is None:
            raise Unread(f"{text[at]} cannot be read")
        number, word, sign = match.groups()
        if word is not None and word.lower() not in FUNCTIONS:
            raise Unread(f"{word} is not known here")
        found.append(("number", number) if number else ("function", word.lower()) if word else ("sign", sign))
        at = match.end()
    return found


class Parser:
    """Parses tokens by recursive descent, from the loosest signs to the tightest."""

    def __init__(self, rest: list[tuple[str, str]]) -> None:
        self.rest, self.depth = rest, 0

    def next(self, *signs: str) -> str | None:
        """Consume and return the next token if it is one of these signs."""
        if self.rest and self.rest[0][0] == "sign" and self.rest[0][1] in signs:
            return self.rest.pop(0)[1]
        return None

    def expect(self, sign: str) -> None:
        if self.next(sign) is None:
            raise Unread(f"{sign} is missing")

    def comparison(self) -> Any:
        left = self.sum()
        sign = self.next(*COMPARISONS)
        return left if sign is None else [sign, left, self.sum()]

    def sum(self) -> Any:
        tree = self.product()
        while sign := self.next("+", "-"):
            tree = [sign, tree, self.product()]
        return tree

    def product(self) -> Any:
        tree = self.sign()
        while sign := self.next("*", "/", "@"):
            tree = [sign, tree, self.sign()]
        return tree

    def sign(self) -> Any:
        self.depth += 1
        if self.depth > DEEPEST:
            raise Unread("it has too many brackets and signs")
        tree = ["minus", self.sign()] if self.next("-") else self.power()
        self.depth -= 1
        return tree

    def power(self) -> Any:
        tree = self.atom()
        while sign := self.next("^", "**", "²", "³", "ᵀ", ".T"):
            if sign in ("ᵀ", ".T"):
                tree = ["call", "transpose", tree]
            else:
                tree = ["^", tree, ["number", float("²³".index(sign) + 2)] if sign in "²³" else self.sign()]
        return tree

    def atom(self) -> Any:
        if not self.rest:
            raise Unread("it ends too early")
        if self.next("("):
            tree = self.comparison()
            self.expect(")")
            return tree
        if self.next("|"):
            tree = self.sum()
            self.expect("|")
            return ["call", "abs", tree]
        kind, text = self.rest.pop(0)
        if kind == "number":
            return ["number", float(text)]
        if kind == "name":
            return ["name", text]
        if kind == "function":
            self.expect("(")
            tree = self.comparison()
            self.expect(")")
            return ["call", text, tree]
        raise Unread(f"{text} is not expected there")


def computed(tree: Any, values: Mapping[str, Any]) -> Any:
    """Evaluate a tree for these arrays, in float64. Errors: Unread if shapes do not fit."""
    try:
        with np.errstate(all="ignore"):
            return np.asarray(run(tree, values), dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise Unread("the shapes do not fit") from error


def run(tree: Any, values: Mapping[str, Any]) -> Any:
    kind, *parts = tree
    if kind == "number":
        return np.float64(parts[0])
    if kind == "name":
        return np.asarray(values[parts[0]], dtype=np.float64)
    if kind == "call":
        return FUNCTIONS[parts[0]](run(parts[1], values))
    arguments = [run(part, values) for part in parts]
    if kind == "minus":
        return -arguments[0]
    if kind == "^":
        return np.power(*arguments)
    return np.asarray((COMPARISONS | BINARY)[kind](*arguments), dtype=np.float64)


# Common forms of rules: A is the input that is asked for, B and C are other inputs, O is the result. The page reveals
# the first form that gives the right numbers.
FORMS = """g; -g; g · B; g / B; -g · A / B²; -g · B / A²; 2 · g · A; g · 2 · B; 3 · g · A²; g · B · A^(B − 1); g · O; -g · O; g / A; g · (1 − O²);
g · O · (1 − O); g · (A > 0); g / (2 · O); g · cos(A); -g · sin(A); g · sigmoid(A); g · sign(A); -g · O²; g @ Bᵀ; Bᵀ @ g; gᵀ @ B; g @ B; gᵀ; sum(g); sum(g) · B;
g / size(A); 2 · (A − B) · g / size(A); 2 · (A − B) · g; -2 · (B − A) · g / size(A); g / (1 + A); g · B · C""".replace("\n", " ").split("; ")  # noqa: E501


def fitting(asked: str, others: list[str], out: str, fits: Any) -> str | None:
    """Return the first form that `fits` with these names in it; None if none does."""
    for form in FORMS:
        for b in others if "B" in form else [""]:
            for c in others if "C" in form else [""]:
                text = re.sub(r"(?<![A-Za-z])[ABCO](?![a-z])",
                              lambda m, b=b, c=c: {"A": asked, "B": b, "C": c, "O": out}[m[0]], form)
                if fits(text):
                    return text
    return None
