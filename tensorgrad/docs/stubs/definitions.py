"""The `def` lines of a function or method: its annotated parameters, or the calls that it allows, one by one."""
from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any, NamedTuple

from ..._tensor import Tensor
from ...api import _kinds
from ...api._signatures import METHODS, OVERLOADS, Signature, signatures
from ...size import Size
from .names import Names

KINDS = {"Size": Size, "Tensor": Tensor, **vars(_kinds)}
PLAIN = (bool, int, float, str, type(None))     # defaults of these classes are written out


class Call(NamedTuple):
    """A way to call a function, as text: parameters without `self`, and the result."""

    parameters: list[str]
    result: str


# Calls that annotations and `_signatures` cannot say: results that depend on the number of arguments, or on which are
#     given.
BY_HAND = {
    "Tensor.size": (Call([], "Size"), Call(["dim: int"], "int")),
    "Tensor.stride": (Call([], "tuple[int, ...]"), Call(["dim: int"], "int")),
    "Tensor.type": (Call(["dtype: None = None", "non_blocking: bool = False"], "str"),
                    Call(["dtype: Dtype", "non_blocking: bool = False"], "Tensor")),
    "Tensor.view": (Call(["*size: Ints1"], "Tensor"), Call(["dtype: Dtype"], "Tensor"), Call(["size: Ints"], "Tensor")),
    "Tensor.random_": (Call(["*bounds: int | None", "generator: Generator | None = None"], "Self"),),
    "Tensor.uniform_": (Call(["*bounds: float", "generator: Generator | None = None", "**named: float"], "Self"),),
    "Tensor.__getitem__": (Call(["index: Subscript"], "Tensor"),),
    "Tensor.__setitem__": (Call(["index: Subscript", "value: Operand"], "None"),),
    **dict.fromkeys(("atleast_1d", "atleast_2d", "atleast_3d"), (
        Call(["tensor: Tensor", "/"], "Tensor"), Call(["tensors: Tensors", "/"], "tuple[Tensor, ...]"),
        Call(["first: Tensor", "second: Tensor", "/", "*others: Tensor"], "tuple[Tensor, ...]"))),
    "nonzero": (Call(["input: Tensor", "*", "as_tuple: Literal[False] = False", "out: Tensor | None = None"], "Tensor"),
                Call(["input: Tensor", "*", "as_tuple: Literal[True]"], "tuple[Tensor, ...]")),
    "Tensor.nonzero": (Call(["*", "as_tuple: Literal[False] = False"], "Tensor"),
                       Call(["*", "as_tuple: Literal[True]"], "tuple[Tensor, ...]")),
}
SUBSUMED = {"Ints": {"Ints1"}, "int": {"Ints1", "Index", "Number", "Operand", "float"}, "float": {"Number", "Operand"},
            "Tensor": {"Operand"}, "Number": {"Operand"}, "str": {"object"}, "Probability": {"float"}}
# Functions whose keyword asks for a further result.
ASKS_FOR_MORE = ("return_indices", "return_inverse", "return_counts")


