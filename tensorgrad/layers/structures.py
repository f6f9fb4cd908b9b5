"""Nested structures: lists, tuples and mappings of values, to any depth, and of any type that can be made from its
parts.

All functions take the same options:

    is_base                 tells values from structures: a function, a type or a tuple of types; by default all that is
        no structure is a value
    allow_any_seq_type      walk into every sequence (the default), or into lists, tuples and their subclasses only
    allow_any_dict_type     walk into every mapping (the default), or into dicts and their subclasses only
    unknown_type_handler    computes the result for an object that is neither a structure nor, by `is_base`, a value;
    without it: TypeError leave_none              leave None where it is, rather than treat it as a value
"""
from __future__ import annotations

import builtins
import functools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import signature
from typing import Any

import numpy as np

from .. import api as tg

__all__ = ["StructureMismatch", "is_mapping", "is_sequence", "recursive_all", "recursive_any",
           "recursive_binary_combine", "recursive_combine", "recursive_compare", "recursive_flatten", "recursive_map",
           "recursive_max", "recursive_reduce",
           "recursive_sum", "recursive_zip"]

TEXT = (str, bytes, bytearray, memoryview, range)       # sequences for Python, values for a reader


class StructureMismatch(ValueError):
    """Structures that are to be walked side by side differ; the message says where."""


def is_sequence(obj: Any, allow_any_type: bool = True) -> bool:
    """Return True for a sequence other than str, bytes and range.

    >>> is_sequence([1]), is_sequence("text"), is_sequence({1})
    (True, False, False)
    """
    return isinstance(obj, (list, tuple)) or allow_any_type and isinstance(obj, Sequence) and not isinstance(obj, TEXT)


def is_mapping(obj: Any, allow_any_type: bool = True) -> bool:
    """Return True for a mapping; with `allow_any_type=False` for a dict only."""
    return isinstance(obj, Mapping if allow_any_type else dict)


class Walk:
    """Walks structures under the options."""

    def __init__(self, is_base: Any = None, allow_any_seq_type: bool = True, allow_any_dict_type: bool = True,
                 unknown_type_handler: Callable[[Any], Any] | None = None, leave_none: bool = False) -> None:
        self.is_base = (lambda x: isinstance(x, is_base)) if isinstance(is_base, (type, tuple)) else is_base
        self.any_sequence, self.any_mapping = allow_any_seq_type, allow_any_dict_type
        self.unknown, self.leave_none = unknown_type_handler, leave_none

    def parts(self, x: Any) -> dict[Any, Any] | None:
        """Return the parts by index or key; None for a value."""
        if self.is_base is not None and self.is_base(x):
            return None
        if is_sequence(x, self.any_sequence):
            return dict(enumerate(x))
        return dict(x.items()) if is_mapping(x, self.any_mapping) else None

    def is_value(self, x: Any) -> bool:
        return self.is_base is None or bool(self.is_base(x))

    def of_unknown(self, values: Sequence[Any], path: tuple[Any, ...]) -> Any:
        if self.unknown is None:
            strange = next(x for x in values if not self.is_value(x))
            raise TypeError(f"{where(path)} is neither a structure nor one of the values that are expected: "
                            f"{type(strange).__name__}")
        return self.unknown(*values)

    def values(self, x: Any, path: tuple[Any, ...] = ()) -> Iterator[Any]:
        parts = self.parts(x)
        if parts is not None:
            for key, part in parts.items():
                yield from self.values(part, (*path, key))
        elif not (x is None and self.leave_none):
            yield x if self.is_value(x) else self.of_unknown([x], path)

    def combined(self, function: Callable[..., Any], structures: Sequence[Any], path: tuple[Any, ...] = ()) -> Any:
        parts = [self.parts(x) for x in structures]
        if builtins.all(found is None for found in parts):
            return self._at_value(function, structures, path)
        for x, found in zip(structures[1:], parts[1:]):
            check_match(structures[0], parts[0], x, found, path)
        first, *others = parts
        assert first is not None
        return rebuilt(structures[0],
                       {key: self.combined(function, [part, *(found[key] for found in others)], (*path, key))  # type: ignore[index]
                        for key, part in first.items()})

    def _at_value(self, function: Callable[..., Any], values: Sequence[Any], path: tuple[Any, ...]) -> Any:
        if self.leave_none and builtins.any(x is None for x in values):
            if builtins.all(x is None for x in values):
                return None
            raise StructureMismatch(f"{where(path)}: None in one structure, and not in the other")
        return function(*values) if builtins.all(map(self.is_value, values)) else self.of_unknown(values, path)


