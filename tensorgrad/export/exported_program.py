"""An exported program: a graph of ops, with the tensors that it needs.

https://pytorch.org/docs/stable/export.html#torch.export.ExportedProgram
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from .._ops import ops
from ..fx.experimental.proxy_tensor import make_fx
from ..fx.graph import _PyTreeCodeGen, _PyTreeInfo
from ..fx.graph_module import GraphModule
from ..graph.graph import Graph
from ..graph.node import Node, map_arg
from ..nn import Module
from ..utils._pytree import TreeSpec, tree_flatten
from .graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    OutputKind,
    OutputSpec,
    TensorArgument,
)

__all__ = ["ExportedProgram", "ModuleCallEntry", "ModuleCallSignature"]


@dataclass
class ModuleCallSignature:
    """The inputs and outputs of a module's call, and how they are nested."""

    inputs: list[Any]
    outputs: list[Any]
    in_spec: TreeSpec
    out_spec: TreeSpec
    forward_arg_names: list[str] | None = None


@dataclass
class ModuleCallEntry:
    """A module of an exported program, by its name; the program itself has the name ""."""

    fqn: str
    signature: ModuleCallSignature | None = None


class Bounds:
    """The sizes that an axis may have; `max` None is no bound."""

    def __init__(self, lower: int, upper: int | None) -> None:
        self.lower, self.upper = lower, upper

    def __repr__(self) -> str:
        return f"VR[{self.lower}, {'int_oo' if self.upper is None else self.upper}]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bounds) and (self.lower, self.upper) == (other.lower, other.upper)

    def __hash__(self) -> int:
        return hash((self.lower, self.upper))


