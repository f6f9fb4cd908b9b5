"""Which nodes a backend can run. https://pytorch.org/docs/stable/fx.html"""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from ...graph.node import Node
from .shape_prop import TensorMetadata
from .tools_common import CALLABLE_NODE_OPS, get_node_target

__all__ = ["OpSupports", "OperatorSupport", "OperatorSupportBase", "any_chain", "chain", "create_op_support"]


class OperatorSupportBase(ABC):
    """Tells which nodes a backend can run."""

    @abstractmethod
    def is_node_supported(self, submodules: Mapping[str, Any], node: Node) -> bool:
        """Return True if the backend can run the node; `submodules` are the layers by name."""


class OperatorSupport(OperatorSupportBase):
    """Supports the targets of a table: {name: None, or (dtypes of each argument, {keyword: dtypes})}.

    >>> import tensorgrad as torch
    >>> support = OperatorSupport({"torch.relu": None})
    >>> graph = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1).graph
    >>> [support.is_node_supported({}, node) for node in graph.nodes]
    [True, True, False, True]
    """

    def __init__(self, support_dict: Mapping[str, Any] | None = None) -> None:
        self._support_dict = support_dict or {}

    def is_node_supported(self, submodules: Mapping[str, Any], node: Node) -> bool:
        """Return True if the table has the node's target with the dtypes of its arguments."""
        if node.op not in CALLABLE_NODE_OPS:
            return True
        target = get_node_target(submodules, node)
        if target not in self._support_dict:
            return False
        wanted = self._support_dict[target]
        if wanted is None:
            return True
        given = [*zip(node.args, wanted[0], strict=False),
                 *((node.kwargs[name], dtypes) for name, dtypes in wanted[1].items() if name in node.kwargs)]
        return all(dtypes is None or not isinstance(argument, Node) or _get_arg_dtype(argument) in dtypes
                   for argument, dtypes in given)


def create_op_support(is_node_supported: Callable[[Mapping[str, Any], Node], bool]) -> OperatorSupportBase:
    """Return the support of the nodes for which a function is true."""
    class FunctionalOperatorSupport(OperatorSupportBase):
        def is_node_supported(self, submodules: Mapping[str, Any], node: Node) -> bool:
            return is_node_supported(submodules, node)
    return FunctionalOperatorSupport()


def chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Return the support of nodes that all of these support."""
    return create_op_support(lambda layers, node: all(each.is_node_supported(layers, node) for each in op_support))


def any_chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Return the support of nodes that any of these supports."""
    return create_op_support(lambda layers, node: any(each.is_node_supported(layers, node) for each in op_support))


class OpSupports:
    """Conditions for `chain`."""

    @classmethod
    def decline_if_input_dtype(cls, dtype: Any) -> OperatorSupportBase:
        """Return the support of nodes none of whose inputs has this dtype."""
        return create_op_support(lambda layers, node: all(_get_arg_dtype(each) != dtype
                                                          for each in node.all_input_nodes))

    @classmethod
    def decline_if_node_in_names(cls, disallow_set: set[str]) -> OperatorSupportBase:
        """Return the support of nodes with other names."""
        return create_op_support(lambda layers, node: node.name not in disallow_set)


def _get_arg_dtype(arg: Node) -> Any:
    """Return the dtype of a node's value, or its type, from `ShapeProp`."""
    told = arg.meta.get("tensor_meta")
    return told.dtype if isinstance(told, TensorMetadata) else arg.meta["type"]
