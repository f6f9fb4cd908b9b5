"""Make a class of `legacy.nn` from a row: its arguments in Lua's order, the present function that computes it, its
weights, the present module."""
from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ... import api as tg
from .module import Criterion, Module
from .tape import Tape, grad_name

__all__ = ["Row", "classes"]


class Row(NamedTuple):
    """A class of 2016.

    `arguments` are names with their defaults, "kW kH dW=1 dH=1"; each becomes an attribute. `run(m, x, *weights)` is
    the output; for a criterion `run(m, x, target)` the loss. `shapes(m)` returns the shapes of weights, None for an
    absent one, and `fan(m)` the number of inputs of an output unit: weights are drawn between ±1/√fan. `today(m)` is
    the equivalent present module, without the weights.
    """

    arguments: str
    says: str
    run: Callable[..., Any]
    today: Callable[[Any], Any] | None = None
    shapes: Callable[[Any], dict[str, Any]] | None = None
    fan: Callable[[Any], float] | None = None
    state: Mapping[str, Any] = {}           # further attributes, or functions of m that return them
    methods: Mapping[str, Any] = {}


def signature(arguments: str) -> inspect.Signature:
    """Parse the signature in a row.

    >>> print(signature("nIn kW=1 bias=True *sizes"))
    (nIn, kW=1, bias=True, *sizes)
    """
    found = []
    for text in arguments.split():
        name, given, default = text.partition("=")
        kind = inspect.Parameter.VAR_POSITIONAL if name.startswith("*") else inspect.Parameter.POSITIONAL_OR_KEYWORD
        found.append(inspect.Parameter(name.lstrip("*"), kind, default=ast.literal_eval(default) if given
                                       else inspect.Parameter.empty))
    return inspect.Signature(found)


class RowModule(Module):
    """A module made from a row."""

    row: Row
    __signature__: inspect.Signature

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        set_arguments(self, args, kwargs)
        if self.row.shapes is not None:
            for name, shape in self.row.shapes(self).items():
                setattr(self, name, None if shape is None else tg.empty(shape))
                setattr(self, grad_name(name), None if shape is None else tg.zeros(shape))
            self.reset()

    def reset(self, stdv: float | None = None) -> None:
        """Draw weights between ±stdv·√3, by default between ±1/√fan."""
        if self.row.fan is None:
            return
        bound = 1 / math.sqrt(self.row.fan(self)) if stdv is None else stdv * math.sqrt(3)
        for name in self.learned:
            if getattr(self, name, None) is not None:
                getattr(self, name).uniform_(-bound, bound)

    def compute(self, tape: Tape, input: Any) -> Any:
        if self.row.shapes is None:
            return self.row.run(self, input)
        return self.row.run(self, input, *(tape.weight(self, name) for name in self.learned))

    def _arguments(self) -> str:
        return shown_arguments(self)


class RowCriterion(Criterion):
    """A criterion made from a row."""

    row: Row
    __signature__: inspect.Signature

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        set_arguments(self, args, kwargs)

    def compute(self, tape: Tape, input: Any, target: Any) -> Any:          # type: ignore[override]
        return self.row.run(self, input, target)

    def _arguments(self) -> str:
        return shown_arguments(self)


def set_arguments(module: Any, args: Any, kwargs: Any) -> None:
    try:
        bound = module.__signature__.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{type(module).__name__}.__init__(): {error}; it takes {module.__signature__}") from None
    bound.apply_defaults()
    vars(module).update(bound.arguments)
    for name, value in module.row.state.items():
        setattr(module, name, value(module) if callable(value) else value)


def shown_arguments(module: Any) -> str:
    """Return the arguments as `repr` shows them: only numbers and lists."""
    shown = []
    for name in module.__signature__.parameters:
        value = getattr(module, name, None)
        if isinstance(value, (bool, int, float, str, tuple, list)):
            shown.append(f"{name}={value}" if isinstance(value, bool) else str(value))
    return f"({', '.join(shown)})" if shown else ""


def classes(rows: Mapping[str, Row], base: type, namespace: dict[str, Any]) -> list[str]:
    """Make the classes of a table in a module's namespace, and return their names."""
    for name, row in rows.items():
        taken = signature(row.arguments)
        doc = f"{row.says}.\n\nArguments, in the order of Lua: {taken}"
        namespace[name] = type(name, (base,),
                               {"row": row, "__signature__": taken, "__doc__": doc, "__module__": namespace["__name__"],
                                **row.methods})
    return list(rows)