class Guards(Module):
    """Checks the inputs of an exported program: AssertionError for sizes that it does not serve.

    `checks` are (index of the input, text of the condition, function of the sizes so far and the tensor).
    """

    _is_impure = True

    def __init__(self, names: list[str], shapes: list[Any], axes: dict[tuple[int, int], Any],
                 constants: dict[int, Any]) -> None:
        super().__init__()
        self.names, self.shapes, self.axes, self.constants = names, shapes, axes, constants

    def forward(self, *values: Any) -> None:
        """Check the sizes of tensors among the arguments, and that numbers and texts are those of the program."""
        for i, constant in self.constants.items():
            self._check(bool(values[i] == constant), f"{self.names[i]} == {constant!r}")
        roots: dict[str, tuple[int, str]] = {}
        for i, (name, shape, value) in enumerate(zip(self.names, self.shapes, values, strict=True)):
            if shape is None:
                continue
            self._check(value.dim() == len(shape), f"{name}.dim() == {len(shape)}")
            for axis, size in enumerate(shape):
                here, told, dim = value.shape[axis], f"{name}.size()[{axis}]", self.axes.get((i, axis))
                if dim is None:
                    self._check(here == size, f"{told} == {size}")
                elif hasattr(dim, "root"):
                    self._check(here >= dim.min, f"{told} >= {dim.min}")
                    self._check(dim.max is None or here <= dim.max, f"{told} <= {dim.max}")
                    root, first = roots.setdefault(dim.root.__name__, ((here - dim.offset) // dim.factor, told))
                    self._check(dim.sized(root) == here, f"{told} == {first}")

    @staticmethod
    def _check(holds: bool, condition: str) -> None:
        if not holds:
            raise AssertionError(f"Guard failed: {condition}")


def in_order(args: Any, kwargs: dict[str, Any], spec: TreeSpec) -> tuple[Any, dict[str, Any]]:
    """Return arguments with the named ones in the order of a program's."""
    names = spec.children()[1].context
    return args, {name: kwargs[name] for name in names} if set(names) == set(kwargs) else kwargs


def decomposed(graph: Graph, decompositions: dict[Any, Any]) -> Graph:
    """Return a graph with the steps of a table's functions in place of operators."""
    made, copies = Graph(), dict[Node, Node]()
    for node in graph.nodes:
        found = decompositions.get(node.target, decompositions.get(getattr(node.target, "overloadpacket", None)))
        if node.op != "call_function" or found is None:
            copies[node] = made.node_copy(node, copies.__getitem__)
            continue
        used = node.all_input_nodes

        def steps(*values: Any, node: Node = node, found: Any = found, used: Any = used) -> Any:
            env = dict(zip(used, values, strict=True))
            return found(*map_arg(node.args, env.__getitem__), **map_arg(dict(node.kwargs), env.__getitem__))
        traced = make_fx(steps, tracing_mode="fake")(*(each.meta["val"] for each in used))
        within = dict(zip(traced.graph.find_nodes(op="placeholder"), map(copies.__getitem__, used), strict=True))
        copies[node] = made.graph_copy(traced.graph, within)
    return made


class CallSpec(NamedTuple):
    """How the arguments and results of a program are nested."""

    in_spec: TreeSpec
    out_spec: TreeSpec


class ExportedProgram:
    """A program for inputs of given shapes, as a graph of operators whose inputs are parameters, buffers,
    constants, and the program's arguments. `module()` is called.

    https://pytorch.org/docs/stable/export.html#torch.export.ExportedProgram

    >>> import tensorgrad as torch
    >>> program = torch.export.export(torch.nn.Linear(2, 3), (torch.ones(4, 2),))
    >>> print(program.graph_module.code.strip())
    def forward(self, p_weight, p_bias, input_1):
        linear = torch.ops.aten.linear.default(input_1, p_weight, p_bias);  input_1 = p_weight = p_bias = None
        return (linear,)
    >>> program.module()(torch.ones(4, 2)).shape
    torch.Size([4, 3])
    """

    def __init__(self, graph: Graph, graph_signature: ExportGraphSignature, state_dict: dict[str, Any],
                 constants: dict[str, Any], names: list[str], in_spec: TreeSpec, out_spec: TreeSpec,
                 axes: dict[tuple[int, int], Any], shapes: list[Any], example_inputs: Any,
                 modules: dict[str, Any] | None = None) -> None:
        self._modules = modules or {}           # the branches and bodies of control flow
        self.graph_module = GraphModule(self._modules, graph)
        self.graph_signature, self.state_dict, self.constants = graph_signature, state_dict, constants
        self._names, self._in_spec, self._out_spec = names, in_spec, out_spec
        self._axes, self._shapes, self._examples = axes, shapes, example_inputs

    graph = property(lambda self: self.graph_module.graph)
    tensor_constants = property(lambda self: self.constants)

    @property
    def example_inputs(self) -> Any:
        """The arguments that the program was exported with, (args, kwargs): others are set only if they fit."""
        return self._examples

    @example_inputs.setter
    def example_inputs(self, value: Any) -> None:
        if not (isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], tuple)
                and isinstance(value[1], dict)):
            raise ValueError(f"Example inputs should be a tuple containing example arguments (as a tuple), and example "
                             f"kwargs (as a dictionary). Got {value}.")
        names = list(self._in_spec.children()[1].context)
        if set(names) != set(value[1]):
            raise ValueError(f"Ran into a kwarg keyword mismatch: Got the following keywords {list(value[1])} but "
                             f"expected {names}")
        self._nested(None, *value)
        self._examples = value

    @property
    def module_call_graph(self) -> list[ModuleCallEntry]:
        """The program's call: its inputs and outputs, and how they are nested."""
        inputs, outputs = self.graph_signature._inputs(InputKind.USER_INPUT), self.graph_signature.output_specs
        return [ModuleCallEntry("", ModuleCallSignature(
            [spec.arg for spec in inputs], [spec.arg for spec in outputs if spec.kind is OutputKind.USER_OUTPUT],
            self._in_spec, self._out_spec, list(self._names)))]

    call_spec = property(lambda self: CallSpec(self._in_spec, self._out_spec))

    @property
    def range_constraints(self) -> dict[str, Bounds]:
        """{name: bounds} of the sizes that may vary."""
        return {dim.__name__: Bounds(dim.min, dim.max) for dim in self._axes.values() if hasattr(dim, "root")}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("Unable to call ExportedProgram directly. You should use `exported_program.module()` "
                           "instead.")

    def named_parameters(self) -> Iterator[tuple[str, Any]]:
        """Yield (name, parameter)."""
        for name in self.graph_signature.parameters:
            yield name, self.state_dict[name]

    def parameters(self) -> Iterator[Any]:
        """Yield the parameters."""
        for _, parameter in self.named_parameters():
            yield parameter

    def named_buffers(self) -> Iterator[tuple[str, Any]]:
        """Yield (name, buffer)."""
        for name in self.graph_signature.buffers:
            yield name, self.state_dict[name] if name in self.state_dict else self.constants[name]

    def buffers(self) -> Iterator[Any]:
        """Yield the buffers."""
        for _, buffer in self.named_buffers():
            yield buffer

    def run_decompositions(self, decomp_table: Any = None) -> ExportedProgram:
        """Return the program without writes: last values of buffers and inputs are results.

        Operators of `decomp_table`, {operator: function of its arguments}, become the steps of their functions; the
        others are those of the program.
        """
        if decomp_table:
            return self._replaced(decomposed(self.graph, decomp_table)).run_decompositions()
        graph, copies, written = Graph(), dict[Node, Node](), []
        specs = {node: spec for node, spec in zip(self.graph.find_nodes(op="placeholder"),
                                                  self.graph_signature.input_specs, strict=True)}
        for node in self.graph.nodes:
            if node.op == "output":
                break
            if node.target is ops.aten.copy_.default and node.args[0] in specs and not node.users:
                written.append((specs[node.args[0]], copies[node.args[1]]))
            else:
                copies[node] = graph.node_copy(node, copies.__getitem__)
        graph.output((*(value for _, value in written), *map_arg(node.args[0], copies.__getitem__)))
        outputs = [OutputSpec(OutputKind.USER_INPUT_MUTATION if spec.kind is InputKind.USER_INPUT
                              else OutputKind.BUFFER_MUTATION, TensorArgument(value.name),
                              spec.arg.name if spec.kind is InputKind.USER_INPUT else spec.target)
                   for spec, value in written]
        signature = ExportGraphSignature(list(self.graph_signature.input_specs),
                                         [*outputs, *self.graph_signature.output_specs])
        return self._replaced(graph, signature)

    def _replaced(self, graph: Graph, signature: ExportGraphSignature | None = None) -> ExportedProgram:
        """Return the program with another graph of the same inputs."""
        return ExportedProgram(graph, signature or self.graph_signature, self.state_dict, self.constants, self._names,
                               self._in_spec, self._out_spec, self._axes, self._shapes, self._examples, self._modules)

    def module(self, check_guards: bool = True) -> GraphModule:
        """Return a module that runs the program, with its parameters and buffers.

        AssertionError for inputs of other sizes, unless `check_guards` is false; ValueError for arguments that are
        nested in another way.
        """
        graph, copies = Graph(), dict[Node, Node]()
        root: dict[str, Any] = {}
        inputs = self.graph.find_nodes(op="placeholder")
        for node, spec in zip(inputs, self.graph_signature.input_specs, strict=True):
            if spec.kind is InputKind.USER_INPUT:
                copies[node] = graph.placeholder(node.target)
        for node, spec in zip(inputs, self.graph_signature.input_specs, strict=True):
            if spec.kind is not InputKind.USER_INPUT:
                name = str(spec.target)
                root[name] = self.state_dict[name] if name in self.state_dict else self.constants[name]
                copies[node] = graph.get_attr(name)
        users = [copies[node] for node, spec in zip(inputs, self.graph_signature.input_specs, strict=True)
                 if spec.kind is InputKind.USER_INPUT]
        if check_guards:
            root["_guards_fn"] = self._guards()
            graph.call_module("_guards_fn", tuple(users))
        root.update(self._modules)
        results = list(graph.graph_copy(self.graph, copies))
        named = {node.target if spec.kind is InputKind.USER_INPUT else spec.target: copies[node]
                 for node, spec in zip(inputs, self.graph_signature.input_specs, strict=True)}
        for value, output in zip(results, self.graph_signature.output_specs, strict=True):
            if output.kind is not OutputKind.USER_OUTPUT:
                graph.call_function(ops.aten.copy_.default, (named[output.target], value))
        graph.output(tuple(value for value, output in zip(results, self.graph_signature.output_specs, strict=True)
                           if output.kind is OutputKind.USER_OUTPUT))
        graph.set_codegen(_PyTreeCodeGen(_PyTreeInfo(self._names, self._in_spec, self._out_spec)))
        module = GraphModule(root, graph)
        for name in (*self.graph_signature.non_persistent_buffers, *self.graph_signature.lifted_tensor_constants):
            path, _, last = name.rpartition(".")
            module.get_submodule(path)._non_persistent_buffers_set.add(last)
        module.register_forward_pre_hook(self._nested, with_kwargs=True)
        return module

    def _nested(self, module: Any, args: Any, kwargs: Any) -> Any:
        """Return the arguments in the program's order. ValueError if they are nested in another way."""
        if (names := list(self._in_spec.children()[1].context)) != list(kwargs) and set(names) != set(kwargs):
            raise ValueError(f"Ran into a kwarg keyword mismatch: Got the following keywords {list(kwargs)} but "
                             f"expected {names}")
        args, kwargs = in_order(args, kwargs, self._in_spec)
        spec = tree_flatten((args, kwargs))[1]
        if spec != self._in_spec:
            raise ValueError(f"Trying to flatten user inputs with exported input tree spec: \n{self._in_spec}\nbut "
                             f"actually got inputs with tree spec of: \n{spec}.\nPlease check that the inputs have the "
                             f"same number and type of args and kwargs as the ones you used when tracing.")
        return args, kwargs

    def _guards(self) -> Guards:
        """Return the module that checks the inputs."""
        users = [node for node, spec in zip(self.graph.find_nodes(op="placeholder"), self.graph_signature.input_specs,
                                            strict=True) if spec.kind is InputKind.USER_INPUT]
        given = [spec.arg for spec in self.graph_signature.input_specs if spec.kind is InputKind.USER_INPUT]
        return Guards([node.name for node in users], self._shapes, self._axes,
                      {i: arg.value for i, arg in enumerate(given) if isinstance(arg, ConstantArgument)
                       and isinstance(arg.value, (int, float, str))})

    def __str__(self) -> str:
        code = "\n    ".join(self.graph_module.print_readable(print_output=False).split("\n"))
        signature = str(self.graph_signature).replace("\n", "\n    ").strip("\n")
        return (f"ExportedProgram:\n    {code}\nGraph signature: \n{signature}\nRange constraints: "
                f"{self.range_constraints}\n")


