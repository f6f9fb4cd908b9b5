"""Formulas in plain text, typeset: `g · (x − y) / n` as MathML, which browsers and screen readers know without a
library.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from html import escape
from typing import NamedTuple

RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿᵀᴴ", "0123456789−+nTH")
UP = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿᵀᴴ"
TOKEN = re.compile(rf"\s*(?:(?P<number>\d+(?:\.\d+)?(?:e[−+]?\d+)?|∞|NaN\b|½)|(?P<name>(?:(?![{UP}√Σ∞½])[^\W\d])(?:(?!["
                   rf"{UP}√Σ])[\w\u0304′]|\.(?=[^\W\d]))*)"
                   rf"|(?P<raised>[{UP}]+)|(?P<sign>[-−+·/@^(),\[\]|√Σ=≠<>≤≥⌊⌋⌈⌉⋯]))")
LONGEST = 30        # letters of the longest formula that is one element
COMPARED = ("=", "≠", "<", ">", "≤", "≥", "in", "is")
CLOSING = {"(": ")", "[": "]", "|": "|", "⌊": "⌋", "⌈": "⌉"}
WORDS = {"where", "if", "else", "with", "and", "or", "not", "in", "is", "by"}


class Unset(Exception):
    """The text is no formula that is read here."""


class Letter(NamedTuple):
    """Spelling of a name in a formula: `text`, or the number of the page's `key`, in brackets if it is negative."""

    text: str
    key: str = ""


class Node(NamedTuple):
    """A part of a formula: its kind, its sign or name, and its own parts."""

    kind: str
    text: str
    parts: tuple[Node, ...] = ()


def mathml(formula: str, letters: Mapping[str, Letter] | None = None) -> str | None:
    """A formula as MathML, with other letters for its names; None for a text that is prose, or more than is read here.

    >>> mathml("g / x²")
    '<math><mfrac><mi>g</mi><msup><mi>x</mi><mn>2</mn></msup></mfrac></math>'
    >>> mathml("a copy of x") is None
    True

    A long formula is several elements, between which a line may break.
    """
    try:
        parts = Reader(formula).whole()
    except Unset:
        return None
    writer = Writer(letters or {})
    if sum(len(writer.letters.get(word, Letter(word)).text) for word in re.findall(r"[\w.]+|\S", formula)) <= LONGEST:
        return f"<math>{''.join(map(writer.alone, parts))}</math>"
    return " ".join(f"<math>{line}</math>" for part in parts for line in writer.lines(part))


