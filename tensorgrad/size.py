"""`torch.Size`: the tuple of integers that is a tensor's shape."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache, wraps
from math import prod, trunc
from operator import index
from typing import Any, SupportsIndex, overload

new_size = tuple.__new__
_get = tuple.__getitem__


class Size(tuple[int, ...]):
    """The shape of a tensor: a tuple of integers that stays a `Size` when sliced, joined or repeated.

    `Size(iterable)` checks that every item is an integer. `tuple.__new__(Size, shape)` does not, and is
    the fast way to make one from an array's shape.
    Raises TypeError for anything but an iterable of integers. PyTorch: torch.Size.

    >>> import tensorgrad as torch
    >>> torch.Size([2, 3, 4])[1:] + (5,)
    torch.Size([3, 4, 5])
    >>> torch.Size([2, 3, 4]).numel()
    24
    """

    __slots__ = ()

    def __new__(cls, iterable: Iterable[SupportsIndex] = (), /) -> Size:
        items = tuple(iterable)
        try:
            return new_size(cls, [n if type(n) is int else whole(n) for n in items])
        except TypeError:
            raise TypeError(f"torch.Size() takes an iterable of 'int' ({_first_non_integer(items)})") from None

    def numel(self) -> int:
        """The number of elements of a tensor of this size: the product of its items (1 for a 0-d tensor).

        PyTorch: torch.Size.numel.

        >>> import tensorgrad as torch
        >>> torch.Size([2, 3]).numel(), torch.Size([]).numel()
        (6, 1)
        """
        return prod(self)

    @overload  # type: ignore[override]
    def __getitem__(self, key: SupportsIndex) -> int: ...

    @overload
    def __getitem__(self, key: slice) -> Size: ...

    def __getitem__(self, key: Any) -> Any:
        item = _get(self, key)
        return new_size(Size, item) if type(key) is slice else item

    def __add__(self, other: tuple[int, ...]) -> Size:  # type: ignore[override]
        if isinstance(other, tuple):
            return Size(tuple.__add__(self, other))
        if hasattr(other, "__array__"):
            return NotImplemented  # an array adds elementwise
        raise TypeError(f"can only concatenate tuple (not {type(other).__name__}) to torch.Size")

    def __radd__(self, other: tuple[int, ...]) -> Size:
        return Size(tuple.__add__(other, self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, count: SupportsIndex) -> Size:
        try:
            return new_size(Size, tuple.__mul__(self, count))
        except TypeError:
            if hasattr(count, "__array__"):
                return NotImplemented
            raise TypeError(f"can't multiply sequence by non-int of type '{type(count).__name__}'") from None

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    def __reduce__(self) -> Any:
        return rebuild, tuple(self)


class Unhashable(TypeError):
    """A cache of the package was asked about a size that a trace keeps symbolic."""


def whole(n: Any) -> int:
    """Return an integer as Python's own; a size that a trace keeps symbolic, as it is."""
    return n if getattr(type(n), "symbolic", False) else index(n)


def towards_zero(n: Any) -> int:
    """Return a number as an integer, like `int`; a symbolic number, as another one."""
    return trunc(n) if getattr(type(n), "symbolic", False) else int(n)


def shape_together(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that shapes broadcast to; ValueError if there is none. Sizes may be symbolic.

    >>> shape_together((3, 1), (2,))
    (3, 2)
    """
    rank = max(map(len, shapes), default=0)
    found = [1] * rank
    for shape in shapes:
        for i, n in enumerate(shape, rank - len(shape)):
            if n != 1 and found[i] != n:
                if found[i] != 1:
                    raise ValueError(f"shape mismatch: objects cannot be broadcast to a single shape: {shapes}")
                found[i] = n
    return tuple(found)


def remembered(function: Callable[..., Any], most: int = 128) -> Any:
    """Return the function with a cache, which symbolic sizes bypass."""
    cached = lru_cache(most)(function)

    @wraps(function)
    def call(*args: Any) -> Any:
        try:
            return cached(*args)
        except Unhashable:
            return function(*args)
    return call


def rebuild(*sizes: int) -> Size:
    """Return the shape of a pickle, which names this function and not the class: that is `torch.Size` at times."""
    return new_size(Size, sizes)


def _first_non_integer(items: tuple[Any, ...]) -> str:
    for i, item in enumerate(items):
        try:
            index(item)
        except TypeError:
            return f"item {i} is '{type(item).__name__}'"
    return "an item is not an integer"
