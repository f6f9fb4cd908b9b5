"""Flatten nested containers to a list of leaves and a TreeSpec, and back, under PyTorch's names (torch.utils._pytree).

>>> from tensorgrad.utils._pytree import tree_flatten, tree_unflatten
>>> leaves, spec = tree_flatten({"w": 1, "layers": [2, (3,)]})
>>> leaves, tree_unflatten([v * 10 for v in leaves], spec)
([1, 2, 3], {'w': 10, 'layers': [20, (30,)]})
"""
from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple


class Container:
    """The rules of a container type: `flatten_fn(c) -> (children, context)` and `unflatten_fn(children, context) ->
    c`.
    """

    __slots__ = ("flatten_fn", "unflatten_fn")

    def __init__(self, flatten: Any, unflatten: Any) -> None:
        self.flatten_fn, self.unflatten_fn = flatten, unflatten


class MappingKey(NamedTuple):
    """A step in the path to a leaf: the value of a key."""

    key: Any


def _dict_flatten(d: Any) -> tuple[list[Any], list[Any]]:
    return list(d.values()), list(d)


def _dict_flatten_with_keys(d: Any) -> tuple[list[Any], list[Any]]:
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def _dict_unflatten(values: Any, context: Any) -> dict[Any, Any]:
    return dict(zip(context, values, strict=True))


CONTAINERS: dict[type, Container] = {
    tuple: Container(lambda t: (list(t), None), lambda parts, _: tuple(parts)),
    list: Container(lambda t: (t, None), lambda parts, _: list(parts)),
    dict: Container(_dict_flatten, _dict_unflatten),
    OrderedDict: Container(_dict_flatten, lambda parts, keys: OrderedDict(zip(keys, parts, strict=True))),
    defaultdict: Container(lambda d: (list(d.values()), [d.default_factory, list(d)]),
                           lambda parts, context: defaultdict(context[0], zip(context[1], parts, strict=True))),
    deque: Container(lambda d: (list(d), d.maxlen), lambda parts, length: deque(parts, maxlen=length)),
}
NAMED = Container(lambda t: (list(t), type(t)), lambda parts, cls: cls(*parts))


class namedtuple:                     # noqa: N801  the name in a TreeSpec's repr
    """The type that represents all named tuples in a TreeSpec."""


CONTAINERS[namedtuple] = NAMED
SUPPORTED_NODES = CONTAINERS                  # PyTorch's name, which packages that walk trees themselves use


def register_pytree_node(cls: type, flatten_fn: Any, unflatten_fn: Any, **unused: Any) -> None:
    """Register a class as a container: flatten_fn(object) -> (children, context), unflatten_fn(children, context) ->
    object."""
    if cls in CONTAINERS:
        raise ValueError(f"{cls} is already registered as pytree node.")
    CONTAINERS[cls] = Container(flatten_fn, unflatten_fn)


def container_of(value: Any) -> tuple[Any, Container | None]:
    """Return the type of a container and its rules; (None, None) for a leaf."""
    cls = type(value)
    if cls in CONTAINERS:
        return cls, CONTAINERS[cls]
    if isinstance(value, tuple) and hasattr(cls, "_fields") and hasattr(cls, "_make"):
        return namedtuple, NAMED
    if isinstance(value, tuple) and cls.__module__.endswith("return_types"):
        return namedtuple, NAMED
    return None, None


def _get_node_type(tree: Any) -> Any:
    return container_of(tree)[0] or type(tree)


class TreeSpec:
    """The structure of a tree of containers, without its leaves."""

    __slots__ = ("type", "context", "_children", "num_leaves")

    def __init__(self, type: Any = None, context: Any = None, children: Any = ()) -> None:
        self.type, self.context, self._children = type, context, children
        self.num_leaves: int = sum(child.num_leaves for child in children) if type is not None else 1

    def children(self) -> list[TreeSpec]:
        """Return the specs of the children."""
        return list(self._children)

    def child(self, index: int) -> TreeSpec:
        """Return the spec of a child."""
        return self._children[index]

    children_specs = property(children)
    num_children = property(lambda self: len(self._children))
    num_nodes = property(lambda self: 1 + sum(child.num_nodes for child in self._children))

    def is_leaf(self) -> bool:
        """Return True for the spec of a leaf."""
        return self.type is None

    def unflatten(self, leaves: Any) -> Any:
        """Return the tree with these leaves."""
        return tree_unflatten(leaves, self)

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, TreeSpec) and (self.type, self.context, self._children)
                == (other.type, other.context, other._children))

    def __hash__(self) -> int:
        return hash((self.type, str(self.context), tuple(self._children)))

    def __repr__(self, indent: int = 0) -> str:
        if self.type is None:
            return "*"
        space = "\n" + " " * (indent + 2)
        parts = f",{space}".join(child.__repr__(indent + 2) for child in self._children)
        return f"TreeSpec({self.type.__name__}, {self.context}, [{parts}])"


LeafSpec = TreeSpec
PyTree = Any


def _flatten(tree: Any, leaves: list[Any], is_leaf: Any) -> TreeSpec:
    cls, container = (None, None) if is_leaf is not None and is_leaf(tree) else container_of(tree)
    if container is None:
        leaves.append(tree)
        return TreeSpec(None, None, [])
    children, context = container.flatten_fn(tree)
    return TreeSpec(cls, context, [_flatten(child, leaves, is_leaf) for child in children])


