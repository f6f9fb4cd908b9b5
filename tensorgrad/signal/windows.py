"""Window functions. https://pytorch.org/docs/stable/signal.html

>>> import tensorgrad as torch
>>> torch.signal.windows.hann(5)
tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
"""
from .._tensor.torch_function import namespaced as _namespaced
from ..api.windows import WINDOWS as _WINDOWS

globals().update(_namespaced(_WINDOWS, __name__))

__all__ = sorted(_WINDOWS)
