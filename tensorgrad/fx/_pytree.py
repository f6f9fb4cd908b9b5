"""Flatten containers whose structure is known. https://pytorch.org/docs/stable/fx.html"""
from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ..graph.names import register_name
from ..utils import _pytree
from ..utils._pytree import CONTAINERS, TreeSpec, tree_flatten

# {type: (object, spec) → its parts}: types whose parts depend on the spec, or are no containers otherwise
SUPPORTED_NODES: dict[type, Callable[[Any, TreeSpec], list[Any]]] = {}
SUPPORTED_NODES_EXACT_MATCH: dict[type, Callable[[Any, TreeSpec], bool] | None] = {}


def register_pytree_flatten_spec(cls: type, flatten_fn_spec: Callable[[Any, TreeSpec], list[Any]],
                                 flatten_fn_exact_match_spec: Callable[[Any, TreeSpec], bool] | None = None) -> None:
    """Register how `tree_flatten_spec` takes apart objects of a class."""
    SUPPORTED_NODES[cls] = flatten_fn_spec
    SUPPORTED_NODES_EXACT_MATCH[cls] = flatten_fn_exact_match_spec


def _deregister_pytree_flatten_spec(cls: type) -> None:
    del SUPPORTED_NODES[cls], SUPPORTED_NODES_EXACT_MATCH[cls]


def tree_flatten_spec(pytree: Any, spec: TreeSpec) -> list[Any]:
    """Return the leaves of a tree at the positions of a spec's leaves.

    Dictionaries may have further keys. RuntimeError if another container does not have the spec's structure.

    >>> _, spec = tree_flatten({"a": 1, "b": [2, 3]})
    >>> tree_flatten_spec({"b": [20, (30, 31)], "a": 10}, spec)
    [10, 20, (30, 31)]
    """
    if spec.is_leaf():
        return [pytree]
    parts_of = SUPPORTED_NODES.get(spec.type)
    if parts_of is not None:
        return [leaf for part, child in zip(parts_of(pytree, spec), spec.children(), strict=False)
                for leaf in tree_flatten_spec(part, child)]
    leaves, found = tree_flatten(pytree)
    if found != spec:
        raise RuntimeError(f"Real spec {found} of object {pytree} is different from expected spec {spec}. Please file "
                           f"an issue at https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml")
    return leaves


def _in_order(sequence: Any, spec: TreeSpec) -> list[Any]:
    return [sequence[k] for k in range(spec.num_children)]


register_pytree_flatten_spec(dict, lambda tree, spec: [tree[key] for key in spec.context],
                             lambda tree, spec: len(tree) == spec.num_children)
register_pytree_flatten_spec(list, _in_order, lambda tree, spec: len(tree) == spec.num_children)
register_pytree_flatten_spec(tuple, _in_order, lambda tree, spec: len(tree) == spec.num_children)
register_pytree_flatten_spec(_pytree.namedtuple, _in_order, lambda tree, spec: len(tree) == spec.num_children)
register_name("fx_pytree", "import torch.fx._pytree as fx_pytree", sys.modules[__name__])
register_name("pytree", "import torch.utils._pytree as pytree", _pytree)

__all__ = ["CONTAINERS", "register_pytree_flatten_spec", "tree_flatten_spec"]
