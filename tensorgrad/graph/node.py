"""Nodes of a graph: a call each, with its input nodes and its users.
https://pytorch.org/docs/stable/fx.html#torch.fx.Node
"""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .effects import DRAWING, RANDOM, SIDE_EFFECTS, among
from .names import home, qualified_name, type_name
from .nesting import aggregate

if TYPE_CHECKING:
    from .graph import Graph

OPS = frozenset({"placeholder", "get_attr", "call_function", "call_method", "call_module", "output"})
GAP = 1 << 40                   # between the places of appended nodes, for later insertions


class Node:
    """A step of a graph. https://pytorch.org/docs/stable/fx.html#torch.fx.Node

    `op` determines the meaning of `target`:

    placeholder     an input: `target` is the name of the argument, `args` has its default if there is one
    get_attr        a parameter, buffer or module of the model that owns the graph, by its dotted name
    call_function   a function that is called with `args` and `kwargs`
    call_method     the name of a method of `args[0]`
    call_module     the dotted name of a module, which is called
    output          what the graph returns: `args[0]`

    `args` and `kwargs` contain nodes and constants, in lists, tuples, dictionaries and slices to any depth. Nodes among
    them have this node in their `users`; assigning to `args` or `kwargs` updates these, and changing a list in them is
    a TypeError. `meta` is for annotations of any kind.

    >>> import operator
    >>> from tensorgrad.graph import Graph
    >>> graph = Graph()
    >>> x = graph.placeholder("x")
    >>> y = graph.call_function(operator.mul, (x, 2))
    >>> print(y.format_node(), x.users, y.all_input_nodes)
    %mul : [num_users=0] = call_function[target=operator.mul](args = (%x, 2), kwargs = {}) {mul: None} [x]
    """

    __slots__ = ("graph", "_name", "op", "target", "type", "meta", "users", "_args", "_kwargs", "_input_nodes", "_prev",
                 "_next", "_place", "_erased",
                 "__dict__", "__weakref__")

    def __init__(self, graph: Graph, name: str, op: str, target: Any, args: Any, kwargs: Any, return_type: Any = None,
                 refer: Callable[[Any], Any] | None = None) -> None:
        if op not in OPS:
            raise AssertionError(f"op '{op}' is not in _legal_ops")
        if op == "call_function":
            if not callable(target):
                raise ValueError(f"Node [graph = {graph}, name = '{name}'] target {target} has type {_type_of(target)} "
                                 f"but a Callable is expected")
        elif not isinstance(target, str):
            raise ValueError(f"Node [graph = {graph}, name = '{name}'] target {target} has type {_type_of(target)} but "
                             f"a str is expected")
        self._begin(graph, name, op, target, return_type)
        self._set(args, kwargs, refer)

    def _begin(self, graph: Graph, name: str, op: str, target: Any, kind: Any) -> None:
        """Initialize a node without arguments, in no list yet."""
        self.graph, self._name, self.op, self.target, self.type = graph, name, op, target, kind
        self.meta: dict[str, Any] = {}
        self.users: dict[Node, None] = {}
        self._args: Any = ()
        self._kwargs: Any = {}
        self._input_nodes: dict[Node, None] = {}
        self._prev = self._next = self
        self._place = 0
        self._erased = False

    @property
    def name(self) -> str:
        """The name of the value, which is unique in the graph."""
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        for hook in getattr(self.graph.owning_module, "_replace_hooks", ()):
            for user in self.users:
                hook(old=self, new=name, user=user)
        self._name = name

    # ── arguments ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _set(self, args: Any, kwargs: Any, refer: Callable[[Any], Any] | None = None) -> None:
        """Set the arguments, `refer` applied to their leaves if given, and register as a user of the nodes among
        them.
        """
        found: dict[Node, None] = {}
        noted = noting(found, refer)
        new_args, new_kwargs = aggregate(args, noted), aggregate(kwargs, noted)
        for node in self._input_nodes:
            node.users.pop(self, None)
        self._args, self._kwargs, self._input_nodes = new_args, new_kwargs, found
        for node in found:
            node.users[self] = None

    @property
    def args(self) -> Any:
        """The positional arguments, a tuple."""
        return self._args

    @args.setter
    def args(self, args: Any) -> None:
        self._set(args, self._kwargs)

    @property
    def kwargs(self) -> Any:
        """The arguments that are given by name."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: Any) -> None:
        self._set(self._args, kwargs)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once, from left to right."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg: Any) -> None:
        """Replace the positional argument at an index."""
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Any) -> None:
        """Insert a positional argument before an index. AssertionError if it is out of range."""
        if not 0 <= idx <= len(self._args):
            raise AssertionError(f"insert_args index must be between 0 and len(self.args), got {idx}")
        found: dict[Node, None] = {}
        self._args = (*self._args[:idx], aggregate(arg, noting(found)), *self._args[idx:])
        for node in found:
            self._input_nodes[node] = node.users[self] = None

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Set a keyword argument."""
        self.kwargs = {**self._kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Replace a node by another in all arguments."""
        for hook in getattr(self.graph.owning_module, "_replace_hooks", ()):
            hook(old=old_input, new=new_input.name, user=self)
        self._set(self._args, self._kwargs, lambda leaf: new_input if leaf is old_input else leaf)

    def replace_all_uses_with(self, replace_with: Node, delete_user_cb: Callable[[Node], bool] | None = None, *,
                              propagate_meta: bool = False) -> list[Node]:
        """Let the users of this node use another one, and return them; `delete_user_cb` may exclude users by returning
        False.

        With `propagate_meta`, the other node, whose `meta` must be empty (or AssertionError), gets a copy of this
        one's.

        >>> from tensorgrad.graph import Graph
        >>> graph = Graph()
        >>> x, y = graph.placeholder("x"), graph.placeholder("y")
        >>> out = graph.output([x, x])
        >>> x.replace_all_uses_with(y), out.args, x.users
        ([output], ([y, y],), {})
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError("Called node.replace_all_uses_with(replace_with, propagate_meta=True), but "
                                     "replace_with already has .meta keys")
            replace_with.meta.update(self.meta)
        users = [user for user in self.users if delete_user_cb is None or delete_user_cb(user)]
        for user in users:
            user.replace_input_with(self, replace_with)
        return users

    # ── position ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def next(self) -> Node:
        """The node after this one; the list's root, which is no step, after the last."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one; the root before the first."""
        return self._prev

    def prepend(self, x: Node) -> None:
        """Move a node of the graph to before this one. AssertionError for a node of another graph."""
        if not isinstance(x, Node):
            raise TypeError("_prepend() argument must be a Node")
        if x.graph is not self.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if x is self or x._erased:
            return
        if self._erased:                            # from its old position
            self._next.prepend(x)
            return
        x._unlink()
        before = self._prev
        x._prev, x._next = before, self
        before._next = self._prev = x
        low = before._place if before.op != "root" else (self._place if self.op != "root" else 0) - 2 * GAP
        high = self._place if self.op != "root" else low + 2 * GAP
        x._place = (low + high) // 2
        if x._place == low:
            self.graph._number()

    def append(self, x: Node) -> None:
        """Move a node of the graph to after this one."""
        if x is not self:
            self._next.prepend(x)

    def _unlink(self) -> None:
        """Remove the node from the list; its own links remain, so that iterators on it can continue."""
        self._prev._next, self._next._prev = self._next, self._prev

    def __lt__(self, other: Node) -> bool:
        return self._place < other._place

    def __gt__(self, other: Node) -> bool:
        return self._place > other._place

    def __le__(self, other: Node) -> bool:
        return self is other or self._place < other._place

    def __ge__(self, other: Node) -> bool:
        return self is other or self._place > other._place

    # ── what is known of it ───────────────────────────────────────────────────────────────────────────────────────────

    @property
    def stack_trace(self) -> str | None:
        """The location of the call in the program, if recorded."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def normalized_arguments(self, root: Any, arg_types: Any = None, kwarg_types: Any = None,
                             normalize_to_only_use_kwargs: bool = False) -> Any:
        """Return the arguments as the signature of the called function or layer of `root` has them, with defaults.

        None if they do not fit, and for steps that call neither.
        """
        from .schemas import normalize_function, normalize_module
        if self.op == "call_function":
            return normalize_function(self.target, self.args, self.kwargs, arg_types, kwarg_types,
                                      normalize_to_only_use_kwargs)
        if self.op == "call_module":
            return normalize_module(root, self.target, self.args, self.kwargs, normalize_to_only_use_kwargs)
        return None

    def is_impure(self, impure_random: bool = True) -> bool:
        """Return True if the step must run even if its result is unused: inputs, outputs, functions with side
        effects, and random ones if `impure_random`."""
        if self.op == "call_function":
            return (getattr(self.target, "is_mutable", False) or among(self.target, SIDE_EFFECTS)
                    or impure_random and (getattr(self.target, "_opname", None) in DRAWING
                                          or among(self.target, RANDOM)))
        if self.op == "call_module":
            owner = self.graph.owning_module
            if owner is None:
                raise AssertionError("self.graph.owning_module not set for purity check")
            return bool(getattr(owner.get_submodule(self.target), "_is_impure", False))
        return self.op in ("placeholder", "output")

    def _rename(self, candidate: str) -> None:
        """Rename the node; a number makes the name unique if needed."""
        if candidate != self.name:
            self.name = self.graph._graph_namespace.create_name(candidate)

    def __repr__(self) -> str:
        spelling = self.graph._spelling
        return self._name if spelling is None else spelling.create_name(self._name, self)

    @staticmethod
    def _pretty_print_target(target: Any) -> str:
        return target if isinstance(target, str) else qualified_name(target)

    def format_node(self, placeholder_names: list[str] | None = None, maybe_return_typename: list[str] | None = None, *,
                    include_tensor_metadata: bool = False) -> str | None:
        """Return the step as a line of text.

        A non-empty `placeholder_names` gets an input's name and type appended instead, and the line is None. A
        non-empty `maybe_return_typename` gets the output's type as its first item.
        """
        kind = f"{type_name(self.type)} " if self.type else ""
        if self.op == "placeholder":
            if placeholder_names:
                placeholder_names.append(f"{self.target}: {type_name(self.type)}" if self.type else self.target)
                return None
            default = f"(default={self._args[0]})" if self._args else ""
            return f"%{self.name} : {kind}[num_users={len(self.users)}] = placeholder[target={self.target}]{default}"
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {type_name(self.type)}"
            return f"return {self._args[0]}"
        start = (f"%{self.name} : {kind}[num_users={len(self.users)}] = "
                 f"{self.op}[target={self._pretty_print_target(self.target)}]")
        return start if self.op == "get_attr" else f"{start}(args = {told(self._args)}, kwargs = {told(self._kwargs)})"

    # ── copying ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _row(self) -> tuple[Any, ...]:
        """Return the node's state, for a graph's flat list."""
        return (self._place, self.name, self.op, self.target, self._args, self._kwargs, self.type, self.meta,
                self.__dict__ or None)

    def __reduce_ex__(self, protocol: Any) -> Any:
        # the graph pickles the contents, in a flat list
        return node_at, (self.graph, None if self._erased else self._place)


def node_at(graph: Graph, place: int | None) -> Node:
    """Return the node at a place of an unpickled graph, possibly before the graph has its state."""
    if place is None:
        node = Node.__new__(Node)
        node._begin(graph, "", "erased", "", None)
        node._erased = True
        return node
    return graph._awaited(place)


def noting(found: dict[Node, None], refer: Callable[[Any], Any] | None = None) -> Callable[[Any], Any]:
    """Return a function that returns its argument, or `refer` of it, and adds nodes to `found`."""
    def noted(leaf: Any) -> Any:
        if isinstance(leaf, Node):
            found[leaf] = None
        return leaf

    def referred(leaf: Any) -> Any:
        return noted(refer(leaf))               # type: ignore[misc]
    return noted if refer is None else referred


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """Return nested arguments with `fn(node)` in place of each node. https://pytorch.org/docs/stable/fx.html

    >>> from tensorgrad.graph import Graph
    >>> graph = Graph()
    >>> x = graph.placeholder("x")
    >>> map_arg([x, {"k": (x, 1)}], lambda node: node.name)
    ['x', {'k': ('x', 1)}]
    """
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    return aggregate(a, lambda leaf: fn(leaf) if isinstance(leaf, Node) else leaf)


def told(tree: Any) -> str:
    """Return arguments as a graph prints them, nodes with a % before their names."""
    if hasattr(tree, "_custom_fx_repr_fn"):
        return str(tree._custom_fx_repr_fn())
    if isinstance(tree, Node):
        return f"%{tree}"
    if isinstance(tree, tuple):
        return f"({', '.join(map(told, tree))}{',' if len(tree) == 1 else ''})"
    if isinstance(tree, list):
        return f"[{', '.join(map(told, tree))}]"
    if isinstance(tree, dict):
        return f"{{{', '.join(f'{key}: {told(value)}' for key, value in tree.items())}}}"
    return str(tree)


def _type_of(thing: Any) -> str:
    """Return a type's name for an error message."""
    kind = thing if isinstance(thing, type) else type(thing)
    module = home(kind)
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"


__all__ = ["Node", "map_arg"]