def where(path: tuple[Any, ...]) -> str:
    """A place in a structure, in words.

    >>> where(("a", 0)), where(())
    ("structure['a'][0]", 'structure')
    """
    return "structure" + "".join(f"[{key!r}]" for key in path)


def check_match(a: Any, a_parts: Any, b: Any, b_parts: Any, path: tuple[Any, ...]) -> None:
    """Raise unless two structures have the same kind and the same keys here."""
    if (a_parts is None) != (b_parts is None) or is_mapping(a) != is_mapping(b):
        raise StructureMismatch(f"{where(path)}: {type(a).__name__} does not match {type(b).__name__}")
    if not is_mapping(a) and len(a_parts) != len(b_parts):
        raise StructureMismatch(f"{where(path)}: lengths {len(a_parts)} and {len(b_parts)} do not match")
    for one, other, which in (a_parts, b_parts, "second"), (b_parts, a_parts, "first"):
        for key in one:
            if key not in other:
                raise StructureMismatch(f"{where(path)}: key {key!r} is missing in the {which} structure")


def rebuilt(original: Any, parts: dict[Any, Any]) -> Any:
    """A structure of the same type, with other parts."""
    # values mapped from sizes need not be integers
    kind: Any = tuple if isinstance(original, tg.Size) else type(original)
    try:
        if is_mapping(original):
            return kind(original.default_factory, parts) if isinstance(original, defaultdict) else kind(parts)
        return kind._make(parts.values()) if hasattr(kind, "_make") else kind(list(parts.values()))
    except TypeError as error:
        raise TypeError(f"a {kind.__name__} cannot be made from its parts: {error}") from error


# ── one structure ─────────────────────────────────────────────────────────────────────────────────────────────────────


def recursive_map(struct: Any, func: Callable[[Any], Any], **options: Any) -> Any:
    """A structure of the same form with `func(value)` for each value.

    >>> recursive_map({"a": [1, 2], "b": (3,)}, lambda x: -x)
    {'a': [-1, -2], 'b': (-3,)}
    """
    return Walk(**options).combined(func, [struct])


def recursive_flatten(struct: Any, **options: Any) -> list[Any]:
    """A list of all values, in order; with `leave_none`, of all but None.

    >>> recursive_flatten([1, {"a": 2, "b": [3]}])
    [1, 2, 3]
    """
    return list(Walk(**options).values(struct))


def recursive_reduce(struct: Any, reduce_op: Callable[..., Any], *initial: Any,
                     func: Callable[[Any], Any] = lambda x: x, **options: Any) -> Any:
    """The values, or a function of them, joined by `reduce_op`: a function of two, as `functools.reduce` joins them
    from the left, after the initial value if there is one; or a function of one argument, such as `sum`, which is given
    all of them.

    >>> recursive_reduce([1, (2, [3])], lambda a, b: 10 * a + b), recursive_reduce([1, (2, [3])], sum, func=lambda x: x * x)
    (123, 14)
    """  # noqa: E501
    values = (func(x) for x in recursive_flatten(struct, **options))
    return reduce_op([*initial, *values]) if takes_one(reduce_op) else functools.reduce(reduce_op, values, *initial)


def recursive_any(struct: Any, func: Callable[[Any], Any] = bool, **options: Any) -> bool:
    """Return True if `func(value)` is true for any value.

    >>> recursive_any([0, [0, 5]], lambda x: x > 4)
    True
    """
    return builtins.any(func(x) for x in Walk(**options).values(struct))


