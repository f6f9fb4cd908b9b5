"""Flatten nested containers to a list of leaves and a TreeSpec, and back, under PyTorch's names (torch.utils._pytree).

>>> from tensorgrad.utils._pytree import tree_flatten, tree_unflatten
>>> leaves, spec = tree_flatten({"w": 1, "layers": [2, (3,)]})
>>> leaves, tree_unflatten([v * 10 for v in leaves], spec)
([1, 2, 3], {'w': 10, 'layers': [20, (30,)]})
"""
from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterator
from importlib import import_module
from types import UnionType
from typing import Any

from ..messages.missing_names import MissingName
from ..size import Size

# ruff: noqa: F822  other modules define some of the names, see LATER
__all__ = ["PyTree", "Context", "FlattenFn", "UnflattenFn", "DumpableContext", "ToDumpableContextFn",
           "FromDumpableContextFn", "PyTreeSpec", "TreeSpec", "LeafSpec", "keystr", "key_get", "register_pytree_node",
           "tree_is_leaf", "tree_flatten", "tree_flatten_with_path", "tree_unflatten", "tree_iter", "tree_leaves",
           "tree_leaves_with_path", "tree_structure", "tree_map", "tree_map_with_path", "tree_map_", "tree_map_only",
           "tree_map_only_", "tree_all", "tree_any", "tree_all_only", "tree_any_only", "treespec_dumps",
           "treespec_loads", "treespec_pprint", "is_namedtuple", "is_namedtuple_class", "is_namedtuple_instance",
           "is_structseq", "is_structseq_class", "is_structseq_instance"]

PyTree = Context = DumpableContext = Any
FlattenFn = ToDumpableContextFn = FromDumpableContextFn = Callable[[Any], Any]
UnflattenFn = Callable[[Any, Any], Any]

# {name of this module: the module that defines it}
LATER = {name: module for module, names in {
    "_pytree_paths": "SequenceKey MappingKey GetAttrKey tree_flatten_with_path tree_leaves_with_path "
                     "tree_map_with_path keystr key_get _dict_flatten_with_keys",
    "_pytree_json": "treespec_dumps treespec_loads pytree_to_str str_to_pytree",
    "_pytree_classes": "register_dataclass register_constant is_constant_class ConstantNode _register_namedtuple "
                       "_register_pytree_node _deregister_pytree_node is_namedtuple is_namedtuple_class "
                       "is_namedtuple_instance is_structseq is_structseq_class is_structseq_instance"}.items()
    for name in names.split()}


def __getattr__(name: str) -> Any:
    """Import the module that defines a name when it is first asked for."""
    if name not in LATER:
        raise MissingName(__name__, name)
    return getattr(import_module(f".{LATER[name]}", __package__), name)


class Container:
    """The rules of a container type.

    flatten_fn: container → (children, context). unflatten_fn: (children, context) → container. flatten_with_keys_fn:
    container → ([(key, child), …], context); keys: container → the keys of its children, in place of that. name: the
    type's name in JSON. to_dumpable, from_dumpable: from a context to what JSON can hold, and back.
    """

    __slots__ = ("flatten_fn", "unflatten_fn", "flatten_with_keys_fn", "keys", "name", "to_dumpable", "from_dumpable")

    def __init__(self, flatten: Any, unflatten: Any, flatten_with_keys_fn: Any = None, keys: str | None = None,
                 name: str | None = None, to_dumpable: Any = None, from_dumpable: Any = None) -> None:
        self.flatten_fn, self.unflatten_fn, self.flatten_with_keys_fn = flatten, unflatten, flatten_with_keys_fn
        self.keys, self.name, self.to_dumpable, self.from_dumpable = keys, name, to_dumpable, from_dumpable


def _dict_flatten(d: Any) -> tuple[list[Any], list[Any]]:
    return list(d.values()), list(d)


def _dict_unflatten(values: Any, context: Any) -> dict[Any, Any]:
    return dict(zip(context, values, strict=True))


