"""Types of arguments in schemas of operators: `torch.TensorType.get()`, `torch.ListType(torch.IntType.get())`.

Two types are equal if they are written alike.
"""
from __future__ import annotations

from typing import Any

__all__ = ["AnyType", "BoolType", "DeviceObjType", "FloatType", "IntType", "ListType", "NoneType", "NumberType",
           "OptionalType", "StreamObjType", "StringType", "TensorType", "Type", "typed"]


class Type:
    """A type of values: what all have in common, and itself one that has a name alone, such as a generator's."""

    __module__ = __name__.partition(".")[0]
    text: Any = ""
    parts: Any = ()

    def __init__(self) -> None:
        raise TypeError(f"torch._C.{type(self).__name__}: No constructor defined!")

    def kind(self) -> Any:
        """Return the kind's name, as in "ListType"."""
        return f"{self.text}Type" if type(self) is Type else type(self).__name__

    def str(self) -> Any:
        """Return the type in Python's notation, as in "List[int]"."""
        return self.text

    annotation_str = property(str)
    __repr__ = str

    def containedTypes(self) -> list[Any]:
        """Return the types of the elements."""
        return list(self.parts)

    def isSubtypeOf(self, other: Any) -> bool:
        """Return True if values of this type are values of the other."""
        if isinstance(other, OptionalType) and self != other:
            own = self.parts[0] if isinstance(self, OptionalType) else self
            return isinstance(self, NoneType) or own.isSubtypeOf(other.parts[0])
        return (self == other or isinstance(other, AnyType)
                or isinstance(other, NumberType) and isinstance(self, (IntType, FloatType)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    @classmethod
    def get(cls) -> Any:
        """Return the type."""
        return _made(cls, cls.text)


def _made(cls: Any, text: Any, *parts: Any) -> Any:
    made = object.__new__(cls)
    made.text, made.parts = text, parts
    return made


SINGLE: dict[Any, Any] = {text: type(name, (Type,), {"__doc__": f"The type {text} of schemas.", "text": text})
          for name, text in {"AnyType": "Any", "BoolType": "bool", "DeviceObjType": "Device", "FloatType": "float",
                             "IntType": "int", "NoneType": "NoneType", "NumberType": "number",
                             "StreamObjType": "Stream", "StringType": "str", "TensorType": "Tensor"}.items()}
(AnyType, BoolType, DeviceObjType, FloatType, IntType, NoneType, NumberType, StreamObjType, StringType,
 TensorType) = SINGLE.values()


class _Holder(Type):
    """A type made of that of its elements: `OptionalType(IntType.get())`."""

    def __new__(cls, element: Any) -> Any:
        """Make the type from that of its elements."""
        return _made(cls, f"{cls.__name__[:-4]}[{element}]", element)

    def __init__(self, element: Any) -> None:
        """Do nothing: `__new__` made the type."""

    def getElementType(self) -> Any:
        """Return the type of the elements."""
        return self.parts[0]


class OptionalType(_Holder):
    """The type of a value of one type, or None."""

    ofTensor = classmethod(lambda cls: cls(TensorType.get()))


class ListType(_Holder):
    """The type of lists."""

    ofTensors = classmethod(lambda cls: cls(TensorType.get()))
    ofInts = classmethod(lambda cls: cls(IntType.get()))
    ofFloats = classmethod(lambda cls: cls(FloatType.get()))
    ofBools = classmethod(lambda cls: cls(BoolType.get()))
    ofStrings = classmethod(lambda cls: cls(StringType.get()))


def typed(text: Any) -> Any:
    """Return the type that a text of Python's notation names.

    >>> typed("Optional[List[int]]").containedTypes()[0].kind()
    'ListType'
    """
    base, bracket, rest = text.partition("[")
    if bracket:
        return (OptionalType if base == "Optional" else ListType)(typed(rest[:-1]))
    return SINGLE[text].get() if text in SINGLE else _made(Type, text)
