"""Layers that merge several inputs, and functions that do so. Inputs are arguments, or a single list."""
from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from inspect import BoundArguments
from typing import Any

from .. import api as tg
from ._nesting import is_simple
from .base import Layer
from .spec import as_sequence

__all__ = ["Add", "Average", "Concat", "Divide", "Maximum", "Minimum", "Multiply", "Subtract",
           "add", "average", "concat", "divide", "maximum", "minimum", "multiply", "subtract"]


class _Merge(Layer, abstract=True):
    """Base of merge layers. `_number` is the required number of inputs; None: any number from one up."""

    _number: int | None = None

    def forward(self, *inputs: Any) -> Any:
        inputs = as_sequence(inputs)
        if not inputs or self._number not in (None, len(inputs)):
            raise AssertionError(f"{self._get_name()} takes "
                                 f"{f'exactly {self._number}' if self._number else 'one or more'} inputs, not "
                                 f"{len(inputs)}")
        if not all(isinstance(x, tg.Tensor) for x in inputs):
            raise AssertionError(f"{self._get_name()} takes tensors, one by one or in one list")
        self._check([tuple(x.shape) for x in inputs])
        return self._merge(inputs)

    def _shape_of_call(self, bound: BoundArguments) -> Any:
        shape = super()._shape_of_call(bound)
        return [shape] if is_simple(shape) or shape == () else shape

    def _check(self, shapes: list[tuple[int, ...]]) -> None:
        if len(set(shapes)) > 1:
            raise AssertionError(f"{self._get_name()} must have the same shape for all input tensors, and these have "
                                 f"{', '.join(map(str, shapes))}")


class Concat(_Merge):
    """Concatenates tensors along an axis, by default the last. AssertionError if the other axes differ.

    >>> import tensorgrad as torch
    >>> torch.layers.Concat(axis=0)(torch.ones(2, 3), torch.ones(4, 3)).shape
    torch.Size([6, 3])
    """

    _free_axes = (0,)

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis

    def _check(self, shapes: list[tuple[int, ...]]) -> None:
        n, axis = len(shapes[0]), self.axis
        if (any(len(shape) != n for shape in shapes) or not -n <= axis < n
                or len({shape[:axis % n] + shape[axis % n + 1:] for shape in shapes}) > 1):
            raise AssertionError(f"concat dim error: along axis {axis}, all other axes must agree in "
                                 f"{', '.join(map(str, shapes))}")

    def _merge(self, inputs: list[Any]) -> Any:
        return tg.cat(inputs, dim=self.axis)


DOC = """{what}, element by element. AssertionError unless all have the same shape.

    >>> import tensorgrad as torch
    >>> torch.layers.{name}()(torch.tensor([6.0]), torch.tensor([2.0]))
    tensor([{result}])
    """


class Add(_Merge):
    __doc__ = DOC.format(what="The sum of tensors", name="Add", result="8.")

    def _merge(self, inputs: list[Any]) -> Any: return reduce(tg.add, inputs)


class Subtract(_Merge):
    __doc__ = DOC.format(what="The first of two tensors less the second", name="Subtract", result="4.")
    _number = 2

    def _merge(self, inputs: list[Any]) -> Any: return tg.sub(*inputs)


class Multiply(_Merge):
    __doc__ = DOC.format(what="The product of tensors", name="Multiply", result="12.")

    def _merge(self, inputs: list[Any]) -> Any: return reduce(tg.mul, inputs)


class Divide(_Merge):
    __doc__ = DOC.format(what="The first of two tensors divided by the second", name="Divide", result="3.")
    _number = 2

    def _merge(self, inputs: list[Any]) -> Any: return tg.div(*inputs)


class Maximum(_Merge):
    __doc__ = DOC.format(what="The largest among tensors", name="Maximum", result="6.")

    def _merge(self, inputs: list[Any]) -> Any: return reduce(tg.maximum, inputs)


class Minimum(_Merge):
    __doc__ = DOC.format(what="The smallest among tensors", name="Minimum", result="2.")

    def _merge(self, inputs: list[Any]) -> Any: return reduce(tg.minimum, inputs)


class Average(_Merge):
    __doc__ = DOC.format(what="The mean of tensors", name="Average", result="4.")

    def _merge(self, inputs: list[Any]) -> Any: return reduce(tg.add, inputs) / len(inputs)


# ── as functions ──────────────────────────────────────────────────────────────────────────────
def concat(*xs: Any, axis: int = -1) -> Any:
    """`Concat(axis)(*xs)`: concatenate tensors along an axis.

    >>> import tensorgrad as torch
    >>> torch.layers.concat(torch.ones(2, 3), torch.ones(2, 1)).shape
    torch.Size([2, 4])
    """
    return Concat(axis)(*xs)


def _function(layer: type[Layer], two: bool = False) -> Callable[..., Any]:
    """Return the function of a merge layer without settings."""
    def several(*xs: Any) -> Any: return layer()(*xs)
    def pair(x1: Any, x2: Any) -> Any: return layer()(x1, x2)
    function, name = pair if two else several, layer.__name__.lower()
    function.__name__ = function.__qualname__ = name
    text = layer.__doc__.replace(f"layers.{layer.__name__}()", f"layers.{name}")
    function.__doc__ = f"""`{layer.__name__}()({'x1, x2' if two else '*xs'})`: {text}"""
    return function


add, multiply, maximum, minimum, average = map(_function, (Add, Multiply, Maximum, Minimum, Average))
subtract, divide = _function(Subtract, two=True), _function(Divide, two=True)