CONTAINERS: dict[Any, Container] = {
    tuple: Container(lambda t: (list(t), None), lambda parts, _: tuple(parts), keys="items", name="builtins.tuple"),
    list: Container(lambda t: (t, None), lambda parts, _: list(parts), keys="items", name="builtins.list"),
    dict: Container(_dict_flatten, _dict_unflatten, keys="mapping", name="builtins.dict"),
    OrderedDict: Container(_dict_flatten, lambda parts, keys: OrderedDict(zip(keys, parts, strict=True)),
                           keys="mapping", name="collections.OrderedDict"),
    defaultdict: Container(lambda d: (list(d.values()), [d.default_factory, list(d)]),
                           lambda parts, context: defaultdict(context[0], zip(context[1], parts, strict=True)),
                           keys="mapping", name="collections.defaultdict"),
    deque: Container(lambda d: (list(d), d.maxlen), lambda parts, length: deque(parts, maxlen=length),
                     keys="items", name="collections.deque"),
    Size: Container(lambda size: (list(size), None), lambda parts, _: Size(parts), keys="items", name="torch.Size"),
}
NAMED = Container(lambda t: (list(t), type(t)), lambda parts, cls: cls(*parts), keys="fields",
                  name="collections.namedtuple")
CONTAINERS[namedtuple] = NAMED                # represents all classes of named tuples
NAMES_OF_NAMED: dict[type, str] = {}          # names in JSON of classes of named tuples
SUPPORTED_NODES = CONTAINERS                  # PyTorch's name, which packages that walk trees themselves use
DICTS = dict, OrderedDict, defaultdict
BUILTIN_TYPES = frozenset(CONTAINERS) - {Size}


def register_pytree_node(cls: type, flatten_fn: Any, unflatten_fn: Any, *, serialized_type_name: str | None = None,
                         to_dumpable_context: Any = None, from_dumpable_context: Any = None,
                         flatten_with_keys_fn: Any = None) -> None:
    """Register a class as a container.

    flatten_fn: object → (children, context). unflatten_fn: (children, context) → object. flatten_with_keys_fn:
    object → ([(key, child), …], context), for paths. serialized_type_name, to_dumpable_context,
    from_dumpable_context: the name of the class in JSON, and functions from a context to what JSON can hold and back.
    Errors: ValueError if the class is registered already, or one of the last two functions is missing.
    """
    if cls in CONTAINERS:
        raise ValueError(f"{cls} is already registered as pytree node.")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered.")
    CONTAINERS[cls] = Container(flatten_fn, unflatten_fn, flatten_with_keys_fn, name=serialized_type_name,
                                to_dumpable=to_dumpable_context, from_dumpable=from_dumpable_context)


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
        self.type, self.context, self._children = type, context, list(children)
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

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """Return the subtrees at the positions of this spec's leaves. ValueError if the containers differ."""
        return flattened_like(self, tree)

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


class LeafSpec(TreeSpec):
    """The structure of a single leaf."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__()


PyTreeSpec = TreeSpec
LEAF = LeafSpec()


def treespec_leaf() -> LeafSpec:
    """Return the spec of a leaf."""
    return LEAF


def treespec_tuple(iterable: Any = (), /) -> TreeSpec:
    """Return the spec of a tuple whose parts have these specs."""
    children = list(iterable)
    if not all(isinstance(child, TreeSpec) for child in children):
        raise ValueError(f"Expected a tuple of TreeSpec values, got: {children!r}.")
    return TreeSpec(tuple, None, children)


def treespec_dict(mapping: Any = (), /, **kwargs: TreeSpec) -> TreeSpec:
    """Return the spec of a dictionary whose values have these specs."""
    specs = dict(mapping, **kwargs)
    if not all(isinstance(child, TreeSpec) for child in specs.values()):
        raise ValueError(f"Expected a dictionary of TreeSpec values, got: {specs!r}.")
    return TreeSpec(dict, list(specs), list(specs.values()))


def _flatten(tree: Any, leaves: list[Any], is_leaf: Any) -> TreeSpec:
    cls, container = (None, None) if is_leaf is not None and is_leaf(tree) else container_of(tree)
    if container is None:
        leaves.append(tree)
        return LEAF
    children, context = container.flatten_fn(tree)
    return TreeSpec(cls, context, [_flatten(child, leaves, is_leaf) for child in children])


def tree_flatten(tree: Any, is_leaf: Any = None) -> tuple[list[Any], TreeSpec]:
    """Return the leaves of a tree, in order, and its spec."""
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


def check_spec(treespec: Any) -> None:
    """Raise TypeError unless the argument is a TreeSpec."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}.")