def recursive_all(struct: Any, func: Callable[[Any], Any] = bool, **options: Any) -> bool:
    """Return True if `func(value)` is true for all values."""
    return builtins.all(func(x) for x in Walk(**options).values(struct))


def recursive_sum(struct: Any, func: Callable[[Any], Any] = lambda x: x, start: Any = 0, **options: Any) -> Any:
    """The sum of the values, or of a function of them.

    >>> recursive_sum({"a": [1, 2], "b": 3})
    6
    """
    return builtins.sum((func(x) for x in Walk(**options).values(struct)), start)


def recursive_max(struct: Any, func: Callable[[Any], Any] = lambda x: x, **options: Any) -> Any:
    """The greatest of the values, or of a function of them. ValueError if there is none."""
    return builtins.max(func(x) for x in Walk(**options).values(struct))


# ── several structures ────────────────────────────────────────────────────────────────────────────────────────────────


def recursive_combine(*structs: Any, combinator: Callable[..., Any], **options: Any) -> Any:
    """The combination of the values in the same place of all structures, in the form of the first.

    A `combinator` that needs one argument gets a tuple of the values, as `sum` does; any other gets them one by one, as
    `lambda a, b: a + b` does. Sequences match if they are equally long, mappings if they have the same keys. Errors:
        StructureMismatch names the place where they do not.

    >>> recursive_combine([1, {"a": 2}], [10, {"a": 20}], [100, {"a": 200}], combinator=sum)
    [111, {'a': 222}]
    """
    if not structs:
        raise TypeError("recursive_combine() needs at least one structure")
    return Walk(**options).combined((lambda *values: combinator(values)) if takes_one(combinator) else combinator,
                                    structs)


def takes_one(function: Callable[..., Any]) -> bool:
    """Tell whether a function needs one argument, or takes no more than one.

    >>> takes_one(sum), takes_one(list), takes_one(lambda a, b: a), takes_one(lambda *values: values)
    (True, True, False, False)
    """
    try:
        parameters = list(signature(function).parameters.values())
    except (TypeError, ValueError):         # some builtin functions have no signature
        return False
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return (1 in (len(places), sum(p.default is p.empty for p in places))
            and not any(p.kind is p.VAR_POSITIONAL for p in parameters))


def recursive_zip(*structs: Any, **options: Any) -> Any:
    """Tuples of the values in the same place.

    >>> recursive_zip([1, [2]], [3, [4]])
    [(1, 3), [(2, 4)]]
    """
    return recursive_combine(*structs, combinator=lambda *values: values, **options)


def recursive_binary_combine(struct1: Any, struct2: Any, *, combinator: Callable[[Any, Any], Any],
                             **options: Any) -> Any:
    """`recursive_combine` of two structures: the combinator is called as `combinator(a, b)`."""
    return recursive_combine(struct1, struct2, combinator=lambda a, b: combinator(a, b), **options)


def recursive_compare(struct1: Any, struct2: Any, comparator: Callable[[Any, Any], Any] | None = None,
                      mode: str = "all", **options: Any) -> bool:
    """Tell whether two structures have the same form, and values that are equal, or of which `comparator(a, b)` is
    true; with mode="any", some of them.

    >>> recursive_compare([1, {"a": 2}], (1, {"a": 2})), recursive_compare([1, 2], [1, [2]])
    (True, False)
    """
    if mode not in ("all", "any"):
        raise AssertionError(f"mode: 'all' or 'any', not {mode!r}")
    found: list[Any] = []
    try:
        recursive_combine(struct1, struct2, combinator=lambda a, b: found.append((comparator or equal)(a, b)),
                          **options)
    except StructureMismatch:
        return False
    return builtins.all(found) if mode == "all" else builtins.any(found)


def equal(a: Any, b: Any) -> bool:
    """Return True if two values are equal; tensors and arrays, if all elements are."""
    if isinstance(a, tg.Tensor) or isinstance(b, tg.Tensor):
        return isinstance(a, tg.Tensor) and isinstance(b, tg.Tensor) and a.shape == b.shape and bool((a == b).all())
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    return bool(a == b)
