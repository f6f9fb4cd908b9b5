"""Export a module: lower it, and make its tensors inputs of the graph."""
from __future__ import annotations

import inspect
from typing import Any

from .._dynamo.exc import UserError
from ..api import empty_like, equal
from ..core.tape import TensorBase
from ..fx import table
from ..graph.graph import Graph
from ..graph.inputs import input_names
from ..graph.lowered import Lowered
from ..graph.lowering import lower
from ..graph.nesting import immutable_dict, immutable_list
from ..graph.node import Node
from ..nn import Module
from ..utils._pytree import TreeSpec, tree_flatten
from .dynamic_shapes import Dim, dynamic_axes
from .exported_program import ExportedProgram
from .graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
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
    lowered = lower(mod, args, kwargs)
    if lowered.written:
        raise RuntimeError(f"torch.export: the module writes to its buffers {list(lowered.written)}, which a graph "
                           f"without effects cannot. Call eval() before, if that is batch normalization in training")
    names, values = argument_names(mod, args, kwargs)
    axes = dynamic_axes(dynamic_shapes, names, values)
    sizes = other_sizes(axes, [leaf for leaf in tree_flatten(values)[0] if isinstance(leaf, TensorBase)])
    if sizes:
        free_of_sizes(lowered, lower(mod, args, kwargs, sizes=sizes))
    return Exporter(mod, lowered, args, kwargs).program(names, axes)


