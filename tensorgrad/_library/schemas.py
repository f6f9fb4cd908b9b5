"""Schemas of operators, as texts like `t::scale(Tensor x, float s=1.5, *, Tensor(a!)? out=None) -> Tensor`."""
from __future__ import annotations

import re
from ast import literal_eval
from dataclasses import dataclass
from typing import Any

from ..device import device

# the numbers by which schemas name dtypes
SCALAR_TYPES = {name: number for number, names in enumerate(
    ("uint8 byte", "int8 char", "int16 short", "int32 int", "int64 long", "float16 half", "float32 float",
     "float64 double", "complex32 chalf", "complex64 cfloat", "complex128 cdouble", "bool")) for name in names.split()
} | {"bfloat16": 15}
KNOWN = frozenset("Tensor int SymInt float SymFloat bool SymBool Scalar str Device ScalarType Layout MemoryFormat "
                  "Generator Storage Dimname Stream QScheme Any Dict Future".split())
IN_PYTHON = {"SymInt": "int", "SymFloat": "float", "SymBool": "bool", "Scalar": "number", "ScalarType": "int",
             "Layout": "int", "MemoryFormat": "int"}
# types of C++, and what to write instead
IN_C = {"int64_t": "Use `SymInt` or `int` instead of `int64_t` in an operator's schema string. `SymInt` corresponds to "
                   "c10::SymInt in C++ while `int` in schema corresponds to the int64_t type in C++.",
        "double": "Use `float` instead of `double` in an operator's schema string. `float` in schema corresponds to "
                  "the double type in C++"}
TYPE = re.compile(r"(?P<base>[A-Za-z_][\w.]*)(?P<alias>\([^)]*\))?(?P<form>(\?|\[\d*\])*)")
PARENTHESES = {"(": 1, "[": 1, ")": -1, "]": -1}


@dataclass(frozen=True)
class Alias:
    """The set of memory that an argument or result belongs to, and True if the operator writes to it."""

    before_set: frozenset[str]
    is_write: bool


@dataclass(frozen=True)
class Argument:
    """An argument of a schema, or a result: `kind` is its type in Python's notation, `text` in the schema's."""

    name: str
    kind: str
    text: str
    alias_info: Alias | None = None
    default_value: Any = None
    kwarg_only: bool = False
    optional: bool = False          # it has a default value

    def __str__(self) -> str:
        default = f"={_written(self.default_value)}" if self.optional else ""
        return f"{self.text} {self.name}{default}".strip()

    @property
    def type(self) -> Any:
        """Return the type, as `torch.TensorType.get()`."""
        from .types import typed
        return typed(self.kind)

    @property
    def of_tensors(self) -> bool:
        """True for a tensor, or for a list of them."""
        return self.text.startswith("Tensor")

    def has_default_value(self) -> bool:
        """Return True if the argument may be left out."""
        return self.optional


