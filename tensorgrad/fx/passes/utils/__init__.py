"""Tools for passes: finding patterns, and moving parts of graphs into modules."""
from .common import HolderModule, compare_graphs, lift_subgraph_as_module

__all__ = ["HolderModule", "compare_graphs", "lift_subgraph_as_module"]