def argument_names(mod: Module, args: Any, kwargs: Any) -> tuple[list[str], list[Any]]:
    """Return the names of the given arguments of a module's forward, and their values."""
    parameters = list(inspect.signature(mod.forward).parameters.values())
    plain = [each.name for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    variadic = next((each.name for each in parameters if each.kind is each.VAR_POSITIONAL), "args")
    names = [plain[i] if i < len(plain) else f"{variadic}_{i - len(plain)}" for i in range(len(args))]
    return names + list(kwargs), [*args, *kwargs.values()]


def other_sizes(axes: dict[tuple[int, int], Any], tensors: list[Any]) -> dict[tuple[int, int], int]:
    """Return other sizes of the axes that may vary, to see what of the graph depends on them."""
    roots: dict[str, int] = {}
    found = {}
    for (i, axis), dim in axes.items():
        size = tensors[i].shape[axis]
        if not isinstance(dim, Dim):
            found[i, axis] = size + 2
            continue
        if size < dim.min or dim.max is not None and size > dim.max:
            raise UserError(f"{size} not in range [{dim.min}, {'int_oo' if dim.max is None else dim.max}]")
        root, rest = divmod(size - dim.offset, dim.factor)
        first = roots.setdefault(dim.root.__name__, root)
        if first != root or rest:
            raise UserError(f"the sizes of axes with the Dim {dim.root.__name__} differ: axis {axis} of input {i} has "
                            f"the size {size}, not {dim.sized(first)}")
        upper = dim.root.max
        found[i, axis] = dim.sized(root + 2 if upper is None or root + 2 <= upper else max(root - 1, dim.root.min))
    return found


def free_of_sizes(lowered: Lowered, other: Lowered) -> None:
    """Make a graph serve all sizes, given the one for other sizes: a reshape infers a size that differs.

    UserError for another parameter that depends on sizes.
    """
    pairs = list(zip(lowered.nodes, other.nodes, strict=False))
    if len(lowered) != len(other) or any(a.op != b.op or a.target != b.target for a, b in pairs):
        raise UserError("the steps of the program depend on a size that dynamic_shapes lets vary")
    for a, b in pairs:
        if a.op == "get_attr" and a.meta["shape"] != b.meta["shape"]:
            shrink(lowered, a, b.meta["shape"])
            continue
        told = {name: (value, b.kwargs[name]) for name, value in a.kwargs.items() if str(value) != str(b.kwargs[name])}
        if not told and str(a.args) == str(b.args):
            continue
        shapes = told.get("shape")
        differing = [k for k, pair in enumerate(zip(*(shapes or ()), strict=False)) if len(set(pair)) > 1]
        if list(told) != ["shape"] or len(differing) != 1 or a.target.opname != "reshape":
            raise UserError(f"{a.meta.get('source')}: {getattr(a.target, 'opname', a.target)} depends on the value of "
                            f"a size that dynamic_shapes lets vary")
        a.kwargs = {**a.kwargs, "shape": tuple(-1 if k in differing else size for k, size in enumerate(shapes[0]))}


def shrink(lowered: Lowered, node: Node, other: Any) -> None:
    """Give a constant of equal values the length 1 along the axes whose sizes vary, so that it is broadcast.

    UserError for another constant, and for one that is used other than element by element with tensors of its shape.
    """
    tensor, shape = lowered.tensors[node.target], node.meta["shape"]
    axes = [k for k, (n, m) in enumerate(zip(shape, other, strict=False)) if n != m]
    small = tensor[tuple(slice(0, 1) if k in axes else slice(None) for k in range(len(shape)))]
    fits = len(shape) == len(other) and all(
        getattr(user.target, "elementwise", False) and any(each is not node and each.meta["shape"] == shape
                                                           for each in user.all_input_nodes) for user in node.users)
    if not fits or not equal(small.expand(shape), tensor):
        raise UserError("a constant of the program depends on a size that dynamic_shapes lets vary")
    lowered.tensors[node.target] = small.clone()
    node.meta["shape"] = tuple(small.shape)


def mutable(spec: TreeSpec) -> TreeSpec:
    """Return the spec of a tree of a graph's immutable lists and dictionaries for plain ones."""
    if spec.is_leaf():
        return spec
    kind = {immutable_dict: dict, immutable_list: list}.get(spec.type, spec.type)
    return TreeSpec(kind, spec.context, [mutable(child) for child in spec.children()])


class Exporter:
    """Makes the graph of an exported program of a lowered module."""

    def __init__(self, mod: Module, lowered: Lowered, args: Any, kwargs: Any) -> None:
        self.mod, self.lowered, self.args, self.kwargs = mod, lowered, args, kwargs
        self.graph, self.copies = Graph(), dict[Node, Node]()
        self.inputs: list[InputSpec] = []
        self.constants: dict[str, Any] = {}
        state = mod.state_dict(keep_vars=True)
        self.state = {name: value for table in (mod.named_parameters(), mod.named_buffers()) for name, value in table
                      if name in state}

    def program(self, names: list[str], axes: dict[tuple[int, int], Any]) -> ExportedProgram:
        """Return the exported program."""
        self.take_state()
        leaves, in_spec = tree_flatten((self.args, self.kwargs))
        self.take_inputs(leaves)
        result, out_spec = tree_flatten(table.copied(self.lowered, self.copies, self.graph))
        self.graph.output(tuple(result))
        outputs = [OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(leaf.name) if isinstance(leaf, Node)
                              else ConstantArgument("", leaf)) for leaf in result]
        shapes = [tuple(leaf.shape) if isinstance(leaf, TensorBase) else None for leaf in leaves]
        at = [i for i, leaf in enumerate(leaves) if isinstance(leaf, TensorBase)]
        return ExportedProgram(self.graph, ExportGraphSignature(self.inputs, outputs), self.state, self.constants,
                               names, in_spec, mutable(out_spec),
                               {(at[i], axis): dim for (i, axis), dim in axes.items()}, shapes,
                               (self.args, self.kwargs))

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
        for k, node in enumerate(nodes.values()):
            name = f"lifted_tensor_{k}"
            self.constants[name] = self.lowered.tensors[node.target]
            self.take(f"c_{name}", InputSpec(InputKind.CONSTANT_TENSOR, None, name), node)

    def take_inputs(self, leaves: list[Any]) -> None:
        """Make inputs of the program's arguments."""
        nodes = iter(self.lowered.find_nodes(op="placeholder"))
        names = iter(input_names(self.mod, self.args, self.kwargs))
        for i, leaf in enumerate(leaves):
            if isinstance(leaf, TensorBase):
                self.take(next(names), InputSpec(InputKind.USER_INPUT, None), next(nodes))
            else:
                self.take(f"arg_{i}", InputSpec(InputKind.USER_INPUT, ConstantArgument(f"arg_{i}", leaf)), None)

    def take(self, name: str, spec: InputSpec, node: Node | None, tensor: Any = None) -> None:
        """Add an input of the graph, for a node of the lowered program if that has one, or else for a tensor."""
        new = self.graph.create_node("placeholder", name.replace(".", "_"), name=name)
        new.target = new.name
        spec.arg = spec.arg or TensorArgument(new.name)
        self.inputs.append(spec)
        if node is not None:
            self.copies[node] = new
            new.meta["val"] = table.shaped(node)
        elif tensor is not None:
            new.meta["val"] = empty_like(tensor, device="meta")
