"""The origin of traced nodes, in `meta`. https://pytorch.org/docs/stable/fx.html"""
from __future__ import annotations

import copy
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from functools import wraps
from typing import Any

from ..graph.node import Node

__all__ = ["NodeSource", "NodeSourceAction", "annotate", "annotate_fn", "format_stack", "get_current_meta",
           "get_current_replay_node", "get_graph_provenance_json", "has_preserved_node_meta", "preserve_node_meta",
           "reset_grad_fn_seq_nr", "set_current_meta", "set_current_replay_node", "set_grad_fn_seq_nr",
           "set_stack_trace"]

current_meta: dict[str, Any] = {}           # what new nodes get
current_replay_node: Node | None = None
should_preserve_node_meta = False
GRADIENT_ACC_SPECIAL_STACK = "Gradient addition node due to multiple use of tensor around:"
# the items of the current `meta` that new nodes get
COPIED = ("nn_module_stack", "torch_fn", "source_fn_stack", "original_aten", "recompute", "ac_graph_id",
          "has_backward_hook", "from_node", "quantization_tag", "_numeric_debug_handle", "custom", "partitioner_tag")


class NodeSourceAction(Enum):
    """Tells what a pass did to a node."""

    CREATE = "create"
    REPLACE = "replace"


class NodeSource:
    """The node that another one was made from, by a pass of this name; `from_node` are the sources of that node.

    >>> from tensorgrad.fx import Graph
    >>> source = NodeSource(Graph().placeholder("x"), "fold", NodeSourceAction.CREATE)
    >>> source.name, source.pass_name, source.action
    ('x', 'fold', [<NodeSourceAction.CREATE: 'create'>])
    """

    class NodeInfo:
        """The name, target and graph of a node."""

        def __init__(self, name: str, target: str, graph_id: int) -> None:
            self.name, self.target, self.graph_id = name, target, graph_id

    def __init__(self, node: Node | None, pass_name: str = "", action: Any = None) -> None:
        self.pass_name = pass_name
        self.action = [] if action is None else action if isinstance(action, list) else [action]
        for each in self.action:
            if not isinstance(each, NodeSourceAction):
                raise AssertionError(f"Expected NodeSourceAction, got {type(each)}")
        self.node_info: Any = None
        self.from_node: list[NodeSource] = []
        if node:
            self.node_info = self.NodeInfo(node.name, str(node.target), id(node.graph))
            self.from_node = copy.deepcopy(node.meta.get("from_node", []))

    name = property(lambda self: self.node_info.name if self.node_info else "")
    target = property(lambda self: self.node_info.target if self.node_info else "")
    graph_id = property(lambda self: self.node_info.graph_id if self.node_info else -1)

    def _get_action_string(self) -> str:
        return "+".join(each.name.lower() for each in self.action)

    def print_readable(self, indent: int = 0) -> str:
        """Return the source and its sources as lines of text."""
        if indent > 9:
            return ""
        own = (f"{' ' * indent * 4}(name={self.name}, pass_name={self.pass_name}, action={self._get_action_string()}, "
               f"graph_id={self.graph_id})\n")
        return own + "".join(source.print_readable(indent + 1) for source in self.from_node)

    __repr__ = print_readable

    def to_dict(self) -> dict[str, Any]:
        """Return the source as a dictionary."""
        return {"name": self.name, "target": self.target, "graph_id": self.graph_id, "pass_name": self.pass_name,
                "action": self._get_action_string(), "from_node": [source.to_dict() for source in self.from_node]}

    @classmethod
    def _from_dict(cls, d: dict[str, Any] | None) -> NodeSource | None:
        if d is None:
            return None
        new = cls(None, d.get("pass_name", ""), [NodeSourceAction[name.upper()]
                                                 for name in d.get("action", "").split("+")
                                                 if name.upper() in NodeSourceAction.__members__])
        if {"name", "target", "graph_id"} <= d.keys():
            new.node_info = cls.NodeInfo(d["name"], d["target"], d["graph_id"])
        new.from_node = [source for each in d.get("from_node") or [] if (source := cls._from_dict(each)) is not None]
        return new

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeSource) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(str(self.to_dict()))


@contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """Let nodes that are traced in the block get the current `meta`."""
    global should_preserve_node_meta, current_meta
    before = should_preserve_node_meta, current_meta.copy()
    should_preserve_node_meta = enable
    try:
        yield
    finally:
        should_preserve_node_meta, current_meta = before


def has_preserved_node_meta() -> bool:
    """Return True if new nodes get the current `meta`."""
    return should_preserve_node_meta


def get_current_meta() -> dict[str, Any]:
    """Return the `meta` of the node that is interpreted."""
    return current_meta


@contextmanager
def set_current_meta(node: Node, pass_name: str = "") -> Iterator[None]:
    """Let nodes that are traced in the block get the `meta` of this one, if they are to get any."""
    global current_meta
    if not (should_preserve_node_meta and node.meta):
        yield
        return
    before = current_meta
    current_meta = {**node.meta, "from_node": [NodeSource(node, pass_name, NodeSourceAction.CREATE)]}
    try:
        yield
    finally:
        current_meta = before


def given_meta(node: Node) -> None:
    """Give a new node what it gets of the current `meta`."""
    stack = current_meta.get("stack_trace")
    if stack:
        node.stack_trace = stack
        if GRADIENT_ACC_SPECIAL_STACK in stack:
            node.meta.update(is_gradient_acc=True, autograd_backward=True)
    node.meta.update({key: copy.copy(current_meta[key]) for key in COPIED if key in current_meta})
    if current_meta.get("in_grad_fn", 0) > 0:
        node.meta["seq_nr"] = current_meta["grad_fn_seq_nr"][-1]
    if current_meta.get("autograd_backward", False):
        node.meta["autograd_backward"] = True


def set_stack_trace(stack: list[str]) -> None:
    """Set the stack trace that new nodes get."""
    if should_preserve_node_meta:
        if stack:
            current_meta["stack_trace"] = "".join(stack)
        else:
            current_meta.pop("stack_trace", None)


def format_stack() -> list[str]:
    """Return the stack trace that new nodes get, or the present one."""
    if should_preserve_node_meta:
        return [current_meta.get("stack_trace", "")]
    return traceback.format_list(traceback.extract_stack()[:-1])


@contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """Let nodes that are traced in the block have these items in `meta["custom"]`."""
    before = copy.copy(current_meta.get("custom"))
    current_meta["custom"] = {**(before or {}), **annotation_dict}
    try:
        yield
    finally:
        if before is None:
            del current_meta["custom"]
        else:
            current_meta["custom"] = before


def annotate_fn(annotation_dict: dict[str, Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator: nodes that its function traces have these items in `meta["custom"]`."""
    def decorator(func: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with annotate(annotation_dict):
                return func(*args, **kwargs)
        return wrapper
    return decorator


def set_grad_fn_seq_nr(seq_nr: int) -> None:
    """Enter the backward of a step of the tape, by its number."""
    if should_preserve_node_meta:
        current_meta["grad_fn_seq_nr"] = [*current_meta.get("grad_fn_seq_nr", []), seq_nr]
        current_meta["in_grad_fn"] = current_meta.get("in_grad_fn", 0) + 1


def reset_grad_fn_seq_nr() -> None:
    """Leave the backward that was entered last."""
    if should_preserve_node_meta:
        level = current_meta.get("in_grad_fn", 0)
        if level <= 0:
            raise AssertionError(f"Expected current_level > 0, got {level}")
        current_meta["in_grad_fn"] = level - 1
        current_meta["grad_fn_seq_nr"] = current_meta["grad_fn_seq_nr"][:-1]
        if level == 1:
            del current_meta["in_grad_fn"], current_meta["grad_fn_seq_nr"]


@contextmanager
def set_current_replay_node(node: Node | None) -> Iterator[None]:
    """Set the node that is traced anew, until the block ends."""
    global current_replay_node
    before, current_replay_node = current_replay_node, node
    try:
        yield
    finally:
        current_replay_node = before


def get_current_replay_node() -> Node | None:
    """Return the node that is traced anew."""
    return current_replay_node


def get_graph_provenance_json(graph: Any) -> dict[str, Any]:
    """Return {name of a called function's node: its sources as dictionaries}."""
    return {node.name: [source.to_dict() for source in node.meta.get("from_node", [])]
            for node in graph.nodes if node.op == "call_function"}