class Definitions:
    """Write the definitions of functions into a stub."""

    def __init__(self, names: Names) -> None:
        self.names = names

    def lines(self, name: str, function: Any, qualified: str, method: str = "") -> list[str]:
        """Return the lines of a function; `qualified` is its name in `_signatures`, `method` "self", "static" or ""."""
        calls = self._calls(function, qualified, method)
        marks = ["@staticmethod"] if method == "static" else []
        if len(calls) > 1:
            marks.append(f"@{self.names.use('typing', 'overload')}")
        own = ["self"] if method == "self" else []
        return [line for call in calls
                for line in (*marks, f"def {name}({', '.join(own + call.parameters)}) -> {call.result}: ...")]

    def _calls(self, function: Any, name: str, method: str) -> list[Call]:
        key = f"Tensor.{name}" if method == "self" else name
        if key in BY_HAND:
            return [Call([self._said(p) for p in call.parameters], self._annotated(call.result, KINDS))
                    for call in BY_HAND[key]]
        plain = inspect.unwrap(function)
        scope, result = {**KINDS, **getattr(plain, "__globals__", {})}, _result(function)
        if method == "self" and name.endswith("_") and not name.endswith("__") and result == "Tensor":
            result = "Self"         # methods that write into the tensor return it
        rows = signatures(name, method == "self") if method != "static" and _has_rows(name, method == "self") else None
        if rows and " | " in result:
            return self._distinct(Call(self._row(row), self._annotated(_chosen(result, row), scope)) for row in rows)
        calls = self._own_calls(function, scope, result, method)
        if rows:
            parameters = list(inspect.signature(function).parameters.values())[method == "self":]
            calls += [Call(self._row(row), calls[0].result) for row in rows if not _covers(parameters, row)]
        return self._distinct(calls)

    def _own_calls(self, function: Any, scope: dict[str, Any], result: str, method: str) -> list[Call]:
        """Return the calls that the function's annotations say."""
        given = inspect.signature(function).parameters
        parameters = self._parameters(function, scope, method)
        if (more := next((p for p in given if p in ASKS_FOR_MORE), None)) and " | " in result:
            return self._asking(parameters, more, result, scope)
        if (method == "self"
                and len(places := [p for p in list(given.values())[1:] if p.kind is p.POSITIONAL_OR_KEYWORD]) == 1 and (
                # one list may be given as separate numbers
                places[0].annotation == "Ints" and places[0].default is places[0].empty)):
            starred = [f"*{places[0].name}: {self._annotated('Ints1', KINDS)}", *parameters[1:]]
            return [Call(p, self._annotated(result, scope)) for p in ([p for p in starred if p != "*"], parameters)]
        # the name of a list that is not starred
        if parameters[-1:] == [f"**keywords: {self._annotated('Any', KINDS)}"]:
            parameters = parameters[:-1]
            at, listed = next((i, p) for i, p in enumerate(given.values()) if p.kind is p.VAR_POSITIONAL)
            at -= method == "self"
            named = [*parameters[:at], f"{listed.name}: {self._annotated('Ints', KINDS)}", *parameters[at + 1:]]
            if len(parameters) > at + 1:
                named.insert(at + 1, "*")
            return [Call(p, self._annotated(result, scope)) for p in (parameters, named)]
        return [Call(parameters, self._annotated(result, scope))]

    def _annotated(self, text: str, scope: dict[str, Any]) -> str:
        return self.names.annotation(text, scope)

    def _said(self, parameter: str) -> str:
        name, colon, rest = parameter.partition(": ")
        annotation, equals, default = rest.partition(" = ")
        return f"{name}{colon}{self._annotated(annotation, KINDS)}{equals}{default}" if colon else name

    def _parameters(self, function: Any, scope: dict[str, Any], method: str) -> list[str]:
        """Return the parameters of the function as it is annotated."""
        parameters = list(inspect.signature(function).parameters.values())
        if method == "self":
            parameters = parameters[1:]
        shown, starred = [], False
        for p in parameters:
            if p.kind is p.VAR_POSITIONAL:
                starred = True
            elif p.kind is p.KEYWORD_ONLY and not starred:
                shown.append("*")
                starred = True
            shown.append(self._parameter(p, scope))
        if not method and _gives_out(function):
            several = _result(function).startswith(("tuple", "return_types"))
            keyword = f"out: {self._annotated('Tensors | None' if several else 'Tensor | None', KINDS)} = None"
            at = next((i for i, p in enumerate(shown) if p.startswith("**")), len(shown))
            shown[at:at] = [keyword] if starred else ["*", keyword]
        return shown

    def _parameter(self, p: inspect.Parameter, scope: dict[str, Any]) -> str:
        annotation = self._annotated("Any" if p.annotation is p.empty else str(p.annotation), scope)
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        written = type(p.default) in PLAIN and repr(p.default) not in ("inf", "nan", "-inf")
        default = "" if p.default is p.empty else f" = {p.default!r}" if written else " = ..."
        return f"{star}{p.name}: {annotation}{default}"

    def _row(self, row: Signature) -> list[str]:
        """Return the parameters of a signature of PyTorch's parser."""
        shown, starred = [], False
        if row.variadic and row.parameters[0].default is None:
            starred = True
        for i, p in enumerate(row.parameters):
            if p.keyword_only and not starred:
                shown.append("*")
                starred = True
            kind = (p.kind.replace("Sizes", "Ints1").replace("Probability", "float").replace("Pair", "Ints1")
                    + (" | None" if p.nullable else ""))
            if i == 0 and starred and not p.keyword_only:
                shown.append(f"*{p.name}: {self._annotated('Ints1', KINDS)}")
                continue
            if p.default == "None" and not p.nullable:
                kind += " | None"
            default = "" if p.default is None else " = None" if p.default == "None" else " = ..."
            shown.append(f"{p.name}: {self._annotated(kind, KINDS)}{default}")
        return shown

    def _asking(self, parameters: list[str], flag: str, result: str, scope: dict[str, Any]) -> list[Call]:
        """Return the calls of a function that has another result if a keyword is True."""
        one, _, several = result.partition(" | ")
        at = next(i for i, p in enumerate(parameters) if p.startswith(f"{flag}:"))
        literal = self.names.use("typing", "Literal")
        without = [*parameters[:at], f"{flag}: {literal}[False] = False", *parameters[at + 1:]]
        star = [] if "*" in parameters[:at] else ["*"]
        after = [p for p in parameters[at + 1:] if p != "*"]
        asking = [*parameters[:at], *star, f"{flag}: {literal}[True]", *after]
        return [Call(without, self._annotated(one, scope)), Call(asking, self._annotated(several, scope)),
                Call(parameters, self._annotated("Any", KINDS))]

    @staticmethod
    def _distinct(calls: Iterable[Call]) -> list[Call]:
        return list({(tuple(c.parameters), c.result): c for c in calls}.values())


