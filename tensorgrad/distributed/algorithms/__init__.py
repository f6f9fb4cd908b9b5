"""torch.distributed.algorithms: uneven inputs, communication hooks, averages of models.

https://pytorch.org/docs/stable/distributed.algorithms.join.html
"""
from .join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]
