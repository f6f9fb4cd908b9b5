"""Quasi-random numbers: points that fill a cube more evenly than random ones.

https://pytorch.org/docs → torch.quasirandom
"""
from .sobol import SobolEngine

__all__ = ["SobolEngine"]
