"""The one recorded program: nodes in a list that can be changed, in the shape of torch.fx. https://pytorch.org/docs/stable/fx.html"""
from .effects import has_side_effect
from .graph import Graph
from .nesting import immutable_dict, immutable_list
from .node import Node, map_arg

__all__ = ["Graph", "Node", "has_side_effect", "immutable_dict", "immutable_list", "map_arg"]
