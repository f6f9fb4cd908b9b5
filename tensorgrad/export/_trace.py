"""Export a module: lower it, and make its tensors inputs of the graph."""
from __future__ import annotations

import inspect
from typing import Any

from .._dynamo.exc import UserError
from .._ops import ops
from ..api import empty_like
from ..compiler.state import state
from ..core.tape import TensorBase
from ..dtype import FROM_NUMPY
from ..fx import table
from ..graph.graph import Graph
from ..graph.inputs import word_of
from ..graph.lines import ReadsValues
from ..graph.lowered import Lowered
from ..graph.lowering import lower
from ..graph.nesting import immutable_dict, immutable_list
from ..graph.node import Node
from ..graph.recording import Scalars
from ..nn import Module
from ..utils._pytree import TreeSpec, tree_flatten, tree_flatten_with_path
from ._sizes import Family
from .dynamic_shapes import AdditionalInputs, ShapesCollection, dynamic_axes
from .exported_program import ExportedProgram
from .graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)


def export(mod: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, *, dynamic_shapes: Any = None,
           strict: bool = False, preserve_module_call_signature: tuple[str, ...] = (),
           prefer_deferred_runtime_asserts_over_guards: bool = False) -> ExportedProgram:
    """Return a module's computation, for arguments like these, as a graph of the table's ops without Python.

    Sizes are those of the arguments but for `dynamic_shapes`: {argument: {axis: Dim}}. UserError if the graph depends
    on the value of such a size; ReadsValues if the module reads values that depend on its arguments; RuntimeError if it
    writes to its buffers. https://pytorch.org/docs/stable/export.html#torch.export.export

    >>> import tensorgrad as torch
    >>> class Scale(torch.nn.Module):
    ...     def forward(self, x):
    ...         return x.flatten(1) * 2
    >>> program = torch.export.export(Scale(), (torch.ones(2, 3, 4),),
    ...                               dynamic_shapes={"x": {0: torch.export.Dim("batch")}})
    >>> program.module()(torch.ones(5, 3, 4)).shape
    torch.Size([5, 12])
    """
    if not isinstance(mod, Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if not isinstance(args, tuple):
        raise UserError(f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}")
    kwargs = kwargs or {}
    names, values = argument_names(mod, args, kwargs)
    if isinstance(dynamic_shapes, (ShapesCollection, AdditionalInputs)):
        dynamic_shapes = dynamic_shapes.dynamic_shapes(mod, args, kwargs)
    axes = dynamic_axes(dynamic_shapes, *of_parameters(mod, args, names, values))
    made: list[Exporter] = []

    def lowered_at(sizes: dict[tuple[int, int], int], scalars: Scalars | None = None, reading: Any = None) -> Lowered:
        before, state.exporting = state.exporting, True
        try:
            return lower(mod, args, kwargs, fold=False, sizes=sizes, effects=True, branches=True, scalars=scalars,
                         reading=reading)
        finally:
            state.exporting = before

    def build(sizes: dict[tuple[int, int], int], scalars: list[int]) -> Graph:
        lowered = lowered_at(sizes, Scalars(scalars) if scalars else None)
        made.append(Exporter(mod, lowered, args, kwargs, varying=bool(axes or scalars)))
        return made[-1].graph
    tensors = [leaf for leaf in tree_flatten(values)[0] if isinstance(leaf, TensorBase)]
    try:
        family = Family(build, axes, tensors)
    except ReadsValues:             # a whole number of the inputs may be a symbol, like a size
        read = Scalars()
        lowered_at({}, read, reading=lambda line: None)
        if not read.seen:
            raise
        family = Family(build, axes, tensors, read.seen)
    family.settle()
    return made[0].program(names, family.axes)


def argument_names(mod: Module, args: Any, kwargs: Any) -> tuple[list[str], list[Any]]:
    """Return the names of the given arguments of a module's forward, and their values."""
    parameters = list(inspect.signature(mod.forward).parameters.values())
    plain = [each.name for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    variadic = next((each.name for each in parameters if each.kind is each.VAR_POSITIONAL), "args")
    names = [plain[i] if i < len(plain) else f"{variadic}_{i - len(plain)}" for i in range(len(args))]
    return names + list(kwargs), [*args, *kwargs.values()]


def argument_of(leaf: Any) -> Any:
    """Return what a signature says of an output."""
    if not isinstance(leaf, Node):
        return ConstantArgument("", leaf)
    return (SymIntArgument if isinstance(leaf.meta.get("val"), int) else TensorArgument)(leaf.name)


def of_parameters(mod: Module, args: Any, names: list[str], values: list[Any]) -> tuple[list[str], list[Any]]:
    """Return names and values with those of `*args` as one tuple."""
    kinds = list(inspect.signature(mod.forward).parameters.values())
    plain = sum(each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD) for each in kinds)
    variadic = next((each.name for each in kinds if each.kind is each.VAR_POSITIONAL), None)
    count = len(args)
    if variadic is None or count <= plain:
        return names, values
    return ([*names[:plain], variadic, *names[count:]],
            [*values[:plain], tuple(values[plain:count]), *values[count:]])


def mutable(spec: TreeSpec) -> TreeSpec:
    """Return the spec of a tree of a graph's immutable lists and dictionaries for plain ones."""
    if spec.is_leaf():
        return spec
    kind = {immutable_dict: dict, immutable_list: list}.get(spec.type, spec.type)
    return TreeSpec(kind, spec.context, [mutable(child) for child in spec.children()])


KEPT = ops.aten.copy_.default, ops.aten.item.default        # without users


class Exporter:
    """Makes the graph of an exported program of a lowered module."""

    def __init__(self, mod: Module, lowered: Lowered, args: Any, kwargs: Any, varying: bool = False) -> None:
        self.mod, self.lowered, self.args, self.kwargs, self.varying = mod, lowered, args, kwargs, varying
        self.graph, self.copies = Graph(), dict[Node, Node]()
        self.inputs: list[InputSpec] = []
        self.constants: dict[str, Any] = {}
        self.names, self.modules = dict[str, Node](), dict[str, Any]()
        passing = {f"{path}.{name}" if path else name for path, module in mod.named_modules(remove_duplicate=False)
                   for name in module._non_persistent_buffers_set}
        self.state = {**dict(mod.named_parameters(remove_duplicate=False)),
                      **{name: buffer for name, buffer in mod.named_buffers(remove_duplicate=False)
                         if name not in passing}}

        self.take_state()
        self.leaves, self.in_spec = tree_flatten((args, kwargs))
        self.take_inputs(self.leaves)
        for node in self.numbers:
            self.copies[node] = new = self.graph.call_function(
                ops.aten.scalar_tensor.default, (node.meta["value"].item(),), {"dtype": FROM_NUMPY[node.meta["dtype"]]})
            new.meta["val"] = table.shaped(node)
        result, buffers, inputs = table.copied(self.lowered, self.copies, self.graph, self.modules)
        self.delay()
        self.write(buffers, inputs)
        flat, self.out_spec = tree_flatten(result)
        self.graph.output(tuple(flat))
        for node in reversed(list(self.graph.nodes)):
            if node.op == "call_function" and not node.users and node.target not in KEPT:
                self.graph.erase_node(node)

    def delay(self) -> None:
        """Put each number before the step that needs it: it may depend on one that the program reads."""
        left = {self.copies[node] for node in self.numbers}
        for node in list(self.graph.nodes):
            for number in left.intersection(node.all_input_nodes):
                node.prepend(number)
                left.remove(number)

    def write(self, buffers: dict[str, Any], inputs: dict[int, Any]) -> None:
        """Write the last values of buffers and inputs that the program writes to."""
        names = {spec.target: name for name, spec in zip(self.names, self.inputs, strict=True)}
        users = [node for node in self.graph.find_nodes(op="placeholder") if "user" in node.meta]
        for name, value in buffers.items():         # gradients do not go from one call to the next
            self._call("copy_", self.names[names[name]], self._call("detach", value))
        for i, value in inputs.items():
            self._call("copy_", users[i], value)

    def _call(self, name: str, *args: Node) -> Node:
        node = self.graph.call_function(getattr(ops.aten, name).default, args)
        node.meta["val"] = args[0].meta["val"]
        return node

    def program(self, names: list[str], axes: dict[tuple[int, int], Any]) -> ExportedProgram:
        """Return the exported program."""
        result = self.graph.output_node().args[0]
        outputs = [OutputSpec(OutputKind.USER_OUTPUT, argument_of(leaf)) for leaf in result]
        shapes = [tuple(leaf.shape) if isinstance(leaf, TensorBase) else None for leaf in self.leaves]
        at = [i for i, leaf in enumerate(self.leaves) if isinstance(leaf, TensorBase)]
        return ExportedProgram(self.graph, ExportGraphSignature(self.inputs, outputs), self.state, self.constants,
                               names, self.in_spec, mutable(self.out_spec),
                               {(at[i], axis): dim for (i, axis), dim in axes.items()}, shapes,
                               (self.args, self.kwargs), self.modules)

    def take_state(self) -> None:
        """Make inputs of parameters, buffers and constants, in this order."""
        nodes = {node.target: node for node in self.lowered.find_nodes(op="get_attr")}
        parameters, buffers = dict(self.mod.named_parameters()), dict(self.mod.named_buffers())
        for name in parameters:
            self.take(f"p_{name}", InputSpec(InputKind.PARAMETER, None, name), nodes.pop(name, None),
                      parameters[name])
        for name, buffer in buffers.items():
            kept = name in self.state
            if not kept:
                self.constants[name] = buffer
            self.take(f"b_{name}", InputSpec(InputKind.BUFFER, None, name, kept), nodes.pop(name, None), buffer)
        count = 0
        self.numbers = [node for node in nodes.values() if self.varying and not node.meta.get("state")
                        and not node.meta["shape"] and node.meta["dtype"].kind in "if"]
        for node in nodes.values():
            if node in self.numbers:            # which may depend on sizes
                continue
            name = node.target
            if not node.meta.get("state"):
                name, count = f"lifted_tensor_{count}", count + 1
            self.constants[name] = self.lowered.tensors[node.target].detach()
            self.take(f"c_{name}", InputSpec(InputKind.CONSTANT_TENSOR, None, name), node)
            self.names[self.inputs[-1].arg.name].meta["constant"] = self.constants[name]

    def take_inputs(self, leaves: list[Any]) -> None:
        """Make inputs of the program's arguments."""
        nodes = iter(self.lowered.find_nodes(op="placeholder"))         # of the tensors
        names = ["_".join([name, *map(word_of, path)])
                 for name, value in zip(*argument_names(self.mod, self.args, self.kwargs), strict=True)
                 for path, _ in tree_flatten_with_path(value)[0]]
        for name, leaf in zip(names, leaves, strict=True):
            if isinstance(leaf, TensorBase):
                self.take(name, InputSpec(InputKind.USER_INPUT, None), next(nodes), leaf)
            else:
                self.take(name, InputSpec(InputKind.USER_INPUT, ConstantArgument(name, leaf)), None)

    def take(self, name: str, spec: InputSpec, node: Node | None, tensor: Any = None) -> None:
        """Add an input of the graph, for a node of the lowered program if that has one, or else for a tensor."""
        new = self.graph.create_node("placeholder", name.replace(".", "_"), name=name)
        new.target = new.name
        spec.arg = spec.arg or TensorArgument(new.name)
        self.inputs.append(spec)
        self.names[new.name] = new
        if spec.kind is InputKind.USER_INPUT and node is not None:
            new.meta["user"] = True
        if node is not None:
            self.copies[node] = new
            new.meta["val"] = table.shaped(node)
        elif tensor is not None:
            new.meta["val"] = empty_like(tensor, device="meta")
        if tensor is not None and tensor.requires_grad:
            new.meta["val"].requires_grad_()
