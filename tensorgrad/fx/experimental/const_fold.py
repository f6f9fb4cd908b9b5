"""Compute what does not depend on a module's inputs once. https://pytorch.org/docs/stable/fx.html"""
from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

from ...api import Tensor, tensor
from ...graph.node import Node, map_arg
from ...nn import Parameter, ParameterList
from .._symbolic_trace import symbolic_trace
from ..graph_module import GraphModule
from ..passes.split_module import split_module

__all__ = ["FoldedGraphModule", "get_unique_attr_name_in_module", "split_const_subgraphs"]


class FoldedGraphModule(GraphModule):
    """A module whose first call computes its constants, by a graph of their own."""

    def __init__(self, root: Any, graph: Any, const_subgraph: Any = None,
                 fx_const_folded_attrs_name: str | None = None, device_for_folded_attrs: str = "cuda") -> None:
        super().__init__(root, graph)
        self.const_subgraph_module = None if const_subgraph is None else GraphModule(root, const_subgraph)
        self.has_folding_been_run = False
        self.fx_const_folded_attrs_name = fx_const_folded_attrs_name
        self.device_for_folded_attrs = device_for_folded_attrs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.has_folding_been_run:
            self.run_folding()
        return super().__call__(*args)

    def run_folding(self) -> None:
        """Compute the constants. AssertionError at a second call."""
        if self.const_subgraph_module is None or self.fx_const_folded_attrs_name is None:
            return
        if self.has_folding_been_run:
            raise AssertionError("Folding has already been run")
        self.has_folding_been_run = True
        found = self.const_subgraph_module()
        setattr(self, self.fx_const_folded_attrs_name,
                ParameterList(map(self._parameter, found)) if isinstance(found, tuple) else self._parameter(found))

    def _parameter(self, value: Any) -> Parameter:
        if not isinstance(value, Tensor):
            value = tensor([float(value)], device=self.device_for_folded_attrs)
        return Parameter(value.detach().clone(), requires_grad=value.requires_grad)


def get_unique_attr_name_in_module(mod_traced: Any, name: str) -> str:
    """Return an identifier that a module has no attribute of, made of a name.

    >>> import tensorgrad as torch
    >>> get_unique_attr_name_in_module(torch.nn.Linear(1, 1), "weight"), get_unique_attr_name_in_module(None, "0-a")
    ('weight_1', '_0_a')
    """
    name = re.sub(r"[^0-9a-zA-Z_]+", "_", name)
    name = f"_{name}" if name[0].isdigit() else name
    while hasattr(mod_traced, name):
        base, _, number = name.rpartition("_")
        name = f"{base}_{int(number) + 1}" if base and number.isdigit() else f"{name}_1"
    return name


def _impure(module: Any) -> bool:
    """Return True if a module's graph has steps with effects."""
    return isinstance(module, GraphModule) and any(
        node.op == "call_function" and node.is_impure()
        or node.op == "call_module" and _impure(module.get_submodule(node.target)) for node in module.graph.nodes)


def _inline_module(gm: Any, inline_mod_name: str, run_dce: bool = True) -> dict[Node, Any]:
    """Put a module's nodes into the place of its call."""
    inner = gm.get_submodule(inline_mod_name)
    call = gm.graph.find_nodes(op="call_module", target=inline_mod_name)[0]
    inputs = inner.graph.find_nodes(op="placeholder")
    copies: dict[Node, Any] = {node: call.kwargs.get(node.name, call.args[i] if i < len(call.args) else None)
                               for i, node in enumerate(inputs)}
    for node in inputs:
        if isinstance(copies[node], Node):
            copies[node].meta = node.meta.copy()
    with gm.graph.inserting_before(call):
        for node in inner.graph.nodes:
            if node.op not in ("placeholder", "output"):
                copies[node] = gm.graph.node_copy(node, copies.__getitem__)
    result = map_arg(inner.graph.output_node().args[0], copies.__getitem__)
    if isinstance(result, (list, tuple)):
        for user in list(call.users):
            if user.target is operator.getitem and isinstance(user.args[1], int):
                user.replace_all_uses_with(result[user.args[1]])
                gm.graph.erase_node(user)
        for user in list(call.users):
            user.args, user.kwargs = (_put(each, call, result) for each in (user.args, user.kwargs))
    else:
        call.replace_all_uses_with(result)
    gm.graph.erase_node(call)
    if run_dce:
        gm.graph.eliminate_dead_code()
    return copies


def _put(tree: Any, old: Node, new: Any) -> Any:
    return map_arg(tree, lambda node: new if node is old else node)


def _constant_nodes(module: GraphModule, skip: Callable[[Node], bool] | None) -> set[Node]:
    """Return the nodes whose values do not depend on the inputs."""
    found: set[Node] = set()
    for node in module.graph.nodes:
        if (node.op in ("placeholder", "output") or node.op != "get_attr" and not found.issuperset(node._input_nodes)
                or skip is not None and skip(node) or node.is_impure()
                or node.op == "call_module" and _impure(module.get_submodule(node.target))):
            continue
        found.add(node)
    return found


def split_const_subgraphs(module: Any, skip_folding_node_fn: Callable[[Node], bool] | None = None,
                          device_for_folded_attrs: str = "cpu") -> FoldedGraphModule:
    """Return a module that computes what does not depend on its inputs in its first call, and keeps it.

    Nodes for which `skip_folding_node_fn` is true are computed at each call.

    >>> import tensorgrad as torch
    >>> class Shifted(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.a, self.b = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2))
    ...     def forward(self, x):
    ...         return x + (self.a + self.b)
    >>> folded = split_const_subgraphs(Shifted())
    >>> folded(torch.zeros(2)).tolist(), [node.name for node in folded.graph.nodes]
    ([2.0, 2.0], ['x', '_fx_const_folded_attrs', 'add_1', 'output'])
    """
    traced = module if isinstance(module, GraphModule) else symbolic_trace(module)
    constant = _constant_nodes(traced, skip_folding_node_fn)
    if all(node.op == "get_attr" for node in constant):
        return FoldedGraphModule(traced, traced.graph)
    split = split_module(traced, module, lambda node: 0 if node in constant else 1)
    parts = [getattr(split, name, None) for name in ("submod_0", "submod_1")]
    for part in reversed(parts):
        if part is not None:
            for node in part.graph.find_nodes(op="call_module"):
                setattr(split, node.target, getattr(part, node.target))
    (call,) = split.graph.find_nodes(op="call_module", target="submod_0")
    constants = GraphModule(split, parts[0].graph)
    for node, given in zip(constants.graph.find_nodes(op="placeholder"), call.args, strict=False):
        with constants.graph.inserting_before(node):
            read = constants.graph.create_node("get_attr", given.target)
        read.meta = node.meta.copy()
        node.replace_all_uses_with(read)
        constants.graph.erase_node(node)
    several = isinstance(constants.graph.output_node().args[0], tuple)
    name = get_unique_attr_name_in_module(traced, "_FX_CONST_FOLDED_ATTRS")
    setattr(split, name, ParameterList() if several else Parameter(tensor([])))
    with split.graph.inserting_before(call):
        kept = split.graph.create_node("get_attr", name)
    kept.meta = call.meta.copy()
    call.replace_all_uses_with(kept)
    if parts[1] is not None:
        _inline_module(split, "submod_1")
    split.graph.eliminate_dead_code()
    return FoldedGraphModule(split, split.graph, constants.graph, name, device_for_folded_attrs)
