"""torch.fx.graph: graphs, and the generation of code from them, under PyTorch's names.

https://pytorch.org/docs/stable/fx.html#torch.fx.Graph
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..graph.codegen import COLORS as _color_codes
from ..graph.codegen import CodeGen, PythonCode
from ..graph.graph import Graph
from ..graph.graph import InsertPoint as _InsertPoint
from ..graph.graph import NodeList as _node_list
from ..graph.names import READY as _custom_builtins
from ..graph.names import Namespace as _Namespace
from ..graph.names import packaged as _is_from_torch
from ..graph.names import register_name as _register_custom_builtin
from ..graph.node import Node, map_arg
from ..graph.targets import IN_PLACE as inplace_methods
from ..graph.targets import MAGIC as magic_methods
from ..graph.targets import REFLECTED as reflectable_magic_methods
from ..utils._pytree import TreeSpec, tree_leaves, tree_unflatten

__all__ = ["CodeGen", "Graph", "Node", "PythonCode", "inplace_methods", "magic_methods", "map_arg",
           "reflectable_magic_methods"]
_OTHERS = (_color_codes, _InsertPoint, _node_list, _custom_builtins, _Namespace, _is_from_torch,
           _register_custom_builtin)


class _PyTreeInfo(NamedTuple):
    """The names of a function's parameters, and the structures of its arguments and its result."""

    orig_args: list[str]
    in_spec: TreeSpec
    out_spec: TreeSpec | None


class _PyTreeCodeGen(CodeGen):
    """Generates code that flattens its arguments to the graph's inputs, and builds its result."""

    def __init__(self, pytree_info: _PyTreeInfo) -> None:
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *inputs: Any) -> Any:
        return tree_leaves(inputs)

    def process_outputs(self, outputs: Any) -> Any:
        spec = self.pytree_info.out_spec
        if spec is None:
            return outputs
        return tree_unflatten(outputs if isinstance(outputs, (list, tuple)) else [outputs], spec)

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        names = self.pytree_info.orig_args
        if names and names[0] == "self":
            free_vars.insert(0, "self")
        start = super().gen_fn_def(names[:], maybe_return_annotation, expanded_def=expanded_def)
        return start + self.gen_var_bindings(names, free_vars, expanded_def) if free_vars else start

    def gen_var_bindings(self, fn_args: list[str], free_vars: list[str], expanded_def: bool) -> str:
        """Return the statement that flattens, after one with the annotations, which cannot be part of it."""
        noted = [name for name in free_vars if ":" in name]
        start = "" if not noted else ("\n    " + "\n    ".join(noted) if expanded_def
                                      else "\n    " + "".join(f"{name}; " for name in noted) + "\n")
        bare = ", ".join(name.split(":")[0].split("#")[0].split("=")[0].rstrip() for name in free_vars)
        return f"{start}\n    {bare}, = fx_pytree.tree_flatten_spec({self._arguments(fn_args)}, self._in_spec)"

    def _arguments(self, names: list[str]) -> str:
        """Return the function's arguments as one source: a list, or (list, dictionary) if some are given by name."""
        spec = self.pytree_info.in_spec
        if not (spec.type is tuple and spec.num_children == 2 and spec.child(0).type is tuple
                and spec.child(1).type is dict):
            return f"[{', '.join(names)}]"
        names = self.pytree_info.orig_args
        count = spec.child(0).num_children
        named = ", ".join(f"'{key}':{name}" for key, name in zip(spec.child(1).context, names[count:], strict=False))
        return f"([{', '.join(names[:count])}], {{{named}}})"

    def generate_output(self, output_args: Any, *, descs: Sequence[str] | None = None, repr_fn: Any = repr) -> str:
        if self.pytree_info.out_spec is None:
            return super().generate_output(output_args, descs=descs, repr_fn=repr_fn)
        return f"return pytree.tree_unflatten({self._result(output_args, descs, repr_fn)}, self._out_spec)"


class _BoxedCodeGen(CodeGen):
    """Generates code whose function takes its arguments in a list, which it clears."""

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        start = f"def {self._func_name}(self, args_list){maybe_return_annotation}:"
        names = [name.split(":")[0].split("=")[0].strip() for name in free_vars if name != "self"]
        if not names:
            return start
        return "\n    ".join([start, "args_iter = iter(args_list)", *(f"{name} = next(args_iter)" for name in names),
                              "args_list.clear()"])
