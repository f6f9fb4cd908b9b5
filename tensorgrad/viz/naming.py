"""What tensors are called: by the program's variables and modules, by their own `.name`, or by numbers in the order they were made."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.node import Node
from ..core.tape import Leaf, Output, TensorBase, node_of
from .steps import op_of
from .text import clean, shorten

LONGEST = 24


def variables(frame: Any) -> dict[str, Any]:
    """The tensors and modules among a program's variables, by name."""
    found = {**frame.f_globals, **frame.f_locals}
    return {name: value for name, value in found.items()
            if not name.startswith("_") and (isinstance(value, TensorBase) or hasattr(type(value), "named_parameters"))}


def tensors_of(scope: Mapping[str, Any], module: Any = None) -> dict[str, Any]:
    """{name: tensor} of variables, of the parameters of modules among them, and of a module whose own name goes without saying."""
    if module is not None and not hasattr(module, "named_parameters"):
        raise TypeError(f"module: expected a Module, not {type(module).__name__}")
    found = dict(module.named_parameters()) if module is not None else {}
    for name, value in scope.items():
        if isinstance(value, TensorBase):
            found.setdefault(name, value)
    for name, value in scope.items():
        if not isinstance(value, TensorBase) and not hasattr(value, "named_parameters"):
            raise TypeError(f"names: {name!r} is a {type(value).__name__}, not a tensor")
        if not isinstance(value, TensorBase) and value is not module:
            found.update((f"{name}.{inner}", p) for inner, p in value.named_parameters())
    return {name: tensor for name, tensor in found.items() if has_place(tensor)}


def has_place(tensor: Any) -> bool:
    """Whether one can ask for a tensor's values and where it came from: not of a lazy parameter, nor of a view that was lost to a write in place."""
    try:
        node_of(tensor)
        return hasattr(tensor.array, "shape")
    except (RuntimeError, ValueError):
        return False


def readable(name: Any) -> str:
    return shorten(clean(name), LONGEST)


class Names:
    """The names of the nodes of a tape, and of tensors that need no gradient."""

    def __init__(self, nodes: list[Any], tensors: Mapping[str, Any]) -> None:
        self.of_node: dict[Any, str] = {}
        self.of_array: dict[int, str] = {}
        self.held = list(tensors.values())          # as long as their arrays live, so do the numbers by which they are known
        for name, tensor in tensors.items():
            name = readable(getattr(tensor, "name", None) or name)
            self.of_array.setdefault(id(tensor.array), name)
            if (node := node_of(tensor)) is not None:
                self.of_node.setdefault(node, name)
        count = {"leaf": 0, "v": 0}
        for node in nodes:
            if type(node) is Output:
                continue
            kind = "leaf" if type(node) is Leaf else "v"
            count[kind] += node not in self.of_node
            own = getattr(node.tensor, "name", None) if type(node) is Leaf else None
            if own or node not in self.of_node:
                self.of_node[node] = readable(own) if own else "L" if node is nodes[-1] and kind == "v" else f"{kind}{count[kind]}"
        for node in nodes:
            if type(node) is Output and node not in self.of_node:
                outputs = getattr(op_of(node.node), "outputs", ())
                part = "" if len(node.node.dtype) == 1 else f".{outputs[node.index]}" if outputs else f"[{node.index}]"
                self.of_node[node] = self.of_node[node.node] + part

    def __call__(self, tensor: Any) -> str:
        """The name of a node, or of a tensor that needs no gradient; '' for what has none."""
        if isinstance(tensor, TensorBase):
            return self.of_array.get(id(tensor.array), "")
        return self.of_node.get(tensor, "") if isinstance(tensor, Node) else ""
