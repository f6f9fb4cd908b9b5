"""Processes that run out of data at different times.

https://pytorch.org/docs/stable/distributed.algorithms.join.html
"""
from ...nn.parallel.join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]
