"""Draw graphs with pydot. https://pytorch.org/docs/stable/fx.html"""
from __future__ import annotations

import hashlib
from typing import Any

from ...api import typename
from ...graph.names import source_name
from ...graph.node import Node, told
from ...nn import Module
from ..graph_module import GraphModule, _get_attr
from .shape_prop import TensorMetadata

__all__ = ["FxGraphDrawer"]
COLORS = {"placeholder": '"AliceBlue"', "call_module": "LemonChiffon1", "get_attr": "LightGrey",
          "output": "PowderBlue"}
OTHERS = ("CadetBlue1 Coral DarkOliveGreen1 DarkSeaGreen1 GhostWhite Khaki1 LavenderBlush1 LightSkyBlue MistyRose1 "
          "MistyRose2 PaleTurquoise2 PeachPuff1 Salmon Thistle1 Thistle3 Wheat1").split()


def pydot_module() -> Any:
    """Return the package pydot. RuntimeError without it."""
    try:
        import pydot
    except ImportError:
        raise RuntimeError("FXGraphDrawer requires the pydot package to be installed. Please install pydot through "
                           "your favorite Python package manager.") from None
    return pydot


class FxGraphDrawer:
    """Makes pydot's graph of a module's, and of those of the modules that it calls: a box for each node.

    RuntimeError without pydot. `tensorgrad.viz` draws models without it.
    """

    def __init__(self, graph_module: GraphModule, name: str, ignore_getattr: bool = False,
                 ignore_parameters_and_buffers: bool = False, skip_node_names_in_args: bool = True,
                 parse_stack_trace: bool = False, dot_graph_shape: str | None = None,
                 normalize_args: bool = False) -> None:
        self._pydot, self._name, self.shape = pydot_module(), name, dot_graph_shape or "record"
        self._skip = skip_node_names_in_args
        self._dot_graphs = {name: self._to_dot(graph_module, name, ignore_getattr, ignore_parameters_and_buffers)}
        for node in graph_module.graph.find_nodes(op="call_module"):
            layer = _get_attr(graph_module, node.target)
            if isinstance(layer, GraphModule):
                inner = f"{name}_{node.target}"
                self._dot_graphs[inner] = self._to_dot(layer, inner, ignore_getattr, ignore_parameters_and_buffers)

    def get_dot_graph(self, submod_name: str | None = None) -> Any:
        """Return pydot's graph of the module, or of one in it."""
        return self._dot_graphs[self._name if submod_name is None else f"{self._name}_{submod_name}"]

    def get_main_dot_graph(self) -> Any:
        """Return pydot's graph of the module."""
        return self._dot_graphs[self._name]

    def get_submod_dot_graph(self, submod_name: str) -> Any:
        """Return pydot's graph of a module in it."""
        return self.get_dot_graph(submod_name)

    def get_all_dot_graphs(self) -> dict[str, Any]:
        """Return {name: pydot's graph}."""
        return self._dot_graphs

    def _to_dot(self, module: GraphModule, name: str, ignore_getattr: bool, ignore_tensors: bool) -> Any:
        dot = self._pydot.Dot(name, rankdir="TB")
        shown = [node for node in module.graph.nodes if not (ignore_getattr and node.op == "get_attr")]
        for node in shown:
            dot.add_node(self._pydot.Node(node.name, label=self._label(module, node), **self._style(node)))
            if node.op == "call_module" and not ignore_tensors:
                self._add_tensors(dot, _get_attr(module, node.target), node)
        for node in shown:
            for user in node.users:
                dot.add_edge(self._pydot.Edge(node.name, user.name))
        return dot

    def _add_tensors(self, dot: Any, layer: Module, node: Node) -> None:
        """Add the parameters and buffers of a layer."""
        for kind, table in (("parameter", layer.named_parameters()), ("buffer", layer.named_buffers())):
            for name, tensor in table:
                label = f"{{{node.name}.{name}|op_code=get_{kind}\\l{str(tensor.dtype)}{list(tensor.shape)}\\l}}"
                dot.add_node(self._pydot.Node(f"{node.name}.{name}", label=label, shape=self.shape, fillcolor="Salmon",
                                              style='"filled,rounded"', fontcolor="#000000"))
                dot.add_edge(self._pydot.Edge(f"{node.name}.{name}", node.name))

    def _style(self, node: Node) -> dict[str, str]:
        color = COLORS.get(node.op)
        if color is None:
            text = node._pretty_print_target(node.target)
            color = OTHERS[int(hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()[:8], 16) % len(OTHERS)]
        return {"shape": self.shape, "fillcolor": color, "style": '"filled,rounded"', "fontcolor": "#000000"}

    def _label(self, module: GraphModule, node: Node) -> str:
        """Return the text of a node's box."""
        parts = [f"name=%{node.name}", f"op_code={node.op}"]
        if node.op == "call_module":
            parts[1] += f"\\n{typename(_get_attr(module, node.target))}\\n"
        else:
            target = node.target if isinstance(node.target, str) else source_name(node.target)
            parts.append(f"target={target}")
            args = [text for each in node.args if "%" not in (text := told(each)) or not self._skip]
            kwargs = [f"{name}: {text}" for name, each in node.kwargs.items() if "%" not in (text := told(each))
                      or not self._skip]
            parts += [f"args=({', '.join(args)},)"] * bool(args) + [f"kwargs={{{', '.join(kwargs)},}}"] * bool(kwargs)
            parts.append(f"num_users={len(node.users)}")
        meta = node.meta.get("tensor_meta")
        if isinstance(meta, TensorMetadata):
            parts += [f"dtype={meta.dtype}", f"shape={tuple(meta.shape)}", f"requires_grad={meta.requires_grad}",
                      f"stride={meta.stride}"]
        return "{" + "|".join(part.replace("{", "\\{").replace("}", "\\}") for part in parts) + "}"
