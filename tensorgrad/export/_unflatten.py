"""Exported programs as modules with the submodules of the original.

https://pytorch.org/docs/stable/export.html#torch.export.unflatten
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ..fx.graph_module import GraphModule
from ..graph.graph import Graph
from ..graph.node import Node
from ..nn import Module, Parameter
from ..utils._pytree import tree_flatten, tree_unflatten
from ._sizes import Varying, alike
from .exported_program import ExportedProgram, in_order
from .graph_signature import InputKind

__all__ = ["FlatArgsAdapter", "InterpreterModule", "UnflattenedModule", "unflatten"]
Call = tuple[str, int]              # (the path of a module, the number of its earlier calls)


class FlatArgsAdapter:
    """Rearranges arguments whose nesting differs from the program's: override `adapt`."""

    def adapt(self, target_spec: Any, input_spec: Any, input_args: list[Any], metadata: Any = None,
              obj: Any = None) -> list[Any]:
        """Return the leaves of arguments of the form `input_spec` in the order of `target_spec`."""
        raise NotImplementedError("adapt")


class InterpreterModule(GraphModule):
    """A module of an unflattened program: the steps of one of its calls."""


class UnflattenedModule(Module):
    """An exported program whose submodules are the original's, by the same names.

    A module that is called again with other steps is another one, `name@1`. https://pytorch.org/docs →
    torch.export.unflatten
    """

    def __init__(self, export_module: ExportedProgram, flat_args_adapter: FlatArgsAdapter | None = None) -> None:
        super().__init__()
        program = export_module.run_decompositions()        # last values are results, so that no step writes
        self.graph_signature, self.flat_args_adapter = export_module.graph_signature, flat_args_adapter
        self._program, self._names = program, program._names
        self.check_input_constraints = True
        frame = Frame(program, list(program.graph.nodes), (), Made({}, {}))
        placed = {f"{path}@{k}" if k else path: module for path, modules in frame.made.modules.items()
                  for k, module in enumerate(modules)}
        for path in ordered(list(placed), program.state_dict):
            parents_of(self, f"{path}.")
        for name, value in by_depth({**frame.attributes, **placed}).items():
            put(self, name, value, persistent=name in program.state_dict)
        for name, value in [*program.state_dict.items(), *program.constants.items()]:
            put(self, name, frame.tensor(value), anew=False, persistent=name in program.state_dict)     # not used
        self.graph = frame.graph
        self._root = [InterpreterModule(self, frame.graph)]      # in a list: no submodule

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program. ValueError for arguments with another nesting."""
        program = self._program
        args, kwargs = in_order(args, kwargs, program._in_spec)
        leaves, spec = tree_flatten((args, kwargs))
        if spec != program._in_spec:
            if self.flat_args_adapter is None:
                raise TypeError(f"There is no flat args adapter sepcified. Are you sure you are calling this with the "
                                f"right arguments? Expected {program._in_spec}, got {spec}")
            leaves = self.flat_args_adapter.adapt(program._in_spec, spec, leaves)
        if self.check_input_constraints:
            program._guards()(*leaves)
        results = self._root[0](*leaves)
        count = len(program.graph_signature.output_specs) - program._out_spec.num_leaves
        for value, output in zip(results[:count], program.graph_signature.output_specs):
            place = (leaves[[spec.arg.name for spec in program.graph_signature.input_specs
                             if spec.kind is InputKind.USER_INPUT].index(output.target)]
                     if output.kind.name == "USER_INPUT_MUTATION" else look_up(self, str(output.target)))
            place.copy_(value)
        return tree_unflatten(list(results[count:]), program._out_spec)


def unflatten(module: ExportedProgram, flat_args_adapter: FlatArgsAdapter | None = None) -> UnflattenedModule:
    """Return an exported program as a module with the original's submodules.

    https://pytorch.org/docs → torch.export.unflatten

    >>> import tensorgrad as torch
    >>> layers = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    >>> module = torch.export.unflatten(torch.export.export(layers, (torch.ones(1, 2),)))
    >>> [name for name, _ in module.named_children()], module(torch.ones(1, 2)).shape
    (['0', '1'], torch.Size([1, 3]))
    """
    return UnflattenedModule(module, flat_args_adapter)


class Made(NamedTuple):
    """Tensors and modules of an unflattened program so far."""

    tensors: dict[int, Any]             # copies of the program's, by id
    modules: dict[str, list[Any]]       # the modules of each path, which differ in their steps


class Frame:
    """The graph of one call of a module, made of the program's nodes; calls within it are modules."""

    def __init__(self, program: ExportedProgram, nodes: list[Node], call: tuple[Call, ...],
                 made: Made) -> None:
        self.program, self.call, self.graph = program, call, Graph()
        self.made = made
        self.path = call[-1][0] if call else ""
        self.attributes: dict[str, Any] = dict(program._modules)
        self.targets = {node: str(spec.target) for node, spec in zip(
            program.graph.find_nodes(op="placeholder"), program.graph_signature.input_specs, strict=True)
            if spec.kind is not InputKind.USER_INPUT}
        self.copies: dict[Node, Node] = {}
        own = set(nodes)
        self.inputs = ([] if not call else list(dict.fromkeys(
            each for node in nodes for each in node._input_nodes if each not in own and self._within(each) is None)))
        for node in self.inputs:
            self._input(node)
        for group, key in grouped(nodes, len(call)):
            self._call(group, (*call, key)) if key is not None else self._step(group[0])
        if call:
            self.results = [node for node in nodes if any(user not in own for user in node.users)]
            found = tuple(self.copies[node] for node in self.results)
            self.graph.output(found[0] if len(found) == 1 else found)

    def tensor(self, tensor: Any) -> Any:
        """Return the copy of a tensor of the program."""
        if id(tensor) not in self.made.tensors:
            copy = tensor.detach().clone()
            self.made.tensors[id(tensor)] = Parameter(copy, tensor.requires_grad) if isinstance(
                tensor, Parameter) else copy
        return self.made.tensors[id(tensor)]

    def _input(self, node: Node) -> None:
        self.copies[node] = self.graph.placeholder(node.name)
        self.copies[node].meta = dict(node.meta)

    def _within(self, node: Node) -> str | None:
        """Return the name of a parameter or buffer in the module; None for other nodes."""
        name = self.targets.get(node)
        if name is None or not self.path:
            return name
        return name.removeprefix(f"{self.path}.") if name.startswith(f"{self.path}.") else None

    def _value(self, node: Node) -> Node:
        """Return the node in this graph."""
        if node not in self.copies:
            name = self._within(node)
            state = self.program.state_dict
            tensor = (state if self.targets[node] in state else self.program.constants)[self.targets[node]]
            self.attributes[str(name)] = self.tensor(tensor)
            self.copies[node] = self.graph.get_attr(str(name))
            self.copies[node].meta = dict(node.meta)
        return self.copies[node]

    def _step(self, node: Node) -> None:
        if node.op == "placeholder":
            if node not in self.targets:
                self._input(node)
        else:
            self.copies[node] = self.graph.node_copy(node, self._value)

    def _call(self, nodes: list[Node], call: tuple[Call, ...]) -> None:
        frame = Frame(self.program, nodes, call, self.made)
        path = call[-1][0]
        name = path.removeprefix(f"{self.path}.") if path.startswith(f"{self.path}.") or not self.path else path
        known = self.made.modules.setdefault(path, [])
        at = next((k for k, module in enumerate(known) if equal(module.graph, frame.graph)), len(known))
        if at == len(known):
            known.append(InterpreterModule(by_depth(frame.attributes), frame.graph, "InterpreterModule"))
        name = f"{name}@{at}" if at else name
        self.attributes[name] = known[at]
        made = self.graph.create_node("call_module", name, tuple(map(self._value, frame.inputs)), {},
                                      name.replace(".", "_").replace("@", "_"))
        if len(frame.results) == 1:
            self.copies[frame.results[0]] = made
            made.meta = dict(frame.results[0].meta)
            return
        made.meta["val"] = [node.meta.get("val") for node in frame.results]
        for k, node in enumerate(frame.results):
            self.copies[node] = self.graph.create_node("call_function", _getitem, (made, k), {})
            self.copies[node].meta = dict(node.meta)


