"""Types of tensors of given shapes, for annotations. https://pytorch.org/docs/stable/fx.html"""
from __future__ import annotations

from typing import Any

__all__ = ["Dyn", "TensorType", "is_consistent", "is_more_precise"]


class TensorType:
    """The type of tensors of a shape: TensorType((1, 2, Dyn)), in which Dyn is any size.

    >>> TensorType((1, 2, Dyn))
    TensorType[(1, 2, Dyn)]
    """

    def __init__(self, dim: Any) -> None:
        self.__origin__, self.__args__ = TensorType, dim

    @property
    def dims(self) -> Any:
        """The sizes."""
        return self.__args__

    def __repr__(self) -> str:
        return f"TensorType[{self.__args__}]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorType) and list(self.__args__) == list(other.__args__)

    def __hash__(self) -> int:
        return hash(tuple(self.__args__))

    @staticmethod
    def __class_getitem__(*args: Any) -> TensorType:
        return TensorType(tuple(args[0]) if len(args) == 1 and isinstance(args[0], tuple) else args)


class _DynType:
    """The type of `Dyn`: any size, or any type."""

    def __init__(self) -> None:
        self.__name__ = "_DynType"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _DynType)

    def __hash__(self) -> int:
        return hash("Dyn")

    def __str__(self) -> str:
        return "Dyn"

    __repr__ = __str__


Dyn = _DynType()


def is_consistent(t1: Any, t2: Any) -> bool:
    """Return True if two types may be those of one value: sizes that both know are equal.

    >>> is_consistent(TensorType((1, Dyn)), TensorType((1, 3))), is_consistent(TensorType((1,)), TensorType((2,)))
    (True, False)
    """
    if t1 == t2 or Dyn in (t1, t2):
        return True
    if isinstance(t1, TensorType) and isinstance(t2, TensorType):
        return len(t1.__args__) == len(t2.__args__) and all(map(is_consistent, t1.__args__, t2.__args__))
    return False


def is_more_precise(t1: Any, t2: Any) -> bool:
    """Return True if the first type knows all sizes that the second knows, and they are equal.

    >>> is_more_precise(TensorType((1, 3)), TensorType((1, Dyn))), is_more_precise(Dyn, TensorType((1,)))
    (True, False)
    """
    if t1 == t2 or isinstance(t2, _DynType):
        return True
    if isinstance(t1, TensorType) and isinstance(t2, TensorType):
        return len(t1.__args__) == len(t2.__args__) and all(map(is_more_precise, t1.__args__, t2.__args__))
    return False
