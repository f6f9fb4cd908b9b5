"""Sizes that may vary in exported programs. https://pytorch.org/docs/stable/export.html#torch.export.Dim"""
from __future__ import annotations

from enum import Enum
from typing import Any

from .._dynamo.exc import UserError
from ..core.tape import TensorBase

__all__ = ["Dim", "dims"]
UNBOUNDED = "int_oo"                # PyTorch's text for no bound
PAGE = ("For more information about this error, see: "
        "https://pytorch.org/docs/main/generated/exportdb/index.html#dynamic-shapes-validation")


class _DimHint(Enum):
    """A hint for the size of an axis that has no name."""

    AUTO = 0
    STATIC = 1
    DYNAMIC = 2

    def __repr__(self) -> str:
        return f"DimHint({self.name})"


class Dim:
    """A size that may vary, by name, between `min` and `max`. Axes with one name have equal sizes.

    `2 * Dim("n") + 1` is a size that depends on another. AssertionError for a name that is no identifier, or bounds in
    the wrong order. https://pytorch.org/docs → torch.export.Dim

    >>> batch = Dim("batch", min=2, max=64)
    >>> batch, 2 * batch + 1
    (Dim('batch', max=64), 2*batch + 1)
    """

    AUTO, STATIC, DYNAMIC = _DimHint

    def __init__(self, name: str, *, min: Any = None, max: Any = None) -> None:
        if not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        self.__name__, self.min, self.max = name, 0 if min is None else min, max
        if max is not None and max < self.min:
            raise AssertionError(f"Cannot create Dim with inconsistent min={self.min}, max={max}")
        self.root, self.factor, self.offset = self, 1, 0

    def _derived(self, factor: int, offset: int) -> Dim:
        new = object.__new__(Dim)
        new.root, new.factor, new.offset = self.root, self.factor * factor, self.offset * factor + offset
        start = self.root.__name__ if new.factor == 1 else f"{new.factor}*{self.root.__name__}"
        new.__name__ = f"{start} {'+' if new.offset > 0 else '-'} {abs(new.offset)}" if new.offset else start
        new.min, new.max = self.min * factor + offset, None if self.max is None else self.max * factor + offset
        return new

    def __add__(self, other: int) -> Dim:
        return self._derived(1, _whole(other, "add"))

    def __sub__(self, other: int) -> Dim:
        return self._derived(1, -_whole(other, "subtract"))

    def __mul__(self, other: int) -> Dim:
        if _whole(other, "multiply") <= 0:
            raise NotImplementedError(f"Attempted to multiply {other} with {self.__name__}, where a positive integer "
                                      f"was expected. (Only increasing linear operations with integer coefficients are "
                                      f"supported.)")
        return self._derived(other, 0)

    __radd__, __rmul__ = __add__, __mul__

    def sized(self, root: int) -> int:
        """Return the size for a size of the Dim that this one depends on."""
        return self.factor * root + self.offset

    def __repr__(self) -> str:
        if self.root is not self:
            return self.__name__
        bounds = f", min={self.min}" * (self.min != 2) + f", max={self.max}" * (self.max is not None)     # as PyTorch
        return f"Dim('{self.__name__}'{bounds})"


def _whole(number: Any, verb: str) -> int:
    if type(number) is not int:
        raise NotImplementedError(f"Attempted to {verb} {number!r} and a Dim, where an integer was expected. (Only "
                                  f"increasing linear operations with integer coefficients are supported.)")
    return number


def dims(*names: str, min: Any = None, max: Any = None) -> tuple[Dim, ...]:
    """Return several Dims of these bounds.

    >>> dims("a", "b")
    (Dim('a', min=0), Dim('b', min=0))
    """
    return tuple(Dim(name, min=min, max=max) for name in names)


def dynamic_axes(dynamic_shapes: Any, names: list[str], values: list[Any]) -> dict[tuple[int, int], Any]:
    """Return {(index of a tensor among the arguments, axis): Dim or hint} of the axes that may vary.

    UserError if `dynamic_shapes` does not fit the arguments.
    """
    if dynamic_shapes is None:
        return {}
    if isinstance(dynamic_shapes, dict):
        if list(dynamic_shapes) != names:
            raise UserError(f"When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg names "
                            f"{names} of `inputs`, but here they are {list(dynamic_shapes)}. Alternatively, you could "
                            f"also ignore arg names entirely and specify `dynamic_shapes` as a list/tuple matching "
                            f"`inputs`. {PAGE}")
        given = [dynamic_shapes[name] for name in names]
    else:
        given = list(dynamic_shapes)
    if len(given) != len(values):
        raise UserError(f"Expected `dynamic_shapes` to match the {len(values)} arguments, but it has {len(given)} "
                        f"parts. {PAGE}")
    found: dict[tuple[int, int], Any] = {}
    count = 0

    def walk(value: Any, shape: Any, path: str) -> None:
        nonlocal count
        if isinstance(value, TensorBase):
            found.update({(count, axis): dim for axis, dim in _axes(shape, value, path).items()})
            count += 1
        elif isinstance(value, dict):
            for key, part in value.items():
                walk(part, None if shape is None else shape.get(key), f"{path}[{key!r}]")
        elif isinstance(value, (list, tuple)):
            for i, part in enumerate(value):
                walk(part, None if shape is None else shape[i], f"{path}[{i}]")
    for name, value, shape in zip(names, values, given, strict=True):
        walk(value, shape, f"['{name}']")
    return found


def _axes(shape: Any, tensor: Any, path: str) -> dict[int, Any]:
    """Return {axis: Dim or hint} of a tensor."""
    if shape is None:
        return {}
    if not isinstance(shape, (dict, list, tuple)):
        raise UserError(f"Unexpected input tensor shape {shape} specified at `dynamic_shapes{path}` (expected either a "
                        f"list/tuple of dimensions, or a dict mapping indices to dimensions, where each dimension is "
                        f"an int, a Dim, Dim.AUTO, Dim.STATIC, or Dim.DYNAMIC)\n{PAGE}")
    items = dict(shape) if isinstance(shape, dict) else dict(enumerate(shape))
    if not isinstance(shape, dict) and len(shape) != tensor.ndim or any(axis >= tensor.ndim for axis in items):
        raise UserError(f"Expected dynamic shape spec {shape} specified at `dynamic_shapes{path}` to have the same "
                        f"length as the actual tensor shape {tensor.shape} (expected {tensor.ndim}, but got "
                        f"{len(shape)} instead)\n{PAGE}")
    for axis, dim in items.items():
        if isinstance(dim, int) and dim != tensor.shape[axis]:
            raise UserError(f"Static shape constraint of {dim} does not match input size of {tensor.shape[axis]}, for "
                            f"`dynamic_shapes{path}[{axis}]`\n{PAGE}")
    return {axis: dim for axis, dim in items.items() if isinstance(dim, (Dim, _DimHint)) and dim is not Dim.STATIC}