def tree_flatten(tree: Any, is_leaf: Any = None) -> tuple[list[Any], TreeSpec]:
    """Return the leaves of a tree, in order, and its spec."""
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


def tree_unflatten(leaves: Any, treespec: TreeSpec) -> Any:
    """Return the tree of a spec with these leaves."""
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueError(f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a "
                         f"pytree that holds {treespec.num_leaves} items ({treespec}).")
    return _built(iter(leaves), treespec)


def _built(leaves: Iterator[Any], spec: TreeSpec) -> Any:
    if spec.type is None:
        return next(leaves)
    container = NAMED if spec.type is namedtuple else CONTAINERS[spec.type]
    return container.unflatten_fn([_built(leaves, child) for child in spec._children], spec.context)


def tree_iter(tree: Any, is_leaf: Any = None) -> Iterator[Any]:
    """Iterate over the leaves of a tree."""
    return iter(tree_leaves(tree, is_leaf))


def tree_leaves(tree: Any, is_leaf: Any = None) -> list[Any]:
    """Return the leaves of a tree."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: Any = None) -> TreeSpec:
    """Return the spec of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def tree_is_leaf(tree: Any, is_leaf: Any = None) -> bool:
    """Return True for a leaf: a value that is no container, or for which `is_leaf(value)` is true."""
    return container_of(tree)[1] is None or is_leaf is not None and is_leaf(tree)


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Any = None) -> Any:
    """Return the tree with `func(leaf, *others)` for each leaf, `others` being the parts at its position in `rests`."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return tree_unflatten([func(*parts) for parts in zip(leaves, *(flattened_like(spec, rest) for rest in rests),
                                                         strict=True)], spec)


def tree_map_(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Any = None) -> Any:
    """Call `func` as `tree_map` does, for its side effects; return the tree itself."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def flattened_like(spec: TreeSpec, tree: Any) -> list[Any]:
    """Return the parts of a tree at the positions of a spec's leaves. ValueError if the containers differ."""
    if spec.type is None:
        return [tree]
    cls, container = container_of(tree)
    if cls is not spec.type:
        raise ValueError(f"Node type mismatch; expected {spec.type}, but got {type(tree)}.")
    children, context = container.flatten_fn(tree)  # type: ignore[union-attr]
    if len(children) != len(spec._children):
        raise ValueError(f"Node arity mismatch; expected {len(spec._children)}, but got {len(children)}.")
    if cls in (dict, OrderedDict):
        if set(context) != set(spec.context):
            raise ValueError(f"Node keys mismatch; missing key(s): {set(spec.context) - set(context)}.")
        children = [tree[key] for key in spec.context]
    return [part for child, sub in zip(spec._children, children, strict=True) for part in flattened_like(child, sub)]


def _only(kind: Any) -> Callable[[Any], bool]:
    return kind if callable(kind) and not isinstance(kind, type) else lambda leaf: isinstance(leaf, kind)


def tree_map_only(type_or_types_or_pred: Any, func: Callable[[Any], Any], tree: Any, is_leaf: Any = None) -> Any:
    """Apply `tree_map` to leaves of these types only; others are kept."""
    chosen = _only(type_or_types_or_pred)
    return tree_map(lambda leaf: func(leaf) if chosen(leaf) else leaf, tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred: Any, func: Callable[[Any], Any], tree: Any, is_leaf: Any = None) -> Any:
    """Call `func` on leaves of these types, for its side effects; return the tree itself."""
    tree_map_only(type_or_types_or_pred, func, tree, is_leaf)
    return tree


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: Any = None) -> bool:
    """Return True if pred holds for all leaves."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: Any = None) -> bool:
    """Return True if pred holds for any leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(type_or_types: Any, pred: Callable[[Any], bool], tree: Any, is_leaf: Any = None) -> bool:
    """Return True if pred holds for all leaves of these types."""
    return all(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if isinstance(leaf, type_or_types))


def tree_any_only(type_or_types: Any, pred: Callable[[Any], bool], tree: Any, is_leaf: Any = None) -> bool:
    """Return True if pred holds for any leaf of these types."""
    return any(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if isinstance(leaf, type_or_types))


def broadcast_prefix(tree: Any, spec: TreeSpec) -> list[Any] | None:
    """Expand a prefix of a tree to a value for each leaf, as vmap expands in_dims over its arguments.

    None if it does not fit.
    """
    cls, container = container_of(tree)
    if container is None:
        return [tree] * spec.num_leaves
    if cls is not spec.type:
        return None
    children, context = container.flatten_fn(tree)
    if len(children) != len(spec._children) or context != spec.context:
        return None
    found: list[Any] = []
    for child, sub in zip(children, spec._children, strict=True):
        part = broadcast_prefix(child, sub)
        if part is None:
            return None
        found += part
    return found


def treespec_pprint(treespec: TreeSpec) -> str:
    """Return the spec as the repr of a tree with * for its leaves."""
    class Star:
        __repr__ = lambda self: "*"  # noqa: E731
    return repr(tree_unflatten([Star() for _ in range(treespec.num_leaves)], treespec))
