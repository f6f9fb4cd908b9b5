"""torch.ops.higher_order: control flow as steps of graphs, whose branches and bodies are graphs."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._ops import HigherOrderOperator

__all__ = ["cond", "while_loop"]


class ControlFlow(HigherOrderOperator):
    """An operator that calls the functions among its arguments."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        super().__init__(name)
        self.__module__, self.function = "torch._ops.higher_order", function

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __reduce__(self) -> Any:
        return operator_of, (self._name,)


def _cond(pred: Any, true_fn: Any, false_fn: Any, operands: Any = ()) -> Any:
    return true_fn(*operands) if pred else false_fn(*operands)


def _while_loop(cond_fn: Any, body_fn: Any, carried_inputs: Any, additional_inputs: Any = ()) -> Any:
    values = tuple(carried_inputs)
    while cond_fn(*values, *additional_inputs):
        values = tuple(body_fn(*values, *additional_inputs))
    return values


cond, while_loop = ControlFlow("cond", _cond), ControlFlow("while_loop", _while_loop)


def operator_of(name: str) -> ControlFlow:
    """Return the operator of a name."""
    return {"cond": cond, "while_loop": while_loop}[name]