def _getitem(values: Any, k: int) -> Any:
    return values[k]


def equal(first: Graph, other: Graph) -> bool:
    """Return True if two graphs have the same steps."""
    try:
        alike(first, other, False)
    except Varying:
        return False
    return True


def grouped(nodes: list[Node], depth: int) -> Iterator[tuple[list[Node], Call | None]]:
    """Yield runs of nodes of one call within a frame, with the call; nodes of the frame itself alone, with None."""
    run: list[Node] = []
    last: Call | None = None
    for node in nodes:
        calls = calls_of(node)
        key = calls[depth] if len(calls) > depth else None
        if run and key != last:
            yield run, last
            run = []
        if key is None:
            yield [node], None
        else:
            run.append(node)
        last = key
    if run:
        yield run, last


def calls_of(node: Node) -> list[Call]:
    """Return the calls of modules that a node is in, from outside to inside."""
    found, scope = [], node.meta.get("scope") if node.op == "call_function" else None
    while scope:
        found.append((str(scope), scope.count_of_calls if hasattr(scope, "count_of_calls") else 0))
        scope = getattr(scope, "outer", None)
    return found[::-1]


def by_depth(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return attributes with modules before those in them, else in their order."""
    first = {name.partition(".")[0]: place for place, name in reversed(list(enumerate(attributes)))}
    return dict(sorted(attributes.items(), key=lambda item: (first[item[0].partition(".")[0]], item[0].count("."))))


def parents_of(module: Any, path: str) -> tuple[Any, str]:
    """Return the module that a dotted name's last part is an attribute of, and that part; make modules that lack."""
    *parents, last = path.split(".")
    for part in parents:
        if not hasattr(module, part):
            module.add_module(part, Module())
        module = getattr(module, part)
    return module, last


def ordered(called: list[str], state: Iterable[str]) -> list[str]:
    """Return paths of modules in the order of their tensors; those without tensors follow what was called before."""
    order = list(dict.fromkeys(name.rpartition(".")[0] for name in state if "." in name))
    for before, path in zip(["", *called], called):
        if path not in order:
            order.insert(order.index(before) + 1 if before in order else 0, path)
    return order


def put(module: Any, path: str, value: Any, anew: bool = True, persistent: bool = True) -> None:
    """Set an attribute of a module under a dotted name; keep the one there is unless `anew`."""
    module, last = parents_of(module, path)
    if not anew and hasattr(module, last):
        return
    if isinstance(value, (Module, Parameter)):
        for name, child in getattr(module, last, value).named_children() if isinstance(value, Module) else ():
            if not hasattr(value, name):
                value.add_module(name, child)
        setattr(module, last, value)
    else:
        module.register_buffer(last, value, persistent)


def look_up(module: Any, path: str) -> Any:
    for part in path.split("."):
        module = getattr(module, part)
    return module
