"""Discrete Fourier transforms. https://pytorch.org/docs/stable/fft.html

>>> import tensorgrad as torch
>>> torch.fft.fft(torch.tensor([1., 2., 3., 4.]))
tensor([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j])
"""
from ._tensor.torch_function import namespaced as _namespaced
from .api.fourier import FFT as _FFT

globals().update(_namespaced(_FFT, __name__))

__all__ = sorted(_FFT)
