"""Nested lists, tuples, dictionaries and slices; and immutable ones, for the arguments of nodes."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

REFUSAL = """{!r} object does not support mutation. If you are attempting to modify the kwargs or args of a torch.fx.Node object,
instead create a new copy of it and assign the copy to the node:

    new_args = ...  # copy and mutate args
    node.args = new_args"""  # noqa: E501


def _refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError(REFUSAL.format(type(self).__name__))


class immutable_list(list[Any]):                # noqa: N801  PyTorch's name
    """An immutable list: a change would not update `node.users`. Changing it is a TypeError.

    >>> immutable_list([1, 2]) == [1, 2], type(immutable_list([1]) + [2]).__name__
    (True, 'list')
    """

    __slots__ = ()
    append = extend = insert = remove = pop = clear = sort = reverse = _refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse

    def __hash__(self) -> int:                  # type: ignore[override]
        return hash(tuple(self))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (list(self),)


class immutable_dict(dict[Any, Any]):           # noqa: N801
    """An immutable dictionary. Changing it is a TypeError.

    >>> immutable_dict(a=1) | {"b": 2}
    {'a': 1, 'b': 2}
    """

    __slots__ = ()
    pop = popitem = update = setdefault = clear = _refuse
    __setitem__ = __delitem__ = __ior__ = _refuse

    def __hash__(self) -> int:                  # type: ignore[override]
        return hash(tuple(self.items()))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (dict(self),)


NESTS = list, tuple, dict, slice


def leaves(tree: Any) -> Iterator[Any]:
    """Yield the leaves of a nest, from left to right.

    >>> list(leaves([1, {"a": (2, slice(3, None))}]))
    [1, 2, 3, None, None]
    """
    if isinstance(tree, (list, tuple)):
        for part in tree:
            yield from leaves(part)
    elif isinstance(tree, dict):
        for part in tree.values():
            yield from leaves(part)
    elif isinstance(tree, slice):
        yield from (tree.start, tree.stop, tree.step)
    else:
        yield tree


def mapped(function: Callable[..., Any], first: Any, *others: Any) -> Any:
    """Return a nest with `function(leaf, …)` in place of each leaf; further nests of the same form supply further
    arguments.

    Immutable lists and dictionaries become mutable ones.

    >>> mapped(lambda a, b: a + b, [1, {"a": (2,)}], [10, {"a": (20,)}])
    [11, {'a': (22,)}]
    """
    kind = type(first)
    if (others and isinstance(first, (dict, list, tuple))
            and any(not isinstance(o, kind) or len(o) != len(first) for o in others)):
        raise RuntimeError("how many results there are depends on sizes that are not known")
    if isinstance(first, dict):
        return _like(first, {k: mapped(function, v, *(o[k] for o in others)) for k, v in first.items()})
    if isinstance(first, (list, tuple)):
        parts = ([mapped(function, *each) for each in zip(first, *others, strict=True)] if others
                 else [mapped(function, part) for part in first])
        return tuple(parts) if kind is tuple else parts if kind is list or kind is immutable_list else _row(kind, parts)
    if isinstance(first, slice):
        return slice(*(function(*(getattr(o, end) for o in (first, *others))) for end in ("start", "stop", "step")))
    return function(first, *others)


def aggregate(tree: Any, function: Callable[[Any], Any]) -> Any:
    """Return a nest with `function(leaf)` in place of each leaf, of immutable lists and dictionaries (map_aggregate in
    fx).

    >>> told = aggregate([1, {"a": (2,)}], str)
    >>> told, type(told).__name__
    (['1', {'a': ('2',)}], 'immutable_list')
    """
    if not isinstance(tree, NESTS):
        return function(tree)
    if isinstance(tree, (list, tuple)):
        kind = type(tree)
        parts = [aggregate(part, function) if isinstance(part, NESTS) else function(part) for part in tree]
        return (tuple(parts) if kind is tuple else immutable_list(parts) if kind is list or kind is immutable_list
                else _row(kind, parts))
    if isinstance(tree, dict):
        items = {key: aggregate(part, function) for key, part in tree.items()}
        return immutable_dict(items) if type(tree) in (dict, immutable_dict) else _like(tree, items)
    return slice(aggregate(tree.start, function), aggregate(tree.stop, function), aggregate(tree.step, function))


def _row(kind: Any, parts: list[Any]) -> Any:
    """Return a list, a tuple or a named tuple of these parts."""
    return kind(*parts) if hasattr(kind, "_fields") else kind(parts)


def _like(like: Any, items: dict[Any, Any]) -> Any:
    """Return a dict of the class of `like`, if its constructor takes items, else a plain one."""
    if type(like) in (dict, immutable_dict):
        return items
    try:
        return type(like)(items)
    except TypeError:            # a class with another constructor, such as defaultdict
        return items


__all__ = ["aggregate", "immutable_dict", "immutable_list", "leaves", "mapped"]
