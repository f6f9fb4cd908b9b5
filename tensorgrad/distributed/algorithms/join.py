"""Processes that run out of data at different times. https://pytorch.org/docs/stable/distributed.algorithms.join.html"""
from ...nn.parallel.uneven import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]