@dataclass(frozen=True)
class Schema:
    """The name, arguments and results of an operator."""

    name: str
    overload_name: str
    arguments: tuple[Argument, ...]
    returns: tuple[Argument, ...]

    @property
    def is_mutable(self) -> bool:
        """True if the operator writes to an argument."""
        return any(a.alias_info is not None and a.alias_info.is_write for a in self.arguments)

    def __str__(self) -> str:
        words = [str(a) for a in self.arguments if not a.kwarg_only]
        if len(words) < len(self.arguments):
            words += ["*", *(str(a) for a in self.arguments if a.kwarg_only)]
        results = ", ".join(map(str, self.returns))
        overload = f".{self.overload_name}" if self.overload_name else ""
        return (f"{self.name}{overload}({', '.join(words)}) -> "
                + (results if len(self.returns) == 1 and not self.returns[0].name else f"({results})"))

    def bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of a call by position, and those by name alone, with default values filled in."""
        if len(args) > (most := sum(not a.kwarg_only for a in self.arguments)):
            raise RuntimeError(
                f"{self.name}() expected at most {most} argument(s) but received {len(args)} argument(s). "
                f"Declaration: {self}" if most == len(self.arguments) else
                f"{self.name}() takes {most} positional argument(s) but {len(args)} was/were given.  Declaration: "
                f"{self}")
        given, rest = list(args), dict(kwargs)
        by_name: dict[str, Any] = {}
        for place, argument in enumerate(self.arguments):
            if place < len(args):
                continue
            if argument.name in rest:
                value = rest.pop(argument.name)
            elif argument.optional:
                value = argument.default_value
            else:
                raise RuntimeError(f"{self.name}() is missing value for argument '{argument.name}'. "
                                   f"Declaration: {self}")
            if argument.kwarg_only:
                by_name[argument.name] = value
            else:
                given.append(value)
        if rest:
            raise RuntimeError(f"Unknown keyword argument '{next(iter(rest))}' for operator '{self.name}'. "
                               f"Schema: {self}")
        return tuple(given), by_name


def parse(text: str) -> Schema:
    """Return the schema that a text describes; RuntimeError if it is none.

    >>> schema = parse("t::scale(Tensor x, float s=1.5, *, Tensor(a!)? out=None) -> Tensor")
    >>> print(schema), [a.name for a in schema.arguments], schema.is_mutable
    t::scale(Tensor x, float s=1.5, *, Tensor(a!)? out=None) -> Tensor
    (None, ['x', 's', 'out'], True)
    """
    name, opening, rest = text.partition("(")
    end = _closing(rest)
    arrow = re.match(r"\s*->\s*", rest[end + 1:]) if end >= 0 else None
    if not opening or arrow is None:
        raise RuntimeError(f"expected {') but found' if end < 0 else '-> after'} the arguments here:\n{text}\n")
    arguments, by_name = [], False
    for part in _parts(rest[:end]):
        if part == "*":
            by_name = True
        else:
            arguments.append(_argument(part, text, by_name))
    results = rest[end + 1 + arrow.end():].strip()
    if results.startswith("(") and results.endswith(")"):
        results = results[1:-1]
    name, _, overload = name.strip().partition(".")
    return Schema(name, overload, tuple(arguments), tuple(_argument(part, text, False) for part in _parts(results)))


def _closing(text: str) -> int:
    """Return the place of the parenthesis that closes one before the text; -1 if there is none."""
    depth = 1
    for place, letter in enumerate(text):
        depth += PARENTHESES.get(letter, 0)
        if not depth:
            return place
    return -1


def _parts(text: str) -> list[str]:
    """Split at the commas outside of parentheses."""
    parts, depth = [""], 0
    for letter in text:
        depth += PARENTHESES.get(letter, 0)
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def _argument(part: str, text: str, by_name: bool) -> Argument:
    declared, equals, default = part.partition("=")
    found = TYPE.match(declared)
    if found is not None and found["base"] in IN_C:
        raise RuntimeError(f"\n{IN_C[found['base']]}:\n{text}\n")
    if found is None or found["base"] not in KNOWN and "." not in found["base"]:
        raise RuntimeError("\nunknown type specifier. Common valid schema types include Tensor, SymInt, int, float, "
                           "bool, Scalar; for a full list, please see https://github.com/pytorch/pytorch/blob/main/"
                           f"aten/src/ATen/native/README.md#func :\n{text}\n")
    kind = IN_PYTHON.get(found["base"], found["base"])
    for suffix in re.findall(r"\?|\[\d*\]", found["form"]):
        kind = f"Optional[{kind}]" if suffix == "?" else f"List[{kind}]"
    alias = None
    if found["alias"]:
        names = found["alias"][1:-1].partition("->")[0].replace("!", "").split("|")
        alias = Alias(frozenset(name.strip() for name in names), "!" in found["alias"])
    value = _value(default.strip(), found["base"]) if equals else None
    return Argument(declared[found.end():].strip(), kind, found[0], alias, value, by_name, bool(equals))


def _value(text: str, base: str) -> Any:
    """Return the default value that a text names."""
    if base == "ScalarType" and text in SCALAR_TYPES:
        return SCALAR_TYPES[text]
    try:
        value = literal_eval(text)
    except (SyntaxError, ValueError):
        return text                     # a name, as of a layout
    if base == "float" and type(value) is int:
        return float(value)
    return device(value) if base == "Device" and isinstance(value, str) else value


def _written(value: Any) -> str:
    """Return the text of a default value."""
    if isinstance(value, float):
        text = f"{value:.17g}"
        return text if set(text) & set(".ein") else f"{text}."
    return f'"{value}"' if isinstance(value, (str, device)) else str(value)