def _has_rows(name: str, method: bool) -> bool:
    """True if a table of `_signatures` has calls that annotations cannot say."""
    rows = [line.partition(":")[0].split() for table in ((OVERLOADS, METHODS) if method else (OVERLOADS,))
            for line in table.replace("\n    ", " ").splitlines()]
    return any(name in row or method and name.endswith("_") and name[:-1] in row for row in rows)


def _covers(parameters: list[inspect.Parameter], row: Signature) -> bool:
    """True if a function with these parameters, as annotated, takes the call that a row says."""
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    named = {p.name: p for p in parameters}
    starred = next((p for p in parameters if p.kind is p.VAR_POSITIONAL), None)
    for i, p in enumerate(row.parameters):
        if p.name == "out":
            continue
        mine = named.get(p.name) if p.keyword_only or i else places[0] if places else starred
        if mine is None and starred is not None and p.kind in ("Ints", "Tensors"):
            mine = starred
        if mine is None or not p.keyword_only and mine is not starred and places[i:i + 1] != [mine]:
            return False
        if p.kind.replace("Sizes", "Ints1") not in (kinds := str(mine.annotation).split(" | ")) and not (
                mine is starred or SUBSUMED.get(p.kind, frozenset()) & set(kinds)):
            return False
    given = {p.name for p in row.parameters} | {places[0].name if places else ""}
    return all(p.name in given or p.default is not p.empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
               for p in parameters)


def _result(function: Any) -> str:
    result = inspect.signature(function).return_annotation
    return "Any" if result is inspect.Signature.empty else "None" if result is None else str(result)


def _chosen(result: str, row: Signature) -> str:
    """Return the result of one call: of `Tensor | return_types.max`, the tuple if an axis is given."""
    one, bar, several = result.partition(" | ")
    if not bar:
        return result
    kinds = [(p.name, p.default) for p in row.parameters]
    return several if ("dim", None) in kinds or [name for name, _ in kinds] == ["condition"] else one


def _gives_out(function: Any) -> bool:
    while hasattr(function, "__wrapped__"):
        code = getattr(function, "__code__", None)
        if code is not None and "out" in code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]:
            return True
        function = function.__wrapped__
    return False