class Reader:
    """Parses a formula by recursive descent, from the loosest signs to the tightest."""

    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str]] = []
        at, text = 0, text.strip()
        while at < len(text):
            if (match := TOKEN.match(text, at)) is None:
                raise Unset(text[at:])
            kind = match.lastgroup or ""
            self.tokens.append(("word" if match[kind] in WORDS else kind, match[kind]))
            at = match.end()
        self.at = 0

    def see(self, *texts: str) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at][0] != "name" and self.tokens[self.at][1] in texts

    def take(self, *texts: str) -> str:
        if self.at >= len(self.tokens) or texts and self.tokens[self.at][1] not in texts:
            raise Unset(str(texts))
        self.at += 1
        return self.tokens[self.at - 1][1]

    def ahead(self, text: str) -> bool:
        """Return True if the next tokens are a comma and this word."""
        return self.see(",") and self.tokens[self.at + 1:self.at + 2] == [("word", text)]

    def whole(self) -> list[Node]:
        """Parse the formula and the definitions of its letters."""
        found = [self.cases()]
        if self.ahead("with"):
            self.at += 2
            found.append(Node("text", ", with "))
            while True:
                found.append(self.definition())
                if not self.see(","):
                    break
                self.take(",")
                found.append(Node("text", ", "))
        if self.at < len(self.tokens):
            raise Unset("more")
        return found

    def definition(self) -> Node:
        names = [self.atom()]
        while self.see(","):
            self.take(",")
            names.append(self.atom())
        self.take("=")
        left = names[0] if len(names) == 1 else Node("list", "", tuple(names))
        return Node("row", "=", (left, self.cases()))

    def cases(self) -> Node:
        """Parse `a where condition, else b`, where b may have cases too."""
        first = self.either()
        if not self.see("where", "if"):
            return first
        word = self.take()
        rows = [first, self.either()]
        self.take(",")
        self.take("else")
        rest = self.cases()
        rows += rest.parts if rest.kind == "cases" else (rest,)
        return Node("cases", word, tuple(rows))

    def either(self) -> Node:
        return self.chain(lambda: self.chain(self.negated, "and"), "or")

    def negated(self) -> Node:
        if self.see("not"):
            self.take()
            return Node("prefix", "not ", (self.negated(),))
        return self.chain(self.sum, *COMPARED)

    def chain(self, part: Callable[[], Node], *signs: str) -> Node:
        found = part()
        while self.see(*signs):
            sign = self.take()
            if sign == "not":
                sign += f" {self.take('in')}"
            found = Node("row", sign, (found, self.negated() if self.see("not") else part()))
        return found

    def sum(self) -> Node:
        return self.chain(self.product, "+", "−")

    def product(self) -> Node:
        found = self.matrix()
        while self.see("·", "/"):
            kind = "fraction" if self.take() == "/" else "row"
            found = Node(kind, "·", (found, self.matrix()))
        return found

    def matrix(self) -> Node:
        return self.chain(self.signed, "@")

    def signed(self) -> Node:
        for sign, shown in (("−", "−"), ("Σ", "∑")):
            if self.see(sign):
                self.take()
                return Node("prefix", shown, (self.signed(),))
        return self.power()

    def power(self) -> Node:
        found = self.raised(self.atom())
        if self.see("^"):
            self.take()
            return Node("power", "", (found, self.signed()))
        return found

    def raised(self, found: Node) -> Node:
        while self.at < len(self.tokens):
            kind, text = self.tokens[self.at]
            if kind == "raised":
                self.take()
                shown = text.translate(RAISED)
                found = Node("power", "", (found, Node("number" if shown[-1].isdigit() else "sign", shown)))
            elif self.see("["):
                found = Node("call", "[", (found, *self.listed("[")))
            else:
                break
        return found

    def atom(self) -> Node:
        if self.at >= len(self.tokens):
            raise Unset("end")
        kind, text = self.tokens[self.at]
        if kind == "number":
            return Node("number", self.take())
        if kind == "name":
            self.take()
            return (Node("call", "(", (Node("function", text), *self.listed("("))) if self.see("(")
                    else Node("name", text))
        if self.see("√"):
            self.take()
            return Node("root", "", (self.atom(),))
        if self.see("⋯"):
            return Node("sign", self.take())
        if self.see("(", "⌊", "⌈", "|"):
            parts = self.listed(text)
            return Node("fence", text, tuple(parts))
        raise Unset(text)

    def listed(self, opening: str) -> list[Node]:
        """Parse parts between brackets, separated by commas."""
        self.take(opening)
        found: list[Node] = []
        while not self.see(CLOSING[opening]):
            if found:
                self.take(",")
            part = self.cases()
            if self.see("=") and part.kind == "name":       # an option: axis=1
                part = Node("row", self.take(), (part, self.cases()))
            found.append(part)
        self.take(CLOSING[opening])
        return found


