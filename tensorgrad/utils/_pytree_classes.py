"""Classes as containers of trees: dataclasses, constants, named tuples, as part of torch.utils._pytree.

>>> from dataclasses import dataclass
>>> from tensorgrad.utils._pytree import register_dataclass, tree_map
>>> @dataclass
... class Point:
...     x: float
...     y: float
>>> register_dataclass(Point)
>>> tree_map(lambda v: v * 10, [Point(1.0, 2.0)])
[Point(x=10.0, y=20.0)]
"""
from __future__ import annotations

import dataclasses
import warnings
from typing import Any

from ._pytree import CONTAINERS, NAMES_OF_NAMED, register_pytree_node
from ._pytree_paths import GetAttrKey


def _fields_of(cls: Any, field_names: Any, drop_field_names: Any) -> list[str]:
    """Return the names of a class's parts, after checking the caller's arguments."""
    if not dataclasses.is_dataclass(cls):
        if field_names is None:
            raise ValueError(f"field_names must be specified with a list of all fields used to initialize {cls}, as it "
                             "is not a dataclass.")
        return list(field_names)
    own = [field.name for field in dataclasses.fields(cls) if field.init]
    if field_names is None:
        return own
    wanted, given = set(own) - set(drop_field_names), set(field_names)
    message = ""
    if missing := wanted - given:
        message += (f"Missing fields in `field_names`: {missing}. If you want to include these fields in the pytree, "
                    "please add them to `field_names`, otherwise please add them to `drop_field_names`.\n")
    if extra := given - wanted:
        message += (f"Unexpected fields in `field_names`: {extra}. Please remove these fields, or add them to "
                    "`drop_field_names`.\n")
    if message:
        raise ValueError(f"field_names does not include all dataclass fields.\n{message}")
    return list(field_names)


def register_dataclass(cls: type[Any], *, field_names: list[str] | None = None, drop_field_names: Any = (),
                       serialized_type_name: str | None = None) -> None:
    """Register a dataclass, or a class that is called with its attributes, as a container of those that are not None.

    field_names: the attributes in order, by default all fields of a dataclass. drop_field_names: those of its fields
    that are left out.
    """
    names = _fields_of(cls, field_names, drop_field_names)

    def flatten(value: Any) -> Any:
        present = [name for name in names if getattr(value, name) is not None]
        return [getattr(value, name) for name in present], [present, [name for name in names if name not in present]]

    def unflatten(parts: Any, context: Any) -> Any:
        return cls(**dict(zip(context[0], parts, strict=True)), **dict.fromkeys(context[1]))

    def flatten_with_keys(value: Any) -> Any:
        parts, context = flatten(value)
        return list(zip(map(GetAttrKey, context[0]), parts, strict=True)), context
    register_pytree_node(cls, flatten, unflatten, serialized_type_name=serialized_type_name,
                         flatten_with_keys_fn=flatten_with_keys)


@dataclasses.dataclass(frozen=True, slots=True)
class ConstantNode:
    """The context of a constant in a spec: the value."""

    value: Any


constants: set[type] = set()


def register_constant(cls: type[Any]) -> None:
    """Register a class whose objects belong to the structure of a tree, and are no leaves.

    Objects are compared by `__eq__`, so the class must define that and `__hash__`.
    """
    for name in ("eq", "hash"):
        if getattr(cls, f"__{name}__") in (object.__eq__, None):
            raise TypeError(f"register_constant(cls) expects `cls` to have a non-default `__{name}__` implementation.")
    register_pytree_node(cls, lambda value: ([], ConstantNode(value)), lambda _, context: context.value,
                         flatten_with_keys_fn=lambda value: ([], ConstantNode(value)))
    constants.add(cls)


def is_constant_class(cls: type[Any]) -> bool:
    """Return True for a class that `register_constant` was called with."""
    return isinstance(cls, type) and cls in constants


def _register_namedtuple(cls: type[Any], *, serialized_type_name: str) -> None:
    """Give a class of named tuples a name in JSON."""
    NAMES_OF_NAMED[cls] = serialized_type_name


def _register_pytree_node(cls: type[Any], flatten_fn: Any, unflatten_fn: Any, to_str_fn: Any = None,
                          maybe_from_str_fn: Any = None, **options: Any) -> None:
    """Register a class as a container, perhaps again: the deprecated name."""
    warnings.warn("`torch.utils._pytree._register_pytree_node` is deprecated. Please use "
                  "`torch.utils._pytree.register_pytree_node` instead.", FutureWarning, stacklevel=2)
    if to_str_fn is not None or maybe_from_str_fn is not None:
        warnings.warn("`to_str_fn` and `maybe_from_str_fn` is deprecated. Please use `to_dumpable_context` and "
                      "`from_dumpable_context` instead.", FutureWarning, stacklevel=2)
    if cls in CONTAINERS:
        warnings.warn(f"{cls} is already registered as pytree node. Overwriting the previous registration.",
                      stacklevel=2)
        _deregister_pytree_node(cls)
    register_pytree_node(cls, flatten_fn, unflatten_fn, **options)


def _deregister_pytree_node(cls: type[Any]) -> None:
    """Make the objects of a registered class leaves again."""
    del CONTAINERS[cls]
    constants.discard(cls)


def is_namedtuple_class(cls: Any) -> bool:
    """Return True for a class of named tuples."""
    return (isinstance(cls, type) and issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple)
            and all(type(name) is str for name in cls._fields) and callable(getattr(cls, "_make", None))
            and callable(getattr(cls, "_asdict", None)))


def is_namedtuple_instance(obj: Any) -> bool:
    """Return True for a named tuple."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: Any) -> bool:
    """Return True for a named tuple or a class of them."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls: Any) -> bool:
    """Return True for a class of results with names, as `torch.max(x, 0)` has, or of Python's own in C."""
    return (isinstance(cls, type) and issubclass(cls, tuple) and (cls.__module__.endswith(".return_types") or all(
        isinstance(getattr(cls, name, None), int) for name in ("n_fields", "n_sequence_fields", "n_unnamed_fields"))))


def is_structseq_instance(obj: Any) -> bool:
    """Return True for an object of such a class."""
    return is_structseq_class(type(obj))


def is_structseq(obj: Any) -> bool:
    """Return True for such a class or an object of it."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))
