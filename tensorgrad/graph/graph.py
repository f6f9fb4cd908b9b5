"""A recorded program: a mutable list of nodes. https://pytorch.org/docs/stable/fx.html#torch.fx.Graph"""
from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .codegen import CodeGen, PythonCode
from .names import Namespace, wanted_name
from .node import GAP, Node, map_arg

ABSENT: Any = inspect.Signature.empty


class NodeList:
    """The nodes of a graph in order.

    The graph may change during iteration: erased nodes are skipped, nodes inserted ahead are visited.
    """

    __slots__ = ("graph", "direction")

    def __init__(self, graph: Graph, direction: str = "_next") -> None:
        self.graph, self.direction = graph, direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        root, direction = self.graph._root, self.direction
        node = getattr(root, direction)
        while node is not root:
            if not node._erased:
                yield node
            node = getattr(node, direction)

    def __reversed__(self) -> NodeList:
        return NodeList(self.graph, "_prev" if self.direction == "_next" else "_next")


class InsertPoint:
    """Sets the insertion point of new nodes: from construction on, or until the end of its `with` block."""

    __slots__ = ("graph", "before")

    def __init__(self, graph: Graph, insert: Callable[[Node], None]) -> None:
        self.graph, self.before = graph, graph._insert
        graph._insert = insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.graph._insert = self.before


