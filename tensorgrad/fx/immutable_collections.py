"""The immutable lists and dictionaries in the arguments of nodes. https://pytorch.org/docs/stable/fx.html"""
from ..graph.nesting import immutable_dict, immutable_list
from ..utils._pytree import CONTAINERS, Container
from ._pytree import register_pytree_flatten_spec

__all__ = ["immutable_dict", "immutable_list"]

CONTAINERS[immutable_list] = Container(lambda parts: (parts, None), lambda parts, _: immutable_list(parts),
                                       keys="items", name="torch.fx.immutable_collections.immutable_list")
CONTAINERS[immutable_dict] = Container(lambda tree: (list(tree.values()), list(tree)),
                                       lambda parts, keys: immutable_dict(zip(keys, parts, strict=True)),
                                       keys="mapping", name="torch.fx.immutable_collections.immutable_dict")
register_pytree_flatten_spec(immutable_list, lambda tree, spec: [tree[k] for k in range(spec.num_children)])
register_pytree_flatten_spec(immutable_dict, lambda tree, spec: [tree[key] for key in spec.context])
