"""Tables of rules: the functions that one kind of nested tensor takes."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

Rule = Callable[[Any, str, Any, Any], Any]
# {operator: the function whose rule it follows}
OPERATORS = dict(pair.split(":") for pair in (
    "__and__:bitwise_and __rand__:bitwise_and __or__:bitwise_or __ror__:bitwise_or __xor__:bitwise_xor "
    "__rxor__:bitwise_xor __invert__:bitwise_not __eq__:eq __floordiv__:floor_divide __pow__:pow __rpow__:pow "
    "__rsub__:rsub __rtruediv__:rtruediv __matmul__:matmul __rmatmul__:matmul").split())


class Rules:
    """Rules by the names of functions; an in-place function without a rule follows that of its out-of-place form.

    `refusal(name)` makes the exception for a function without a rule; `of_property(func, args)` reads and writes
    properties of tensors.
    """

    def __init__(self, refusal: Callable[[str], Exception], of_property: Callable[[Any, Any], Any]) -> None:
        self.refusal, self.of_property = refusal, of_property
        self.of: dict[str, Rule] = {}

    def __call__(self, names: str) -> Callable[[Rule], Rule]:
        """Decorate the rule of some functions."""
        def register(function: Rule) -> Rule:
            self.of.update(dict.fromkeys(names.split(), function))
            return function
        return register

    def apply(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Compute a function whose arguments contain such tensors."""
        if func.__name__ in ("__get__", "__set__"):
            return self.of_property(func, args)
        name = func.__name__.partition(".")[0]
        name = OPERATORS.get(name, name)
        found = self.of.get(name) or (self.of.get(name[:-1]) if name[-1:] == "_" else None)
        if found is None:
            raise self.refusal(name)
        if not args and "input" in kwargs:
            args, kwargs = (kwargs["input"],), {key: value for key, value in kwargs.items() if key != "input"}
        return found(func, name, args, kwargs)