class Graph:
    """A program as a list of nodes: inputs, calls, and an output.

    https://pytorch.org/docs/stable/fx.html#torch.fx.Graph

    Methods add nodes at the end, or at the point of `inserting_before` and `inserting_after`; a node's `prepend` and
    `append` move others. `owning_module` is the module whose layers and tensors the nodes name. Graphs of any length
    can be copied and pickled: copies share functions and constants, and have shallow copies of `meta`.

    >>> import operator
    >>> graph = Graph()
    >>> x = graph.placeholder("x")
    >>> y = graph.call_function(operator.mul, (x, 2))
    >>> out = graph.output(graph.call_method("relu", (y,)))
    >>> print(graph)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %mul : [num_users=1] = call_function[target=operator.mul](args = (%x, 2), kwargs = {})
        %relu : [num_users=1] = call_method[target=relu](args = (%mul,), kwargs = {})
        return relu
    """

    def __init__(self, owning_module: Any = None, tracer_cls: Any = None,
                 tracer_extras: dict[str, Any] | None = None) -> None:
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras
        self._codegen: CodeGen = CodeGen()
        self._co_fields: dict[str, Any] = {}            # the place of the traced function
        self._begin()
        self.owning_module = owning_module

    def _begin(self) -> None:
        """Initialize an empty graph without an owner."""
        self._root = Node.__new__(Node)
        self._root._begin(self, "", "root", "", None)
        self._insert: Callable[[Node], None] = self._root.prepend
        self._graph_namespace = Namespace()
        self._len = 0
        self._spelling: Namespace | None = None         # of nodes in source that is being written
        # the module whose layers and tensors the nodes name
        self.owning_module: Any = None

    # ── its nodes ─────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def nodes(self) -> NodeList:
        """The nodes, in the order in which they run; `len` and `reversed` work."""
        return NodeList(self)

    def __len__(self) -> int:
        return self._len

    def __bool__(self) -> bool:
        return True

    def output_node(self) -> Node:
        """Return the output node, which is the last one. AssertionError if the last node is none."""
        node = next(iter(reversed(self.nodes)))
        if node.op != "output":
            raise AssertionError(f"Expected output node, got op={node.op}")
        return node

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """The nodes with this `op` and, unless it is None, this target, in order.

        AssertionError for functions without a target.

        >>> graph = Graph()
        >>> x = graph.placeholder("x")
        >>> y = graph.call_method("relu", (x,))
        >>> graph.find_nodes(op="call_method", target="relu"), graph.find_nodes(op="placeholder")
        ([relu], [x])
        """
        if op == "call_function" and target is None:
            raise AssertionError("target must not be None for call_function op")
        return [node for node in self.nodes if node.op == op and (target is None or node.target == target)]

    # ── new nodes ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def create_node(self, op: str, target: Any, args: tuple[Any, ...] | None = None,
                    kwargs: dict[str, Any] | None = None, name: str | None = None,
                    type_expr: Any = None) -> Node:
        """Add a node; see `Node` for the arguments.

        The node is named `name` or, without one, after its target; a number makes the name unique.
        """
        args, kwargs = args or (), kwargs or {}
        if not isinstance(args, tuple):
            raise AssertionError(f"args must be a tuple, got {type(args)}")
        if not isinstance(kwargs, dict):
            raise AssertionError(f"kwargs must be a dict, got {type(kwargs)}")
        return self._create(op, target, args, kwargs, name, type_expr)

    def _create(self, op: str, target: Any, args: Any, kwargs: Any, name: str | None = None, type_expr: Any = None,
                refer: Callable[[Any], Any] | None = None) -> Node:
        """Add a node with these arguments, `refer` applied to their leaves if given."""
        name = self._graph_namespace.create_name(wanted_name(target) if name is None else name)
        node = Node(self, name, op, target, args, kwargs, type_expr, refer)
        for hook in getattr(self.owning_module, "_create_node_hooks", ()):
            hook(node)
        self._insert(node)
        self._len += 1
        return node

    def _clone(self, node: Node, now: dict[Node, Node], refer: Callable[[Any], Any] | None = None) -> Node:
        """Add a copy of a node of another graph, whose namespace this one has, with `now[each]` in place of each node
        among its arguments, or `refer` applied to their leaves: nodes may be in lists and among the parameters then.
        """
        new = Node.__new__(Node)
        new._begin(self, node._name, node.op, node.target, node.type)
        if refer is not None:
            new._set(node._args, node._kwargs, refer)
        else:
            new._args, new._kwargs = tuple([now[a] if type(a) is Node else a for a in node._args]), node._kwargs
            new._input_nodes = {now[each]: None for each in node._input_nodes}
            for each in new._input_nodes:
                each.users[new] = None
        self._insert(new)
        self._len += 1
        return new

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ABSENT) -> Node:
        """Add an input, with a default if one is given."""
        return self.create_node("placeholder", name, () if default_value is ABSENT else (default_value,),
                                type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Add a node for a parameter, buffer or module of the owning module.

        UserWarning if it has none of that name.
        """
        owner = self.owning_module
        if owner is not None and not _holds(owner, qualified_name):
            warnings.warn("Attempted to insert a get_attr Node with no underlying reference in the owning GraphModule! "
                          "Call GraphModule.add_submodule to add the necessary submodule, GraphModule.add_parameter to "
                          "add the necessary Parameter, or nn.Module.register_buffer to add the necessary buffer",
                          stacklevel=2)
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_function(self, the_function: Callable[..., Any], args: tuple[Any, ...] | None = None,
                      kwargs: dict[str, Any] | None = None,
                      type_expr: Any = None, name: str | None = None) -> Node:
        """Add a call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def call_method(self, method_name: str, args: tuple[Any, ...] | None = None, kwargs: dict[str, Any] | None = None,
                    type_expr: Any = None) -> Node:
        """Add a call of the method of this name of `args[0]`."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_module(self, module_name: str, args: tuple[Any, ...] | None = None, kwargs: dict[str, Any] | None = None,
                    type_expr: Any = None) -> Node:
        """Add a call of a module of the owning module, by its dotted name.

        AttributeError if there is an owner that has none of that name.
        """
        owner = self.owning_module
        if owner is not None and isinstance(module_name, str):
            owner.get_submodule(module_name)
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """Add the output node, which returns a node, or a structure of nodes and constants."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    # ── changes ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def inserting_before(self, n: Node | None = None) -> InsertPoint:
        """Insert new nodes before this one, or before all: from now on, or in a `with` block.

        >>> graph = Graph()
        >>> x, y = graph.placeholder("x"), graph.placeholder("y")
        >>> with graph.inserting_before(y):
        ...     z = graph.placeholder("z")
        >>> list(graph.nodes)
        [x, z, y]
        """
        if n is None:
            return self.inserting_after(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        return InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> InsertPoint:
        """Insert each new node right after this one, or after all others: from now on, or in a `with` block."""
        if n is None:
            return self.inserting_before(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert after is not in graph.")
        return InsertPoint(self, n.append)

    def erase_node(self, to_erase: Node) -> None:
        """Remove a node. RuntimeError if others use it."""
        if to_erase.users:
            raise RuntimeError(f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the "
                               f"graph: {to_erase.users}!")
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            warnings.warn(f"erase_node({to_erase}) on an already erased node", stacklevel=2)
            return
        for hook in getattr(self.owning_module, "_erase_node_hooks", ()):
            hook(to_erase)
        to_erase._unlink()
        to_erase._erased = True
        self._len -= 1
        to_erase._set(to_erase.args, to_erase.kwargs, lambda leaf: None if isinstance(leaf, Node) else leaf)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda node: node) -> Node:
        """Add a copy of a node, which may be of another graph; `arg_transform` maps the nodes among its arguments to
        nodes of this graph."""
        new = self._create(node.op, node.target, node.args, node.kwargs, node.name, node.type,
                           lambda leaf: arg_transform(leaf) if isinstance(leaf, Node) else leaf)
        new.meta = node.meta.copy()
        return new

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Add copies of all nodes of a graph but its output, and return the copy of the output's value; with
        `return_output_node` also the output node.

        `val_map` maps its nodes to nodes here: nodes that are in it are not copied, and all copies are added to it.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], val_map.__getitem__)
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, val_map.__getitem__)
        return None

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Remove unused nodes, from the last to the first, and return True if there were any.

        Nodes for which `is_impure_node`, by default `Node.is_impure`, is true are kept. RuntimeError if the graph is
        invalid, see `lint`. Graphs of modules that `get_attr` nodes name are cleaned, too.

        >>> graph = Graph()
        >>> x = graph.placeholder("x")
        >>> y = graph.call_method("relu", (x,))
        >>> out = graph.output(x)
        >>> graph.eliminate_dead_code(), list(graph.nodes)
        (True, [x, output])
        """
        self.lint()
        before = self._len
        for node in reversed(self.nodes):
            if not node.users and not (node.is_impure() if is_impure_node is None else is_impure_node(node)):
                self.erase_node(node)
        changed = self._len < before
        if self.owning_module is not None:
            named = {node.target for node in self.find_nodes(op="get_attr")}
            for name, child in self.owning_module.named_children():
                if name in named and isinstance(getattr(child, "graph", None), Graph):
                    changed |= child.graph.eliminate_dead_code()
                    child.recompile()
        return changed

    def _clear_nodes(self) -> None:
        for node in reversed(self.nodes):
            node.meta.clear()
            self.erase_node(node)

    # ── checks and texts ──────────────────────────────────────────────────────────────────────────────────────────────

    def lint(self) -> None:
        """Raise RuntimeError unless the graph is valid: nodes use earlier nodes of this graph, names are unique, and
        targets exist."""
        from .checking import lint
        lint(self)

    def __str__(self) -> str:
        return "".join(["graph():", *(f"\n    {node.format_node()}" for node in self.nodes)])

    def print_tabular(self) -> None:
        """Print the nodes as a table.

        >>> graph = Graph()
        >>> out = graph.output(graph.placeholder("x"))
        >>> graph.print_tabular()
        opcode       name    target    args    kwargs
        -----------  ------  --------  ------  --------
        placeholder  x       x         ()      {}
        output       output  output    (x,)    {}
        """
        from .checking import table
        print(table(self))

    # ── source ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def python_code(self, root_module: str, *, verbose: bool = False, include_stride: bool = False,
                    include_device: bool = False, colored: bool = False, expanded_def: bool = False,
                    record_func: bool = False, additional_meta: list[str] | None = None) -> PythonCode:
        """Return the graph as the source of a method `forward`, whose module `root_module` names.

        `verbose` adds lines of the program and shapes, if they are known, with strides and devices if wanted;
        `expanded_def` gives each argument a line; `record_func` makes each step a record of the profiler;
        `additional_meta` names items of `meta` that are shown.

        >>> graph = Graph()
        >>> x = graph.placeholder("x")
        >>> out = graph.output(graph.call_method("relu", (x,)))
        >>> print(graph.python_code("self").src.strip())
        def forward(self, x):
            relu = x.relu();  x = None
            return relu
        """
        before, self._spelling = self._spelling, Namespace()
        try:
            return self._python_code(root_module, self._spelling, verbose=verbose, include_stride=include_stride,
                                     include_device=include_device, colored=colored, expanded_def=expanded_def,
                                     record_func=record_func, additional_meta=additional_meta)
        finally:
            self._spelling = before

    def _python_code(self, root_module: str, namespace: Namespace, **style: Any) -> PythonCode:
        return self._codegen._gen_python_code(self.nodes, root_module, namespace, **style)

    def set_codegen(self, codegen: CodeGen) -> None:
        """Let `python_code` generate source with this object."""
        self._codegen = codegen

    def on_generate_code(self, make_transformer: Callable[[Any], Any]) -> Any:
        """Transform the lines of generated code, from now on or in a `with` block.

        `make_transformer(present transformer or None)` returns the transformer: a function from a list of pieces of
        source to another.

        >>> graph = Graph()
        >>> out = graph.output(graph.placeholder("x"))
        >>> with graph.on_generate_code(lambda before: lambda body: ["x = x + 1\\n", *body]):
        ...     print(graph.python_code("self").src.strip())
        def forward(self, x):
            x = x + 1
            return x
        """
        codegen = self._codegen
        before = codegen._body_transformer
        codegen._body_transformer = make_transformer(before)

        @contextmanager
        def restored() -> Iterator[None]:
            try:
                yield
            finally:
                codegen._body_transformer = before
        return restored()

    def process_inputs(self, *args: Any) -> Any:
        """Return the values of the graph's inputs for arguments of the generated function."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """Return the generated function's result for the graph's."""
        return self._codegen.process_outputs(out)

    # ── copying ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _number(self) -> None:
        """Renumber the nodes' places with gaps between them."""
        for k, node in enumerate(self.nodes):
            node._place = k * GAP

    def _state(self) -> dict[str, Any]:
        """Return the state without the nodes and the owner, which copies share."""
        return {key: value for key, value in self.__dict__.items() if key not in OWN}

    def _fill(self, rows: list[tuple[Any, ...]], names: Namespace, made: Callable[[int], Node],
              known: Callable[[Any], Any] | None = None) -> None:
        """Restore nodes from a flat list: first all nodes without arguments, then the arguments."""
        nodes = []
        for place, name, op, target, _, _, kind, meta, more in rows:
            node = made(place)
            node._begin(self, name, op, target, kind)
            node.meta = meta
            if more:
                node.__dict__.update(more)
            self._root.prepend(node)
            node._place = place
            nodes.append(node)
        for node, row in zip(nodes, rows, strict=True):
            node._set(row[4], row[5], known)
        self._len, self._graph_namespace = len(nodes), names

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Graph:
        memo = {} if memo is None else memo
        new = memo[id(self)] = type(self).__new__(type(self))
        new.__dict__.update(self._state())
        new._codegen = copy.deepcopy(self._codegen, memo)
        new._begin()
        nodes = {node._place: node for node in self.nodes}
        for node in nodes.values():
            memo[id(node)] = Node.__new__(Node)
        rows = [(place, node.name, node.op, self._copied(node.target, memo), node._args, node._kwargs, node.type,
                 node.meta.copy(), node.__dict__)
                for place, node in nodes.items()]

        def known(leaf: Any) -> Any:
            return memo.get(id(leaf), leaf) if isinstance(leaf, Node) else self._copied(leaf, memo)
        new._fill(rows, self._graph_namespace.copy(), lambda place: memo[id(nodes[place])], known)
        return new

    def _copied(self, thing: Any, memo: dict[int, Any]) -> Any:
        """Return the copy of a function or constant for a copied graph."""
        return thing

    def __getstate__(self) -> Any:
        return self._state(), [node._row() for node in self.nodes], self._graph_namespace

    def __setstate__(self, state: Any) -> None:
        rest, rows, names = state
        awaited = self.__dict__.pop("_waiting", {})
        self.__dict__.update({"_codegen": CodeGen(), "_co_fields": {}}, **rest)     # older pickles have neither
        self._begin()
        self._fill(rows, names, lambda place: awaited.get(place) or Node.__new__(Node))

    def _awaited(self, place: int) -> Node:
        """Return the node at a place; while the graph is being unpickled, an empty node that will become it."""
        if "_root" in self.__dict__:
            return next(node for node in self.nodes if node._place == place)
        waiting: dict[int, Node] = self.__dict__.setdefault("_waiting", {})
        return waiting.setdefault(place, Node.__new__(Node))


OWN = frozenset({"_root", "_insert", "_graph_namespace", "_len", "_spelling", "owning_module"})


def _holds(owner: Any, name: str) -> bool:
    """Return True if a module has a module, parameter or buffer of this dotted name."""
    path, _, last = name.rpartition(".")
    try:
        holder = owner.get_submodule(path)
    except AttributeError:
        warnings.warn(f"Failed to fetch module {path}!", stacklevel=3)
        return False
    return any(last in table for table in (holder._modules, holder._parameters, holder._buffers))


__all__ = ["Graph", "NodeList"]
