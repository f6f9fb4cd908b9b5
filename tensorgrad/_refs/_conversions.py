"""torch._refs._conversions: a tensor in each dtype, by a function of its name.

>>> import tensorgrad as torch
>>> from tensorgrad._refs import _conversions
>>> _conversions.double(torch.tensor([1, 2]))
tensor([1., 2.], dtype=torch.float64)
"""
from __future__ import annotations

from ..api import Tensor, complex, polar

bfloat16, bool, byte, cdouble, cfloat, char, double, float, half, int, long, short = (
    getattr(Tensor, name) for name in ("bfloat16", "bool", "byte", "cdouble", "cfloat", "char", "double",
                                       "float", "half", "int", "long", "short"))

__all__ = ["bfloat16", "bool", "byte", "cdouble", "cfloat", "char", "complex", "double", "float", "half",
           "int", "long", "polar", "short"]
