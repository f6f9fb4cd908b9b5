"""Constants: numbers in place of arrays of one element, and arithmetic that changes nothing.

    x · 1, x / 1, x - 0, x ** 1    =  x
    x + 0                          =  x for integers; a negative zero plus zero is a positive one
    relu(relu(x))                  =  relu(x)
    -(-x)                          =  x

Calls of constants alone need no rule: they are computed ahead.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...graph.lowered import Lowered
from ...graph.node import Node
from .rewriting import op_of, replaced


def fold_constants(graph: Lowered) -> None:
    """Write constants of one element as numbers, and drop arithmetic without effect."""
    for node in graph.nodes:
        if op_of(node) in TAKE_NUMBERS:
            with_numbers(node)
        rule = RULES.get(op_of(node))
        if rule is not None and (x := rule(node)) is not None and like(node, x):
            replaced(node, x)


def like(node: Node, x: Any) -> bool:
    """Return True if a node has the shape and the dtype of another."""
    return isinstance(x, Node) and all(node.meta[key] == x.meta[key] for key in ("shape", "dtype"))


def with_numbers(node: Node) -> None:
    """Replace constants of one element by numbers, for operations whose other operand has the dtype, and as many
    axes."""
    for i, operand in enumerate(node.args):
        value = constant(operand)
        others = [a for j, a in enumerate(node.args) if j != i]
        if (value is not None and len(others) == 1 and isinstance(others[0], Node)
                and others[0].meta["dtype"] == value.dtype and value.dtype.char in "fdlq"
                and value.size == 1 and value.ndim <= len(others[0].meta["shape"])):
            node.update_arg(i, value.item())


TAKE_NUMBERS = {"add", "subtract", "multiply", "divide", "maximum", "minimum", "power"}


def constant(node: Any) -> Any:
    """Return the array of a node of a constant, which no program can change; None for others."""
    if isinstance(node, Node) and node.op == "get_attr" and not node.meta.get("state"):
        return node.meta.get("value")
    return None


def neutral(*numbers: Any, left: bool = False, floats: bool = True) -> Callable[[Node], Any]:
    """Return a rule for operations of x and one of these numbers, `left` also in the other order."""
    def rule(node: Node) -> Any:
        for x, other in (node.args, reversed(node.args))[:1 + left]:
            if type(other) in (int, float) and other in numbers and (floats or node.meta["dtype"].kind in "iu"):
                return x
        return None
    return rule


def again(node: Node) -> Any:
    """f(f(x)) = f(x)"""
    x = node.args[0]
    return x if op_of(x) == op_of(node) and x.kwargs == node.kwargs else None


def undone(node: Node) -> Any:
    """f(f(x)) = x"""
    x = node.args[0]
    return x.args[0] if op_of(x) == op_of(node) else None


RULES: dict[str, Callable[[Node], Any]] = {
    "multiply": neutral(1, left=True), "divide": neutral(1), "subtract": neutral(0), "power": neutral(1),
    "add": neutral(0, left=True, floats=False),
    **dict.fromkeys(("relu", "hardtanh", "absolute", "floor", "ceil", "trunc"), again),
    **dict.fromkeys(("negative", "bitwise_not"), undone),
}
