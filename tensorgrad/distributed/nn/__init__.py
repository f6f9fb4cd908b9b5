"""torch.distributed.nn: collectives with gradients. https://pytorch.org/docs → torch.distributed.nn"""
from ...messages.missing_names import missing
from ..operations import ReduceOp
from ..world import group
from .functional import (
           all_gather,
           all_reduce,
           all_to_all,
           all_to_all_single,
           broadcast,
           gather,
           reduce,
           reduce_scatter,
           scatter,
)

__all__ = ["ReduceOp", "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "group",
           "reduce", "reduce_scatter", "scatter"]

__getattr__ = missing(__name__)