def tree_unflatten(leaves: Any, treespec: TreeSpec) -> Any:
    """Return the tree of a spec with these leaves."""
    check_spec(treespec)
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueError(f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a "
                         f"pytree that holds {treespec.num_leaves} items ({treespec}).")
    return _built(iter(leaves), treespec)


def _built(leaves: Iterator[Any], spec: TreeSpec) -> Any:
    if spec.type is None:
        return next(leaves)
    return CONTAINERS[spec.type].unflatten_fn([_built(leaves, child) for child in spec._children], spec.context)


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
    """Return the subtrees at the positions of a spec's leaves. ValueError if the containers differ.

    Dictionaries of the standard types match each other, in any order of keys.
    """
    if spec.type is None:
        return [tree]
    dicts = spec.type in DICTS and type(tree) in DICTS
    cls, container = container_of(tree)
    if not dicts and cls != spec.type:
        raise ValueError(f"{'Node t' if spec.type in BUILTIN_TYPES else 'T'}ype mismatch; expected {spec.type!r}, but "
                         f"got {cls or type(tree)!r}.")
    children, context = container.flatten_fn(tree)  # type: ignore[union-attr]
    if len(children) != len(spec._children):
        raise ValueError(f"Node arity mismatch; expected {len(spec._children)}, but got {len(children)}.")
    if dicts:
        keys = spec.context[1] if spec.type is defaultdict else spec.context
        _check_keys(set(keys), set(tree))
        children = [tree[key] for key in keys]
    elif context != spec.context and spec.type is not deque:
        raise ValueError(f"Node context mismatch for node type {spec.type!r}; expected {spec.context!r}, but got "
                         f"{context!r}." if spec.type in BUILTIN_TYPES else
                         f"Node context mismatch for custom node type {spec.type!r}.")
    return [part for child, sub in zip(spec._children, children, strict=True) for part in flattened_like(child, sub)]


def _check_keys(expected: set[Any], given: set[Any]) -> None:
    if expected != given:
        missing = f"; missing key(s): {expected - given}" if expected - given else ""
        extra = f"; extra key(s): {given - expected}" if given - expected else ""
        raise ValueError(f"Node keys mismatch{missing}{extra}.")


def _only(kind: Any) -> Callable[[Any], bool]:
    if isinstance(kind, (type, tuple, UnionType)):
        return lambda leaf: isinstance(leaf, kind)
    if not callable(kind):
        raise TypeError("Argument must be a type, a tuple of types, or a callable.")
    return kind  # type: ignore[no-any-return]


def map_only(type_or_types_or_pred: Any, /) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Return a decorator of functions: the decorated one returns values of other types, or that fail the predicate,
    unchanged."""
    chosen = _only(type_or_types_or_pred)
    return lambda func: lambda value: func(value) if chosen(value) else value


def tree_map_only(type_or_types_or_pred: Any, func: Callable[[Any], Any], tree: Any, is_leaf: Any = None) -> Any:
    """Apply `tree_map` to leaves of these types only; others are kept."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


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


def broadcast_prefix(tree: Any, treespec: TreeSpec, is_leaf: Any = None) -> list[Any] | None:
    """Expand a prefix of a tree to a value for each leaf, as vmap expands in_dims over its arguments.

    None if it does not fit.
    """
    cls, container = (None, None) if is_leaf is not None and is_leaf(tree) else container_of(tree)
    if container is None:
        return [tree] * treespec.num_leaves
    if cls is not treespec.type:
        return None
    children, context = container.flatten_fn(tree)
    if len(children) != len(treespec._children) or context != treespec.context:
        return None
    found: list[Any] = []
    for child, sub in zip(children, treespec._children, strict=True):
        part = broadcast_prefix(child, sub, is_leaf)
        if part is None:
            return None
        found += part
    return found


_broadcast_to_and_flatten = broadcast_prefix


def arg_tree_leaves(*args: Any, **kwargs: Any) -> list[Any]:
    """Return the leaves of the arguments."""
    return tree_leaves((args, kwargs))


def treespec_pprint(treespec: TreeSpec) -> str:
    """Return the spec as the repr of a tree with * for its leaves."""
    class Star:
        __repr__ = lambda self: "*"  # noqa: E731
    return repr(tree_unflatten([Star() for _ in range(treespec.num_leaves)], treespec))