class Writer:
    """Writes nodes as MathML. Numbers that may be negative have brackets, except in `alone`: no sign precedes them."""

    def __init__(self, letters: Mapping[str, Letter]) -> None:
        self.letters = letters

    def alone(self, node: Node) -> str:
        if node.kind == "row":
            return self.row(node, True)
        return self.name(node, True) if node.kind == "name" else self.write(node)

    def write(self, node: Node) -> str:
        return str(getattr(self, node.kind)(node))

    def lines(self, node: Node) -> list[str]:
        """Split a formula at its loosest signs, into pieces that begin with them."""
        if node.kind == "call" and node.text == "(":
            what, *parts = map(self.alone, node.parts)
            ends = ["<mo>,</mo>"] * (len(parts) - 1) + ["<mo>)</mo>"]
            first, *rest = [part + end for part, end in zip(parts, ends)] or ["<mo>)</mo>"]
            return [f"{what}<mo>(</mo>{first}", *rest]
        if node.kind != "row" or node.text not in ("+", "−", "·", "@", "="):
            return [self.alone(node)]
        a, b = node.parts
        first, *rest = self.lines(b) if node.text == "=" else [self.write(b)]
        return [*self.lines(a), f"<mo form='infix'>{node.text}</mo>{first}", *rest]

    def row(self, node: Node, alone: bool = False) -> str:
        a, b = node.parts
        sign = (f"<mtext>\u00a0{node.text}\u00a0</mtext>" if node.text.isalpha() or " " in node.text
                else f"<mo>{escape(node.text)}</mo>")
        compared = node.text in COMPARED
        return (f"<mrow>{self.alone(a) if alone or compared else self.write(a)}{sign}"
                f"{self.alone(b) if compared else self.write(b)}</mrow>")

    def fraction(self, node: Node) -> str:
        return f"<mfrac>{''.join(self.bare(part) for part in node.parts)}</mfrac>"

    def bare(self, node: Node) -> str:
        """Write a part without its brackets, where the layout groups it, such as in a fraction or an exponent."""
        inner = node.parts[0] if node.kind == "fence" and node.text == "(" and len(node.parts) == 1 else node
        return f"<mrow>{self.alone(inner)}</mrow>" if inner.kind == "cases" else self.alone(inner)

    def power(self, node: Node) -> str:
        base, exponent = node.parts
        return f"<msup>{self.write(base)}{self.bare(exponent)}</msup>"

    def prefix(self, node: Node) -> str:
        sign = f"<mtext>{node.text.strip()}\u00a0</mtext>" if node.text.strip().isalpha() else f"<mo>{node.text}</mo>"
        return f"<mrow>{sign}{self.write(node.parts[0])}</mrow>"

    def root(self, node: Node) -> str:
        return f"<msqrt>{self.bare(node.parts[0])}</msqrt>"

    def fence(self, node: Node) -> str:
        return f"<mrow><mo>{node.text}</mo>{self.list(node)}<mo>{CLOSING[node.text]}</mo></mrow>"

    def list(self, node: Node) -> str:
        return "<mo>,</mo>".join(self.alone(part) for part in node.parts)

    def call(self, node: Node) -> str:
        what, *parts = node.parts
        if what.text == "exp" and len(parts) == 1:
            return f"<msup><mi>e</mi>{self.bare(parts[0])}</msup>"
        return f"<mrow>{self.write(what)}{self.fence(Node('fence', node.text, tuple(parts)))}</mrow>"

    def cases(self, node: Node) -> str:
        *pairs, last = node.parts
        rows = "".join(f"<mtr><mtd>{self.alone(a)}</mtd><mtd><mtext>{node.text}\u00a0</mtext>{self.write(c)}</mtd>"
                       f"</mtr>"
                       for a, c in zip(pairs[::2], pairs[1::2]))
        rows += f"<mtr><mtd>{self.alone(last)}</mtd><mtd><mtext>else</mtext></mtd></mtr>"
        return f'<mrow><mo>{{</mo><mtable columnalign="left">{rows}</mtable></mrow>'

    def name(self, node: Node, alone: bool = False) -> str:
        letter = self.letters.get(node.text, Letter(node.text))
        if letter.key:
            mark = ' data-alone=""' if alone else ""
            return f'<mn data-number="{escape(letter.key)}"{mark}>{escape(bracketed(letter.text, alone))}</mn>'
        text = bracketed(letter.text, alone)
        return f"<mn>{escape(text)}</mn>" if text.strip("(−").replace(".", "").isdigit() else f"<mi>{escape(text)}</mi>"

    def function(self, node: Node) -> str:
        return f"<mi>{escape(node.text)}</mi>"

    def number(self, node: Node) -> str:
        return f"<mn>{node.text}</mn>"

    def sign(self, node: Node) -> str:
        return f"<mo>{node.text}</mo>"

    def text(self, node: Node) -> str:
        return f"<mtext>{node.text.replace(' ', chr(0xa0))}</mtext>"


def bracketed(text: str, alone: bool) -> str:
    """Write a number, in brackets if it is negative and has neighbours."""
    return f"({text})" if text.startswith("−") and not alone else text


__all__ = ["Letter", "mathml"]
